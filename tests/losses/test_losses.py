"""Losses over every kind of A: values, derivatives and minimisers against direct formulas and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from ell12 import HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from ell12.operators import to_dense
from ell12.operators.image_operators import Convolution
from ell12.protocols import Loss, offers

RNG = np.random.default_rng(7)
DELTA = 0.8
LOSSES = {
    "squared": SquaredLoss,
    "logistic": LogisticLoss,
    "huber": lambda *a, **k: HuberLoss(*a, delta=DELTA, **k),
    "poisson": PoissonLoss,
}
BOUNDS = {"squared": 1.0, "logistic": 0.25, "huber": 1.0, "poisson": np.inf}  # of the second derivative
DENSE = np.round(RNG.standard_normal((12, 5)), 2) * (RNG.random((12, 5)) < 0.7)
WEIGHTS = RNG.integers(0, 4, 12)


def pylops_matrix(A):
    return pytest.importorskip("pylops", reason="pylops is not installed").MatrixMult(A, dtype=A.dtype)


def torch_matrix(A):
    return pytest.importorskip("torch", reason="torch is not installed").asarray(A)


KINDS = {
    "array": np.array,
    "fortran": np.asfortranarray,
    "list": lambda A: A.tolist(),
    "float32": lambda A: A.astype(np.float32),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "matrix of scipy": sparse.csr_matrix,
    "linear operator": aslinearoperator,
    "pylops": pylops_matrix,
    "torch": torch_matrix,
}


def observations(name, m, rng=RNG, k=None):
    b = rng.standard_normal(m if k is None else (m, k))
    return {"logistic": np.sign(b), "poisson": np.round(2 * np.abs(b))}.get(name, b)


def pointwise(name, prediction, b):
    """The losses of single predictions, written down once more."""
    if name == "squared":
        return 0.5 * np.abs(prediction - b) ** 2
    if name == "logistic":
        return np.logaddexp(0, -b * prediction)
    if name == "poisson":
        return np.exp(prediction) - b * prediction
    r = np.abs(prediction - b)
    return np.where(r <= DELTA, 0.5 * r**2, DELTA * r - 0.5 * DELTA**2)


def numerical_gradient(f, x, h=1e-5):
    """Central differences in every entry."""
    gradient = np.empty(x.shape)
    for i in np.ndindex(x.shape):
        move = np.zeros(x.shape)
        move[i] = h
        gradient[i] = (f(x + move) - f(x - move)) / (2 * h)
    return gradient


def value_at(loss):
    return lambda x: loss.value(loss.point(x))


# Every kind of A


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix(kind, name):
    A, b, x = KINDS[kind](DENSE), observations(name, 12), RNG.standard_normal(5)
    dense = np.asarray(DENSE, dtype=np.float32 if kind == "float32" else float)
    if kind == "torch":
        b, x = (torch_matrix(v) for v in (b, x))
    x = x.astype(np.float32) if kind == "float32" else x
    loss = LOSSES[name](A, b, scale=0.3, sample_weight=WEIGHTS)
    reference = LOSSES[name](DENSE, np.asarray(b), scale=0.3, sample_weight=WEIGHTS)
    tol = 1e-5 if kind == "float32" else 1e-12
    point, same = loss.point(x), reference.point(np.asarray(x, dtype=float))
    np.testing.assert_allclose(np.asarray(point.prediction), dense @ np.asarray(x), rtol=tol, atol=tol)
    expected = 0.3 * np.sum(WEIGHTS * pointwise(name, DENSE @ np.asarray(x), np.asarray(b)))
    assert loss.value(point) == pytest.approx(expected, rel=tol)
    for method in ("gradient", "slope", "curvature", "hessian"):
        result = getattr(loss, method)(point)
        assert type(result) is type(x)
        assert result.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(result), getattr(reference, method)(same), rtol=tol, atol=tol)
    assert loss.lipschitz() == pytest.approx(reference.lipschitz(), rel=1e-5)
    start = loss.start()
    assert (type(start), start.dtype, tuple(start.shape)) == (type(x), x.dtype, (5,))
    assert offers(loss, Loss)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_one_look_tells_the_values_and_gradients_at_several_points(kind, name, weights):
    b, x = observations(name, 12), RNG.standard_normal((5, 3))
    precise = kind != "float32"
    x, tol = x if precise else x.astype(np.float32), 1e-12 if precise else 1e-4
    given = torch_matrix(x) if kind == "torch" else x
    extra = {"offset": RNG.standard_normal(12)} if name == "poisson" else {}
    loss = LOSSES[name](KINDS[kind](DENSE), b, scale=0.3, sample_weight=weights, **extra)
    values, _, gradients = loss.gradients(loss.A @ given, least=1e-3)
    assert type(gradients) is type(given)
    assert gradients.dtype == given.dtype
    weight, offset = np.ones(12) if weights is None else weights, extra.get("offset", 0.0)
    for k in range(3):
        expected = 0.3 * np.sum(weight * pointwise(name, DENSE @ x[:, k] + offset, b))
        assert float(values[k]) == pytest.approx(expected, rel=tol)
        gradient = np.asarray(loss.gradient(loss.point(given[:, k])))
        np.testing.assert_allclose(np.asarray(gradients)[:, k], gradient, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_squared_loss(dtype):
    A = (DENSE + 1j * RNG.standard_normal(DENSE.shape)).astype(dtype)
    b, x = (RNG.standard_normal(n) + 1j * RNG.standard_normal(n) for n in (12, 5))
    loss, x = SquaredLoss(A, b, scale=0.5), x.astype(dtype)
    point = loss.point(x)
    assert loss.start().dtype == loss.gradient(point).dtype == loss.b.dtype == dtype
    tol = 1e-5 if dtype is np.complex64 else 1e-12
    assert loss.value(point) == pytest.approx(0.25 * np.sum(np.abs(A @ x - b) ** 2), rel=tol)
    np.testing.assert_allclose(loss.gradient(point), 0.5 * A.conj().T @ (A @ x - b), rtol=tol, atol=tol)
    exact = 0.5 * np.linalg.norm(A.astype(complex), 2) ** 2
    assert exact <= loss.lipschitz() <= 1.01 * exact * (1 + tol)
    q = np.ones(5, dtype=dtype)
    v = loss.proximal(0.7)(q, loss.start())
    np.testing.assert_allclose(loss.gradient(loss.point(v)) + 0.7 * (v - q), 0, atol=100 * tol)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_operator_on_images(name, weighted):
    """Against the same problem as vectors and a dense matrix."""
    blur = Convolution(RNG.random((3, 2)), (4, 5))
    b, x = observations(name, 20).reshape(4, 5), RNG.standard_normal((4, 5))
    weights = RNG.random((4, 5)) if weighted else None
    loss = LOSSES[name](blur, b, sample_weight=weights)
    flat = LOSSES[name](to_dense(blur), b.ravel(), sample_weight=weights.ravel() if weighted else None)
    point, same = loss.point(x), flat.point(x.ravel())
    assert loss.value(point) == pytest.approx(flat.value(same), rel=1e-12)
    np.testing.assert_allclose(loss.gradient(point).ravel(), flat.gradient(same), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(loss.gradient(point), numerical_gradient(value_at(loss), x), atol=1e-7)
    np.testing.assert_allclose(loss.hessian(point), flat.hessian(same), atol=1e-12)
    assert loss.lipschitz() == pytest.approx(flat.lipschitz(), rel=1e-2)
    q, start = RNG.standard_normal((4, 5)), loss.start()
    v = loss.proximal(0.5)(q, start)
    assert v.shape == start.shape == (4, 5)
    np.testing.assert_allclose(loss.gradient(loss.point(v)) + 0.5 * (v - q), 0, atol=1e-10)


# Derivatives


def problem(name, seed, m=9, n=6, **options):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    return LOSSES[name](A, observations(name, m, rng), **options), rng.standard_normal(n), rng


@pytest.mark.parametrize("name", LOSSES)
@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.01, 10))
def test_derivatives_against_differences(name, seed, scale):
    loss, x, _ = problem(name, seed, scale=scale)
    point = loss.point(x)
    residual = np.abs(point.prediction - loss.b)
    if name == "huber" and np.any(np.abs(residual - DELTA) < 1e-3):
        return  # a kink of the gradient within reach of the differences
    np.testing.assert_allclose(loss.gradient(point), numerical_gradient(value_at(loss), x), atol=2e-7 * scale)
    hessian = np.stack(
        [numerical_gradient(lambda v, j=j: loss.gradient(loss.point(v))[j], x) for j in range(6)], axis=1
    )
    np.testing.assert_allclose(loss.hessian(point), hessian, atol=1e-6 * scale)
    columns = np.array([4, 0, 3])
    np.testing.assert_allclose(loss.hessian(point, columns), hessian[np.ix_(columns, columns)], atol=1e-6 * scale)
    np.testing.assert_allclose(loss.A.T @ np.diag(loss.curvature(point)) @ loss.A, hessian, atol=1e-6 * scale)


@pytest.mark.parametrize("name", LOSSES)
@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), distance=st.floats(-9, 3).map(lambda e: 10.0**e))
def test_divergence(name, seed, distance):
    loss, x, rng = problem(name, seed, scale=0.3)
    base, point = loss.point(x), loss.point(x + distance * rng.standard_normal(6))
    linear = np.vdot(loss.gradient(base), point.x - base.x)
    if not np.isfinite(loss.value(point)):
        assert loss.divergence(point, base) == np.inf
        return
    expected = loss.value(point) - loss.value(base) - linear
    rounding = 1e-14 * (abs(loss.value(point)) + abs(loss.value(base)) + abs(linear))
    if name == "poisson":  # whose value is a difference, and whose exponentials lose as many digits as eta has
        size = np.abs(point.prediction) + np.abs(base.prediction)
        rounding = (1 + size.max()) * (rounding + 1e-14 * np.sum(loss.b * size))
    assert loss.divergence(point, base) >= 0
    assert loss.divergence(point, base) == pytest.approx(expected, abs=rounding)
    assert loss.divergence(base, base) == 0


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(40, 15), (15, 40), (1, 7), (7, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_lipschitz_is_a_tight_bound(name, shape, weighted):
    rng = np.random.default_rng(3)
    A = rng.standard_normal(shape)
    weights = rng.random(shape[0]) + 0.1 if weighted else None
    loss = LOSSES[name](A, observations(name, shape[0], rng), sample_weight=weights, scale=0.4)
    gram = A.T @ (A if weights is None else weights[:, None] * A)
    exact = BOUNDS[name] * 0.4 * np.linalg.eigvalsh(gram)[-1]
    assert exact * (1 - 1e-10) <= loss.lipschitz() <= 1.01 * exact * (1 + 1e-12)


# Weights, columns, right-hand sides


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_restrict_holds_the_other_entries_at_zero(kind, name):
    b, columns, z = observations(name, 12), np.array([3, 0, 4]), RNG.standard_normal(3)
    x = np.zeros(5)
    x[columns] = z
    A = KINDS[kind](DENSE)
    if kind == "torch":
        b, x, z = (torch_matrix(v) for v in (b, x, z))
    dtype = np.float32 if kind == "float32" else float
    loss = LOSSES[name](A, b, sample_weight=WEIGHTS, scale=0.2)
    loss.lipschitz()  # fills what must not be carried over
    loss.gradient(loss.point(loss.start()))
    part = loss.restrict(columns)
    x, z = (v.astype(dtype) if isinstance(v, np.ndarray) else v for v in (x, z))
    whole, small = loss.point(x), part.point(z)
    assert part.value(small) == pytest.approx(loss.value(whole), rel=1e-6 if kind == "float32" else 1e-12)
    tol = 1e-5 if kind == "float32" else 1e-12
    gradient = np.asarray(loss.gradient(whole))[columns]
    np.testing.assert_allclose(np.asarray(part.gradient(small)), gradient, rtol=tol, atol=tol)
    hessian = np.asarray(loss.hessian(whole))[np.ix_(columns, columns)]
    np.testing.assert_allclose(np.asarray(part.hessian(small)), hessian, rtol=tol, atol=tol)
    gram = DENSE[:, columns].T @ (WEIGHTS[:, None] * DENSE[:, columns])
    exact = BOUNDS[name] * 0.2 * np.linalg.eigvalsh(gram)[-1]
    assert exact * (1 - 1e-10) <= part.lipschitz() <= 1.01 * exact * (1 + 1e-6)
    assert tuple(part.start().shape) == (3,)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["array", "csr", "linear operator", "pylops"])
def test_several_right_hand_sides_are_several_problems(kind, name):
    b, x = observations(name, 12, k=3), RNG.standard_normal((5, 3))
    together = LOSSES[name](KINDS[kind](DENSE), b, sample_weight=WEIGHTS)
    alone = [LOSSES[name](DENSE, b[:, j], sample_weight=WEIGHTS) for j in range(3)]
    point, points = together.point(x), [loss.point(x[:, j]) for j, loss in enumerate(alone)]
    assert together.start().shape == (5, 3)
    assert together.value(point) == pytest.approx(sum(f.value(p) for f, p in zip(alone, points, strict=True)))
    gradients = np.stack([f.gradient(p) for f, p in zip(alone, points, strict=True)], axis=1)
    np.testing.assert_allclose(together.gradient(point), gradients, rtol=1e-12, atol=1e-12)
    assert together.lipschitz() == pytest.approx(alone[0].lipschitz(), rel=1e-12)
    if name == "squared":
        v = together.proximal(0.4)(x, together.start())
        np.testing.assert_allclose(together.gradient(together.point(v)) + 0.4 * (v - x), 0, atol=1e-12)
    else:
        with pytest.raises(ValueError, match="right-hand side b"):
            together.hessian(point)


# The proximal map


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (8, 8)])
@pytest.mark.parametrize("kind", ["array", "csr", "csc", "linear operator", "torch"])
def test_proximal_minimises(kind, shape, name):
    rng = np.random.default_rng(shape[0])
    A = rng.standard_normal(shape) * (rng.random(shape) < 0.5)
    # From afar Newton's method on an exponential comes nearer by 1 in each step: there it begins near by.
    b, q = observations(name, shape[0], rng), (0.3 if name == "poisson" else 3) * rng.standard_normal(shape[1])
    A, b, q = KINDS[kind](A), *((torch_matrix(v) for v in (b, q)) if kind == "torch" else (b, q))
    loss = LOSSES[name](A, b, sample_weight=rng.random(shape[0]), scale=5.0)
    size = float(abs(loss.gradient(loss.point(loss.start()))).max()) if name == "poisson" else 1.0
    for weight in (1e-2, 1.0, 100.0):
        solve = loss.proximal(weight)
        for start in (loss.start(), -q, 10 * q):
            v = solve(q, start)
            slope = np.asarray(loss.gradient(loss.point(v)) + weight * (v - q))
            assert np.abs(slope).max() <= 1e-10 * (size + weight * np.abs(np.asarray(q)).max())

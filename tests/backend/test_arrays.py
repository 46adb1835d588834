"""Arrays of every library: the same values as NumPy, the same kind, dtype and device out, right derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import ell12
from ell12.backend import precision, rise_above_tangent, rounding
from ell12.prox import moreau_l12, prox_l12, prox_l12_groups, prox_l12_iterative, prox_l12_spectral, soft_threshold

# The `backend` fixture yields (name, make_array, to_numpy, float64) for each library; see conftest.py.

GROUPS = np.array([0, 1, 1, 0, 2, 2])
WEIGHTS = np.array([1.0, 0.0, 2.0, np.inf, 0.5, 1.0])
PROBLEMS = {
    "several": np.array([3.0, -4.0, 0.5, 0.0, 1.5, -1.25]),
    "single": np.array([0.2, -0.7, 0.1, 0.0, 0.3, -0.5]),
    "zero": np.zeros(6),
    "batch": np.array([[3.0, -4.0, 0.5, 0, 1.5, -1], [0.2, -0.7, 0, 0.1, 0.3, 0], [0, 0, 0, 0, 0, 0]]),
}
FUNCTIONS = {
    "prox_l12": lambda z: prox_l12(z, 1.0),
    "l2_weight": lambda z: prox_l12(z, 1.0, l2_weight=1.5),
    "weights": lambda z: prox_l12(z, 1.0, weights=WEIGHTS),
    "positive": lambda z: prox_l12(z, 1.0, positive=True),
    "axis": lambda z: prox_l12(z, 1.0, axis=0),
    "tuple": lambda z: prox_l12(z, 1.0, axis=tuple(range(len(z.shape)))),
    "soft_threshold": lambda z: soft_threshold(z, 1.0),
    "moreau_l12": lambda z: moreau_l12(z, 1.0, axis=-1),
    "moreau weights": lambda z: moreau_l12(z, 1.0, weights=WEIGHTS, l2_weight=0.5),
    "iterative": lambda z: prox_l12_iterative(z, 1.0)[0],
}
VECTOR_FUNCTIONS = {
    "groups": lambda z: prox_l12_groups(z, 1.0, GROUPS),
    "grown groups": lambda z: prox_l12_groups(z, 1.0, GROUPS, l2_weight=1.5, weights=[1.0, 2.0, 0.5]),
    "spectral": lambda z: prox_l12_spectral(z[None, :], 1.0),
}
CALLS = [
    *((f, p) for f in FUNCTIONS for p in PROBLEMS),
    *((f, p) for f in VECTOR_FUNCTIONS for p in ("several", "single", "zero")),
]


def dtypes(backend, problem):
    """The dtypes to test; half precision once, and jax in its two modes with what only that mode holds."""
    if backend.name == "array_api_strict":
        return ["float32", "complex64", "float64", "complex128"]
    half = ["float16"] if problem == "several" else []
    if backend.name == "jax":
        return ["float64", "complex128"] if backend.float64 else ["float32", "complex64", *half]
    return ["float32", "complex64", "float64", "complex128", *half]


def assert_same_kind(x, z, dtype):
    """``x`` is of the library, the device and the given dtype."""
    assert type(x) is type(z)
    assert x.device == z.device
    assert str(x.dtype).rpartition(".")[2] == dtype


@pytest.mark.parametrize(("function", "problem"), CALLS)
def test_values_and_kind_are_those_of_numpy(backend, function, problem):
    call = {**FUNCTIONS, **VECTOR_FUNCTIONS}[function]
    for dtype in dtypes(backend, problem):
        if "complex" in dtype and function == "positive":
            continue
        z_numpy = PROBLEMS[problem].astype(dtype)
        z = backend.make_array(z_numpy)
        x, expected = call(z), call(z_numpy)
        assert_same_kind(x, z, expected.dtype.name)
        epsilon = np.finfo(dtype).eps
        np.testing.assert_allclose(backend.to_numpy(x), expected, rtol=20 * epsilon, atol=20 * epsilon)
        np.testing.assert_array_equal(backend.to_numpy(z), z_numpy)  # not written to


def test_arguments_may_be_arrays_of_the_library(backend):
    z_numpy = PROBLEMS["batch"].astype("float32")
    z, t, weights = map(backend.make_array, (z_numpy, np.float32([0.5, 1, 2]), WEIGHTS.astype("float32")))
    l2_weight = backend.make_array(np.float32(0.75))
    x = prox_l12(z, t, weights=weights, l2_weight=l2_weight, axis=1)
    expected = prox_l12(z_numpy, np.float32([0.5, 1, 2]), weights=WEIGHTS, l2_weight=0.75, axis=1)
    assert_same_kind(x, z, "float32")
    np.testing.assert_allclose(backend.to_numpy(x), expected, rtol=1e-6)
    mixed = prox_l12(z, [0.5, 1.0, 2.0], weights=WEIGHTS, l2_weight=np.float64(0.75), axis=1)
    assert_same_kind(mixed, z, "float32")
    np.testing.assert_allclose(backend.to_numpy(mixed), expected, rtol=1e-6)
    grouped = prox_l12_groups(z[0, ...], 1.0, backend.make_array(GROUPS))
    np.testing.assert_allclose(backend.to_numpy(grouped), prox_l12_groups(z_numpy[0], 1.0, GROUPS), rtol=1e-6)


def jacobians(autodiff, function, points):
    """For each point the matrix of derivatives of a function of a real vector, by the library."""
    points = np.asarray(points, dtype=float)
    if autodiff.name == "torch":
        import torch

        return np.stack([torch.autograd.functional.jacobian(function, torch.tensor(p)).numpy() for p in points])
    import jax

    return np.asarray(jax.jit(jax.vmap(jax.jacrev(function)))(points))


def differences(function, points):
    """The same by central differences of NumPy."""
    points, step = np.asarray(points, dtype=float), 1e-6
    moves = step * np.eye(points.shape[1])
    ends = [[(function(p + e) - function(p - e)) / (2 * step) for e in moves] for p in points]
    return np.moveaxis(np.array(ends), 1, -1)


def exact_jacobian(z, t, l2_weight):
    """The derivative from the mathematics, branch by branch."""
    shrunk = np.sign(z) * np.maximum(np.abs(z) - t, 0)
    length, c = np.linalg.norm(shrunk), l2_weight * t
    largest = np.argmax(np.abs(z))
    if length > 0:
        on_support = np.diag(shrunk != 0)
        return (1 + c / length) * on_support - c * np.outer(shrunk, shrunk) / length**3
    if np.abs(z[largest]) - t + c > 0:
        return np.outer(*2 * [np.arange(z.size) == largest]).astype(float)
    return np.zeros((z.size, z.size))


def with_scalars(packed, **options):
    """`prox_l12` as a function of z, t and l2_weight in one vector."""
    return prox_l12(packed[:-2], packed[-2], l2_weight=packed[-1], **options)


def test_the_jacobian_is_right_in_every_branch(autodiff):
    points = np.array([
        [3.0, -4.0, 0.5, 0.0, 1.0, 1.0],
        [3.0, -4.0, 0.5, 0.0, 1.0, 0.0],
        [3.0, -4.0, 0.5, 2.0, 0.3, 1.7],
        [3.0, 3.0, -3.0, 1.0, 2.0, 1.0],  # ties
        [5.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        [0.2, -0.7, 0.1, 0.0, 1.0, 1.0],
        [0.2, -0.7, 0.1, 0.0, 1.0, 0.6],
        [0.2, -0.7, 0.1, 0.0, 1.0, 1.4],
        [0.2, -0.7, 0.1, 0.0, 1.0, 0.2],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.5],
    ])  # fmt: skip
    found = jacobians(autodiff, with_scalars, points)
    exact = [exact_jacobian(p[:4], p[4], p[5]) for p in points]
    np.testing.assert_allclose(found[:, :, :4], exact, rtol=1e-12, atol=1e-14)
    inside = points[:, -1] > 0  # the differences would need l2_weight < 0
    np.testing.assert_allclose(found[inside], differences(with_scalars, points[inside]), atol=1e-8)


def as_complex(x):
    return x[: x.shape[0] // 2] + 1j * x[x.shape[0] // 2 :]


COMPLEX = [3, 0, 0.5, 0, 1, -4, 0, 0], [0.2, 0.3, 0.1, 0, 0.1, -0.7, 0, 0], [0, 0.1, 0, 0, 0.05, 0, 0, 0]
SMOOTH = {  # functions of a vector, with points at which they have a derivative
    "weights": (
        lambda p: with_scalars(p, weights=[1.0, 0.0, np.inf, 0.5]),
        [3.0, -4.0, 0.5, 0.0, 1.0, 0.8],
        [3.0, 0.0, 0.5, 0.0, 1.0, 1.5],  # a zero of weight 0 passes, with its derivative
    ),
    "weights, one kept": (
        lambda p: with_scalars(p, weights=[1.0, 0.7, np.inf]),
        [0.2, -0.5, 0.1, 1.0, 0.9],
        [0.2, -0.5, 0.1, 1.0, 0.1],
    ),
    "positive": (
        lambda p: with_scalars(p, positive=True),
        [3.0, -4.0, 2.0, 1.0, 0.8],
        [-0.2, -0.7, -0.5, 1.0, 1.5],
    ),
    "batch": (
        lambda p: prox_l12(p.reshape(3, 2), 1.0, l2_weight=0.5, axis=1).reshape(-1),
        [3.0, -4.0, 0.2, -0.7, 0.0, 0.1],
        [3.0, 0.0, 0.0, 0.0, -0.7, 0.0],
    ),
    "groups": (
        lambda z: prox_l12_groups(z, 1.0, [0, 0, 1, 1, 2]),
        [3.0, -4.0, 0.5, 0.1, 2.0],
        [0.3, -0.4, 0.0, 0.0, 0.1],
        [3.0, -4.0, 0.0, 0.0, 2.0],
    ),
    "spectral": (lambda z: prox_l12_spectral(z.reshape(2, 2), 0.5).reshape(-1), [2.0, 0.3, 0.1, 1.0]),
    "real part": (lambda p: prox_l12(as_complex(p), 1.0, l2_weight=0.8).real, *COMPLEX),
    "imaginary part": (lambda p: prox_l12(as_complex(p), 1.0, l2_weight=0.8).imag, *COMPLEX),
    "moreau": (lambda z: moreau_l12(z, 1.0).reshape(1), [3.0, -4.0, 0.5, 0.0], [0.2, -0.7, 0.1, 0.0]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_agree_with_differences(autodiff, name):
    function, *points = SMOOTH[name]
    found = jacobians(autodiff, function, points)
    np.testing.assert_allclose(found, differences(function, points), rtol=1e-7, atol=1e-7)


ANYWHERE = {  # functions of z, t and l2_weight in one vector
    "prox_l12": with_scalars,
    "weights": lambda p: with_scalars(p, weights=[0.0, 1.0, np.inf, 0.0]),
    "positive": lambda p: with_scalars(p, positive=True),
    "rows": lambda p: prox_l12(p[:-2].reshape(2, 2), p[-2], l2_weight=p[-1], axis=0).reshape(-1),
    "groups": lambda p: prox_l12_groups(p[:-2], p[-2], [0, 1, 1, 2], l2_weight=p[-1]),
    "complex": lambda p: abs(prox_l12(as_complex(p[:-2]), p[-2], l2_weight=p[-1])),
}


@pytest.mark.parametrize("name", ANYWHERE)
def test_no_derivative_is_nan(autodiff, name):
    """At zeros, ties, kinks and far from one; where it exists the derivative does not depend on the scale."""
    where = [[3.0, -4.0, 0.5, 0.0], [0, 0, 0, 0], [1, 1, -1, 0], [1, 0.5, 0, 0], [2, 2, 2, 2], [0.2, 0.2, 0, 0]]
    scales, l2_weights = [1e-170, 1e-25, 1.0, 1e25, 1e170], [0.0, 0.5, 1.0, 1.5]
    points = [[*(s * np.array(z)), s, w] for s in scales for z in where for w in l2_weights]
    found = jacobians(autodiff, ANYWHERE[name], points)
    assert np.isfinite(found).all()
    if name == "prox_l12":
        smooth = found.reshape(len(scales), len(where), len(l2_weights), 4, 6)[:, 0, :, :, :4]
        exact = [exact_jacobian(np.array(where[0]), 1.0, w) for w in l2_weights]
        np.testing.assert_allclose(smooth, np.stack(len(scales) * [exact]), rtol=1e-12, atol=1e-14)


def small_problem():
    random = np.random.default_rng(0)
    A = random.standard_normal((40, 15)) / 6
    x = np.zeros(15)
    x[:3] = [3.0, -2.0, 2.5]
    return A, A @ x + 0.01 * random.standard_normal(40)


LOSSES = [ell12.SquaredLoss, ell12.LogisticLoss, ell12.HuberLoss]
STEPS = [
    ell12.NonmonotoneAPG(),
    ell12.NonmonotoneAPG(step="backtracking"),
    ell12.solvers.ProximalGradient(step="barzilai-borwein"),
    ell12.FISTA(),
    ell12.SequentialConvex(),
]
PENALTIES = [
    ell12.L12(0.1, weights=np.arange(15) % 3),
    ell12.L12(0.1, positive=True),
    ell12.GroupL12(np.arange(15) // 5, 0.1),
    *(kind(0.1) for kind in (ell12.penalties.LogSum, ell12.penalties.CappedL1, ell12.penalties.Lp, ell12.MCP)),
]
HALF = ell12.L12(0.2, l2_weight=0.5)
# DCA makes thousands of small factorizations of other losses; tests/solvers has them on NumPy.
PROBLEMS_TO_SOLVE = [
    *((loss, solver, HALF) for loss in LOSSES for solver in STEPS),
    (ell12.SquaredLoss, ell12.DCA(), HALF),
    *((ell12.SquaredLoss, None, penalty) for penalty in PENALTIES),
]


@pytest.mark.parametrize(("kind", "solver", "penalty"), PROBLEMS_TO_SOLVE)
def test_minimisation_runs_on_every_kind_of_array(backend, kind, solver, penalty):
    A, b = small_problem()
    b = np.sign(b) if kind is ell12.LogisticLoss else b
    expected = ell12.minimize(kind(A, b), penalty, tol=1e-9, max_iter=50_000)
    assert expected.converged
    array = backend.make_array(A)
    loss, tol = kind(array, backend.make_array(b)), 1e-7 if backend.float64 else 1e-3
    result = ell12.minimize(loss, penalty, solver=solver, tol=tol, max_iter=20_000)
    assert result.converged
    assert_same_kind(result.x, array, str(array.dtype).rpartition(".")[2])
    assert result.objective == pytest.approx(expected.objective, rel=1e-9 if backend.float64 else 1e-5)
    if backend.float64 and penalty is HALF:
        np.testing.assert_allclose(backend.to_numpy(result.x), expected.x, atol=1e-5)


def test_inner_products_of_long_vectors_are_taken_in_parts(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("ell12.backend.LONGEST_DOT", 4)
    x = torch.arange(11.0)
    assert ell12.backend.inner(x, x + 1) == float(torch.sum(x * (x + 1)))


def at_an_odd_address(x):
    raw = np.empty(x.nbytes + 1, dtype=np.uint8)[1:]
    raw[:] = x.reshape(-1).view(np.uint8)
    return raw.view(x.dtype).reshape(x.shape)


@pytest.mark.parametrize("foreign", [at_an_odd_address, lambda x: x.astype(x.dtype.newbyteorder("S"))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_products_read_native_numbers_at_even_addresses(foreign, dtype):
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(dtype)
    assert not (foreign(x).flags.aligned and foreign(x).dtype.isnative)
    A = ell12.SquaredLoss(foreign(x), np.ones(4)).A
    assert A.flags.aligned
    assert A.dtype.isnative
    np.testing.assert_array_equal(A, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_a_sum_is_off_by_less_than_its_rounding(dtype, size):
    for seed in range(10):
        x = np.random.default_rng(seed).random(size).astype(dtype)
        exact = float(np.sum(x.astype(np.longdouble)))
        assert abs(float(x.sum(dtype=dtype)) - exact) <= rounding(exact, x)
        square = float(np.sum(x.astype(np.longdouble) ** 2))
        assert abs(float(np.vdot(x, x)) - square) <= rounding(square, x)


def test_a_rise_that_rounding_can_make_is_none():
    single, double = np.zeros(1, dtype=np.float32), np.zeros(1)
    assert rise_above_tangent(1.0 + 1e-7, 1.0, 0.0, single) == 0
    assert rise_above_tangent(1.0 + 1e-7, 1.0, 0.0, double) == pytest.approx(1e-7, rel=1e-6)
    assert rise_above_tangent(1.0, 2.0, 0.0, double) == 0
    assert precision(single) > 1e8 * precision(double)

"""Losses over every kind of A: values, derivatives and minimisers against definitions, differences and R."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from scipy.special import gammaln, logsumexp
from scipy.stats import poisson

from ell12 import L1, L12, HuberLoss, LogisticLoss, NonmonotoneAPG, PoissonLoss, SquaredLoss, WorkingSet, minimize
from ell12.losses import CoxLoss, MultinomialLoss, RowsLoss
from ell12.operators import to_dense
from ell12.operators.image_operators import Convolution
from ell12.protocols import Loss, offers
from ell12.solvers import DCA, SAGA, SupportNewton

R = json.loads((Path(__file__).parents[1] / "data" / "glmnet.json").read_text())
RNG = np.random.default_rng(4)
ROWS, COLUMNS, DELTA = 40, 5, 0.8
A = np.round(RNG.standard_normal((ROWS, COLUMNS)), 2) * (RNG.random((ROWS, COLUMNS)) < 0.9)
WEIGHTS = RNG.integers(0, 4, ROWS).astype(float)
OFFSET, CLASSES = RNG.standard_normal(ROWS) / 2, RNG.integers(0, 3, ROWS)
TIMES, EVENTS = np.ceil(4 * RNG.exponential(size=ROWS)), RNG.random(ROWS) < 0.7
POINTWISE = {
    "squared": SquaredLoss,
    "logistic": LogisticLoss,
    "huber": lambda *a, **k: HuberLoss(*a, delta=DELTA, **k),
    "poisson": PoissonLoss,
}
BOUNDS = {"squared": 1.0, "logistic": 0.25, "huber": 1.0, "poisson": np.inf}  # of the second derivative


def observations(name, m, rng=RNG, k=None):
    b = rng.standard_normal(m if k is None else (m, k))
    return {"logistic": np.sign(b), "poisson": np.round(2 * np.abs(b))}.get(name, b)


B = {name: observations(name, ROWS) for name in POINTWISE}
LOSSES = {
    "squared": lambda A, **options: SquaredLoss(A, B["squared"], **options),
    "logistic": lambda A, **options: LogisticLoss(A, B["logistic"] > 0, **options),  # 0 and 1 are labels too
    "huber": lambda A, **options: HuberLoss(A, B["huber"], delta=DELTA, **options),
    "poisson": lambda A, **options: PoissonLoss(A, B["poisson"], offset=OFFSET, **options),
    "multinomial": lambda A, **options: MultinomialLoss(A, CLASSES, **options),
    "efron": lambda A, **options: CoxLoss(A, TIMES, EVENTS, **options),
    "breslow": lambda A, **options: CoxLoss(A, TIMES, EVENTS, ties="breslow", **options),
}


def pointwise(name, eta, b):
    """The losses of single predictions, written down once more; that of counts by scipy, without factorials."""
    if name == "logistic":
        return np.logaddexp(0, -b * eta)
    if name == "poisson":
        return -poisson.logpmf(b, np.exp(eta)) - gammaln(b + 1.0)
    r = np.abs(eta - b)
    return np.where((name == "squared") | (r <= DELTA), 0.5 * r**2, DELTA * r - 0.5 * DELTA**2)


def definition(name, x, weights):
    """The losses once more, as sums over rows."""
    if name in POINTWISE:
        return np.sum(weights * pointwise(name, A @ x + (OFFSET if name == "poisson" else 0), B[name]))
    if name == "multinomial":
        scores = A @ x.reshape(COLUMNS, 3)
        return np.sum(weights * (logsumexp(scores, axis=1) - scores[np.arange(ROWS), CLASSES]))
    eta, total = A @ x, 0.0
    risk = weights * np.exp(eta)
    for time in np.unique(TIMES):
        tied = np.flatnonzero((time == TIMES) & EVENTS & (weights > 0))
        for number in range(tied.size):
            share = number / tied.size if name == "efron" else 0.0
            at_risk = risk[time <= TIMES].sum() - share * risk[tied].sum()
            total += weights[tied].mean() * math.log(at_risk)
        total -= weights[tied] @ eta[tied]
    return total


def differences(f, x, h=1e-5):
    """Central differences in every entry of x, in front of the axes of f."""
    units = np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(f(x + h * unit) - f(x - h * unit)) / (2 * h) for unit in units])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", LOSSES)
def test_values_gradients_and_hessians_are_those_of_the_definition(name, kind):
    loss = LOSSES[name](kind(A), sample_weight=WEIGHTS, scale=0.3)
    x = np.random.default_rng(5).standard_normal(loss.start().shape)
    point = loss.point(x)
    assert loss.value(point) == pytest.approx(0.3 * definition(name, x, WEIGHTS), rel=1e-12)
    gradient = differences(lambda x: 0.3 * definition(name, x, WEIGHTS), x)
    np.testing.assert_allclose(loss.gradient(point), gradient, atol=1e-7 * np.abs(gradient).max())
    hessian = differences(lambda x: loss.gradient(loss.point(x)), x)
    size = 1e-7 * np.abs(hessian).max()
    np.testing.assert_allclose(loss.hessian(point), hessian, atol=size)
    some, others = np.array([4, 0, 3]), np.array([1, 4])
    np.testing.assert_allclose(loss.hessian(point, some), hessian[np.ix_(some, some)], atol=size)
    np.testing.assert_allclose(loss.hessian(point, some, others), hessian[np.ix_(some, others)], atol=size)
    assert (loss.hessian(point, some[:0]).shape, loss.hessian(point, some[:0], others).shape) == ((0, 0), (0, 2))
    product = loss.hessian_product(point, some)([1.0, -2.0, 0.5])
    np.testing.assert_allclose(product, hessian[np.ix_(some, some)] @ [1.0, -2.0, 0.5], atol=9 * size)
    diagonal = loss.column_curvatures(point)
    assert (diagonal >= np.diagonal(hessian) - size).all()  # Cox's are a bound
    if name not in ("efron", "breslow"):
        np.testing.assert_allclose(diagonal, np.diagonal(hessian), atol=size)
        assert np.linalg.eigvalsh(hessian)[-1] <= loss.lipschitz() * (1 + 1e-6)


@pytest.mark.parametrize("distance", [1e-9, 1e-7, 1e-3, 0.3, 10.0, 1e3])
@pytest.mark.parametrize("name", LOSSES)
def test_the_divergence_is_the_rise_above_the_tangent(name, distance):
    loss, rng = LOSSES[name](A, sample_weight=WEIGHTS, scale=0.3), np.random.default_rng(5)
    base = loss.point(0.3 * rng.standard_normal(loss.start().shape))
    point = base + distance * loss.point(rng.standard_normal(loss.start().shape))
    found = loss.divergence(point, base)
    assert found >= 0 == loss.divergence(base, base)
    if not np.isfinite(loss.value(point)):
        assert found == np.inf
        return
    expected = loss.value(point) - loss.value(base) - loss.gradient(base) @ (point.x - base.x)
    size = abs(loss.value(point)) + abs(loss.value(base)) + np.abs(point.prediction).sum()
    assert found == pytest.approx(expected, rel=1e-9, abs=2e-13 * size)
    if distance == 1e-7 and name not in ("multinomial", "logistic", "huber"):  # those follow a Lipschitz constant
        move = point.x - base.x
        assert found == pytest.approx(0.5 * move @ loss.hessian(base) @ move, rel=1e-5)


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


def of_kind(kind, x):
    """An unknown of the kind that losses over this kind of A have, and what rounding may do."""
    if kind == "torch":
        return torch_matrix(x), 1e-12
    return (x.astype(np.float32), 2e-5) if kind == "float32" else (x, 1e-12)


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_matrix(kind, name):
    (x, tol), (several, _) = of_kind(kind, RNG.standard_normal(5)), of_kind(kind, RNG.standard_normal((5, 3)))
    options = {"scale": 0.3, "sample_weight": WEIGHTS}
    loss, reference = LOSSES[name](KINDS[kind](A), **options), LOSSES[name](A, **options)
    point, same = loss.point(x), reference.point(np.asarray(x, dtype=float))
    np.testing.assert_allclose(np.asarray(point.prediction), A @ np.asarray(x), rtol=tol, atol=tol)
    assert loss.value(point) == pytest.approx(reference.value(same), rel=tol)
    for method in ("gradient", "slope", "curvature", "hessian"):
        result = getattr(loss, method)(point)
        assert (type(result), result.dtype) == (type(x), x.dtype)
        np.testing.assert_allclose(np.asarray(result), getattr(reference, method)(same), rtol=tol, atol=9 * tol)
    assert loss.lipschitz() == pytest.approx(reference.lipschitz(), rel=1e-5)
    start = loss.start()
    assert (type(start), start.dtype, tuple(start.shape)) == (type(x), x.dtype, (5,))
    assert offers(loss, Loss)
    # One product with the adjoint for several points.
    values, _, gradients = loss.gradients(loss.A @ several, least=1e-3)
    assert (type(gradients), gradients.dtype) == (type(x), x.dtype)
    for k in range(3):
        point = reference.point(np.asarray(several, dtype=float)[:, k])
        assert float(values[k]) == pytest.approx(reference.value(point), rel=9 * tol)
        np.testing.assert_allclose(
            np.asarray(gradients)[:, k], reference.gradient(point), rtol=9 * tol, atol=9 * tol
        )


OTHERS = [("array", name) for name in LOSSES if name not in POINTWISE]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in POINTWISE] + OTHERS)
def test_a_restricted_loss_holds_the_other_entries_at_zero(kind, name):
    loss, some = LOSSES[name](KINDS[kind](A), sample_weight=WEIGHTS, scale=0.2), np.array([3, 0, 4])
    loss.lipschitz()  # fills what must not be carried over
    x = np.zeros(loss.start().shape)
    x[some] = z = RNG.standard_normal(3)
    (x, tol), (z, _) = of_kind(kind, x), of_kind(kind, z)
    part, whole = loss.restrict(some), loss.point(x)
    small = part.point(z)
    assert tuple(part.start().shape) == (3,)
    assert part.value(small) == pytest.approx(loss.value(whole), rel=tol)
    gradient, hessian = np.asarray(loss.gradient(whole)), np.asarray(loss.hessian(whole))
    np.testing.assert_allclose(np.asarray(part.gradient(small)), gradient[some], rtol=tol, atol=tol)
    np.testing.assert_allclose(np.asarray(part.hessian(small)), hessian[np.ix_(some, some)], rtol=tol, atol=tol)
    inside = np.asarray(loss.point_within(x, some).prediction)
    np.testing.assert_allclose(inside, np.asarray(whole.prediction), rtol=tol, atol=tol)
    if name in POINTWISE:
        gram = A[:, some].T @ (WEIGHTS[:, None] * A[:, some])
        exact = BOUNDS[name] * 0.2 * np.linalg.eigvalsh(gram)[-1]
        assert exact * (1 - 1e-10) <= part.lipschitz() <= 1.01 * exact * (1 + 1e-6)
    twice = part.restrict(np.array([0, 2]))  # as a working set within a working set
    again = np.asarray(twice.gradient(twice.point(twice.start())))
    expected = np.asarray(loss.gradient(loss.point(loss.start())))[some[[0, 2]]]
    np.testing.assert_allclose(again, expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_squared_loss(dtype):
    matrix = (A + 1j * A[::-1]).astype(dtype)
    b, x = (RNG.standard_normal(n) + 1j * RNG.standard_normal(n) for n in (ROWS, 5))
    loss, x = SquaredLoss(matrix, b, scale=0.5), x.astype(dtype)
    point = loss.point(x)
    assert loss.start().dtype == loss.gradient(point).dtype == loss.b.dtype == dtype
    tol = 1e-5 if dtype is np.complex64 else 1e-12
    assert loss.value(point) == pytest.approx(0.25 * np.sum(np.abs(matrix @ x - b) ** 2), rel=tol)
    gradient = 0.5 * matrix.conj().T @ (matrix @ x - b)
    np.testing.assert_allclose(loss.gradient(point), gradient, rtol=tol, atol=9 * tol)
    exact = 0.5 * np.linalg.norm(matrix.astype(complex), 2) ** 2
    assert exact <= loss.lipschitz() <= 1.01 * exact * (1 + tol)
    q = np.ones(5, dtype=dtype)
    v = loss.proximal(0.7)(q, loss.start())
    np.testing.assert_allclose(loss.gradient(loss.point(v)) + 0.7 * (v - q), 0, atol=100 * tol)


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("weighted", [False, True])
def test_an_operator_on_images_is_a_matrix_on_vectors(name, weighted):
    blur = Convolution(RNG.random((3, 2)), (4, 5))
    b, x = observations(name, 20).reshape(4, 5), RNG.standard_normal((4, 5))
    weights = RNG.random((4, 5)) if weighted else None
    loss = POINTWISE[name](blur, b, sample_weight=weights)
    flat = POINTWISE[name](to_dense(blur), b.ravel(), sample_weight=weights.ravel() if weighted else None)
    point, same = loss.point(x), flat.point(x.ravel())
    assert loss.value(point) == pytest.approx(flat.value(same), rel=1e-12)
    np.testing.assert_allclose(loss.gradient(point).ravel(), flat.gradient(same), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(loss.hessian(point), flat.hessian(same), atol=1e-12)
    assert loss.lipschitz() == pytest.approx(flat.lipschitz(), rel=1e-2)
    q, start = RNG.standard_normal((4, 5)), loss.start()
    v = loss.proximal(0.5)(q, start)
    assert v.shape == start.shape == (4, 5)
    np.testing.assert_allclose(loss.gradient(loss.point(v)) + 0.5 * (v - q), 0, atol=1e-10)


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("kind", ["array", "csr", "linear operator", "pylops"])
def test_several_right_hand_sides_are_several_problems(kind, name):
    b, x = observations(name, ROWS, k=3), RNG.standard_normal((5, 3))
    together = POINTWISE[name](KINDS[kind](A), b, sample_weight=WEIGHTS)
    alone = [POINTWISE[name](A, b[:, j], sample_weight=WEIGHTS) for j in range(3)]
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


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (8, 8)])
@pytest.mark.parametrize("kind", ["array", "csr", "csc", "linear operator", "torch"])
def test_proximal_minimises(kind, shape, name):
    rng = np.random.default_rng(shape[0])
    matrix = rng.standard_normal(shape) * (rng.random(shape) < 0.5)
    # From afar Newton's method on an exponential comes nearer by 1 in each step: there it begins near by.
    b, q = observations(name, shape[0], rng), (0.3 if name == "poisson" else 3) * rng.standard_normal(shape[1])
    q, _ = of_kind(kind, q)
    loss = POINTWISE[name](KINDS[kind](matrix), b, sample_weight=rng.random(shape[0]), scale=5.0)
    size = float(abs(loss.gradient(loss.point(loss.start()))).max()) if name == "poisson" else 1.0
    for weight in (1e-2, 1.0, 100.0):
        solve = loss.proximal(weight)
        for start in (loss.start(), -q, 10 * q):
            v = solve(q, start)
            slope = np.asarray(loss.gradient(loss.point(v)) + weight * (v - q))
            assert np.abs(slope).max() <= 1e-10 * (size + weight * np.abs(np.asarray(q)).max())


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
def test_the_partial_likelihood_is_that_of_survival(ties, weights):
    """With ties and weights, against coxph of R's survival package at given coefficients."""
    weight = R["weights"] if weights else None
    loss = CoxLoss(np.array(R["X"]), R["tied"], R["events"], ties=ties, sample_weight=weight)
    expected = -R["loglik"][f"{ties}_weights" if weights else ties]
    assert loss.value(loss.point(np.array(R["beta"]))) == pytest.approx(expected, rel=1e-12)


SOLVERS = [(name, solver) for name in LOSSES for solver in (WorkingSet(), SupportNewton(), NonmonotoneAPG())]


@pytest.mark.parametrize(("name", "solver"), [*SOLVERS, ("poisson", DCA()), ("multinomial", DCA())])
def test_every_solver_finds_the_minimum(name, solver):
    loss, penalty = LOSSES[name](A / 2, sample_weight=WEIGHTS, scale=1 / WEIGHTS.sum()), L1(0.02)
    result = minimize(loss, penalty, solver=solver, tol=1e-4 if isinstance(solver, DCA) else 1e-7)
    exact = minimize(loss, penalty, tol=1e-10)
    assert result.converged
    assert exact.converged
    assert result.objective == pytest.approx(exact.objective, rel=1e-9)


def test_huge_predictions_overflow_to_an_infinite_value_and_are_stepped_back_from():
    loss = PoissonLoss(np.array([[1.0], [2.0]]), [3.0, 1.0])
    far, near = loss.point(np.array([1000.0])), loss.point(np.zeros(1))
    assert loss.value(far) == loss.divergence(far, near) == math.inf
    assert minimize(PoissonLoss(1e3 * A, B["poisson"]), L12(5.0, 0.5), solver=NonmonotoneAPG(), tol=1e-6).converged


def test_hazards_of_any_size_neither_overflow_nor_underflow_to_a_low_value():
    loss = CoxLoss(np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 3.0])
    for size in (1e3, -1e3, 1e5, -1e5):
        eta = np.array([1.0, 2.0, 4.0]) * size
        exact = sum(logsumexp(eta[k:]) - eta[k] for k in range(3))
        point = loss.point(np.array([size]))
        assert exact <= loss.value(point) < math.inf
        assert np.isfinite(loss.gradient(point)).all()


def test_logistic_margins_of_any_size_keep_their_digits():
    loss = LogisticLoss(np.eye(4), [1, -1, 1, -1], scale=2.0)
    point = loss.point(np.array([1e300, 1e300, -800.0, -800.0]))
    assert loss.value(point) == 2 * (1e300 + 800)
    np.testing.assert_array_equal(loss.gradient(point), [0, 2, -2, 0])
    np.testing.assert_array_equal(loss.hessian(point), 0)
    one = LogisticLoss([[1.0]], [1])
    point = one.point(np.array([40.0]))
    for found in (one.value(point), -one.gradient(point)[0], one.curvature(-1.0 * point)[0]):
        assert found == pytest.approx(math.exp(-40), rel=1e-14)


def test_what_one_run_finds_out_about_the_data_serves_the_next(monkeypatch):
    measured = []
    monkeypatch.setattr("ell12.losses.of_prediction.largest_eigenvalue", lambda *a, **k: measured.append(1) or 1e3)
    loss = SquaredLoss(A, B["squared"])
    for alpha in (4.0, 2.0, 1.0):
        minimize(loss, L12(alpha), solver=NonmonotoneAPG(), max_iter=3)
    assert len(measured) == 1


def test_losses_that_join_rows_are_refused_where_rows_come_in_parts():
    for kind in (CoxLoss, MultinomialLoss):
        with pytest.raises(TypeError, match=f"a sum over rows; got {kind.__name__}"):
            RowsLoss([(A, CLASSES)], kind)
    for name in ("efron", "multinomial"):
        with pytest.raises(TypeError, match="lacks batches"):
            minimize(LOSSES[name](A), L1(1.0), solver=SAGA())


SMALL, LABELS = A[:3, :2], np.array([1.0, -1.0, 1.0])
BASIC = {"squared": SquaredLoss, "logistic": LogisticLoss, "huber": HuberLoss}
BAD = [
    *(("squared", (SMALL, b), {}, r"^b must have shape \(3,\) to fit A") for b in (np.ones(2), 1.0, [])),
    *(("squared", (np.zeros(s), np.ones(s[0])), {}, "^A is empty") for s in ((0, 2), (3, 0), (0, 0))),
    ("logistic", (SMALL + 0j, LABELS), {}, "needs real A"),
    ("huber", (SMALL, LABELS + 0j), {}, "needs real b"),
    *(("huber", (SMALL, LABELS), {"sample_weight": w}, "^sample_weight must") for w in ([1, -1, 1], [1, 1], 2.0)),
    *(("logistic", (SMALL, b), {}, "b must hold two labels") for b in ([1, 2, 1], [0, -1, 1], [0.5, 0.5, 1])),
    ("poisson", (A, -np.ones(ROWS)), {}, "b must hold counts"),
    ("multinomial", (A, CLASSES - 1), {}, "b must be a vector of the numbers of classes"),
    ("multinomial", (A, CLASSES + 0.5), {}, "b must be a vector of the numbers of classes"),
    ("multinomial", (A, np.ones((ROWS, 2))), {}, "shares of classes"),
    ("multinomial", (SMALL, [0, 1, 10**9]), {}, r"b names a class 1000000000 in 3 rows: number the classes 0, 1,"),
    ("cox", (A, TIMES, 2 * EVENTS), {}, "event must hold 0 and 1 only"),
    ("cox", (A, np.full(ROWS, np.inf), EVENTS), {}, "time"),
    ("cox", (A, TIMES, 0 * EVENTS), {}, "no event of positive weight"),
    ("cox", (A, TIMES[:3]), {}, "event must have shape"),
    ("cox", (A, TIMES[:3], EVENTS), {}, "time must be a NumPy array of shape"),
    ("multinomial", (A, CLASSES), {"sample_weight": WEIGHTS[:3]}, "sample_weight must have shape"),
]


@pytest.mark.parametrize(("kind", "arguments", "options", "message"), BAD)
def test_wrong_data_are_refused_by_name(kind, arguments, options, message):
    make = BASIC | {"poisson": PoissonLoss, "multinomial": MultinomialLoss, "cox": CoxLoss}
    with pytest.raises((ValueError, TypeError), match=message):
        make[kind](*arguments, **options)


def test_foreign_observations_of_a_numpy_matrix_are_refused():
    strict = pytest.importorskip("array_api_strict")
    one, two = strict.asarray([[1.0]]), strict.asarray([-1.0])
    with pytest.raises(TypeError, match="b must be a NumPy array"):
        SquaredLoss(np.eye(1), two)
    with pytest.raises(ValueError, match="sample_weight must hold"):
        SquaredLoss(one, two, sample_weight=two)
    with pytest.raises(TypeError, match="CoxLoss needs NumPy arrays"):
        CoxLoss(one, [1.0])

"""Poisson, multinomial and Cox losses: derivatives, and definitions written out or found by R."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from scipy.special import gammaln, logsumexp

from ell12 import DCA, L1, L12, NonmonotoneAPG, PoissonLoss, WorkingSet, minimize
from ell12.losses import CoxLoss, MultinomialLoss, RowsLoss
from ell12.protocols import Point
from ell12.solvers import SAGA, SupportNewton

R = json.loads((Path(__file__).parents[1] / "data" / "glmnet.json").read_text())
RNG = np.random.default_rng(4)
ROWS, COLUMNS = 40, 5
A = RNG.standard_normal((ROWS, COLUMNS))
WEIGHTS = RNG.integers(0, 4, ROWS).astype(float)
COUNTS, OFFSET = RNG.poisson(2.0, ROWS), RNG.standard_normal(ROWS) / 2
CLASSES = RNG.integers(0, 3, ROWS)
TIMES, EVENTS = np.ceil(4 * RNG.exponential(size=ROWS)), RNG.random(ROWS) < 0.7
LOSSES = {
    "poisson": lambda A, **options: PoissonLoss(A, COUNTS, offset=OFFSET, **options),
    "multinomial": lambda A, **options: MultinomialLoss(A, CLASSES, **options),
    "efron": lambda A, **options: CoxLoss(A, TIMES, EVENTS, **options),
    "breslow": lambda A, **options: CoxLoss(A, TIMES, EVENTS, ties="breslow", **options),
}


def definition(name, x, weights, A=A):
    """The losses once more, as sums over rows."""
    if name == "poisson":
        eta = A @ x + OFFSET
        return np.sum(weights * (np.exp(eta) - COUNTS * eta))
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
    return np.array([(f(x + h * unit) - f(x - h * unit)) / (2 * h) for unit in np.eye(x.size)])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", LOSSES)
def test_values_gradients_and_hessians_are_those_of_the_definition(name, kind):
    loss = LOSSES[name](kind(A), sample_weight=WEIGHTS, scale=0.3)
    x = RNG.standard_normal(loss.start().shape)
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
    v = RNG.standard_normal(3)
    np.testing.assert_allclose(
        loss.hessian_product(point, some)(v), hessian[np.ix_(some, some)] @ v, atol=9 * size
    )
    diagonal = loss.column_curvatures(point)
    assert (diagonal >= np.diagonal(hessian) - size).all()  # Cox's are a bound
    if name in ("poisson", "multinomial"):
        np.testing.assert_allclose(diagonal, np.diagonal(hessian), atol=size)


@pytest.mark.parametrize("name", LOSSES)
def test_a_restricted_loss_holds_the_other_entries_at_zero(name):
    loss, some = LOSSES[name](A, sample_weight=WEIGHTS), np.array([3, 0, 4])
    z = RNG.standard_normal(3)
    x = np.zeros(loss.start().shape)
    x[some] = z
    part, whole = loss.restrict(some), loss.point(x)
    assert part.start().shape == (3,)
    assert part.value(part.point(z)) == pytest.approx(loss.value(whole), rel=1e-13)
    np.testing.assert_allclose(part.gradient(part.point(z)), loss.gradient(whole)[some], atol=1e-12)
    np.testing.assert_allclose(part.hessian(part.point(z)), loss.hessian(whole, some), atol=1e-12)
    np.testing.assert_allclose(loss.point_within(x, some).prediction, whole.prediction, atol=1e-13)
    twice = part.restrict(np.array([0, 2]))  # as a working set within a working set
    np.testing.assert_allclose(
        twice.gradient(twice.point(np.zeros(2))), loss.gradient(loss.point(0 * x))[some[[0, 2]]], atol=1e-12
    )


@pytest.mark.parametrize("distance", [1e-7, 1e-3, 0.3, 10.0])
@pytest.mark.parametrize("name", LOSSES)
def test_the_divergence_is_the_rise_above_the_tangent(name, distance):
    loss = LOSSES[name](A, sample_weight=WEIGHTS)
    base = loss.point(0.3 * RNG.standard_normal(loss.start().shape))
    point = base + distance * loss.point(RNG.standard_normal(loss.start().shape))
    expected = loss.value(point) - loss.value(base) - loss.gradient(base) @ (point.x - base.x)
    found = loss.divergence(point, base)
    assert found == pytest.approx(expected, rel=1e-9, abs=2e-13 * (abs(loss.value(point)) + abs(loss.value(base))))
    if distance == 1e-7 and name != "multinomial":  # whose steps follow a Lipschitz constant
        move = point.x - base.x
        assert found == pytest.approx(0.5 * move @ loss.hessian(base) @ move, rel=1e-5)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
def test_the_partial_likelihood_is_that_of_survival(ties, weights):
    """With ties and weights, against coxph of R's survival package at given coefficients."""
    weight = R["weights"] if weights else None
    loss = CoxLoss(np.array(R["X"]), R["tied"], R["events"], ties=ties, sample_weight=weight)
    expected = -R["loglik"][f"{ties}_weights" if weights else ties]
    assert loss.value(loss.point(np.array(R["beta"]))) == pytest.approx(expected, rel=1e-12)


def test_the_multinomial_loss_of_two_classes_is_the_logistic_one():
    from ell12 import LogisticLoss

    b, x = CLASSES == 1, RNG.standard_normal(COLUMNS)
    two, one = MultinomialLoss(A, b.astype(int), sample_weight=WEIGHTS), LogisticLoss(A, b, sample_weight=WEIGHTS)
    both = np.stack([0 * x, x], axis=1).ravel()
    assert two.value(two.point(both)) == pytest.approx(one.value(one.point(x)), rel=1e-13)
    np.testing.assert_allclose(two.gradient(two.point(both))[1::2], one.gradient(one.point(x)), atol=1e-12)


def test_the_bound_on_the_curvature_of_the_multinomial_loss_holds():
    loss = MultinomialLoss(A, CLASSES, sample_weight=WEIGHTS, scale=0.2)
    for size in (0.0, 0.3, 1.0):
        hessian = loss.hessian(loss.point(size * RNG.standard_normal(3 * COLUMNS)))
        assert np.linalg.eigvalsh(hessian)[-1] <= loss.lipschitz()


SOLVERS = [(name, solver) for name in LOSSES for solver in (WorkingSet(), SupportNewton(), NonmonotoneAPG())]


@pytest.mark.parametrize(("name", "solver"), [*SOLVERS, ("poisson", DCA()), ("multinomial", DCA())])
def test_every_solver_finds_the_minimum(name, solver):
    loss, penalty = LOSSES[name](A / 2, sample_weight=WEIGHTS, scale=1 / WEIGHTS.sum()), L1(0.02)
    tol = 1e-4 if isinstance(solver, DCA) else 1e-7
    result = minimize(loss, penalty, solver=solver, tol=tol)
    assert result.converged
    exact = minimize(loss, penalty, tol=1e-10)
    assert exact.converged
    assert result.objective == pytest.approx(exact.objective, rel=1e-9)


def test_huge_predictions_overflow_to_an_infinite_value_and_are_stepped_back_from():
    loss = PoissonLoss(np.array([[1.0], [2.0]]), [3.0, 1.0])
    far, near = loss.point(np.array([1000.0])), loss.point(np.zeros(1))
    assert loss.value(far) == loss.divergence(far, near) == math.inf
    assert minimize(PoissonLoss(1e3 * A, COUNTS), L12(5.0, 0.5), solver=NonmonotoneAPG(), tol=1e-6).converged


def test_hazards_of_any_size_neither_overflow_nor_underflow_to_a_low_value():
    loss = CoxLoss(np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 3.0])
    for size in (1e3, -1e3, 1e5, -1e5):
        eta = np.array([1.0, 2.0, 4.0]) * size
        exact = sum(logsumexp(eta[k:]) - eta[k] for k in range(3))
        point = loss.point(np.array([size]))
        assert exact <= loss.value(point) < math.inf
        assert np.isfinite(loss.gradient(point)).all()


def test_adding_a_constant_to_the_hazards_changes_nothing():
    loss = LOSSES["efron"](A)
    point = loss.point(RNG.standard_normal(COLUMNS))
    moved = Point(point.x, point.prediction + 300.0)
    assert loss.value(moved) == pytest.approx(loss.value(point), rel=1e-12)
    np.testing.assert_allclose(loss.gradient(moved), loss.gradient(point), atol=1e-10)


def test_the_likelihood_of_counts_is_that_of_poisson():
    """Up to the logarithms of the factorials, which x does not change."""
    from scipy.stats import poisson

    loss, x = PoissonLoss(A, COUNTS, offset=OFFSET), RNG.standard_normal(COLUMNS)
    expected = -poisson.logpmf(COUNTS, np.exp(A @ x + OFFSET)).sum() - gammaln(COUNTS + 1.0).sum()
    assert loss.value(loss.point(x)) == pytest.approx(expected, rel=1e-12)


def test_chunks_of_rows_take_counts_and_refuse_losses_that_join_rows():
    parts = [(A[:20], COUNTS[:20]), (A[20:], COUNTS[20:])]
    streamed, whole = RowsLoss(parts, PoissonLoss, scale=1.0), PoissonLoss(A, COUNTS)
    x = 0.1 * np.ones(COLUMNS)
    assert streamed.value(streamed.point(x)) == pytest.approx(whole.value(whole.point(x)), rel=1e-12)
    assert streamed.lipschitz() == math.inf
    for kind in (CoxLoss, MultinomialLoss):
        with pytest.raises(TypeError, match=f"{kind.__name__} joins several predictions"):
            RowsLoss(parts, kind)
    for name in ("efron", "multinomial"):
        with pytest.raises(TypeError, match="lacks batches"):
            minimize(LOSSES[name](A), L1(1.0), solver=SAGA())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PoissonLoss(A, -COUNTS - 1), "b must hold counts"),
        (lambda: PoissonLoss(A, COUNTS, offset=OFFSET[:3]), "offset must have shape"),
        (lambda: PoissonLoss(A, COUNTS, offset=np.full(ROWS, np.nan)), "offset"),
        (lambda: MultinomialLoss(A, CLASSES - 1), "b must be a vector of the numbers of classes"),
        (lambda: MultinomialLoss(A, CLASSES + 0.5), "b must be a vector of the numbers of classes"),
        (lambda: MultinomialLoss(A, np.ones((ROWS, 2))), "shares of classes"),
        (lambda: MultinomialLoss(A, CLASSES, sample_weight=np.ones((ROWS, 3))), "sample_weight must have shape"),
        (lambda: CoxLoss(A, TIMES[:5], EVENTS), "time must be a NumPy array of shape"),
        (lambda: CoxLoss(A, TIMES, EVENTS[:5]), "event must have shape"),
        (lambda: CoxLoss(A, TIMES, 2 * EVENTS), "event must hold 0 and 1 only"),
        (lambda: CoxLoss(A, np.full(ROWS, np.inf), EVENTS), "time"),
        (lambda: CoxLoss(A, TIMES, 0 * EVENTS), "no event of positive weight"),
        (lambda: CoxLoss(A, TIMES, EVENTS, ties="exact"), "ties"),
    ],
)
def test_wrong_observations_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()

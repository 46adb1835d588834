"""Solvers against each other, against scikit-learn, and against what their theory promises."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression
from tests.solvers.problems import well_conditioned

import ell12
from ell12 import (
    DCA,
    FISTA,
    L1,
    L12,
    MCP,
    GroupL12,
    HuberLoss,
    LogisticLoss,
    NonmonotoneAPG,
    SequentialConvex,
    SpectralL12,
    SquaredLoss,
    Status,
    minimize,
    stationarity,
)
from ell12.penalties import CappedL1, LogSum, Lp
from ell12.protocols import Point
from ell12.solvers import ProximalGradient, SupportNewton
from ell12.solvers.proximal_step import ProximalStep

PROXIMAL_SOLVERS = [
    ProximalGradient(),
    ProximalGradient(step="backtracking"),
    ProximalGradient(step="barzilai-borwein"),
    FISTA(),
    FISTA(step="backtracking"),
    NonmonotoneAPG(),
    NonmonotoneAPG(step="backtracking"),
]
ALL_SOLVERS = [*PROXIMAL_SOLVERS, SequentialConvex(), DCA(), DCA(penalty_weight=0.3), SupportNewton()]


class CountingOperator:
    """A matrix that counts its products."""

    def __init__(self, matrix, counts=None, transposed=False):
        self.matrix, self.transposed = matrix, transposed
        self.counts = {"forward": 0, "adjoint": 0} if counts is None else counts
        self.shape, self.dtype = matrix.shape, matrix.dtype

    def __matmul__(self, x):
        self.counts["adjoint" if self.transposed else "forward"] += 1
        return self.matrix @ x

    @property
    def H(self):
        return CountingOperator(self.matrix.T, self.counts, not self.transposed)


def named(solvers):
    return [pytest.param(s, id=repr(s)) for s in solvers]


@pytest.mark.parametrize("solver", named(ALL_SOLVERS))
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_all_solvers_reach_the_same_objective(solver, l2_weight):
    A, b = well_conditioned()
    loss, penalty = SquaredLoss(A, b), L12(0.05, l2_weight=l2_weight)
    reference = minimize(loss, penalty, solver=ProximalGradient(), tol=1e-12, max_iter=100_000)
    result = minimize(loss, penalty, solver=solver, tol=1e-8, max_iter=20_000)
    assert result.status is Status.CONVERGED
    assert stationarity(loss, penalty, result.x) <= 1e-8
    assert result.objective == pytest.approx(reference.objective, rel=1e-8)
    assert result.objective == pytest.approx(loss.value(loss.point(result.x)) + penalty.value(result.x), rel=1e-14)


@pytest.mark.parametrize("solver", named(ALL_SOLVERS))
@pytest.mark.parametrize("make_loss", [LogisticLoss, HuberLoss])
def test_all_solvers_on_other_losses(solver, make_loss):
    A, b = well_conditioned(1)
    loss = make_loss(A, np.sign(b) if make_loss is LogisticLoss else b, sample_weight=1 + np.arange(80) / 80)
    penalty = L12(0.4, l2_weight=0.5)
    reference = minimize(loss, penalty, solver=ProximalGradient(), tol=1e-11, max_iter=200_000)
    assert reference.converged
    assert np.count_nonzero(reference.x) > 0
    result = minimize(loss, penalty, solver=solver, tol=1e-7, max_iter=50_000)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(reference.objective, rel=1e-8)


@pytest.mark.parametrize("solver", named(ALL_SOLVERS))
@pytest.mark.parametrize("positive", [False, True])
def test_equals_the_lasso_without_the_subtracted_norm(solver, positive):
    A, b = well_conditioned(2, m=40, n=60)
    alpha = 0.1
    lasso = Lasso(alpha=alpha / 40, fit_intercept=False, positive=positive, tol=1e-14, max_iter=10**6).fit(A, b)
    result = minimize(SquaredLoss(A, b), L1(alpha, positive=positive), solver=solver, tol=1e-9, max_iter=10**5)
    assert result.converged
    np.testing.assert_allclose(result.x, lasso.coef_, atol=1e-6)
    assert np.any(lasso.coef_ != 0)


@pytest.mark.parametrize("solver", named([FISTA(), NonmonotoneAPG(), ProximalGradient(step="barzilai-borwein")]))
def test_equals_logistic_regression_without_the_subtracted_norm(solver):
    A, b = well_conditioned(3)
    labels = np.sign(b)
    model = LogisticRegression(
        C=1 / 0.3, l1_ratio=1, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=10**5
    )
    expected = model.fit(A, labels).coef_[0]
    result = minimize(LogisticLoss(A, labels), L1(0.3), solver=solver, tol=1e-9, max_iter=10**5)
    assert result.converged
    np.testing.assert_allclose(result.x, expected, atol=1e-5)


@pytest.mark.parametrize("solver", named([SequentialConvex(), DCA()]))
def test_difference_of_convex_solvers_leave_zero(solver):
    # At a strength above the largest entry of the gradient at zero their step from zero is zero.
    A, b = well_conditioned(5)
    loss = SquaredLoss(A, b)
    alpha = 1.5 * np.max(np.abs(A.T @ b))
    result = minimize(loss, L12(alpha), solver=solver, tol=1e-8, max_iter=10**5)
    assert result.converged
    assert np.count_nonzero(result.x) == 1
    assert result.objective < loss.value(loss.point(np.zeros(30)))


def test_zero_is_no_solution_however_strong_the_penalty():
    A, b = well_conditioned(6)
    loss = SquaredLoss(A, b)
    for alpha in (1e2, 1e6):
        assert stationarity(loss, L12(alpha), np.zeros(30)) > 0
        result = minimize(loss, L12(alpha), tol=1e-6 / alpha)
        assert np.count_nonzero(result.x) == 1
    assert minimize(loss, L12(1e2, l2_weight=0.5)).objective == loss.value(loss.point(np.zeros(30)))


# nmAPG


def count_products(solver, max_iter, alpha=1e-3):
    problem = ell12.datasets.compressed_sensing(0, n_samples=60)
    A = CountingOperator(problem.A)
    loss = SquaredLoss(A, problem.b)
    loss.lipschitz()
    before = dict(A.counts)
    result = minimize(loss, L12(alpha), solver=solver, tol=0, max_iter=max_iter)
    return {name: A.counts[name] - before[name] for name in before}, result


@pytest.mark.parametrize("solver", named([NonmonotoneAPG(), FISTA(), ProximalGradient(), SequentialConvex()]))
def test_an_accepted_step_costs_one_product_each_way(solver):
    few, _ = count_products(solver, 10)
    many, _ = count_products(solver, 30)
    assert many["forward"] - few["forward"] == 20
    assert many["adjoint"] - few["adjoint"] == 20
    assert few["forward"] == 11  # one for the start
    assert few["adjoint"] == 11  # one for the certificate of the result


def test_nmapg_falls_back_to_a_plain_step():
    # Without memory a momentum step that rises is refused: both branches must then be computed and compared.
    counts, result = count_products(NonmonotoneAPG(eta=0.0), 400)
    fallbacks = counts["forward"] - 401
    assert fallbacks > 0
    assert counts["adjoint"] - 401 == fallbacks
    assert np.all(np.diff(result.history["objective"]) <= 0)


def test_nmapg_refuses_a_momentum_step_that_rises():
    # A loss that lies about its constant: with a step ten times too long the extrapolated point rises.
    A, b = well_conditioned(7)
    loss = SquaredLoss(A, b)
    too_long = 1.9 / loss.lipschitz()
    result = minimize(loss, L12(0.05), solver=NonmonotoneAPG(step=too_long), tol=1e-8, max_iter=20_000)
    assert result.converged


def test_backtracking_soon_finds_its_step():
    counts, _ = count_products(NonmonotoneAPG(step="backtracking"), 100)
    fallbacks = counts["adjoint"] - 102  # next to the first guess and the certificate
    assert counts["forward"] - 102 - fallbacks < 12  # halvings


@pytest.mark.parametrize(
    "penalty",
    [
        LogSum(0.05, theta=0.5),
        CappedL1(0.05, theta=1.0),
        Lp(0.05),
        MCP(0.05),
        GroupL12(np.arange(30) // 3, 0.05),
        L12(0.05, weights=np.arange(30) % 3),
        L12(0.05, positive=True),
    ],
    ids=lambda p: type(p).__name__,
)
@pytest.mark.parametrize("solver", named([NonmonotoneAPG(), ProximalGradient(step="barzilai-borwein")]))
def test_any_penalty_with_any_proximal_solver(penalty, solver):
    A, b = well_conditioned(8)
    loss = SquaredLoss(A, b)
    result = minimize(loss, penalty, solver=solver, tol=1e-7, max_iter=20_000)
    assert result.converged
    assert stationarity(loss, penalty, result.x) <= 1e-7
    assert result.objective < loss.value(loss.point(loss.start())) + penalty.value(loss.start())


@pytest.mark.parametrize(
    "penalty", [LogSum(0.05, 0.5), CappedL1(0.05), MCP(0.05), GroupL12(np.arange(30) // 3, 0.05)]
)
@pytest.mark.parametrize("solver", named([SequentialConvex(), DCA()]))
def test_difference_solvers_take_other_differences(penalty, solver):
    A, b = well_conditioned(8)
    loss = SquaredLoss(A, b)
    expected = minimize(loss, penalty, solver=ProximalGradient(), tol=1e-9, max_iter=50_000)
    result = minimize(loss, penalty, solver=solver, tol=1e-7, max_iter=50_000)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)


def test_matrix_unknown_with_a_spectral_penalty():
    random = np.random.default_rng(0)
    X = np.outer(random.standard_normal(8), random.standard_normal(6))
    A = random.standard_normal((40, 8)) / 6
    loss, penalty = SquaredLoss(A, A @ X + 0.01 * random.standard_normal((40, 6))), SpectralL12(0.2)
    result = minimize(loss, penalty, tol=1e-7)
    assert result.converged
    assert np.linalg.matrix_rank(result.x, tol=1e-8) == 1
    assert np.linalg.norm(result.x - X) < 0.1 * np.linalg.norm(X)


def test_complex_unknown():
    random = np.random.default_rng(1)
    A = (random.standard_normal((60, 20)) + 1j * random.standard_normal((60, 20))) / 11
    x = np.zeros(20, dtype=complex)
    x[:3] = [2 + 1j, -3j, -2]
    loss = SquaredLoss(A, A @ x)
    for solver in (NonmonotoneAPG(), SequentialConvex(), DCA()):
        result = minimize(loss, L12(0.01), solver=solver, tol=1e-8, max_iter=20_000)
        assert result.converged
        assert result.x.dtype == complex
        np.testing.assert_allclose(result.x, x, atol=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProximalGradient(step="newton"), "step"),
        (lambda: ProximalGradient(step=-1.0), "step"),
        (lambda: FISTA(step="barzilai-borwein"), "step"),
        (lambda: NonmonotoneAPG(step=math.nan), "step"),
        (lambda: NonmonotoneAPG(eta=1.0), "eta"),
        (lambda: NonmonotoneAPG(delta=0.0), "delta"),
        (lambda: SequentialConvex(step="newton"), "step"),
        (lambda: DCA(penalty_weight=0), "penalty_weight"),
    ],
)
def test_wrong_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_points_add_and_scale_with_their_predictions():
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    p, q = Point(np.array([1.0, 0.0]), A[:, 0]), Point(np.array([0.0, 1.0]), A[:, 1])
    sum_ = 2.0 * p + (p - q)
    np.testing.assert_array_equal(sum_.prediction, A @ sum_.x)
    np.testing.assert_array_equal(sum_.x, [3.0, -1.0])


def test_a_step_that_falls_to_zero_is_no_error():
    loss = SquaredLoss(np.eye(2), [1.0, 2.0])
    point = loss.point(np.zeros(2))
    step = ProximalStep(loss, L12(0.1), 0.1, point)
    step.step = 0.0
    assert step.iterate(point, point, 1.0).optimality == math.inf

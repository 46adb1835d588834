"""Newton's method on the support against nmAPG, scikit-learn and what it promises."""

import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Lasso

from ell12 import (
    L1,
    L12,
    HuberLoss,
    L12Classifier,
    L12Regressor,
    LogisticLoss,
    NonmonotoneAPG,
    Run,
    SquaredLoss,
    Status,
    datasets,
    minimize,
    stationarity,
)
from ell12.penalties import Lp, WithIntercept
from ell12.protocols import Loss
from ell12.solvers import SupportNewton


def signal_and_noise(seed=0, m=80, n=30):
    """A design near an isometry and a sparse signal strong enough that solvers see the same minimum."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n)) / math.sqrt(m)
    x = np.zeros(n)
    x[:6] = [4.0, -3.0, 2.5, -2.0, 3.5, 2.0]
    return A, A @ x + 0.02 * random.standard_normal(m)


def make_loss(name, A, b):
    if name == "logistic":
        return LogisticLoss(A, np.sign(b))
    if name == "huber":
        return HuberLoss(A, b, delta=0.3, sample_weight=1 + np.arange(len(b)) / len(b))
    return SquaredLoss(A, b)


def newton(loss, penalty, x0=None, solver=None, **limits):
    return minimize(loss, penalty, x0, solver or SupportNewton(), **{"tol": 1e-8, "max_iter": 5000, **limits})


def newton_part(loss, penalty, x0=None, solver=None, steps=30):
    """The iterates of Newton's method alone: those whose optimality is the exact violation."""
    solver = solver or SupportNewton()
    start = loss.point(loss.start() if x0 is None else x0)
    iterates = solver.iterates(loss, penalty, start)
    for count, iterate in enumerate(NonmonotoneAPG(solver.step).iterates(loss, penalty, start), 1):
        assert next(iterates).objective == iterate.objective  # the start is nmAPG, step by step
        if iterate.optimality <= solver.switch * penalty.alpha:
            break
        assert count < 3000
    return [iterate, *(next(iterates) for _ in range(steps))]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_reaches_the_objective_of_nmapg(name, l2_weight, positive, sparse):
    A, b = signal_and_noise()
    A = np.where(np.abs(A) > 0.05, A, 0)
    loss = make_loss(name, scipy.sparse.csr_array(A) if sparse else A, b)
    penalty = L12(0.2, l2_weight=l2_weight, weights=np.linspace(0.5, 1.5, 30), positive=positive)
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-9, max_iter=100_000)
    result = newton(loss, penalty)
    assert reference.converged
    assert result.status is Status.CONVERGED
    assert stationarity(loss, penalty, result.x) <= 1e-8
    assert 0 < np.count_nonzero(result.x) < 30
    assert result.objective == pytest.approx(reference.objective, rel=1e-10)


@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("positive", [False, True])
def test_unpenalised_entries_cross_zero_freely(name, positive):
    A, b = signal_and_noise(3)
    A = np.column_stack([np.ones(80), A])
    loss = make_loss(name, A, b - 0.3)
    penalty = L12(0.3, weights=np.r_[0.0, np.ones(30)], positive=positive)
    wrong_side = np.r_[1.0, np.zeros(30)]  # the intercept ends below zero, where that is allowed
    reference = minimize(loss, penalty, wrong_side, NonmonotoneAPG(), tol=1e-9, max_iter=100_000)
    result = newton(loss, penalty, wrong_side, SupportNewton(switch=math.inf))
    assert result.converged
    assert reference.converged
    assert result.x[0] == pytest.approx(reference.x[0], abs=1e-7)
    assert result.x[0] <= 0
    assert result.objective == pytest.approx(reference.objective, rel=1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("shape", [(40, 60), (200, 50), (30, 300)])
def test_equals_the_lasso_without_the_subtracted_norm(shape, positive):
    A, b = signal_and_noise(2, *shape)
    lasso = Lasso(alpha=0.1 / shape[0], fit_intercept=False, positive=positive, tol=1e-15, max_iter=10**6)
    expected = lasso.fit(A, b).coef_
    result = newton(SquaredLoss(A, b), L1(0.1, positive=positive), tol=1e-11)
    assert result.converged
    np.testing.assert_allclose(result.x, expected, atol=1e-8)


@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("switch", [math.inf, 1.0, 0.1])
def test_the_objective_never_rises_after_the_start(name, switch):
    data = datasets.correlated_design(1, n_samples=60, n_features=150, n_nonzero=10)
    loss = make_loss(name, data.A, data.b)
    objectives = [i.objective for i in newton_part(loss, L12(0.5), solver=SupportNewton(switch=switch))]
    assert np.all(np.diff(objectives) <= 2e-15 * objectives[0])
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_its_start(seed):
    data = datasets.correlated_design(seed, n_samples=50, n_features=120, n_nonzero=10)
    loss, penalty = SquaredLoss(data.A, data.b), L12(0.3)
    x0 = np.random.default_rng(seed).standard_normal(120)
    kept = x0.copy()
    before = loss.value(loss.point(x0)) + penalty.value(x0)
    result = newton(loss, penalty, x0)
    assert result.converged
    assert result.objective < before
    np.testing.assert_array_equal(x0, kept)


@pytest.mark.parametrize("i", range(3))
def test_the_minimum_of_nmapg_on_the_papers_problem_in_far_fewer_steps(i):
    data = datasets.compressed_sensing(0, n_samples=100)
    loss, penalty = SquaredLoss(data.A, data.b), L12(0.01 * 0.25**i)
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-6, max_iter=60_000)
    result = newton(loss, penalty, tol=1e-9)
    assert reference.converged
    assert result.converged
    assert result.n_iter < reference.n_iter / 4
    assert result.objective <= reference.objective * (1 + 1e-9)


def test_newton_converges_in_a_few_steps_once_it_begins():
    A, b = signal_and_noise()
    violations = [i.optimality for i in newton_part(LogisticLoss(A, np.sign(b)), L12(0.4, l2_weight=0.5), steps=6)]
    assert violations[0] > 1e-3
    assert violations[-1] < 1e-12


def test_more_entries_than_rows_make_the_hessian_singular_at_first():
    data = datasets.compressed_sensing(1, n_samples=60)
    loss, penalty = SquaredLoss(data.A, data.b), L12(1e-4)
    x0 = np.random.default_rng(0).standard_normal(240)  # all 240 entries are in the support, of rank 60
    result = newton(loss, penalty, x0, SupportNewton(switch=math.inf))
    assert result.converged
    assert result.n_iter < 2000
    assert np.count_nonzero(result.x) <= 60


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("case", ["duplicate columns", "zero columns", "constant b", "zero b", "one column"])
def test_degenerate_problems(case, l2_weight):
    A, b = signal_and_noise(4, m=40, n=20)
    if case == "duplicate columns":
        A = np.hstack([A, A])
    elif case == "zero columns":
        A[:, ::3] = 0
    elif case == "one column":
        A = A[:, :1]
    elif case == "constant b":
        b = np.ones(40)
    else:
        b = np.zeros(40)
    loss, penalty = SquaredLoss(A, b), L12(0.05, l2_weight=l2_weight)
    x0 = np.linspace(-1, 1, A.shape[1]) + 0.01
    for solver in (SupportNewton(), SupportNewton(switch=math.inf)):
        result = newton(loss, penalty, x0, solver)
        assert result.converged
        assert stationarity(loss, penalty, result.x) <= 1e-8


@pytest.mark.parametrize("seed", [0, 6, 19])  # the last two once stood still just above 1e-8
def test_saddles_between_duplicate_columns_do_not_hold_it(seed):
    random = np.random.default_rng(seed)
    A = np.tile(random.standard_normal((50, 8)), 2)  # two equal shares are stationary, and no minimum
    loss, penalty = SquaredLoss(A, random.standard_normal(50)), L12(1.0)
    for switch in (0.1, math.inf):
        assert newton(loss, penalty, solver=SupportNewton(switch=switch)).converged


def test_all_zero_solution():
    A, b = signal_and_noise()
    alpha = 2.5 * np.abs(A.T @ b).max()
    result = newton(SquaredLoss(A, b), L12(alpha, l2_weight=0.5), np.ones(30))
    assert result.converged
    assert np.count_nonzero(result.x) == 0


def test_one_entry_is_left_for_huge_alpha():
    A, b = signal_and_noise()
    result = newton(SquaredLoss(A, b), L12(1e6))
    assert result.converged
    assert np.count_nonzero(result.x) == 1


def test_no_penalty_is_least_squares():
    A, b = signal_and_noise()
    result = newton(SquaredLoss(A, b), L12(0.0), tol=1e-10)
    assert result.converged
    np.testing.assert_allclose(result.x, np.linalg.lstsq(A, b)[0], atol=1e-8)


def test_an_infinite_weight_holds_its_entry_at_zero():
    A, b = signal_and_noise()
    result = newton(SquaredLoss(A, b), L12(0.05, weights=np.r_[np.inf, np.ones(29)]))
    assert result.converged
    assert result.x[0] == 0


@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_single_precision_ends_and_is_kept(name):
    A, b = signal_and_noise()
    loss = make_loss(name, A.astype(np.float32), b.astype(np.float32))
    result = newton(loss, L12(0.1), max_iter=300)
    assert result.x.dtype == np.float32
    assert result.stationarity < 1e-3  # the objective tells points apart to the root of its rounding, 3e-4
    assert result.n_iter <= 300


def test_limits_and_stop_of_minimize_are_obeyed():
    A, b = signal_and_noise()
    loss, penalty = SquaredLoss(A, b), L12(0.05)
    assert newton(loss, penalty, max_iter=3).status is Status.MAX_ITER
    assert newton(loss, penalty, tol=0.0, max_iter=200).n_iter == 200
    stopped = newton(loss, penalty, run=Run(callback=lambda history: len(history["objective"]) > 5))
    assert stopped.status is Status.STOPPED
    assert stopped.n_iter == 5


def test_backtracking_needs_no_lipschitz_constant(monkeypatch):
    A, b = signal_and_noise()
    loss, penalty = SquaredLoss(A, b), L12(0.05)
    expected = newton(loss, penalty).objective

    def forbidden():
        raise AssertionError("the Lipschitz constant was asked for")

    monkeypatch.setattr(loss, "lipschitz", forbidden)
    result = newton(loss, penalty, solver=SupportNewton(step="backtracking"))
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=1e-12)


def test_other_array_libraries(each_library):
    A, b = signal_and_noise()
    loss = SquaredLoss(each_library.make_array(A), each_library.make_array(b))
    weights = np.r_[0.0, np.ones(29)]
    result = newton(
        loss, L12(0.05, weights=each_library.make_array(weights)), tol=1e-8 if each_library.float64 else 1e-3
    )
    assert result.converged
    expected = newton(SquaredLoss(A, b), L12(0.05, weights=weights)).x
    np.testing.assert_allclose(
        each_library.to_numpy(result.x), expected, atol=1e-7 if each_library.float64 else 1e-3
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_of_the_hessian(sparse):
    A, b = signal_and_noise()
    loss = make_loss("huber", scipy.sparse.csr_array(A) if sparse else A, b)
    point = loss.point(np.ones(30))
    block = loss.hessian(point, np.array([2, 5]), np.array([7, 1, 0]))
    np.testing.assert_allclose(block, loss.hessian(point)[[2, 5]][:, [7, 1, 0]], rtol=1e-12)


def test_hessian_of_the_penalty_is_the_derivative_of_its_slope():
    random = np.random.default_rng(0)
    x, move = random.standard_normal(8), random.standard_normal(8)
    penalty = L12(0.7, l2_weight=0.6, weights=np.r_[0.0, 0.0, np.linspace(0.5, 2, 6)])
    slopes = [penalty.least_slope(x + h * move, np.zeros(8)) for h in (1e-6, -1e-6)]
    hessian = penalty.curvature(x).matrix(np.arange(8))
    np.testing.assert_allclose(hessian @ move, (slopes[0] - slopes[1]) / 2e-6, atol=1e-8)
    np.testing.assert_array_equal(hessian[:2], 0)


class NoSecondDerivatives(Loss):
    """What the protocol of a loss asks for, and no more."""

    def __init__(self, loss):
        self.loss = loss

    def start(self):
        return self.loss.start()

    def point(self, x):
        return self.loss.point(x)

    def value(self, point):
        return self.loss.value(point)

    def gradient(self, point):
        return self.loss.gradient(point)


def test_a_support_too_large_for_a_dense_hessian_is_left_to_nmapg(monkeypatch):
    A, b = signal_and_noise()
    loss, penalty = SquaredLoss(A, b), L12(0.01)
    expected = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-7)
    monkeypatch.setattr("ell12.solvers.newton.LARGEST", np.count_nonzero(expected.x) - 1)
    result = newton(loss, penalty, tol=1e-7)
    assert result.n_iter == expected.n_iter
    np.testing.assert_array_equal(result.x, expected.x)


def test_says_what_it_cannot_do():
    A, b = signal_and_noise()
    with pytest.raises(TypeError, match="the penalty Lp lacks"):
        newton(SquaredLoss(A, b), Lp(0.1))
    with pytest.raises(TypeError, match=r"NoSecondDerivatives lacks .*is_quadratic"):
        newton(NoSecondDerivatives(SquaredLoss(A, b)), L12(0.1))
    with pytest.raises(TypeError, match="vector of real numbers"):
        newton(SquaredLoss(A.astype(complex), b), L12(0.1))
    with pytest.raises(ValueError, match="switch"):
        SupportNewton(switch=-1.0)
    with pytest.raises(ValueError, match="step"):
        SupportNewton(step="none")


@pytest.mark.parametrize("positive", [False, True])
def test_an_intercept_is_solved_for_with_the_support(positive):
    random = np.random.default_rng(0)
    A = np.column_stack([random.standard_normal((80, 12)), np.ones(80)])
    b = np.where(A @ np.r_[2.0, -1.5, 1.0, np.zeros(9), -0.7] + 0.3 * random.standard_normal(80) > 0, 1.0, -1.0)
    penalty = WithIntercept(L12(1.0, l2_weight=0.5, positive=positive))
    loss = LogisticLoss(A, b)
    expected = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-8, max_iter=10**5)
    result = minimize(loss, penalty, solver=SupportNewton(), tol=1e-10)
    assert result.converged
    assert result.n_iter < expected.n_iter
    np.testing.assert_allclose(result.x, expected.x, atol=1e-6)
    assert result.x[-1] < 0


def test_estimators_take_it_as_their_solver():
    problem = datasets.correlated_design(0, n_samples=80, n_features=60, n_nonzero=5)
    slow = {"solver": NonmonotoneAPG(), "tol": 1e-6, "max_iter": 10**5}
    plain = L12Regressor(alpha=0.05, **slow).fit(problem.A, problem.b)
    fast = L12Regressor(alpha=0.05, tol=1e-8, solver=SupportNewton()).fit(problem.A, problem.b)
    np.testing.assert_allclose(fast.coef_, plain.coef_, atol=1e-5)
    labels = problem.b > 0
    plain = L12Classifier(alpha=0.05, **slow).fit(problem.A, labels)
    fast = L12Classifier(alpha=0.05, tol=1e-8, solver=SupportNewton()).fit(problem.A, labels)
    np.testing.assert_allclose(fast.coef_, plain.coef_, atol=1e-4)


@pytest.mark.parametrize("seed", [0, 3, 8, 9])
def test_it_does_not_wait_for_nmapg_where_columns_have_units_of_their_own(seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((54, 180))
    X += 3 * np.sqrt(180) * X.mean(axis=1, keepdims=True)
    X *= 10.0 ** random.uniform(-3, 3, 180)
    y = X[:, :20] @ (random.standard_normal(20) / X[:, :20].std(axis=0)) > 0
    model = L12Classifier().fit(X, y)
    assert model.results_[0].converged
    assert model.n_iter_[0] < 2000

"""Newton's method on the support against nmAPG, scikit-learn and what it promises."""

import math

import numpy as np
import pytest

from ell12 import (
    L12,
    HuberLoss,
    L12Classifier,
    LogisticLoss,
    NonmonotoneAPG,
    SquaredLoss,
    datasets,
    minimize,
)
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


@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("switch", [math.inf, 1.0, 0.1])
def test_the_objective_never_rises_after_the_start(name, switch):
    data = datasets.correlated_design(1, n_samples=60, n_features=150, n_nonzero=10)
    loss = make_loss(name, data.A, data.b)
    objectives = [i.objective for i in newton_part(loss, L12(0.5), solver=SupportNewton(switch=switch))]
    assert np.all(np.diff(objectives) <= 2e-15 * objectives[0])
    assert objectives[-1] < objectives[0]


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


def test_more_entries_than_rows_make_the_hessian_singular_at_first():
    data = datasets.compressed_sensing(1, n_samples=60)
    loss, penalty = SquaredLoss(data.A, data.b), L12(1e-4)
    x0 = np.random.default_rng(0).standard_normal(240)  # all 240 entries are in the support, of rank 60
    result = newton(loss, penalty, x0, SupportNewton(switch=math.inf))
    assert result.converged
    assert result.n_iter < 200
    assert np.count_nonzero(result.x) <= 60


def test_extreme_strengths_and_weights_leave_no_entry_one_or_all_but_one():
    A, b = signal_and_noise()
    loss, alpha = SquaredLoss(A, b), 2.5 * np.abs(A.T @ b).max()
    weights = np.r_[np.inf, np.ones(29)]
    for penalty, counts in (
        (L12(alpha, l2_weight=0.5), {0}),
        (L12(1e6), {1}),
        (L12(0.05, weights=weights), range(1, 30)),
    ):
        result = newton(loss, penalty, np.r_[0.0, np.ones(29)])
        assert result.converged
        assert np.count_nonzero(result.x) in counts
    assert result.x[0] == 0


@pytest.mark.parametrize("seed", [0, 6, 19])  # the last two once stood still just above 1e-8
def test_saddles_between_duplicate_columns_do_not_stop_it(seed):
    random = np.random.default_rng(seed)
    A = np.tile(random.standard_normal((50, 8)), 2)  # two equal shares are stationary, and no minimum
    loss, penalty = SquaredLoss(A, random.standard_normal(50)), L12(1.0)
    for switch in (0.1, math.inf):
        assert newton(loss, penalty, solver=SupportNewton(switch=switch)).converged


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


def test_a_support_too_large_for_a_dense_hessian_is_left_to_nmapg(monkeypatch):
    A, b = signal_and_noise()
    loss, penalty = SquaredLoss(A, b), L12(0.01)
    expected = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-7)
    monkeypatch.setattr("ell12.solvers.newton.LARGEST", np.count_nonzero(expected.x) - 1)
    result = newton(loss, penalty, tol=1e-7)
    assert result.n_iter == expected.n_iter
    np.testing.assert_array_equal(result.x, expected.x)


@pytest.mark.parametrize("seed", [0, 3, 8, 9])
def test_it_does_not_wait_for_nmapg_where_columns_have_units_of_their_own(seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((54, 180))
    X += 3 * np.sqrt(180) * X.mean(axis=1, keepdims=True)
    X *= 10.0 ** random.uniform(-3, 3, 180)
    y = X[:, :20] @ (random.standard_normal(20) / X[:, :20].std(axis=0)) > 0
    model = L12Classifier().fit(X, y)
    assert model.results_[0].converged
    assert model.n_iter_[0] < 1500

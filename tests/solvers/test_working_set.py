"""Working sets against nmAPG, scikit-learn and what they promise; and as the default."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Lasso
from tests.solvers.problems import design, make_loss

import ell12
from ell12 import (
    L12,
    MCP,
    GroupL12,
    LogisticLoss,
    NonmonotoneAPG,
    SquaredLoss,
    WorkingSet,
    datasets,
    l12_path,
    minimize,
    stationarity,
)
from ell12.minimization.solver_choice import unmet
from ell12.penalties import Lp, WithIntercept
from ell12.solvers import SupportNewton, working_set


def strength(loss):
    """The largest entry of the gradient at zero."""
    return float(np.abs(loss.gradient(loss.point(loss.start()))).max())


def solve(loss, penalty, x0=None, solver=WorkingSet(), **limits):  # noqa: B008
    return minimize(loss, penalty, x0, solver, **{"tol": 1e-8, "max_iter": 5000, **limits})


class Counting:
    """A loss that counts its products."""

    def __init__(self, loss):
        self.loss, self.adjoint, self.forward = loss, 0, 0

    def __getattr__(self, name):
        return getattr(self.loss, name)

    def for_run(self):
        self.loss = self.loss.for_run()
        return self

    def gradient(self, point):
        self.adjoint += 1
        return self.loss.gradient(point)

    def point(self, x):
        self.forward += 1
        return self.loss.point(x)


@pytest.mark.parametrize(("positive", "sparse"), [(False, False), (True, True)])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("shape", [(60, 200), (200, 40)])
@pytest.mark.parametrize("solver", [WorkingSet(), SupportNewton()], ids=repr)
def test_reaches_the_objective_of_nmapg(solver, shape, name, l2_weight, positive, sparse):
    A, b = design(1, shape)
    weight = np.random.default_rng(2).uniform(0.5, 1.5, shape[0])
    loss = make_loss(name, scipy.sparse.csr_array(A) if sparse else A, b, sample_weight=weight)
    factors = np.random.default_rng(3).uniform(0.7, 1.3, shape[1])
    penalty = L12(0.1 * strength(loss), l2_weight, weights=factors, positive=positive)
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-5, max_iter=100_000)
    result = solve(loss, penalty, solver=solver)
    assert reference.converged
    assert result.converged
    assert stationarity(loss, penalty, result.x) <= 1e-8
    assert 0 < np.count_nonzero(result.x) < shape[1]
    assert result.objective <= reference.objective * (1 + 1e-9)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("solver", "shape"), [(WorkingSet(), (80, 1500)), (SupportNewton(), (30, 300))])
def test_equals_the_lasso_on_a_wide_problem(solver, shape, positive):
    A, b = design(4, shape)
    alpha = 0.05 * np.abs(A.T @ b).max()
    lasso = Lasso(alpha / len(b), fit_intercept=False, positive=positive, tol=1e-14, max_iter=10**6).fit(A, b)
    result = solve(SquaredLoss(A, b), L12(alpha, 0.0, positive=positive), solver=solver, tol=1e-10)
    assert result.converged
    np.testing.assert_allclose(result.x, lasso.coef_, atol=1e-7)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_a_first_fit_of_middling_size_waits_for_no_compiler(monkeypatch, l2_weight):
    monkeypatch.setattr("ell12.solvers.gram_descent.can_compile", lambda: pytest.fail("asked for numba"))
    A, b = design(7, (300, 1800), nonzero=30)
    loss = SquaredLoss(A, b)
    assert solve(loss, L12(0.02 * strength(loss), l2_weight)).converged


@pytest.mark.parametrize("i", range(4))
@pytest.mark.parametrize("seed", [100, 101])
def test_no_worse_a_minimum_than_nmapg_on_the_papers_problem(seed, i):
    data = datasets.compressed_sensing(seed, n_samples=100)
    loss, penalty = SquaredLoss(data.A, data.b), L12(0.01 * 0.25**i)
    reference = minimize(loss, penalty, solver=SupportNewton(), tol=1e-7)
    result = solve(loss, penalty)
    assert result.converged
    assert result.objective <= reference.objective * (1 + 1e-9)


def test_where_there_are_many_minima_most_are_no_worse_than_those_of_nmapg():
    excess = []
    for seed in range(10):
        data = datasets.correlated_design(seed, n_samples=100, n_features=300)
        loss = SquaredLoss(data.A, data.b)
        penalty = L12(0.4 * ell12.path.alpha_max(loss, L12()))
        reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-6, max_iter=10**5)
        excess.append(solve(loss, penalty).objective / reference.objective - 1)
    assert np.sum(np.array(excess) <= 1e-9) >= 9


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_the_objective_never_rises(name, l2_weight):
    A, b = design(6, (100, 400), nonzero=20)
    loss = make_loss(name, A, b)
    objectives = solve(loss, L12(0.05 * strength(loss), l2_weight)).history["objective"]
    assert np.all(np.diff(objectives) <= 1e-14 * objectives[0])
    data = datasets.compressed_sensing(0, n_samples=60)  # whose columns are nearly dependent
    loss = make_loss(name, data.A, data.b)
    objectives = solve(loss, L12(1e-4, l2_weight), tol=1e-6).history["objective"]
    assert np.all(np.diff(objectives) <= 1e-14 * objectives[0])


def test_one_product_with_the_adjoint_for_each_working_set():
    A, b = design(7, (100, 3000))
    loss = Counting(SquaredLoss(A, b))
    result = solve(loss, L12(0.1 * strength(loss.loss), 0.0))
    assert result.converged
    assert loss.adjoint == result.n_iter  # the certificate costs none
    assert loss.forward == 1  # of the start
    assert result.n_iter < 12


def test_products_do_not_grow_with_the_number_of_columns(monkeypatch):
    monkeypatch.setattr(working_set, "SMALL", 0)
    counts = []
    for p in (500, 2000, 8000):
        A, b = design(8, (100, 8000), nonzero=5)
        loss = Counting(SquaredLoss(A[:, :p], b))
        assert solve(loss, L12(0.3 * strength(loss.loss), 0.5)).converged
        counts.append(loss.adjoint + loss.forward)
    assert max(counts) <= 2 * min(counts) + 5


def test_a_path_gathers_no_column_twice(monkeypatch):
    A, b = design(9, (80, 600))
    gathered = []
    select = ell12.operators.gram.select_columns
    monkeypatch.setattr(ell12.operators.gram, "select_columns", lambda A, c: gathered.extend(c) or select(A, c))
    _, _, results = l12_path(A, b, alphas=20, eps=0.05, penalty=L12(l2_weight=0.0), tol=1e-6)
    assert all(result.converged for result in results)
    assert len(gathered) == len(set(gathered)) < 600


@pytest.mark.parametrize("alpha", [0.01, 0.003, 0.001])
def test_a_logistic_fit_ends_no_higher_than_nmapg(alpha):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    loss, penalty = LogisticLoss(X, y, scale=1 / len(y)), L12(alpha)
    ours = minimize(loss, penalty, solver=WorkingSet(), tol=1e-6)
    theirs = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-2)
    assert ours.converged
    assert ours.objective <= theirs.objective


def test_where_the_penalty_is_strongly_curved_support_newton_takes_over():
    A, b = design(10, (60, 1000), nonzero=4)
    result = solve(SquaredLoss(A, b), L12(0.5 * np.abs(A.T @ b).max()), max_iter=10**4)
    assert result.converged
    assert "SupportNewton" in result.solver


def test_a_large_working_set_is_left_to_support_newton(monkeypatch):
    A, b = design(11)
    loss, penalty = SquaredLoss(A, b), L12(1.0)
    expected = solve(loss, penalty).objective
    monkeypatch.setattr(working_set, "LARGEST", 10)
    result = solve(loss, penalty)
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=1e-9)


def test_a_proximal_step_leads_away_from_zero():
    A, b = design(12)
    loss = SquaredLoss(A, b)
    result = solve(loss, L12(1.5 * strength(loss)))  # zero meets the Lasso's condition, and is no minimum
    assert result.converged
    assert np.count_nonzero(result.x) == 1
    result = solve(loss, L12(1.5 * strength(loss), weights=np.r_[0.0, np.ones(199)]))
    assert result.converged
    assert np.count_nonzero(result.x) == 2


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("case", ["duplicate columns", "zero columns", "zero b", "one column", "zero matrix"])
def test_degenerate_problems(case, l2_weight):
    A, b = design(13, (40, 20))
    if case == "duplicate columns":
        A = np.hstack([A, A])
    elif case == "zero columns":
        A[:, ::3] = 0
    elif case == "one column":
        A = A[:, :1]
    elif case == "zero matrix":
        A = 0 * A
    else:
        b = 0 * b
    for x0 in (None, np.linspace(-1, 1, A.shape[1]) + 0.01):
        for solver in (WorkingSet(), SupportNewton(), SupportNewton(switch=np.inf)):
            assert minimize(SquaredLoss(A, b), L12(2.0, l2_weight), x0, solver, tol=1e-8).converged


def test_a_solution_is_known_at_once():
    A, b = design(15)
    loss, penalty = SquaredLoss(A, b), L12(20.0)
    result = solve(loss, penalty, np.random.default_rng(0).standard_normal(200))
    assert solve(loss, penalty, result.x).n_iter == 1
    assert solve(loss, penalty, tol=0.0, max_iter=40).n_iter == 40  # goes on for ever, without harm


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("solver", "columns"), [(WorkingSet(), 300), (SupportNewton(), 30)])
def test_an_intercept_is_in_every_working_set(solver, columns, positive):
    A, b = design(16, (100, columns))
    loss = LogisticLoss(np.column_stack([A, np.ones(100)]), np.where(b > -2, 1.0, -1.0))
    penalty = WithIntercept(L12(3.0, 0.5, positive=positive))
    result = solve(loss, penalty, solver=solver)
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-7, max_iter=10**5)
    assert result.converged
    assert result.x[-1] > 0
    assert result.objective <= reference.objective * (1 + 1e-9)


def test_the_default_is_the_fastest_solver_that_the_problem_allows():
    A, b = design(17)
    point = SquaredLoss(A, b).start()
    assert unmet(WorkingSet(), SquaredLoss(A, b), L12(1.0), point) == ""
    assert "columns" in unmet(WorkingSet(), SquaredLoss(aslinearoperator(A), b), L12(1.0), point)
    assert "Lp" in unmet(WorkingSet(), SquaredLoss(A, b), Lp(1.0), point)
    assert "GroupL12" in unmet(WorkingSet(), SquaredLoss(A, b), GroupL12(np.repeat(np.arange(100), 2), 1.0), point)
    assert "real" in unmet(WorkingSet(), SquaredLoss(A + 0j, b), L12(1.0), point + 0j)
    assert "real" in unmet(WorkingSet(), SquaredLoss(A, np.stack([b, b], 1)), L12(1.0), np.zeros((200, 2)))
    with pytest.raises(TypeError, match="WorkingSet needs a penalty"):
        solve(SquaredLoss(A, b), Lp(1.0))
    default, named = (minimize(SquaredLoss(A, b), L12(20.0), solver=solver) for solver in (None, WorkingSet()))
    np.testing.assert_array_equal(default.x, named.x)
    slow = minimize(SquaredLoss(aslinearoperator(A), b), L12(20.0), tol=1e-6)
    assert slow.objective == pytest.approx(default.objective, rel=1e-6)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_an_entry_that_is_not_penalised_does_not_hide_that_the_others_are_zero(seed, positive):
    # Where all that is penalised is zero the Lasso's condition may hold, and a proximal step still lead on.
    random = np.random.default_rng(seed)
    A = random.standard_normal((30, 6))
    loss = ell12.SquaredLoss(A, A @ [0.3, 1, 0, 0, 0, 0] + 0.1 * random.standard_normal(30), scale=1 / 30)
    for alpha in np.geomspace(0.3, 1.5, 8):
        penalty = ell12.L12(alpha, l2_weight=0.5, weights=[0.0, 1, 1, 1, 1, 1], positive=positive)
        result = ell12.minimize(loss, penalty, max_iter=100)
        assert result.converged
        apg = ell12.minimize(loss, penalty, solver=ell12.NonmonotoneAPG())
        assert result.objective <= apg.objective + 1e-6


def test_a_penalty_that_bends_more_than_the_loss_is_left_to_nmapg_for_longer():
    excess = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        A = random.standard_normal((60, 200))
        A = A / np.linalg.norm(A, axis=0)
        b = A @ np.where(np.arange(200) < 8, 2 * random.standard_normal(200), 0.0) + 0.2 * random.standard_normal(
            60
        )
        loss, penalty = SquaredLoss(A, b), MCP(0.15 * np.abs(A.T @ b).max(), gamma=0.1)
        reference = minimize(loss, penalty, solver=NonmonotoneAPG())
        excess.append(minimize(loss, penalty).objective / reference.objective - 1)
    assert np.sum(np.array(excess) > 1e-5) <= 1

"""The Lasso's path by breakpoints, against scikit-learn's and nmAPG; and as part of the default solver."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from sklearn.linear_model import Lasso, lars_path
from tests.solvers.problems import cosines, design

from ell12 import L1, L12, L12Regressor, NonmonotoneAPG, SquaredLoss, datasets, minimize, stationarity
from ell12.penalties import WithIntercept
from ell12.solvers import homotopy
from ell12.solvers.homotopy import Homotopy


def plain(seed, shape=(30, 80)):
    return design(seed, shape, 6, zeros=0)


def follow(loss, penalty):
    """The last point of the path, and the path."""
    path = Homotopy(loss, penalty)
    *_, last = path.points()
    return last, path


@pytest.mark.parametrize("seed", range(3))
def test_every_kink_is_that_of_lars(seed):
    A, b = plain(seed)
    loss = SquaredLoss(A, b)
    strengths, _, coefs = lars_path(A, b, method="lasso", alpha_min=1e-3)
    strengths *= len(b)
    path = Homotopy(loss, L12(strengths[-1], 0.0))
    found = [(path.alpha + path.left, path._point().x) for _ in path.points()]
    # The first breakpoint, at which the first entry enters, is where the path begins.
    np.testing.assert_allclose([strength for strength, _ in found[1:]], strengths, rtol=1e-8)
    np.testing.assert_allclose(np.transpose([x for _, x in found[1:]]), coefs, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_weights_of_rows_and_columns(positive, sparse):
    A, b = plain(3)
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 2, 80)
    weights[7] = np.inf
    X = scipy.sparse.csr_array(A) if sparse else A
    loss = SquaredLoss(X, b, sample_weight=random.uniform(0, 2, 30), scale=0.1)
    penalty = L12(0.01, 0.0, weights=weights, positive=positive)
    last, path = follow(loss, penalty)
    assert path.left == 0
    assert stationarity(loss, penalty, last.x) <= 1e-8
    assert last.x[7] == 0
    np.testing.assert_allclose(last.prediction, A @ last.x, atol=1e-10)


def test_an_unpenalised_entry_stays_in_the_support():
    A, b = plain(4)
    loss = SquaredLoss(np.column_stack([A, np.ones(30)]), b + 50)
    penalty = WithIntercept(L12(0.05, 0.0, positive=True))
    last, path = follow(loss, penalty)
    assert path.left == 0
    assert last.x[-1] > 10
    assert last.x[:-1].min() >= 0
    assert stationarity(loss, penalty, last.x) <= 1e-8


def test_the_factors_are_made_anew_where_rounding_spoils_them(monkeypatch):
    A, b = plain(5)
    loss, penalty = SquaredLoss(A, b), L12(0.01, 0.0)
    expected, _ = follow(loss, penalty)
    made = []
    factorize, enter = homotopy._Support.factorize, homotopy._Support.enter

    def spoiled(self, *arguments):
        enter(self, *arguments)
        self._triangle *= 1.001

    monkeypatch.setattr(homotopy._Support, "enter", spoiled)
    monkeypatch.setattr(homotopy._Support, "factorize", lambda self: made.append(1) or factorize(self))
    last, path = follow(loss, penalty)
    assert len(made) > 10
    assert path.left == 0
    np.testing.assert_allclose(last.x, expected.x, atol=1e-8)


def test_a_dependent_column_is_exchanged_for_another():
    random = np.random.default_rng(6)
    A = random.standard_normal((30, 10)) @ random.standard_normal((10, 80))  # no more than ten are independent
    loss, penalty = SquaredLoss(A, A @ random.standard_normal(80)), L12(1e-4, 0.0)
    last, path = follow(loss, penalty)
    assert path.left == 0
    assert np.count_nonzero(last.x) <= 10
    assert stationarity(loss, penalty, last.x) <= 1e-6


def test_no_path_begins_where_columns_that_are_not_penalised_depend_on_each_other():
    A, b = plain(11)
    A[:, 1] = A[:, 0]
    loss, penalty = SquaredLoss(A, b), L12(0.05, 0.0, weights=np.r_[0.0, 0.0, np.ones(78)])
    assert list(Homotopy(loss, penalty).points()) == []
    result = minimize(loss, penalty, tol=1e-8)
    assert result.converged
    assert result.objective <= minimize(loss, penalty, solver=NonmonotoneAPG(), max_iter=10**5).objective


@pytest.mark.parametrize("F", [10, 20])
def test_nearly_dependent_columns_do_not_hide_the_way(F):
    A, x = cosines(F, F, 9, (40, 400))
    assert np.linalg.cond(A) > 1e4
    loss, penalty = SquaredLoss(A, A @ x), L12(1e-7, 0.0)
    last, path = follow(loss, penalty)
    assert path.left == 0
    assert stationarity(loss, penalty, last.x) <= 1e-5


def test_a_path_reaches_the_solution_with_a_tangent():
    A, b = plain(10)
    loss, penalty = SquaredLoss(A, b), L12(0.5, 0.0)
    last, path = follow(loss, penalty)
    for tangent in 0.4 * np.random.default_rng(0).uniform(-1, 1, (3, 80)):
        path.add_tangent(tangent)
        *_, last = path.points()
        assert path.left == 0
        slope = A.T @ (A @ last.x - b) - tangent  # written out: what the l1 norm must balance
        assert np.abs(slope).max() <= 0.5 + 1e-9
        np.testing.assert_allclose(slope[last.x != 0], -0.5 * np.sign(last.x[last.x != 0]), atol=1e-9)


@pytest.mark.parametrize("i", [4, 5])
def test_the_papers_problem_is_solved_along_a_path(i):
    data = datasets.compressed_sensing(7, n_samples=100)
    loss, penalty = SquaredLoss(data.A, data.b), L12(0.01 * 0.25**i, 0.0)
    result = minimize(loss, penalty, tol=1e-8)
    assert result.solver.startswith("WorkingSet, Homotopy from ")
    assert "SupportNewton" not in result.solver  # the path came to its end
    assert result.converged
    assert stationarity(loss, penalty, result.x) <= 1e-8
    reference = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-2, max_iter=10**5)
    assert result.objective <= reference.objective * (1 + 1e-12)
    objectives = result.history["objective"]
    assert np.all(np.diff(objectives) <= 1e-14 * objectives[0])
    # A loose tolerance ends early, and keeps its promise.
    early = minimize(loss, penalty, tol=30.0)
    assert early.n_iter < result.n_iter
    assert stationarity(loss, penalty, early.x) <= 30.0


@pytest.mark.parametrize("positive", [False, True])
def test_an_estimator_with_an_intercept(positive):
    A, b = plain(9, (40, 300))
    X = scipy.sparse.csr_array(np.where(np.abs(A) > 0.5, A, 0) + (np.arange(300) % 2))
    model = L12Regressor(alpha=1e-3, penalty=L12(l2_weight=0.0, positive=positive), tol=1e-8).fit(X, b + 20)
    assert model.converged_
    assert "Homotopy" in model.results_[0].solver
    rival = Lasso(1e-3, positive=positive, tol=1e-10, max_iter=10**6).fit(X.toarray(), b + 20)
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(rival.intercept_, abs=1e-3)


def test_on_the_papers_problem_a_homotopy_follows_only_where_nearly_as_many_columns_as_rows_are_in_use():
    problem = datasets.compressed_sensing(0, n_samples=200, n_features=800)
    loss = SquaredLoss(problem.A, problem.b)
    for alpha, follows in ((0.01, False), (0.01 / 256, True)):
        result = minimize(loss, L12(alpha), tol=1e-3)
        assert result.converged
        assert ("Homotopy" in result.solver) is follows
        assert bool(np.count_nonzero(result.x) > 0.9 * 200) is follows


# What the plain call recovers by columns that are much alike, against linear programs


def exact_l1(A, b, tilt):
    """``argmin ||x||_1 - tilt' x`` subject to ``A x = b``, by a linear program."""
    found = linprog(np.r_[1 - tilt, 1 + tilt], A_eq=np.hstack([A, -A]), b_eq=b, method="highs").x
    return found[: A.shape[1]] - found[A.shape[1] :]


def exact_dca(A, b):
    """DCA for ``||x||_1 - ||x||_2`` subject to ``A x = b``, from the l1 solution, each step a linear program."""
    x, last = exact_l1(A, b, np.zeros(A.shape[1])), None
    while last is None or np.linalg.norm(x - last) > 1e-7 * np.linalg.norm(x):
        x, last = exact_l1(A, b, x / np.linalg.norm(x)), x
    return x


def error(found, x):
    return np.linalg.norm(found - x) / np.linalg.norm(x)


# With the l1 solution alone as a start, without the tangents that follow, the last two are not recovered.
CASES = [(5, 9, 0), (5, 9, 2), (10, 8, 1), (10, 9, 3), (16, 7, 0), (5, 11, 7), (5, 11, 8), (10, 10, 7)]


@pytest.mark.parametrize(("F", "n_nonzero", "seed"), CASES)
def test_the_plain_call_finds_what_exact_dca_finds(F, n_nonzero, seed):
    A, x = cosines(seed, F, n_nonzero, (40, 300))
    b = A @ x
    assert error(exact_dca(A, b), x) < 1e-6
    result = minimize(SquaredLoss(A, b), L12(1e-6))
    assert result.converged
    assert error(result.x, x) < 1e-3
    convex = minimize(SquaredLoss(A, b), L1(1e-6))
    assert convex.converged
    # Weighted by the same strength, the linear program's solution is a point that the convex run must not exceed.
    program = exact_l1(A, b, np.zeros(300))
    assert convex.objective <= 1e-6 * np.abs(program).sum() * (1 + 1e-9)

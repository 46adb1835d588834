"""Newton's method on the support against nmAPG, scikit-learn and what it promises."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from tests.solvers.problems import make_loss, well_conditioned

from ell12 import (
    L12,
    MCP,
    L12Classifier,
    NonmonotoneAPG,
    SquaredLoss,
    WorkingSet,
    datasets,
    minimize,
    stationarity,
)
from ell12.losses import of_prediction as prediction
from ell12.operators.centering import CenteredColumns
from ell12.penalties import LogSum, WithIntercept
from ell12.solvers import SupportNewton
from ell12.solvers import newton as module
from ell12.solvers.gram_descent import GramDescent


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
    A, b = well_conditioned(3)
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
    A, b = well_conditioned()
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
    A, b = well_conditioned()
    loss, penalty = SquaredLoss(A, b), L12(0.05)
    expected = newton(loss, penalty).objective

    def forbidden():
        raise AssertionError("the Lipschitz constant was asked for")

    monkeypatch.setattr(loss, "lipschitz", forbidden)
    result = newton(loss, penalty, solver=SupportNewton(step="backtracking"))
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=1e-12)


def test_a_support_too_large_for_a_dense_hessian_is_left_to_nmapg(monkeypatch):
    A, b = well_conditioned()
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


# By conjugate gradients, where a dense Hessian is larger than sparse data


def sparse_problem(seed=0, shape=(300, 200), full=0.05):
    random = np.random.default_rng(seed)
    A = scipy.sparse.random_array(shape, density=full, rng=random, format="csr")
    x = random.standard_normal(shape[1]) * (random.random(shape[1]) < 0.3)
    return A, A @ x + 0.05 * random.standard_normal(shape[0])


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_products_are_those_of_the_hessian(name):
    A, b = sparse_problem()
    loss, random, columns = make_loss(name, A, b), np.random.default_rng(1), np.arange(70)
    point, v = loss.point(random.standard_normal(200)), random.standard_normal(70)
    np.testing.assert_allclose(
        loss.hessian_product(point, columns)(v), loss.hessian(point, columns) @ v, atol=1e-12
    )


RIVALS = [MCP(0.3, gamma=2.0), LogSum(0.1, theta=0.3)]


@pytest.mark.parametrize("penalty", RIVALS, ids=repr)
@pytest.mark.parametrize("solver", [None, SupportNewton(), WorkingSet()], ids=repr)
def test_other_penalties_are_solved_on_their_support_too(penalty, solver):
    random = np.random.default_rng(0)
    A, x = random.standard_normal((60, 40)), np.r_[3.0, -2.0, 1.5, 1.0, -1.0, np.zeros(35)]
    loss = SquaredLoss(A, A @ x + 0.3 * random.standard_normal(60), scale=1 / 60)
    result = minimize(loss, penalty, solver=solver, tol=1e-9)
    assert result.converged
    plain = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-9)
    assert result.n_iter <= plain.n_iter + 2
    assert result.objective == pytest.approx(plain.objective, rel=1e-9)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_the_same_minimum_without_a_matrix(name, l2_weight, monkeypatch):
    A, b = sparse_problem(2)
    columns = CenteredColumns(A, np.asarray(A.mean(axis=0)), constant=True)
    penalty = WithIntercept(L12(0.02, l2_weight))
    dense = minimize(make_loss(name, columns, b), penalty, solver=SupportNewton(), tol=1e-8)
    loss = make_loss(name, columns, b)
    monkeypatch.setattr(prediction.PredictionLoss, "most_columns", 5.0)
    assert loss.most_columns < np.count_nonzero(dense.x)
    monkeypatch.setattr(module, "positive_solution", None)  # not called
    result = minimize(loss, penalty, solver=SupportNewton(), tol=1e-8)
    assert result.converged
    assert stationarity(loss, penalty, result.x) <= 1e-8
    assert result.objective == pytest.approx(dense.objective, rel=1e-9)


def test_a_matrix_over_sparse_columns_has_no_more_numbers_than_they_have(monkeypatch):
    A, b = sparse_problem()
    assert SquaredLoss(A.toarray(), b).most_columns == np.inf
    assert SquaredLoss(A, b).most_columns == prediction.GRAM_COLUMNS
    monkeypatch.setattr(prediction, "GRAM_COLUMNS", 5)
    assert SquaredLoss(A, b).most_columns ** 2 == pytest.approx(A.nnz)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_memory_stays_below_three_times_the_data(l2_weight, monkeypatch):
    monkeypatch.setattr(prediction, "GRAM_COLUMNS", 50)
    A, b = sparse_problem(3, (2000, 2000), 0.03)
    data = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    loss, penalty = SquaredLoss(A, b), L12(0.02, l2_weight)
    minimize(loss, L12(1.0, l2_weight), tol=1e-1)  # loads what is loaded once, and so does this:
    GramDescent(np.eye(256), np.zeros(256), np.ones(256)).solve(L12(0.1), 0.1)
    tracemalloc.start()
    result = minimize(SquaredLoss(A, b), penalty, tol=1e-1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.converged
    count = np.count_nonzero(result.x)
    assert 8 * count**2 > 2 * data  # a dense Hessian alone would be too much
    assert peak < 2 * data

"""Newton's method by conjugate gradients, where a dense Hessian is larger than sparse data."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from ell12 import L12, MCP, LogisticLoss, NonmonotoneAPG, SquaredLoss, WorkingSet, minimize, stationarity
from ell12.losses import of_prediction as prediction
from ell12.operators.centering import CenteredColumns
from ell12.penalties import LogSum, WithIntercept
from ell12.solvers import SupportNewton, newton
from ell12.solvers.gram_descent import GramDescent


def sparse_problem(seed=0, shape=(300, 200), full=0.05):
    random = np.random.default_rng(seed)
    A = scipy.sparse.random_array(shape, density=full, rng=random, format="csr")
    x = random.standard_normal(shape[1]) * (random.random(shape[1]) < 0.3)
    return A, A @ x + 0.05 * random.standard_normal(shape[0])


def make_loss(name, A, b):
    return SquaredLoss(A, b) if name == "squared" else LogisticLoss(A, np.where(b > 0, 1.0, -1.0))


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
    monkeypatch.setattr(newton, "positive_solution", None)  # not called
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

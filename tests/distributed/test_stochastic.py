"""Stochastic solvers over the blocks of a dask array."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse

from ell12 import L12, HuberLoss, L12Regressor, LogisticLoss, SquaredLoss, minimize
from ell12.distributed import rows_loss
from ell12.solvers import SAGA, ProxSVRG

ROWS = 240


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    A = random.standard_normal((ROWS, 6)) + np.array([0, 1, -1, 0, 0.5, 0])
    return A, A @ [2.0, -1.0, 0.0, 0.0, 0.5, 0.0] + random.standard_normal(ROWS) + 1, random.random(ROWS)


def chunked(values, rows=((100, 0, 90, 50),)):
    return da.from_array(values, chunks=(*rows, *values.shape[1:]))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_batches_sum_to_the_loss(data, form, kind, intercept):
    A, b, weight = data
    b = np.sign(b - 1) if kind is LogisticLoss else b
    X = chunked(A).map_blocks(form)
    loss = rows_loss(kind, X, b, sample_weight=weight, scale=0.1, intercept=intercept, gram=False)
    x = np.random.default_rng(1).standard_normal(6 + intercept)
    batches = list(loss.batches(16, np.random.default_rng(2)))
    assert sorted(batch.index for batch in batches) == list(range(batches[0].count))
    assert batches[0].count == 7 + 6 + 4
    points = [batch.loss.point(x) for batch in batches]
    value = sum(batch.loss.value(point) for batch, point in zip(batches, points, strict=True))
    gradient = sum(batch.loss.gradient(point) for batch, point in zip(batches, points, strict=True))
    assert value == pytest.approx(loss.value(loss.point(x)), rel=1e-12)
    np.testing.assert_allclose(gradient, loss.gradient(loss.point(x)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("solver", [ProxSVRG(batch_size=16), SAGA(batch_size=16)])
def test_they_reach_the_solution_of_nmapg(data, solver):
    A, b, _ = data
    loss = rows_loss(SquaredLoss, chunked(A), b, scale=1 / ROWS, gram=False)
    result = minimize(loss, L12(0.1), solver=solver, tol=1e-7)
    assert result.converged
    expected = minimize(SquaredLoss(A, b, scale=1 / ROWS), L12(0.1), tol=1e-8).x
    np.testing.assert_allclose(result.x, expected, atol=1e-6)


def test_where_one_pass_settles_it_there_are_no_batches(data):
    with pytest.raises(TypeError, match="QuadraticLoss lacks batches"):
        L12Regressor(solver=ProxSVRG()).fit(chunked(data[0]), data[1])

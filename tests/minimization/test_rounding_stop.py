"""Runs that rounding ends: an alpha, or a tol, too small for the precision of the data."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ell12 import FISTA, L12, L12RegressorCV, LogisticLoss, SquaredLoss, Status, minimize
from ell12.minimization.rounding_stop import MARGIN, gradient_resolution
from ell12.solvers import SupportNewton

TINY = 1e-14


def data(dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 20))
    y = X[:, :3] @ [1.0, -2.0, 3.0] + 0.1 * random.standard_normal(60)
    labels = np.where(y + 2 * random.standard_normal(60) > 0, 1, -1)
    return X.astype(dtype), y.astype(dtype), labels


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize("solver", [None, FISTA(), SupportNewton()])
def test_a_run_that_rounding_stops_ends_soon_and_says_so(l2_weight, solver):
    X, y, _ = data()
    result = minimize(SquaredLoss(X, y), L12(TINY, l2_weight), solver=solver)
    assert result.status is Status.ROUNDING
    assert not result.converged
    assert result.stationarity > 1e-4
    assert result.n_iter < 1100
    least_squares = np.linalg.lstsq(X, y)[0]  # from which so small an alpha leads no further than rounding does
    assert np.allclose(result.x, least_squares, rtol=0, atol=1e-13)


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_a_logistic_run_that_rounding_stops_is_at_its_minimum(l2_weight):
    X, _, labels = data()
    loss = LogisticLoss(X, labels)
    result = minimize(loss, L12(TINY, l2_weight))
    assert result.status is Status.ROUNDING
    assert result.n_iter < 900
    assert np.abs(loss.gradient(loss.point(result.x))).max() < 1e-13


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_a_run_goes_on_while_the_objective_falls(l2_weight):
    X, y, _ = data()
    near = np.concatenate([X[:, :10], X[:, :10] + 1e-7 * X[:, 10:]], axis=1)
    problem = SquaredLoss(near, y, scale=1 / 60), L12(1e-10, l2_weight)
    result, exhaustive = minimize(*problem), minimize(*problem, tol=0, max_iter=1000)
    assert result.status is Status.ROUNDING
    assert result.n_iter < 1100
    # x holds 3e5, so that a prediction carries 1e-10; under l1-2 the two end in different stationary points.
    assert result.stationarity * 1e-10 <= gradient_resolution(problem[0], result.x)
    assert l2_weight or result.objective <= exhaustive.objective * (1 + 1e-8)


def test_a_slow_solver_is_not_taken_for_one_that_rounding_stops():
    X, y, _ = data()
    loss = SquaredLoss(X * np.logspace(-4, 4, 20), y)
    assert minimize(loss, L12(1e-3, 0.0), solver=FISTA(), max_iter=3000).status is Status.MAX_ITER


def test_a_tol_of_zero_runs_on():
    X, y, _ = data()
    result = minimize(SquaredLoss(X, y), L12(0.1), tol=0, max_iter=300)
    assert (result.status, result.n_iter) == (Status.MAX_ITER, 300)


def test_the_resolution_is_the_gradient_where_the_exact_solution_is_rounded():
    X, y, _ = data()
    scales = np.logspace(-3, 3, 20)
    A, exact = (X * scales).astype(np.longdouble), np.zeros(20, dtype=np.longdouble)
    for _ in range(5):  # iterative refinement, by columns of one scale
        exact -= np.linalg.solve(X.T @ X, (A.T @ (A @ exact - y) / scales).astype(np.float64)) / scales
    x = exact.astype(np.float64)
    least, exactly = (np.abs(A.T @ (A @ point - y)).max() for point in (x, exact))
    assert exactly < 1e-2 * least
    assert least < gradient_resolution(SquaredLoss(X * scales, y), x) < 10 * MARGIN * least


def test_a_search_over_alphas_that_are_too_small_ends():
    X, y, _ = data()
    with pytest.warns(ConvergenceWarning, match="Rounding keeps"):
        L12RegressorCV(alphas=[0.1, TINY], cv=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        L12RegressorCV(alphas=[0.1, 1e-8], cv=3).fit(X, y)

"""Problems side by side, each against itself solved alone."""

import numpy as np
import pytest

from ell12 import NonmonotoneAPG, SquaredLoss, Status, minimize, stationarity
from ell12.path.columnwise import InterceptSquaredLoss
from ell12.path.side_by_side import columns_penalty, solve_side_by_side
from ell12.penalties import L12, WithIntercept

ALPHAS = [3.0, 1.0, 0.2]


def problem(seed=0, n=40, p=15):
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, p)) * random.uniform(0.3, 3, p)
    return A, A[:, 2] - 0.5 * A[:, 7] + 0.3 * random.standard_normal(n)


def targets(A):
    random = np.random.default_rng(5)
    return A @ (random.standard_normal((15, 3)) * (random.random((15, 3)) < 0.3)) + 0.1 * random.standard_normal(
        (40, 3)
    )


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_column_is_the_problem_solved_alone(l2_weight, positive, weighted):
    A, _ = problem()
    B = targets(A)
    options = {"weights": np.linspace(0.5, 1.5, 15) if weighted else None, "positive": positive}
    loss = SquaredLoss(A, B)
    penalty = columns_penalty(loss, ALPHAS, l2_weight, tol=1e-8, **options)
    point, results = solve_side_by_side(loss, penalty, tol=1e-8, max_iter=20_000)
    np.testing.assert_allclose(point.prediction, A @ point.x, atol=1e-10)
    for k, (alpha, result) in enumerate(zip(ALPHAS, results, strict=True)):
        one, each = SquaredLoss(A, B[:, k]), L12(alpha, l2_weight, **options)
        alone = minimize(one, each, solver=NonmonotoneAPG(), tol=1e-8, max_iter=20_000)
        assert result.status is Status.CONVERGED
        np.testing.assert_allclose(result.x, alone.x, atol=1e-6)
        np.testing.assert_array_equal(point.x[:, k], result.x)
        assert result.objective == pytest.approx(alone.objective, rel=1e-9)
        assert result.objective == pytest.approx(one.value(one.point(result.x)) + each.value(result.x), rel=1e-12)
        assert result.stationarity == pytest.approx(stationarity(one, each, result.x), abs=1e-10)


def test_columns_begin_where_they_are_told_to():
    A, _ = problem()
    loss = SquaredLoss(A, targets(A))
    penalty = columns_penalty(loss, ALPHAS, 1.0, tol=1e-8)
    first, cold = solve_side_by_side(loss, penalty, tol=1e-8, max_iter=20_000)
    again, warm = solve_side_by_side(loss, penalty, first.x, tol=1e-8, max_iter=20_000)
    assert warm[0].n_iter <= 2 < cold[0].n_iter
    np.testing.assert_allclose(again.x, first.x, atol=1e-8)


def test_a_run_that_is_cut_short_says_which_columns_arrived():
    A, _ = problem()
    loss = SquaredLoss(A, targets(A))
    penalty = columns_penalty(loss, [1e6, 0.2, 0.2], 0.0, tol=1e-8)
    _, results = solve_side_by_side(loss, penalty, tol=1e-8, max_iter=3)
    assert [result.status for result in results] == [Status.CONVERGED, Status.MAX_ITER, Status.MAX_ITER]
    assert [result.converged for result in results] == [True, False, False]


def test_intercepts_of_all_columns_are_free_in_x_and_outside_of_it():
    A, _ = problem()
    B, with_ones = targets(A) + np.array([5.0, -3.0, 1.0]), np.column_stack([A, np.ones(40)])
    options = {"tol": 1e-8, "max_iter": 50_000}
    inside = SquaredLoss(with_ones, B)
    point, results = solve_side_by_side(
        inside, columns_penalty(inside, ALPHAS, 0.5, tol=1e-8, intercept=True), **options
    )
    outside = InterceptSquaredLoss(A, B)
    slopes, _ = solve_side_by_side(outside, columns_penalty(outside, ALPHAS, 0.5, tol=1e-8), **options)
    for k, alpha in enumerate(ALPHAS):
        one = SquaredLoss(with_ones, B[:, k])
        alone = minimize(one, WithIntercept(L12(alpha, 0.5)), solver=NonmonotoneAPG(), **options)
        np.testing.assert_allclose(point.x[:, k], alone.x, atol=1e-6)
        assert results[k].objective == pytest.approx(alone.objective, rel=1e-8)
        np.testing.assert_allclose(slopes.x[:, k], alone.x[:-1], atol=1e-6)
        assert outside.intercepts(slopes)[k] == pytest.approx(alone.x[-1], rel=1e-6)

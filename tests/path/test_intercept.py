"""A squared loss less its best intercepts, against a minimum over intercepts by another package."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ell12.path.columnwise import InterceptSquaredLoss


def problem(weighted):
    random = np.random.default_rng(0)
    A, B = random.standard_normal((12, 4)), random.normal([5.0, 0.0, -2.0], 1.0, (12, 3))
    return A, B, random.uniform(0, 2, (12, 3)) if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_the_least_over_all_intercepts(weighted):
    A, B, weight = problem(weighted)
    loss = InterceptSquaredLoss(A, B, sample_weight=weight, scale=0.3)
    x = np.random.default_rng(1).standard_normal((4, 3))
    point = loss.point(x)
    w = np.ones((12, 3)) if weight is None else weight

    def value(c, k, x=x):
        return 0.15 * np.sum(w[:, k] * (A @ x[:, k] + c - B[:, k]) ** 2)

    best = [minimize_scalar(value, args=(k,), bracket=(-1, 1), tol=1e-14) for k in range(3)]
    np.testing.assert_allclose(loss.values(point), [found.fun for found in best], rtol=1e-10)
    np.testing.assert_allclose(loss.intercepts(point), [found.x for found in best], rtol=1e-6)
    assert loss.value(point) == pytest.approx(sum(found.fun for found in best), rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_and_divergences_are_those_of_the_values(weighted):
    A, B, weight = problem(weighted)
    loss = InterceptSquaredLoss(A, B, sample_weight=weight)
    random = np.random.default_rng(1)
    x, y, h = random.standard_normal((4, 3)), random.standard_normal((4, 3)), 1e-5
    gradient = loss.gradient(loss.point(x))
    for place in np.ndindex(4, 3):
        step = np.zeros((4, 3))
        step[place] = h
        rise = loss.value(loss.point(x + step)) - loss.value(loss.point(x - step))
        assert gradient[place] == pytest.approx(rise / (2 * h), rel=1e-6, abs=1e-7)
    above = loss.value(loss.point(y)) - loss.value(loss.point(x)) - np.sum(gradient * (y - x))
    assert 0 < above <= loss.lipschitz() / 2 * np.sum((y - x) ** 2)


def test_what_joins_all_rows_is_refused_by_name():
    A, B, _ = problem(False)
    loss = InterceptSquaredLoss(A, B)
    with pytest.raises(TypeError, match="no sum over rows: its intercepts join them"):
        loss.batches(4)
    with pytest.raises(TypeError, match="no curvature of each row"):
        loss.curvature(loss.point(loss.start()))

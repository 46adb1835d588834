"""Degrees of freedom against the change of fitted values with the observations, and criteria written out."""

import math

import numpy as np
import pytest

from ell12 import L1, L12, HuberLoss, LogisticLoss, SquaredLoss, minimize
from ell12.linear_model.criteria import criterion, degrees_of_freedom, deviance

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((50, 20))
B = A[:, :4] @ [3, 2, 1, 1.0] + 0.5 * RANDOM.standard_normal(50)


def divergence(penalty, fit):
    """``sum_i d fitted_i / d b_i`` by differences."""
    step, total = 1e-5, 0.0
    for i in range(50):
        ends = []
        for sign in (1, -1):
            b = B.copy()
            b[i] += sign * step
            ends.append(A[i] @ minimize(SquaredLoss(A, b), penalty, fit.x, tol=1e-12).x)
        total += (ends[0] - ends[1]) / (2 * step)
    return total


@pytest.mark.parametrize(
    "penalty",
    [L12(10.0, 1.0), L12(6.0, 0.5, weights=np.r_[0.0, np.ones(19)]), L12(8.0, 0.9, ridge=0.4)],
    ids=["l12", "a free entry", "ridge"],
)
def test_degrees_of_freedom_are_the_divergence_of_the_fit(penalty):
    fit = minimize(SquaredLoss(A, B), penalty, tol=1e-12)
    support = np.flatnonzero(fit.x)
    found = degrees_of_freedom(SquaredLoss(A, B), penalty, fit.x, support)
    assert abs(found - support.size) > 1e-2  # not the number of entries
    np.testing.assert_allclose(found, divergence(penalty, fit), atol=1e-5)


def test_without_a_subtracted_norm_they_are_the_number_of_independent_columns():
    x = np.r_[1.0, 2.0, 3.0, np.zeros(17)]
    assert degrees_of_freedom(SquaredLoss(A, B), L1(1.0), x, np.arange(3)) == 3
    twice = np.c_[A[:, :2], A[:, 0] + A[:, 1]]
    assert degrees_of_freedom(SquaredLoss(twice, B), L1(1.0), x[:3], np.arange(3)) == 2


def test_they_are_not_defined_where_the_penalty_bends_more_than_the_loss():
    x = np.array([1e-3, 1e-3])
    assert math.isnan(degrees_of_freedom(SquaredLoss(np.eye(2), [1.0, 1.0]), L12(1.0), x, np.arange(2)))
    assert criterion("bic", 0.0, math.nan, 10, (2, 2)) == math.inf


def test_deviances_are_those_of_the_likelihoods():
    x, labels = RANDOM.standard_normal(20), np.sign(B)
    squared, logistic = SquaredLoss(A, B, scale=1 / 50), LogisticLoss(A, labels, scale=1 / 50)
    rss = np.sum((B - A @ x) ** 2)
    np.testing.assert_allclose(deviance(squared, x, 50), 50 * math.log(rss / 50))
    np.testing.assert_allclose(deviance(logistic, x, 50), 2 * np.sum(np.log1p(np.exp(-labels * (A @ x)))))
    with pytest.raises(ValueError, match="likelihood"):
        deviance(HuberLoss(A, B), x, 50)


def test_an_exact_fit_has_a_finite_deviance():
    x = RANDOM.standard_normal(20)
    exact = SquaredLoss(A, A @ x, scale=1 / 50)
    assert math.isfinite(deviance(exact, x, 50))
    assert deviance(exact, x, 50) == deviance(exact, x * (1 + 1e-16), 50)

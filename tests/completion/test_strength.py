"""Strengths for matrices, against conditions at both sides of them and against fits by other means."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from ell12 import Observed, SpectralL12, stationarity
from ell12.completion import CompletionLoss
from ell12.completion.hidden_entries import largest_strength, noise_alpha, rank_one_fit


def problem(seed=0, shape=(12, 9), known=0.7):
    random = np.random.default_rng(seed)
    X = 3 * np.outer(random.uniform(1, 2, shape[0]), random.uniform(1, 2, shape[1]))
    X = X + random.standard_normal(shape)
    mask = random.random(shape) < known
    return X, mask, Observed.from_mask(X, mask)


def test_a_rank_one_fit_is_the_nearest_by_another_method():
    X, mask, observed = problem()
    fit = rank_one_fit(observed).to_array()

    def errors(factors):
        return (np.outer(factors[:12], factors[12:]) - X)[mask]

    best = least_squares(errors, np.ones(21), xtol=1e-14, ftol=1e-14)
    assert np.sum((fit - X)[mask] ** 2) == pytest.approx(2 * best.cost, rel=1e-7)
    assert np.linalg.matrix_rank(fit) == 1


def test_of_a_whole_matrix_the_rank_one_fit_is_the_first_singular_triplet():
    X, _, _ = problem()
    U, s, Vt = np.linalg.svd(X)
    fit = rank_one_fit(Observed.from_mask(X, np.ones(X.shape, dtype=bool)))
    np.testing.assert_allclose(fit.to_array(), s[0] * np.outer(U[:, 0], Vt[0]), atol=1e-8)


@pytest.mark.parametrize("l2_weight", [0.0, 0.6])
def test_below_one_zero_is_a_solution_from_the_largest_strength_on(l2_weight):
    X, mask, observed = problem()
    loss = CompletionLoss(observed)
    top = largest_strength(loss, l2_weight)
    assert top == pytest.approx(np.linalg.norm(mask * X, 2) / (1 - l2_weight), rel=1e-6)
    assert stationarity(loss, SpectralL12(1.001 * top, l2_weight), loss.start()) < 1e-8
    assert stationarity(loss, SpectralL12(0.99 * top, l2_weight), loss.start()) > 1e-3


def test_at_one_the_rank_one_fit_is_a_solution_from_the_largest_strength_on():
    X, mask, observed = problem()
    loss, fit = CompletionLoss(observed), rank_one_fit(observed)
    top = largest_strength(loss)
    assert top == pytest.approx(np.linalg.norm(mask * (X - fit.to_array()), 2), rel=1e-6)
    assert stationarity(loss, SpectralL12(1.001 * top), fit) < 3e-4
    assert stationarity(loss, SpectralL12(0.98 * top), fit) > 1e-3
    assert (
        largest_strength(CompletionLoss(np.outer(np.arange(1.0, 5), np.arange(1.0, 4)))) == 0.0
    )  # rank one fits all


def test_the_strength_that_noise_asks_for_is_about_the_norm_of_the_noise():
    random = np.random.default_rng(0)
    noise, mask = 0.5 * random.standard_normal((200, 150)), random.random((200, 150)) < 0.3
    X = 10 * np.outer(random.uniform(1, 2, 200), random.uniform(1, 2, 150)) + noise
    observed = Observed.from_mask(X, mask)
    assert noise_alpha(observed) == pytest.approx(np.linalg.norm(mask * noise, 2), rel=0.1)

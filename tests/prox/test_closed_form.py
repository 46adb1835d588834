"""The kernel, against a search over all directions and against its parts put together by hand."""

import numpy as np
import pytest

from ell12.prox.batching import as_groups
from ell12.prox.closed_form import (
    plain_prox_rows,
    prox_groups,
    prox_iterative,
    prox_rows,
    prox_spectral,
    prox_vector,
)

CASES = [(0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (0.9, 0.6), (3.0, 1.0), (0.8, 1.7)]


def objective(x, z, t, l2_weight, weights=1.0):
    return 0.5 * np.sum(np.abs(x - z) ** 2) + t * (np.sum(weights * np.abs(x)) - l2_weight * np.linalg.norm(x))


def lowest(z, t, l2_weight, weights=1.0, positive=False):
    """The least objective over the plane: for each of many directions u the best length is a formula."""
    angles = np.linspace(0, (0.5 if positive else 2) * np.pi, 20_001)
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    slope = u @ z - t * ((weights * np.abs(u)).sum(axis=1) - l2_weight)
    return 0.5 * z @ z - 0.5 * np.max(np.maximum(slope, 0)) ** 2


@pytest.mark.parametrize(("t", "l2_weight"), CASES)
@pytest.mark.parametrize("weights", [None, np.array([0.3, 1.4])])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("prox", [prox_vector, prox_rows, plain_prox_rows])
def test_no_point_of_the_plane_is_lower(prox, t, l2_weight, weights, positive):
    for z in np.random.default_rng(0).uniform(-2, 2, (20, 2)):
        x = prox(z, t, l2_weight, weights, positive)
        found = objective(x, z, t, l2_weight, 1.0 if weights is None else weights)
        least = lowest(z, t, l2_weight, 1.0 if weights is None else weights, positive)
        assert not positive or x.min() >= 0
        assert least - 1e-6 <= found <= least + 1e-10


@pytest.mark.parametrize(("t", "l2_weight"), CASES)
def test_rows_are_vectors_one_by_one(t, l2_weight):
    z = np.random.default_rng(1).standard_normal((3, 4, 6))
    weights = np.random.default_rng(2).uniform(0, 2, z.shape)
    x = prox_rows(z, t, l2_weight, weights)
    thresholds = np.full((3, 4, 1), t)
    np.testing.assert_array_equal(prox_rows(z, thresholds, l2_weight, weights), x)
    for place in np.ndindex(3, 4):
        np.testing.assert_allclose(x[place], prox_vector(z[place], t, l2_weight, weights[place]), rtol=1e-13)


@pytest.mark.parametrize(("t", "l2_weight"), CASES)
def test_groups_keep_their_directions_and_their_norms_are_one_problem(t, l2_weight):
    labels = np.array([0, 1, 2, 0, 1, 0, 2])
    z = np.random.default_rng(3).standard_normal(7)
    parts = [z[labels == k] for k in range(3)]
    norms = np.array([np.linalg.norm(part) for part in parts])
    new = plain_prox_rows(norms, t, l2_weight, None, True)
    x = prox_groups(z, t, as_groups(labels), l2_weight)
    for k in range(3):
        np.testing.assert_allclose(x[labels == k], new[k] * parts[k] / norms[k], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("t", "l2_weight"), CASES)
def test_singular_values_are_one_problem(t, l2_weight):
    Z = np.random.default_rng(4).standard_normal((2, 5, 3))
    X = prox_spectral(Z, t, l2_weight)
    for z, x in zip(Z, X, strict=True):
        U, s, Vt = np.linalg.svd(z, full_matrices=False)
        np.testing.assert_allclose(x, U @ np.diag(plain_prox_rows(s, t, l2_weight, None, True)) @ Vt, atol=1e-13)
    Z[0, 0, 0] = np.nan
    np.testing.assert_array_equal(prox_spectral(Z, t, l2_weight)[1], X[1])
    assert np.isnan(prox_spectral(Z, t, l2_weight)[0]).all()


def test_one_step_of_the_iterative_prox_is_soft_thresholding_of_a_shifted_vector():
    z, start, t, l2_weight = np.array([2.0, -1.0, 0.1]), np.array([3.0, 0.0, 4.0]), 0.5, 0.8
    x, n_iter = prox_iterative(z, t, l2_weight, start=start, tol=0.0, max_iter=1)
    shifted = z + l2_weight * t * start / 5
    np.testing.assert_allclose(x, np.sign(shifted) * np.maximum(np.abs(shifted) - t, 0), rtol=1e-14)
    assert n_iter == 1
    x, _ = prox_iterative(z, t, l2_weight, start=start, tol=1e-15, max_iter=1000)
    np.testing.assert_allclose(x, plain_prox_rows(z, t, l2_weight, None, False), rtol=1e-10)


def test_half_precision_is_computed_in_single():
    z = np.random.default_rng(5).standard_normal(9).astype(np.float16)
    x = prox_vector(z, 0.3, 1.0)
    assert x.dtype == np.float16
    np.testing.assert_allclose(x, plain_prox_rows(z.astype(float), 0.3, 1.0, None, False), rtol=2e-3, atol=1e-3)

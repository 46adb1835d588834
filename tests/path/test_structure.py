"""Where paths with groups and bounds begin, by searches over all groups and all columns."""

import numpy as np
import pytest

from ell12 import L12, GroupL12, LogisticLoss, SquaredLoss, stationarity
from ell12.path import alpha_max, one_sparse_fit
from ell12.protocols import with_alpha

RANDOM = np.random.default_rng(3)
A = RANDOM.standard_normal((30, 9)) * np.array([1, 2, 1, 1, 0.5, 1, 1, 3, 1])
B = A @ np.array([1.0, 0, 2, 0, 0, -1, 1, 0.2, 0]) + 0.3 * RANDOM.standard_normal(30)
GROUPS = np.array([0, 1, 0, 2, 3, 3, 1, 2, 2])


def group_fit(columns):
    """The least squares fit by some columns, and its sum of squares."""
    x = np.zeros(9)
    x[columns] = np.linalg.lstsq(A[:, columns], B, rcond=None)[0]
    return x, np.sum((A @ x - B) ** 2)


@pytest.mark.parametrize("weights", [None, np.sqrt([2, 2, 3, 2])])
@pytest.mark.parametrize("l2_weight", [0.0, 0.7])
@pytest.mark.parametrize("loss", [SquaredLoss(A, B), LogisticLoss(A, np.sign(B))])
def test_zero_is_a_solution_from_the_first_strength_of_groups_on(loss, l2_weight, weights):
    top = alpha_max(loss, GroupL12(GROUPS, l2_weight=l2_weight, weights=weights))
    assert stationarity(loss, GroupL12(GROUPS, 1.001 * top, l2_weight, weights=weights), np.zeros(9)) == 0
    assert stationarity(loss, GroupL12(GROUPS, 0.999 * top, l2_weight, weights=weights), np.zeros(9)) > 0


def test_at_l2_weight_one_a_path_begins_at_the_best_single_group():
    best = min((group_fit(np.flatnonzero(g == GROUPS)) for g in range(4)), key=lambda fit: fit[1])[0]
    loss = SquaredLoss(A, B)
    np.testing.assert_allclose(one_sparse_fit(loss, GroupL12(GROUPS)), best, atol=1e-7)
    top = alpha_max(loss, GroupL12(GROUPS))
    assert stationarity(loss, GroupL12(GROUPS, 1.001 * top), best) < 1e-6
    assert stationarity(loss, GroupL12(GROUPS, 0.999 * top), best) > 1e-4


def test_groups_of_one_entry_begin_where_entries_do():
    loss = SquaredLoss(A, B)
    for options in ({}, {"ridge": 0.3}, {"weights": np.r_[0.0, np.ones(8)]}):
        plain, grouped = alpha_max(loss, L12(**options)), alpha_max(loss, GroupL12(np.arange(9), **options))
        np.testing.assert_allclose(grouped, plain, rtol=1e-5)


def test_dependent_columns_in_a_group_do_not_keep_it_from_being_chosen():
    twice = np.c_[A[:, :3], A[:, 0]]
    x = one_sparse_fit(SquaredLoss(twice, A[:, 0]), GroupL12([0, 1, 1, 0]))
    np.testing.assert_allclose(twice @ x, A[:, 0], atol=1e-6)


def test_at_l2_weight_one_a_path_with_signs_begins_at_the_best_allowed_column():
    loss, fits, positive = SquaredLoss(A, B), [], np.arange(9) % 2 == 1
    for k in range(9):
        x = np.zeros(9)
        x[k] = A[:, k] @ B / (A[:, k] @ A[:, k])
        x[k] = max(x[k], 0) if positive[k] else x[k]
        fits.append((np.sum((A @ x - B) ** 2), k, x))
    _, _, best = min(fits)
    np.testing.assert_allclose(one_sparse_fit(loss, L12(positive=positive)), best, atol=1e-7)
    penalty = L12(positive=positive)
    top = alpha_max(loss, penalty)
    assert stationarity(loss, with_alpha(penalty, 1.001 * top), best) < 1e-6
    assert stationarity(loss, with_alpha(penalty, 0.999 * top), best) > 1e-4


def test_only_allowed_directions_count_for_the_first_strength_with_signs():
    gradient, positive = -A.T @ B, np.arange(9) % 2 == 1
    expected = np.abs(gradient)[~positive | (gradient < 0)].max() / 0.5
    np.testing.assert_allclose(alpha_max(SquaredLoss(A, B), L12(l2_weight=0.5, positive=positive)), expected)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="groups has 2 entries"):
        alpha_max(SquaredLoss(A, B), GroupL12([0, 1]))

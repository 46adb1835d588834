"""Where a path begins, against conditions checked on both sides of it and against a search over all columns."""

import numpy as np
import pytest

from ell12 import L12, MCP, GroupL12, LogisticLoss, SquaredLoss, minimize, stationarity
from ell12.path import alpha_grid, alpha_max, falling, one_sparse_fit, squared_loss
from ell12.penalties import WithIntercept
from ell12.protocols import with_alpha


def problem(seed=0, n=40, p=15):
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, p)) * random.uniform(0.3, 3, p)
    return A, A[:, 2] - 0.5 * A[:, 7] + 0.3 * random.standard_normal(n)


def labels(b):
    return np.where(b + np.random.default_rng(9).standard_normal(len(b)) > 0.3, 1.0, -1.0)


def logistic_loss(A, b):
    return LogisticLoss(A, labels(b), scale=1 / len(b))


WEIGHTS = np.linspace(0.6, 2, 15)


@pytest.mark.parametrize(
    "penalty",
    [
        *(L12(l2_weight=w, positive=positive) for w in (0.0, 0.5, 0.9) for positive in (False, True)),
        L12(l2_weight=0.5, weights=WEIGHTS),
        L12(l2_weight=0.5, weights=WEIGHTS, positive=True),
        *(L12(l2_weight=w, ridge=3.0) for w in (0.0, 0.5)),
        MCP(0.3),
        GroupL12(np.arange(15) // 5, 1.5, 0.5),
    ],
    ids=repr,
)
def test_zero_is_a_solution_from_alpha_max_on(penalty):
    A, b = problem()
    loss, zero = SquaredLoss(A, b), np.zeros(15)
    top = alpha_max(loss, penalty)
    assert stationarity(loss, with_alpha(penalty, 1.0001 * top), zero) < 1e-8
    assert stationarity(loss, with_alpha(penalty, 0.999 * top), zero) > 1e-4
    if type(penalty) is not GroupL12:  # a formula
        weights = 1.0 if getattr(penalty, "weights", None) is None else penalty.weights
        gradient = np.maximum(A.T @ b, 0) if getattr(penalty, "positive", False) else np.abs(A.T @ b)
        assert top == pytest.approx((gradient / (weights - getattr(penalty, "l2_weight", 0))).max(), rel=2e-6)


@pytest.mark.parametrize("kind", [squared_loss, logistic_loss])
@pytest.mark.parametrize("ridge", [0.1, 10.0])
def test_with_a_ridge_the_best_shrunk_column_is_a_solution_from_alpha_max_on(kind, ridge):
    A, b = problem(1)
    loss = kind(A, b)
    top = alpha_max(loss, L12(ridge=ridge))
    for factor, largest, smallest in ((1.0001, 1e-8, 0.0), (0.999, np.inf, 5e-4)):
        x = one_sparse_fit(loss, L12(ridge=ridge), factor * top)
        assert np.count_nonzero(x) == 1
        assert smallest <= stationarity(loss, L12(factor * top, ridge=ridge), x) <= largest


def test_the_best_column_under_a_ridge_is_that_of_a_search():
    A, b = problem(2)
    squares, products = (A**2).sum(axis=0) / len(b), A.T @ b / len(b)
    for ridge in (0.01, 1.0, 100.0):
        x = one_sparse_fit(squared_loss(A, b), L12(ridge=ridge), 1.0)
        best = int(np.argmax(products**2 / (squares + ridge)))  # twice the fall, by completing the square
        assert np.flatnonzero(x) == [best]
        assert x[best] == pytest.approx(products[best] / (squares[best] + ridge), rel=1e-8)


def brute_force_column(A, b):
    """The column with the least residual, by least squares on each."""
    rests = [np.linalg.lstsq(A[:, [j]], b, rcond=None)[1][0] for j in range(A.shape[1])]
    return int(np.argmin(rests))


@pytest.mark.parametrize("seed", range(4))
def test_at_one_the_best_single_column_is_a_solution_from_alpha_max_on(seed):
    A, b = problem(seed)
    loss = squared_loss(A, b)
    x = one_sparse_fit(loss, L12())
    assert np.flatnonzero(x) == [brute_force_column(A, b)]
    top = alpha_max(loss, L12())
    assert stationarity(loss, L12(1.0001 * top), x) < 1e-8
    assert stationarity(loss, L12(0.999 * top), x) > 5e-4


@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_an_intercept_is_fitted_first(l2_weight):
    A, b = problem()
    y = labels(b)
    with_ones = np.column_stack([A, np.ones(len(b))])
    loss = LogisticLoss(with_ones, y, scale=1 / len(b))
    top = alpha_max(loss, WithIntercept(L12(l2_weight=l2_weight)))
    for factor, nonzeros in ((1.01, {int(l2_weight)}), (0.7, {2, 3, 4})):
        penalty = WithIntercept(L12(factor * top, l2_weight))
        start = one_sparse_fit(loss, WithIntercept(L12())) if l2_weight == 1 else None
        result = minimize(loss, penalty, start, tol=1e-8)
        assert result.converged
        assert np.count_nonzero(result.x[:-1]) in nonzeros | ({1} if l2_weight < 1 and factor < 1 else set())


def test_entries_of_weight_zero_are_fitted_first():
    A, b = problem()
    weights = np.ones(A.shape[1])
    weights[2] = 0
    loss = squared_loss(A, b)
    top = alpha_max(loss, L12(l2_weight=0.5, weights=weights))
    x = minimize(loss, L12(1.001 * top, 0.5, weights=weights), tol=1e-9).x
    assert np.flatnonzero(x) == [2]
    assert np.count_nonzero(minimize(loss, L12(0.9 * top, 0.5, weights=weights), tol=1e-9).x) == 2


def test_where_one_column_fits_all_any_grid_will_do():
    A, _ = problem()
    assert alpha_max(squared_loss(A, 3 * A[:, 4]), L12()) == 0
    assert alpha_max(squared_loss(A[:, :1], A[:, 4]), L12()) == 0
    assert alpha_max(squared_loss(A, 0 * A[:, 0]), MCP()) == 0
    assert alpha_grid(0.0, 3, 0.01).tolist() == [1.0, 0.1, 0.01]


def test_grids_decrease_by_one_ratio_and_bad_ones_are_errors():
    grid = alpha_grid(3.0, 7, 1e-2)
    assert (grid[0], grid[-1]) == (3.0, pytest.approx(0.03))
    np.testing.assert_allclose(grid[1:] / grid[:-1], 0.01 ** (1 / 6), rtol=1e-12)
    given = np.array([1, 3, 2])
    assert falling(given).tolist() == [3.0, 2.0, 1.0]
    assert given.tolist() == [1, 3, 2]
    with pytest.raises(ValueError, match="eps must lie between 0 and 1"):
        alpha_grid(1.0, eps=1.0)
    with pytest.raises(ValueError, match="alphas must be a vector"):
        falling([])
    with pytest.raises(ValueError, match="alphas must hold finite"):
        falling([1.0, -1.0])


def test_the_best_single_column_is_found_next_to_unpenalised_entries():
    A, b = problem(3)
    weights = np.r_[0.0, np.ones(14)]
    x = one_sparse_fit(SquaredLoss(A, b), L12(weights=weights))
    assert np.count_nonzero(x[1:]) == 1
    columns = np.flatnonzero(x)
    np.testing.assert_allclose(x[columns], np.linalg.lstsq(A[:, columns], b, rcond=None)[0], rtol=1e-6)


def test_the_intercept_of_balanced_classes_takes_no_iterations(monkeypatch):
    """It is zero, and what its gradient is there comes from rounding: no run can make that smaller."""
    steps = []

    def counting(*arguments, **options):
        steps.append(minimize(*arguments, **options))
        return steps[-1]

    monkeypatch.setattr("ell12.path.strengths.minimize", counting)
    random = np.random.default_rng(0)
    X, signs = random.standard_normal((30, 3)), np.repeat([1.0, -1.0], 15)
    A = np.c_[X, np.full(30, 0.1)]
    alpha_max(LogisticLoss(A, random.permutation(signs), scale=1 / 30), WithIntercept(L12(l2_weight=0.5)))
    assert sum(result.n_iter for result in steps) < 10


# Groups and signs, by searches over all groups and all columns

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

"""The best columns of each row, and how good an order is."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import ndcg_score

from ell12.completion import ranking
from ell12.completion.ranking import Recommendations, best_columns, ndcg, ranks_in_lists, ranks_within


def sorted_out(P, Q, n, excluded):
    """All entries of each row sorted: the oracle."""
    scores = np.array([[sum(p * q) for q in Q] for p in P])
    scores[excluded] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("block", [1, 30, 2**22])
def test_the_best_columns_are_those_that_sorting_finds(monkeypatch, block):
    monkeypatch.setattr(ranking, "CHUNK", block)
    random = np.random.default_rng(0)
    P, Q = random.standard_normal((9, 4)), random.standard_normal((12, 4))
    Q[[3, 7, 11]] = Q[3]  # equal scores
    excluded = random.random((9, 12)) < 0.3
    excluded[2] = np.arange(12) != 5  # one is left
    columns, entries = best_columns(P, Q, 4, scipy.sparse.csr_array(excluded))
    expected, scores = sorted_out(P, Q, 4, excluded)
    there = np.isfinite(scores)
    np.testing.assert_array_equal(columns, np.where(there, expected, -1))
    np.testing.assert_allclose(entries, np.where(there, scores, np.nan))
    assert (columns[2] == [5, -1, -1, -1]).all()


def test_neighbours_do_not_change_the_bits_of_a_row():
    random = np.random.default_rng(1)
    P, Q = random.standard_normal((50, 7)), np.repeat(random.standard_normal((40, 7)), 5, axis=0)
    together = best_columns(P, Q, 12)
    for i in (0, 17, 49):
        alone = best_columns(P[i : i + 1], Q, 12)
        assert all(np.array_equal(a[0], t[i]) for a, t in zip(alone, together, strict=True))
    assert (np.diff(together[0].reshape(50, -1)[:, :5], axis=1) == 1).all()  # equal ones in the order of columns


def test_units_do_not_matter_to_the_order():
    random = np.random.default_rng(2)
    P, Q = random.standard_normal((6, 3)), random.standard_normal((30, 3))
    plain = best_columns(P, Q, 5)[0]
    for c in (1e-150, 1e150):
        np.testing.assert_array_equal(best_columns(c * P, Q, 5)[0], plain)


def test_no_columns_and_zero_factors():
    columns, entries = best_columns(np.zeros((2, 3)), np.zeros((4, 3)), 3)
    assert columns.tolist() == [[0, 1, 2]] * 2
    assert (entries == 0).all()
    columns, entries = best_columns(np.ones((2, 3)), np.zeros((0, 3)), 2)
    assert (columns == -1).all()
    assert np.isnan(entries).all()


@pytest.mark.parametrize("n", [1, 3, 10])
def test_ndcg_is_that_of_scikit_learn(n):
    random = np.random.default_rng(n)
    gains, scores = np.abs(random.standard_normal((20, 8))), random.standard_normal((20, 8))
    rows, columns = (index.ravel() for index in np.indices(gains.shape))
    ranks = ranks_within(rows, scores.ravel(), columns)
    assert ndcg(rows, gains.ravel(), ranks, n) == pytest.approx(ndcg_score(gains, scores, k=n))


def test_ndcg_of_lists_is_that_of_scikit_learn_where_what_is_not_rated_gains_nothing():
    random = np.random.default_rng(3)
    scores, rated = random.standard_normal((15, 30)), random.random((15, 30)) < 0.2
    gains = np.where(rated, random.random((15, 30)) + 0.1, 0.0)
    lists = np.argsort(-scores, axis=1)[:, :5]
    rows, columns = np.nonzero(rated)
    found = ndcg(rows, gains[rated], ranks_in_lists(rows, columns, lists, 30), 5)
    some = rated.any(axis=1)
    assert found == pytest.approx(ndcg_score(gains[some], scores[some], k=5))


def test_rows_without_a_gain_do_not_count():
    rows, gains = np.array([0, 0, 1, 1]), np.array([0.0, 0.0, 0.0, 2.0])
    assert ndcg(rows, gains, np.array([0, 1, 0, 1]), 10) == pytest.approx(1 / np.log2(3))
    assert np.isnan(ndcg(rows[:2], gains[:2], np.array([0, 1]), 10))


def test_lists_may_be_empty_and_strangers_are_nowhere_in_them():
    nothing = np.full((2, 3), -1)
    assert ranks_in_lists(np.array([0, 1]), np.array([2, -1]), nothing, 5).tolist() == [3, 3]
    lists = np.array([[4, 0, -1], [1, -1, -1]])
    assert ranks_in_lists(np.array([0, 1, 1]), np.array([0, 1, -1]), lists, 5).tolist() == [1, 0, 3]


@pytest.mark.parametrize(("ids", "nobody"), [(np.array([10, 20, 30]), -1), (np.array(["a", "b", "c"]), "")])
def test_recommendations_as_lines_leave_out_what_fills_up(ids, nobody):
    found = np.array([[2, 0], [1, -1]]), np.array([[7.0, 3.0], [4.0, np.nan]])
    best = Recommendations.of(np.array([5, 6]), ids, found, (1.0, 5.0))
    assert best.items.tolist() == [[ids[2], ids[0]], [ids[1], nobody]]
    assert best.counts.tolist() == [2, 1]
    users, items, scores = best.lines()
    assert (users.tolist(), items.tolist(), scores.tolist()) == (
        [5, 5, 6],
        ids[[2, 0, 1]].tolist(),
        [5.0, 3.0, 4.0],
    )
    frame = best.to_frame() if pytest.importorskip("pandas") else None
    assert frame.columns.tolist() == ["user", "item", "score"]
    assert len(frame) == 3

"""The best columns of each row, and how good an order is."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import ndcg_score

from ell12.completion import ranking
from ell12.completion.ranking import Recommendations, best_columns, ndcg


@pytest.mark.parametrize("block", [1, 30, 2**22])
def test_the_best_columns_are_those_that_sorting_finds(monkeypatch, block):
    monkeypatch.setattr(ranking, "AT_ONCE", block)
    random = np.random.default_rng(0)
    P, Q = random.standard_normal((9, 4)), random.standard_normal((12, 4))
    excluded = random.random((9, 12)) < 0.3
    excluded[2] = np.arange(12) != 5  # one is left
    columns, entries = best_columns(P, Q, 4, scipy.sparse.csr_array(excluded))
    scores = np.where(excluded, -np.inf, P @ Q.T)
    order = np.argsort(-scores, axis=1)[:, :4]
    scores = np.take_along_axis(scores, order, axis=1)
    np.testing.assert_array_equal(columns, np.where(np.isfinite(scores), order, -1))
    np.testing.assert_allclose(entries, np.where(np.isfinite(scores), scores, np.nan))
    assert (columns[2] == [5, -1, -1, -1]).all()


def test_no_columns_and_equal_ones():
    assert best_columns(np.ones((2, 3)), np.ones((4, 3)), 4)[0].tolist() == [[0, 1, 2, 3]] * 2
    columns, entries = best_columns(np.ones((2, 3)), np.zeros((0, 3)), 2)
    assert ((columns == -1) & np.isnan(entries)).all()
    gains = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    assert ndcg(np.full((2, 3), -1), gains) == 0
    assert np.isnan(ndcg(np.zeros((2, 1), dtype=int), 0 * gains))


@pytest.mark.parametrize("n", [1, 5, 30])
def test_ndcg_of_lists_is_that_of_scikit_learn(n):
    random = np.random.default_rng(3)
    scores, rated = random.standard_normal((15, 30)), random.random((15, 30)) < 0.2
    gains = np.where(rated, random.random((15, 30)) + 0.1, 0.0)
    gains[3] = 0.0  # a row without a gain does not count
    some = gains.any(axis=1)
    found = ndcg(np.argsort(-scores, axis=1)[:, :n], scipy.sparse.csr_array(gains))
    assert found == pytest.approx(ndcg_score(gains[some], scores[some], k=n))


@pytest.mark.parametrize(("ids", "nobody"), [(np.array([10, 20, 30]), -1), (np.array(["a", "b", "c"]), "")])
def test_recommendations_as_a_frame_leave_out_what_fills_up(ids, nobody):
    found = np.array([[2, 0], [1, -1]]), np.array([[7.0, 3.0], [4.0, np.nan]])
    best = Recommendations.of(np.array([5, 6]), ids, found)
    assert best.items.tolist() == [[ids[2], ids[0]], [ids[1], nobody]]
    assert best.counts.tolist() == [2, 1]
    frame = best.to_frame()
    assert frame.to_dict("list") == {"user": [5, 5, 6], "item": ids[[2, 0, 1]].tolist(), "score": [7.0, 3.0, 4.0]}

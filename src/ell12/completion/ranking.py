"""Ratings as a product of factors: the best columns of each row, and how good lists are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse.linalg

from ell12.completion.gpu_entries import AT_ONCE
from ell12.completion.hidden_entries import HELD_OUT
from ell12.completion.observed import Observed
from ell12.protocols import Array


def best_columns(P: Array, Q: Array, n: int, excluded: Any = None) -> tuple[Array, Array]:
    """The n columns with the largest entries in each row of ``P Q'``, the best first.

    Parameters
    ----------
    P, Q : arrays of shapes (m, k) and (c, k)
        Factors.
    n : int
        How many.
    excluded : CSR array of shape (m, c), optional
        What is stored in it is left out.

    Returns
    -------
    columns, entries : arrays of shape (m, n)
        -1 and NaN where a row has fewer columns to choose from.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion.ranking import best_columns
    >>> best_columns(np.array([[1.0]]), np.array([[2.0], [5.0], [3.0]]), 2)
    (array([[1, 2]]), array([[5., 3.]]))
    """
    columns, entries = np.full((len(P), n), -1, dtype=np.int64), np.full((len(P), n), np.nan)
    kept, size = min(n, len(Q)), max(AT_ONCE // max(len(Q), 1), 1)  # all rows at once would fill the memory
    for start in range(0, len(P) if kept else 0, size):
        part = slice(start, start + size)
        scores = P[part] @ Q.T
        if excluded is not None:
            left_out = excluded[part].tocoo()
            scores[left_out.row, left_out.col] = -np.inf
        top = np.sort(np.argpartition(scores, -kept, axis=1)[:, -kept:], axis=1)
        found = np.take_along_axis(scores, top, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        top, found = (np.take_along_axis(numbers, order, axis=1) for numbers in (top, found))
        there = np.isfinite(found)
        columns[part, :kept], entries[part, :kept] = np.where(there, top, -1), np.where(there, found, np.nan)
    return columns, entries


def ndcg(lists: Array, gains: Any) -> float:
    """The normalised discounted cumulative gain of lists, averaged over the rows with a gain.

    Of a row it is ``sum gain / log2(rank + 2)`` over its list (ranks from 0), divided by the same for the best
    list of this length.

    Parameters
    ----------
    lists : array of shape (m, n)
        Columns, the best first; -1 is none.
    gains : CSR array of shape (m, c)
        At least 0; what is not stored gains nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from ell12.completion.ranking import ndcg
    >>> round(ndcg(np.array([[0, 1]]), csr_array([[0.0, 3.0]])), 4)
    0.6309
    """
    m, n = lists.shape
    discounts = 1 / np.log2(np.arange(n) + 2)
    rows = np.repeat(np.arange(m), np.diff(gains.indptr))
    order = np.lexsort((-gains.data, rows))
    ranks = np.arange(rows.size) - gains.indptr[rows]  # of the gains in falling order
    among = ranks < n
    ideal = np.bincount(rows[among], gains.data[order][among] * discounts[ranks[among]], minlength=m)
    found = np.where(lists >= 0, gains[np.arange(m)[:, None], lists].toarray(), 0.0) @ discounts
    counted = ideal > 0
    return float(np.mean(found[counted] / ideal[counted])) if counted.any() else float("nan")


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Lists of items: the best ones for each user, or the most similar ones.

    Attributes
    ----------
    users : array of ids
        Whom, or what, the rows are for.
    items : array of shape (len(users), n)
        Ids, the best first; -1, or "", where there are fewer than n.
    scores : array of shape (len(users), n)
        What speaks for them; NaN where there are fewer.
    """

    users: Array
    items: Array
    scores: Array

    @classmethod
    def of(cls, users: Array, ids: Array, found: tuple[Array, Array]) -> Recommendations:
        """From positions among ids, and scores."""
        nobody = np.array("" if ids.dtype.kind == "U" else -1, dtype=ids.dtype)
        return cls(users, np.append(ids, nobody)[found[0]], found[1])  # -1 is the last

    @property
    def counts(self) -> Array:
        """How many items each user has."""
        return np.sum(~np.isnan(self.scores), axis=1)

    def to_frame(self) -> Any:
        """The same as a pandas DataFrame with columns user, item and score, the best of each user first."""
        import pandas

        there = ~np.isnan(self.scores)
        columns = {"user": np.repeat(self.users, self.counts)}
        return pandas.DataFrame(columns | {"item": self.items[there], "score": self.scores[there]})


@dataclass(frozen=True, eq=False)
class Scores:
    """``P Q'`` says how good columns are for rows; the last row of P and of Q stands for all unknown ids, -1."""

    P: Array
    Q: Array

    @classmethod
    def of(cls, offsets: Any, W: Array, V: Array) -> Scores:
        """The completed matrix ``W V'`` with its offsets, which are all that an unknown id has."""
        rows, columns = (
            np.zeros(len(F)) if bias is None else bias for F, bias in ((W, offsets.rows), (V, offsets.columns))
        )
        P = np.column_stack([W, offsets.mean + rows, np.ones(len(W))])
        Q = np.column_stack([V, np.ones(len(V)), columns])
        nothing = np.zeros(V.shape[1])
        return cls(np.vstack([P, [*nothing, offsets.mean, 1.0]]), np.vstack([Q, [*nothing, 1.0, 0.0]]))


@dataclass(frozen=True, eq=False)
class Interest:
    """How likely users are to take items up and like them: singular vectors of the ratings, zero where unknown.

    A user is interested in what ``r V V'`` is large for, r being the user's ratings. The rank is the one whose
    lists find most of some hidden ratings.

    References
    ----------
    Cremonesi, Koren & Turrin, Performance of recommender algorithms on top-N recommendation tasks, RecSys 2010.
    """

    V: Array
    zero: float  # the rating that no rating counts as: a quarter of the range below the lowest

    @classmethod
    def of(cls, observed: Observed) -> Interest:
        """From all ratings, of a rank that hidden ones choose: it doubles as long as the lists get better."""
        low, high = float(observed.values.min()), float(observed.values.max())
        train, hidden = observed.split(HELD_OUT, 0)
        interest, best = cls(np.zeros((observed.shape[1], 1)), low - ((high - low) / 4 or 1.0)), -np.inf
        users, gains = np.unique(hidden.rows), hidden.sparse(hidden.values - low)
        R, rank = interest.matrix(train)[users], 1
        while rank < min(observed.shape):
            V = interest._vectors(train, rank)
            found = ndcg(best_columns(R @ V, V, 10, R)[0], gains[users])
            if not found > best:
                break
            best, rank = found, 2 * rank
        return replace(interest, V=interest._vectors(observed, max(rank // 2, 1)))

    def matrix(self, observed: Observed) -> Any:
        """Ratings as a sparse matrix."""
        return observed.sparse(observed.values - self.zero)

    def scores(self, observed: Observed) -> Scores:
        """Those of some users by their ratings; a user without any has the mean of all."""
        P = self.matrix(observed) @ self.V
        P[np.diff(observed.row_starts) == 0] = P.mean(axis=0)
        return Scores(np.vstack([P, P.mean(axis=0)]), np.vstack([self.V, np.zeros((1, self.V.shape[1]))]))

    def _vectors(self, observed: Observed, rank: int) -> Array:
        R = self.matrix(observed)
        if rank < min(R.shape):
            return scipy.sparse.linalg.svds(R, rank, v0=np.ones(min(R.shape)), return_singular_vectors="vh")[2].T
        return np.linalg.svd(R.toarray(), full_matrices=False)[2].T[:, :rank]

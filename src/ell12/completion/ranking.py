"""Ratings as a product of factors: the best columns of each row, and how good an order is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.completion.hidden_entries import HELD_OUT
from ell12.completion.low_rank import CHUNK, LowRank, gathered_sums_of_products
from ell12.completion.observed import Observed
from ell12.completion.offsets import Offsets
from ell12.completion.singular_vectors import SPARE, leading_svd, random_block
from ell12.completion.squared_error import regressed_rows
from ell12.protocols import Array

INTEREST_PASSES = 8  # of subspace iteration


def best_columns(P: Array, Q: Array, n: int, excluded: Any = None) -> tuple[Array, Array]:
    """The n columns with the largest entries in each row of ``P Q'``, the best first.

    Of equal entries the one of the lower column comes first. Each entry is summed in the same order whatever
    stands next to it, so that the answer for a row does not depend on the other rows.

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
    columns = np.full((len(P), n), -1, dtype=np.int64)
    entries = np.full((len(P), n), np.nan)
    size = max(CHUNK // max(len(Q), 1), 1)  # all rows at once would fill the memory
    rough_P, rough_Q = _directions(P), _directions(Q, together=True)
    for start in range(0, len(P) if len(Q) else 0, size):
        part = slice(start, min(start + size, len(P)))
        rows, chosen = _likely(rough_P[part], rough_Q, n, None if excluded is None else excluded[part])
        exact = gathered_sums_of_products(P[part], Q, rows, chosen)
        ranks = ranks_within(rows, exact, chosen)
        kept = ranks < n
        columns[part][rows[kept], ranks[kept]] = chosen[kept]
        entries[part][rows[kept], ranks[kept]] = exact[kept]
    return columns, entries


def _directions(F: Array, together: bool = False) -> Array:
    """Rows of length one, or at most one, in single precision: enough to tell what may be among the best."""
    lengths = np.linalg.norm(F, axis=1, keepdims=True)
    lengths = np.max(lengths, initial=0.0) if together else lengths
    return (F / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _likely(P: Array, Q: Array, n: int, excluded: Any) -> tuple[Array, Array]:
    """Places among which the n largest of each row are for sure, however the product was rounded."""
    scores = P @ Q.T
    if excluded is not None:
        scores[np.repeat(np.arange(len(P)), np.diff(excluded.indptr)), excluded.indices] = -np.inf
    kept = min(n, len(Q))
    least = np.partition(scores, -kept, axis=1)[:, -kept]
    rounding = 4 * (P.shape[1] + 1) * np.finfo(np.float32).eps  # that of a product of vectors of length one
    least = np.maximum(least - rounding, np.float32(-2))  # below all of them, but not what is left out
    rows, columns = np.nonzero(scores >= least[:, None])
    return rows, columns


def ranks_within(rows: Array, scores: Array, ties: Array) -> Array:
    """The position, from 0, of each entry among those of its row by falling score; equal ones by rising ``ties``.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion.ranking import ranks_within
    >>> ranks_within(np.array([0, 0, 1]), np.array([2.0, 3.0, 1.0]), np.array([0, 1, 2]))
    array([1, 0, 0])
    """
    order = np.lexsort((ties, -scores, rows))
    counts = np.bincount(rows)
    starts = np.cumsum(counts) - counts
    ranks = np.empty(rows.size, dtype=np.int64)
    ranks[order] = np.arange(rows.size) - starts[rows[order]]
    return ranks


def ndcg(rows: Array, gains: Array, ranks: Array, n: int) -> float:
    """The normalised discounted cumulative gain at n, averaged over the rows with a gain.

    Of a row it is ``sum gain / log2(rank + 2)`` over its entries of the n first ranks (from 0), divided by the
    same for the ranks that its gains would give. A row all of whose gains are zero has no order that is better
    than another, and does not count.

    Parameters
    ----------
    rows, gains, ranks : arrays of one length
        One entry for each known gain, at least 0; a rank of n or more is one that was not reached.
    n : int
        How many ranks count.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.completion.ranking import ndcg
    >>> rows, gains = np.array([0, 0]), np.array([0.0, 3.0])
    >>> ndcg(rows, gains, np.array([1, 0]), 10), round(ndcg(rows, gains, np.array([0, 1]), 10), 4)
    (1.0, 0.6309)
    """
    found, ideal = (
        np.bincount(rows, np.where(positions < n, gains / np.log2(positions + 2.0), 0.0))
        for positions in (ranks, ranks_within(rows, gains, ranks))
    )
    counted = ideal > 0
    return float(np.mean(found[counted] / ideal[counted])) if counted.any() else float("nan")


def ranks_in_lists(rows: Array, columns: Array, lists: Array, n_columns: int) -> Array:
    """Where each pair of row and column stands in the list of its row; as far as the list is long if nowhere."""
    n = lists.shape[1]
    keys = (np.arange(len(lists), dtype=np.int64)[:, None] * n_columns + lists)[lists >= 0]
    positions = np.broadcast_to(np.arange(n), lists.shape)[lists >= 0]
    order = np.argsort(keys)
    keys, positions = keys[order], positions[order]
    wanted = rows.astype(np.int64) * n_columns + columns
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    if keys.size == 0:
        return np.full(rows.size, n)
    return np.where((columns >= 0) & (keys[at] == wanted), positions[at], n)


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
    def of(
        cls, users: Array, ids: Array, found: tuple[Array, Array], limits: tuple[float, float]
    ) -> Recommendations:
        """From positions among ids, and scores that are to be cut."""
        positions, scores = found
        nobody = np.array("" if ids.dtype.kind == "U" else -1, dtype=ids.dtype)
        items = np.append(ids, nobody)[positions]  # -1 is the last
        return cls(users, items, np.clip(scores, *limits))

    @property
    def counts(self) -> Array:
        """How many items each user has."""
        return np.sum(~np.isnan(self.scores), axis=1)

    def lines(self) -> tuple[Array, Array, Array]:
        """Users, items and scores as three columns, the best of each user first."""
        there = ~np.isnan(self.scores)
        return np.repeat(self.users, self.counts), self.items[there], self.scores[there]

    def to_frame(self) -> Any:
        """The same as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(dict(zip(("user", "item", "score"), self.lines(), strict=True)))


@dataclass(frozen=True, eq=False)
class Scores:
    """``P Q'`` is the completed matrix; the last row of P and of Q stands for all unknown ids, position -1.

    A user or an item without any rating is unknown: the mean and the bias of the other predict. Beside the
    low-rank factors there are four columns: offsets of the row, of the column, the column's biases for unknown
    rows and the row's for strange columns.
    """

    P: Array
    Q: Array

    @classmethod
    def of(cls, completion: Any, biases: Offsets, seen: tuple[Array, Array]) -> Scores:
        """The scores of a fit; ``seen`` says which rows and which columns have ratings."""
        x, offsets = completion.x, completion.offsets
        columns_seen = np.append(seen[1], False)[:, None]
        of_column = np.append(_sized(offsets.columns, x.shape[1]), 0.0)[:, None]
        bias = biases.mean + np.append(_sized(biases.columns, x.shape[1]), 0.0)[:, None]
        V = np.vstack([x.V, np.zeros((1, x.rank))])
        Q = np.hstack([V * columns_seen, columns_seen, of_column * columns_seen, bias, ~columns_seen])
        return cls(np.vstack([_rows(x.weighted, offsets, biases, seen[0]), _unknown(x.rank)]), Q)

    def pairs(self, rows: Array, columns: Array) -> Array:
        """The entries at pairs of positions."""
        rows, columns = np.where(rows < 0, len(self.P) - 1, rows), np.where(columns < 0, len(self.Q) - 1, columns)
        return gathered_sums_of_products(self.P, self.Q, rows, columns)

    def with_rows(self, completion: Any, biases: Offsets, observed: Observed) -> Scores:
        """The same for other rows, each from its own known entries, as `L12Imputer.transform` completes rows."""
        offsets, W, _ = regressed_rows(completion, observed)
        seen = np.diff(observed.row_starts) > 0
        P = _rows(W * np.sqrt(completion.x.s), offsets, biases.for_rows(observed), seen)
        return Scores(np.vstack([P, self.P[-1:]]), self.Q)


INTEREST_RANKS = (1, 2, 4, 8, 16, 32)
MOST_LISTS = 1000  # The users whose lists choose among these.


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
    low: float
    high: float

    @classmethod
    def of(cls, observed: Observed) -> Interest:
        """From all ratings, of a rank that hidden ones choose."""
        low, high = float(observed.values.min()), float(observed.values.max())
        train, hidden = observed.split(HELD_OUT, 0)
        whole = cls(np.zeros((observed.shape[1], 0)), low, high)
        if train.n_observed == 0 or hidden.n_observed == 0:
            return replace(whole, V=whole._vectors(observed, 1))
        V, R = whole._vectors(train, max(INTEREST_RANKS)), whole.matrix(train)
        users = np.unique(hidden.rows)[:MOST_LISTS]
        wanted = hidden.sparse(hidden.values - low)[users].tocoo()
        found = {}
        for rank in INTEREST_RANKS:
            lists, _ = best_columns(R[users] @ V[:, :rank], V[:, :rank], 10, R[users])
            ranks = ranks_in_lists(wanted.row, wanted.col, lists, len(V))
            found[rank] = np.nan_to_num(ndcg(wanted.row, wanted.data, ranks, 10))
        return replace(whole, V=whole._vectors(observed, max(found, key=lambda rank: found[rank])))

    def matrix(self, observed: Observed) -> Any:
        """Ratings as a sparse matrix, the lowest above zero by a quarter of their range."""
        return observed.sparse(observed.values - self.low + ((self.high - self.low) / 4 or 1.0))

    def scores(self, observed: Observed) -> Scores:
        """Those of some users by their ratings; a user without any has the mean of all."""
        P = self.matrix(observed) @ self.V
        P[np.diff(observed.row_starts) == 0] = P.mean(axis=0)
        return Scores(np.vstack([P, P.mean(axis=0)]), np.vstack([self.V, np.zeros((1, self.V.shape[1]))]))

    def _vectors(self, observed: Observed, rank: int) -> Array:
        block = random_block(np.random.default_rng(0), observed.shape[1], rank + SPARE, np.float64)
        return leading_svd(self.matrix(observed), block, passes=INTEREST_PASSES)[2][:, :rank]


def _rows(W: Array, offsets: Offsets, biases: Offsets, seen: Array) -> Array:
    seen = seen[:, None]
    level, bias = (off.mean + _sized(off.rows, len(W))[:, None] for off in (offsets, biases))
    return np.hstack([W * seen, level * seen, seen, ~seen, bias * seen])


def _unknown(rank: int) -> Array:
    """The row of an unknown user."""
    return np.concatenate([np.zeros(rank + 2), [1.0, 0.0]])[None, :]


def _sized(numbers: Any, size: int) -> Array:
    return np.zeros(size) if numbers is None else np.asarray(numbers)


def padded(x: LowRank, rows: Array, columns: Array, shape: tuple[int, int]) -> LowRank:
    """A low-rank matrix whose rows and columns stand at positions of a larger one, zero elsewhere."""
    U, V = (np.zeros((size, x.rank), dtype=x.dtype) for size in shape)
    U[rows], V[columns] = x.U, x.V
    return LowRank(U, x.s, V)


def clip_range(clip: Any, values: Array) -> tuple[float, float]:
    """The range that predictions are cut to."""
    if clip is None:
        return -math.inf, math.inf
    if isinstance(clip, str) and clip == "observed":
        return float(values.min()), float(values.max())
    if np.shape(clip) != (2,) or not all(map(is_number, clip)) or not clip[0] < clip[1]:
        raise ValueError(f"clip must be a pair (low, high), 'observed' or None; got {clip!r}")
    return float(clip[0]), float(clip[1])

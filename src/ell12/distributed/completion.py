"""Low-rank completion of ratings that live on workers: the loss whose sweeps are passes over blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ell12.checks import is_finite_number
from ell12.completion import AlternatingLeastSquares, Completion, LowRank
from ell12.completion.row_solves import row_terms
from ell12.completion.squared_error import MatrixLoss
from ell12.distributed.executor import Blocks
from ell12.distributed.rating_choices import CENTERS, fit_remote_offsets, remote_noise_alpha, without_offsets
from ell12.distributed.ratings import (
    describe,
    half_sweep,
    residual_gram,
    residual_products,
    residual_times,
    times_residual,
)
from ell12.distributed.ratings_source import ratings_blocks
from ell12.minimization import Result, minimize
from ell12.minimization.run import collected
from ell12.operators.spectrum import norm_from_gram
from ell12.penalties import SpectralL12
from ell12.protocols import Array, Point

ELSEWHERE = "what is as long as the ratings stays on the workers; use AlternatingLeastSquares"
SOLVED_AT_ONCE = 2**16  # The equations of this many columns are in memory at a time.
# More rows or columns than this, and than 1000 for each rating, are keys of another kind and no numbers from 0.
FEW_ROWS, SPREAD = 2**20, 1000


def completion_loss(
    ratings: Any,
    *,
    names: tuple[str, str, str] = ("user", "item", "value"),
    shape: tuple[int | None, int | None] = (None, None),
    persist: bool = True,
) -> DistributedCompletionLoss:
    """``f(X) = 1/2 ||S(X - O)||_F^2`` of ratings in blocks of rows, for `ell12.AlternatingLeastSquares`.

    A sweep is two passes. In the first each block solves for its rows against the factor of the columns, which is
    sent to all, and the k x k matrices and right-hand sides of the columns are added up; in the second the loss
    and the products of its gradient with the factors. The factors stay in this process; nothing as long as the
    ratings moves.

    Parameters
    ----------
    ratings : dask DataFrame, path or paths of Parquet files, or dask array of sparse chunks
        A table has a column each for rows (users), columns (items) and values; users and items are numbers
        counted from 0. All ratings of a user must be in one partition: ``ratings.shuffle("user")`` sees to that.
        In a sparse matrix what is stored is known.
    names : three str, default ("user", "item", "value")
        What the columns of the table are called.
    shape : pair of int, default (None, None)
        Of the whole matrix; found out where None.
    persist : bool, default True
        Whether workers keep the blocks, in memory or spilled; if not, every pass reads them anew.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> import numpy as np
    >>> from ell12 import AlternatingLeastSquares, SpectralL12, minimize
    >>> from ell12.distributed import completion_loss
    >>> rows, columns = np.divmod(np.arange(11), 4)
    >>> table = pd.DataFrame({"user": rows, "item": columns, "value": (rows + 1.0) * (columns + 1.0)})
    >>> loss = completion_loss(dd.from_pandas(table, npartitions=1))
    >>> result = minimize(loss, SpectralL12(0.1), solver=AlternatingLeastSquares(1))
    >>> result.x.entries([2], [3]).round(2)
    array([12.])
    """
    return DistributedCompletionLoss(RemoteEntries.of(*ratings_blocks(ratings, names, shape, persist)))


def complete_matrix(
    ratings: Any,
    alpha: float | str = "noise",
    *,
    max_rank: int = 8,
    l2_weight: float | str = "auto",
    center: str | None = "biases",
    names: tuple[str, str, str] = ("user", "item", "value"),
    shape: tuple[int | None, int | None] = (None, None),
    persist: bool = True,
    random_state: Any = 0,
    tol: float = 1e-3,
    **options: Any,
) -> Completion:
    """`ell12.complete_matrix` for ratings on workers, by alternating least squares.

    Parameters
    ----------
    ratings, names, shape, persist
        As in `completion_loss`.
    alpha : float or {"noise"}, default "noise"
        Strength, above 0. "noise" is what noise of the size of a rank-one fit's residual would ask for, found in
        a dozen passes at most. Hidden entries are not asked: that would be a search of hundreds of passes.
    max_rank : int, default 8
        The largest rank allowed. Where it binds the status is ``RANK_CAPPED``.
    l2_weight : float or {"auto"}, default "auto"
        Weight of the subtracted norm: 1 is l1-2, 0 the nuclear norm. "auto" is 0.5, as for ratings in memory.
    center : {"biases", "mean", None}, default "biases"
        What is taken off before, and comes back in ``offsets``: the mean with biases of rows and columns, found in
        11 passes; the mean; or nothing.
    random_state : int or Generator, default 0
        Of the start.
    tol : float, default 1e-3
        Stop when the largest violation of the first-order condition is at most ``tol * alpha``.
    **options
        Further arguments of `ell12.minimize`.

    Returns
    -------
    Completion
        The same as in memory: ``x`` is a `ell12.LowRank`, with ``offsets`` and ``predict(rows, columns)``.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> import numpy as np
    >>> from ell12.distributed import complete_matrix
    >>> rows, columns = np.divmod(np.arange(11), 4)
    >>> table = pd.DataFrame({"user": rows, "item": columns, "value": (rows + 1.0) * (columns + 1.0)})
    >>> ratings = dd.from_pandas(table, npartitions=1)
    >>> fit = complete_matrix(ratings, 0.1, max_rank=1, l2_weight=1.0, center=None)
    >>> fit.predict([2], [3]).round(2)
    array([12.])
    """
    _check_choices(alpha, l2_weight, center)
    weight = 0.5 if isinstance(l2_weight, str) else float(l2_weight)
    solver = AlternatingLeastSquares(max_rank, random_state=random_state)
    entries = RemoteEntries.of(*ratings_blocks(ratings, names, shape, persist))
    offsets = fit_remote_offsets(entries, center)
    if center is not None:
        entries = without_offsets(entries, offsets, persist)
    if isinstance(alpha, str):
        alpha = remote_noise_alpha(entries, max_rank, weight)
    penalty = SpectralL12(alpha, weight)
    result = minimize(DistributedCompletionLoss(entries), penalty, solver=solver, tol=tol, **collected(options))
    parts = {part.name: getattr(result, part.name) for part in fields(Result)}
    chosen: dict[str, Any] = {"alpha": penalty.alpha, "l2_weight": weight, "max_rank": max_rank, "center": center}
    return Completion(**parts, offsets=offsets, **chosen)


def _check_choices(alpha: Any, l2_weight: Any, center: Any) -> None:
    if not is_finite_number(alpha) and not (isinstance(alpha, str) and alpha == "noise"):
        raise ValueError(f"alpha must be a number > 0 or 'noise', got {alpha!r}")
    if not is_finite_number(l2_weight) and not (isinstance(l2_weight, str) and l2_weight == "auto"):
        raise ValueError(f"l2_weight must be a number >= 0 or 'auto', got {l2_weight!r}")
    if not (center is None or isinstance(center, str)) or center not in CENTERS:
        raise ValueError(f"center must be one of {', '.join(map(repr, CENTERS))}; got {center!r}")


class DistributedCompletionLoss(MatrixLoss):
    """The loss of `completion_loss`."""

    def __init__(self, entries: RemoteEntries) -> None:
        self.observed: Any = entries
        self._kept: list[_MatrixEvaluation] = []

    @property
    def passes(self) -> int:
        """How many passes over the blocks were made."""
        return self.observed.blocks.passes

    def point(self, x: LowRank) -> Point:
        """X alone: its entries at the known places stay on the workers."""
        return Point(x, Elsewhere())

    def value(self, point: Point) -> float:
        """Half the sum of the squared errors; a pass where it is not known yet."""
        return self._evaluation(point.x).value

    def gradient(self, point: Point) -> Array:
        """``S(X - O)``, known by its products."""
        return RemoteResidual(self.observed, self._evaluation(point.x))

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; two passes."""
        gradient = self.gradient(base)
        linear = sum(
            sign * float(np.sum(x.weighted * (gradient @ x.V))) for sign, x in ((1, point.x), (-1, base.x))
        )
        return max(self.value(point) - self.value(base) - linear, 0.0)

    def make_sweep(self, penalty: Any, n_threads: int) -> RemoteSweep:  # noqa: ARG002
        """The sweep of `ell12.AlternatingLeastSquares`, on the workers."""
        return RemoteSweep(self.observed, penalty)

    def _evaluation(self, x: LowRank) -> _MatrixEvaluation:
        for known in self._kept:
            if known.x is x:
                return known
        self._kept = [*self._kept[-2:], self.observed.evaluate(x)]
        return self._kept[-1]


class Elsewhere:
    """The prediction of entries on workers: not to be computed with."""

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(ELSEWHERE)

    __add__ = __sub__ = __rmul__ = _refuse


@dataclass(frozen=True, eq=False)
class _MatrixEvaluation:
    """The loss at X, and its gradient's products with the factors of X."""

    x: LowRank
    value: float
    left: Array  # G V
    right: Array  # G'U


@dataclass(frozen=True, eq=False)
class RemoteEntries:
    """Known entries on workers: what `ell12.Observed` is for those in memory, as far as sweeps ask for it."""

    blocks: Blocks
    shape: tuple[int, int]
    block_rows: list[Array]  # which rows each block holds
    n_observed: int
    mean: float  # as they came
    values: Array  # none: their dtype

    @classmethod
    def of(cls, blocks: Blocks, shape: tuple[int | None, int | None]) -> RemoteEntries:
        """Find out, in one pass, which rows the blocks hold."""
        found = blocks.total("describe", describe)
        last, count, size, total, square = found.sums
        rows = [found.rows[number] for number in range(len(blocks.blocks))]
        if count == 0:
            raise ValueError("ratings has no known entry: there is nothing to complete from")
        if not math.isfinite(square):
            raise ValueError("ratings is too large for the squares of its entries; scale it first")
        _check_apart(rows)
        m = shape[0] if shape[0] is not None else 1 + max(int(held.max(initial=-1)) for held in rows)
        n = shape[1] if shape[1] is not None else 1 + last.last
        for name, given, own in (("rows", shape[0], m), ("columns", shape[1], n)):
            if given is None and own > FEW_ROWS + SPREAD * count:
                raise ValueError(
                    f"the numbers of {name} run up to {own - 1} for {count} ratings: count them from 0, as"
                    " pandas.factorize does, or give the shape"
                )
        dtype = np.float32 if size.last == 4 else np.float64
        return cls(blocks, (m, n), rows, count, total / count, np.zeros(0, dtype=dtype))

    def __repr__(self) -> str:
        return f"RemoteEntries({self.n_observed} of {self.shape[0]} x {self.shape[1]}, {self.values.dtype})"

    @property
    def rows(self) -> Array:
        """Not to be had."""
        raise TypeError(ELSEWHERE)

    columns = rows

    @property
    def fraction(self) -> float:
        """The share of the entries that is known."""
        return self.n_observed / math.prod(self.shape)

    def sparse(self) -> RemoteResidual:
        """The known entries as a matrix: what the zero matrix leaves, with the other sign."""
        zero = LowRank.zeros(self.shape, like=self.values)
        return RemoteResidual(self, _MatrixEvaluation(zero, math.nan, zero.U, zero.V), sign=-1.0)

    def cut(self, W: Array) -> list[Array]:
        """The rows of W that belong to each block."""
        return [W[held] for held in self.block_rows]

    def join(self, parts: dict[int, Array], out: Array) -> Array:
        """Rows that came from the blocks, at their places in ``out``."""
        for number, part in parts.items():
            out[self.block_rows[number]] = part
        return out

    def evaluate(self, x: LowRank) -> _MatrixEvaluation:
        """One pass."""
        found = self.blocks.total("residual", residual_products, x.s, x.V, each=self.cut(x.U))
        value, right = found.sums
        return _MatrixEvaluation(x, value, self.join(found.rows, np.zeros_like(x.U)), right)


@dataclass(frozen=True, eq=False)
class RemoteResidual:
    """``sign S(X - O)`` as an operator; its products with the factors of X are known, others are a pass each."""

    entries: RemoteEntries
    at: _MatrixEvaluation
    sign: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.entries.shape

    @property
    def T(self) -> _Transposed:
        """The transpose."""
        return _Transposed(self)

    def __matmul__(self, B: Array) -> Array:
        if B is self.at.x.V:
            return self.sign * self.at.left
        x, entries = self.at.x, self.entries
        found = entries.blocks.total("product", residual_times, x.V, B, each=entries.cut(x.weighted))
        return self.sign * entries.join(found.rows, np.zeros((self.shape[0], *B.shape[1:]), dtype=B.dtype))

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float = 0.0) -> float:
        """The spectral norm of ``(I - U U') G (I - V V')``, by Lanczos: a pass for each product with ``G'G``."""
        x, entries = self.at.x, self.entries
        rows = entries.cut(x.weighted)
        right = None if U is None else self.T @ U

        def gram(v: Array) -> Array:
            v = v if V is None else v - V @ (V.T @ v)
            product = entries.blocks.total("gram-product", residual_gram, x.V, v, each=rows)
            if right is not None:
                product = product - right @ (right.T @ v)
            return product if V is None else product - V @ (V.T @ product)

        start = np.random.default_rng(0).standard_normal(self.shape[1]).astype(x.dtype)
        return norm_from_gram(gram, start, enough)


@dataclass(frozen=True, eq=False)
class _Transposed:
    G: RemoteResidual

    @property
    def T(self) -> RemoteResidual:
        return self.G

    def __matmul__(self, C: Array) -> Array:
        x, entries = self.G.at.x, self.G.entries
        if C is x.U:
            return self.G.sign * self.G.at.right
        each = list(zip(entries.cut(x.weighted), entries.cut(C), strict=True))
        return self.G.sign * entries.blocks.total("product", times_residual, x.V, each=each)


class RemoteSweep:
    """The rows on their workers, then the columns here, from what the rows say of them: one pass."""

    def __init__(self, entries: RemoteEntries, penalty: Any) -> None:
        self.entries, self.penalty = entries, penalty

    def __call__(self, x: LowRank) -> LowRank:
        """The matrix after the sweep, its factors balanced."""
        entries, root = self.entries, np.sqrt(x.s)
        W, H = x.U * root, x.V * root
        ridge, prior = row_terms(W, H, self.penalty)
        found = entries.blocks.total("sweep", half_sweep, H, ridge, each=entries.cut(prior))
        W = entries.join(found.rows, prior / ridge)  # which is what rows without any entry become
        grams, rights = found.sums
        ridge, prior = row_terms(H, W, self.penalty)
        return LowRank.from_factors(W, solve_columns(grams, rights, ridge, prior))


def solve_columns(grams: Array, rights: Array, ridge: float, prior: Array) -> Array:
    """Solve ``(G_j + ridge I) h_j = right_j + prior_j`` for each column j, G_j given by its upper triangle."""
    rank = prior.shape[1]
    upper = np.triu_indices(rank)
    H = np.empty_like(prior)
    for start in range(0, len(prior), SOLVED_AT_ONCE):
        part = slice(start, start + SOLVED_AT_ONCE)
        matrices = np.zeros((len(prior[part]), rank, rank), dtype=prior.dtype)
        matrices[:, upper[0], upper[1]] = matrices[:, upper[1], upper[0]] = grams[part]
        matrices += ridge * np.eye(rank, dtype=prior.dtype)
        H[part] = np.linalg.solve(matrices, (rights[part] + prior[part])[:, :, None])[:, :, 0]
    return H


def _check_apart(rows: Sequence[Array]) -> None:
    """Raise where two blocks hold the same row."""
    every = np.concatenate(rows)
    owner = np.repeat(np.arange(len(rows)), [held.size for held in rows])
    order = np.argsort(every, kind="stable")
    twice = np.flatnonzero(np.diff(every[order]) == 0)
    if twice.size:
        one, other = owner[order[twice[0]]], owner[order[twice[0] + 1]]
        raise ValueError(
            f"row {every[order[twice[0]]]} has entries in block {one} and in block {other}; all entries of a row"
            " must be in one block: use ratings.shuffle on the column of the rows"
        )

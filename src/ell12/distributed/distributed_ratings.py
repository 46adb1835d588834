"""Alternating least squares with ratings on workers: a half-sweep is one map over blocks of rows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import dask.dataframe as dd
import numpy as np
from dask.delayed import delayed
from scipy.sparse.linalg import LinearOperator

from ell12.checks import naming
from ell12.completion import AlternatingLeastSquares, Completion, LowRank, Observed, Offsets
from ell12.completion.hidden_entries import alpha_of_noise
from ell12.completion.low_rank import sums_of_products
from ell12.completion.offsets import SHRINKAGE, SWEEPS
from ell12.completion.squared_error import MatrixLoss, row_terms, solve_rows
from ell12.distributed.dask_rows import kept
from ell12.distributed.executor import Blocks, active_client, compute
from ell12.minimization import Result, Run, minimize
from ell12.penalties import SpectralL12
from ell12.penalties.spectral import lanczos_norm
from ell12.protocols import Array, Point

CENTERS = (None, "mean", "biases")
# The automatic strength, in units of the norm that noise of the size of the entries has.
STRENGTH = 0.7


def complete_matrix(
    ratings: Any,
    alpha: float | None = None,
    *,
    penalty: SpectralL12 | None = None,
    max_rank: int = 8,
    center: str | None = "biases",
    names: tuple[str, str, str] = ("user", "item", "value"),
    shape: tuple[int | None, int | None] = (None, None),
    persist: bool = True,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Any = 0,
    run: Run | None = None,
) -> Completion:
    """`ell12.complete_matrix` of ratings on workers, by alternating least squares.

    A sweep takes two passes. In the first each block solves for its rows, given the factor of the columns, and the
    equations of the columns are summed; in the second the loss and the products of its gradient with the factors.
    The factors stay in this process; nothing as long as the ratings moves.

    Parameters
    ----------
    ratings : dask DataFrame, or path or paths of Parquet files
        With a column each for rows (users), columns (items) and values; users and items are numbers counted from
        0. All ratings of a user must be in one partition: ``ratings.shuffle("user")`` sees to that.
    alpha : float, optional
        Strength, above 0. None takes 0.7 times the norm that noise of the size of the centred entries has.
    penalty : SpectralL12, optional
        Its shape; by default ``l2_weight`` is 0.5.
    max_rank : int, default 8
        The largest rank allowed. Where it binds the status is ``RANK_CAPPED``.
    center : {"biases", "mean", None}, default "biases"
        What is subtracted before, and comes back in ``offsets``: the mean with biases of rows and columns, found
        in 11 passes; the mean; or nothing.
    names : three str, default ("user", "item", "value")
        What the columns of the table are called.
    shape : pair of int, default (None, None)
        Of the whole matrix; found in one more pass where None.
    persist : bool, default True
        Whether workers keep the blocks, in memory or spilled; if not, every pass reads them again.
    tol, max_iter, random_state
        As in `ell12.complete_matrix`.
    run : Run, optional
        What else is said of the run.

    Returns
    -------
    Completion
        The same as in memory: ``x`` is a `ell12.LowRank`, with ``offsets`` and ``predict(rows, columns)``.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> import numpy as np
    >>> from ell12 import SpectralL12
    >>> from ell12.distributed import complete_matrix
    >>> rows, columns = np.divmod(np.arange(11), 4)
    >>> table = pd.DataFrame({"user": rows, "item": columns, "value": (rows + 1.0) * (columns + 1.0)})
    >>> fit = complete_matrix(
    ...     dd.from_pandas(table, npartitions=1), 0.1, penalty=SpectralL12(1.0), max_rank=1, center=None
    ... )
    >>> fit.predict([2], [3]).round(2)
    array([12.])
    """
    if center not in CENTERS:
        raise ValueError(f"center must be one of {', '.join(map(repr, CENTERS))}; got {center!r}")
    solver = AlternatingLeastSquares(max_rank, random_state=random_state)
    loss = RatingsLoss.of(ratings, names, shape, persist)
    offsets = loss.offsets(center)
    if center is not None:
        own = [None if offsets.rows is None else offsets.rows[held] for held in loss.rows]
        loss.blocks = loss.blocks.changed("less", _less, offsets.mean, offsets.columns, each=own, persist=persist)
    penalty = SpectralL12(1.0, 0.5) if penalty is None else penalty
    penalty = replace(penalty, alpha=loss.noise_alpha() if alpha is None else alpha)
    result = minimize(loss, penalty, None, solver, tol=tol, max_iter=max_iter, run=run)
    parts = {part.name: getattr(result, part.name) for part in fields(Result)}
    return Completion(**parts, penalty=penalty, offsets=offsets, center=center, max_rank=max_rank)


@dataclass(eq=False)
class RatingsLoss(MatrixLoss):
    """``1/2 ||S(X - O)||_F^2`` of known entries O on workers, a block of rows each."""

    blocks: Blocks = field(repr=False)
    rows: list[Array] = field(repr=False)  # which of the matrix each block holds
    shape: tuple[int, int]
    n_observed: int
    mean: float
    values: Array  # none: their dtype
    _last: tuple[Any, Any] = field(default=(None, None), repr=False)

    @classmethod
    def of(cls, ratings: Any, names: tuple[str, str, str], shape: Any, persist: bool) -> RatingsLoss:
        """Make the blocks, and find out which rows they hold."""
        ratings = _as_table(ratings, names)
        last = shape
        if None in shape:
            (last,) = compute(active_client(), ratings[list(names[:2])].max().to_delayed())
        shape = tuple(int(k) + 1 if size is None else size for k, size in zip(last, shape, strict=True))
        tasks = [delayed(_block, pure=False)(k, part, names, shape) for k, part in enumerate(ratings.to_delayed())]
        blocks = Blocks(kept(tasks) if persist else tasks)
        rows, dtypes, moments = zip(*blocks.results("describe", _describe), strict=True)
        (count, total, _), every = np.sum(moments, axis=0).tolist(), np.concatenate(rows)
        if count == 0:
            raise ValueError("ratings has no known entry: there is nothing to complete from")
        if max(shape) > 2**20 + 1000 * count:  # such numbers of rows are other keys
            raise ValueError(f"shape {shape} for {count:.0f} ratings: count from 0, as pandas.factorize does")
        if np.unique(every).size < every.size:
            raise ValueError("all entries of a row must be in one block: use ratings.shuffle on its column")
        return cls(blocks, list(rows), shape, int(count), total / count, np.zeros(0, np.result_type(*dtypes)))

    @property
    def observed(self) -> Any:
        """What sweeps ask of the known entries, this loss answers."""
        return self

    @property
    def fraction(self) -> float:
        """The share of the entries that is known."""
        return self.n_observed / math.prod(self.shape)

    def sparse(self) -> Residual:
        """The known entries as a matrix: what the zero matrix leaves, with the other sign."""
        return Residual(self, self.start(), sign=-1.0)

    def point(self, x: LowRank) -> Point:
        """X alone: its entries at the known places stay on the workers."""
        return Point(x, None)

    def value(self, point: Point) -> float:
        """Half the sum of the squared errors; a pass where it is not known yet."""
        return self.products(point.x, point.x.V, point.x.U)[0]

    def gradient(self, point: Point) -> Residual:
        """``S(X - O)``, known by its products."""
        return Residual(self, point.x)

    def make_sweep(self, penalty: Any, n_threads: int) -> Callable[[LowRank], LowRank]:  # noqa: ARG002
        """The sweep of `ell12.AlternatingLeastSquares`: rows on their workers, then columns here."""

        def sweep(x: LowRank) -> LowRank:
            W, H = x.U * np.sqrt(x.s), x.V * np.sqrt(x.s)
            ridge, prior = row_terms(W, H, penalty)
            W, grams, rights = self._total(_half_sweep, prior, prior / ridge, H, ridge)
            ridge, prior = row_terms(H, W, penalty)
            return LowRank.from_factors(W, _solved_columns(grams, rights, ridge, prior))

        return sweep

    def products(self, x: LowRank, B: Array, C: Array) -> tuple[float, Array, Array]:
        """``||R||^2 / 2``, ``R B`` and ``R'C`` of the residual ``R = S(X - O)``: one pass, or none."""
        own = B is x.V and C is x.U
        if own and self._last[0] is x:
            return self._last[1]
        both = np.concatenate([x.weighted, C.reshape(len(C), -1)], axis=1)
        out = np.zeros((self.shape[0], *B.shape[1:]), x.dtype)
        left, value, right = self._total(_products, both, out, x.V, B)
        found = value, left, right.reshape(self.shape[1], *C.shape[1:])
        self._last = (x, found) if own else self._last
        return found

    def offsets(self, center: str | None) -> Offsets:
        """As `ell12.completion.offsets.fit_offsets`: biases in 11 passes, the mean in none."""
        if center != "biases":
            return Offsets() if center is None else Offsets(self.mean)
        rows, columns = (np.zeros(size, self.values.dtype) for size in self.shape)
        for number in range(SWEEPS + 1):
            rows, sums, counts = self._total(_bias_sums, rows, rows, self.mean, columns)
            if number < SWEEPS:
                columns = (sums / (np.maximum(counts, 1e-9) + SHRINKAGE)).astype(columns.dtype)
        return Offsets(self.mean, rows, columns)

    def noise_alpha(self) -> float:
        """The strength that noise of the size of the entries asks for; one pass."""
        square = sum(moments[2] for *_, moments in self.blocks.results("describe", _describe))
        return STRENGTH * alpha_of_noise(float(square), self)

    def _total(self, function: Any, W: Array, out: Array, *arguments: Any) -> tuple[Any, ...]:
        """One pass: each block gets its rows of W; its rows of the answer go to ``out``, the rest is summed."""
        name, own = function.__name__.replace("_", ""), [W[held] for held in self.rows]
        found = self.blocks.total(name, function, *arguments, each=own)
        for number, part in found.rows.items():
            out[self.rows[number]] = part
        return out, *found.sums


class Residual(LinearOperator):
    """``sign S(X - O)`` as an operator: a pass for each product that is not known."""

    def __init__(self, loss: RatingsLoss, x: LowRank, sign: float = 1.0) -> None:
        super().__init__(loss.values.dtype, loss.shape)
        self.loss, self.x, self.sign = loss, x, sign

    def _matmat(self, B: Array) -> Array:
        return self.sign * self.loss.products(self.x, B, self.x.U)[1]

    def _rmatmat(self, C: Array) -> Array:
        return self.sign * self.loss.products(self.x, self.x.V, C)[2]

    _matvec, _rmatvec, _transpose = _matmat, _rmatmat, LinearOperator._adjoint

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float = 0.0) -> float:
        """The spectral norm of ``(I - U U') G (I - V V')`` by Lanczos: two passes for each product."""
        return lanczos_norm(self, U, V, enough, self.x.s)


@dataclass(frozen=True, eq=False)
class RatingsBlock:
    """All known entries of some rows of the matrix."""

    number: int
    rows: Array
    entries: Observed  # whose rows are counted in ``rows``

    def __sizeof__(self) -> int:
        """What Dask should count when it decides what to spill."""
        entries = self.entries
        return sum(part.nbytes for part in (self.rows, entries.rows, entries.columns, entries.values))


@dataclass(frozen=True)
class RowsAndSums:
    """What comes back from blocks: rows of each by its number, and sums over all."""

    rows: dict[int, Array]
    sums: tuple[Any, ...]

    def __add__(self, other: RowsAndSums) -> RowsAndSums:
        sums = tuple(own + more for own, more in zip(self.sums, other.sums, strict=True))
        return RowsAndSums(self.rows | other.rows, sums)


def _half_sweep(block: RatingsBlock, prior: Array, H: Array, ridge: float) -> RowsAndSums:
    """W solved for, given H; and of each column j the sums of ``w_i w_i'`` and ``o_ij w_i``."""
    entries, (i, j) = block.entries, np.triu_indices(H.shape[1])
    slopes = np.full(H.shape[1], ridge)
    W = solve_rows(entries.row_starts, entries.columns, entries.values, H, slopes, prior)
    known = entries.sparse(np.ones_like(entries.values))
    return RowsAndSums({block.number: W}, (known.T @ (W[:, i] * W[:, j]), entries.sparse().T @ W))


def _products(block: RatingsBlock, both: Array, V: Array, B: Array) -> RowsAndSums:
    (W, C), entries = np.split(both, [V.shape[1]], axis=1), block.entries
    left = sums_of_products(W, V, entries.rows, entries.columns) - entries.values
    R = entries.sparse(left)
    return RowsAndSums({block.number: R @ B}, (0.5 * float(np.vdot(left, left)), R.T @ C))


def _bias_sums(block: RatingsBlock, _: Array, mean: float, columns: Array) -> RowsAndSums:
    """The biases of the rows, given those of the columns; what they leave, summed by column, and the counts."""
    entries, n = block.entries, columns.size
    level = entries.values - entries.values.dtype.type(mean)
    sums = np.bincount(entries.rows, level - columns[entries.columns], block.rows.size)
    rows = (sums / (np.diff(entries.row_starts) + SHRINKAGE)).astype(level.dtype)
    left = np.bincount(entries.columns, level - rows[entries.rows], n)
    return RowsAndSums({block.number: rows}, (left, np.bincount(entries.columns, minlength=n)))


def _less(block: RatingsBlock, own: Array | None, mean: float, columns: Array | None) -> RatingsBlock:
    """The block less the mean, the biases of its rows and those of the columns."""
    return replace(block, entries=Offsets(mean, own, columns).subtracted_from(block.entries))


def _describe(block: RatingsBlock) -> tuple[Any, ...]:
    """The rows, the dtype, and the number of entries with their sum and that of their squares."""
    values = block.entries.values.astype(np.float64)
    return block.rows, block.entries.values.dtype, np.array([values.size, values.sum(), values @ values])


def _solved_columns(grams: Array, rights: Array, ridge: float, prior: Array) -> Array:
    """Solve ``(G_j + ridge I) h_j = right_j + prior_j`` for each column j, G_j given by its upper triangle."""
    (count, rank), (i, j) = prior.shape, np.triu_indices(prior.shape[1])
    matrices = np.zeros((count, rank, rank), prior.dtype)
    matrices[:, i, j] = matrices[:, j, i] = grams
    matrices += ridge * np.eye(rank, dtype=prior.dtype)
    return np.linalg.solve(matrices, (rights + prior)[:, :, None])[:, :, 0]


def _as_table(ratings: Any, names: tuple[str, str, str]) -> Any:
    """The three columns of a dask DataFrame, which Parquet files are read as."""
    if isinstance(ratings, str | os.PathLike | list | tuple):
        ratings = dd.read_parquet(ratings)
    if not hasattr(ratings, "__dask_graph__") or not hasattr(ratings, "columns"):
        raise TypeError(f"ratings must be a dask DataFrame or Parquet files, got {type(ratings).__name__}")
    missing = [name for name in names if name not in ratings.columns]
    if missing:
        raise ValueError(f"ratings has no column {missing[0]!r}: say in names what its columns are called")
    return ratings[list(names)]


def _block(number: int, part: Any, names: tuple[str, str, str], shape: tuple[int, int]) -> RatingsBlock:
    with naming(f"block {number}"):
        rows, columns, values = (part[name].to_numpy() for name in names)
        entries = Observed(rows, columns, values, shape)  # which checks and sorts them
    held, own = np.unique(entries.rows, return_inverse=True)
    return RatingsBlock(number, held, replace(entries, rows=own, shape=(held.size, shape[1])))

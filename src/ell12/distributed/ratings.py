"""A block of ratings on its worker, and what a sweep of alternating least squares asks of it.

Nothing here imports Dask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ell12.completion.low_rank import sums_of_products
from ell12.completion.offsets import SHRINKAGE
from ell12.completion.row_solves import solve_rows
from ell12.distributed.blocks import naming
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class RatingsBlock:
    """All known entries of some rows, sorted by row, then by column.

    Parameters
    ----------
    number : int
        Which block this is.
    rows : array of shape (m_b,)
        The rows of the matrix that are here, rising.
    starts : array of shape (m_b + 1,)
        Where each begins among the entries.
    columns, values : arrays
        Where in its row each entry is, and what it is.
    """

    number: int
    rows: Array
    starts: Array
    columns: Array
    values: Array

    def __sizeof__(self) -> int:
        """What Dask should count when it decides what to spill."""
        return sum(part.nbytes for part in (self.rows, self.starts, self.columns, self.values))

    def sparse(self, values: Array, width: int) -> Any:
        """A CSR array with these values."""
        shape = (self.rows.size, width)
        return scipy.sparse.csr_array((values, self.columns, self.starts), shape=shape, copy=False)

    def residual(self, W: Array, V: Array) -> Any:
        """``W V' - O`` at the known entries."""
        places = np.repeat(np.arange(self.rows.size), np.diff(self.starts))
        return self.sparse(sums_of_products(W, V, places, self.columns) - self.values, V.shape[0])


@dataclass(frozen=True)
class RowsAndSums:
    """What comes back from blocks: rows of each, side by side, and sums over all."""

    rows: dict[int, Array]
    sums: tuple[Any, ...]

    def __add__(self, other: RowsAndSums) -> RowsAndSums:
        sums = tuple(own + more for own, more in zip(self.sums, other.sums, strict=True))
        return RowsAndSums(self.rows | other.rows, sums)


@dataclass(frozen=True)
class Extent:
    """The largest of some numbers, which adds as the larger does."""

    last: int

    def __add__(self, other: Extent) -> Extent:
        return Extent(max(self.last, other.last))


def block_of_table(number: int, part: Any, names: tuple[str, str, str], shape: Any) -> RatingsBlock:
    """A block out of a table with a column each for rows, columns and values."""
    with naming(f"block {number}"):
        rows, columns = (_as_index(part[name].to_numpy(), name) for name in names[:2])
        values = _as_values(part[names[2]].to_numpy())
        order = np.lexsort((columns, rows))
        return _block(number, rows[order], columns[order], values[order], shape)


def block_of_matrix(number: int, part: Any, place: tuple[int, int], shape: Any) -> RatingsBlock:
    """A block out of a sparse matrix: ``place`` is its first row in the whole, and how many it should have."""
    first, count = place
    with naming(f"block {number}"):
        if hasattr(part, "to_scipy_sparse"):  # the arrays of the package sparse
            part = part.to_scipy_sparse()
        if not scipy.sparse.issparse(part):
            raise TypeError(
                f"it must be a sparse matrix, in which what is stored is known; got {type(part).__name__}"
            )
        if part.shape[1] != shape[1]:
            raise ValueError(f"it has {part.shape[1]} columns, where X has {shape[1]}")
        if part.shape[0] != count:
            raise ValueError(f"it has {part.shape[0]} rows, where its chunk should have {count}")
        part = part.tocoo()
        values = _as_values(part.data)
        order = np.lexsort((part.col, part.row))
        return _block(number, part.row[order].astype(np.int64) + first, part.col[order], values[order], shape)


def _block(number: int, rows: Array, columns: Array, values: Array, shape: Any) -> RatingsBlock:
    """A block out of sorted entries, checked."""
    if not np.isfinite(values).all():
        raise ValueError("a value is NaN or infinite; leave out what is not known")
    for name, indices, size in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if indices.size and not 0 <= indices.min() <= indices.max() < (size or np.inf):
            bound = "" if size is None else f" and below {size}"
            raise ValueError(
                f"the numbers of {name}s must be at least 0{bound}, got {indices.min()} to {indices.max()}"
            )
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(columns) == 0))
    if twice.size:
        raise ValueError(f"row {rows[twice[0]]}, column {columns[twice[0]]} is given more than once")
    distinct, counts = np.unique(rows, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    short = np.int32 if columns.size == 0 or columns.max() < 2**31 else np.int64
    return RatingsBlock(number, distinct, starts, columns.astype(short), values)


def _as_values(values: Array) -> Array:
    if values.dtype.kind == "c":
        raise TypeError(f"ratings must be real numbers, got {values.dtype}")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _as_index(indices: Array, name: str) -> Array:
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold the numbers of rows or columns, counted from 0; got {indices.dtype}")
    return indices.astype(np.int64)


def describe(block: RatingsBlock) -> RowsAndSums:
    """Which rows a block holds; its largest column, the number of entries, their size, sum and sum of squares."""
    last = int(block.columns.max(initial=-1))
    with np.errstate(over="ignore"):
        square = float(np.vdot(block.values, block.values))
    total = float(block.values.sum(dtype=np.float64))
    sums = (Extent(last), block.values.size, Extent(block.values.dtype.itemsize), total, square)
    return RowsAndSums({block.number: block.rows}, sums)


def bias_sums(block: RatingsBlock, mean: float, columns: Array) -> RowsAndSums:
    """The biases of the rows, given those of the columns; what they leave, summed by column, and the counts."""
    lengths, values = np.diff(block.starts), block.values
    level = (values - mean).astype(values.dtype, copy=False)
    ones = np.ones(columns.size, dtype=values.dtype)
    totals = block.sparse(level - columns[block.columns], columns.size) @ ones
    rows = (totals / (lengths + SHRINKAGE)).astype(values.dtype, copy=False)
    left = level - np.repeat(rows, lengths)
    sums = np.bincount(block.columns, left, minlength=columns.size)
    return RowsAndSums({block.number: rows}, (sums, np.bincount(block.columns, minlength=columns.size)))


def taken_off(block: RatingsBlock, own: Array | None, mean: float, columns: Array | None) -> RatingsBlock:
    """The block less the mean, the biases of its rows and those of the columns."""
    total: Any = mean
    total = total if own is None else total + np.repeat(own, np.diff(block.starts))
    total = total if columns is None else total + columns[block.columns]
    return replace(block, values=(block.values - total).astype(block.values.dtype, copy=False))


def rank_one_sums(block: RatingsBlock, v: Array) -> RowsAndSums:
    """With u the best rows beside the columns v: ``O'u``, ``K'u^2``, and the sum of squares that is left.

    O are the known entries, and K is one where they are.
    """
    entries, known = (block.sparse(values, v.size) for values in (block.values, np.ones_like(block.values)))
    product, square = entries @ v, known @ (v * v)
    u = np.divide(product, square, out=np.zeros_like(product), where=square > 0)
    left = float(np.vdot(block.values, block.values)) - float(np.vdot(u, product))
    return RowsAndSums({}, (entries.T @ u, known.T @ (u * u), left))


def half_sweep(block: RatingsBlock, prior: Array, H: Array, ridge: float) -> RowsAndSums:
    """The rows of W solved for, given H, and what they say of the columns.

    Comes back: W; and for each column j the upper triangle of ``sum_i w_i w_i'`` over the rows i that are known
    there, beside ``sum_i o_ij w_i``.
    """
    rank = H.shape[1]
    W = solve_rows(block.starts, block.columns, block.values, H, np.full(rank, ridge), prior)
    upper = np.triu_indices(rank)
    known = block.sparse(np.ones_like(block.values, dtype=W.dtype), H.shape[0]).T
    grams = known @ (W[:, upper[0]] * W[:, upper[1]])
    rights = block.sparse(block.values, H.shape[0]).T @ W
    return RowsAndSums({block.number: W}, (grams, rights))


def residual_products(block: RatingsBlock, U: Array, s: Array, V: Array) -> RowsAndSums:
    """With R the residual of ``U diag(s) V'``: R V; and ``||R||^2 / 2`` and ``R'U``."""
    R = block.residual(U * s, V)
    return RowsAndSums({block.number: R @ V}, (0.5 * float(np.vdot(R.data, R.data)), R.T @ U))


def residual_times(block: RatingsBlock, W: Array, V: Array, B: Array) -> RowsAndSums:
    """R B for the residual R of ``W V'``."""
    return RowsAndSums({block.number: block.residual(W, V) @ B}, ())


def times_residual(block: RatingsBlock, own: tuple[Array, Array], V: Array) -> Array:
    """R'C for the residual R of ``W V'``, ``own`` being the block's rows of W and C."""
    W, C = own
    return block.residual(W, V).T @ C


def residual_gram(block: RatingsBlock, W: Array, V: Array, v: Array) -> Array:
    """R'R v for the residual R of ``W V'``: the rows never leave the worker."""
    R = block.residual(W, V)
    return R.T @ (R @ v)

"""Known entries row by row: products with them, and the equations of all rows, by array operations on any device.

Rows of about the same length are gathered side by side and filled up with zeros, so that sums over rows are
products of small matrices. These have the same bits in each run; sums by scattering depend on which thread comes
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ell12.backend import all_finite, as_numpy, device, in_memory, indices_like, namespace, to_device_of
from ell12.penalties.spectral import DENSE_NORM, lanczos_norm, norm_beyond
from ell12.protocols import Array

# More numbers than these, 256 MB in double precision, are gathered in parts, and no dense matrix of more is made
# unasked (benchmarks/results/gpu).
AT_ONCE = 2**25


class Group(NamedTuple):
    """Rows filled up to the same length."""

    rows: Array  # which
    positions: Array  # of the entries of each, and the number of all entries where it is filled up
    columns: Array  # of the entries of each, and the number of all columns where it is filled up


class Segments:
    """Where the entries of each row are, sorted by row as in CSR.

    Parameters
    ----------
    starts : array of shape (m + 1,)
        Where each row begins among the entries, and the end.
    columns : array of shape (n_observed,)
        In which column each entry is.
    width : int
        The number of columns.
    """

    def __init__(self, starts: Array, columns: Array, width: int) -> None:
        self.starts, self.columns, self.width = starts, columns, width

    @cached_property
    def groups(self) -> list[Group]:
        """All rows that have an entry, by length."""
        lengths = np.diff(as_numpy(self.starts))
        order = np.argsort(lengths, kind="stable")
        parts = (order[first:end] for first, end in pairwise(_cuts(lengths[order])))
        return [self._group(indices_like(rows, self.columns), int(lengths[rows[-1]])) for rows in parts]

    def times(self, values: Array, B: Array) -> Array:
        """The matrix with these values at its entries, times a matrix or vector B."""
        if in_memory(B):
            parts = (as_numpy(part) for part in (values, self.columns, self.starts))
            shape = self.starts.shape[0] - 1, self.width
            return to_device_of(scipy.sparse.csr_array(tuple(parts), shape=shape) @ as_numpy(B), B, "B")
        if len(B.shape) == 1:
            return self.times(values, B[:, None])[:, 0]
        out = namespace(B).zeros((self.starts.shape[0] - 1, B.shape[1]), dtype=B.dtype, device=device(B))
        for rows, product, _ in self._sums(values, B, with_gram=False):
            out[rows] = product
        return out

    def solve(self, values: Array, H: Array, ridge: Any, prior: Array) -> Array:
        """Solve ``(H_i'H_i + diag(ridge)) w_i = H_i'o_i + prior_i`` for each row i, o_i its values."""
        xp = namespace(H)
        diagonal = ridge * xp.eye(H.shape[1], dtype=H.dtype, device=device(H))
        out = prior / ridge  # what rows without any entry become
        for rows, product, gram in self._sums(values, H, with_gram=True):
            right = product + xp.take(prior, rows, axis=0)
            out[rows] = xp.linalg.solve(gram + diagonal, right[:, :, None])[:, :, 0]
        return out

    def _sums(self, values: Array, B: Array, with_gram: bool) -> Iterator[tuple[Array, Array, Any]]:
        """Rows, and for each the sums of ``o_j b_j`` and, if asked for, of ``b_j b_j'`` over its entries."""
        xp, values, B = namespace(B), for_gathering(values, more=1), for_gathering(B, more=1)
        for every, positions, columns in self.groups:
            count, length = positions.shape
            most = max(AT_ONCE // max(length * B.shape[1], 1), 1)
            for first in range(0, count, most):
                part = slice(first, first + most)
                o, b = _gathered(values, positions[part]), _gathered(B, columns[part])
                yield every[part], (o[:, None, :] @ b)[:, 0, :], xp.matrix_transpose(b) @ b if with_gram else None

    def _group(self, rows: Array, length: int) -> Group:
        xp, count = namespace(rows), self.columns.shape[0]
        starts, ends = (xp.take(self.starts, rows + shift, axis=0)[:, None] for shift in (0, 1))
        positions = starts + xp.arange(length, device=device(rows))
        known = positions < ends
        columns = _gathered(self.columns, xp.where(known, positions, 0))
        short = xp.int32 if count < 2**31 else xp.int64
        positions = xp.astype(xp.where(known, positions, count), short, copy=False)
        return Group(rows, positions, xp.where(known, columns, self.width))


def _gathered(x: Array, positions: Array) -> Array:
    """The entries or rows of x at these positions."""
    xp = namespace(x)
    return xp.reshape(xp.take(x, xp.reshape(positions, (-1,)), axis=0), (*positions.shape, *x.shape[1:]))


def for_gathering(x: Array, more: int = 0) -> Array:
    """A copy of x to gather rows from, with this many rows of zeros behind.

    It begins one number behind where its memory begins: PyTorch gives each row of 16, 32 and so on bytes at an
    address of that kind a block of threads, which takes twenty times as long where rows are short.
    """
    xp, shape = namespace(x), (x.shape[0] + more, *x.shape[1:])
    out = xp.reshape(xp.zeros(1 + math.prod(shape), dtype=x.dtype, device=device(x))[1:], shape)
    out[: x.shape[0]] = x
    return out


class SegmentedMatrix:
    """A sparse matrix on a device, known by its products.

    Parameters
    ----------
    segments : pair of Segments
        Of the rows, and of the columns.
    values : pair of arrays
        The values of the entries, sorted by row, then column, and by column, then row.
    """

    def __init__(self, segments: tuple[Segments, Segments], values: tuple[Array, Array]) -> None:
        self.segments, self.values = segments, values

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = (segments.starts.shape[0] - 1 for segments in self.segments)
        return rows, columns

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values[0].dtype

    @property
    def T(self) -> SegmentedMatrix:
        """The transpose."""
        return SegmentedMatrix(self.segments[::-1], self.values[::-1])

    def __matmul__(self, B: Array) -> Array:
        return self.segments[0].times(self.values[0], B)

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float) -> float:
        """As `ell12.penalties.spectral.norm_beyond`."""
        values = self.values[0]
        if math.prod(self.shape) <= DENSE_NORM:
            identity = namespace(values).eye(self.shape[1], dtype=self.dtype, device=device(values))
            return norm_beyond(self @ identity, U, V)
        return lanczos_norm(self, U, V, enough, values) if all_finite(values) else math.inf


def _cuts(lengths: np.ndarray) -> list[int]:
    """Where to cut rising lengths into groups, each within a power of two; zeros are in none."""
    powers = 2 ** np.arange(int(lengths.max(initial=0)).bit_length() + 1)
    return sorted({int(cut) for cut in np.searchsorted(lengths, [0, *powers], side="right")})

"""Known entries on a device, row by row: products with them, and the equations of all rows, by array operations.

Rows of about the same length are gathered side by side and filled up with zeros, so that sums over rows are
products of small matrices. These have the same bits in each run; sums by scattering depend on which thread comes
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    all_finite,
    as_numpy,
    beside,
    device,
    in_memory,
    indices_like,
    is_numpy,
    join,
    namespace,
)
from ell12.backend.arrays import is_cupy, is_torch
from ell12.penalties.spectral import DENSE_NORM, lanczos_norm, norm_beyond
from ell12.protocols import Array

CHUNK = 2**25  # Gathered rows may hold this many numbers at a time: 256 MB in double precision.
# A group of rows is filled up to at most this many times the entries that it has. Of a million synthetic ratings a
# seventh of what is gathered are then zeros, in 20 groups.
GROWTH = 1.1
FEW = (
    2**16
)  # A group that is no larger than this is filled up without regard: a device waits for the launch alone.


def has_segments(values: Array) -> bool:
    """Whether a library does well with many sizes of arrays: NumPy, PyTorch and CuPy; JAX compiles each anew."""
    return is_numpy(values) or is_torch(values) or is_cupy(values)


class Segments:
    """Where the entries of each row are, sorted by row as in CSR.

    Parameters
    ----------
    starts : array of shape (m + 1,)
        Where each row begins among the entries, and the end.
    columns : array of shape (n_observed,)
        In which column each entry is.
    """

    def __init__(self, starts: Array, columns: Array) -> None:
        self.starts, self.columns = starts, columns

    @cached_property
    def groups(self) -> list[tuple[int, Array]]:
        """Lengths, and the rows that are filled up to each; those without any entry are left out."""
        lengths = np.diff(as_numpy(self.starts))
        order = np.argsort(lengths, kind="stable")
        cuts = _cuts(lengths[order])
        parts = [(int(lengths[order[end - 1]]), order[first:end]) for first, end in pairwise(cuts)]
        return [(length, indices_like(rows, self.columns)) for length, rows in parts]

    def times(self, values: Array, B: Array) -> Array:
        """The matrix with these values at its entries, times a matrix or vector B."""
        if in_memory(B):
            parts = (as_numpy(part) for part in (values, self.columns, self.starts))
            shape = self.starts.shape[0] - 1, B.shape[0]
            return beside(scipy.sparse.csr_array(tuple(parts), shape=shape) @ as_numpy(B), B, "B")
        return self.times_at_once(values, B[:, None])[:, 0] if len(B.shape) == 1 else self.times_at_once(values, B)

    def times_at_once(self, values: Array, B: Array) -> Array:
        """`times` of a matrix B, for a device."""
        xp = namespace(B)
        out = xp.zeros((self.starts.shape[0] - 1, B.shape[1]), dtype=B.dtype, device=device(B))
        for rows, product, _ in self._sums(values, B, with_gram=False):
            out[rows] = product
        return out

    def solve(self, values: Array, H: Array, ridge: float, prior: Array) -> Array:
        """Solve ``(H_i'H_i + ridge I) w_i = H_i'o_i + prior_i`` for each row i, o_i its values."""
        xp = namespace(H)
        diagonal = ridge * xp.eye(H.shape[1], dtype=H.dtype, device=device(H))
        out = prior / ridge  # what rows without any entry become
        for rows, product, gram in self._sums(values, H, with_gram=True):
            right = product + xp.take(prior, rows, axis=0)
            out[rows] = xp.linalg.solve(gram + diagonal, right[:, :, None])[:, :, 0]
        return out

    def _sums(self, values: Array, B: Array, with_gram: bool) -> Iterator[tuple[Array, Array, Array]]:
        """Rows, and for each the sums of ``o_j b_j`` and, if asked for, of ``b_j b_j'`` over its entries."""
        xp = namespace(B)
        filled = join([B, xp.zeros((1, B.shape[1]), dtype=B.dtype, device=device(B))], axis=0)
        for length, every in self.groups:
            most = max(CHUNK // max(length * B.shape[1], 1), 1)
            for first in range(0, every.shape[0], most):
                rows = every[first : first + most]
                product = gram = 0.0
                for o, b in self._gathered(rows, length, values, filled):
                    product = product + (o[:, None, :] @ b)[:, 0, :]
                    gram = gram + xp.matrix_transpose(b) @ b if with_gram else gram
                yield rows, product, gram

    def _gathered(self, rows: Array, length: int, values: Array, B: Array) -> Iterator[tuple[Array, Array]]:
        """The values of some rows, and the rows of B that their entries ask for; a very long row in several parts.

        The last row of B is zero.
        """
        xp = namespace(B)
        starts, ends = (xp.take(self.starts, rows + shift, axis=0)[:, None] for shift in (0, 1))
        step = max(CHUNK // max(rows.shape[0] * B.shape[1], 1), 1)
        for first in range(0, length, step):
            offsets = xp.arange(first, min(first + step, length), device=device(B))
            places = starts + offsets
            known, shape = places < ends, places.shape
            places = xp.reshape(xp.where(known, places, starts), (-1,))
            columns = xp.reshape(xp.take(self.columns, places, axis=0), shape)
            columns = xp.reshape(xp.where(known, columns, B.shape[0] - 1), (-1,))
            o = xp.where(known, xp.reshape(xp.take(values, places, axis=0), shape), 0)
            yield o, xp.reshape(xp.take(B, columns, axis=0), (*shape, B.shape[1]))


class SegmentedMatrix:
    """A sparse matrix on a device, known by its products.

    Parameters
    ----------
    segments : pair of Segments
        Of the rows, and of the columns.
    order : array
        The order of the entries that sorts them by column, then row.
    values : array
        The values of the entries, sorted by row, then column.
    """

    def __init__(self, segments: tuple[Segments, Segments], order: Array, values: Array) -> None:
        self.segments, self.order, self.values = segments, order, values

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = (segments.starts.shape[0] - 1 for segments in self.segments)
        return rows, columns

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def T(self) -> _Transposed:
        """The transpose."""
        return _Transposed(self)

    @cached_property
    def by_column(self) -> Array:
        """The values sorted by column, then row."""
        return namespace(self.values).take(self.values, self.order, axis=0)

    def __matmul__(self, B: Array) -> Array:
        return self.segments[0].times(self.values, B)

    def norm_beyond(self, U: Array | None, V: Array | None, enough: float) -> float:
        """As `ell12.penalties.spectral.norm_beyond`."""
        xp = namespace(self.values)
        if math.prod(self.shape) <= DENSE_NORM:
            dense = self @ xp.eye(self.shape[1], dtype=self.dtype, device=device(self.values))
            return norm_beyond(dense, U, V)
        return lanczos_norm(self, U, V, enough, self.values) if all_finite(self.values) else math.inf


class _Transposed:
    """The transpose of a `SegmentedMatrix`; the matrix knows nothing of it, so that both are freed at once."""

    def __init__(self, G: SegmentedMatrix) -> None:
        self.T, self.shape, self.dtype = G, G.shape[::-1], G.dtype

    def __matmul__(self, C: Array) -> Array:
        return self.T.segments[1].times(self.T.by_column, C)


def _cuts(lengths: np.ndarray) -> list[int]:
    """Where to cut rising lengths into groups, each of which is filled up to its last; zeros are in none."""
    totals = np.concatenate([[0], np.cumsum(lengths)])
    first = int(np.searchsorted(lengths, 1))
    cuts, length = [first], 1
    while first < lengths.size:
        end = int(np.searchsorted(lengths, length, side="right"))
        filled = (end - cuts[-1]) * length
        if filled > FEW and filled > GROWTH * (totals[end] - totals[cuts[-1]]) and first > cuts[-1]:
            cuts.append(first)
        first, length = end, max(int(GROWTH * length), length + 1)
    return [*cuts, lengths.size] if cuts[-1] < lengths.size else cuts

"""Columns that stay where they are: in a file, on other machines, or wherever a source reads them from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ell12.checks import check_entries
from ell12.operators.maps import ArrayOperator, stored
from ell12.protocols import Array, ColumnSource, FarSource, offers

# So many numbers are read and multiplied at a time by each thread: 2 MB in double precision, which caches hold.
PIECE = 2**18
# A product with x gathers the columns in use where they are fewer than one in SPARSE, else it reads all.
SPARSE = 8


@dataclass(frozen=True, eq=False)
class Columns(ArrayOperator):
    """A matrix whose columns are read a few at a time: more of them than memory holds.

    Off the support the first-order condition needs one product with the adjoint, so columns stay where they are:
    solvers gather those in use and look at the others now and then. Losses, paths and estimators take it as any
    other matrix.

    Parameters
    ----------
    source : path, array, sparse matrix or ColumnSource
        A ``.npy`` file, best in Fortran order, of any real numbers, such as int8; a folder written by
        `Columns.save`; an array or a memory map; or any object with ``shape``, ``dtype``, ``block`` and ``take``
        (`ell12.protocols.ColumnSource`).

    Examples
    --------
    >>> X = Columns(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int8))
    >>> X @ np.array([1.0, 0.0, 10.0]), X.T @ np.ones(2), X.reads
    (array([20.,  2.]), array([2., 2., 2.]), 2.0)
    """

    source: Any
    _read: list[int] = field(default_factory=lambda: [0], repr=False)  # how many columns were read

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_source(self.source))
        m, n = self.source.shape
        dtype = np.dtype(self.source.dtype)
        if dtype.kind not in "biuf":
            raise TypeError(f"a source of columns must hold real numbers, got dtype {dtype}")
        single = dtype.kind == "f" and dtype.itemsize <= 4
        self._set(input_shape=(int(n),), output_shape=(int(m),), takes_columns=True)
        self._set(dtype=np.dtype(np.float32 if single else np.float64))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.output_shape[0], self.input_shape[0]

    @property
    def reads(self) -> float:
        """How often all columns were read, so far; some columns count by their share."""
        return self._read[0] / self.input_shape[0]

    def select_columns(self, columns: Array) -> Any:
        """Some columns, in rising order, as a matrix in memory."""
        return self._ready(self.source.take(np.asarray(columns)))

    def __getitem__(self, rows: Any) -> Columns:
        """Some rows."""
        kind = _FarRows if offers(self.source, FarSource) else _Rows
        return Columns(kind(self.source, np.arange(self.output_shape[0])[rows]), self._read)

    def look(self, vectors: Array, least: float) -> Array:
        """``A' vectors``; products that are smaller than least for all vectors may come back as 0."""
        if not offers(self.source, FarSource):
            return self._apply_adjoint(vectors)
        self._read[0] += self.input_shape[0]
        where, values = self.source.products(vectors, least)
        found = np.zeros((self.input_shape[0], vectors.shape[1]), dtype=vectors.dtype)
        found[where] = values
        return found

    def pieces(self) -> Iterator[Any]:
        """All columns, a few at a time, in a precision to compute with."""
        return map(self._block, range(0, self.input_shape[0], self._width))

    def _apply(self, x: Array) -> Array:
        used = np.flatnonzero(x if x.ndim == 1 else x.any(axis=1))
        total = np.zeros((self.output_shape[0], *x.shape[1:]), dtype=np.result_type(self.dtype, x.dtype))
        width = self._width
        if used.size * SPARSE < x.shape[0]:
            for k in range(0, used.size, width):
                some = used[k : k + width]
                total += self.select_columns(some) @ x[some]
            return total
        if offers(self.source, FarSource):
            self._read[0] += x.shape[0]
            return self.source.combine(x.reshape(x.shape[0], -1)).reshape(total.shape)
        for first in range(0, x.shape[0], width):
            total += self._block(first) @ x[first : first + width]
        return total

    def _apply_adjoint(self, y: Array) -> Array:
        if offers(self.source, FarSource):
            return self.look(y.reshape(y.shape[0], -1), 0.0).reshape(-1, *y.shape[1:])
        found = np.empty((self.input_shape[0], *y.shape[1:]), dtype=np.result_type(self.dtype, y.dtype))

        def multiply(first: int) -> None:
            found[first : first + self._width] = self._block(first).T @ y

        with ThreadPoolExecutor(os.process_cpu_count() if hasattr(os, "process_cpu_count") else None) as threads:
            for _ in threads.map(multiply, range(0, self.input_shape[0], self._width)):
                pass
        return found

    @property
    def _width(self) -> int:
        """How many columns are read at a time."""
        return max(1, PIECE // self.output_shape[0])

    def _block(self, first: int) -> Any:
        last = min(first + self._width, self.input_shape[0])
        return self._ready(self.source.block(first, last))

    def _ready(self, block: Any) -> Any:
        """A block that was read, in a precision to compute with."""
        self._read[0] += block.shape[1]
        block = block.astype(self.dtype, copy=False)
        check_entries(stored(block), "a block of columns")
        return block


def as_source(source: Any) -> Any:
    """The source that a path, an array or a sparse matrix makes; any other must be one."""
    if isinstance(source, str | os.PathLike):
        return as_source(np.load(Path(source), mmap_mode="r"))
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return _InMemory(source)
    if scipy.sparse.issparse(source):
        return _InMemory(source.tocsc())
    if offers(source, ColumnSource):
        return source
    raise TypeError(
        "a source of columns must be a path, a matrix, or have shape, dtype, block(first, last) and take(columns),"
        f" got {type(source).__name__}"
    )


@dataclass(frozen=True, eq=False)
class _InMemory:
    """The columns of an array, perhaps a memory map, or of a sparse matrix in CSC format."""

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def dtype(self) -> Any:
        return self.matrix.dtype

    def block(self, first: int, last: int) -> Any:
        return self.matrix[:, first:last]

    def take(self, columns: Array) -> Any:
        return self.matrix[:, columns]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of a source."""

    source: Any
    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.size, self.source.shape[1]

    @property
    def dtype(self) -> Any:
        return self.source.dtype

    def block(self, first: int, last: int) -> Any:
        return self.source.block(first, last)[self.rows]

    def take(self, columns: Array) -> Any:
        return self.source.take(columns)[self.rows]


class _FarRows(_Rows):
    """Some rows of a source on other machines: to them the other rows are multiplied by zeros."""

    def products(self, vectors: Array, least: float) -> tuple[Array, Array]:
        full = np.zeros((self.source.shape[0], vectors.shape[1]), dtype=vectors.dtype)
        np.add.at(full, self.rows, vectors)  # a row may stand twice
        return self.source.products(full, least)

    def combine(self, x: Array) -> Array:
        return self.source.combine(x)[self.rows]

"""Sources of columns: arrays and sparse matrices, in memory or in files; how they are read, and their moments."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ell12.checks import check_container
from ell12.protocols import Array, ColumnSource, FarSource, offers

# The files of a sparse matrix in a folder.
PARTS = ("data", "indices", "indptr", "shape")


def as_source(source: Any) -> Any:
    """The source that a path, an array or a sparse matrix makes; any other must be one."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _sparse_in(path) if path.is_dir() else as_source(np.load(path, mmap_mode="r"))
    check_container(source, "a source of columns")
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return DenseColumns(source)
    if scipy.sparse.issparse(source) and source.ndim == 2:
        return SparseColumns(_canonical(source))
    if hasattr(source, "__dask_graph__"):
        raise TypeError("columns of a dask array: make them with ell12.distributed.columns(X)")
    if offers(source, ColumnSource):
        return source
    raise TypeError(
        "a source of columns must be a path, a matrix, or have shape, dtype, block(first, last) and take(columns),"
        f" got {type(source).__name__}"
    )


def save_columns(source: Any, path: str | os.PathLike[str], block: int) -> None:
    """Write a source to a file in Fortran order or, of a sparse matrix, to a folder; so many columns at a time."""
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists: columns are written to a new place")
    source = as_source(source)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        if isinstance(source, SparseColumns):
            _write_sparse(source.matrix, temporary)
        else:
            _write_dense(source, temporary, block)
        os.replace(temporary, path)  # so that nobody ever sees half of it
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.unlink(missing_ok=True)
        raise


def _write_dense(source: Any, path: Path, block: int) -> None:
    m, n = source.shape
    file: Any = np.lib.format.open_memmap(path, "w+", dtype=source.dtype, shape=(m, n), fortran_order=True)
    for first in range(0, n, block):
        part = source.block(first, min(first + block, n))
        file[:, first : first + block] = part.toarray() if scipy.sparse.issparse(part) else part
    file.flush()


def _write_sparse(matrix: Any, folder: Path) -> None:
    folder.mkdir()
    values = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
    for name, value in zip(PARTS, values, strict=True):
        np.save(folder / f"{name}.npy", value)


def _sparse_in(folder: Path) -> SparseColumns:
    """The matrix in a folder, whose arrays are mapped into memory."""
    lacking = [f"{name}.npy" for name in PARTS if not (folder / f"{name}.npy").is_file()]
    if lacking:
        raise FileNotFoundError(f"{folder} is no folder of a sparse matrix: it lacks {', '.join(lacking)}")
    data, indices, indptr, shape = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in PARTS)
    return SparseColumns(_Parts(data, indices, np.asarray(indptr), (int(shape[0]), int(shape[1]))))


def _canonical(matrix: Any) -> Any:
    """The matrix in CSC format, every entry there once."""
    matrix = matrix.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


@dataclass(frozen=True, eq=False)
class _Parts:
    """The arrays of a matrix in CSC format."""

    data: Array
    indices: Array
    indptr: Array
    shape: tuple[int, int]

    @property
    def dtype(self) -> Any:
        """That of the entries."""
        return self.data.dtype


@dataclass(frozen=True, eq=False)
class _OfMatrix:
    """What all sources over a matrix, in memory or mapped into it, tell of it."""

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape

    @property
    def dtype(self) -> Any:
        """That of the entries."""
        return self.matrix.dtype


class DenseColumns(_OfMatrix):
    """The columns of an array, perhaps a memory map."""

    def block(self, first: int, last: int) -> Any:
        """A view of neighbours."""
        return self.matrix[:, first:last]

    def take(self, columns: Array) -> Any:
        """A copy of some columns: no others are read where columns are in one piece."""
        return self.matrix.T[columns].T


class SparseColumns(_OfMatrix):
    """The columns of a sparse matrix in CSC format, perhaps of mapped arrays, every entry there once."""

    def block(self, first: int, last: int) -> Any:
        """Neighbours; their entries are not copied."""
        start, end = self.matrix.indptr[first], self.matrix.indptr[last]
        indptr = self.matrix.indptr[first : last + 1] - start
        return self._made(self.matrix.data[start:end], self.matrix.indices[start:end], indptr)

    def take(self, columns: Array) -> Any:
        """A copy of some columns."""
        starts, ends = self.matrix.indptr[columns], self.matrix.indptr[columns + 1]
        indptr = np.concatenate([[0], np.cumsum(ends - starts)]).astype(self.matrix.indptr.dtype)
        # The places of all entries: those of a column follow each other.
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        return self._made(self.matrix.data[places], self.matrix.indices[places], indptr)

    def _made(self, data: Array, indices: Array, indptr: Array) -> Any:
        parts = tuple(np.asarray(part) for part in (data, indices, indptr))
        return scipy.sparse.csc_array(parts, shape=(self.shape[0], indptr.size - 1), copy=False)


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Some rows of a source."""

    source: Any
    rows: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows.size, self.source.shape[1]

    @property
    def dtype(self) -> Any:
        """That of the source."""
        return self.source.dtype

    def block(self, first: int, last: int) -> Any:
        """These rows of neighbours."""
        return _rows_of(self.source.block(first, last), self.rows)

    def take(self, columns: Array) -> Any:
        """These rows of some columns."""
        return _rows_of(self.source.take(columns), self.rows)


class SomeFarRows(SomeRows):
    """Some rows of a source on other machines: to them the other rows are multiplied by zeros."""

    def products(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """As the source's."""
        full = np.zeros((self.source.shape[0], vectors.shape[1]), dtype=vectors.dtype)
        np.add.at(full, self.rows, vectors)  # a row may stand twice
        return self.source.products(full, least)

    def combine(self, x: Array) -> Array:
        """As the source's."""
        return self.source.combine(x)[self.rows]

    def moments(self, weight: Array | None, means: Array | None) -> tuple[Array, Array]:
        """As the source's."""
        weight = np.ones(self.rows.size) if weight is None else weight
        return self.source.moments(np.bincount(self.rows, weight, self.source.shape[0]), means)


def entries_of_column(source: Any) -> float:
    """How many numbers a column holds, on average; at least 1."""
    if isinstance(source, SomeRows):
        return entries_of_column(source.source)
    m, n = source.shape
    return max(1.0, source.matrix.data.size / n if isinstance(source, SparseColumns) else m)


def rows_of_source(source: Any, rows: Array) -> Any:
    """The source of some rows."""
    return (SomeFarRows if offers(source, FarSource) else SomeRows)(source, rows)


def _rows_of(block: Any, rows: Array) -> Any:
    if scipy.sparse.issparse(block):
        return block[rows].tocsc()
    return np.take(block.T, rows, axis=1).T  # within columns, which stay in one piece


@contextmanager
def naming_columns(first: int, last: int) -> Iterator[None]:
    """Errors of reading say which columns were asked for."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise OSError(f"columns {first} to {last} of X could not be read: {error}") from error


def in_threads(function: Callable[..., None], arguments: Iterator[tuple[Any, ...]], count: int) -> None:
    """Call a function with one tuple of arguments after the other, which this thread makes, by many threads."""
    with ThreadPoolExecutor(count) as threads:
        waiting: deque[Any] = deque()
        for each in arguments:
            if count == 1:
                function(*each)
                continue
            waiting.append(threads.submit(function, *each))
            if len(waiting) > count:  # no more are in memory than are worked on, and one
                waiting.popleft().result()
        for task in waiting:
            task.result()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def moments_of(piece: Any, weight: Array | None, means: Array | None) -> tuple[Array, Array]:
    """The means of some columns and the sums of squares about them; the piece is written to where it is dense."""
    if scipy.sparse.issparse(piece):
        return _sparse_moments(piece.tocsc(), weight, means)
    columns = piece.T
    m = columns.shape[1]
    if means is None:
        means = columns.sum(axis=1) / m if weight is None else columns @ weight / weight.sum()
        rows = np.arange(m) if weight is None else np.flatnonzero(weight)
        first = columns[:, rows[0]]
        close = np.flatnonzero(np.abs(first - means) <= (8 + m) * np.finfo(float).eps * np.abs(first))
        same = close[(columns[close][:, rows] == first[close, None]).all(axis=1)]
        means[same] = first[same]
    columns -= means[:, None]
    if weight is not None:
        columns *= np.sqrt(weight)
    return means, np.einsum("ij,ij->i", columns, columns)


def _sparse_moments(piece: Any, weight: Array | None, means: Array | None) -> tuple[Array, Array]:
    m, n = piece.shape
    weight = np.ones(m) if weight is None else weight
    column, entry_weight = np.repeat(np.arange(n), np.diff(piece.indptr)), weight[piece.indices]
    total, inside = weight.sum(), np.bincount(column, entry_weight, n)
    if means is None:
        means = np.bincount(column, entry_weight * piece.data, n) / total
        full = np.flatnonzero(np.diff(piece.indptr) == m)
        for j in full:  # few, or the matrix is not sparse
            entries = piece.data[piece.indptr[j] : piece.indptr[j + 1]]
            if (entries == entries[0]).all():
                means[j] = entries[0]
    squares = np.bincount(column, entry_weight * (piece.data - means[column]) ** 2, n)
    outside = np.where(
        np.diff(piece.indptr) == m, 0.0, total - inside
    )  # of weights that are equal but for rounding
    return means, squares + np.maximum(outside, 0) * means**2


def steep_products(piece: Any, vectors: Array, least: Any) -> tuple[Array, Array]:
    """The numbers of the columns whose product with some vector reaches least, a number or one each, and these."""
    products = piece.T @ vectors
    where = np.flatnonzero(np.abs(products).max(axis=1) >= least)
    return where, products if where.size == products.shape[0] else products[where]

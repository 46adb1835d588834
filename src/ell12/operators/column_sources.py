"""Sources of columns: arrays and sparse matrices, in memory or in files, and how they are read."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from ell12.backend import all_finite, square_fits
from ell12.checks import check_container, check_entries
from ell12.operators import stored
from ell12.protocols import Array, ColumnSource, offers

# A source is asked for blocks of about this many numbers, 32 MB in double precision: few enough for memory, enough
# that a call of a source written in Python costs little compared with its work. Solutions of a path side by side
# have at most as many entries, and a grid as many strengths (tests/laws/test_memory).
BLOCK = 2**22
# Blocks of small numbers are converted and multiplied in pieces of this many numbers, 512 kB in double precision.
# Of int8, one thread took 0.5 ns an entry for 2^16 and 2^17, and 0.65 for 2^20, which caches no longer hold.
PIECE = 2**16
# The files of a sparse matrix in a folder.
PARTS = ("data", "indices", "indptr", "shape")


class RemoteSource(ColumnSource, Protocol):
    """A source on other machines: these multiply, and send back the columns of which a product reaches least."""

    products: Callable[[Array, Any], tuple[Array, Array]]  # vectors (m, k), least (or (n,)) -> numbers, products
    combine: Callable[[Array], Array]  # x (n, k) -> A x
    moments: Callable[..., tuple[Array, Array]]  # as those of `ell12.Columns`: weight -> means, sums of squares


def as_source(source: Any) -> Any:
    """The source that a path, an array or a sparse matrix makes; any other must be one."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _sparse_in(path) if path.is_dir() else as_source(np.load(path, mmap_mode="r"))
    check_container(source, "a source of columns")
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return MatrixColumns(source)
    if scipy.sparse.issparse(source) and source.ndim == 2:
        return MatrixColumns(_canonical(source))
    if hasattr(source, "__dask_graph__"):
        raise TypeError("columns of a dask array: make them with ell12.distributed.columns(X)")
    if offers(source, ColumnSource):
        return source
    raise TypeError(
        "a source of columns must be a path, a matrix, or have shape, dtype, block(first, last) and take(columns),"
        f" got {type(source).__name__}"
    )


def save(source: Any, path: str | os.PathLike[str], block: int) -> None:
    """Write a source to a file in Fortran order or, of a sparse matrix, to a folder, by blocks of columns."""
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists: columns are written to a new path")
    source = as_source(source)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        whole = Path(folder) / path.name
        if scipy.sparse.issparse(getattr(source, "matrix", None)):
            _write_sparse(source.matrix, whole)
        else:
            _write_dense(source, whole, block)
        os.replace(whole, path)  # so that nobody ever sees half of it


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


def _sparse_in(folder: Path) -> MatrixColumns:
    """The matrix in a folder, whose arrays are mapped into memory."""
    lacking = [f"{name}.npy" for name in PARTS if not (folder / f"{name}.npy").is_file()]
    if lacking:
        raise FileNotFoundError(f"{folder} is no folder of a sparse matrix: it lacks {', '.join(lacking)}")
    data, indices, indptr, shape = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in PARTS)
    matrix = scipy.sparse.csc_array(tuple(shape.tolist()), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, np.array(indptr)  # which nothing copies or reads
    return MatrixColumns(matrix)


def _canonical(matrix: Any) -> Any:
    """The matrix in CSC format, every entry there once."""
    matrix = matrix.tocsc()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


class MatrixColumns:
    """The columns of an array or of a matrix in CSC format, perhaps mapped into memory."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def block(self, first: int, last: int) -> Any:
        """A view of neighbours."""
        return self.matrix[:, first:last]

    def take(self, columns: Array) -> Any:
        """A copy of some columns: no others are read where columns are in one piece."""
        return self.matrix[:, columns] if scipy.sparse.issparse(self.matrix) else self.matrix.T[columns].T


class SomeRows:
    """Some rows of a source."""

    def __init__(self, source: Any, rows: Array) -> None:
        self.source, self.rows = source, rows
        self.shape, self.dtype = (rows.size, source.shape[1]), source.dtype

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

    def moments(self, weight: Array | None) -> tuple[Array, Array]:
        """As the source's."""
        return self.source.moments(np.bincount(self.rows, weight, self.source.shape[0]))


def rows_of_source(source: Any, rows: Array) -> Any:
    """The source of some rows."""
    return (SomeFarRows if offers(source, RemoteSource) else SomeRows)(source, rows)


def _rows_of(block: Any, rows: Array) -> Any:
    if scipy.sparse.issparse(block):
        return block[rows].tocsc()
    return np.take(block.T, rows, axis=1).T  # within columns, which stay in one piece


class ColumnReader:
    """A source that is read a block at a time, by this thread, and multiplied in pieces, by several.

    It answers as a `RemoteSource` does. The order of sums depends on the sizes of blocks and pieces
    alone: results are the same bits for any number of threads.
    """

    def __init__(self, source: Any, threads: int | None = None) -> None:
        self.source, self.threads, self.checked = as_source(source), threads, False
        m, n = self.source.shape
        self.shape = (int(m), int(n))
        dtype = np.dtype(self.source.dtype)
        if dtype.kind not in "biuf":
            raise TypeError(f"a source of columns must hold real numbers, got dtype {dtype}")
        if 0 in self.shape:
            raise ValueError(f"a source of columns is empty: its shape is {self.shape}")
        self.dtype = np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)

    def products(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """The numbers of the columns whose product with some vector reaches least, a number or one each; these."""
        least = np.broadcast_to(least, self.shape[1:])

        def large(piece: Any, columns: slice) -> tuple[Array, Array]:
            products = piece.T @ vectors
            where = np.flatnonzero(np.abs(products).max(axis=1) >= least[columns])
            return columns.start + where, products[where]

        return _joined(self.map(large, np.result_type(self.dtype, vectors.dtype)))

    def combine(self, x: Array) -> Array:
        """``A x``."""
        total = np.zeros((self.shape[0], *x.shape[1:]), np.result_type(self.dtype, x.dtype))
        for part in self.map(lambda piece, columns: piece @ x[columns], self.dtype):
            total += part
        return total

    def moments(self, weight: Array | None) -> tuple[Array, Array]:
        """The means of the columns and the sums of squares about them."""
        return _joined(self.map(lambda piece, _: _moments(piece, weight), np.float64))

    def map(self, work: Callable[[Any, slice], Any], dtype: Any) -> Iterator[Any]:
        """``work(piece, columns)`` for all pieces in their order, in this precision."""

        def on_block(first: int, block: Any) -> list[Any]:
            found = []
            for columns, piece in self._pieces(first, block, dtype):
                if not self.checked:
                    check_columns(piece, range(columns.start, columns.stop))
                found.append(work(piece, columns))
            return found

        threads = 1 if math.prod(self.shape) <= PIECE else self.threads or processors()
        for found in _in_threads(on_block, self._blocks(), threads):
            yield from found
        self.checked = True

    def take(self, columns: Array) -> Any:
        """Some columns in rising order, as the source gives them."""
        found = self._asked(columns, self.source.take, columns)
        if not self.checked:
            check_columns(found, columns)
        return found

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        """All columns in blocks, each with the number of its first."""
        (m, n), matrix = self.shape, getattr(self.source, "matrix", None)
        per_column = max(1.0, matrix.nnz / n) if matrix is not None and scipy.sparse.issparse(matrix) else m
        size = max(1, int(BLOCK / per_column))
        for first in range(0, n, size):
            last = min(first + size, n)
            yield first, self._asked(range(first, last), self.source.block, first, last)

    def _pieces(self, first: int, block: Any, dtype: Any) -> Iterator[tuple[slice, Any]]:
        """A block in this precision, in pieces if it has another, each with the numbers of its columns."""
        count = block.shape[1]
        whole = scipy.sparse.issparse(block) or block.dtype == dtype
        width = count if whole else max(1, PIECE // self.shape[0])
        for start in range(0, count, width):
            stop = min(start + width, count)
            piece = block if whole else block[:, start:stop]
            yield slice(first + start, first + stop), piece.astype(dtype, copy=False)

    def _asked(self, columns: Any, method: Callable[..., Any], *arguments: Any) -> Any:
        """What a method of the source gives for these columns; an error says which they are."""
        try:
            block = method(*arguments)
        except (OSError, EOFError) as error:
            raise OSError(f"columns {columns[0]} to {columns[-1]} of X could not be read: {error}") from error
        wanted = (self.shape[0], len(columns))
        if tuple(block.shape) != wanted:
            raise ValueError(f"a source of columns gave a block of shape {tuple(block.shape)}, not {wanted}")
        return block


def check_columns(piece: Any, columns: Any) -> None:
    """Raise on entries that cannot be computed with; the error names the column."""
    if piece.dtype.kind != "f" or square_fits(stored(piece)):
        return
    for k, column in enumerate(columns):
        entries = piece[:, [k]].toarray() if scipy.sparse.issparse(piece) else piece[:, k]
        if not all_finite(entries) or np.abs(entries).max() > 1:  # a column may be of small numbers
            check_entries(entries, f"column {column} of X")


def _joined(parts: Iterator[tuple[Array, Array]]) -> tuple[Array, Array]:
    one, other = (np.concatenate(found) for found in zip(*parts, strict=True))
    return one, other


def _in_threads(function: Callable[..., Any], arguments: Iterator[Any], count: int) -> Iterator[Any]:
    """What a function makes of each tuple of arguments, which this thread makes, in order, by many threads."""
    if count == 1:
        yield from starmap(function, arguments)
        return
    with ThreadPoolExecutor(count) as threads:
        waiting: deque[Any] = deque()
        for each in arguments:
            waiting.append(threads.submit(function, *each))
            if len(waiting) > count:  # no more are in memory than are worked on, and one
                yield waiting.popleft().result()
        for task in waiting:
            yield task.result()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _moments(piece: Any, weight: Array | None) -> tuple[Array, Array]:
    """The means of some columns and the sums of squares about them; without rounding of a constant column."""
    if scipy.sparse.issparse(piece):
        return _sparse_moments(piece.tocsc(), weight)
    first = piece[0 if weight is None else np.argmax(weight > 0)]
    columns = piece.T - first[:, None]
    shifts = columns.mean(axis=1) if weight is None else columns @ weight / weight.sum()
    columns -= shifts[:, None]
    if weight is not None:
        columns *= np.sqrt(weight)
    return first + shifts, np.einsum("ij,ij->i", columns, columns)


def _sparse_moments(piece: Any, weight: Array | None) -> tuple[Array, Array]:
    m, n = piece.shape
    weight = np.ones(m) if weight is None else weight
    counts, total = np.diff(piece.indptr), weight.sum()
    column, own = np.repeat(np.arange(n), counts), weight[piece.indices]
    means = np.bincount(column, own * piece.data, n) / total
    squares = np.bincount(column, own * (piece.data - means[column]) ** 2, n)
    squares += np.maximum(total - np.bincount(column, own, n), 0) * means**2
    full = np.flatnonzero(counts == m)
    if full.size:
        means[full], squares[full] = _moments(piece[:, full].toarray(), weight)
    return means, squares

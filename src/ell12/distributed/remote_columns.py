"""Columns on Dask's workers, which multiply with them and send back large products, or columns asked for."""

from __future__ import annotations

import math
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse
from dask.delayed import Delayed, delayed
from dask.utils import parse_bytes

from ell12.backend import is_mapped, refuse_masked
from ell12.checks import naming
from ell12.distributed.dask_rows import check_persist, keeps, memory
from ell12.distributed.executor import Blocks, active_client, compute
from ell12.losses.block_of_rows import as_matrix
from ell12.operators.column_sources import ColumnReader, MatrixColumns, as_source
from ell12.operators.out_of_memory import Columns
from ell12.protocols import Array, ColumnSource, offers


def columns(X: Any, *, persist: bool | str = "auto", scale: Any = False, sample_weight: Any = None) -> Columns:
    """A matrix whose blocks of columns stay on Dask's workers, for losses, paths and estimators.

    The workers multiply their columns with what is sent to them, a few vectors as long as the rows, and send back
    the products that are large enough to matter. The few columns that a solver works with come to this process.

    Parameters
    ----------
    X : dask array, path, function, or list
        A dask array in chunks of columns, dense or sparse, of any real numbers, such as int8. Or where a worker
        finds its columns: the path of a ``.npy`` file that all workers see, or a function without arguments that
        opens an `ell12.protocols.ColumnSource`, each worker reading its own part; a list of such puts them side
        by side. Or a list of delayed matrices or sources (`dask.delayed`), each one block.
    persist : bool or "auto", default "auto"
        Whether workers keep the columns, in memory or, where that is short, spilled to their disks. If not, every
        pass reads them anew. "auto": if workers hold them before they spill (Dask's setting
        ``distributed.worker.memory.target``), or their size is not known.
    scale, sample_weight
        As in `ell12.Columns`.

    Returns
    -------
    Columns
        Of a `ell12.operators.column_sources.RemoteSource`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from ell12.distributed import columns
    >>> X = columns(da.from_array(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int8), chunks=(2, 2)))
    >>> X @ np.array([1.0, 0.0, 10.0]), X.T @ np.ones(2)
    (array([20.,  2.]), array([2., 2., 2.]))
    """
    check_persist(persist)
    if isinstance(X, da.Array):
        source = _of_array(X, persist)
    else:
        parts = list(X) if isinstance(X, list | tuple) else [X]
        if parts and all(isinstance(part, Delayed) for part in parts):
            source = _side_by_side(parts, persist is not False)
        elif parts and all(callable(part) or isinstance(part, str | os.PathLike) for part in parts):
            source = _of_files(parts, persist)
        else:
            kinds = ", ".join(sorted({type(part).__name__ for part in parts})) or "nothing"
            allowed = "a dask array in chunks of columns, a path, a function that opens a source of columns"
            raise TypeError(f"X must be {allowed}, or a list of such or of delayed blocks; got {kinds}")
    return Columns(source, scale=scale, sample_weight=sample_weight)


@dataclass(frozen=True, eq=False)
class RemoteColumns:
    """Columns on workers: what `ell12.operators.column_sources.RemoteSource` asks for.

    Blocks answer in their order, whichever worker is done first: the same bits with any number of workers.
    """

    blocks: Blocks
    shape: tuple[int, int]
    dtype: Any
    firsts: Array  # the number of each block's first column, and that of all columns at the end

    def __repr__(self) -> str:
        m, n = self.shape
        return f"RemoteColumns({m} x {n} in {len(self.blocks.blocks)} blocks, {self.dtype})"

    def block(self, first: int, last: int) -> Array:
        """The neighbours ``first`` to ``last - 1``, brought to this process."""
        return self.take(np.arange(first, last))

    def take(self, columns: Array) -> Array:
        """Some columns, numbered in rising order; no other block is asked."""
        owner = np.searchsorted(self.firsts, columns, side="right") - 1
        concerned = np.unique(owner)
        if concerned.size == 0:
            return np.empty((self.shape[0], 0), dtype=self.dtype)
        own = [columns[owner == i] - self.firsts[i] for i in concerned]
        found = self.blocks.results("take", partial(_ask, "take"), of=concerned.tolist(), each=own)
        if any(map(scipy.sparse.issparse, found)):
            return scipy.sparse.hstack(found, format="csc")
        return np.concatenate(found, axis=1)

    def products(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """The numbers of the columns whose product with some of the vectors (m, k) reaches least, and these.

        A number, or one for each column.
        """
        self.blocks.passes += 1
        parts = np.split(np.broadcast_to(least, self.shape[1:]), self.firsts[1:-1])
        each = [part if (part != part[0]).any() else float(part[0]) for part in parts]
        found = self.blocks.results("products", partial(_ask, "products"), vectors, each=each)
        where = [numbers + first for (numbers, _), first in zip(found, self.firsts[:-1], strict=True)]
        return np.concatenate(where), np.concatenate([values for _, values in found])

    def combine(self, x: Array) -> Array:
        """``A x`` for x of shape (n, k): each block gets its entries, and the sum is made on the workers."""
        return self.blocks.total("combine", partial(_ask, "combine"), each=np.split(x, self.firsts[1:-1]))

    def moments(self, weight: Array | None) -> tuple[Array, Array]:
        """The means of the columns and the sums of squares about them."""
        self.blocks.passes += 1
        means, squares = zip(*self.blocks.results("moments", partial(_ask, "moments"), weight), strict=True)
        return np.concatenate(means), np.concatenate(squares)


# From what people have to blocks


def _of_array(X: da.Array, persist: bool | str) -> RemoteColumns:
    """One block for each chunk of columns."""
    if X.ndim != 2 or any(map(math.isnan, X.shape)):
        raise ValueError(
            f"X must be a matrix whose chunks have known sizes, got shape {X.shape}: X.compute_chunk_sizes() finds"
            " them out"
        )
    if 0 in X.shape:
        raise ValueError(f"X is empty: its shape is {X.shape}")
    X = X if X.numblocks[0] == 1 else X.rechunk({0: -1})
    parts = [part for part in zip(X.to_delayed().ravel(), X.chunks[1], strict=True) if part[1]]
    shapes = [(X.shape[0], width) for _, width in parts]
    return _side_by_side([chunk for chunk, _ in parts], keeps(X, persist), shapes, [X.dtype])


def _of_files(parts: Sequence[Any], persist: bool | str) -> RemoteColumns:
    """Each opened by every worker, who reads some of its columns, in blocks of Dask's setting array.chunk-size.

    That does not depend on the workers, so that sums are the same with any number of them.
    """
    client = active_client()
    opens = [part if callable(part) else partial(as_source, os.fspath(part)) for part in parts]
    ask = delayed(_describe_file, pure=False)
    found = compute(client, [ask(number, open_part) for number, open_part in enumerate(opens)])
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in found]
    keep = persist is True or (persist == "auto" and sum(sizes) <= memory(client))
    token, ranges, most = uuid.uuid4().hex, [], parse_bytes(dask.config.get("array.chunk-size"))
    for k, (((m, n), dtype), size) in enumerate(zip(found, sizes, strict=True)):
        count = max(1, round(size / most))
        for first, last in pairwise(np.linspace(0, n, min(count, n) + 1).astype(int).tolist()):
            ranges.append(_Range(f"{token}-{k}", opens[k], first, (m, last - first), dtype))
    return _side_by_side(ranges, keep, [part.shape for part in ranges], [part.dtype for part in ranges])


def _side_by_side(parts: Sequence[Any], keep: bool, shapes: Any = None, dtypes: Any = ()) -> RemoteColumns:
    """A block for each part, kept by the workers or made anew in every pass; unknown shapes are asked for."""
    make, token = delayed(_block, pure=False), uuid.uuid4().hex
    named = enumerate(zip(parts, shapes or [None for _ in parts], strict=True))
    tasks = [
        make(part, f"block {k} of the columns", shape, keep, dask_key_name=f"ell12-block-{token}-{k}")
        for k, (part, shape) in named
    ]
    blocks = Blocks(tasks, keep)
    if shapes is None:
        shapes, dtypes = zip(*blocks.results("describe", _describe), strict=True)
    rows = sorted({shape[0] for shape in shapes})
    if len(rows) > 1:
        raise ValueError(f"all parts of X must have the same number of rows, got {rows[0]} and {rows[-1]}")
    firsts = np.cumsum([0, *(shape[1] for shape in shapes)])
    return RemoteColumns(blocks, (rows[0], int(firsts[-1])), np.result_type(*dtypes), firsts)


# On a worker


@dataclass(eq=False)
class ColumnBlock:
    """Some columns on their worker, which one thread reads, that of the task."""

    name: str
    source: Any

    def __sizeof__(self) -> int:
        """What Dask should count when it decides what to spill."""
        matrix: Any = getattr(self.source, "matrix", None)
        parts = (matrix.data, matrix.indices, matrix.indptr) if scipy.sparse.issparse(matrix) else (matrix,)
        return sum(getattr(part, "nbytes", 0) for part in parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What comes from a disk or another worker may lie at an odd address, where products are slow."""
        self.__dict__ |= state
        if isinstance(getattr(self.source, "matrix", None), np.ndarray):
            self.source = MatrixColumns(np.require(self.source.matrix, requirements="A"))

    @contextmanager
    def reader(self) -> Iterator[ColumnReader]:
        """The columns, counted from the first of the block in what errors say."""
        with naming(self.name):
            try:
                yield ColumnReader(self.source, threads=1)
            except ValueError as error:
                raise ValueError(str(error).replace(" of X ", " of the block ")) from error


@dataclass(frozen=True, eq=False)
class _Range:
    """Neighbouring columns of a file, which the thread that reads them opens: what travels is how to open it."""

    key: str
    open: Callable[[], Any]
    first: int
    shape: tuple[int, int]
    dtype: Any

    @property
    def source(self) -> Any:
        """All of the file, which stays open until its thread is asked for another."""
        if getattr(_opened, "key", None) != self.key:
            _opened.file, _opened.key = as_source(self.open()), self.key
        return _opened.file

    def block(self, first: int, last: int) -> Any:
        return self.source.block(self.first + first, self.first + last)

    def take(self, columns: Array) -> Any:
        return self.source.take(self.first + columns)


_opened = threading.local()  # the file of each thread, since a source is asked by one at a time


def _block(chunk: Any, name: str, shape: tuple[int, int] | None, keep: bool) -> ColumnBlock:
    with naming(name):
        refuse_masked(chunk, "X")
        source = as_source(chunk if offers(chunk, ColumnSource) else as_matrix(chunk))
        if shape not in (None, tuple(source.shape)):
            raise ValueError(f"it has the shape {tuple(source.shape)}, where X says {shape}")
        if keep:  # in the order in which pieces of it, and single columns, are neighbours
            values = source.block(0, source.shape[1])
            if not scipy.sparse.issparse(values):
                values = np.array(values, order="F") if is_mapped(values) else np.require(values, None, ["F", "A"])
            source = as_source(values)
    return ColumnBlock(name, source)


def _describe(block: ColumnBlock) -> tuple[tuple[int, int], Any]:
    return block.source.shape, block.source.dtype


def _describe_file(number: int, open_part: Callable[[], Any]) -> tuple[tuple[int, int], Any]:
    with naming(f"part {number} of X"):
        found = ColumnReader(open_part())  # which checks it
    return found.shape, found.source.dtype


def _ask(method: str, block: ColumnBlock, own: Any, *shared: Any) -> Any:
    with block.reader() as reader:
        return getattr(reader, method)(*shared, own)

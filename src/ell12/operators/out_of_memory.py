"""Columns that stay where they are: in a file, on other machines, or wherever a source reads them from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import all_finite, as_numpy, square_fits
from ell12.checks import check_entries
from ell12.operators.column_sources import (
    as_source,
    entries_of_column,
    in_threads,
    moments_of,
    naming_columns,
    processors,
    rows_of_source,
    save_columns,
    steep_products,
)
from ell12.operators.linear_operator import ArrayOperator, stored
from ell12.protocols import Array, ColumnSource, FarSource, offers

# A source is asked for blocks of about so many numbers, 32 MB in double precision: few enough for memory, so many
# that a call of a source written in Python costs little beside its work.
BLOCK = 2**22
# Blocks of small numbers are converted and multiplied in pieces of so many numbers, 512 kB in double precision.
# Of int8, one thread took 0.5 ns an entry for 2^16 and 2^17, and 0.65 for 2^20, which caches no longer hold.
PIECE = 2**16
# A file is written in blocks of about so many bytes.
SAVED = 2**28
# A product with x gathers the columns in use where they are fewer than one in SPARSE, else it reads all.
SPARSE = 8
# So many columns that were gathered are kept beside as many as were asked for last, as they came from the source.
UNUSED_COLUMNS = 1024
# So many products with the adjoint are remembered: paths and certificates ask for those at zero and at the last
# point again.
REMEMBERED = 2


@dataclass(frozen=True, eq=False)
class Columns(ArrayOperator):
    """A matrix whose columns are read a few at a time: more of them than memory holds.

    Off the support the first-order condition needs one product with the adjoint, so columns stay where they are:
    solvers gather those in use and look at the others now and then. Losses, paths and estimators take it as any
    other matrix. Estimators centre it implicitly.

    Parameters
    ----------
    source : path, array, sparse matrix or ColumnSource
        A ``.npy`` file of any real numbers, such as int8; a folder of a sparse matrix, as `Columns.save` writes
        it; an array or a memory map; a sparse matrix; or any object with ``shape``, ``dtype``, ``block`` and
        ``take`` (`ell12.protocols.ColumnSource`), which is asked by one thread at a time. For Dask's workers see
        `ell12.distributed.columns`.
    scale : bool or array of shape (n,), default False
        Whether the matrix is that of the source with every column divided by its standard deviation, or by the
        given number; a constant column is divided by 1. New rows are to be divided by the same:
        ``Columns(new, scale=X.scales)``. Some rows of X keep its scales.
    sample_weight : array of shape (m,), optional
        Weights of the rows in the standard deviations.

    See Also
    --------
    L12Regressor : Regression, which takes these in place of X.

    Notes
    -----
    A file should be in Fortran order, which keeps a column in one piece. In C order a few columns touch every page
    of the file; ``Columns.save(path, new_path)`` turns it once.

    Entries are looked at when they are first read: NaN and infinities are errors that name the column. ``bounds``,
    ``groups`` and ``shared_support`` of estimators take steps in all columns, each of which reads them twice.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import Columns
    >>> X = Columns(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int8))
    >>> X @ np.array([1.0, 0.0, 10.0]), X.T @ np.ones(2), X.reads
    (array([20.,  2.]), array([2., 2., 2.]), 2.0)
    >>> Columns(np.array([[0, 1, 20], [2, 1, 0]], dtype=np.int8), scale=True).scales
    array([ 1.,  1., 10.])
    """

    source: Any
    scale: Any = field(default=False, kw_only=True)
    sample_weight: Any = field(default=None, kw_only=True)
    _read: list[int] = field(
        default_factory=list, kw_only=True, repr=False
    )  # columns, for each time some were read
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # what was found out of the data

    is_far = True  # looking at all columns costs more than working with some

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_source(self.source))
        m, n = (int(size) for size in self.source.shape)
        dtype = np.dtype(self.source.dtype)
        if dtype.kind not in "biuf":
            raise TypeError(f"a source of columns must hold real numbers, got dtype {dtype}")
        if m == 0 or n == 0:
            raise ValueError(f"a source of columns is empty: its shape is {(m, n)}")
        single = dtype.kind == "f" and dtype.itemsize <= 4
        self._set(input_shape=(n,), output_shape=(m,), takes_columns=True)
        self._set(dtype=np.dtype(np.float32 if single else np.float64))
        if not isinstance(self.scale, bool | np.bool_):
            self._known["scales"] = _as_scales(self.scale, n)

    def __repr__(self) -> str:
        m, n = self.shape
        scaled = "" if self.scale is False else ", scaled"
        return f"Columns({m} x {n} of {np.dtype(self.source.dtype)}{scaled})"

    @staticmethod
    def save(source: Any, path: Any) -> None:
        """Write a matrix where `Columns` reads it best: a new ``.npy`` file in Fortran order, or a folder.

        Parameters
        ----------
        source : path, array, sparse matrix or ColumnSource
            As in `Columns`. A sparse matrix becomes a folder of its arrays in CSC format (``data.npy``,
            ``indices.npy``, ``indptr.npy``, ``shape.npy``), anything else a file, a block at a time.
        path : path
            Of the file or folder, which must not exist. It appears when it is whole.
        """
        source = as_source(source)
        # As each block of a file in C order touches all of its pages, blocks are few.
        save_columns(source, path, max(1, SAVED // (source.shape[0] * np.dtype(source.dtype).itemsize)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.output_shape[0], self.input_shape[0]

    @property
    def reads(self) -> float:
        """How often all columns were read, so far; some columns count by their share."""
        return sum(self._read) / self.input_shape[0]

    @property
    def scales(self) -> Array | None:
        """What the columns of the source are divided by; None where they are not."""
        if self.scale is False or self.scale is np.False_:
            return None
        if "scales" not in self._known:
            weight = self.sample_weight
            total = self.output_shape[0] if weight is None else float(np.sum(weight))
            deviations = np.sqrt(self._moments(weight, None, 1.0)[1] / total)
            self._known["scales"] = np.where(deviations > 0, deviations, 1.0)
        return self._known["scales"]

    def __getitem__(self, rows: Any) -> Columns:
        """Some rows."""
        scale = False if self.scales is None else self.scales
        which = np.arange(self.output_shape[0])[rows]
        return Columns(rows_of_source(self.source, which), scale=scale, _read=self._read)

    def select_columns(self, columns: Array) -> Any:
        """Some columns as a matrix in memory."""
        columns = np.asarray(columns)
        if columns.size == 0:
            return self.select_columns(np.zeros(1, dtype=np.int64))[:, :0]
        if columns.size > 1 and (np.diff(columns) < 0).any():
            order = np.argsort(columns, kind="stable")
            return self.select_columns(columns[order])[:, np.argsort(order)]
        block = self._gathered(columns).astype(self.dtype, copy=False)
        if "looked" not in self._known:
            self._check(block, 0, columns)
        scales = self.scales
        if scales is None:
            return block
        factors = (1 / scales[columns]).astype(self.dtype)
        return block @ scipy.sparse.diags_array(factors) if scipy.sparse.issparse(block) else block * factors

    def moments(self, weight: Array | None = None, means: Array | None = None) -> tuple[Array, Array]:
        """The means of the columns, and the weighted sums of the squares of what they are without them.

        One read, and none if the same was asked for before. Means may be given. A constant column has its mean
        and a sum of zero without rounding.
        """
        scales: Any = 1.0 if self.scales is None else self.scales
        found, squares = self._moments(weight, means, scales)
        return found / scales, squares / scales**2

    def look(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """The rows of ``A' vectors`` in which a product reaches least, or that of its column: numbers, products.

        All of them where least is 0.
        """
        scales = self.scales
        bound = least if scales is None or not np.any(least) else least * scales
        if offers(self.source, FarSource):
            where, values = self.source.products(vectors, bound)
            self._read.append(self.input_shape[0])
        else:
            where, values = self._steep(vectors, bound)
        return where, values if scales is None else values / scales[where, None]

    def _steep(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """As ``products`` of a `ell12.protocols.FarSource`."""
        found: dict[int, tuple[Array, Array]] = {}

        def work(piece: Any, first: int) -> None:
            own = least if np.ndim(least) == 0 else least[first : first + piece.shape[1]]
            where, products = steep_products(piece, vectors, own)
            found[first] = first + where, products

        self._each(work, np.result_type(self.dtype, vectors.dtype))
        where, products = zip(*(found[first] for first in sorted(found)), strict=True)
        return np.concatenate(where), np.concatenate(products)

    def pieces(self, dtype: Any = None, *, fresh: bool = False) -> Iterator[Any]:
        """All columns, a few at a time, in a precision to compute with; fresh ones may be written to."""
        for first, block in self._blocks():
            for start, piece in self._pieces_of(block, self.dtype if dtype is None else dtype, fresh):
                self._check(piece, first + start)
                yield piece

    # Products

    def _apply(self, x: Array) -> Array:
        used = np.flatnonzero(x if x.ndim == 1 else x.any(axis=1))
        total = np.zeros((self.output_shape[0], *x.shape[1:]), dtype=np.result_type(self.dtype, x.dtype))
        if used.size * SPARSE < x.shape[0]:
            for k in range(0, used.size, self._most):
                some = used[k : k + self._most]
                total += self.select_columns(some) @ x[some]
            return total
        scales, first = self.scales, 0
        x = x if scales is None else (x.T / scales).T.astype(x.dtype)
        if offers(self.source, FarSource):
            self._read.append(x.shape[0])
            return self.source.combine(x.reshape(x.shape[0], -1)).reshape(total.shape)
        for piece in self.pieces():
            total += piece @ x[first : first + piece.shape[1]]
            first += piece.shape[1]
        return total

    def _apply_adjoint(self, y: Array) -> Array:
        y = np.asarray(y)
        for vector, product in self._known.get("products", ()):
            if vector.dtype == y.dtype and np.array_equal(vector, y):
                return product.copy()
        if offers(self.source, FarSource):
            found = self.look(y.reshape(y.shape[0], -1), 0.0)[1].reshape(-1, *y.shape[1:])
        else:
            found = np.empty((self.input_shape[0], *y.shape[1:]), dtype=np.result_type(self.dtype, y.dtype))

            def work(piece: Any, first: int) -> None:
                found[first : first + piece.shape[1]] = piece.T @ y

            self._each(work, found.dtype)
            if self.scales is not None:
                found /= self.scales.reshape(-1, *(1 for _ in y.shape[1:]))
        if y.ndim == 1:
            kept = self._known.get("products", ())[: REMEMBERED - 1]
            self._known["products"] = ((y.copy(), found.copy()), *kept)
        return found

    def _moments(self, weight: Array | None, means: Array | None, scales: Any) -> tuple[Array, Array]:
        """Those of the source; means are given in units of the scales. Equal weights are none, times a factor."""
        factor = 1.0
        if weight is not None:
            weight = np.asarray(as_numpy(weight), dtype=np.float64).reshape(-1)
            if (weight == weight[0]).all():
                factor, weight = float(weight[0]), None
        for known, found, squares in self._known.get("moments", ()):
            same = known is weight if known is None or weight is None else np.array_equal(known, weight)
            if same and (means is None or np.array_equal(means, (found / scales).astype(means.dtype))):
                return found, factor * squares
        means = None if means is None else means * scales
        (n,) = self.input_shape
        centres, squares = np.zeros(n) if means is None else np.array(means, dtype=np.float64), np.empty(n)

        def work(piece: Any, first: int) -> None:
            part = slice(first, first + piece.shape[1])
            centres[part], squares[part] = moments_of(piece, weight, None if means is None else centres[part])

        if offers(self.source, FarSource):
            centres, squares = self.source.moments(weight, means)
            self._read.append(n)
        else:
            self._each(work, np.dtype(np.float64), fresh=True)
        self._known["moments"] = ((weight, centres, squares), *self._known.get("moments", ())[: REMEMBERED - 1])
        return centres, factor * squares

    # Reading

    @property
    def _most(self) -> int:
        """How many columns are read at a time."""
        return max(1, int(BLOCK / entries_of_column(self.source)))

    @property
    def _width(self) -> int:
        """How many columns are converted and multiplied at a time."""
        return max(1, PIECE // self.output_shape[0])

    def _each(self, work: Callable[[Any, int], None], dtype: Any, *, fresh: bool = False) -> None:
        """Call ``work(piece, first)`` for all columns, in this precision, by all processors.

        The source is asked by this thread alone. Each thread converts numbers into a buffer of its own, which
        ``work`` may write to if it asks for ``fresh`` ones.
        """
        unseen = "looked" not in self._known

        def pass_on(first: int, block: Any) -> None:
            for start, piece in self._pieces_of(block, dtype, fresh):
                if unseen:
                    self._check(piece, first + start)
                work(piece, first + start)

        small = self.output_shape[0] * self.input_shape[0] <= PIECE
        in_threads(pass_on, self._blocks(), 1 if small else processors())
        self._known["looked"] = True

    def _pieces_of(self, block: Any, dtype: Any, fresh: bool) -> Iterator[tuple[int, Any]]:
        """A block in pieces, each with the number of its first column; of several one is there at a time."""
        if scipy.sparse.issparse(block) or (block.dtype == dtype and not fresh):
            yield 0, block.astype(dtype, copy=False)
            return
        buffer = np.empty((self._width, self.output_shape[0]), dtype=dtype)
        for start in range(0, block.shape[1], self._width):
            columns = block.T[start : start + self._width]
            np.copyto(buffer[: columns.shape[0]], columns)
            yield start, buffer[: columns.shape[0]].T

    def _blocks(self) -> Iterator[tuple[int, Any]]:
        """All columns in blocks, each with the number of its first."""
        n, size = self.input_shape[0], self._most  # whatever the number of processors, or last digits would differ
        for first in range(0, n, size):
            last = min(first + size, n)
            with naming_columns(first, last - 1):
                block = self.source.block(first, last)
            self._check_shape(block, last - first)
            yield first, block
        self._read.append(n)

    def _gathered(self, columns: Array) -> Any:
        """Some columns in rising order as the source gives them; those that were gathered lately are not read."""
        kept, block = self._known.get("gathered", (columns[:0], None))
        where = np.minimum(np.searchsorted(kept, columns), max(kept.size - 1, 0))
        known = kept[where] == columns if kept.size else np.zeros(columns.size, dtype=bool)
        if columns.size and known.all():
            return block.T[where].T
        new = columns[~known]
        with naming_columns(*new[[0, -1]].tolist()):
            found = self.source.take(new)
        self._check_shape(found, new.size)
        self._read.append(int(new.size))
        if scipy.sparse.issparse(found):
            return found
        if kept.size > 2 * columns.size + UNUSED_COLUMNS:
            block, kept = block.T[where[known]].T, columns[known]
        every = np.concatenate([kept, new])
        order = np.argsort(every)
        rows = found.T if block is None else np.concatenate([block.T, found.T])
        self._known["gathered"] = every[order], rows[order].T
        return rows[order][np.searchsorted(every[order], columns)].T

    def _check_shape(self, block: Any, count: int) -> None:
        if tuple(block.shape) != (self.output_shape[0], count):
            wanted = (self.output_shape[0], count)
            raise ValueError(f"a source of columns gave a block of shape {tuple(block.shape)}, not {wanted}")

    def _check(self, piece: Any, first: int, columns: Any = None) -> None:
        """Raise on entries that cannot be computed with; the error names the column."""
        if np.dtype(self.source.dtype).kind != "f" or square_fits(stored(piece)):
            return
        for k in range(piece.shape[1]):
            entries = piece[:, [k]].toarray() if scipy.sparse.issparse(piece) else piece[:, k]
            if not all_finite(entries) or np.abs(entries).max() > 1:  # a column may be of small numbers
                check_entries(entries, f"column {first + k if columns is None else columns[k]} of X")


def as_columns(A: Any) -> Any:
    """`Columns` of an object that is a `ell12.protocols.ColumnSource` and no operator; any other as it is."""
    return Columns(A) if not hasattr(A, "__matmul__") and offers(A, ColumnSource) else A


def _as_scales(scale: Any, n: int) -> Array:
    scales = np.asarray(as_numpy(scale), dtype=np.float64)
    if scales.shape != (n,):
        raise ValueError(f"scale must be True, False or an array of shape ({n},), got shape {scales.shape}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError("scale must hold finite numbers > 0 only")
    return scales

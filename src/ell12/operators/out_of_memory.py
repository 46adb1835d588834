"""Columns that stay where they are: in a file, on other machines, or wherever a source reads them from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_numpy
from ell12.checks import check_numbers, naming
from ell12.operators import ArrayOperator
from ell12.operators.column_sources import BLOCK, ColumnReader, RemoteSource, as_source, rows_of_source, save
from ell12.operators.gram import SPARSE
from ell12.protocols import Array, ColumnSource, offers


@dataclass(frozen=True, eq=False)
class Columns(ArrayOperator):
    """A matrix whose columns are read a few at a time: more of them than memory holds.

    Off the support the first-order condition needs one product with the adjoint, so columns stay where they are:
    solvers gather those in use and multiply with the others now and then. Losses, paths and estimators take it as
    any other matrix. Estimators centre it implicitly.

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
    L12Regressor : Regression, which takes these as X.

    Notes
    -----
    A file should be in Fortran order, which keeps a column in one piece. In C order a few columns touch every page
    of the file; ``Columns.save(path, new_path)`` turns it once.

    Entries are checked when they are first read: NaN and infinities are errors that name the column. ``bounds``,
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
    _read: list[int] = field(default_factory=list, kw_only=True, repr=False)  # columns, for each time some were
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # what was found out of the data
    _reader: Any = field(init=False, repr=False)  # multiplies with all columns

    out_of_memory = True  # all columns cost more than some

    def __post_init__(self) -> None:
        reader = ColumnReader(self.source)
        if self.sample_weight is not None:
            check_numbers(sample_weight=self.sample_weight)
        self._set(source=reader.source, _reader=reader, dtype=reader.dtype, takes_columns=True)
        self._set(input_shape=reader.shape[1:], output_shape=reader.shape[:1])
        if not isinstance(self.scale, bool | np.bool_):
            self._known["scales"] = _as_scales(self.scale, reader.shape[1])

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
        # As each block of a file in C order touches all of its pages, blocks are larger than for products.
        save(source, path, max(1, 8 * BLOCK // source.shape[0]))

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
            deviations = np.sqrt(self._moments(weight)[1] / total)
            self._known["scales"] = np.where(deviations > 0, deviations, 1.0)
        return self._known["scales"]

    def __getitem__(self, rows: Any) -> Columns:
        """Some rows."""
        scale = False if self.scales is None else self.scales
        which = np.arange(self.output_shape[0])[rows]
        return Columns(rows_of_source(self.source, which), scale=scale, _read=self._read)

    def select_columns(self, columns: Array) -> Any:
        """Some columns as a matrix in memory, a fresh copy."""
        columns = np.asarray(columns)
        if columns.size == 0:
            return self.select_columns(np.zeros(1, dtype=np.int64))[:, :0]
        if columns.size > 1 and (np.diff(columns) < 0).any():
            order = np.argsort(columns, kind="stable")
            return self.select_columns(columns[order])[:, np.argsort(order)]
        block = self._copied(columns).astype(self.dtype)
        if self.scales is None:
            return block
        factors = (1 / self.scales[columns]).astype(self.dtype)
        return block @ scipy.sparse.diags_array(factors) if scipy.sparse.issparse(block) else block * factors

    def moments(self, weight: Array | None = None) -> tuple[Array, Array]:
        """The weighted means of the columns, and the sums of the squares of what they are without them.

        One read, and none if the same was asked for before. A constant column has its mean and a sum of zero
        without rounding.
        """
        scales: Any = 1.0 if self.scales is None else self.scales
        means, squares = self._moments(weight)
        return means / scales, squares / scales**2

    def products(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """The rows of ``A' vectors`` in which a product reaches least, or that of its column: numbers, products.

        All of them where least is 0.
        """
        scales = self.scales
        where, values = self._all().products(vectors, least if scales is None else least * scales)
        return where, values if scales is None else values / scales[where, None]

    def _all(self) -> Any:
        """What multiplies with all columns, which is a read."""
        self._read.append(self.input_shape[0])
        return self.source if offers(self.source, RemoteSource) else self._reader

    def _apply(self, x: Array) -> Array:
        used = np.flatnonzero(x if x.ndim == 1 else x.any(axis=1))
        if used.size * SPARSE < x.shape[0]:
            total = np.zeros((self.output_shape[0], *x.shape[1:]), dtype=np.result_type(self.dtype, x.dtype))
            step = max(1, BLOCK // self.output_shape[0])
            for k in range(0, used.size, step):
                some = used[k : k + step]
                total += self.select_columns(some) @ x[some]
            return total
        x = x if self.scales is None else (x.T / self.scales).T.astype(x.dtype)
        return self._all().combine(x.reshape(x.shape[0], -1)).reshape(-1, *x.shape[1:])

    def _apply_adjoint(self, y: Array) -> Array:
        """``A' y``, of the last two vectors from memory: paths and certificates ask for these again."""
        y = np.asarray(y)
        kept = self._known.get("products", ())
        for vector, product in kept:
            if vector.dtype == y.dtype and np.array_equal(vector, y):
                return product.copy()
        found = self.products(y.reshape(y.shape[0], -1), 0.0)[1].reshape(-1, *y.shape[1:])
        if y.ndim == 1:
            self._known["products"] = ((y.copy(), found.copy()), *kept[:1])
        return found

    def _moments(self, weight: Array | None) -> tuple[Array, Array]:
        """Those of the source. Equal weights are none, times a factor."""
        factor = 1.0
        if weight is not None:
            weight = np.asarray(as_numpy(weight), dtype=np.float64).reshape(-1)
            if (weight == weight[0]).all():
                factor, weight = float(weight[0]), None
        known, found = self._known.get("moments", (0, None))
        if found is None or not np.array_equal(known, weight):  # type: ignore[arg-type]
            found = self._all().moments(weight)
            self._known["moments"] = weight, found
        return found[0], factor * found[1]

    def _copied(self, columns: Array) -> Any:
        """Some columns in rising order as the source gives them; those asked for the last time are not read."""
        kept, block = self._known.get("copied", (columns[:0], None))
        old = np.isin(columns, kept, assume_unique=True)
        if old.all():
            return block.T[np.searchsorted(kept, columns)].T
        found = self._reader.take(columns[~old])
        self._read.append(found.shape[1])
        if scipy.sparse.issparse(found):
            return found
        rows = np.empty((columns.size, found.shape[0]), dtype=found.dtype)
        rows[~old] = found.T
        if old.any():
            rows[old] = block.T[np.searchsorted(kept, columns[old])]
        self._known["copied"] = columns, rows.T
        return rows.T


def as_columns(A: Any) -> Any:
    """`Columns` of an object that is a `ell12.protocols.ColumnSource` and no operator; any other as it is."""
    return Columns(A) if not hasattr(A, "__matmul__") and offers(A, ColumnSource) else A


def _as_scales(scale: Any, n: int) -> Array:
    with naming("scale"):
        scales = np.asarray(as_numpy(scale), dtype=np.float64)
    if scales.shape != (n,):
        raise ValueError(f"scale must be True, False or an array of shape ({n},), got shape {scales.shape}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError("scale must hold finite numbers > 0 only")
    return scales

"""The entries of a matrix that are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    all_finite,
    as_floating,
    beside,
    is_array,
    is_complex,
    is_half,
    is_numpy,
    namespace,
    refuse_gradient,
    scatter,
)
from ell12.checks import check_entries, check_share, convert, generator, naming
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class Observed:
    """Known entries ``O_ij`` of an m x n matrix, sorted by row, then by column.

    Parameters
    ----------
    rows, columns : arrays of int of shape (n_observed,)
        Where they are; no pair twice. They need not come sorted.
    values : array of shape (n_observed,)
        What they are: finite real numbers.
    shape : (int, int)
        The shape of the whole matrix.

    Notes
    -----
    NumPy arrays; `from_mask` also makes one of PyTorch, CuPy or JAX arrays, where they are. `as_observed` reads
    the usual containers.

    Examples
    --------
    >>> Observed([1, 0], [0, 2], [5.0, 3.0], shape=(2, 3)).sparse().toarray()
    array([[0., 0., 3.],
           [5., 0., 0.]])
    """

    rows: Array
    columns: Array
    values: Array
    shape: tuple[int, int]
    _is_trusted: bool = field(default=False, repr=False)  # made by this package: sorted, checked, finite

    def __post_init__(self) -> None:
        if self._is_trusted:
            return
        values = as_real(self.values, "values")
        shape = _as_shape(self.shape)
        rows, columns, values = _sorted(_index(self.rows, "rows"), _index(self.columns, "columns"), values, shape)
        if not all_finite(values):
            raise ValueError("values must be finite; leave out what is not known")
        for name, value in (("rows", rows), ("columns", columns), ("values", values), ("shape", shape)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_is_trusted", True)

    def __repr__(self) -> str:
        return f"Observed({self.n_observed} of {self.shape[0]} x {self.shape[1]}, {self.values.dtype})"

    @classmethod
    def from_mask(cls, values: Array, mask: Array) -> Observed:
        """The entries of a dense array at which the mask, of the same library or NumPy's, is true."""
        values = as_real(values, "values")
        mask = beside(mask if is_array(mask) else np.asarray(mask), values, "mask")
        if tuple(values.shape) != tuple(mask.shape) or len(values.shape) != 2:
            shapes = f"{tuple(values.shape)} and {tuple(mask.shape)}"
            raise ValueError(f"values and mask must be two matrices of the same shape; got {shapes}")
        observed = cls._at(values, mask)
        if not all_finite(observed.values):
            raise ValueError("values must be finite where mask is true")
        return observed

    @classmethod
    def _at(cls, values: Array, mask: Array) -> Observed:
        """The entries of a dense array at which the mask is true, which are finite."""
        xp = namespace(values)
        rows, columns = xp.nonzero(mask)
        flat = rows * values.shape[1] + columns
        known = xp.take(xp.reshape(values, (-1,)), flat, axis=0)
        if is_numpy(rows):
            rows, columns = (_shortened(i, values.shape) for i in (rows, columns))
        return cls(rows, columns, known, tuple(values.shape), _is_trusted=True)

    @property
    def n_observed(self) -> int:
        """How many entries are known."""
        return self.values.shape[0]

    @property
    def fraction(self) -> float:
        """The share of the entries that is known."""
        return self.n_observed / max(self.shape[0] * self.shape[1], 1)

    @cached_property
    def flat(self) -> Array:
        """The places of the entries in the matrix written row by row."""
        if is_numpy(self.rows):
            return self.rows.astype(np.int64) * self.shape[1] + self.columns
        return self.rows * self.shape[1] + self.columns

    @cached_property
    def row_starts(self) -> np.ndarray:
        """Where each row begins among the entries, and the end: the ``indptr`` of CSR."""
        counts = np.bincount(self.rows, minlength=self.shape[0])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def by_column(self) -> tuple[np.ndarray, np.ndarray]:
        """The order that sorts the entries by column, then row; and where each column begins in it."""
        places = np.arange(self.n_observed)
        by_row = scipy.sparse.csr_array((places, self.columns, self._sparse_starts), shape=self.shape)
        by_column = by_row.tocsc()  # a counting sort
        return by_column.data, by_column.indptr.astype(np.int64)

    def mask(self) -> Array:
        """A dense matrix of truth values: what is known."""
        return self.dense(namespace(self.values).ones_like(self.values)) > 0

    def dense(self, values: Array | None = None) -> Array:
        """A dense matrix with these values (those observed by default) at the known places and zero elsewhere."""
        values = self.values if values is None else values
        m, n = self.shape
        return namespace(values).reshape(scatter(values, self.flat, m * n), (m, n))

    def sparse(self, values: Array | None = None) -> Any:
        """The same as a CSR array; the pattern is made once."""
        values = self.values if values is None else values
        starts = self._sparse_starts
        return scipy.sparse.csr_array((values, self.columns, starts), shape=self.shape, copy=False)

    def matrix(self, values: Array | None = None) -> Any:
        """`sparse` for NumPy arrays, `dense` for those of other libraries."""
        return self.sparse(values) if is_numpy(self.values) else self.dense(values)

    def with_values(self, values: Array) -> Observed:
        """The same places with other values."""
        values = as_real(values, "values")
        if values.shape != self.values.shape or not all_finite(values):
            raise ValueError(f"values must be {self.n_observed} finite numbers, one for each known entry")
        return replace(self, values=values)

    def select(self, kept: np.ndarray) -> Observed:
        """The entries where ``kept`` is true."""
        return replace(self, rows=self.rows[kept], columns=self.columns[kept], values=self.values[kept])

    def split(self, fraction: float, rng: Any = None) -> tuple[Observed, Observed]:
        """Two parts, the second a random ``fraction`` of the entries that is held out.

        Every entry is as likely to be held out as any other, so that an error on the second part is what new
        entries of the same kind would show. The first may be left without an entry of some row or column.
        """
        check_share(fraction, "fraction")
        held = np.zeros(self.n_observed, dtype=bool)
        count = min(round(fraction * self.n_observed), self.n_observed - 1)
        held[generator(rng).permutation(self.n_observed)[:count]] = True
        return self.select(~held), self.select(held)

    @cached_property
    def _sparse_starts(self) -> np.ndarray:
        return self.row_starts.astype(self.columns.dtype, copy=False)


def as_observed(X: Any, name: str = "X") -> Observed:
    """The known entries of any of the usual containers.

    Parameters
    ----------
    X : array, masked array, DataFrame, sparse matrix or Observed
        NaN (pandas' NA, or a masked entry) is what is not known. In a sparse matrix every stored entry is known,
        explicit zeros too, and the others are not.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        Where an entry is infinite, a stored one NaN, one pair stored twice, or nothing is known at all; where the
        sum of the squares overflows, or is lost to underflow.

    Examples
    --------
    >>> as_observed([[1.0, np.nan], [np.nan, 0.0]])
    Observed(2 of 2 x 2, float64)
    """
    observed = X if isinstance(X, Observed) else read_entries(X, name)
    if observed.n_observed == 0:
        raise ValueError(f"{name} has no known entry: there is nothing to complete from")
    if observed is not X:  # what offsets leave of entries may be as small as rounding makes it
        check_entries(observed.values, name)
    return observed


def read_entries(X: Any, name: str) -> Observed:
    """The known entries of a container, perhaps none."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(f"{name} is a Dask {type(X).__name__}: use ell12.distributed.complete_matrix")
    return _from_sparse(X, name) if scipy.sparse.issparse(X) else _from_dense(X, name)


def _from_sparse(X: Any, name: str) -> Observed:
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a matrix, got shape {X.shape}")
    X = X.tocoo()  # explicit zeros and duplicates stay
    values = as_real(X.data, name)
    if not all_finite(values):
        raise ValueError(f"{name} stores NaN or infinity; a stored entry is a known one, so remove it instead")
    rows, columns, values = _sorted(X.row, X.col, values, X.shape)
    return Observed(rows, columns, values, (int(X.shape[0]), int(X.shape[1])), _is_trusted=True)


def _from_dense(X: Any, name: str) -> Observed:
    hidden = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if hasattr(X, "to_numpy"):  # a DataFrame, whose NA has no float of its own
        with naming(name):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    X = as_real(X.data if hidden is not None else X, name)
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a matrix, got shape {tuple(X.shape)}")
    known = ~namespace(X).isnan(X)
    observed = Observed._at(X, known if hidden is None else known & ~hidden)
    if not all_finite(observed.values):
        raise ValueError(f"{name} contains infinity; an entry that is not known is NaN")
    return observed


def as_real(x: Any, name: str) -> Array:
    """``x`` as real numbers in single or double precision; an error names the argument.

    Half precision becomes single, and extended precision double: there is no linear algebra for either.
    """
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill or drop what is masked first")
    refuse_gradient(x, name)
    x = as_floating(x, name)
    if is_complex(x):
        raise TypeError(f"{name} must hold real numbers, got complex ones")
    xp = namespace(x)
    if is_half(x):
        return xp.astype(x, xp.float32)
    return x if x.dtype in (xp.float32, xp.float64) else convert(x, xp.float64, name)


def _as_shape(shape: Any) -> tuple[int, int]:
    """The shape of a matrix, checked."""
    whole = np.shape(shape) == (2,) and all(isinstance(n, int | np.integer) and n >= 0 for n in shape)
    if not whole:
        raise ValueError(f"shape must be two whole numbers >= 0, got {shape!r}")
    return int(shape[0]), int(shape[1])


def _index(indices: Any, name: str) -> np.ndarray:
    if isinstance(indices, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: drop what is masked first")
    indices = np.asarray(indices)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a vector of integers, got {indices.dtype} of shape {indices.shape}")
    return indices


def _sorted(
    rows: np.ndarray, columns: np.ndarray, values: Array, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, Array]:
    """The entries by row, then column, with short indices; an error where a place is wrong or taken twice."""
    if not rows.shape == columns.shape == tuple(values.shape):
        shapes = f"{rows.shape}, {columns.shape} and {tuple(values.shape)}"
        raise ValueError(f"rows, columns and values must be as long as each other; got {shapes}")
    for name, indices, size in (("rows", rows, shape[0]), ("columns", columns, shape[1])):
        if indices.size and not (indices.min() >= 0 and indices.max() < size):
            raise ValueError(f"{name} must lie in 0 .. {size - 1}, got {indices.min()} .. {indices.max()}")
    rows, columns = _shortened(rows, shape), _shortened(columns, shape)
    flat = rows.astype(np.int64) * shape[1] + columns
    steps = np.diff(flat)
    if not (steps > 0).all():
        order = np.argsort(flat, kind="stable")
        flat, rows, columns, values = flat[order], rows[order], columns[order], values[order]
        twice = np.flatnonzero(np.diff(flat) == 0)
        if twice.size:
            i, j = rows[twice[0]], columns[twice[0]]
            raise ValueError(
                f"the entry at row {i}, column {j} is given more than once; there are {twice.size} repetitions"
            )
    return rows, columns, values


def _shortened(indices: np.ndarray, shape: Any) -> np.ndarray:
    """Indices as int32 where they fit, which halves what a sweep over them reads."""
    return indices.astype(np.int32 if max(shape) < 2**31 else np.int64, copy=False)

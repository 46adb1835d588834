"""The entries of a matrix that are known."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import (
    all_finite,
    all_true,
    as_floating,
    as_numpy,
    device,
    indices_like,
    is_array,
    is_complex,
    is_cupy,
    is_half,
    is_numpy,
    is_torch,
    namespace,
    refuse_gradient,
    refuse_masked,
    scatter,
    to_device_of,
)
from ell12.backend.number_types import is_sparse, stored_entries
from ell12.checks import check_entries, check_share, convert, generator, naming
from ell12.completion.gpu_entries import AT_ONCE, SegmentedMatrix, Segments
from ell12.protocols import Array

# A matrix of which at least this share is known is taken for a table: the dense form is the faster one for it, and
# its columns may have units of their own. Others are taken for ratings, all in one unit.
TABLE_FROM = 0.25


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
    NumPy arrays, or PyTorch, CuPy or JAX arrays where they are. `of` makes one of the usual
    containers, sparse tensors among them, and `from_mask` of a dense array and a mask.

    Examples
    --------
    >>> from ell12 import Observed
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
        with naming("shape"):
            m, n = map(operator.index, self.shape)
        rows, columns = as_indices(self.rows, values, "rows", m), as_indices(self.columns, values, "columns", n)
        rows, columns, values = _sorted(rows, columns, values, (m, n))
        if not all_finite(values):
            raise ValueError("values must be finite; leave out what is not known")
        found = {"rows": rows, "columns": columns, "values": values, "shape": (m, n), "_is_trusted": True}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Observed({self.n_observed} of {self.shape[0]} x {self.shape[1]}, {self.values.dtype})"

    def __sizeof__(self) -> int:
        """What Dask counts when it decides what to spill."""
        return self.rows.nbytes + self.columns.nbytes + self.values.nbytes

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Observed:
        """The known entries of an array, a data frame or a sparse matrix.

        Parameters
        ----------
        X : array, masked array, DataFrame, sparse matrix or tensor, or Observed
            NaN (pandas' NA, or a masked entry) is what is not known. In a sparse matrix of SciPy or CuPy, or a
            sparse tensor of PyTorch, every stored entry is known, explicit zeros too, and the others are not. What
            is on a GPU stays there.
        name : str, default "X"
            What errors call it.

        Raises
        ------
        ValueError
            Where an entry is infinite, a stored one NaN, one pair stored twice, or nothing is known at all; where
            the sum of the squares overflows, or is lost to underflow.

        Examples
        --------
        >>> import numpy as np
        >>> from ell12 import Observed
        >>> Observed.of([[1.0, np.nan], [np.nan, 0.0]])
        Observed(2 of 2 x 2, float64)
        """
        observed = X if isinstance(X, Observed) else read_entries(X, name)
        if observed.n_observed == 0:
            raise ValueError(f"{name} has no known entry: there is nothing to complete from")
        if observed is not X:  # what offsets leave of entries may be as small as rounding makes it
            check_entries(observed.values, name)
        return observed

    @classmethod
    def from_mask(cls, values: Array, mask: Array) -> Observed:
        """The entries of a dense array at which the mask, of the same library or NumPy's, is true."""
        values = as_real(values, "values")
        mask = to_device_of(mask if is_array(mask) else np.asarray(mask), values, "mask")
        if tuple(values.shape) != tuple(mask.shape) or len(values.shape) != 2:
            shapes = f"{tuple(values.shape)} and {tuple(mask.shape)}"
            raise ValueError(f"values and mask must be two matrices of the same shape; got {shapes}")
        return cls._at(values, mask, "values must be finite where mask is true")

    @classmethod
    def _at(cls, values: Array, mask: Array, otherwise: str) -> Observed:
        """The entries of a dense array at which the mask is true, or an error where they are not finite."""
        xp, shape = namespace(values), tuple(values.shape)
        rows, columns = xp.nonzero(mask)
        known = xp.take(xp.reshape(values, (-1,)), rows * shape[1] + columns, axis=0)
        if not all_finite(known):
            raise ValueError(otherwise)
        return cls(_shortened(rows, shape), _shortened(columns, shape), known, shape, _is_trusted=True)

    @property
    def n_observed(self) -> int:
        """How many entries are known."""
        return self.values.shape[0]

    @property
    def fraction(self) -> float:
        """The share of the entries that is known."""
        return self.n_observed / max(self.shape[0] * self.shape[1], 1)

    @property
    def is_table(self) -> bool:
        """Whether so much is known that it is taken for a table, not for ratings."""
        return self.fraction >= TABLE_FROM

    @property
    def suits_dense(self) -> bool:
        """Whether dense matrices are faster, and small enough to be made unasked."""
        return self.is_table and (not is_numpy(self.values) or math.prod(self.shape) <= AT_ONCE)

    @cached_property
    def flat(self) -> Array:
        """The positions of the entries in the matrix written row by row."""
        return _widened(self.rows) * self.shape[1] + self.columns

    @cached_property
    def row_starts(self) -> Array:
        """Where each row begins among the entries, and the end: the ``indptr`` of CSR."""
        return _starts(self.rows, self.shape[0])

    @cached_property
    def by_column(self) -> tuple[Array, Array]:
        """The order that sorts the entries by column, then row; and where each column begins in it."""
        xp = namespace(self.columns)
        order = xp.argsort(self.columns, stable=True)
        return order, _starts(xp.take(self.columns, order, axis=0), self.shape[1])

    def mask(self) -> Array:
        """A dense matrix of truth values: what is known."""
        return self.dense(namespace(self.values).ones_like(self.values)) > 0

    def dense(self, values: Array | None = None) -> Array:
        """A dense matrix with these values (by default those observed) where they are known, zero elsewhere."""
        values = self.values if values is None else values
        m, n = self.shape
        return namespace(values).reshape(scatter(values, self.flat, m * n), (m, n))

    @cached_property
    def segments(self) -> tuple[Segments, Segments]:
        """The rows and the columns as sweeps and products on a device read them."""
        if not has_segments(self.values):
            raise TypeError(
                "X must be a NumPy, PyTorch or CuPy array for steps on factors; use BlockAPG for others"
            )
        order, starts = self.by_column
        rows = namespace(self.rows).take(self.rows, order, axis=0)
        m, n = self.shape
        return Segments(self.row_starts, self.columns, n), Segments(starts, rows, m)

    def sparse(self, values: Array | None = None) -> Any:
        """The same as a CSR array, on a device as something that multiplies; the pattern is made once."""
        values = self.values if values is None else values
        if is_numpy(values):
            return scipy.sparse.csr_array((values, self.columns, self.row_starts), shape=self.shape, copy=False)
        by_column = namespace(values).take(values, self.by_column[0], axis=0)
        return SegmentedMatrix(self.segments, (values, by_column))

    def matrix(self, values: Array | None = None) -> Any:
        """`sparse` for NumPy arrays and where little is known, else `dense`."""
        sparse = is_numpy(self.values) or (has_segments(self.values) and not self.suits_dense)
        return self.sparse(values) if sparse else self.dense(values)

    def select(self, kept: np.ndarray) -> Observed:
        """The entries where ``kept`` is true."""
        kept = kept if is_numpy(self.rows) else indices_like(kept, self.rows)
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


def has_segments(values: Array) -> bool:
    """Whether a library does well with many sizes of arrays: NumPy, PyTorch and CuPy; JAX compiles each anew."""
    return is_numpy(values) or is_torch(values) or is_cupy(values)


def refuse_dask(X: Any, name: str) -> None:
    """Raise where X is a collection of Dask."""
    if hasattr(X, "__dask_graph__"):
        what = f"{name} is a Dask {type(X).__name__}, which would be loaded into memory: call {name}.compute()"
        raise TypeError(f"{what} if it fits there, else use ell12.distributed.complete_matrix")


def read_entries(X: Any, name: str) -> Observed:
    """The known entries of a container, perhaps none."""
    refuse_dask(X, name)
    return _from_sparse(X, name) if is_sparse(X) else _from_dense(X, name)


def _from_sparse(X: Any, name: str) -> Observed:
    refuse_gradient(X, name)
    shape = tuple(map(int, X.shape))
    if len(shape) != 2:
        raise ValueError(f"{name} must be a matrix, got shape {shape}")
    with naming(name):
        rows, columns, values = stored_entries(X, name)
    values = as_real(values, name)
    if not all_finite(values):
        raise ValueError(f"{name} stores NaN or infinity; a stored entry is a known one, so remove it instead")
    return Observed(rows, columns, values, shape)


def _from_dense(X: Any, name: str) -> Observed:
    hidden = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if hasattr(X, "to_numpy"):  # a DataFrame, whose NA has no float of its own
        with naming(name):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    X = as_real(X.data if hidden is not None else X, name)
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a matrix, got shape {tuple(X.shape)}")
    known = ~namespace(X).isnan(X)
    known = known if hidden is None else known & ~hidden
    return Observed._at(X, known, f"{name} contains infinity; an entry that is not known is NaN")


def as_real(x: Any, name: str) -> Array:
    """``x`` as real numbers in single or double precision; an error names the argument.

    Half precision becomes single, and extended precision double: there is no linear algebra for either.
    """
    refuse_gradient(x, name)
    x = as_floating(x, name)
    if is_complex(x):
        raise TypeError(f"{name} must hold real numbers, got complex ones")
    xp = namespace(x)
    if is_half(x):
        return xp.astype(x, xp.float32)
    return x if x.dtype in (xp.float32, xp.float64) else convert(x, xp.float64, name)


def as_indices(indices: Any, values: Array, name: str, size: int) -> Array:
    """Indices as a vector of integers of the kind of the values, each of them below the size."""
    refuse_masked(indices, name)
    if is_numpy(values) or not is_array(indices) or is_numpy(indices):
        with naming(name):
            indices = as_numpy(indices)
        indices = indices if is_numpy(values) else indices_like(indices, values)
    xp = namespace(indices)
    if len(indices.shape) != 1 or (indices.shape[0] and not xp.isdtype(indices.dtype, "integral")):
        shape = tuple(indices.shape)
        raise TypeError(f"{name} must be a vector of integers, got {indices.dtype} of shape {shape}")
    low, high = (int(xp.min(indices)), int(xp.max(indices))) if indices.shape[0] else (0, -1)
    if low < 0 or high >= size:
        raise ValueError(f"{name} must lie in 0 .. {size - 1}, got {low} .. {high}")
    return indices


def _sorted(rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """The entries by row, then column, with short indices; an error where a position is wrong or taken twice."""
    if not tuple(rows.shape) == tuple(columns.shape) == tuple(values.shape):
        shapes = f"{tuple(rows.shape)}, {tuple(columns.shape)} and {tuple(values.shape)}"
        raise ValueError(f"rows, columns and values must be as long as each other; got {shapes}")
    rows, columns = _shortened(rows, shape), _shortened(columns, shape)
    flat = _widened(rows) * shape[1] + columns
    if not all_true(flat[1:] > flat[:-1]):
        xp = namespace(rows)
        order = xp.argsort(flat, stable=True)
        flat, rows, columns, values = (xp.take(part, order, axis=0) for part in (flat, rows, columns, values))
        twice = xp.nonzero(flat[1:] == flat[:-1])[0]
        if twice.shape[0]:
            i, j = int(rows[twice[0]]), int(columns[twice[0]])
            raise ValueError(
                f"the entry at row {i}, column {j} is given more than once; there are {twice.shape[0]} repetitions"
            )
    return rows, columns, values


def _starts(sorted_indices: Array, size: int) -> Array:
    """Where each of the numbers below ``size`` begins among sorted ones, and the end."""
    xp = namespace(sorted_indices)
    numbers = xp.arange(size + 1, dtype=sorted_indices.dtype, device=device(sorted_indices))
    return _shortened(xp.searchsorted(sorted_indices, numbers), sorted_indices.shape)


def _shortened(indices: Array, shape: Any) -> Array:
    """Indices as int32 where they fit, which halves what a sweep over them reads; others as they are."""
    xp = namespace(indices)
    return xp.astype(indices, xp.int32 if max(shape) < 2**31 else xp.int64, copy=False)


def _widened(indices: Array) -> Array:
    """Indices as int64, in which positions within a matrix fit; JAX has integers of one kind."""
    xp = namespace(indices)
    return xp.astype(indices, xp.int64, copy=False) if has_segments(indices) else indices

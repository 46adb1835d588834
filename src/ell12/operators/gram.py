"""Weighted Gram matrices, and the columns in use with theirs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_array_of, as_numpy, concat, device, is_array, is_numpy, namespace, take
from ell12.backend.compiled_code import can_compile, compiled_loop
from ell12.operators import adjoint, input_shape, select_columns, to_dense
from ell12.operators.column_sources import PIECE
from ell12.protocols import Array

# Up to this many entries A is small, products with all of it take some milliseconds: data of a device are fetched
# whole, `ell12.WorkingSet` may take steps in all columns and follow exact paths (results/race). Sparse columns of
# which as many pairs meet in a row need 20 ms of SciPy's product; beyond, a compiled loop takes a sixth.
SMALL = 2**21


def weighted_gram(A: Any, weight: Array, B: Any = None) -> Array:
    """``A' diag(weight) B`` as a dense matrix; B is A by default."""
    B = A if B is None else B
    if hasattr(A, "weighted_gram"):
        return A.weighted_gram(weight, B)
    if scipy.sparse.issparse(A):
        return _sparse_gram(A, weight, B)
    dense = to_dense(A)
    other = dense if B is A else to_dense(B)
    if is_numpy(weight) and is_numpy(dense) and dense.dtype.kind == "f":
        return _numpy_gram(dense, weight, other)
    return adjoint(dense) @ (weight[:, None] * other)


def _sparse_gram(A: Any, weight: Any, B: Any) -> Any:
    """The same of sparse matrices: SciPy's product, or a compiled one where there is much to do."""
    dtype = np.result_type(A.dtype, weight.dtype, B.dtype)
    if dtype.kind != "f" or _meetings(A, B) < SMALL or not can_compile():
        return (adjoint(A) @ B.multiply(weight[:, None]).tocsr()).toarray()
    rows, other, out = A.tocsr(), B.tocsr(), np.zeros((A.shape[1], B.shape[1]), dtype=dtype)
    parts = (other.indptr, other.indices, other.data)
    _compiled_add()(rows.indptr, rows.indices, rows.data, weight, *parts, out, A is B)
    if A is B:
        out += out.T
        out[np.diag_indices_from(out)] += column_sums(A, weight, square=True)
    return out


@cache
def _compiled_add() -> Callable[..., None]:
    """A loop over rows, compiled where it is first worth it; a loop over columns would jump for every entry."""
    return compiled_loop(error_model="numpy", nogil=True)(_add)


def _add(starts, columns, values, weight, other_starts, other_columns, other_values, out, half):  # type: ignore[no-untyped-def]
    """Add ``A' diag(weight) B`` to out; half of it, without the diagonal, where B is A.

    That half has every pair of entries of a row once, in whatever order they are, so that an entry may be given
    twice.
    """
    for i in range(starts.size - 1):
        for p in range(starts[i], starts[i + 1]):
            factor, into = weight[i] * values[p], out[columns[p]]
            for q in range(p + 1 if half else other_starts[i], other_starts[i + 1]):
                into[other_columns[q]] += factor * other_values[q]


def _meetings(A: Any, B: Any) -> float:
    """How many pairs of entries of two sparse matrices, one of each, are in the same row."""
    counts = [
        np.diff(M.indptr) if M.format == "csr" else np.bincount(M.tocsc().indices, minlength=M.shape[0])
        for M in (A, B)
    ]
    return float(np.dot(*counts))


def column_sums(A: Any, weight: Array, *, square: bool = False) -> Array:
    """``sum_i weight_i A_ij`` for each column j of a sparse matrix, or of the squares, in double precision.

    No copy of all of A is made, whatever its precision.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy
    >>> from ell12.operators.gram import column_sums
    >>> column_sums(scipy.sparse.csc_array([[1.0, 2.0], [3.0, 0.0]]), np.array([1.0, 0.5]), square=True)
    array([5.5, 4. ])
    """
    weight = weight.astype(np.float64, copy=False)
    sums = np.zeros(A.shape[1])
    lines = A.T if A.format == "csc" else A  # columns or rows, in one piece each
    step = max(1, lines.shape[0] * PIECE // max(A.nnz, 1))
    for first in range(0, lines.shape[0], step):
        some = slice(first, first + step)
        part = lines[some].astype(np.float64)
        part.data *= part.data if square else 1
        if A.format == "csc":
            sums[some] = part @ weight
        else:
            sums += part.T @ weight[some]
    return sums


def _numpy_gram(A: Any, weight: Any, B: Any) -> Any:
    """Without a weighted copy where all weights are equal, and by half the work where B is A."""
    if weight.size and (weight == weight[0]).all():
        return weight[0] * (A.T @ B)  # of A with itself, which NumPy sees
    if B is A and weight.min(initial=0.0) >= 0:
        rows = np.sqrt(weight)[:, None] * A
        return rows.T @ rows
    return A.T @ (weight[:, None] * B)


def by_rows(A: Any) -> Any:
    """Columns in the form in which their Gram matrices are fast: sparse ones by rows."""
    if hasattr(A, "by_rows"):
        return A.by_rows()
    return A.tocsr() if scipy.sparse.issparse(A) else A


def ridge_solver(A: Any, weight: Array, ridge: float) -> Callable[[Array], Array]:
    """Apply ``(A' diag(weight) A + ridge I)^-1``: one factorization of the smaller of the two Gram matrices."""
    is_sparse, xp = scipy.sparse.issparse(A), namespace(weight)
    dense = A if is_sparse else to_dense(A)
    m, n = dense.shape
    if n <= m:
        solve = shifted_solver(weighted_gram(dense, weight), ridge)
    else:
        root = xp.sqrt(weight)[:, None]
        rows = dense.multiply(root).tocsr() if is_sparse else root * dense
        invert = shifted_solver(to_dense(rows @ adjoint(rows)), ridge)

        def solve(r: Array) -> Array:
            return (r - adjoint(rows) @ invert(rows @ r)) / ridge

    # An image is a vector here; several right-hand sides are columns.
    return lambda r: xp.reshape(solve(xp.reshape(r, (n, -1))), r.shape)


def shifted_solver(gram: Array, ridge: float) -> Callable[[Array], Array]:
    """Apply ``(gram + ridge I)^-1``."""
    xp = namespace(gram)
    gram = gram + ridge * xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
    if is_numpy(gram):
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(gram)
        return lambda r: cho_solve(factor, r)
    inverse = xp.linalg.inv(gram)
    return lambda r: inverse @ r


# A vector is sparse if fewer than one entry in SPARSE is not zero: a copy of its columns and a product with that
# take two thirds of the time of a product with the whole matrix.
SPARSE = 8
# Up to this many columns a dense Gram matrix is made, however few numbers a sparse A holds and however many rows
# are read for it, and as many that are no longer asked for stay in a store: 8 MB.
GRAM_COLUMNS = 1000


class ColumnStore:
    """``A x`` for sparse x, and ``A_S' diag(curvature) A_S``, for supports x and sets S that change slowly.

    Every column is gathered once, and every product of two columns is computed once while the curvature stays the
    same. What is no longer used is let go. The loss of one run (``for_run``) holds one store, so
    that the next strength of a path begins with the columns and products of the last.

    Parameters
    ----------
    A : array, sparse matrix or operator with columns
        `product` needs a NumPy array or a sparse matrix; all else any operator. Columns and Gram matrices stay on
        A's device; their numbers, and the entries of x there, are NumPy arrays.
    most : float, default infinity
        No more columns are kept for a Gram matrix, unless more are asked for at once.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.gram import ColumnStore
    >>> store = ColumnStore(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
    >>> store.gram(np.ones(2), np.array([0, 1]))
    array([[1., 2.],
           [2., 5.]])
    >>> store.product_within(np.array([1.0, 1.0]), np.array([1, 2]))
    array([2., 4.])
    """

    def __init__(self, A: Any, most: float = math.inf) -> None:
        self.A, self.most = A, most
        self._columns = np.empty(0, dtype=np.int64)
        self._position = np.full(input_shape(A)[0], -1)  # of each column of A among those kept
        self._forget()

    def product(self, x: Array) -> Array:
        """``A x``; of a sparse x from its columns alone."""
        support = np.flatnonzero(x)
        return self.A @ x if support.size * SPARSE >= x.size else self.product_within(x[support], support)

    def product_within(self, values: Array, columns: Array) -> Array:
        """``A_S values``: the product with a vector, or several, that is zero but for the entries S."""
        where, size = self._position[columns], self._position.size
        if where.size and where.min() >= 0:
            return self._product(_spread(values, where, self._columns.size))
        if is_array(self.A) and not is_numpy(self.A) and columns.size * SPARSE >= size:
            return self.A @ self._sent(_spread(values, columns, size))
        return select_columns(self.A, columns) @ self._sent(values)

    def gram(self, curvature: Array, columns: Array) -> Array:
        """``A_S' diag(curvature) A_S`` as a dense matrix of A's kind and precision; a fresh copy."""
        new = columns[self._position[columns] < 0]
        allowed = max(min(2 * columns.size + GRAM_COLUMNS, self.most), columns.size)
        if not self._is_current(curvature) or self._columns.size + new.size > allowed:
            self._begin(curvature, columns)
        elif new.size:
            self._extend(new)
        where = self._position[columns]
        if is_numpy(self._gram) and np.array_equal(where, np.arange(where.size)):
            return self._gram[: where.size, : where.size].copy()
        return take(take(self._gram, where, 0), where, 1)

    def _forget(self) -> None:
        self._position[self._columns] = -1
        self._columns = self._columns[:0]
        self._blocks: list[Any] = []  # the kept columns side by side, in the order in which they came
        self._gram: Any = None  # of all kept columns, NumPy's with space for more; None without
        self._buffer: Any = None  # dense columns, with space for more
        self._curvature: Any = None

    def _keep(self, columns: Array) -> Any:
        """Gather some columns."""
        block = by_rows(select_columns(self.A, columns))
        self._position[columns] = np.arange(self._columns.size, self._columns.size + columns.size)
        self._columns = np.concatenate([self._columns, columns])
        if not is_numpy(block):
            together = is_array(block) and self._blocks
            self._blocks = [concat([*self._blocks, block], 1)] if together else [*self._blocks, block]
            return block
        before = self._columns.size - columns.size
        if self._buffer is None:  # without space for more, which may be A itself: nothing is written to it
            self._buffer = block
        else:
            self._buffer = _grown(self._buffer, (len(block), before), (len(block), self._columns.size))
            self._buffer[:, before : self._columns.size] = block
        self._blocks = [self._buffer[:, : self._columns.size]]
        return self._buffer[:, before : self._columns.size]

    # Products

    def _product(self, values: Array) -> Array:
        """The product of the kept columns with as many values."""
        values = self._sent(values)
        if len(self._blocks) == 1:
            return self._blocks[0] @ values
        ends = np.cumsum([0, *(input_shape(block)[0] for block in self._blocks)])
        return sum(block @ values[ends[k] : ends[k + 1]] for k, block in enumerate(self._blocks))

    def _sent(self, values: Array) -> Array:
        """NumPy values where A is, unless that is here."""
        return as_array_of(values, self.A) if is_array(self.A) and not is_numpy(self.A) else values

    # Gram matrices

    def _is_current(self, curvature: Array) -> bool:
        """Whether the Gram matrix was made with this curvature."""
        if self._gram is None:
            return False
        return curvature is self._curvature or np.array_equal(as_numpy(curvature), as_numpy(self._curvature))

    def _begin(self, curvature: Array, columns: Array) -> None:
        if len(self._blocks) != 1 or not np.array_equal(columns, self._columns):
            self._forget()
            self._keep(columns)
        self._curvature = curvature
        self._gram = self._cross(self._blocks[0], self._blocks[0])

    def _extend(self, new: Array) -> None:
        blocks, before = list(self._blocks), self._columns.size
        block = self._keep(new)
        side = concat([self._cross(old, block) for old in blocks], 0)
        corner = self._cross(block, block)
        if not is_numpy(self._gram):
            self._gram = concat([concat([self._gram, side], 1), concat([adjoint(side), corner], 1)], 0)
            return
        size = self._columns.size
        self._gram = gram = _grown(self._gram, (before, before), (size, size))
        gram[:before, before:size], gram[before:size, :before] = side, side.T
        gram[before:size, before:size] = corner

    def _cross(self, block: Any, other: Any) -> Array:
        return weighted_gram(block, self._curvature, other)


def _grown(buffer: Any, kept: tuple[int, int], needed: tuple[int, int]) -> Any:
    """An array of the size that is needed: this one, or one at least twice as wide with the kept part."""
    if all(have >= want for have, want in zip(buffer.shape, needed, strict=True)):
        return buffer
    shape = [max(want, 2 * have) if want > have > 0 else want for have, want in zip(kept, needed, strict=True)]
    new = np.empty(shape, dtype=buffer.dtype, order="F")
    new[: kept[0], : kept[1]] = buffer[: kept[0], : kept[1]]
    return new


def _spread(values: Array, indices: Array, size: int) -> Array:
    """An array of this length with the values at these indices, and zeros elsewhere."""
    full = np.zeros((size, *values.shape[1:]), dtype=values.dtype)
    full[indices] = values
    return full

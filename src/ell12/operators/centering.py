"""The columns of a matrix less their means, without a centred copy of what is sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import is_array, is_numpy
from ell12.operators import ArrayOperator, adjoint, input_shape, is_out_of_memory, output_shape, select_columns
from ell12.operators.gram import by_rows, column_sums, weighted_gram
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class CenteredColumns(ArrayOperator):
    """``x -> A x - (means' x) 1``, and with a ``constant`` a last column of it: ``x -> ... + constant x_last 1``.

    A itself is neither copied nor made dense.

    Parameters
    ----------
    A : sparse matrix or operator of shape (m, n)
        Anything with ``@`` and an adjoint.
    means : array of shape (n,)
        What is subtracted from each column, in the dtype of A.
    constant : float, default 0.0
        The entries of a last column, for an intercept; 0 for none.
    empty : array of shape (n,), optional
        Which columns are nothing but their means: zero, where products would leave rounding.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy
    >>> from ell12.operators.centering import CenteredColumns
    >>> A = CenteredColumns(scipy.sparse.csr_array([[0.0, 2.0], [4.0, 0.0]]), np.array([2.0, 1.0]), constant=True)
    >>> A @ np.array([1.0, 1.0, 10.0])
    array([ 9., 11.])
    """

    A: Any
    means: Any
    constant: float = 0.0
    empty: Any = None

    def __post_init__(self) -> None:
        n = len(self.means) + self._extra
        self._set(input_shape=(n,), output_shape=output_shape(self.A), dtype=self.A.dtype)
        self._set(takes_columns=True)

    def _apply(self, x: Array) -> Array:
        inside = self._without_empty(x[:-1] if self.constant else x)
        level = (self.constant * x[-1] if self.constant else 0) - self.means @ inside
        return self.A @ inside + level

    def _apply_adjoint(self, y: Array) -> Array:
        total = y.sum(axis=0)
        inside = self._without_empty(adjoint(self.A) @ y - np.multiply.outer(self.means, total))
        return np.concatenate([inside, self.constant * total[None]]) if self.constant else inside

    def products(self, vectors: Array, least: Any) -> tuple[Array, Array]:
        """As `ell12.Columns.products`, where A is such. Centring may make a small product larger, by ``slack``."""
        total = vectors.sum(axis=0)
        slack = np.abs(self.means) * np.abs(total).max(initial=0.0)
        where, found = self.A.products(vectors, np.maximum(least - slack, 0.0))
        for k, size in enumerate(total):  # in place: many columns times all vectors may not fit into memory
            found[:, k] -= self.means[where] * size
        if self.empty is not None:
            found[self.empty[where]] = 0
        if not self.constant:
            return where, found
        return np.append(where, self.means.size), np.concatenate([found, self.constant * total[None]])

    @property
    def out_of_memory(self) -> bool:
        """Whether the columns of A are out of memory."""
        return is_out_of_memory(self.A)

    def __getitem__(self, rows: Any) -> CenteredColumns:
        """Some rows."""
        return CenteredColumns(self.A[rows], self.means, self.constant, self.empty)

    def select_columns(self, columns: Array) -> Any:
        """Some columns, sorted: the same operator on fewer of them, with the last column where it is named.

        Those of a source that gives dense ones are centred in memory.
        """
        inside = columns[columns < self.means.size]
        empty = None if self.empty is None else self.empty[inside]
        A = select_columns(self.A, inside)
        constant = self.constant if inside.size < columns.size else 0.0
        if not is_numpy(A):
            return CenteredColumns(A, self.means[inside], constant, empty)
        A = np.subtract(
            A, self.means[inside], out=A if is_out_of_memory(self.A) else None
        )  # theirs is a fresh copy
        if empty is not None:
            A[:, empty] = 0
        return np.append(A, np.full((A.shape[0], 1), constant, A.dtype), axis=1) if constant else A

    def by_rows(self) -> CenteredColumns:
        """The same, its columns stored by rows where their Gram matrix is faster so."""
        inside = by_rows(self.A)
        return self if inside is self.A else replace(self, A=inside)

    def weighted_gram(self, weight: Array, other: CenteredColumns) -> Array:
        """``self' diag(weight) other`` as a dense matrix, A itself staying sparse.

        Each of the two is its A, next to a column of zeros if there is a constant, plus ones times `_shift`.
        """
        inside = weighted_gram(self.A, weight, other.A)
        inside = np.pad(inside, ((0, self._extra), (0, other._extra)))
        left, right = self._shift, other._shift
        cross = np.outer(self._raw_sums(weight), right) + np.outer(left, other._raw_sums(weight))
        gram = inside + cross + weight.sum() * np.outer(left, right)
        gram[: self.means.size] = self._without_empty(gram[: self.means.size])
        gram[:, : other.means.size] = other._without_empty(gram[:, : other.means.size].T).T
        return gram

    def _without_empty(self, values: Array) -> Array:
        """Zero for what belongs to an empty column, one for each row."""
        if self.empty is None:
            return values
        return np.where(self.empty.reshape(-1, *(1 for _ in values.shape[1:])), 0, values)

    @property
    def _extra(self) -> int:
        """How many columns there are next to those of A."""
        return int(self.constant != 0)

    @property
    def _shift(self) -> Array:
        """What is added to the rows of A."""
        return np.append(-self.means, self.constant) if self.constant else -self.means

    def _raw_sums(self, weight: Array) -> Array:
        sums = adjoint(self.A) @ weight
        return np.append(sums, 0) if self.constant else sums


def column_squares(A: Any, weight: Array) -> Array:
    """``sum_i weight_i A_ij^2`` for each column j of a NumPy array, a sparse matrix or `CenteredColumns`.

    `ell12.Columns` are read once. For any other operator, whose columns are not at hand, ones.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.centering import column_squares
    >>> column_squares(np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([1.0, 0.5]))
    array([5.5, 4. ])
    """
    if is_numpy(A):
        return np.einsum("i,ij,ij->j", weight, A, A)
    if scipy.sparse.issparse(A):
        return column_sums(A, weight, square=True).astype(np.result_type(A.dtype, weight.dtype), copy=False)
    if is_array(A):
        return weight @ (A * A)
    total, centred = weight.sum(), isinstance(A, CenteredColumns)
    if not centred and not is_out_of_memory(A):
        return np.ones(input_shape(A))
    inside, means = (A.A, A.means) if centred else (A, 0.0)
    if is_out_of_memory(A):
        found, squares = inside.moments(weight)
        squares = (squares + total * (found - means) ** 2).astype(A.dtype, copy=False)
    else:
        raw = column_squares(inside, weight)
        squares = raw - 2 * means * (adjoint(inside) @ weight) + total * means**2
        # What the subtraction leaves of a constant column is rounding.
        squares = np.where(squares > 100 * np.finfo(squares.dtype).eps * raw, squares, 0)
    if not centred:
        return squares
    squares = A._without_empty(squares)
    return np.append(squares, A.constant**2 * total) if A.constant else squares

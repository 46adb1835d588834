"""One linear function for each class: a matrix applied to several vectors that are kept as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import namespace, scatter, take
from ell12.operators.maps import (
    ArrayOperator,
    adjoint_product,
    dtype_of,
    input_shape,
    output_shape,
    product,
    select_columns,
    sent_like,
    stored_entries,
)
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class Classwise(ArrayOperator):
    """``x -> A X`` with X of shape (n, k) kept as a vector, row by row: entry ``j k + c`` belongs to A's column j.

    Parameters
    ----------
    A : array, sparse matrix or operator with columns, of shape (m, n)
        What each of the k columns of X is multiplied with.
    k : int
        How many there are.
    entries : NumPy array of int, optional
        The entries of X that x holds, the others being zero; all of them by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.classwise import Classwise
    >>> Classwise(np.array([[1.0, 2.0], [0.0, 1.0]]), 2) @ np.array([1.0, 0.0, 0.0, 1.0])
    array([[1., 2.],
           [0., 1.]])
    """

    A: Any
    k: int
    entries: Any = None

    def __post_init__(self) -> None:
        (m,), (n,) = output_shape(self.A), input_shape(self.A)
        size = n * self.k if self.entries is None else len(self.entries)
        self._set(input_shape=(size,), output_shape=(m, self.k), dtype=dtype_of(self.A))

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The column of A and the class that each entry of x belongs to, as NumPy arrays."""
        entries = np.arange(self.input_shape[0]) if self.entries is None else self.entries
        return entries // self.k, entries % self.k

    @property
    def stored_entries(self) -> float:
        """Those of A."""
        return stored_entries(self.A)

    def select_columns(self, columns: Array) -> Classwise:
        """The same operator on some entries of x, and on no more of A than they need."""
        features, classes = (part[np.asarray(columns)] for part in self.pairs)
        needed, position = np.unique(features, return_inverse=True)
        return Classwise(select_columns(self.A, needed), self.k, position * self.k + classes)

    def __getitem__(self, rows: Any) -> Classwise:
        """Some rows."""
        return Classwise(self.A[rows], self.k, self.entries)

    def _apply(self, x: Array) -> Array:
        (n,) = input_shape(self.A)
        full = x if self.entries is None else scatter(x, sent_like(self.entries, x), n * self.k)
        return product(self.A, namespace(x).reshape(full, (n, self.k)))

    def _apply_adjoint(self, y: Array) -> Array:
        full = namespace(y).reshape(adjoint_product(self.A, y), (-1,))
        return full if self.entries is None else take(full, self.entries, 0)

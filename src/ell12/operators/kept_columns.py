"""The columns of a matrix that a solver works with, gathered once, and their Gram matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.operators.gram import weighted_gram
from ell12.operators.maps import input_shape, select_columns
from ell12.protocols import Array

SPARE = 1024  # columns that may be kept without being asked for, beside as many as are


class KeptColumns:
    """``columns -> A_S' diag(weight) A_S`` and ``A_S x``, for sets S of columns that change slowly.

    Every column is gathered once and every product of two columns computed once, from one set to the next and,
    since a loss holds this, from one alpha of a path to the next. What is no longer used is let go once it
    outweighs the rest.

    Parameters
    ----------
    A : NumPy array, sparse matrix or operator with columns
        See `ell12.operators.maps.has_columns`.
    weight : array of shape (m,)
        Weights of the rows, at least 0.
    most : float
        No more columns are kept, unless more are asked for at once.

    Examples
    --------
    >>> kept = KeptColumns(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]), np.ones(2))
    >>> kept.gram(np.array([0, 1]))
    array([[1., 2.],
           [2., 5.]])
    >>> kept.predict(np.array([1, 2]), np.array([1.0, 1.0]))
    array([2., 4.])
    """

    def __init__(self, A: Any, weight: Array, most: float = math.inf) -> None:
        self.A, self.weight, self.most = A, weight, most
        self._forget()

    def gram(self, columns: Array) -> Array:
        """The Gram matrix of some columns, in double precision; a fresh copy."""
        where = self._locate(columns)
        return self._gram[np.ix_(where, where)]

    def predict(self, columns: Array, x: Array) -> Array:
        """``A_S x``: the prediction of the vector that is x in these columns, and zero elsewhere."""
        where = self._locate(columns)  # which may gather some: the number of those kept is known after it
        values = np.zeros(self._count, dtype=x.dtype)
        values[where] = x
        parts = np.split(values, np.cumsum([input_shape(block)[0] for block in self._blocks])[:-1])
        return sum(block @ part for block, part in zip(self._blocks, parts, strict=True))

    def _forget(self) -> None:
        self._blocks: list[Any] = []  # columns side by side, in the order in which they were asked for
        self._count = 0
        self._position = np.full(input_shape(self.A)[0], -1)
        self._gram = np.empty((0, 0))

    def _locate(self, columns: Array) -> Array:
        """Where the columns lie among those kept, which then include them."""
        new = columns[self._position[columns] < 0]
        if self._count + new.size > max(min(2 * columns.size + SPARE, self.most), columns.size):
            self._forget()
            new = columns
        if new.size:
            self._add(new)
        return self._position[columns]

    def _add(self, new: Array) -> None:
        block = select_columns(self.A, new)
        corner = self._product(block, block)
        if self._blocks:
            side = np.concatenate([self._product(old, block) for old in self._blocks])
            self._gram = np.block([[self._gram, side], [side.T, corner]])
        else:
            self._gram = corner
        self._blocks.append(block)
        self._position[new] = np.arange(self._count, self._count + new.size)
        self._count += new.size

    def _product(self, block: Any, other: Any) -> Array:
        return np.asarray(weighted_gram(block, self.weight, other), dtype=np.float64)

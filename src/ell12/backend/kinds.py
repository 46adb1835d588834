"""Names for type checkers: which kind of array goes in, and which comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


class ArrayObject(Protocol):
    """An array of any library: a tensor of PyTorch too, but not a list."""

    @property
    def shape(self) -> Any:
        """The lengths of the axes."""

    @property
    def dtype(self) -> Any:
        """The type of the entries."""

    def __getitem__(self, key: Any, /) -> Any:
        """Some of the entries."""


X_co = TypeVar("X_co", covariant=True)


class Starting(Protocol[X_co]):
    """A loss, as far as it tells what x is."""

    def start(self) -> X_co:
        """Zeros of the shape, kind, dtype and device that ``x`` has."""


ArrayT = TypeVar("ArrayT", bound=ArrayObject)  # the kind of array in is the kind out
X = TypeVar("X")  # the unknown: an array, or a matrix of low rank
Given_co = TypeVar("Given_co", covariant=True)  # what a loss was given as its observations

Whole = Sequence[Any] | NDArray[np.integer[Any]] | NDArray[np.bool]  # what becomes an array of float64
Plain = Sequence[Any] | NDArray[Any]  # what makes x a NumPy array

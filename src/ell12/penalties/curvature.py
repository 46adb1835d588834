"""Second derivatives of penalties: a diagonal, for l1-2 one direction more, and for groups one in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_numpy, device, indices_like, is_numpy, like, namespace, take
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class DiagonalCurvature:
    """``diag(diagonal) + weight unit unit'``, an `ell12.protocols.Curvature`.

    Parameters
    ----------
    diagonal : array of shape (n,)
        One number for each entry of x.
    unit : array of shape (n,), optional
        A vector of length 1, or of zeros.
    weight : float, default 0.0
        How much of it, at least 0.
    """

    diagonal: Array
    unit: Array | None = None
    weight: float = 0.0

    @property
    def largest(self) -> float:
        """A bound on the modulus of the eigenvalues: they lie from the least entry to the greatest plus weight."""
        xp = namespace(self.diagonal)
        if self.diagonal.shape[0] == 0:
            return 0.0
        return max(-float(xp.min(self.diagonal)), float(xp.max(self.diagonal)) + self.weight)

    def matrix(self, columns: Array) -> Array:
        """The block of the given entries, which a NumPy array names, as a dense matrix."""
        xp, (diagonal, unit) = namespace(self.diagonal), self._within(columns)
        if is_numpy(diagonal) and unit is not None:  # in one pass
            matrix = np.multiply.outer(self.weight * unit, unit)
            np.einsum("ii->i", matrix)[...] += diagonal
            return matrix
        matrix = xp.eye(diagonal.shape[0], dtype=diagonal.dtype, device=device(diagonal)) * diagonal
        return matrix if unit is None else matrix + (self.weight * unit)[:, None] * unit[None, :]

    def product(self, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> matrix(columns) v``, without that matrix."""
        diagonal, unit = self._within(columns)
        if unit is None:
            return lambda v: diagonal * v
        return lambda v: diagonal * v + (self.weight * (unit @ v)) * unit

    def _within(self, columns: Array) -> tuple[Array, Array | None]:
        xp, which = namespace(self.diagonal), indices_like(columns, self.diagonal)
        unit = None if self.unit is None else xp.take(self.unit, which, axis=0)
        return xp.take(self.diagonal, which, axis=0), unit


@dataclass(frozen=True, eq=False)
class GroupCurvature(DiagonalCurvature):
    """A `DiagonalCurvature` less ``d_g d_g'`` in each group g, an `ell12.protocols.Curvature`.

    Parameters
    ----------
    diagonal, unit, weight
        As there.
    labels : NumPy array of shape (n,), optional
        The group of each entry.
    directions : array of shape (n,), optional
        The entries of all d_g.
    """

    labels: Any = None
    directions: Any = None

    @property
    def largest(self) -> float:
        """A bound on the modulus of the eigenvalues."""
        within = np.bincount(self.labels, as_numpy(self.directions) ** 2)
        return super().largest + float(within.max(initial=0.0))

    def matrix(self, columns: Array) -> Array:
        """The block of the given entries, which a NumPy array names, as a dense matrix."""
        matrix, directions = super().matrix(columns), take(self.directions, columns, 0)
        same = self.labels[columns][:, None] == self.labels[columns]
        return matrix - like(same, matrix) * directions[:, None] * directions[None, :]

    def product(self, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> matrix(columns) v``."""
        matrix = self.matrix(columns)
        return lambda v: matrix @ v

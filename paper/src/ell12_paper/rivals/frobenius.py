"""The squared Frobenius norm: a ridge for matrices."""

from __future__ import annotations

from dataclasses import dataclass

from ell12.backend import norm
from ell12.penalties.spectral import Spectral
from ell12.protocols import Array


@dataclass(frozen=True, eq=False, repr=False)
class SquaredFrobenius(Spectral):
    """``alpha/2 ||X||_F^2`` of a matrix, half the sum of its squared singular values.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.rivals.frobenius import SquaredFrobenius
    >>> round(SquaredFrobenius(2.0).value(np.diag([3.0, 4.0])), 12)
    25.0
    """

    alpha: float | None = None

    def __post_init__(self) -> None:
        self._set_numbers()

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return 0.5 * self.strength * norm(s) ** 2

    def prox_values(self, s: Array, step: float) -> Array:
        """``s / (1 + alpha step)``."""
        return s / (1 + self.strength * step)

    def slopes_of(self, s: Array) -> Array:
        """``alpha s``."""
        return self.strength * s

    def slope_at_zero(self, rank: int) -> float:  # noqa: ARG002
        """0: it is smooth."""
        return 0.0

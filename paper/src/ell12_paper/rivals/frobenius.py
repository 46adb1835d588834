"""The squared Frobenius norm: a ridge for matrices."""

from __future__ import annotations

from dataclasses import dataclass

from ell12.backend import norm
from ell12.checks import set_numbers
from ell12.penalties.spectral import Spectral
from ell12.protocols import Array


@dataclass(frozen=True)
class SquaredFrobenius(Spectral):
    """``alpha/2 ||X||_F^2`` of a matrix, half the sum of its squared singular values.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.rivals.frobenius import SquaredFrobenius
    >>> round(SquaredFrobenius(2.0).value(np.diag([3.0, 4.0])), 12)
    25.0
    """

    alpha: float

    def __post_init__(self) -> None:
        set_numbers(self, "alpha")

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return 0.5 * self.alpha * norm(s) ** 2

    def prox_values(self, s: Array, step: float) -> Array:
        """``s / (1 + alpha step)``."""
        return s / (1 + self.alpha * step)

    def slopes_of(self, s: Array) -> Array:
        """``alpha s``."""
        return self.alpha * s

    def slope_at_zero(self, rank: int) -> float:  # noqa: ARG002
        """0: it is smooth."""
        return 0.0

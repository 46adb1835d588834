"""The squared error on the known entries of a matrix."""

from __future__ import annotations

from typing import Any

from ell12.backend import inner, is_numpy
from ell12.completion.low_rank import LowRank
from ell12.completion.observed import Observed, as_observed
from ell12.protocols import Array, Loss, Point


class CompletionLoss:
    """``f(X) = 1/2 ||S(X - O)||_F^2`` of a low-rank X, where S keeps the known entries.

    Parameters
    ----------
    observed : Observed, or what `as_observed` reads
        The known entries O.

    Notes
    -----
    x is a `LowRank`, its prediction the vector of its entries at the known places, and the gradient ``S(X - O)``
    a CSR array (dense for arrays of other libraries than NumPy).

    Examples
    --------
    >>> import numpy as np
    >>> loss = CompletionLoss([[1.0, np.nan], [np.nan, 2.0]])
    >>> loss.value(loss.point(loss.start()))
    2.5
    """

    def __init__(self, observed: Any) -> None:
        self.observed: Observed = as_observed(observed, "observed")

    def __repr__(self) -> str:
        return f"CompletionLoss({self.observed!r})"

    def point(self, x: LowRank) -> Point:
        """X with its entries at the known places."""
        return Point(x, x.entries(self.observed.rows, self.observed.columns))

    def start(self) -> LowRank:
        """The zero matrix, of rank 0."""
        return LowRank.zeros(self.observed.shape, like=self.observed.values)

    def value(self, point: Point) -> float:
        """Half the sum of the squared errors."""
        residual = self.residual(point)
        return 0.5 * inner(residual, residual)

    def residual(self, point: Point) -> Array:
        """The errors at the known places, as a vector."""
        return point.prediction - self.observed.values

    def gradient(self, point: Point) -> Array:
        """``S(X - O)``."""
        return self.observed.matrix(self.residual(point))

    def divergence(self, point: Point, base: Point) -> float:
        """Half the squared distance of the predictions."""
        move = point.prediction - base.prediction
        return 0.5 * inner(move, move)

    def lipschitz(self) -> float:
        """1: S is a projection."""
        return 1.0

    def restrict(self, columns: Array) -> Loss:  # noqa: ARG002
        """There is none: the unknown is no vector of coordinates."""
        raise TypeError("a matrix to be completed has no coordinates for a working set; use a completion solver")

    def check_start(self, x0: Any) -> LowRank:
        """``x0`` if it is a finite low-rank matrix of the right shape and kind, else an error."""
        observed = self.observed
        if not isinstance(x0, LowRank):
            raise TypeError(f"x0 must be a LowRank matrix, got {type(x0).__name__}; see LowRank.from_factors")
        if x0.shape != observed.shape:
            raise ValueError(f"x0 must have shape {observed.shape}, got {x0.shape}")
        if is_numpy(x0.U) != is_numpy(observed.values):
            raise TypeError("x0 must be of the same kind of arrays as the observed entries")
        if not x0.is_finite():
            raise ValueError("x0 holds NaN or infinity; every entry must be finite")
        return x0.astype(observed.values.dtype)

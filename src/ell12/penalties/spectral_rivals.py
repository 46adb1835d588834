"""Penalties of singular values from the literature, to compare with `ell12.SpectralL12`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ell12.backend import namespace, positions
from ell12.penalties.separable import LogSum
from ell12.penalties.spectral import SpectralDifference, SpectralL12
from ell12.protocols import Array


@dataclass(frozen=True, eq=False, repr=False)
class SpectralLogSum(SpectralDifference):
    """The log-sum penalty of the singular values of a matrix.

    ``alpha sum_i log(1 + sigma_i / theta)`` over the singular values of a matrix.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty. The slope
        at zero is ``alpha / theta``.
    theta : float, default 1.0
        Singular values much larger cost next to nothing more.

    See Also
    --------
    SpectralL12 : The penalty of singular values.
    LogSum : The log-sum penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralLogSum
    >>> round(SpectralLogSum(2.0, theta=1.0).value(np.eye(2)), 6)
    2.772589
    """

    alpha: float | None = None
    theta: float = 1.0

    def __post_init__(self) -> None:
        self._set_numbers(positive="theta")

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return self._of_values.value(s)

    def prox_values(self, s: Array, step: float) -> Array:
        """`ell12.LogSum.prox` of the singular values."""
        return self._of_values.prox(s, step)

    def slopes_of(self, s: Array) -> Array:
        """``alpha / (theta + s)``."""
        return self.strength / (self.theta + s)

    def slope_at_zero(self, rank: int) -> float:  # noqa: ARG002
        """``alpha / theta``."""
        return self.strength / self.theta

    @property
    def convex(self) -> SpectralL12:
        """The nuclear norm with the slope at zero."""
        return SpectralL12(self.strength / self.theta, l2_weight=0.0)

    def subtracted_slopes(self, s: Array) -> Array:
        """Slope at zero minus slope at s."""
        return self._of_values.subtracted_gradient(s)

    @property
    def _of_values(self) -> LogSum:
        return LogSum(self.strength, self.theta)


@dataclass(frozen=True, eq=False, repr=False)
class TruncatedNuclear(SpectralDifference):
    """The sum of all singular values but the largest ones.

    ``alpha sum_{i > rank} sigma_i``: the largest ``rank`` singular values cost nothing.

    Hu, Zhang, Ye, Li & He, doi:10.1109/TPAMI.2012.271.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    rank : int, default 1
        How many singular values are free.

    See Also
    --------
    SpectralL12 : The penalty of singular values.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import TruncatedNuclear
    >>> TruncatedNuclear(2.0, rank=1).value(np.diag([3.0, 0.5]))
    1.0
    """

    alpha: float | None = None
    rank: int = 1

    def __post_init__(self) -> None:
        self._set_numbers()
        if not isinstance(self.rank, int | np.integer) or self.rank < 0:
            raise ValueError(f"rank must be an integer >= 0, got {self.rank!r}")

    def value_of(self, s: Array) -> float:
        """The penalty of singular values."""
        return self.strength * float(namespace(s).sum(s[min(self.rank, s.shape[0]) :]))

    def prox_values(self, s: Array, step: float) -> Array:
        """The largest stay, the others are soft-thresholded."""
        xp = namespace(s)
        shrunk = s - self.strength * step
        return xp.where(positions(s) < self.rank, s, xp.where(shrunk > 0, shrunk, 0))

    def slopes_of(self, s: Array) -> Array:
        """Alpha beyond the largest."""
        xp = namespace(s)
        return xp.where(positions(s) < self.rank, 0 * s, self.strength)

    def slope_at_zero(self, rank: int) -> float:
        """Alpha, or 0 while one more would be free."""
        return self.strength if rank >= self.rank else 0.0

    @property
    def convex(self) -> SpectralL12:
        """The nuclear norm."""
        return SpectralL12(self.strength, l2_weight=0.0)

    def subtracted_slopes(self, s: Array) -> Array:
        """Alpha for the largest, zero beyond."""
        xp = namespace(s)
        return xp.where((positions(s) < self.rank) & (s > 0), self.strength, 0 * s)

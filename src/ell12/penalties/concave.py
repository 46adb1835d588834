"""`SCAD` and `TransformedL1`: smooth concave penalties from the literature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ell12.penalties.separable import SmoothSlope
from ell12.protocols import Array


@dataclass(frozen=True, eq=False, repr=False)
class SCAD(SmoothSlope):
    """The smoothly clipped absolute deviation (SCAD).

    A sum over the entries, of slope alpha up to ``|x_i| = alpha``; the slope falls to 0 at ``a alpha``.

    Fan & Li, doi:10.1198/016214501753382273.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    a : float, default 3.7
        Entries from ``a alpha`` on are not shrunk; above 1.

    See Also
    --------
    MCP : The minimax concave penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import SCAD
    >>> SCAD(1.0, a=3.0).prox(np.array([0.9, 1.5, 2.5, 4.0]), 1.0)
    array([0. , 0.5, 2. , 4. ])
    """

    alpha: float | None = None
    a: float = 3.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.a <= 1:
            raise ValueError(f"a must be a number > 1, got {self.a}")

    def _cost(self, xp: Any, size: Array) -> Array:
        alpha, end = self.strength, self.a * self.strength
        middle = xp.where(size > end, end, size)  # the cost is constant beyond
        excess = xp.where(middle > alpha, middle - alpha, 0)
        return alpha * middle - excess * excess / (2 * (self.a - 1))

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """The best of the minimisers on the three pieces."""
        alpha, width = self.strength, self.a - 1
        end = self.a * alpha
        pieces = [xp.clip(size - alpha * step, 0, alpha), xp.where(size > end, size, end)]
        if step < width:  # the middle piece is convex
            pieces.append(xp.clip((width * size - step * end) / (width - step), alpha, end))
        best = pieces[0]
        for piece in pieces[1:]:
            gain = 0.5 * (piece - best) * (piece + best - 2 * size) + step * (
                self._cost(xp, piece) - self._cost(xp, best)
            )
            best = xp.where(gain < 0, piece, best)
        return xp.where(best > size, size, best)  # by no more than rounding

    def _relief(self, xp: Any, size: Array) -> Array:
        return xp.clip((size - self.strength) / (self.a - 1), 0, self.strength)

    def _second_derivative(self, xp: Any, size: Array) -> Array:
        inside = (size > self.strength) & (size < self.a * self.strength)
        return xp.where(inside, -1 / (self.a - 1), 0 * size)


@dataclass(frozen=True, eq=False, repr=False)
class TransformedL1(SmoothSlope):
    """The transformed l1 penalty.

    ``alpha sum_i (a + 1) |x_i| / (a + |x_i|)``, near the number of entries for small a and near the l1 norm for
    large a (Zhang & Xin, doi:10.1007/s10107-018-1236-x).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty. The slope at
        zero is ``alpha (a + 1) / a``.
    a : float, default 1.0
        Entries much larger cost next to nothing more; in the units of x.

    See Also
    --------
    LogSum : The log-sum penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import TransformedL1
    >>> TransformedL1(1.0).prox(np.array([1.0, 3.0]), 1.0).round(4)
    array([0.    , 2.8662])
    """

    alpha: float | None = None
    a: float = 1.0

    @property
    def _slope_at_zero(self) -> float:
        return self.strength * (1 + 1 / self.a)

    def _cost(self, xp: Any, size: Array) -> Array:
        finite = xp.where(xp.isinf(size), 0, size)
        return self._slope_at_zero * xp.where(xp.isinf(size), self.a, finite / (1 + finite / self.a))

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """The largest root of a cubic, where it beats zero; two Newton steps correct its last digits."""
        a, t = self.a, step * self._slope_at_zero
        u = size / a + 1  # in units of a the cubic is u^3 - (size / a + 1) u^2 + t / a, u = 1 + s / a
        ratio = 1 - 13.5 * (t / a) / u / u / u
        angle = xp.acos(xp.clip(ratio, -1, 1)) / 3
        s = size - a * u * (2 / 3) * (1 - xp.cos(angle))
        s = xp.where((ratio >= -1) & (s > 0), s, 0)
        for _ in range(2):
            r = 1 + s / a
            slope = 1 - 2 * (t / a) / r / r / r
            s = xp.where((s > 0) & (slope > 0), s - (s - size + t / r / r) / xp.where(slope > 0, slope, 1), s)
        saved = size - 0.5 * s - t / (1 + s / a)
        return xp.where((s > 0) & (saved > 0), s, 0)

    def _relief(self, xp: Any, size: Array) -> Array:  # noqa: ARG002
        return self._slope_at_zero * (1 - (1 + size / self.a) ** -2.0)

    def _second_derivative(self, xp: Any, size: Array) -> Array:  # noqa: ARG002
        return -2 * self._slope_at_zero / self.a * (1 + size / self.a) ** -3.0

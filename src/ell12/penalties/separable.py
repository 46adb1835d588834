"""Penalties that are sums over the entries: what l1-2 is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import namespace
from ell12.checks import set_numbers
from ell12.penalties.l12 import L1, L12
from ell12.protocols import Array
from ell12.prox.kernel import with_signs


@dataclass(frozen=True)
class LogSum:
    """``alpha sum_i log(1 + |x_i| / theta)`` (Candès, Wakin & Boyd, doi:10.1007/s00041-008-9045-x).

    Parameters
    ----------
    alpha : float
        Strength, at least 0. The slope at zero is ``alpha / theta``.
    theta : float
        Entries much smaller cost like the l1 norm, much larger ones next to nothing more; in the units of x.

    Examples
    --------
    >>> LogSum(1.0, theta=1.0).prox(np.array([0.5, 3.0]), 1.0).round(4)
    array([0.    , 2.7321])
    """

    alpha: float
    theta: float = 1.0

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", positive="theta")

    def value(self, x: Array) -> float:
        """The penalty at x."""
        xp = namespace(x)
        return self.alpha * float(xp.sum(xp.log1p(xp.abs(x) / self.theta)))

    def prox(self, x: Array, step: float) -> Array:
        """The larger root of a quadratic, where it beats zero."""
        t, theta = self.alpha * float(step), self.theta

        def shrink(xp: Any, size: Array) -> Array:
            # Both factors of the discriminant apart, so that no square overflows.
            low, high = size + theta - 2 * math.sqrt(t), size + theta + 2 * math.sqrt(t)
            root = xp.sqrt(xp.where(low > 0, low, 0)) * xp.sqrt(high)
            gap = size - theta  # (gap + root) / 2 would cancel where the gap is negative
            stable = 2 * (size * theta - t) / xp.where(gap < 0, root - gap, 1)
            s = xp.where(gap < 0, stable, (gap + root) / 2)
            s = xp.where((low > 0) & (s > 0), s, 0)
            saved = size - 0.5 * s - t * xp.log1p(s / theta) / xp.where(s > 0, s, 1)
            return xp.where(saved > 0, s, 0)

        return _on_moduli(x, shrink)

    @property
    def convex(self) -> L12:
        """The l1 norm with the slope at zero."""
        return L1(self.alpha / self.theta)

    def subtracted_gradient(self, x: Array) -> Array:
        """Slope at zero minus slope at x."""
        return _on_moduli(x, lambda _, size: self.alpha / self.theta * size / (self.theta + size))


@dataclass(frozen=True)
class CappedL1:
    """``alpha sum_i min(|x_i|, theta)`` (Zhang, JMLR 11, 2010).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    theta : float
        The size from which on an entry costs no more; in the units of x.

    Examples
    --------
    >>> CappedL1(1.0, theta=1.0).prox(np.array([1.4, 3.0]), 1.0)
    array([0.4, 3. ])
    """

    alpha: float
    theta: float = 1.0

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", positive="theta")

    def value(self, x: Array) -> float:
        """The penalty at x."""
        xp = namespace(x)
        size = xp.abs(x)
        return self.alpha * float(xp.sum(xp.where(size < self.theta, size, self.theta)))

    def prox(self, x: Array, step: float) -> Array:
        """Soft thresholding up to where both pieces' minimisers cost the same; beyond it nothing changes."""
        t, theta = self.alpha * float(step), self.theta
        even = theta + 0.5 * t if t <= 2 * theta else math.sqrt(2 * t) * math.sqrt(theta)

        def shrink(xp: Any, size: Array) -> Array:
            return xp.where(size > even, size, xp.where(size > t, size - t, 0))

        return _on_moduli(x, shrink)

    @property
    def convex(self) -> L12:
        """The l1 norm."""
        return L1(self.alpha)

    def subtracted_gradient(self, x: Array) -> Array:
        """Alpha times the sign beyond theta."""
        return _on_moduli(x, lambda xp, size: xp.where(size > self.theta, xp.full_like(size, self.alpha), 0))


@dataclass(frozen=True)
class Lp:
    """``alpha sum_i |x_i|^p`` for 0 < p < 1. Its slope at zero is infinite, so it has no convex part.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    p : float
        The power, between 0 and 1.

    Examples
    --------
    >>> Lp(1.0).prox(np.array([1.4, 2.0]), 1.0).round(4)
    array([0.    , 1.6054])
    """

    alpha: float
    p: float = 0.5

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", positive="p")
        if self.p >= 1:
            raise ValueError(f"p must lie between 0 and 1, got {self.p}")

    def value(self, x: Array) -> float:
        """The penalty at x."""
        xp = namespace(x)
        return self.alpha * float(xp.sum(xp.abs(x) ** self.p))

    def prox(self, x: Array, step: float) -> Array:
        """Zero up to a threshold; beyond it the larger root of ``s + t p s^(p-1) = |x|``.

        That function is convex right of its minimum, so Newton's method from ``s = |x|`` falls on the root.
        """
        t, p = self.alpha * float(step), self.p
        jump = (2 * t * (1 - p)) ** (1 / (2 - p))  # the smallest modulus that is not zero
        threshold = jump + t * p * jump ** (p - 1) if t > 0 else 0.0

        def shrink(xp: Any, size: Array) -> Array:
            kept = size > threshold
            s = size = xp.where(kept, size, 2 * threshold + 1)
            for _ in range(20):
                power = t * p * s ** (p - 1)
                s = s - (s - size + power) / (1 + (p - 1) * power / s)
            return xp.where(kept, s, 0)

        return _on_moduli(x, shrink)


@dataclass(frozen=True)
class MCP:
    """``sum_i alpha |x_i| - x_i^2 / (2 gamma)`` up to ``|x_i| = gamma alpha``, constant beyond.

    The minimax concave penalty (Zhang, doi:10.1214/09-AOS729).

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    gamma : float
        Entries from ``gamma alpha`` on are not shrunk; a larger one is nearer to the l1 norm.

    Examples
    --------
    >>> MCP(1.0, gamma=3.0).prox(np.array([0.9, 2.0, 4.0]), 1.0)
    array([0. , 1.5, 4. ])
    """

    alpha: float
    gamma: float = 3.0

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", positive="gamma")

    def value(self, x: Array) -> float:
        """The penalty at x."""
        xp = namespace(x)
        size, limit = xp.abs(x), self.gamma * self.alpha
        size = xp.where(size < limit, size, limit)
        return float(xp.sum(self.alpha * size - size**2 / (2 * self.gamma)))

    def prox(self, x: Array, step: float) -> Array:
        """Firm thresholding; hard thresholding where the step makes the inner piece concave."""
        alpha, gamma, t = self.alpha, self.gamma, self.alpha * float(step)

        def shrink(xp: Any, size: Array) -> Array:
            if step >= gamma:
                return xp.where(size > alpha * math.sqrt(gamma) * math.sqrt(step), size, 0)
            firm = xp.where(size > t, size - t, 0) * (gamma / (gamma - float(step)))
            return xp.where(firm < size, firm, size)  # the two meet at gamma alpha

        return _on_moduli(x, shrink)

    @property
    def convex(self) -> L12:
        """The l1 norm."""
        return L1(self.alpha)

    def subtracted_gradient(self, x: Array) -> Array:
        """``x / gamma``, cut off at alpha."""
        limit = self.gamma * self.alpha
        return _on_moduli(x, lambda xp, size: xp.where(size < limit, size, limit) / self.gamma)


def _on_moduli(x: Array, shrink: Callable[[Any, Array], Array]) -> Array:
    """Apply a function of moduli and give the signs (phases) of x back."""
    xp = namespace(x)
    size = xp.abs(x)
    with np.errstate(over="ignore"):  # in branches that are not taken
        return with_signs(xp, shrink(xp, size), x, size)

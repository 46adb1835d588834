"""Penalties that are sums over the entries: what l1-2 is compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ell12.backend import as_numpy, max_abs, namespace
from ell12.checks import as_array, as_step
from ell12.penalties.l12 import L1
from ell12.penalties.magnitudes import signs
from ell12.penalties.penalty_base import PenaltyBase, PenaltyCurvature
from ell12.protocols import Array
from ell12.prox.closed_form import with_signs


class Separable(PenaltyBase):
    """``sum_i p(|x_i|)``. A subclass, a dataclass of alpha and one positive number, says p and the prox of p."""

    def __post_init__(self) -> None:
        self._set_numbers(positive=fields(self)[1].name)  # type: ignore[arg-type]

    def _cost(self, xp: Any, size: Array) -> Array:
        """``p`` of each modulus."""
        raise NotImplementedError

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """The prox of p."""
        raise NotImplementedError

    def value(self, x: Array) -> float:
        """The penalty at x."""
        x = as_array(x, "x")
        xp = namespace(x)
        return float(xp.sum(self._cost(xp, xp.abs(x))))

    def prox(self, x: Array, step: float) -> Array:
        """The prox of p of each modulus; signs (phases) stay."""
        x, step = as_array(x, "x"), as_step(step)
        shrunk, xp = _on_magnitudes(x, lambda xp, size: self._shrink(xp, size, step)), namespace(x)
        return xp.where(xp.isfinite(x), shrunk, x)  # NaN stays; infinity is shrunk by next to nothing


class ConcaveSlope(Separable):
    """A `Separable` penalty with a finite slope at zero, which falls from there on: a difference of convex ones.

    A subclass adds that slope, and how far it has fallen at a modulus (the relief).
    """

    @property
    def _slope_at_zero(self) -> float:
        return self.strength

    def _relief(self, xp: Any, size: Array) -> Array:
        """``p'(0) - p'(size)``."""
        raise NotImplementedError

    @property
    def convex(self) -> L1:
        """The l1 norm with the slope at zero."""
        return L1(self._slope_at_zero)

    def subtracted_gradient(self, x: Array) -> Array:
        """The slope at zero less the slope at x."""
        return _on_magnitudes(as_array(x, "x"), self._relief)

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest entry of `least_slope`."""
        return max_abs(self.least_slope(x, gradient))

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective that is smallest in each entry, where the loss has this gradient."""
        x, gradient = as_array(x, "x"), as_array(gradient, "gradient")
        xp, slope = namespace(x), gradient - self.subtracted_gradient(x)
        above = xp.abs(slope) - self._slope_at_zero
        off = xp.where(above > 0, above, 0) * signs(slope)
        return xp.where(x != 0, slope + self._slope_at_zero * signs(x), off)


class SmoothSlope(ConcaveSlope):
    """A `ConcaveSlope` without jumps, which an `ell12.protocols.PiecewisePenalty` must have.

    A subclass adds the derivative of the slope.
    """

    def _second_derivative(self, xp: Any, size: Array) -> Array:
        """``p''(size)``, at zero that from above."""
        raise NotImplementedError

    @property
    def is_convex(self) -> bool:
        """Whether nothing is subtracted."""
        return self.strength == 0

    def kinks(self, x: Array) -> Array:
        """All entries have one at zero."""
        return namespace(x).ones_like(x) > 0

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero."""
        above = namespace(x).full_like(x, self._slope_at_zero)
        return -above, above

    def curvature(self, x: Array) -> PenaltyCurvature:
        """The second derivative of each entry; at zero that of either side."""
        xp = namespace(x)
        return PenaltyCurvature(as_numpy(self._second_derivative(xp, xp.abs(x))))

    def restrict(self, columns: Array) -> Any:  # noqa: ARG002
        """Itself: it is the same for all entries."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class LogSum(SmoothSlope):
    """The log-sum penalty.

    ``alpha sum_i log(1 + |x_i| / theta)`` (Candès, Wakin & Boyd, doi:10.1007/s00041-008-9045-x).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty. The slope
        at zero is ``alpha / theta``.
    theta : float, default 1.0
        Entries much smaller cost like the l1 norm, much larger ones next to nothing more; in the units of x.

    See Also
    --------
    MCP : The minimax concave penalty.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import LogSum
    >>> LogSum(1.0, theta=1.0).prox(np.array([0.5, 3.0]), 1.0).round(4)
    array([0.    , 2.7321])
    """

    alpha: float | None = None
    theta: float = 1.0

    @property
    def _slope_at_zero(self) -> float:
        return self.strength / self.theta

    def _cost(self, xp: Any, size: Array) -> Array:
        return self.strength * xp.log1p(size / self.theta)

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """The larger root of a quadratic, where it beats zero."""
        t, theta = self.strength * step, self.theta
        # Both factors of the discriminant apart, so that no square overflows.
        low, high = size + theta - 2 * math.sqrt(t), size + theta + 2 * math.sqrt(t)
        root = xp.sqrt(xp.where(low > 0, low, 0)) * xp.sqrt(high)
        gap = size - theta  # (gap + root) / 2 would cancel where the gap is negative
        stable = 2 * (size * theta - t) / xp.where(gap < 0, root - gap, 1)
        s = xp.where(gap < 0, stable, (gap + root) / 2)
        s = xp.where((low > 0) & (s > 0), s, 0)
        saved = size - 0.5 * s - t * xp.log1p(s / theta) / xp.where(s > 0, s, 1)
        return xp.where(saved > 0, s, 0)

    def _relief(self, xp: Any, size: Array) -> Array:  # noqa: ARG002
        return self._slope_at_zero * size / (self.theta + size)

    def _second_derivative(self, xp: Any, size: Array) -> Array:  # noqa: ARG002
        return -self.strength / (self.theta + size) ** 2


@dataclass(frozen=True, eq=False, repr=False)
class CappedL1(ConcaveSlope):
    """The capped l1 penalty.

    ``alpha sum_i min(|x_i|, theta)`` (Zhang, JMLR 11, 2010).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    theta : float, default 1.0
        The size from which on an entry costs no more; in the units of x.

    See Also
    --------
    MCP : The minimax concave penalty.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import CappedL1
    >>> CappedL1(1.0, theta=1.0).prox(np.array([1.4, 3.0]), 1.0)
    array([0.4, 3. ])
    """

    alpha: float | None = None
    theta: float = 1.0

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """As for other penalties; at ``|x_i| = theta``, where it falls on at least one side, the steeper one."""
        least, xp = super().least_slope(x, gradient), namespace(x)
        beyond = least - self.strength * signs(x)  # the slope on the far side of theta
        steeper = (xp.abs(x) == self.theta) & (xp.real(beyond * signs(x)) < -xp.real(least * signs(x)))
        return xp.where(steeper, beyond, least)

    def _cost(self, xp: Any, size: Array) -> Array:
        return self.strength * xp.where(size > self.theta, self.theta, size)

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """Soft thresholding up to where both pieces' minimisers cost the same; beyond it nothing changes."""
        t, theta = self.strength * step, self.theta
        even = theta + 0.5 * t if t <= 2 * theta else math.sqrt(2 * t) * math.sqrt(theta)
        return xp.where(size > even, size, xp.where(size > t, size - t, 0))

    def _relief(self, xp: Any, size: Array) -> Array:
        return xp.where(size > self.theta, self.strength, 0 * size)


@dataclass(frozen=True, eq=False, repr=False)
class Lp(Separable):
    """The penalty of powers of magnitudes.

    ``alpha sum_i |x_i|^p`` for 0 < p < 1.

    Its slope at zero is infinite. So it has no convex part, and zero always satisfies the first-order condition.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    p : float, default 0.5
        The power, between 0 and 1.

    See Also
    --------
    MCP : The minimax concave penalty.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.penalties import Lp
    >>> Lp(1.0).prox(np.array([1.4, 2.0]), 1.0).round(4)
    array([0.    , 1.6054])
    """

    alpha: float | None = None
    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p >= 1:
            raise ValueError(f"p must lie between 0 and 1, got {self.p}")

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest derivative of the objective in the entries that are not zero; zero is always stationary."""
        x = as_array(x, "x")
        xp, size = namespace(x), namespace(x).abs(x)
        slope = self.strength * self.p * xp.where(size > 0, size, 1) ** (self.p - 1)
        return max_abs(xp.where(size == 0, 0, gradient + slope * signs(x)))

    def _cost(self, xp: Any, size: Array) -> Array:  # noqa: ARG002
        return self.strength * size**self.p

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """Zero up to a threshold; beyond it the larger root of ``s + t p s^(p-1) = |x|``.

        That function is convex right of its minimum, so Newton's method from ``s = |x|`` falls on the root.
        """
        t, p = self.strength * step, self.p
        jump = (2 * t * (1 - p)) ** (1 / (2 - p))  # the smallest modulus that is not zero
        threshold = jump + t * p * jump ** (p - 1) if t > 0 else 0.0
        kept = size > threshold
        s = size = xp.where(kept, size, 2 * threshold + 1)
        for _ in range(20):
            power = t * p * s ** (p - 1)
            s = s - (s - size + power) / (1 + (p - 1) * power / s)
        return xp.where(kept, s, 0)


@dataclass(frozen=True, eq=False, repr=False)
class MCP(SmoothSlope):
    """The minimax concave penalty (MCP).

    ``sum_i alpha |x_i| - x_i^2 / (2 gamma)`` up to ``|x_i| = gamma alpha``, constant beyond.

    The minimax concave penalty (Zhang, doi:10.1214/09-AOS729).

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0; it may be left to the function or estimator that takes the penalty.
    gamma : float, default 3.0
        Entries from ``gamma alpha`` on are not shrunk; a larger one is nearer to the l1 norm.

    See Also
    --------
    LogSum : The log-sum penalty.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import MCP
    >>> MCP(1.0, gamma=3.0).prox(np.array([0.9, 2.0, 4.0]), 1.0)
    array([0. , 1.5, 4. ])
    """

    alpha: float | None = None
    gamma: float = 3.0

    def _cost(self, xp: Any, size: Array) -> Array:
        size = self._cut(xp, size)
        return self.strength * size - size**2 / (2 * self.gamma)

    def _shrink(self, xp: Any, size: Array, step: float) -> Array:
        """Firm thresholding; hard thresholding where the step makes the inner piece concave."""
        alpha, gamma, t = self.strength, self.gamma, self.strength * step
        if step >= gamma:
            return xp.where(size > alpha * math.sqrt(gamma) * math.sqrt(step), size, 0)
        firm = xp.where(size > t, size - t, 0) * (gamma / (gamma - step))
        return xp.where(firm < size, firm, size)  # the two meet at gamma alpha

    def _relief(self, xp: Any, size: Array) -> Array:
        return self._cut(xp, size) / self.gamma

    def _second_derivative(self, xp: Any, size: Array) -> Array:
        return xp.where(size < self.gamma * self.strength, xp.full_like(size, -1 / self.gamma), 0)

    def _cut(self, xp: Any, size: Array) -> Array:
        limit = self.gamma * self.strength
        return xp.where(size > limit, limit, size)


def _on_magnitudes(x: Array, change: Callable[[Any, Array], Array]) -> Array:
    """Apply a function to the magnitudes and give the signs (phases) of x back."""
    xp = namespace(x)
    size = xp.abs(x)
    with np.errstate(over="ignore", invalid="ignore"):  # in branches that are not taken
        return with_signs(xp, change(xp, size), x, size)

"""Penalties: frozen dataclasses of numbers with a value and a closed-form proximal operator.

`L12`, `GroupL12` and `SpectralL12` are the package's own; `LogSum`, `CappedL1`, `Lp` and `MCP` are there to
compare with. Each prox is a global minimiser. A new penalty is one class with ``alpha``, ``value`` and ``prox``;
``convex`` and ``subtracted_gradient`` open it to SCP and DCA, ``violation`` gives it an exact stationarity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ell12.backend import as_floating, indices_like, is_complex, is_number, like, max_abs, namespace, norm
from ell12.checks import check_numbers
from ell12.layout import group_norms, group_rows
from ell12.protocols import Array
from ell12.prox import (
    prox_l12,
    prox_l12_groups,
    prox_l12_iterative,
    prox_l12_spectral,
    with_signs,
)


@dataclass(frozen=True, eq=False)
class L12:
    """``alpha (sum_i w_i |x_i| - l2_weight ||x||_2)``, over all entries of x as one vector.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    l2_weight : float
        Weight of the subtracted norm. 1 is l1-2, under which a vector with one entry costs nothing;
        0 is the Lasso's penalty.
    weights : array, optional
        Weights of the l1 norm, one per entry, at least 0. An entry of weight 0 is not penalised at all:
        it enters neither norm.
    nonnegative : bool
        Allow ``x >= 0`` only.

    Examples
    --------
    >>> L12(alpha=2.0).value(np.array([3.0, -4.0]))
    4.0
    >>> L12(alpha=2.0).value(np.array([0.0, -4.0]))
    0.0
    """

    alpha: float
    l2_weight: float = 1.0
    weights: Any = None
    nonnegative: bool = False
    _free: Any = field(init=False, repr=False, default=None)  # which entries are not penalised
    _held: Any = field(init=False, repr=False, default=None)  # weights that keep those out of the prox

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", "l2_weight")
        if self.weights is None:
            return
        weights = as_floating(self.weights, "weights")
        check_numbers(weights=weights)
        object.__setattr__(self, "weights", weights)
        xp = namespace(weights)
        free = weights == 0
        if bool(xp.any(free)):
            object.__setattr__(self, "_free", free)
            object.__setattr__(self, "_held", xp.where(free, math.inf, weights))

    def value(self, x: Array) -> float:
        """The penalty at x; infinite where a negative entry is not allowed."""
        if self.nonnegative and float(namespace(x).min(x)) < 0:
            return math.inf
        x = self._penalised(x)
        xp = namespace(x)
        total = float(xp.sum(self._support_weights(x) * xp.abs(x)))
        return self.alpha * (total - self.l2_weight * norm(x))

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` with threshold ``alpha * step``; entries of weight 0 pass."""
        if self.alpha * step == 0:
            return namespace(x).where(x < 0, 0, x) if self.nonnegative else x
        return self._with_free(x, prox_l12(x, self.alpha * step, l2_weight=self.l2_weight, **self._prox_options()))

    def prox_iterative(self, x: Array, step: float, start: Array, tol: float) -> Array:
        """The same point by the numerical method of the paper, warm-started."""
        options = {
            "l2_weight": self.l2_weight,
            "start": self._penalised(start),
            "tol": tol,
            **self._prox_options(),
        }
        return self._with_free(x, prox_l12_iterative(self._penalised(x), self.alpha * step, **options)[0])

    @property
    def convex(self) -> L12:
        """The l1 part."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||``; zero at zero."""
        x = self._penalised(x)
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest violation of the first-order condition where the loss has this gradient.

        On the support ``|gradient - alpha l2_weight x/||x|| + alpha w sign(x)|``, off it what ``|gradient|`` has
        above ``alpha w``. At zero, where the norm has no gradient, the largest entry of one proximal step.
        """
        xp = namespace(x)
        slope = gradient - self.subtracted_gradient(x)
        weights = 1.0 if self.weights is None else like(self.weights, x)
        on = xp.abs(slope + self.alpha * self._support_weights(x) * _signs(xp, x))
        off = (-slope if self.nonnegative else xp.abs(slope)) - self.alpha * weights
        largest = max(float(xp.max(xp.where(x != 0, on, off))), 0.0)
        if self.l2_weight > 0 and max_abs(self._penalised(x)) == 0:
            largest = max(largest, max_abs(self._penalised(self.prox(-gradient, 1.0))))
        return largest

    def _prox_options(self) -> dict[str, Any]:
        return {
            "weights": self.weights if self._held is None else self._held,
            "nonnegative": self.nonnegative,
        }

    def _support_weights(self, x: Array) -> Any:
        """The weights where x is not zero: an infinite one holds its entry at zero, which costs nothing."""
        return 1.0 if self.weights is None else namespace(x).where(x != 0, like(self.weights, x), 0)

    def _penalised(self, x: Array) -> Array:
        """X with the entries of weight 0 blanked out."""
        return x if self._free is None else namespace(x).where(self._free_like(x), 0, x)

    def _free_like(self, x: Array) -> Array:
        return indices_like(self._free, x) if isinstance(self._free, np.ndarray) else self._free

    def _with_free(self, x: Array, shrunk: Array) -> Array:
        if self._free is None:
            return shrunk
        xp = namespace(x)
        return xp.where(self._free_like(x), xp.where(x < 0, 0, x) if self.nonnegative else x, shrunk)


def L1(alpha: float, *, weights: Any = None, nonnegative: bool = False) -> L12:
    """The Lasso's penalty ``alpha sum_i w_i |x_i|``: `L12` with ``l2_weight=0``."""
    return L12(alpha, l2_weight=0.0, weights=weights, nonnegative=nonnegative)


@dataclass(frozen=True, eq=False)
class GroupL12:
    """``alpha (sum_g w_g ||x_g||_2 - l2_weight ||x||_2)`` over groups of entries.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    groups : array of int
        The group, 0, 1, ..., of each entry of x.
    l2_weight : float
        Weight of the subtracted norm; 0 is the group lasso.
    weights : array, optional
        One per group; the square root of a group's size is a common choice. 1 by default.

    Examples
    --------
    >>> GroupL12(1.0, [0, 0, 1]).value(np.array([3.0, 4.0, 0.0]))
    0.0
    """

    alpha: float
    groups: Any
    l2_weight: float = 1.0
    weights: Any = None

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", "l2_weight")
        check_numbers(weights=self.weights)
        object.__setattr__(self, "groups", group_rows(self.groups))
        count = self.groups.members.shape[0]
        if self.weights is not None and np.shape(self.weights) not in ((), (count,)):
            raise ValueError(f"weights must hold one number for each of the {count} groups")

    def value(self, x: Array) -> float:
        """The penalty at x."""
        sizes = group_norms(x, self.groups)
        weighted = sizes if self.weights is None else like(self.weights, x) * sizes
        return self.alpha * (float(namespace(x).sum(weighted)) - self.l2_weight * norm(x))

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12_groups` with threshold ``alpha * step``."""
        return prox_l12_groups(x, self.alpha * step, self.groups, l2_weight=self.l2_weight, weights=self.weights)

    @property
    def convex(self) -> GroupL12:
        """The group lasso's part."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||``; zero at zero."""
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))


@dataclass(frozen=True)
class SpectralL12:
    """``alpha (||X||_* - l2_weight ||X||_F)`` of a matrix: l1-2 of its singular values.

    Examples
    --------
    >>> round(SpectralL12(1.0).value(np.array([[1.0, 2.0], [2.0, 4.0]])), 12)
    0.0
    """

    alpha: float
    l2_weight: float = 1.0

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", "l2_weight")

    def value(self, x: Array) -> float:
        """The penalty at the matrix x."""
        xp = namespace(x)
        return self.alpha * (float(xp.sum(xp.linalg.svdvals(x))) - self.l2_weight * norm(x))

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12_spectral` with threshold ``alpha * step``."""
        return prox_l12_spectral(x, self.alpha * step, l2_weight=self.l2_weight)

    @property
    def convex(self) -> SpectralL12:
        """The nuclear norm's part."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||_F``; zero at zero."""
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))


@dataclass(frozen=True)
class LogSum:
    """``alpha sum_i log(1 + |x_i| / theta)`` (Candès, Wakin & Boyd, doi:10.1007/s00041-008-9045-x).

    Examples
    --------
    >>> LogSum(1.0, theta=1.0).prox(np.array([0.5, 3.0]), 1.0).round(4)
    array([0.    , 2.7321])
    """

    alpha: float
    theta: float = 1.0

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", positive="theta")

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

    Examples
    --------
    >>> CappedL1(1.0, theta=1.0).prox(np.array([1.4, 3.0]), 1.0)
    array([0.4, 3. ])
    """

    alpha: float
    theta: float = 1.0

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", positive="theta")

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

    Examples
    --------
    >>> Lp(1.0).prox(np.array([1.4, 2.0]), 1.0).round(4)
    array([0.    , 1.6054])
    """

    alpha: float
    p: float = 0.5

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", positive="p")
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

    Examples
    --------
    >>> MCP(1.0, gamma=3.0).prox(np.array([0.9, 2.0, 4.0]), 1.0)
    array([0. , 1.5, 4. ])
    """

    alpha: float
    gamma: float = 3.0

    def __post_init__(self) -> None:
        _set_numbers(self, "alpha", positive="gamma")

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


def _set_numbers(penalty: Any, *names: str, positive: str = "") -> None:
    """Check that these attributes are finite real numbers, >= 0 or positive, and make them floats.

    A NumPy number would turn a product with a float32 array into float64.
    """
    for name in (*names, positive) if positive else names:
        value = getattr(penalty, name)
        if not is_number(value) or not 0 <= value < math.inf or (name == positive and value == 0):
            sign = ">" if name == positive else ">="
            raise ValueError(f"{name} must be a finite number {sign} 0, got {value!r}")
        object.__setattr__(penalty, name, float(value))


def _on_moduli(x: Array, shrink: Callable[[Any, Array], Array]) -> Array:
    """Apply a function of moduli and give the signs (phases) of x back."""
    xp = namespace(x)
    size = xp.abs(x)
    with np.errstate(over="ignore"):  # in branches that are not taken
        return with_signs(xp, shrink(xp, size), x, size)


def _signs(xp: Any, x: Array) -> Array:
    if not is_complex(x):
        return xp.sign(x)
    size = xp.abs(x)
    return x / xp.where(size > 0, size, 1)

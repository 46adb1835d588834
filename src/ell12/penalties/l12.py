"""The difference of the l1 and l2 norms of a vector, and of groups of its entries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ell12.backend import as_floating, device, indices_like, is_complex, like, max_abs, namespace, norm
from ell12.backend.norms import l1_and_l2
from ell12.checks import check_numbers, check_weights, set_numbers
from ell12.protocols import Array
from ell12.prox import prox_l12_groups
from ell12.prox.kernel import prox_iterative, prox_vector
from ell12.prox.layout import group_norms, group_rows


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
        set_numbers(self, "alpha", "l2_weight")
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
        check_weights(self.weights, tuple(x.shape))
        if self.nonnegative and bool(namespace(x).any(x < 0)):
            return math.inf
        if self.weights is None:
            total, length = l1_and_l2(x)
        else:
            x = self._penalised(x)
            xp = namespace(x)
            total, length = float(xp.sum(self._support_weights(x) * xp.abs(x))), norm(x)
        return self.alpha * (total - self.l2_weight * length)

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` with threshold ``alpha * step``; entries of weight 0 pass."""
        if self.alpha * step == 0:
            return namespace(x).where(x < 0, 0, x) if self.nonnegative else x
        check_weights(self.weights, tuple(x.shape))
        return self._with_free(x, prox_vector(x, self.alpha * float(step), self.l2_weight, *self._prox_options()))

    def prox_iterative(self, x: Array, step: float, start: Array, tol: float) -> Array:
        """The same point by the numerical method of the paper, warm-started."""
        numbers = (self.alpha * float(step), self.l2_weight, *self._prox_options())
        start, inside = self._penalised(start), self._penalised(x)
        return self._with_free(x, prox_iterative(inside, *numbers, start=start, tol=tol, max_iter=1000)[0])

    @property
    def convex(self) -> L12:
        """The l1 part."""
        return replace(self, l2_weight=0.0)

    def scaled(self, factor: float) -> L12:
        """The penalty times a factor."""
        return replace(self, alpha=factor * self.alpha)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||``; zero at zero."""
        x = self._penalised(x)
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest violation of the first-order condition where the loss has this gradient.

        On the support ``|gradient - alpha l2_weight x/||x|| + alpha w sign(x)|``, off it what ``|gradient|`` has
        above ``alpha w``. At zero, where the norm has no gradient, the largest entry of one proximal step.
        """
        largest = max_abs(self.least_slope(x, gradient))
        if self.l2_weight > 0 and max_abs(self._penalised(x)) == 0:
            largest = max(largest, max_abs(self._penalised(self.prox(-gradient, 1.0))))
        return largest

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective that is smallest in each entry, where the loss has this gradient."""
        xp = namespace(x)
        slope = gradient - self.subtracted_gradient(x)
        weights = 1.0 if self.weights is None else like(self.weights, x)
        on = slope + self.alpha * self._support_weights(x) * _signs(xp, x)
        off = (-slope if self.nonnegative else xp.abs(slope)) - self.alpha * weights
        return xp.where(x != 0, on, _signs(xp, slope) * xp.where(off > 0, off, 0))

    def hessian(self, x: Array, columns: Array) -> Array:
        """The Hessian ``-alpha l2_weight (I - x x'/||x||^2)/||x||``, in the given entries."""
        xp = namespace(x)
        x = self._penalised(x)
        length = norm(x) or math.inf
        unit = xp.take(x / length, indices_like(columns, x), axis=0)
        diagonal = xp.ones_like(unit)
        if self._free is not None:
            diagonal = xp.astype(~xp.take(self._free_like(x), indices_like(columns, x), axis=0), x.dtype)
        identity = xp.eye(unit.shape[0], dtype=x.dtype, device=device(x)) * diagonal
        return (self.alpha * self.l2_weight / length) * (unit[:, None] * unit[None, :] - identity)

    def kinks(self, x: Array) -> Array:
        """Which entries have a kink, or their bound, at zero: all but those of weight 0 that may be negative."""
        if self._free is None or self.nonnegative:
            return namespace(x).ones_like(x) > 0
        return ~self._free_like(x)

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry.

        ``-alpha w`` and ``alpha w``; minus infinity below where entries must not be negative; equal where an
        entry is free.
        """
        xp = namespace(x)
        weights = xp.ones_like(x) if self.weights is None else like(self.weights, x)
        above = self.alpha * weights if self.alpha > 0 else 0 * x
        return (xp.full_like(x, -math.inf) if self.nonnegative else -above), above

    def restrict(self, columns: Array) -> L12:
        """The same penalty on the given entries alone, the others being zero."""
        if self.weights is None:
            return self
        return replace(self, weights=namespace(self.weights).take(self.weights, columns, axis=0))

    def _prox_options(self) -> tuple[Any, bool]:
        return self.weights if self._held is None else self._held, self.nonnegative

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
        set_numbers(self, "alpha", "l2_weight")
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


def _signs(xp: Any, x: Array) -> Array:
    if not is_complex(x):
        return xp.sign(x)
    size = xp.abs(x)
    return x / xp.where(size > 0, size, 1)

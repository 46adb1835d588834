"""The difference of the l1 and l2 norms of a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import namespace
from ell12.checks import set_numbers
from ell12.penalties.bounds import BoundedEntries, as_bounds
from ell12.protocols import Array
from ell12.prox.box import prox_cone


@dataclass(frozen=True, eq=False)
class L12(BoundedEntries):
    """The l1-2 penalty of a vector.

    ``alpha (sum_i w_i |x_i| - l2_weight ||x||_2 + ridge/2 ||x||_2^2)``, over all entries of x as one vector.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    l2_weight : float, default 1.0
        Weight of the subtracted norm. 1 is l1-2, under which a vector with one entry costs nothing;
        0 is the Lasso's penalty.
    weights : array, optional
        Weights of the l1 norm, one per entry, at least 0. An entry of weight 0 is not penalised at all:
        it enters no norm.
    nonnegative : bool, default False
        Allow ``x >= 0`` only.
    bounds : (lower, upper), optional
        Signs that single entries may have: numbers or arrays of 0 and infinity, lower at most 0 and upper at least
        0. `ell12.BoundedL12` takes other bounds.
    ridge : float, default 0.0
        Weight of half the squared norm, at least 0: with it every loss that is bounded below has a minimiser.

    See Also
    --------
    GroupL12 : Groups of entries.
    BoundedL12 : Entries within bounds.
    prox_l12 : The proximal step as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12
    >>> L12(alpha=2.0).value(np.array([3.0, -4.0]))
    4.0
    >>> L12(alpha=2.0).value(np.array([0.0, -4.0]))
    0.0
    """

    alpha: float
    l2_weight: float = 1.0
    weights: Any = None
    nonnegative: bool = False
    bounds: Any = None
    ridge: float = 0.0

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", "l2_weight", "ridge")
        self._set_weights()
        if self.bounds is not None:
            object.__setattr__(self, "bounds", as_bounds(self.bounds))
            if self.nonnegative or not self.bounds.are_signs:
                raise ValueError(
                    "bounds of L12 must be 0 or infinite, without nonnegative; BoundedL12 takes other bounds"
                )

    def kinks(self, x: Array) -> Array:
        """Which entries have a kink, or a bound, at zero: all but those of weight 0 that may have either sign."""
        every = namespace(x).ones_like(x) > 0
        if self._free is None or self.nonnegative:
            return every
        below, above = self.slopes_at_zero(x)
        return every & ((below != 0) | (above != 0))

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry.

        ``-alpha w`` and ``alpha w``; minus infinity and infinity where an entry must not have that sign.
        """
        xp = namespace(x)
        above = xp.zeros_like(x) + self._threshold(x)
        if self.bounds is None:
            return (xp.full_like(x, -math.inf) if self.nonnegative else -above), above
        lower, upper = self.bounds.beside(x)
        return xp.where(lower == 0, -math.inf, -above), xp.where(upper == 0, math.inf, above)

    def restrict(self, columns: Array) -> L12:
        """The same penalty on the given entries alone, the others being zero."""
        if self.bounds is not None:
            return replace(self, weights=_some(self.weights, columns), bounds=self.bounds.restrict(columns))
        weights = _some(self.weights, columns)
        return self if weights is self.weights else replace(self, weights=weights)

    def _shrink(self, moduli: Array, threshold: float) -> Array:
        if self.bounds is None:
            return super()._shrink(moduli, threshold)
        return prox_cone(moduli, threshold, self.l2_weight, self._held, self.bounds.lower, self.bounds.upper)


def _some(weights: Any, columns: Array) -> Any:
    """The weights of some columns; one for all stays as it is."""
    if weights is None or math.prod(weights.shape) == 1:
        return weights
    return namespace(weights).take(weights, columns, axis=0)


def L1(alpha: float, *, weights: Any = None, nonnegative: bool = False, ridge: float = 0.0) -> L12:
    """The Lasso's penalty ``alpha sum_i w_i |x_i|``, or the elastic net's: `L12` with ``l2_weight=0``.

    See Also
    --------
    L12 : The penalty as an object for `minimize`.
    """
    return L12(alpha, l2_weight=0.0, weights=weights, nonnegative=nonnegative, ridge=ridge)

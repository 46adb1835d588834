"""A lower and an upper bound for each entry of x, and l1-2 with bounds of any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_floating, as_numpy, is_complex, like, namespace, norm
from ell12.checks import check_weights, naming, set_numbers
from ell12.penalties.curvature import DiagonalCurvature
from ell12.penalties.family import ModuliL12
from ell12.protocols import Array
from ell12.prox.box import prox_box, prox_cone


@dataclass(frozen=True, eq=False)
class Bounds:
    """``lower <= x <= upper`` with lower <= 0 <= upper: one pair for all entries, or one for each."""

    lower: Any
    upper: Any

    @property
    def are_signs(self) -> bool:
        """Whether every bound is 0 or infinite, so that they constrain signs alone."""
        return all(np.all((bound == 0) | np.isinf(bound)) for bound in map(as_numpy, (self.lower, self.upper)))

    @property
    def signs(self) -> Bounds:
        """The same with infinity in place of every bound that is not 0."""
        return self._each(lambda xp, bound: xp.where(bound == 0, 0, xp.where(bound < 0, -math.inf, math.inf)))

    def beside(self, x: Array) -> tuple[Array, Array]:
        """Both as arrays of the kind of x."""
        return like(self.lower, x), like(self.upper, x)

    def sent_to(self, x: Array) -> Bounds:
        """The same where x is."""
        return Bounds(*self.beside(x))

    def reached(self, x: Array) -> Array:
        """Which entries are at a bound other than 0."""
        lower, upper = self.beside(x)
        return (x != 0) & ((x == lower) | (x == upper))

    def clip(self, x: Array) -> Array:
        """The nearest x within the bounds."""
        xp, (lower, upper) = namespace(x), self.beside(x)
        x = xp.where(x < lower, lower, x)
        return xp.where(x > upper, upper, x)

    def admit(self, x: Array) -> bool:
        """Whether x is within the bounds."""
        lower, upper = self.beside(x)
        return not bool(namespace(x).any((x < lower) | (x > upper)))

    def hold(self, x: Array, slope: Array) -> Array:
        """Which entries are at a bound beyond which a slope leads down."""
        lower, upper = self.beside(x)
        return ((x == lower) & (slope > 0)) | ((x == upper) & (slope < 0))

    def restrict(self, columns: Array) -> Bounds:
        """Those of the given entries."""
        return self._each(
            lambda xp, bound: xp.take(bound, columns, axis=0) if math.prod(bound.shape) > 1 else bound
        )

    def repeat(self, times: int) -> Bounds:
        """Those of x with every entry repeated."""
        return self._each(lambda xp, bound: xp.repeat(bound, times) if math.prod(bound.shape) > 1 else bound)

    def _each(self, change: Callable[[Any, Array], Array]) -> Bounds:
        return Bounds(*(change(namespace(bound), bound) for bound in (self.lower, self.upper)))


def as_bounds(bounds: Any) -> Bounds:
    """A pair (lower, upper) of numbers or arrays, checked."""
    if isinstance(bounds, Bounds):
        return bounds
    sequence = isinstance(bounds, tuple | list) or (isinstance(bounds, np.ndarray) and bounds.ndim > 0)
    if not sequence or len(bounds) != 2:
        raise ValueError(f"bounds must be a pair (lower, upper) of numbers or arrays, got {bounds!r}")
    with naming("bounds"):
        lower, upper = (as_floating(bound, "bounds") for bound in bounds)
    if is_complex(lower) or is_complex(upper):
        raise TypeError("bounds must hold real numbers, got complex ones")
    if not (np.all(as_numpy(lower) <= 0) and np.all(as_numpy(upper) >= 0)):  # so is no NaN
        raise ValueError("bounds must hold lower bounds <= 0 and upper bounds >= 0, so that 0 is allowed")
    return Bounds(lower, upper)


class BoundedEntries(ModuliL12):
    """l1-2 of single entries, which may have bounds."""

    bounds: Any

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise where the weights or the bounds do not broadcast to this shape."""
        if self.weights is not None and self.weights.shape != shape:
            check_weights(self.weights, shape)
        if self.bounds is not None:
            with naming("bounds"):
                check_weights(self.bounds.lower, shape)
                check_weights(self.bounds.upper, shape)

    def value(self, x: Array) -> float:
        """The penalty at x; infinite where x is beyond its bounds."""
        return super().value(x) if self.bounds is None or self.bounds.admit(self._checked(x)) else math.inf

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """The subgradient of the objective that is smallest in each entry; 0 where a bound holds an entry."""
        slope = super().least_slope(x, gradient)
        return slope if self.bounds is None else namespace(x).where(self.bounds.hold(x, slope), 0, slope)

    @property
    def is_convex(self) -> bool:
        """Whether nothing is subtracted."""
        return self.alpha * self.l2_weight == 0

    def curvature(self, x: Array) -> DiagonalCurvature:
        """``alpha ridge I - (alpha l2_weight / ||x||) (I - x x'/||x||^2)`` in the entries that are penalised.

        At zero, where the norm has no derivative, ``alpha ridge I``.
        """
        xp, x = namespace(x), self._penalised(x)
        length = math.inf if self.is_convex else norm(x) or math.inf
        weight = self.alpha * self.l2_weight / length
        diagonal = xp.full_like(x, self.alpha * self.ridge - weight)
        if self._free is not None:
            diagonal = xp.where(self._free_like(x), 0, diagonal)
        return DiagonalCurvature(diagonal) if weight == 0 else DiagonalCurvature(diagonal, x / length, weight)

    def _allowed(self, x: Array) -> Array:
        x = super()._allowed(x)
        return x if self.bounds is None else self.bounds.clip(x)


@dataclass(frozen=True, eq=False)
class BoundedL12(BoundedEntries):
    """The l1-2 penalty of a vector within bounds.

    ``alpha (sum_i w_i |x_i| - l2_weight ||x||_2 + ridge/2 ||x||_2^2)`` for ``lower <= x <= upper``.

    Where every bound is 0 or infinite, `ell12.L12` with these ``bounds`` is the same penalty, and has faster
    solvers.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    bounds : (lower, upper)
        Numbers or arrays, lower at most 0 and upper at least 0; infinite ones do not bind.
    l2_weight, weights, ridge
        As in `ell12.L12`. An entry of weight 0 keeps its bounds.

    See Also
    --------
    L12 : The penalty as an object for `minimize`.

    Notes
    -----
    The prox is a global minimiser where every bound other than 0 is at least ``alpha step l2_weight`` in modulus,
    or where all bounds are equal. Otherwise the choice between entries below the threshold is a knapsack problem,
    and the best of some orders is taken.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import BoundedL12
    >>> BoundedL12(1.0, (-2.0, 3.0)).prox(np.array([3.0, -4.0, 0.5]), 1.0)
    array([ 2.81521974, -2.        ,  0.        ])
    """

    alpha: float
    bounds: Any
    l2_weight: float = 1.0
    weights: Any = None
    ridge: float = 0.0

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", "l2_weight", "ridge")
        self._set_weights()
        object.__setattr__(self, "bounds", as_bounds(self.bounds))

    def _shrink(self, moduli: Array, threshold: float) -> Array:
        return prox_box(moduli, threshold, self.l2_weight, self._held, self.bounds.lower, self.bounds.upper)

    def _step_from_zero(self, gradient: Array) -> Array:
        # A small bound would make the step, by which a violation is measured, as small.
        signs = self.bounds.signs
        return prox_cone(-gradient, self.alpha, self.l2_weight, self._held, signs.lower, signs.upper)

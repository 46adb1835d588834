"""The difference of the l1 and l2 norms of a vector."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from ell12.backend import indices_like, namespace, norm
from ell12.checks import check_weights, naming
from ell12.penalties.curvature import DiagonalCurvature
from ell12.penalties.moduli import ModuliL12
from ell12.protocols import Array


@dataclass(frozen=True, eq=False, repr=False)
class L12(ModuliL12):
    """The l1-2 penalty of a vector.

    ``alpha (sum_i w_i |x_i| - l2_weight ||x||_2 + ridge/2 ||x||_2^2)``, over all entries of x as one vector.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0. It may be left to the function or estimator that takes the penalty.
    l2_weight : float, default 1.0
        Weight of the subtracted norm. 1 is l1-2, under which a vector with one entry costs nothing;
        0 is the Lasso's penalty.
    weights : array, optional
        Weights of the l1 norm, one per entry, at least 0. An entry of weight 0 is not penalised at all:
        it enters no norm.
    positive : bool or array of bool, default False
        Allow ``x >= 0`` only: for all entries, or for those where an array is true.
    ridge : float, default 0.0
        Weight of half the squared norm, at least 0: with it every loss that is bounded below has a minimiser.
        ``l2_weight`` and ``ridge`` together are the DC elastic net (arXiv:2512.23134).

    See Also
    --------
    GroupL12 : Groups of entries.
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

    alpha: float | None = None
    l2_weight: float = 1.0
    _: KW_ONLY
    weights: Any = None
    positive: Any = False
    ridge: float = 0.0

    def __post_init__(self) -> None:
        self._set_numbers("l2_weight", "ridge")
        self._set_weights()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise where the weights or the signs do not broadcast to this shape."""
        if self.weights is not None and self.weights.shape != shape:
            check_weights(self.weights, shape)
        if not isinstance(self.positive, bool) and self.positive.shape != shape:
            with naming("positive"):
                check_weights(self.positive, shape)

    @property
    def is_convex(self) -> bool:
        """Whether nothing is subtracted."""
        return self.strength * self.l2_weight == 0

    def kinks(self, x: Array) -> Array:
        """Which entries have a kink, or a bound, at zero: all but those of weight 0 that may have either sign."""
        every = namespace(x).ones_like(x) > 0
        if self._free is None or self.positive is True:
            return every
        below, above = self.slopes_at_zero(x)
        return every & ((below != 0) | (above != 0))

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry.

        ``-alpha w`` and ``alpha w``; minus infinity and ``alpha w`` where an entry must not be negative.
        """
        xp = namespace(x)
        above = xp.zeros_like(x) + self._threshold(x)
        if not self._is_signed:
            return -above, above
        signed = (xp.zeros_like(x) == 0) & self._must_be_positive(x)
        return xp.where(signed, -math.inf, -above), above

    def curvature(self, x: Array) -> DiagonalCurvature:
        """``alpha ridge I - (alpha l2_weight / ||x||) (I - x x'/||x||^2)`` in the entries that are penalised.

        At zero, where the norm has no derivative, ``alpha ridge I``.
        """
        xp, x = namespace(x), self._penalised(x)
        length = math.inf if self.is_convex else norm(x) or math.inf
        weight = self.strength * self.l2_weight / length
        diagonal = xp.full_like(x, self.strength * self.ridge - weight)
        if self._free is not None:
            diagonal = xp.where(self._free_like(x), 0, diagonal)
        return DiagonalCurvature(diagonal) if weight == 0 else DiagonalCurvature(diagonal, x / length, weight)

    def restrict(self, columns: Array) -> L12:
        """The same penalty on the given entries alone, the others being zero."""
        weights, positive = _some(self.weights, columns), _some(self.positive, columns)
        unchanged = weights is self.weights and positive is self.positive
        return self if unchanged else replace(self, weights=weights, positive=positive)


@dataclass(frozen=True, eq=False, repr=False)
class L1(L12):
    """The Lasso's penalty ``alpha sum_i w_i |x_i|``, or the elastic net's: `L12` with ``l2_weight=0``.

    Parameters
    ----------
    alpha, weights, positive, ridge
        As in `L12`; with a ridge it is the elastic net.

    See Also
    --------
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> from ell12 import L1
    >>> L1(alpha=2.0).value([3.0, -4.0])
    14.0
    """

    l2_weight: float = field(default=0.0, init=False)


def _some(values: Any, columns: Array) -> Any:
    """The weights or signs of some columns; one for all stays as it is."""
    if values is None or isinstance(values, bool) or math.prod(values.shape) == 1:
        return values
    return namespace(values).take(values, indices_like(columns, values), axis=0)

"""`L12`, `L1`, `GroupL12`, `RowsL12`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ell12.backend import arange_like, as_numpy, indices_like, namespace, norm
from ell12.checks import check_flags, check_weights, naming
from ell12.penalties.magnitudes import MagnitudesL12
from ell12.penalties.penalty_base import PenaltyCurvature
from ell12.protocols import Array
from ell12.prox.batching import as_groups, row_norms


@dataclass(frozen=True, eq=False, repr=False)
class L12(MagnitudesL12):
    """The l1-2 penalty of a vector.

    ``alpha (sum_i w_i |x_i| - l2_weight ||x||_2 + ridge/2 ||x||_2^2)``, over all entries of x as one vector: the
    regulariser of Yao, Kwok & Guo (arXiv:1610.09461, equation 2), whose proximal operator is Proposition III.5.

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
        self._set_masks()

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
        if self._unpenalised is None or self.positive is True:
            return every
        below, above = self.slopes_at_zero(x)
        return every & ((below != 0) | (above != 0))

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """The slopes of the convex part just below and just above zero, one for each entry.

        ``-alpha w`` and ``alpha w``; minus infinity and ``alpha w`` where an entry must not be negative.
        """
        xp = namespace(x)
        above = xp.zeros_like(x) + self._threshold(x)
        if self.positive is False:
            return -above, above
        signed = (xp.zeros_like(x) == 0) & self._must_be_positive(x)
        return xp.where(signed, -math.inf, -above), above

    def curvature(self, x: Array) -> PenaltyCurvature:
        """``alpha ridge I - (alpha l2_weight / ||x||) (I - x x'/||x||^2)`` in the entries that are penalised.

        At zero, where the norm has no derivative, ``alpha ridge I``.
        """
        xp, x = namespace(x), self._penalised(x)
        length = math.inf if self.is_convex else norm(x) or math.inf
        weight = self.strength * self.l2_weight / length
        diagonal = xp.full_like(x, self.strength * self.ridge - weight)
        if self._unpenalised is not None:
            diagonal = xp.where(self._unpenalised_like(x), 0, diagonal)
        unit = None if weight == 0 else as_numpy(x / length)
        return PenaltyCurvature(as_numpy(diagonal), unit, weight)

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


class BlockL12(MagnitudesL12):
    """l1-2 of norms, which are the magnitudes. A subclass says what they are norms of."""

    signed: ClassVar[bool] = False

    def directions(self, x: Array, magnitudes: Array) -> Array:
        """What belongs to one norm, divided by it."""
        return x / self.spread(namespace(x).where(magnitudes > 0, magnitudes, 1))


@dataclass(frozen=True, eq=False, repr=False)
class GroupL12(BlockL12):
    """The l1-2 penalty of the norms of groups.

    ``alpha (sum_g w_g ||x_g||_2 - l2_weight ||x||_2 + ridge/2 ||x||_2^2)`` over groups of entries.

    Parameters
    ----------
    groups : array
        The label of each entry's group: labels of any kind that can be sorted.
    alpha : float, optional
        Strength, at least 0. It may be left to the function or estimator that takes the penalty.
    l2_weight : float, default 1.0
        Weight of the subtracted norm; 0 is the group lasso.
    weights : array, optional
        One per group, in the order of the sorted labels; the square root of a group's size is a common choice.
        A group of weight 0 is not penalised, and enters no norm. 1 by default.
    ridge : float, default 0.0
        Weight of half the squared norm, as in `ell12.L12`.

    See Also
    --------
    L12 : The penalty as an object for `minimize`.
    RowsL12 : Rows of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import GroupL12
    >>> GroupL12([0, 0, 1], 1.0).value(np.array([3.0, 4.0, 0.0]))
    0.0
    """

    groups: Any
    alpha: float | None = None
    l2_weight: float = 1.0
    _: KW_ONLY
    weights: Any = None
    ridge: float = 0.0

    def __post_init__(self) -> None:
        self._set_numbers("l2_weight", "ridge")
        object.__setattr__(self, "groups", as_groups(self.groups))
        self._set_masks()
        count = self.groups.count
        if self.weights is not None and tuple(self.weights.shape) not in ((), (count,)):
            raise ValueError(f"weights must hold one number for each of the {count} groups")

    def units(self, n: int) -> Array:  # noqa: ARG002
        """The number of each entry's group, in the order of the sorted labels."""
        return self.groups.labels

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless there is one label for each entry."""
        self.groups.check_shape(shape, "x")

    def rebuild(self, x: Array, magnitudes: Array, new: Array) -> Array:
        """The groups keep their directions."""
        return self.groups.rebuild(x, magnitudes, new)

    def spread(self, values: Array) -> Array:
        """One number for each group, next to the entries; one for all stays as it is."""
        return self.groups.spread(values) if values.shape else values

    def magnitudes(self, x: Array) -> Array:
        """The norms of the groups."""
        return self.groups.norms(x)

    def curvature(self, x: Array) -> PenaltyCurvature:
        """The second derivatives around x in the groups that are not zero; 0 in the others."""
        xp, norms = namespace(x), self.magnitudes(x)
        some = norms > 0
        curvature = xp.where(some, self._threshold(x) + 0 * norms, 0) / xp.where(some, norms, 1)
        inside = self._penalised(x)
        length = norm(inside) or math.inf
        weight, curvatures = self.strength * self.l2_weight / length, self.spread(curvature)
        own = self.strength * self.ridge - weight
        diagonal = curvatures + own * self._penalised(self.spread(xp.astype(some, x.dtype)))
        directions = xp.sqrt(curvatures) * self.directions(x, norms)
        diagonal, unit, directions = map(as_numpy, (diagonal, inside / length, directions))
        return PenaltyCurvature(diagonal, unit, weight, self.groups.labels, directions)

    def sign_changes(self, x: Array, new: Array) -> Array:
        """Which entries are of groups that point back in ``new``: on the way there they pass zero."""
        along = np.bincount(self.groups.labels, as_numpy(x * new), minlength=self.groups.count)
        back = along <= 0 if self._unpenalised is None else (along <= 0) & ~as_numpy(self._unpenalised)
        return indices_like(back[self.groups.labels], x)


@dataclass(frozen=True, eq=False, repr=False)
class RowsL12(BlockL12):
    """The l1-2 penalty of the norms of the rows of a matrix.

    ``alpha (sum_j w_j ||x_j||_2 - l2_weight ||x||_F + ridge/2 ||x||_F^2)`` over the rows x_j of a matrix.

    A row is zero or not.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0. It may be left to the function or estimator that takes the penalty.
    l2_weight : float, default 1.0
        Weight of the subtracted norm: 1 is l1-2, 0 the penalty of scikit-learn's MultiTaskLasso.
    weights : array, optional
        One per row, at least 0. A row of weight 0 is not penalised, and enters no norm. 1 by default.
    positive : bool, default False
        Allow ``x >= 0`` only.
    ridge : float, default 0.0
        Weight of half the squared norm, as in `ell12.L12`.

    See Also
    --------
    GroupL12 : Groups of entries.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import RowsL12
    >>> RowsL12(1.0).value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    0.0
    """

    joint: ClassVar[bool] = True

    alpha: float | None = None
    l2_weight: float = 1.0
    _: KW_ONLY
    weights: Any = None
    positive: bool = False
    ridge: float = 0.0

    def __post_init__(self) -> None:
        self._set_numbers("l2_weight", "ridge")
        check_flags(positive=self.positive)
        self._set_masks()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless it is that of a matrix, and there is one weight for each row."""
        if len(shape) != 2 or shape[1] == 0:
            raise ValueError(f"x must be a matrix with columns, got shape {shape}")
        if self.weights is not None and tuple(self.weights.shape) != (shape[0],):
            got = tuple(self.weights.shape)
            raise ValueError(f"weights must hold one number for each of {shape[0]} rows, got shape {got}")

    def magnitudes(self, x: Array) -> Array:
        """The norms of the rows."""
        return row_norms(x)[:, 0]

    def rebuild(self, x: Array, magnitudes: Array, new: Array) -> Array:
        """The rows keep their directions; where x must not be negative, those of their positive parts."""
        xp, some = namespace(x), magnitudes[:, None] > 0
        unit = self._allowed(x) / xp.where(some, magnitudes[:, None], 1)
        # A row without a direction that must grow (l2_weight above its weight) grows along one entry.
        single = xp.astype(arange_like(x) == xp.argmax(x, axis=1, keepdims=True), x.dtype)
        return new[:, None] * xp.where(some, unit, single)

    def spread(self, values: Array) -> Array:
        """One number for each row, as a column."""
        return values[:, None]

    def _magnitudes_to_shrink(self, x: Array) -> Array:
        """Where x must not be negative the norms of the positive parts, or the largest entries where none is."""
        norms, xp = self.magnitudes(self._allowed(x)), namespace(x)
        return xp.where(norms > 0, norms, xp.max(x, axis=1)) if self.positive else norms

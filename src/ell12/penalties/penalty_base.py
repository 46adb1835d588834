"""What all penalties share: a strength that may be left out, ``penalty(x)``, second derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from ell12.backend import is_array, max_abs, namespace
from ell12.checks import set_numbers
from ell12.protocols import Array, Curvature, Penalty, Wrapper, with_alpha


class PenaltyBase(Penalty):
    """Base class of penalties, which are frozen dataclasses with a field ``alpha``.

    A subclass adds ``value(x)`` and ``prox(x, step)``, as `ell12.protocols.Penalty` says.

    Attributes
    ----------
    alpha : float or None
        The strength. None leaves it to the function or estimator that takes the penalty.
    joint : bool
        Whether the penalty takes a matrix of coefficients, a row for each feature.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from ell12.penalties import PenaltyBase
    >>> @dataclass(frozen=True, eq=False)
    ... class Hard(PenaltyBase):
    ...     alpha: float | None = None
    ...
    ...     def value(self, x):
    ...         return self.alpha * int(np.count_nonzero(x))
    ...
    ...     def prox(self, x, step):
    ...         return np.where(x**2 > 2 * self.alpha * step, x, 0)
    >>> Hard(2.0)(np.array([3.0, 0.0]))
    2.0
    """

    def __call__(self, x: Any) -> float:
        """The value at x."""
        return self.value(x)

    def __eq__(self, other: object) -> bool:
        # scikit-learn's SelectFromModel asks `penalty == "l1"` to learn that zeros are exact.
        return other == "l1" if isinstance(other, str) else self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        """The fields that differ from their defaults; arrays by their shapes."""
        words = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.init and (field.default is MISSING or is_array(value) or value != field.default):
                shown = f"array{tuple(value.shape)}" if is_array(value) else repr(value)
                words.append(shown if field.name == "groups" else f"{field.name}={shown}")
        return f"{type(self).__name__}({', '.join(words)})"

    @property
    def strength(self) -> float:
        """``alpha``; a ValueError where it was left out."""
        if self.alpha is None:
            raise ValueError(f"{self!r} has no strength: give {type(self).__name__}(alpha=...)")
        return self.alpha

    def units(self, n: int) -> Array:
        """The label of what each of n entries is selected with: here each entry is on its own."""
        return np.arange(n)

    def _set_numbers(self, *names: str, positive: str = "") -> None:
        """Check alpha, if it is given, and other numbers, and make them floats."""
        alpha = () if self.alpha is None else ("alpha",)
        set_numbers(self, *alpha, *names, positive=positive)


def with_strength(penalty: Any, alpha: float | None, default: float | None = None) -> Any:
    """The penalty with the strength that a caller said, either in it or next to it.

    Parameters
    ----------
    penalty : Penalty
        Its own alpha may be None.
    alpha : float or None
        The strength that was given next to the penalty.
    default : float, optional
        The strength if neither is given; None leaves it open.

    Examples
    --------
    >>> from ell12 import MCP
    >>> from ell12.penalties import with_strength
    >>> with_strength(MCP(gamma=2.0), 0.1)
    MCP(alpha=0.1, gamma=2.0)
    >>> with_strength(MCP(alpha=0.2), 0.1)
    Traceback (most recent call last):
        ...
    ValueError: alpha is given twice: 0.1 and MCP(alpha=0.2)
    """
    own = penalty.alpha
    if alpha is not None and own is not None:
        raise ValueError(f"alpha is given twice: {alpha} and {penalty!r}")
    found = own if alpha is None else alpha
    found = default if found is None else found
    return penalty if found is None or found is own else with_alpha(penalty, found)


@dataclass(frozen=True, eq=False)
class PenaltyCurvature:
    """``diag(diagonal) + weight unit unit'``, less ``d_g d_g'`` in each group g: an `ell12.protocols.Curvature`.

    Parameters
    ----------
    diagonal : NumPy array of shape (n,)
        One number for each entry of x.
    unit : NumPy array of shape (n,), optional
        A vector of length 1, or of zeros.
    weight : float, default 0.0
        How much of it, at least 0.
    labels : NumPy array of shape (n,), optional
        The group of each entry; by default there are no groups.
    directions : NumPy array of shape (n,), optional
        The entries of all d_g.
    """

    diagonal: Any
    unit: Any = None
    weight: float = 0.0
    labels: Any = None
    directions: Any = None

    @property
    def largest(self) -> float:
        """A bound on the absolute values of the eigenvalues."""
        lowest, greatest = self.diagonal.min(initial=0.0), self.diagonal.max(initial=-math.inf)
        groups = 0.0 if self.labels is None else np.bincount(self.labels, self.directions**2).max(initial=0.0)
        return max(-float(lowest), float(greatest) + self.weight, 0.0) + float(groups)

    def matrix(self, columns: Any) -> Any:
        """The block of the given entries as a dense matrix."""
        unit = np.zeros(len(columns), self.diagonal.dtype) if self.unit is None else self.unit[columns]
        matrix = np.multiply.outer(self.weight * unit, unit)
        np.einsum("ii->i", matrix)[...] += self.diagonal[columns]
        if self.labels is not None:
            labels, directions = self.labels[columns], self.directions[columns]
            matrix -= np.equal.outer(labels, labels) * np.multiply.outer(directions, directions)
        return matrix

    def product(self, columns: Any) -> Callable[[Any], Any]:
        """The map ``v -> matrix(columns) v``, without that matrix unless there are groups."""
        if self.labels is not None:
            return self.matrix(columns).__matmul__
        diagonal, unit = self.diagonal[columns], 0.0 * columns if self.unit is None else self.unit[columns]
        return lambda v: diagonal * v + (self.weight * (unit @ v)) * unit


@dataclass(frozen=True, eq=False)
class WithIntercept(Wrapper, Penalty):
    """``penalty(x without its last entry)``: penalty and constraints leave the last entry out.

    Of several classes as many intercepts stand last: ``count``.

    A weight of 0 in `L12` does not leave an entry out of ``positive``; an intercept is left out of both.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12
    >>> from ell12.penalties.penalty_base import WithIntercept
    >>> WithIntercept(L12(1.0, positive=True)).value(np.array([3.0, 4.0, -7.0]))
    2.0
    """

    penalty: Any
    count: int = 1

    @property
    def wrapped(self) -> Any:
        """The penalty."""
        return self.penalty

    def _inside(self, x: Array) -> Array:
        return x[: -self.count, ...]

    def _last(self, x: Array) -> Array:
        return x[-self.count :, ...]

    @property
    def alpha(self) -> float:
        """The strength of the penalty."""
        return self.penalty.alpha

    def value(self, x: Array) -> float:
        """The penalty at the entries before the last."""
        return self.penalty.value(self._inside(x))

    def prox(self, x: Array, step: float) -> Array:
        """The penalty's prox, next to the last entry as it is."""
        return _append(self.penalty.prox(self._inside(x), step), self._last(x))

    @property
    def convex(self) -> WithIntercept:
        """The penalty's convex part."""
        return WithIntercept(self.penalty.convex, self.count)

    @property
    def is_convex(self) -> bool:
        """Whether the penalty subtracts nothing."""
        return self.penalty.is_convex

    def subtracted_gradient(self, x: Array) -> Array:
        """That of the penalty, 0 for the last entry."""
        return _append(self.penalty.subtracted_gradient(self._inside(x)), 0 * self._last(x))

    def violation(self, x: Array, gradient: Array) -> Any:
        """The larger of the penalty's violation and the last entry of the gradient."""
        inside = self.penalty.violation(self._inside(x), self._inside(gradient))
        return None if inside is None else max(inside, max_abs(self._last(gradient)))

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """That of the penalty, and the last entry of the gradient."""
        return _append(self.penalty.least_slope(self._inside(x), self._inside(gradient)), self._last(gradient))

    def curvature(self, x: Array) -> _CurvatureBeforeLast:
        """That of the penalty; zero for the last entry."""
        return _CurvatureBeforeLast(self.penalty.curvature(x[: -self.count]), int(x.shape[0]) - self.count)

    def sign_changes(self, x: Array, new: Array) -> Array:
        """Those of the penalty; the last entry turns freely."""
        changes = self.penalty.sign_changes(self._inside(x), self._inside(new))
        return _append(changes, self._last(x) != self._last(x))

    def kinks(self, x: Array) -> Array:
        """Those of the penalty; the last entry has none."""
        return _append(self.penalty.kinks(self._inside(x)), self._last(x) != self._last(x))

    def slopes_at_zero(self, x: Array) -> tuple[Array, Array]:
        """Those of the penalty; zero for the last entry."""
        below, above = self.penalty.slopes_at_zero(self._inside(x))
        return _append(below, 0 * self._last(x)), _append(above, 0 * self._last(x))

    def restrict(self, columns: Array) -> WithIntercept:
        """The same penalty on the given entries, the intercept being the last of them."""
        return WithIntercept(self.penalty.restrict(columns[: -self.count]), self.count)


@dataclass(frozen=True)
class _CurvatureBeforeLast:
    """A curvature, and zero for the entries from the number ``last`` on; columns are sorted."""

    before: Curvature
    last: int

    @property
    def largest(self) -> float:
        return self.before.largest

    def matrix(self, columns: Any) -> Any:
        within = columns[columns < self.last]
        matrix = np.zeros((columns.size, columns.size))
        matrix[: within.size, : within.size] = self.before.matrix(within)
        return matrix

    def product(self, columns: Any) -> Callable[[Any], Any]:
        within = columns[columns < self.last]
        product, size = self.before.product(within), within.size
        return lambda v: np.append(product(v[:size]), 0 * v[size:])


def _append(x: Array, last: Array) -> Array:
    return namespace(x, last).concat([x, last])

"""What all penalties share: a strength that may be left out, ``penalty(x)``, second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from ell12.backend import as_array_of, as_numpy, device, indices_like, is_array, is_numpy, max_abs, namespace, take
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
                words.append(f"{field.name}=array{tuple(value.shape)}" if is_array(value) else _word(field, value))
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


def _word(field: Any, value: Any) -> str:
    return repr(value) if field.name == "groups" else f"{field.name}={value!r}"


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
class DiagonalCurvature:
    """``diag(diagonal) + weight unit unit'``, an `ell12.protocols.Curvature`.

    Parameters
    ----------
    diagonal : array of shape (n,)
        One number for each entry of x.
    unit : array of shape (n,), optional
        A vector of length 1, or of zeros.
    weight : float, default 0.0
        How much of it, at least 0.
    """

    diagonal: Array
    unit: Array | None = None
    weight: float = 0.0

    @property
    def largest(self) -> float:
        """A bound on the modulus of the eigenvalues: they lie from the least entry to the greatest plus weight."""
        xp = namespace(self.diagonal)
        if self.diagonal.shape[0] == 0:
            return 0.0
        return max(-float(xp.min(self.diagonal)), float(xp.max(self.diagonal)) + self.weight)

    def matrix(self, columns: Array) -> Array:
        """The block of the given entries, which a NumPy array names, as a dense matrix."""
        xp, (diagonal, unit) = namespace(self.diagonal), self._within(columns)
        if is_numpy(diagonal) and unit is not None:  # in one pass
            matrix = np.multiply.outer(self.weight * unit, unit)
            np.einsum("ii->i", matrix)[...] += diagonal
            return matrix
        matrix = xp.eye(diagonal.shape[0], dtype=diagonal.dtype, device=device(diagonal)) * diagonal
        return matrix if unit is None else matrix + (self.weight * unit)[:, None] * unit[None, :]

    def product(self, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> matrix(columns) v``, without that matrix."""
        diagonal, unit = self._within(columns)
        if unit is None:
            return lambda v: diagonal * v
        return lambda v: diagonal * v + (self.weight * (unit @ v)) * unit

    def _within(self, columns: Array) -> tuple[Array, Array | None]:
        xp, which = namespace(self.diagonal), indices_like(columns, self.diagonal)
        unit = None if self.unit is None else xp.take(self.unit, which, axis=0)
        return xp.take(self.diagonal, which, axis=0), unit


@dataclass(frozen=True, eq=False)
class GroupCurvature(DiagonalCurvature):
    """A `DiagonalCurvature` less ``d_g d_g'`` in each group g, an `ell12.protocols.Curvature`.

    Parameters
    ----------
    diagonal, unit, weight
        As there.
    labels : NumPy array of shape (n,), optional
        The group of each entry.
    directions : array of shape (n,), optional
        The entries of all d_g.
    """

    labels: Any = None
    directions: Any = None

    @property
    def largest(self) -> float:
        """A bound on the modulus of the eigenvalues."""
        within = np.bincount(self.labels, as_numpy(self.directions) ** 2)
        return super().largest + float(within.max(initial=0.0))

    def matrix(self, columns: Array) -> Array:
        """The block of the given entries, which a NumPy array names, as a dense matrix."""
        matrix, directions = super().matrix(columns), take(self.directions, columns, 0)
        same = self.labels[columns][:, None] == self.labels[columns]
        return matrix - as_array_of(same, matrix) * directions[:, None] * directions[None, :]

    def product(self, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> matrix(columns) v``."""
        matrix = self.matrix(columns)
        return lambda v: matrix @ v


@dataclass(frozen=True, eq=False)
class WithIntercept(Wrapper, Penalty):
    """``penalty(x without its last entry)``: the last entry is free, of the penalty and of its constraints.

    Of several classes as many intercepts stand last: ``count``.

    A weight of 0 in `L12` frees an entry of the penalty, but not of ``positive``: an intercept is free of both.

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
        return _append(
            self.penalty.sign_changes(self._inside(x), self._inside(new)), self._last(x) != self._last(x)
        )

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

    def matrix(self, columns: Array) -> Array:
        matrix, size = self.before.matrix(columns[columns < self.last]), int(columns.shape[0])
        xp, kind = namespace(matrix), {"dtype": matrix.dtype, "device": device(matrix)}
        within = int(matrix.shape[0])
        wide = xp.concat([matrix, xp.zeros((within, size - within), **kind)], axis=1)
        return xp.concat([wide, xp.zeros((size - within, size), **kind)])

    def product(self, columns: Array) -> Callable[[Array], Array]:
        within = columns[columns < self.last]
        product, size = self.before.product(within), int(within.shape[0])
        return lambda v: _append(product(v[:size]), 0 * v[size:])


def _append(x: Array, last: Array) -> Array:
    return namespace(x, last).concat([x, last])

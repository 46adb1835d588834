"""Any penalty, with the last entries of x left free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ell12.backend import device, max_abs, namespace
from ell12.protocols import Array, Curvature, ParallelPenalty, Wrapper, offers


@dataclass(frozen=True, eq=False)
class WithIntercept(Wrapper):
    """``penalty(x without its last entry)``: the last entry is free, of the penalty and of its constraints.

    Of several classes as many intercepts stand last: ``count``.

    A weight of 0 in `L12` frees an entry of the penalty, but not of ``positive``: an intercept is free of both.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12
    >>> from ell12.penalties.unpenalised import WithIntercept
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
        """The penalty's prox, beside the last entry as it is."""
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

    def violation(self, x: Array, gradient: Array) -> float:
        """The larger of the penalty's violation and the last entry of the gradient."""
        if offers(self.penalty, ParallelPenalty):  # each column has a unit of its own
            return self.alpha * max_abs(self.stationarities(x, gradient))
        return max(self.penalty.violation(self._inside(x), self._inside(gradient)), max_abs(self._last(gradient)))

    def values(self, x: Array) -> Array:
        """Those of a penalty on columns, each without its last entry."""
        return self.penalty.values(self._inside(x))

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """Those of a penalty on columns, or the last entry of each column of the gradient where that is larger."""
        within = self.penalty.stationarities(self._inside(x), self._inside(gradient))
        last = self.penalty.sizes(self._last(gradient))
        return namespace(last).where(last > within, last, within)

    def sizes(self, x: Array) -> Array:
        """Those of a penalty on columns; the last entries count too."""
        return self.penalty.sizes(x)

    def select_problems(self, which: Any) -> WithIntercept:
        """The same penalty on some of the columns."""
        return WithIntercept(self.penalty.select_problems(which), self.count)

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """That of the penalty, and the last entry of the gradient."""
        return _append(self.penalty.least_slope(self._inside(x), self._inside(gradient)), self._last(gradient))

    def curvature(self, x: Array) -> _CurvatureBeforeLast:
        """That of the penalty; zero for the last entry."""
        return _CurvatureBeforeLast(self.penalty.curvature(x[: -self.count]), int(x.shape[0]) - self.count)

    def turned(self, x: Array, new: Array) -> Array:
        """Those of the penalty; the last entry turns freely."""
        return _append(self.penalty.turned(self._inside(x), self._inside(new)), self._last(x) != self._last(x))

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
        within = columns[columns < self.last]
        matrix, size = self.before.matrix(within), int(within.shape[0])
        extra = int(columns.shape[0]) - size
        if extra == 0:
            return matrix
        xp, kind = namespace(matrix), {"dtype": matrix.dtype, "device": device(matrix)}
        return xp.concat(
            [xp.concat([matrix, xp.zeros((size, extra), **kind)], axis=1), xp.zeros((extra, size + extra), **kind)]
        )

    def product(self, columns: Array) -> Callable[[Array], Array]:
        within = columns[columns < self.last]
        product, size = self.before.product(within), int(within.shape[0])
        return lambda v: _append(product(v[:size]), 0 * v[size:])


def _append(x: Array, last: Array) -> Array:
    return namespace(x, last).concat([x, last])

"""A penalty on all entries but the last, which is an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ell12.backend import device, max_abs, namespace
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class WithIntercept:
    """``penalty(x without its last entry)``: the last entry is free, of the penalty and of its constraints.

    A weight of 0 in `L12` frees an entry of the penalty, but not of ``nonnegative``: an intercept is free of both.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12
    >>> WithIntercept(L12(1.0, nonnegative=True)).value(np.array([3.0, 4.0, -7.0]))
    2.0
    """

    penalty: Any

    @property
    def alpha(self) -> float:
        """The strength of the penalty."""
        return self.penalty.alpha

    def value(self, x: Array) -> float:
        """The penalty at the entries before the last."""
        return self.penalty.value(x[:-1, ...])

    def prox(self, x: Array, step: float) -> Array:
        """The penalty's prox, beside the last entry as it is."""
        return _append(self.penalty.prox(x[:-1, ...], step), x[-1:, ...])

    @property
    def convex(self) -> WithIntercept:
        """The penalty's convex part."""
        return WithIntercept(self.penalty.convex)

    def scaled(self, factor: float) -> WithIntercept:
        """The penalty times a factor."""
        return WithIntercept(self.penalty.scaled(factor))

    def subtracted_gradient(self, x: Array) -> Array:
        """That of the penalty, 0 for the last entry."""
        return _append(self.penalty.subtracted_gradient(x[:-1, ...]), 0 * x[-1:, ...])

    def violation(self, x: Array, gradient: Array) -> float:
        """The larger of the penalty's violation and the last entry of the gradient."""
        size = getattr(self.penalty, "largest", max_abs)  # columns of different strengths have units of their own
        return max(self.penalty.violation(x[:-1, ...], gradient[:-1, ...]), size(gradient[-1:, ...]))

    def values(self, x: Array) -> Array:
        """Those of a penalty on columns, each without its last entry."""
        return self.penalty.values(x[:-1, ...])

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """Those of a penalty on columns, or the last entry of each column of the gradient where that is larger."""
        within, last = (
            self.penalty.stationarities(x[:-1, ...], gradient[:-1, ...]),
            self.penalty.sizes(gradient[-1:, ...]),
        )
        return namespace(last).where(last > within, last, within)

    def sizes(self, x: Array) -> Array:
        """Those of a penalty on columns; the last entries count too."""
        return self.penalty.sizes(x)

    def select_problems(self, which: Any) -> WithIntercept:
        """The same penalty on some of the columns."""
        return WithIntercept(self.penalty.select_problems(which))

    def least_slope(self, x: Array, gradient: Array) -> Array:
        """That of the penalty, and the last entry of the gradient."""
        return _append(self.penalty.least_slope(x[:-1, ...], gradient[:-1, ...]), gradient[-1:, ...])

    def hessian(self, x: Array, columns: Array) -> Array:
        """That of the penalty in the given entries, which are sorted; zeros for the last."""
        last = int(x.shape[0]) - 1
        within = self.penalty.hessian(x[:-1, ...], columns[columns < last])
        missing = int(columns.shape[0] - within.shape[0])
        if missing == 0:
            return within
        xp, size = namespace(within), within.shape[0]
        wider = xp.concat([within, xp.zeros_like(within[:, :1]) if size else within[:, :0]], axis=1)
        corner = xp.zeros((1, size + 1), dtype=within.dtype, device=device(within))
        return xp.concat([wider, corner]) if size else corner

    def kinks(self, x: Array) -> Array:
        """Those of the penalty; the last entry has none."""
        return _append(self.penalty.kinks(x[:-1, ...]), x[-1:, ...] != x[-1:, ...])

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Those of the penalty; zero for the last entry."""
        below, above = self.penalty.slopes(x[:-1, ...])
        return _append(below, 0 * x[-1:, ...]), _append(above, 0 * x[-1:, ...])

    def restrict(self, columns: Array) -> WithIntercept:
        """The same penalty on the given entries, the intercept being the last of them."""
        return WithIntercept(self.penalty.restrict(columns[:-1]))


def _append(x: Array, last: Array) -> Array:
    return namespace(x, last).concat([x, last])

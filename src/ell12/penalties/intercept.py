"""A penalty on all entries but the last, which is an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ell12.backend import max_abs, namespace
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
        return self.penalty.value(x[:-1])

    def prox(self, x: Array, step: float) -> Array:
        """The penalty's prox, beside the last entry as it is."""
        return _append(self.penalty.prox(x[:-1], step), x[-1:])

    @property
    def convex(self) -> WithIntercept:
        """The penalty's convex part."""
        return WithIntercept(self.penalty.convex)

    def subtracted_gradient(self, x: Array) -> Array:
        """That of the penalty, 0 for the last entry."""
        return _append(self.penalty.subtracted_gradient(x[:-1]), 0 * x[-1:])

    def violation(self, x: Array, gradient: Array) -> float:
        """The larger of the penalty's violation and the last entry of the gradient."""
        return max(self.penalty.violation(x[:-1], gradient[:-1]), max_abs(gradient[-1:]))


def _append(x: Array, last: Array) -> Array:
    return namespace(x, last).concat([x, last])

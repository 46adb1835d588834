"""Many problems at once: one l1-2 for each column of a matrix, each with its own strength."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ell12.backend import all_finite, as_floating, like, max_abs, namespace
from ell12.checks import set_numbers
from ell12.layout import row_norms
from ell12.protocols import Array
from ell12.prox import prox_l12


@dataclass(frozen=True, eq=False)
class ColumnsL12:
    """``sum_k alpha_k (||x_k||_1 - l2_weight ||x_k||_2)`` over the columns x_k of a matrix.

    With a loss of as many right-hand sides it is as many problems, whose products with A are one matrix product:
    a path of strengths, folds of a cross-validation, many signals. `ell12.ColumnwiseAPG` solves them side by side.

    Parameters
    ----------
    alphas : array of shape (k,)
        Strengths, all positive.
    l2_weight : float
        Weight of the subtracted norms.
    nonnegative : bool
        Allow ``x >= 0`` only.

    Examples
    --------
    >>> import numpy as np
    >>> ColumnsL12([1.0, 2.0]).values(np.array([[3.0, 3.0], [4.0, 0.0]]))
    array([2., 0.])
    """

    alphas: Any
    l2_weight: float = 1.0
    nonnegative: bool = False
    alpha: float = field(init=False)  # the smallest: what minimize measures by

    def __post_init__(self) -> None:
        set_numbers(self, "l2_weight")
        alphas = as_floating(self.alphas, "alphas")
        if len(alphas.shape) != 1 or alphas.shape[0] == 0:
            raise ValueError(f"alphas must be a vector of numbers, got shape {tuple(alphas.shape)}")
        smallest = float(namespace(alphas).min(alphas))
        if not all_finite(alphas) or smallest <= 0:
            raise ValueError("alphas must hold finite numbers > 0 only")
        object.__setattr__(self, "alphas", alphas)
        object.__setattr__(self, "alpha", smallest)

    def value(self, x: Array) -> float:
        """The sum over the columns."""
        return float(namespace(x).sum(self.values(x)))

    def values(self, x: Array) -> Array:
        """The penalty of each column; infinite where a negative entry is not allowed."""
        xp, alphas = namespace(x), self._of(x)
        values = alphas * (xp.sum(xp.abs(x), axis=0) - self.l2_weight * _norms(x))
        return xp.where(xp.min(x, axis=0) < 0, math.inf, values) if self.nonnegative else values

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of each column with threshold ``alpha_k * step``."""
        t = step * self._of(x)
        return prox_l12(x, t, l2_weight=self.l2_weight, nonnegative=self.nonnegative, axis=0)

    @property
    def convex(self) -> ColumnsL12:
        """The l1 part."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha_k l2_weight x_k / ||x_k||``; zero at zero."""
        size = _norms(x)
        return (self.l2_weight * self._of(x) / namespace(x).where(size > 0, size, 1)) * x

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest violation of the first-order condition over all columns, as of the smallest strength.

        That of a column counts relative to its own strength: divided by ``alpha`` this is the worst stationarity.
        """
        xp, alphas = namespace(x), self._of(x)
        slope = gradient - self.subtracted_gradient(x)
        off = (-slope if self.nonnegative else xp.abs(slope)) - alphas
        violation = xp.where(x != 0, xp.abs(slope + alphas * xp.sign(x)), xp.where(off > 0, off, 0))
        if self.l2_weight > 0:  # where a column is zero its norm has no gradient: one proximal step tells
            empty = xp.max(xp.abs(x), axis=0) == 0
            violation = xp.where(empty, xp.abs(self.prox(-gradient, 1.0)), violation)
        return self.largest(violation)

    def largest(self, x: Array) -> float:
        """The largest entry of x, each counted relative to its column's strength, times the smallest strength."""
        return self.alpha * max_abs(x / self._of(x))

    def _of(self, x: Array) -> Array:
        """The strengths beside x, checked."""
        if len(x.shape) != 2 or x.shape[1] != self.alphas.shape[0]:
            raise ValueError(f"x must have one column for each of {self.alphas.shape[0]} alphas, not {x.shape}")
        return like(self.alphas, x)


def _norms(x: Array) -> Array:
    """The Euclidean norm of each column."""
    return row_norms(namespace(x).permute_dims(x, (1, 0)))[:, 0]

"""Many problems at once: one l1-2 for each column of a matrix, each with its own strength."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ell12.backend import all_finite, as_floating, like, max_abs, namespace, take
from ell12.checks import check_numbers, set_numbers
from ell12.protocols import Array
from ell12.prox import prox_l12
from ell12.prox.layout import row_norms


@dataclass(frozen=True, eq=False)
class ColumnsL12:
    """``sum_k alpha_k (sum_i w_i |x_ik| - l2_weight ||x_k||_2)`` over the columns x_k of a matrix.

    With a loss of as many right-hand sides it is as many problems, whose products with A are one matrix product:
    a path of strengths, folds of a cross-validation, many signals. `ell12.ColumnwiseAPG` solves them side by side.

    Parameters
    ----------
    alphas : array of shape (k,)
        Strengths, all positive.
    l2_weight : float
        Weight of the subtracted norms.
    weights : array, optional
        Weights of the l1 norms, one for each row, as in `ell12.L12`.
    nonnegative : bool
        Allow ``x >= 0`` only.
    units : array of shape (k,), optional
        By what the violation of each column's first-order condition is measured; its strength by default.

    Examples
    --------
    >>> import numpy as np
    >>> ColumnsL12([1.0, 2.0]).values(np.array([[3.0, 3.0], [4.0, 0.0]]))
    array([2., 0.])
    """

    alphas: Any
    l2_weight: float = 1.0
    weights: Any = None
    nonnegative: bool = False
    units: Any = None
    alpha: float = field(init=False)  # the smallest unit: what minimize measures by

    def __post_init__(self) -> None:
        set_numbers(self, "l2_weight")
        check_numbers(weights=self.weights)
        alphas = _positive_numbers(self.alphas, "alphas")
        units = alphas if self.units is None else _positive_numbers(self.units, "units")
        if units.shape != alphas.shape:
            raise ValueError(
                f"units must have the shape {tuple(alphas.shape)} of alphas, got {tuple(units.shape)}"
            )
        for name, value in (("alphas", alphas), ("units", units)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "alpha", float(namespace(units).min(units)))

    def value(self, x: Array) -> float:
        """The sum over the columns."""
        return float(namespace(x).sum(self.values(x)))

    def values(self, x: Array) -> Array:
        """The penalty of each column; infinite where a negative entry is not allowed."""
        xp, alphas, inside = namespace(x), self._of(x), self._penalised(x)
        sizes = xp.abs(inside) if self.weights is None else self._support_weights(x) * xp.abs(inside)
        values = alphas * (xp.sum(sizes, axis=0) - self.l2_weight * _norms(inside))
        return xp.where(xp.min(x, axis=0) < 0, math.inf, values) if self.nonnegative else values

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of each column with threshold ``alpha_k * step``; rows of weight 0 pass."""
        xp, t = namespace(x), step * self._of(x)
        options: dict[str, Any] = {"l2_weight": self.l2_weight, "nonnegative": self.nonnegative}
        if self.weights is None:
            return prox_l12(x, t, axis=0, **options)
        weights = self._weights_of(x)
        held = xp.where(weights == 0, math.inf, weights)
        inside = xp.where(x < 0, 0, x) if self.nonnegative else x
        return xp.where(weights == 0, inside, prox_l12(x, t, weights=held, axis=0, **options))

    @property
    def convex(self) -> ColumnsL12:
        """The l1 part."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha_k l2_weight x_k / ||x_k||``; zero at zero."""
        inside = self._penalised(x)
        size = _norms(inside)
        return (self.l2_weight * self._of(x) / namespace(x).where(size > 0, size, 1)) * inside

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest of the `stationarities`, times the smallest unit."""
        return self.alpha * max_abs(self.stationarities(x, gradient))

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """How much each column violates its first-order condition, in its unit, if the loss has this gradient."""
        xp, alphas = namespace(x), self._of(x)
        slope = gradient - self.subtracted_gradient(x)
        free = alphas if self.weights is None else alphas * self._weights_of(x)
        off = (-slope if self.nonnegative else xp.abs(slope)) - free
        on = xp.abs(slope + alphas * self._support_weights(x) * xp.sign(x))
        violation = xp.where(x != 0, on, xp.where(off > 0, off, 0))
        if self.l2_weight > 0:  # where a column is zero its norm has no gradient: one proximal step tells
            empty = xp.max(xp.abs(self._penalised(x)), axis=0) == 0
            move = xp.abs(self._penalised(self.prox(-gradient, 1.0)))
            violation = xp.where(empty & (move > violation), move, violation)
        return self.sizes(violation)

    def sizes(self, x: Array) -> Array:
        """The largest entry of each column, in its unit."""
        xp = namespace(x)
        return xp.max(xp.abs(x), axis=0) / like(self.units, x)

    def largest(self, x: Array) -> float:
        """The largest of the `sizes`, times the smallest unit."""
        return self.alpha * max_abs(self.sizes(x))

    def select_problems(self, which: Any) -> ColumnsL12:
        """The same penalty on some of the columns, named by a NumPy array of their numbers."""
        return replace(self, alphas=take(self.alphas, which, 0), units=take(self.units, which, 0))

    def _of(self, x: Array) -> Array:
        """The strengths beside x, checked."""
        if len(x.shape) != 2 or x.shape[1] != self.alphas.shape[0]:
            raise ValueError(f"x must have one column for each of {self.alphas.shape[0]} alphas, not {x.shape}")
        return like(self.alphas, x)

    def _weights_of(self, x: Array) -> Array:
        """The weights as a column beside x, checked."""
        weights = like(self.weights, x)
        if tuple(weights.shape) != (x.shape[0],):
            raise ValueError(f"weights must hold one number for each of {x.shape[0]} rows, got {weights.shape}")
        return weights[:, None]

    def _support_weights(self, x: Array) -> Any:
        """The weights where x is not zero: an infinite one holds its row at zero, which costs nothing."""
        return 1.0 if self.weights is None else namespace(x).where(x != 0, self._weights_of(x), 0)

    def _penalised(self, x: Array) -> Array:
        """X with the rows of weight 0 blanked out."""
        return x if self.weights is None else namespace(x).where(self._weights_of(x) == 0, 0, x)


def _positive_numbers(values: Any, name: str) -> Array:
    """A vector of finite numbers above 0."""
    values = as_floating(values, name)
    if len(values.shape) != 1 or values.shape[0] == 0:
        raise ValueError(f"{name} must be a vector of numbers, got shape {tuple(values.shape)}")
    if not all_finite(values) or float(namespace(values).min(values)) <= 0:
        raise ValueError(f"{name} must hold finite numbers > 0 only")
    return values


def _norms(x: Array) -> Array:
    """The Euclidean norm of each column."""
    return row_norms(namespace(x).permute_dims(x, (1, 0)))[:, 0]

"""Many problems at once: one l1-2 for each column of a matrix, each with its own strength."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ell12.backend import all_finite, as_floating, like, max_abs, namespace, take
from ell12.checks import set_numbers
from ell12.penalties.family import ModuliL12
from ell12.protocols import Array
from ell12.prox.kernel import prox_rows
from ell12.prox.layout import as_single, row_norms


@dataclass(frozen=True, eq=False)
class ColumnsL12(ModuliL12):
    """The l1-2 penalty of each column of a matrix: many problems at once.

    ``sum_k alpha_k (sum_i w_i |x_ik| - l2_weight ||x_k||_2 + ridge/2 ||x_k||_2^2)`` over a matrix's columns.

    With a loss of as many right-hand sides it is as many problems, whose products with A are one matrix product:
    a path of strengths, folds of a cross-validation, many signals. `ell12.ColumnwiseAPG` solves them side by side.

    Parameters
    ----------
    alphas : array of shape (k,)
        Strengths, all positive.
    l2_weight : float, default 1.0
        Weight of the subtracted norms.
    weights : array, optional
        Weights of the l1 norms, one for each row, as in `ell12.L12`.
    positive : bool, default False
        Allow ``x >= 0`` only.
    units : array of shape (k,), optional
        By what the violation of each column's first-order condition is measured; its strength by default.
    ridge : float, default 0.0
        Weight of half the squared norms, as in `ell12.L12`.

    See Also
    --------
    ColumnwiseAPG : Many problems at once.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import ColumnsL12
    >>> ColumnsL12([1.0, 2.0]).values(np.array([[3.0, 3.0], [4.0, 0.0]]))
    array([2., 0.])
    """

    alphas: Any
    l2_weight: float = 1.0
    weights: Any = None
    positive: bool = False
    units: Any = None
    ridge: float = 0.0
    alpha: float = field(init=False)  # the smallest unit: what minimize measures by

    def __post_init__(self) -> None:
        set_numbers(self, "l2_weight", "ridge")
        self._set_weights()
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
        values = self.values(x)
        return float(namespace(values).sum(values))

    def values(self, x: Array) -> Array:
        """The penalty of each column; infinite where a negative entry is not allowed."""
        x = self._checked(x)
        xp, values = namespace(x), self._strength(x) * self._difference(x)
        return xp.where(xp.min(x, axis=0) < 0, math.inf, values) if self.positive else values

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest of the `stationarities`, times the smallest unit."""
        return self.alpha * max_abs(self.stationarities(x, gradient))

    def stationarities(self, x: Array, gradient: Array) -> Array:
        """How much each column violates its first-order condition, in its unit, if the loss has this gradient."""
        return self._violations(x, gradient) / like(self.units, x)

    def sizes(self, x: Array) -> Array:
        """The largest entry of each column, in its unit."""
        return self._largest(x) / like(self.units, x)

    def select_problems(self, which: Any) -> ColumnsL12:
        """The same penalty on some of the columns, named by a NumPy array of their numbers."""
        return replace(self, alphas=take(self.alphas, which, 0), units=take(self.units, which, 0))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless there is one column for each strength, and one weight for each row."""
        count = self.alphas.shape[0]
        if len(shape) != 2 or shape[1] != count or shape[0] == 0:
            raise ValueError(f"x must have rows, and one column for each of {count} alphas, not shape {shape}")
        self._check_weights_of_rows(shape[0])

    def _difference(self, x: Array) -> Array:
        xp, inside = namespace(x), self._penalised(x)
        sizes = xp.abs(inside)
        if self.weights is not None:
            weights = self._beside(self.weights, x)
            sizes = (xp.where(sizes > 0, weights, 0) if self._infinite else weights) * sizes
        lengths = _norms(inside)
        return xp.sum(sizes, axis=0) - self.l2_weight * lengths + 0.5 * self.ridge * lengths * lengths

    def _prox_moduli(self, moduli: Array, step: float) -> Array:
        xp, rows = namespace(moduli), namespace(moduli).permute_dims(as_single(moduli), (1, 0))
        weights = None if self._held is None else like(self._held, rows)
        thresholds = step * self._strength(rows)[:, None]
        if self.ridge > 0:
            grown = 1 + thresholds * self.ridge
            rows, thresholds = rows / grown, thresholds / grown
        x = prox_rows(rows, thresholds, self.l2_weight, weights, self.positive)
        return xp.astype(xp.permute_dims(x, (1, 0)), moduli.dtype, copy=False)

    def _strength(self, x: Array) -> Array:
        return like(self.alphas, x)

    def _unit(self, x: Array) -> Array:
        size = _norms(x)
        return x / namespace(x).where(size > 0, size, 1)

    def _largest(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.max(xp.abs(x), axis=0)

    def _larger_at(self, zero: Array, found: Array, moved: Array) -> Array:
        return namespace(found).where(zero & (moved > found), moved, found)

    def _beside(self, values: Any, x: Array) -> Array:
        return like(values, x)[:, None]

    def _free_like(self, x: Array) -> Array:
        return super()._free_like(x)[:, None]


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

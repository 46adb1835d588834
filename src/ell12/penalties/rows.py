"""One support for several targets: l1-2 of the norms of a matrix's rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import like, namespace, norm, positions
from ell12.checks import check_numbers, set_numbers
from ell12.protocols import Array
from ell12.prox import prox_l12
from ell12.prox.layout import row_norms


@dataclass(frozen=True, eq=False)
class RowsL12:
    """``alpha (sum_j w_j ||x_j||_2 - l2_weight ||x||_F)`` over the rows x_j of a matrix: a row is zero or not.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 the penalty of scikit-learn's MultiTaskLasso.
    weights : array, optional
        One per row, at least 0. A row of weight 0 is not penalised, and enters neither norm. 1 by default.
    nonnegative : bool
        Allow ``x >= 0`` only.

    Examples
    --------
    >>> import numpy as np
    >>> RowsL12(1.0).value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    0.0
    """

    alpha: float
    l2_weight: float = 1.0
    weights: Any = None
    nonnegative: bool = False

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", "l2_weight")
        check_numbers(weights=self.weights)

    def value(self, x: Array) -> float:
        """The penalty at the matrix x; infinite where a negative entry is not allowed."""
        xp, weights = namespace(x), self._of(x)
        if self.nonnegative and bool(xp.any(x < 0)):
            return math.inf
        sizes = row_norms(self._penalised(x))
        return self.alpha * (float(xp.sum(xp.where(sizes > 0, weights, 0) * sizes)) - self.l2_weight * norm(sizes))

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of the norms of the rows, which keep their directions; rows of weight 0 pass.

        Where x must not be negative a row's direction is that of its positive part, or of its largest entry.
        """
        xp, weights = namespace(x), self._of(x)
        inside = xp.where(x > 0, x, 0) if self.nonnegative else x
        if self.alpha * step == 0:
            return inside
        norms = row_norms(inside)
        sizes = xp.where(norms > 0, norms, xp.max(x, axis=1, keepdims=True)) if self.nonnegative else norms
        held = None if self.weights is None else xp.where(weights == 0, math.inf, weights)[:, 0]
        t = self.alpha * step
        shrunk = prox_l12(sizes[:, 0], t, l2_weight=self.l2_weight, weights=held, nonnegative=True)[:, None]
        # A row without a direction that must grow (l2_weight above its weight) grows along one entry.
        single = xp.astype(positions(x) == xp.argmax(x, axis=1, keepdims=True), x.dtype)
        moved = shrunk * xp.where(norms > 0, inside / xp.where(norms > 0, norms, 1), single)
        return moved if self.weights is None else xp.where(weights == 0, inside, moved)

    @property
    def convex(self) -> RowsL12:
        """The part without the subtracted norm."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||_F``; zero at zero."""
        x = self._penalised(x)
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest norm of a row of the smallest subgradient where the loss has this gradient."""
        xp, sizes, strength = namespace(x), row_norms(x), self.alpha * self._of(x)
        slope = gradient - self.subtracted_gradient(x)
        on = slope + xp.where(sizes > 0, strength, 0) * x / xp.where(sizes > 0, sizes, 1)
        if self.nonnegative:  # what pushes against the bound is no violation
            on = xp.where((x == 0) & (on > 0), 0, on)
            slope = xp.where(slope > 0, 0, slope)
        off = row_norms(slope) - strength
        worst = float(xp.max(xp.where(sizes > 0, row_norms(on), xp.where(off > 0, off, 0))))
        if self.l2_weight > 0 and norm(self._penalised(x)) == 0:
            # Where the subtracted norm has no gradient, one proximal step tells.
            worst = max(worst, float(xp.max(row_norms(self._penalised(self.prox(-gradient, 1.0))))))
        return worst

    def _penalised(self, x: Array) -> Array:
        """X with the rows of weight 0 blanked out."""
        return x if self.weights is None else namespace(x).where(self._of(x) == 0, 0, x)

    def _of(self, x: Array) -> Array:
        """The weights as a column beside x, checked."""
        if len(x.shape) != 2:
            raise ValueError(f"x must be a matrix, got shape {tuple(x.shape)}")
        if self.weights is None:
            return namespace(x).ones_like(x[:, :1])
        weights = like(self.weights, x)
        if tuple(weights.shape) != (x.shape[0],) or not math.prod(x.shape):
            raise ValueError(f"weights must hold one number for each of {x.shape[0]} rows, got {weights.shape}")
        return weights[:, None]

"""One support for several targets: l1-2 of the norms of a matrix's rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import like, namespace, norm, positions
from ell12.checks import check_numbers, set_numbers
from ell12.layout import row_norms
from ell12.protocols import Array
from ell12.prox import prox_l12


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
        One per row, positive. 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> RowsL12(1.0).value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    0.0
    """

    alpha: float
    l2_weight: float = 1.0
    weights: Any = None

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", "l2_weight")
        check_numbers(weights=self.weights)

    def value(self, x: Array) -> float:
        """The penalty at the matrix x."""
        sizes = row_norms(x)
        total = float(namespace(x).sum(self._of(x) * sizes))
        return self.alpha * (total - self.l2_weight * norm(sizes))

    def prox(self, x: Array, step: float) -> Array:
        """`ell12.prox.prox_l12` of the norms of the rows, which keep their directions."""
        xp, sizes = namespace(x), row_norms(x)
        options = {"l2_weight": self.l2_weight, "weights": self.weights, "nonnegative": True}
        shrunk = prox_l12(sizes[:, 0], self.alpha * step, **options)[:, None]
        # A row of zeros that must grow (l2_weight above its weight) grows along its first entry.
        first = xp.astype(positions(x) == 0, x.dtype)
        return shrunk * xp.where(sizes > 0, x / xp.where(sizes > 0, sizes, 1), first)

    @property
    def convex(self) -> RowsL12:
        """The part without the subtracted norm."""
        return replace(self, l2_weight=0.0)

    def subtracted_gradient(self, x: Array) -> Array:
        """``alpha l2_weight x / ||x||_F``; zero at zero."""
        return self.alpha * self.l2_weight * (x / (norm(x) or 1.0))

    def violation(self, x: Array, gradient: Array) -> float:
        """The largest norm of a row of the smallest subgradient where the loss has this gradient."""
        xp, sizes = namespace(x), row_norms(x)
        if (
            self.l2_weight > 0 and norm(x) == 0
        ):  # where the subtracted norm has no gradient, one proximal step tells
            return float(xp.max(row_norms(self.prox(-gradient, 1.0))))
        slope, strength = gradient - self.subtracted_gradient(x), self.alpha * self._of(x)
        on = row_norms(slope + strength * x / xp.where(sizes > 0, sizes, 1))
        off = row_norms(slope) - strength
        return float(xp.max(xp.where(sizes > 0, on, xp.where(off > 0, off, 0))))

    def _of(self, x: Array) -> Any:
        """The weights as a column beside x, checked."""
        if len(x.shape) != 2:
            raise ValueError(f"x must be a matrix, got shape {tuple(x.shape)}")
        if self.weights is None:
            return 1.0
        weights = like(self.weights, x)
        if tuple(weights.shape) != (x.shape[0],) or not math.prod(x.shape):
            raise ValueError(f"weights must hold one number for each of {x.shape[0]} rows, got {weights.shape}")
        return weights[:, None]

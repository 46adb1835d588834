"""Ordinal values, such as ratings or quantised pixels: a margin at every threshold between two levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import is_numpy
from ell12.checks import check_counts
from ell12.completion.low_rank import LowRank
from ell12.completion.squared_error import KnownEntriesLoss
from ell12.protocols import Point

MOST_LEVELS = 100  # more different values than this are no levels


class OrdinalHingeLoss(KnownEntriesLoss):
    """``f(X) = min over thresholds of sum_ij sum_r h(T_ijr (threshold_r - X_ij))``: maximum-margin factorization.

    ``T_ijr`` is 1 where the level of entry ij is at most r and -1 where it is above; h is the smoothed hinge,
    ``1/2 - z`` below 0, ``(1 - z)^2 / 2`` up to 1, 0 above. The thresholds enter separately and each is found
    exactly, so that f is a function of X alone, convex and with a gradient, rather than one step of an
    alternation.

    Parameters
    ----------
    observed : Observed, or what `as_observed` reads
        The known entries.
    n_levels : int, optional
        Cut the range of the values into this number of equal intervals, whose middles are the levels. By default
        each different value is a level.

    References
    ----------
    Rennie & Srebro, Fast maximum margin matrix factorization for collaborative prediction,
    doi:10.1145/1102351.1102441.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import LowRank
    >>> from ell12.completion.ordinal import OrdinalHingeLoss
    >>> loss = OrdinalHingeLoss([[1.0, 5.0], [np.nan, 3.0]])
    >>> loss.level_values
    array([1., 3., 5.])
    >>> x = LowRank.from_factors(np.array([[1.0], [0.0]]), np.array([[-9.0], [9.0]]))
    >>> loss.predict(x, [0, 0, 1], [0, 1, 0])
    array([1., 5., 3.])
    """

    def __init__(self, observed: Any, n_levels: int | None = None) -> None:
        super().__init__(observed)
        check_counts(n_levels=n_levels)
        values = self.observed.values
        if not is_numpy(values):
            raise TypeError("OrdinalHingeLoss works on NumPy arrays; bring the observed entries to the CPU")
        self.level_values, self.levels = _levels(values, n_levels)
        groups = [np.bincount(self.levels <= r, minlength=2).min() for r in range(self.level_values.size - 1)]
        if self.level_values.size < 2 or min(groups) == 0:
            raise ValueError("observed must hold at least two different levels")

    def thresholds(self, point: Point) -> np.ndarray:
        """The thresholds that are best at this point, ascending, one fewer than the levels."""
        order = np.argsort(point.prediction)
        x, levels = point.prediction[order].astype(np.float64), self.levels[order]
        return np.array(
            [_best_threshold(x[levels <= r], x[levels > r]) for r in range(self.level_values.size - 1)]
        )

    def value(self, point: Point) -> float:
        """The sum of the smoothed hinges at the best thresholds."""
        total = 0.0
        for margin, _ in self._margins(point):
            total += float(np.sum(np.where(margin < 0, 0.5 - margin, 0.5 * np.maximum(1 - margin, 0) ** 2)))
        return total

    def residual(self, point: Point) -> np.ndarray:
        """The derivative in each prediction; that of the thresholds is zero, where they are best."""
        slope = np.zeros_like(point.prediction)
        for margin, sign in self._margins(point):
            slope += sign * np.clip(1 - margin, 0, 1)
        return slope

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``."""
        move = point.prediction - base.prediction
        return self.value(point) - self.value(base) - float(np.vdot(self.residual(base), move))

    def lipschitz(self) -> float:
        """One for each threshold."""
        return float(self.level_values.size - 1)

    def predict(self, x: LowRank, rows: Any, columns: Any) -> np.ndarray:
        """The values of the levels in which the entries of x fall."""
        above = np.searchsorted(self.thresholds(self.point(x)), x.entries(rows, columns), side="left")
        return self.level_values[above]

    def _margins(self, point: Point) -> Any:
        """For each threshold the margins ``T (threshold - x)`` and the signs T."""
        for r, threshold in enumerate(self.thresholds(point)):
            sign = np.where(self.levels <= r, 1.0, -1.0).astype(point.prediction.dtype)
            yield sign * (threshold.astype(sign.dtype) - point.prediction), sign


def _levels(values: np.ndarray, n_levels: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The values of the levels, ascending, and the level 0, 1, ... of each entry."""
    if n_levels is None:
        distinct, levels = np.unique(values, return_inverse=True)
        if distinct.size > MOST_LEVELS:
            raise ValueError(
                f"observed holds {distinct.size} different values; say with n_levels how to quantise them"
            )
        return distinct, levels
    edges = np.linspace(values.min(), values.max(), n_levels + 1)
    levels = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_levels - 1)
    # A level that nobody observed has no threshold of its own.
    used, levels = np.unique(levels, return_inverse=True)
    middles = (edges[:-1] + edges[1:]) / 2
    return middles[used].astype(values.dtype), levels


def _best_threshold(below: np.ndarray, above: np.ndarray) -> np.float64:
    """The minimiser of ``sum h(t - below) + sum h(above - t)``; both ascending, neither empty.

    The slope is piecewise linear and rises, so that Newton's method, kept within a bracket, soon ends.
    """
    below_sums = np.concatenate([[0.0], np.cumsum(below)])
    above_sums = np.concatenate([[0.0], np.cumsum(above)])

    def slope(t: float) -> tuple[float, int]:
        # From `below`: -1 for x >= t, t - x - 1 for t - 1 < x < t. From `above` the mirror image.
        first, last = np.searchsorted(below, [t - 1, t])
        rising = (last - first) * (t - 1) - (below_sums[last] - below_sums[first]) - (below.size - last)
        curvature = last - first
        first, last = np.searchsorted(above, [t, t + 1])
        falling = (last - first) * (1 + t) - (above_sums[last] - above_sums[first]) + first
        return float(rising + falling), int(curvature + last - first)

    low, high = min(below[0], above[0]) - 1.0, max(below[-1], above[-1]) + 1.0
    t, smallest = 0.5 * (low + high), 1e-13 * (below.size + above.size)
    for _ in range(100):
        value, curvature = slope(t)
        if abs(value) <= smallest:
            break
        low, high = (t, high) if value < 0 else (low, t)
        newton = t - value / curvature if curvature else low
        t = newton if low < newton < high else 0.5 * (low + high)
    return np.float64(t)

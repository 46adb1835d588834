"""Losses of images with photon counts or impulses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import max_abs, namespace, rounding
from ell12.backend.number_types import Given_co
from ell12.losses.pointwise import SquaredLoss
from ell12.losses.sum_over_rows import LinearLoss
from ell12.protocols import Array, Point, SplitLoss


class KullbackLeiblerLoss(LinearLoss[Given_co]):
    """The loss of counts whose expectations are linear.

    ``scale sum_i w_i ((A x)_i - b_i log (A x)_i)``: counts b of expectation A x, infinite where ``A x < 0``.

    It is the negative log-likelihood of Poisson counts, but for a constant. `ell12.PoissonLoss` has the
    exponential of A x as its expectation instead. A count may be zero; its term is then ``(A x)_i``.

    Parameters
    ----------
    b : array of shape (m,)
        Counts, or other numbers that are at least 0.
    A, sample_weight, scale
        As in `ell12.SquaredLoss`.

    See Also
    --------
    PoissonLoss : Counts with a logarithmic link.
    denoise_tv : Remove noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import KullbackLeiblerLoss
    >>> loss = KullbackLeiblerLoss([[1.0], [1.0]], [0, 4])
    >>> loss.gradient(loss.point(np.array([2.0])))
    array([0.])
    """

    second_bound = math.inf
    takes_counts = True

    def prediction_prox(self, prediction: Array, weight: float) -> Array:
        """The map ``q -> argmin_v l(v) + weight/2 ||v - q||^2``, l being the loss as a function of A x."""
        xp = namespace(prediction)
        c = self._weighted(xp.ones_like(self.b)) * (self.scale / weight)
        away, product = prediction - c, c * self.b
        root = xp.sqrt(away**2 + 4 * product)
        # The positive root of v^2 - away v - product, written without the difference of two equal numbers.
        low = xp.where(away < 0, root - away, 1)
        return xp.where(away < 0, 2 * product / low, (away + root) / 2)

    @np.errstate(divide="ignore", invalid="ignore")
    def _pointwise(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        # What rounding made negative counts as zero.
        least = -rounding(max_abs(prediction), prediction)
        clipped = xp.where(prediction < 0, 0, prediction)
        cost = clipped - xp.where(self.b > 0, self.b * xp.log(clipped), 0)
        return xp.where(prediction < least, math.inf, cost)

    def _slope(self, prediction: Array) -> Array:
        return 1 - self.b / self._positive(prediction)

    def _second(self, prediction: Array) -> Array:
        return self.b / self._positive(prediction) ** 2

    def _positive(self, prediction: Array) -> Array:
        """The prediction, at least what rounding leaves of its largest: slopes are then large, but finite."""
        least = rounding(max_abs(prediction), prediction) or 1.0
        return namespace(prediction).where(prediction > least, prediction, least)


class AbsoluteLoss(SplitLoss):
    """The sum of absolute errors, for data with impulses or outliers.

    ``scale sum_i w_i |(A x)_i - b_i|``: data of which some are far off, such as pixels with impulses.

    It is not smooth: ``gradient`` is a subgradient, and only solvers that ask for a `ell12.protocols.SplitLoss`
    take it.

    Parameters
    ----------
    A, b, sample_weight, scale
        As in `ell12.SquaredLoss`.

    See Also
    --------
    HuberLoss : Outliers.
    denoise_tv : Remove noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import AbsoluteLoss
    >>> loss = AbsoluteLoss([[1.0], [1.0], [1.0]], [0.0, 1.0, 9.0])
    >>> loss.value(loss.point(np.array([1.0])))
    9.0
    """

    is_quadratic = False

    def __init__(self, A: Any, b: Any, *, sample_weight: Any = None, scale: float = 1.0) -> None:
        self._data = SquaredLoss(A, b, sample_weight=sample_weight, scale=scale)
        self.A, self.b, self.scale = self._data.A, self._data.b, self._data.scale
        self.sample_weight = self._data.sample_weight

    def __repr__(self) -> str:
        return repr(self._data).replace("Squared", "Absolute")

    def point(self, x: Array) -> Point:
        """``x`` with its prediction: one product with A."""
        return self._data.point(x)

    def start(self) -> Array:
        """Zeros of the shape, kind, dtype and device of x."""
        return self._data.start()

    def value(self, point: Point) -> float:
        """The loss; no product."""
        xp = namespace(self.b)
        return self.scale * float(xp.sum(self._data._weighted(xp.abs(point.prediction - self.b))))

    def gradient(self, point: Point) -> Array:
        """The subgradient that is zero where a prediction is exact; one product with the adjoint of A."""
        away = point.prediction - self.b
        xp, size = namespace(away), namespace(away).abs(away)
        signs = away / xp.where(size > 0, size, 1)
        return self._data.gradient_of(self.scale * self._data._weighted(signs))

    def prediction_prox(self, prediction: Array, weight: float) -> Array:
        """The map ``q -> argmin_v l(v) + weight/2 ||v - q||^2``, l being the loss as a function of A x."""
        away = prediction - self.b
        xp, size = namespace(away), namespace(away).abs(away)
        least = self._data._weighted(xp.ones_like(size)) * (self.scale / weight)
        return self.b + away * (xp.where(size > least, size - least, 0) / xp.where(size > 0, size, 1))

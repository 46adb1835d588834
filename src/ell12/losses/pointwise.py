"""The squared, logistic, Huber and Poisson losses: functions of each prediction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.backend import as_array_of, as_floating, inner, namespace
from ell12.backend.number_types import Given_co
from ell12.checks import check_entries, check_positive
from ell12.losses.sum_over_rows import LinearLoss
from ell12.operators import output_shape
from ell12.protocols import Array, Point


class SquaredLoss(LinearLoss[Given_co]):
    """The sum of squares.

    ``scale/2 sum_i w_i |(A x)_i - b_i|^2``; by default the sum, ``1/2 ||A x - b||^2``.

    Parameters
    ----------
    A : array, sparse matrix or operator of shape (m, n)
        NumPy, PyTorch, CuPy or JAX array, scipy.sparse, LinearOperator, pylops or one of `ell12.operators`.
    b : array of shape (m,) or (m, k)
        Observations; several columns are several right-hand sides for several columns of x.
    sample_weight : array of shape (m,) or (m, k), optional
        Weights w, at least 0, the same for all right-hand sides or each with its own. 1 by default.
    scale : float, default 1.0
        Factor of the whole loss: 1 for the sum, ``1 / m`` for the mean, which is what the estimators take.

    See Also
    --------
    HuberLoss : Outliers.
    QuadraticLoss : A quadratic function.
    RowsLoss : Rows that are read again in every pass.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> loss = SquaredLoss([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0])
    >>> point = loss.point(np.array([2.0, 1.0]))
    >>> loss.value(point), loss.gradient(point)
    (1.0, array([1., 2.]))
    """

    takes_complex = True
    is_quadratic = True

    def value(self, point: Point) -> float:
        """The loss; no product."""
        residual = point.prediction - self.b
        return 0.5 * self.scale * inner(residual, self._weighted(residual))

    def divergence(self, point: Point, base: Point) -> float:
        """Half the weighted square of the difference of the predictions: exact, without cancellation."""
        difference = point.prediction - base.prediction
        return 0.5 * self.scale * inner(difference, self._weighted(difference))

    def proximal(self, weight: float) -> Callable[[Array, Array], Array]:
        """The map ``(q, start) -> argmin_v f(v) + weight/2 ||v - q||^2``: one factorization for all q."""
        origin = Point(self.start(), 0 * self.b)
        invert = self._ridge_solver(origin, weight)
        projection = -self.gradient(origin)
        return lambda q, _start: invert(projection + weight * q)

    def _pointwise(self, prediction: Array) -> Array:
        return 0.5 * namespace(prediction).abs(prediction - self.b) ** 2

    def _slope(self, prediction: Array) -> Array:
        return prediction - self.b

    def _second(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        return xp.ones_like(xp.abs(prediction))


class LogisticLoss(LinearLoss[Given_co]):
    """The logistic loss, for two classes.

    ``scale sum_i w_i log(1 + exp(-b_i (A x)_i))`` for labels b of -1 and 1 (0 and 1 are read as such).

    Parameters
    ----------
    b : array of shape (m,)
        Labels.
    A, sample_weight, scale
        As in `SquaredLoss`.

    See Also
    --------
    MultinomialLoss : Several classes.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import LogisticLoss
    >>> loss = LogisticLoss([[1.0], [2.0]], [-1, 1])
    >>> round(loss.value(loss.point(np.array([0.0]))), 6)
    1.386294
    """

    second_bound = 0.25

    def _as_observations(self, b: Any) -> Array:
        b = super()._as_observations(b)
        xp = namespace(b)
        if bool(xp.all((b == 0) | (b == 1))):
            b = 2 * b - 1
        if not bool(xp.all((b == -1) | (b == 1))):
            raise ValueError("b must hold two labels, -1 and 1 (or 0 and 1)")
        return b

    def _pointwise(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        margin = self.b * prediction
        return xp.where(margin < 0, -margin, 0) + xp.log1p(xp.exp(-xp.abs(margin)))

    def _slope(self, prediction: Array) -> Array:
        return -self.b * sigmoid(-self.b * prediction)

    def _second(self, prediction: Array) -> Array:
        return sigmoid(prediction) * sigmoid(-prediction)


class HuberLoss(LinearLoss[Given_co]):
    """Huber's loss, in which outliers count little.

    ``scale sum_i w_i h((A x)_i - b_i)``: ``h(r) = r^2/2`` for ``|r| <= delta``, else ``delta |r| - delta^2/2``.

    Parameters
    ----------
    delta : float, default 1.35
        Residuals beyond it count linearly; in the units of b.
    A, b, sample_weight, scale
        As in `SquaredLoss`, real numbers only.

    See Also
    --------
    SquaredLoss : Sums of squares.
    AbsoluteLoss : Impulses.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import HuberLoss
    >>> loss = HuberLoss([[1.0], [1.0]], [0.0, 10.0], delta=1.0)
    >>> loss.value(loss.point(np.array([0.0])))
    9.5
    """

    delta: float = 1.35

    def __init__(
        self, A: Any, b: Given_co, *, delta: float = 1.35, sample_weight: Any = None, scale: float = 1.0
    ) -> None:
        check_positive(delta, "delta")
        self.delta = float(delta)
        super().__init__(A, b, sample_weight=sample_weight, scale=scale)

    def _pointwise(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        size = xp.abs(prediction - self.b)
        return xp.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def _slope(self, prediction: Array) -> Array:
        return namespace(prediction).clip(prediction - self.b, -self.delta, self.delta)

    def _second(self, prediction: Array) -> Array:
        xp = namespace(prediction)
        return xp.astype(xp.abs(prediction - self.b) <= self.delta, prediction.dtype)


class PoissonLoss(LinearLoss[Given_co]):
    """The Poisson loss, for counts whose logarithms of expectations are linear.

    ``scale sum_i w_i (exp(eta_i) - b_i eta_i)`` with ``eta = A x + offset``: counts b of expectation exp(eta).

    Its second derivative grows without bound, so that solvers find their steps by backtracking.

    Parameters
    ----------
    b : array of shape (m,)
        Counts, or other numbers that are at least 0.
    offset : array of shape (m,), optional
        Known parts of eta, such as the logarithm of the time over which was counted.
    A, sample_weight, scale
        As in `SquaredLoss`.

    See Also
    --------
    KullbackLeiblerLoss : Counts with an identity link.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import PoissonLoss
    >>> loss = PoissonLoss([[1.0], [1.0]], [2, 6], offset=np.log([1.0, 3.0]))
    >>> loss.gradient(loss.point(np.log([2.0]))).round(9)
    array([0.])
    """

    second_bound = math.inf
    takes_counts = True
    row_parts = ("b", "sample_weight", "offset")
    offset: Any = None

    def __init__(
        self, A: Any, b: Given_co, *, offset: Any = None, sample_weight: Any = None, scale: float = 1.0
    ) -> None:
        super().__init__(A, b, sample_weight=sample_weight, scale=scale)
        self.offset = None if offset is None else self._as_offset(offset)

    @np.errstate(over="ignore", invalid="ignore")
    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``, without the cancellation of two values."""
        move, xp = point.prediction - base.prediction, namespace(self.b)
        rise = exponential(self._eta(base.prediction)) * (xp.expm1(move) - move)
        rise = self.scale * float(xp.sum(self._weighted(xp.where(move == 0, 0, rise))))
        return rise if math.isfinite(rise) else math.inf

    def _as_offset(self, offset: Any) -> Array:
        offset = as_array_of(as_floating(offset, "offset"), self.b)
        if tuple(offset.shape) != output_shape(self.A):
            raise ValueError(f"offset must have shape {output_shape(self.A)} to fit A, got {tuple(offset.shape)}")
        check_entries(offset, "offset")
        return self._aligned(offset)

    def _eta(self, prediction: Array) -> Array:
        return prediction if self.offset is None else prediction + self.offset

    def _pointwise(self, prediction: Array) -> Array:
        eta = self._eta(prediction)
        return exponential(eta) - self.b * eta

    def _slope(self, prediction: Array) -> Array:
        return exponential(self._eta(prediction)) - self.b

    def _second(self, prediction: Array) -> Array:
        return exponential(self._eta(prediction))


@np.errstate(over="ignore")
def exponential(eta: Array) -> Array:
    """``exp(eta)``; an infinite one makes a solver shorten its step."""
    return namespace(eta).exp(eta)


def sigmoid(m: Array) -> Array:
    """``1 / (1 + exp(-m))`` without overflow."""
    xp = namespace(m)
    decay = xp.exp(-xp.abs(m))
    return xp.where(m >= 0, 1.0, decay) / (1 + decay)

"""A squared loss whose right-hand sides have an intercept each, found and not iterated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ell12.backend import namespace
from ell12.losses.linear import LinearLoss
from ell12.losses.sessions import fact
from ell12.protocols import Array, Batch, Point


class InterceptSquaredLoss(LinearLoss):
    """``min_c scale/2 sum_ik w_ik ((A x)_ik + c_k - b_ik)^2``: the best intercept of every right-hand side k.

    It is the squared loss of columns and observations less their means, the means being those under each
    right-hand side's own weights. `ell12.operators.centering.CenteredColumns` has one mean for each column; here
    each right-hand side has its own, so that no centred A serves them all. For first-order solvers.

    Parameters
    ----------
    A, b, sample_weight, scale
        As in `ell12.losses.LinearLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses.intercept import InterceptSquaredLoss
    >>> loss = InterceptSquaredLoss(np.eye(2), [[3.0, 3.0], [5.0, 5.0]], sample_weight=[[1.0, 1.0], [1.0, 0.0]])
    >>> point = loss.point(loss.start())
    >>> loss.intercepts(point), loss.values(point)
    (array([4., 3.]), array([1., 0.]))
    """

    def intercepts(self, point: Point) -> Array:
        """The best intercept of every right-hand side."""
        return -self._means(point.prediction - self.b)

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:  # noqa: ARG002
        """Not to be had: the intercepts join all rows."""
        raise TypeError("InterceptSquaredLoss is no sum over rows: its intercepts join them")

    def _means(self, values: Array) -> Array:
        return namespace(values).sum(self._weighted(values), axis=0) / self._totals

    @fact
    def _totals(self) -> Array:
        """The sum of the weights of each right-hand side."""
        return namespace(self.b).sum(self._weighted(namespace(self.b).ones_like(self.b)), axis=0)

    def _slope(self, prediction: Array) -> Array:
        residual = prediction - self.b
        return residual - self._means(residual)

    def _pointwise(self, prediction: Array) -> Array:
        return 0.5 * self._slope(prediction) ** 2

    def _second(self, prediction: Array) -> Array:  # noqa: ARG002
        raise TypeError("InterceptSquaredLoss has no curvature of each row: its intercepts join them")

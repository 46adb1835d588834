"""The loss of proportional hazards: Cox's partial likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ell12.backend import as_floating, is_numpy, refuse_masked
from ell12.checks import check_entries, check_word, naming
from ell12.losses.of_prediction import PredictionLoss
from ell12.operators import adjoint, output_shape, select_columns, to_dense
from ell12.operators.centering import column_squares
from ell12.operators.gram import weighted_gram
from ell12.protocols import Array, Point


class CoxLoss(PredictionLoss[NDArray[Any]]):
    """The loss of Cox's model of survival times.

    ``scale`` times minus the logarithm of Cox's partial likelihood, with ``eta = A x`` the log of the hazards.

    With R the rows at risk when d rows, D, have their event at the same time, it is the sum over these times of ::

        mean_D(w) sum_{l<d} log(sum_R w_i exp(eta_i) - l/d sum_D w_i exp(eta_i)) - sum_D w_i eta_i

    after Efron. Breslow's form has 0 in place of l/d. A constant added to eta changes nothing.

    Parameters
    ----------
    A : NumPy array, sparse matrix or operator of shape (m, n)
        As in `SquaredLoss`.
    time : array of shape (m,)
        When a row had its event, or was seen last. The order alone counts.
    event : array of shape (m,), optional
        Whether it had its event: 0 or 1, False or True. All had by default.
    ties : {"efron", "breslow"}, default "efron"
        What becomes of events at the same time. With Breslow's form a weight of 2 is the same as a row that is
        there twice; with Efron's it is not, as in R's survival package.
    sample_weight, scale
        As in `SquaredLoss`.

    See Also
    --------
    L12CoxRegressor : Survival times with a strength of your own choice.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import CoxLoss
    >>> loss = CoxLoss(np.array([[1.0], [0.0], [2.0]]), time=[3.0, 1.0, 2.0], event=[1, 0, 1])
    >>> round(loss.value(loss.point(np.zeros(1))), 6)  # two at risk, then one
    0.693147
    """

    second_bound = math.inf  # half the weight of all events bounds it; steps by that would be far too short

    def __init__(
        self,
        A: Any,
        time: Any,
        event: Any = None,
        *,
        ties: str = "efron",
        sample_weight: Any = None,
        scale: float = 1.0,
    ) -> None:
        time = as_floating(time, "time")
        check_entries(time, "time")
        event = np.ones_like(time) if event is None else event
        super().__init__(A, event, sample_weight=sample_weight, scale=scale)
        if not is_numpy(time) or time.shape != self.b.shape:
            raise ValueError(f"time must be a NumPy array of shape {self.b.shape} to fit A, got {np.shape(time)}")
        self.risk = RiskSets.of(time, self.b, self.sample_weight, ties)

    def _as_observations(self, b: Any) -> Array:
        refuse_masked(b, "event")
        with naming("event"):
            if np.shape(b) != output_shape(self.A):
                raise ValueError(f"event must have shape {output_shape(self.A)} to fit A, got {np.shape(b)}")
            b = super()._as_observations(np.asarray(b, dtype=np.float64))
        if not is_numpy(b):
            raise TypeError(f"CoxLoss needs NumPy arrays or sparse matrices, got {type(b).__name__}")
        if not np.isin(b, (0, 1)).all():
            raise ValueError("event must hold 0 and 1 only, or False and True")
        return b

    def value(self, point: Point) -> float:
        """The loss; no product."""
        eta = point.prediction
        with np.errstate(divide="ignore"):
            logs = np.log(self.risk.sums(self._hazards(eta)))
        # A sum that underflows is smaller than any number: the value is then too large rather than too small.
        logs = np.maximum(logs, math.log(np.finfo(eta.dtype).tiny))
        return self.scale * float(self.risk.weight @ (logs + eta.max()) - self._weighted(self.b) @ eta)

    def slope(self, point: Point) -> Array:
        """The gradient with respect to the prediction."""
        hazards = self._hazards(point.prediction)
        expected = hazards * self.risk.spread(self._over(self.risk.weight, self.risk.sums(hazards)))
        return (self.scale * (expected - self._weighted(self.b))).astype(hazards.dtype)

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``; of a short step without cancellation."""
        move = point.prediction - base.prediction
        move = move - move.mean()  # a constant changes nothing
        if not np.abs(move).max() < 1:
            return super().divergence(point, base)
        hazards = self._hazards(base.prediction)
        changes = self.risk.sums(np.stack([hazards * np.expm1(move), hazards * move], axis=1))
        means = self._over(changes, self.risk.sums(hazards)[:, None])
        rise = self.scale * float(self.risk.weight @ (np.log1p(means[:, 0]) - means[:, 1]))
        return max(rise, 0.0)

    def hessian(self, point: Point, columns: Array | None = None, others: Array | None = None) -> Array:
        """The Hessian in the given entries of x, or in all: ``A' (diag(h) - sum_t w_t q_t q_t') A``."""
        hazards, sums, diagonal = self._second_parts(point)
        left = self.A if columns is None else select_columns(self.A, columns)
        right = left if others is None else select_columns(self.A, others)

        def means(A: Any) -> Array:
            """The mean over each risk set of every column."""
            return self._over(self.risk.sums(hazards[:, None] * to_dense(A)), sums[:, None])

        here = means(left)
        there = here if right is left else means(right)
        whole = weighted_gram(left, diagonal, right) - self.scale * (here.T @ (self.risk.weight[:, None] * there))
        return whole.astype(hazards.dtype)

    def hessian_product(self, point: Point, columns: Array) -> Callable[[Array], Array]:
        """The map ``v -> hessian(point, columns) v``: two products with these columns, and no matrix."""
        hazards, sums, diagonal = self._second_parts(point)
        A = select_columns(self.A, columns)
        transposed = adjoint(A)

        def product(v: Array) -> Array:
            change = A @ v
            means = self._over(self.risk.weight * self._over(self.risk.sums(hazards * change), sums), sums)
            return transposed @ (diagonal * change - self.scale * hazards * self.risk.spread(means))

        return product

    def column_curvatures(self, point: Point) -> Array:
        """A bound on the diagonal of the Hessian: without what the means over risk sets take away."""
        return column_squares(self.A, self._second_parts(point)[2])

    def _hazards(self, eta: Array) -> Array:
        """``w exp(eta)``, up to a factor that keeps it from overflowing."""
        return self._weighted(np.exp(eta - eta.max()))

    def _second_parts(self, point: Point) -> tuple[Array, Array, Array]:
        """The hazards, their sums over those at risk, and the diagonal part of the second derivative."""
        hazards = self._hazards(point.prediction)
        sums = self.risk.sums(hazards)
        diagonal = self.scale * hazards * self.risk.spread(self._over(self.risk.weight, sums))
        return hazards, sums, np.maximum(diagonal, 0).astype(hazards.dtype)

    @staticmethod
    def _over(values: Array, sums: Array) -> Array:
        """The quotient; 0 where the sums have underflowed."""
        return np.divide(values, sums, out=np.zeros(np.broadcast_shapes(values.shape, sums.shape)), where=sums > 0)


@dataclass(frozen=True)
class RiskSets:
    """Who is at risk at each event: a linear map from rows to events, and its adjoint, in O(m) by cumulative sums.

    Rows are taken from the last time to the first, so that those at risk come before an event.

    Attributes
    ----------
    order : array of shape (m,)
        The rows from the last time to the first.
    ends : array of shape (n_events,)
        Where in that order the last of those at risk stands.
    fraction : array of shape (n_events,)
        How much of the tied events is taken out: l/d, or 0.
    group : array of shape (n_events,)
        The number of the event's time.
    tied : sparse array of shape (n_times, m)
        Ones where a row has its event at a time.
    weight : array of shape (n_events,)
        The mean weight of the events at its time.
    """

    order: Array
    ends: Array
    fraction: Array
    group: Array
    tied: Any
    weight: Array

    @classmethod
    def of(cls, time: Array, event: Array, sample_weight: Array | None, ties: str) -> RiskSets:
        """Sort the rows once; those of weight 0 have no event."""
        check_word(ties, "ties", "efron", "breslow")
        weight = np.ones(time.size) if sample_weight is None else sample_weight.astype(np.float64)
        rows = np.flatnonzero((event == 1) & (weight > 0))
        if rows.size == 0:
            raise ValueError("event holds no event of positive weight: there is nothing to fit")
        times, group = np.unique(time[rows], return_inverse=True)
        tied = scipy.sparse.csr_array((np.ones(rows.size), (group, rows)), shape=(times.size, time.size))
        counts = np.bincount(group)
        means = tied @ weight / counts
        order = np.argsort(-time, kind="stable")
        ends = np.searchsorted(-time[order], -times, side="right") - 1
        # The events one after the other by their times, and of each its number among those of its time.
        number = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
        group = np.repeat(np.arange(times.size), counts)
        fraction = number / counts[group] if ties == "efron" else np.zeros(rows.size)
        return cls(order, ends[group], fraction, group, tied, means[group])

    def sums(self, values: Array) -> Array:
        """The sum of the values, one or several for each row, over those at risk at each event."""
        at_risk = np.cumsum(values[self.order], axis=0, dtype=np.float64)[self.ends]
        if not self.fraction.any():
            return at_risk
        fraction = self.fraction.reshape(-1, *(1 for _ in values.shape[1:]))
        return at_risk - fraction * (self.tied @ values)[self.group]

    def spread(self, values: Array) -> Array:
        """The adjoint: for each row the sum of the values of the events at which it is at risk."""
        later = np.bincount(self.ends, values, self.order.size)[::-1].cumsum()[::-1]
        rows = np.empty_like(later)
        rows[self.order] = later
        return rows - self.tied.T @ np.bincount(self.group, self.fraction * values, self.tied.shape[0])

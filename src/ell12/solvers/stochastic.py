"""Stochastic proximal gradient methods with reduced variance: steps from some rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import inner, max_abs, rounding
from ell12.checks import check_counts, generator
from ell12.protocols import Array, Iterate, Needs, Penalty, Point, RowLoss
from ell12.solvers.proximal_step import check_step, first_step, known_lipschitz, objective


@dataclass(frozen=True)
class ProxSVRG:
    """Proximal stochastic variance-reduced gradient (Xiao & Zhang, doi:10.1137/140961791).

    From a snapshot with its full gradient ``g`` a pass goes over k batches of rows, ``f = sum_j f_j``::

        x <- prox(x - step (k (gradient f_j(x) - gradient f_j(snapshot)) + g), step)

    An iterate is one such pass and the full gradient at its end, the next snapshot: about two passes over the data
    where predictions are kept, three where data stream. A pass that raises the objective is undone and the step
    halved, so that the snapshots descend.

    Parameters
    ----------
    batch_size : int, default 64
        Rows of a batch.
    step : float or "lipschitz", default "lipschitz"
        A number, or one third of the inverse curvature of the first batch, lowered whenever a batch shows more.
    passes : int, default 1
        Passes between two full gradients.
    random_state : int, default 0
        Seed of the order of batches, where the loss can choose it.

    See Also
    --------
    SAGA : Some rows in each step, with a memory.
    RowsLoss : Rows that are read again in every pass.

    Notes
    -----
    The theory behind it, linear convergence in expectation, is for convex penalties. What is known for nonconvex
    ones (Reddi et al., NIPS 2016) needs steps that shrink with the number of batches; the step here is longer, and
    what ensures descent is the undoing alone.
    """

    batch_size: int = 64
    step: float | str = "lipschitz"
    passes: int = 1
    random_state: int = 0
    needs: ClassVar[Needs] = Needs(RowLoss)

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz")
        check_counts(least=1, optional=False, batch_size=self.batch_size)
        check_counts(least=1, most=10_000, optional=False, passes=self.passes)
        generator(self.random_state)

    def iterates(self, loss: Any, penalty: Penalty, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate for each snapshot, and None after each pass between, for the clock."""
        random = generator(self.random_state)
        step = LearnedStep(self.step)
        snapshot, value = start, objective(loss, penalty, start)
        gradient = loss.gradient(start)
        while True:
            x = snapshot.x
            for number in range(self.passes):
                if number:
                    yield None
                for batch in loss.batches(self.batch_size, random):
                    step.watch(batch.loss, batch.count, x)
                    x = self._move(batch, penalty, x, snapshot, gradient, step)
            point = loss.point(x)
            new_value, size = objective(loss, penalty, point), step.size
            if new_value <= value + rounding(value, x):
                snapshot, value, gradient = point, new_value, loss.gradient(point)
            else:
                step.factor *= 0.5
            yield Iterate(snapshot, value, _residual(penalty, snapshot.x, gradient, size))

    @staticmethod
    def _move(
        batch: Any, penalty: Penalty, x: Array, snapshot: Point, gradient: Array, step: LearnedStep
    ) -> Array:
        here = batch.loss.point(x)
        there = batch.point(snapshot)
        change = batch.loss.gradient_of(batch.loss.slope(here) - batch.loss.slope(there))
        step.compare(here.x - there.x, change, batch.count)
        return penalty.prox(x - step.size * (batch.count * change + gradient), step.size)


@dataclass(frozen=True)
class SAGA:
    """SAGA (Defazio, Bach & Lacoste-Julien, NIPS 2014) over batches of rows.

    Like `ProxSVRG`, with the last slope of every row, one number each, in place of a snapshot. An iterate costs
    one pass over the data, and the objective at its end half a one more::

        x <- prox(x - step (k (gradient f_j(x) - kept_j) + sum_i kept_i), step)

    A pass that raises the objective halves the step.

    Parameters
    ----------
    batch_size, step, random_state
        As in `ProxSVRG`.

    See Also
    --------
    ProxSVRG : Some rows in each step.
    RowsLoss : Rows that are read again in every pass.
    """

    batch_size: int = 64
    step: float | str = "lipschitz"
    random_state: int = 0
    needs: ClassVar[Needs] = Needs(RowLoss)

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz")
        check_counts(least=1, optional=False, batch_size=self.batch_size)
        generator(self.random_state)

    def iterates(self, loss: Any, penalty: Penalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate for each pass."""
        random = generator(self.random_state)
        step = LearnedStep(self.step)
        best, value = start, objective(loss, penalty, start)
        kept, total = self._table(loss, start)
        x = start.x
        while True:
            for batch in loss.batches(self.batch_size, random):
                step.watch(batch.loss, batch.count, x)
                slope = batch.loss.slope(batch.loss.point(x))
                change = batch.loss.gradient_of(slope - kept[batch.index])
                x = penalty.prox(x - step.size * (batch.count * change + total), step.size)
                kept[batch.index] = slope
                total = total + change
            point = loss.point(x)
            new_value, size = objective(loss, penalty, point), step.size
            if new_value <= value + rounding(value, x):
                best, value = point, new_value
            else:  # go back, with a table that belongs there
                step.factor *= 0.5
                x, (kept, total) = best.x, self._table(loss, best)
            yield Iterate(best, value, _residual(penalty, best.x, total, size))

    def _table(self, loss: Any, point: Point) -> tuple[dict[int, Array], Array]:
        """The slopes of every batch at a point, and the gradient."""
        kept, total = {}, 0 * point.x
        for batch in loss.batches(self.batch_size):
            kept[batch.index] = batch.loss.slope(batch.point(point))
            total = total + batch.loss.gradient_of(kept[batch.index])
        return kept, total


class LearnedStep:
    """The step: a number, or one that batches teach."""

    def __init__(self, step: float | str) -> None:
        self.fixed = None if step == "lipschitz" else float(step)
        self.curvature = 0.0
        self.factor = 1.0

    @property
    def size(self) -> float:
        """The step in use."""
        base = self.fixed if self.fixed is not None else 1 / (3 * (self.curvature or 1.0))
        return base * self.factor

    def watch(self, loss: Any, count: int, x: Array) -> None:
        """Learn the curvature of the first batch: its bound or, where there is none, what it is at x."""
        if self.fixed is None and self.curvature == 0:
            lipschitz = known_lipschitz(loss)
            unbounded = not math.isfinite(lipschitz)
            self.curvature = count * (1 / first_step(loss, loss.point(x)) if unbounded else lipschitz)

    def compare(self, move: Array, change: Array, count: int) -> None:
        """Learn from a change of gradient: along a move the curvature is at least this."""
        square = inner(move, move)
        if self.fixed is None and square > 0:
            self.curvature = max(self.curvature, count * math.sqrt(inner(change, change) / square))


def _residual(penalty: Penalty, x: Array, gradient: Array, step: float) -> float:
    """The largest entry of a proximal gradient step, over its length."""
    return max_abs(x - penalty.prox(x - step * gradient, step)) / step

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
class _RowSteps:
    """Passes over batches of rows; one that raises the objective is undone, and the step halved."""

    batch_size: int = 64
    step: float | str = "lipschitz"
    random_state: int = 0
    needs: ClassVar[Needs] = Needs(RowLoss)
    keeps_memory: ClassVar[bool]  # where a pass has lowered the objective, rather than where it has not
    _memory: ClassVar[Any]
    _slope: ClassVar[Any]

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz")
        check_counts(least=1, optional=False, batch_size=self.batch_size)
        generator(self.random_state)

    def iterates(self, loss: Any, penalty: Penalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate for each pass."""
        random, step = generator(self.random_state), LearnedStep(self.step)
        best, value, memory = start, objective(loss, penalty, start), self._memory(loss, start)
        while True:
            x = best.x
            for batch in loss.batches(self.batch_size, random):
                step.watch(batch.loss, batch.count, x)
                slope = self._slope(memory, batch, x, step)
                x = penalty.prox(x - step.size * slope, step.size)
            point = loss.point(x)
            new_value, size = objective(loss, penalty, point), step.size
            lower = new_value <= value + rounding(value, x)
            if lower:
                best, value = point, new_value
            else:
                step.factor *= 0.5
            if lower != self.keeps_memory:
                memory = self._memory(loss, best)
            residual = max_abs(best.x - penalty.prox(best.x - size * memory["gradient"], size)) / size
            yield Iterate(best, value, residual)


@dataclass(frozen=True)
class ProxSVRG(_RowSteps):
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

    keeps_memory: ClassVar[bool] = False

    def _memory(self, loss: Any, point: Point) -> dict[Any, Any]:
        """The snapshot and its gradient."""
        return {"snapshot": point, "gradient": loss.gradient(point)}

    def _slope(self, memory: dict[Any, Any], batch: Any, x: Array, step: LearnedStep) -> Array:
        """An estimate of the gradient at x by one batch."""
        here, there = batch.loss.point(x), batch.point(memory["snapshot"])
        change = batch.loss.gradient_of(batch.loss.slope(here) - batch.loss.slope(there))
        step.compare(here.x - there.x, change, batch.count)
        return batch.count * change + memory["gradient"]


@dataclass(frozen=True)
class SAGA(_RowSteps):
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

    keeps_memory: ClassVar[bool] = True

    def _memory(self, loss: Any, point: Point) -> dict[Any, Any]:
        """The slopes of every batch at a point, and the gradient."""
        memory: dict[Any, Any] = {"gradient": 0 * point.x}
        for batch in loss.batches(self.batch_size):
            memory[batch.index] = batch.loss.slope(batch.point(point))
            memory["gradient"] = memory["gradient"] + batch.loss.gradient_of(memory[batch.index])
        return memory

    def _slope(self, memory: dict[Any, Any], batch: Any, x: Array, step: LearnedStep) -> Array:  # noqa: ARG002
        """The same, whose slopes replace those in the memory."""
        slope, gradient = batch.loss.slope(batch.loss.point(x)), memory["gradient"]
        change = batch.loss.gradient_of(slope - memory[batch.index])
        memory |= {batch.index: slope, "gradient": gradient + change}
        return batch.count * change + gradient


class LearnedStep:
    """The step: a number, or one that batches teach."""

    def __init__(self, step: float | str) -> None:
        self.fixed = None if step == "lipschitz" else float(step)
        self.curvature, self.factor = 0.0, 1.0

    @property
    def size(self) -> float:
        """The step in use."""
        return self.factor * (self.fixed or 1 / (3 * (self.curvature or 1.0)))

    def watch(self, loss: Any, count: int, x: Array) -> None:
        """Learn the curvature of the first batch: its bound or, where there is none, what it is at x."""
        if self.fixed is None and self.curvature == 0:
            lipschitz = known_lipschitz(loss)
            self.curvature = count * (
                lipschitz if math.isfinite(lipschitz) else 1 / first_step(loss, loss.point(x))
            )

    def compare(self, move: Array, change: Array, count: int) -> None:
        """Learn from a change of gradient: along a move the curvature is at least this."""
        square = inner(move, move)
        if self.fixed is None and square > 0:
            self.curvature = max(self.curvature, count * math.sqrt(inner(change, change) / square))

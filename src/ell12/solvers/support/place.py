"""A problem in its smooth pieces: what is known at a point, and which entries of x are worth changing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import as_numpy, rounding
from ell12.protocols import Array, Iterate, Point
from ell12.solvers.proximal_step import objective, summed_size


@dataclass(frozen=True)
class Place:
    """A point with what is known there."""

    point: Point
    x: Any  # as a NumPy vector
    gradient: Array
    slope: Any  # the least slope of the objective, as a NumPy vector: zero where nothing is violated
    objective: float
    violation: float

    @property
    def iterate(self) -> Iterate:
        """What a solver yields here."""
        return Iterate(self.point, self.objective, self.violation, self.gradient)

    def columns_to_change(self, smallest: int, free: Any = (), most: int = 0, largest: float = math.inf) -> Any:
        """The support, what is free, and the worst violators, so that the support at most doubles.

        At least ``smallest`` violators are taken, and at least ``most``, where there are as many; but no more
        columns than ``largest`` in all, if that leaves room for half of ``smallest``.
        """
        inside = self.x != 0
        inside[np.asarray(free, dtype=np.int64)] = True
        outside = np.flatnonzero(~inside & (self.slope != 0))
        size = int(np.count_nonzero(inside))
        room = max(most, smallest, size)
        if largest - size >= smallest / 2:
            room = int(min(room, largest - size))
        if outside.size > room:
            outside = outside[np.argpartition(-np.abs(self.slope[outside]), room)[:room]]
        inside[outside] = True
        return np.flatnonzero(inside)


class SmoothProblem:
    """A `ell12.protocols.ColumnLoss` and a penalty that tells its slopes and curvature, seen as NumPy vectors."""

    def __init__(self, loss: Any, penalty: Any) -> None:
        self.loss, self.penalty = loss, penalty
        self._summed = summed_size(loss)

    def place(self, point: Point, value: float | None = None, gradient: Array | None = None) -> Place:
        """What is known at a point; one product with the adjoint of A, unless the gradient is known."""
        gradient, x = self.loss.gradient(point) if gradient is None else gradient, as_numpy(point.x)
        slope = as_numpy(self.penalty.least_slope(point.x, gradient))
        value = objective(self.loss, self.penalty, point) if value is None else value
        return Place(point, x, gradient, slope, value, self._violation(point, x, gradient, slope))

    def _violation(self, point: Point, x: Any, gradient: Array, slope: Any) -> float:  # noqa: ARG002
        return self.penalty.violation(point.x, gradient)

    def lower(self, point: Point, here: Place) -> Place:
        """The place of a point, unless it lies higher."""
        new = self.place(point)
        return new if new.objective <= here.objective + self.rounding(here) else here

    def is_progress(self, old: Place, new: Place) -> bool:
        """Whether the violation was halved or the objective fell by more than rounding."""
        return new.violation <= 0.5 * old.violation or new.objective < old.objective - self.rounding(old)

    def rounding(self, place: Place) -> float:
        """How far rounding can lift the objective of a place, by the terms that it sums."""
        return rounding(max(abs(place.objective), self._summed), place.x)

    def fits(self, columns: int) -> bool:
        """Whether a dense Hessian in this number of columns is small beside the data."""
        return columns <= self.loss.most_columns

    def hessian(self, place: Place, columns: Any) -> Any:
        """The Hessian of the objective's smooth piece in some columns, as a dense NumPy matrix."""
        own = self.penalty.curvature(place.point.x).matrix(columns)
        loss = as_numpy(self.loss.hessian(place.point, columns))
        return np.add(loss, as_numpy(own), dtype=np.float64)


class PiecewiseProblem(SmoothProblem):
    """The same with a `ell12.protocols.PiecewisePenalty`, whose kinks lie at zero in each entry."""

    def __init__(self, loss: Any, penalty: Any, start: Point) -> None:
        super().__init__(loss, penalty)
        below, above = map(as_numpy, penalty.slopes_at_zero(start.x))
        sides = np.stack([-below, above])
        self.pull = float(
            sides[np.isfinite(sides)].max(initial=0.0)
        )  # the steepest slope at zero: alpha, as a rule
        penalised = (below < 0) & (above > 0)
        self._penalised = slice(None) if penalised.all() else penalised

    def _violation(self, point: Point, x: Any, gradient: Array, slope: Any) -> float:
        # Only where all that is penalised is zero, so that a subtracted norm has no slope, is there more to a
        # violation than the slope.
        zero = not np.any(x[self._penalised])
        return self.penalty.violation(point.x, gradient) if zero else float(np.abs(slope).max(initial=0.0))

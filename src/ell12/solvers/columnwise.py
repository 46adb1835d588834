"""nmAPG on many problems at once, the columns of x."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import all_true, as_numpy, choose, join, squares_of_columns, take, total
from ell12.protocols import Array, Iterate, Loss, Point
from ell12.solvers.proximal_gradient import next_t


@dataclass(frozen=True)
class ColumnwiseAPG:
    """`ell12.NonmonotoneAPG` for each column of x, all products with A being matrix products.

    Every column takes the steps that it would take alone: each accepts or refuses its own extrapolation. It pays
    where a product with one vector waits for memory, on a GPU above all. The loss and the penalty need ``values``,
    one number for each column: `ell12.SquaredLoss` of several right-hand sides and `ell12.ColumnsL12` have it.

    Parameters
    ----------
    eta : float
        Memory of the running averages, between 0 (monotone) and 1.
    delta : float
        How far below its average an extrapolated step must lie, times the square of its length.
    rest : float
        A column whose stationarity, in the penalty's units, has fallen to this rests where it is, and the products
        go on without it; as a rule the tol of `ell12.minimize`. With 0 all columns move to the end.
    """

    eta: float = 0.8
    delta: float = 1e-4
    rest: float = 0.0

    def iterates(self, loss: Loss, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, until all columns rest."""
        for part in (loss, penalty):
            if not hasattr(part, "values"):
                raise TypeError(f"ColumnwiseAPG needs values of each column, which {type(part).__name__} lacks")
        moving, resting = _Moving(loss, penalty, start), None
        t_previous, t, q = 0.0, 1.0, 1.0
        while True:
            moving.advance(t_previous, t, self.delta)
            t_previous, t = t, next_t(t)
            q_previous, q = q, self.eta * q + 1
            moving.average = (self.eta * q_previous * moving.average + moving.values) / q
            settled = moving.settled(self.rest) if self.rest > 0 else moving.numbers[:0]
            if settled.size:
                resting = _Resting.beside(resting, moving, settled)
                others = np.setdiff1d(np.arange(moving.numbers.size), settled)
                if not others.size:
                    break
                moving = moving.select(others)
            yield _iterate(moving, resting, penalty.alpha)
        point = _some(resting.point, np.argsort(resting.numbers))
        yield Iterate(point, resting.objective, penalty.alpha * resting.stationarity, exact=True)


class _Moving:
    """The columns that move, by their numbers, and the state of their nmAPG."""

    def __init__(self, loss: Any, penalty: Any, start: Point) -> None:
        self.loss, self.penalty, self.step = loss, penalty, 1 / (loss.lipschitz() or 1.0)
        self.numbers = np.arange(start.x.shape[1])
        self.x = self.previous = self.z = start
        self.values = self.average = self._objectives(start)
        self.optimality: np.ndarray  # by the length of the last step, in the penalty's units
        self.stationarity = np.full(self.numbers.size, np.inf)  # as it was when last looked for
        self.pause, self.looks_in = 1, 1

    def advance(self, t_previous: float, t: float, delta: float) -> None:
        """One step of every column."""
        x = self.x
        y = x + (t_previous - 1) / t * (x - self.previous) + t_previous / t * (self.z - x)
        self.z = new = self._stepped(y)
        values, move = self._objectives(new), new.x - y.x
        accepted = values <= self.average - delta * squares_of_columns(move)
        if not all_true(accepted):
            plain = self._stepped(x)
            plain_values = self._objectives(plain)
            kept = accepted | (values <= plain_values)
            new = Point(choose(kept, new.x, plain.x), choose(kept, new.prediction, plain.prediction))
            values, move = choose(kept, values, plain_values), choose(kept, move, plain.x - x.x)
        self.x, self.previous, self.values = new, x, values
        self.optimality = as_numpy(self.penalty.sizes(move)) / self.step

    def settled(self, tol: float) -> np.ndarray:
        """Which columns have a stationarity of at most tol; looked for now and then.

        A look costs a product for the columns in question, and taking some out a copy of the others: it must be
        worth an eighth of them. Where the lengths of the steps were too rosy, the next look waits longer.
        """
        ready = np.flatnonzero(self.optimality <= tol)
        self.looks_in -= 1
        if self.looks_in > 0 or 8 * ready.size < self.numbers.size:
            return ready[:0]
        part = self.select(ready)
        reached = as_numpy(part.penalty.stationarities(part.x.x, part.loss.gradient(part.x)))
        self.stationarity[ready] = reached
        settled = ready[reached <= tol]
        self.pause = 1 if settled.size else min(2 * self.pause, 64)
        self.looks_in = self.pause
        return settled

    def select(self, which: np.ndarray) -> _Moving:
        """Some of the columns, as they are."""
        other = copy.copy(self)
        other.loss, other.penalty = self.loss.select_problems(which), self.penalty.select_problems(which)
        other.x, other.previous, other.z = (_some(point, which) for point in (self.x, self.previous, self.z))
        other.values, other.average = (take(values, which, 0) for values in (self.values, self.average))
        other.numbers, other.stationarity = self.numbers[which], self.stationarity[which]
        other.optimality = self.optimality[which]
        return other

    def _stepped(self, point: Point) -> Point:
        moved = point.x - self.step * self.loss.gradient(point)
        return self.loss.point(self.penalty.prox(moved, self.step))

    def _objectives(self, point: Point) -> Array:
        return self.loss.values(point) + self.penalty.values(point.x)


@dataclass(frozen=True)
class _Resting:
    """The columns that have arrived, by their numbers."""

    numbers: np.ndarray
    point: Point
    objective: float  # of all of them
    stationarity: float  # of the worst

    @staticmethod
    def beside(earlier: _Resting | None, moving: _Moving, which: np.ndarray) -> _Resting:
        """Those that rest already, and some that do from now on."""
        new = _Resting(
            moving.numbers[which],
            _some(moving.x, which),
            total(take(moving.values, which, 0)),
            float(moving.stationarity[which].max()),
        )
        if earlier is None:
            return new
        return _Resting(
            np.concatenate([earlier.numbers, new.numbers]),
            _joined(earlier.point, new.point),
            earlier.objective + new.objective,
            max(earlier.stationarity, new.stationarity),
        )


def _iterate(moving: _Moving, resting: _Resting | None, unit: float) -> Iterate:
    """All columns in their order."""
    objective, worst = total(moving.values), float(moving.optimality.max())
    if resting is None:
        return Iterate(moving.x, objective, unit * worst)
    order = np.argsort(np.concatenate([resting.numbers, moving.numbers]))
    point = _some(_joined(resting.point, moving.x), order)
    return Iterate(point, resting.objective + objective, unit * max(worst, resting.stationarity))


def _some(point: Point, which: np.ndarray) -> Point:
    """Some of the columns."""
    return Point(take(point.x, which, 1), take(point.prediction, which, 1))


def _joined(first: Point, second: Point) -> Point:
    """The columns of one beside those of the other."""
    return Point(join([first.x, second.x], 1), join([first.prediction, second.prediction], 1))

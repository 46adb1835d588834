"""nmAPG on many problems at once, the columns of x."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_numpy, choose, join, squares_of_columns, take, total
from ell12.checks import set_numbers
from ell12.protocols import Array, Iterate, Needs, ParallelLoss, ParallelPenalty, Point
from ell12.solvers.acceleration import Nonmonotone
from ell12.solvers.back_off import BackOff
from ell12.solvers.steps import ProximalStep, Step


@dataclass(frozen=True)
class ColumnwiseAPG:
    """`ell12.NonmonotoneAPG` for each column of x, all products with A being matrix products.

    Every column takes the steps that it would take alone: each accepts or refuses its own extrapolation. It pays
    where a product with one vector waits for memory, on a GPU above all. The loss and the penalty need ``values``,
    one number for each column: `ell12.SquaredLoss` of several right-hand sides and `ell12.ColumnsL12` have it.

    Parameters
    ----------
    eta : float, default 0.8
        Memory of the running averages, between 0 (monotone) and 1.
    delta : float, default 1e-4
        How far below its average an extrapolated step must lie, times the square of its length.
    rest : float, default 0.0
        A column whose stationarity, in the penalty's units, has fallen to this rests where it is, and the products
        go on without it; as a rule the tol of `ell12.minimize`. With 0 all columns move to the end.

    See Also
    --------
    ColumnsL12 : Many problems at once.
    NonmonotoneAPG : The paper's method.
    """

    eta: float = 0.8
    delta: float = 1e-4
    rest: float = 0.0
    needs: ClassVar[Needs] = Needs(ParallelLoss, ParallelPenalty)

    def __post_init__(self) -> None:
        set_numbers(self, "eta", "delta", "rest")
        if self.eta >= 1:
            raise ValueError(f"eta must lie in [0, 1), got {self.eta}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, until all columns rest."""
        moving, resting = _Moving(loss, penalty, start, self.eta, self.delta), None
        while True:
            moving.advance()
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


@dataclass(frozen=True, slots=True)
class _ColumnSteps(Step):
    """A step of every column; ``optimality`` is its length in the penalty's units."""

    def where(self, kept: Array, other: _ColumnSteps) -> _ColumnSteps:
        """The columns of this step that are kept, and the others' in place of the rest."""
        point, plain = self.point, other.point
        chosen = Point(choose(kept, point.x, plain.x), choose(kept, point.prediction, plain.prediction))
        fields = ("objective", "square", "optimality")
        return _ColumnSteps(chosen, *(choose(kept, getattr(self, f), getattr(other, f)) for f in fields))


class _Moving:
    """The columns that move, by their numbers, and the state of their nmAPG."""

    def __init__(self, loss: Any, penalty: Any, start: Point, eta: float, delta: float) -> None:
        self.loss, self.penalty = loss, penalty
        self.take_step = ProximalStep(loss, penalty, "lipschitz", start)
        self.numbers = np.arange(start.x.shape[1])
        self.values = self._objectives(start)
        self.state = Nonmonotone(start, self.values, eta, delta)
        self.optimality: np.ndarray  # by the length of the last step, in the penalty's units
        self.stationarity = np.full(self.numbers.size, np.inf)  # as it was when last looked for
        self.look = BackOff()

    @property
    def x(self) -> Point:
        """Where the columns are."""
        return self.state.x

    def advance(self) -> None:
        """One step of every column."""
        step = self.state.advance(self._measured)
        self.values, self.optimality = step.objective, as_numpy(step.optimality)

    def settled(self, tol: float) -> np.ndarray:
        """Which columns have a stationarity of at most tol; looked for now and then.

        A look costs a product for the columns in question, and taking some out a copy of the others: it must be
        worth an eighth of them. Where the lengths of the steps were too rosy, the next look waits longer.
        """
        ready = np.flatnonzero(self.optimality <= tol)
        if not self.look.is_due() or 8 * ready.size < self.numbers.size:
            return ready[:0]
        part = self.select(ready)
        reached = as_numpy(part.penalty.stationarities(part.x.x, part.loss.gradient(part.x)))
        self.stationarity[ready] = reached
        settled = ready[reached <= tol]
        self.look.record(bool(settled.size))
        return settled

    def select(self, which: np.ndarray) -> _Moving:
        """Some of the columns, as they are."""
        other = copy.copy(self)
        other.loss, other.penalty = self.loss.select_problems(which), self.penalty.select_problems(which)
        other.take_step = self.take_step.of(other.loss, other.penalty)
        other.state = copy.copy(self.state)
        for name in ("x", "previous", "z"):
            setattr(other.state, name, _some(getattr(self.state, name), which))
        other.state.average, other.values = take(self.state.average, which, 0), take(self.values, which, 0)
        other.numbers, other.stationarity = self.numbers[which], self.stationarity[which]
        other.optimality = self.optimality[which]
        return other

    def _measured(self, point: Point, _near: Point, _ahead: Any) -> _ColumnSteps:
        new = self.take_step(point)
        move = new.x - point.x
        sizes = self.penalty.sizes(move) / self.take_step.step
        return _ColumnSteps(new, self._objectives(new), squares_of_columns(move), sizes)

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

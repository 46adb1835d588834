"""One proximal gradient step, fixed or backtracked; momentum and nonmonotone acceptance."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import inner, is_number, max_abs
from ell12.backend.number_types import difference
from ell12.checks import check_positive
from ell12.protocols import Array, Iterate, Loss, Needs, Penalty, Point

# A shorter step is none: the numbers are not finite, which the loop will see.
SHORTEST = sys.float_info.min
# Where a first step comes out this many times shorter than the way over which it was tried, a way so much shorter
# is tried. Each costs one product; 100 finds the curvature of an exponential in two or three.
SHORTER = 100
# Where the loss has no Lipschitz constant, a step that held this many times in a row is doubled: the curvature may
# be far smaller here than where the run began. Trying costs one product, so at most one in ten is wasted.
DOUBLE_AFTER = 10


@np.errstate(over="ignore")  # an infinite value makes a solver shorten its step
def objective(loss: Loss, penalty: Penalty, point: Point) -> float:
    """The loss plus the penalty; no product."""
    return loss.value(point) + penalty.value(point.x)


def check_step(step: float | str, *names: str) -> None:
    """Raise unless step is a positive number or one of the names."""
    check_positive(step, "step", *names)


@dataclass(frozen=True)
class Stepping:
    """What solvers that take proximal steps share: the option of their length."""

    step: float | str = "lipschitz"
    needs: ClassVar[Needs] = Needs()

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking")


def known_lipschitz(loss: Loss) -> float:
    """The loss's Lipschitz constant where it is known and finite, 1 where it is zero; else infinity."""
    found: Any = loss.lipschitz()
    return (float(found) or 1.0) if found is not None and math.isfinite(found) else math.inf


def rise(loss: Loss, penalty: Penalty, new: Point, base: Point, gradient: Array) -> float:
    """The rise of the objective between two points, by the gradient at ``base``.

    The difference of the two values holds the rounding of both predictions: where these are larger than the
    residual, it hides a rise, or a fall, that this one shows.
    """
    linear = float(inner(gradient, new.x - base.x))
    return linear + loss.divergence(new, base) + float(penalty.value(new.x)) - float(penalty.value(base.x))


@dataclass(frozen=True, slots=True)
class Step:
    """Where a proximal step led; of columns side by side, ``objective`` and ``square`` have a number for each."""

    point: Any
    objective: Any
    square: Any  # of the step's length
    optimality: Any  # the largest entry of the step, over its size

    def iterate(self) -> Iterate:
        """What a solver yields."""
        return Iterate(self.point, self.objective, self.optimality)


class ProximalStep:
    """``x -> prox(x - step (gradient(x) - tilt(x)), step)``: one product with A and one with its adjoint.

    A backtracked step is halved until the loss lies below its quadratic model. Backtracking is also what
    "lipschitz" means where the loss's constant is infinite or unknown.

    Parameters
    ----------
    loss, penalty : Loss, Penalty
        The problem.
    step : float or {"lipschitz", "backtracking"}
        The size of the step.
    start : Point
        Where a first size is tried.
    tilt : function, optional
        A linear term of the objective that depends on where the step begins, such as a subtracted gradient.
    """

    def __init__(self, loss: Loss, penalty: Penalty, step: float | str, start: Point, tilt: Any = None) -> None:
        self.loss, self.penalty, self.tilt = loss, penalty, tilt
        lipschitz = known_lipschitz(loss) if step == "lipschitz" else 1.0
        self.backtracking = step == "backtracking" or not math.isfinite(lipschitz)
        self.may_grow, self.kept = not math.isfinite(lipschitz), 0  # kept: steps in a row that were not halved
        found = step if is_number(step) else first_step(loss, start) if self.backtracking else 1 / lipschitz
        self.step = float(found)

    def __call__(self, point: Point) -> Point:
        """The step from a point."""
        slope = self.loss.gradient(point)
        slope = slope if self.tilt is None else slope - self.tilt(point.x)
        if self.may_grow and self.kept >= DOUBLE_AFTER:
            self.step, self.kept = 2 * self.step, 0
        while True:
            new = self.loss.point(self.penalty.prox(point.x - self.step * slope, self.step))
            if not self.backtracking or self.step < SHORTEST or self._is_below_model(new, point):
                break
            self.step, self.kept = 0.5 * self.step, 0
        self.kept += 1
        return new

    def measured(self, point: Point, ahead: Callable[[Point], None]) -> Step:
        """The step with its objective; ``ahead`` gets the new point before its value is needed."""
        new = self(point)
        ahead(new)
        largest, square = difference(new.x, point.x)
        return Step(new, objective(self.loss, self.penalty, new), square, self._residual(largest))

    def iterate(self, new: Point, old: Point, value: float | None = None) -> Iterate:
        """The iterate at ``new``, which a step from ``old`` has reached."""
        value = objective(self.loss, self.penalty, new) if value is None else value
        return Iterate(new, value, self._residual(max_abs(new.x - old.x)))

    def _residual(self, largest: float) -> float:
        """The largest entry of a move, divided by the step, which may have fallen to zero."""
        return largest / self.step if self.step > 0 else math.inf

    def _is_below_model(self, new: Point, old: Point) -> bool:
        move = new.x - old.x
        return 2 * self.step * self.loss.divergence(new, old) <= (1 + 1e-12) * inner(move, move)


def first_step(loss: Loss, start: Point) -> float:
    """The step that is exact along the gradient: at least 1/L, so that halving finds a good one.

    It is tried over a length that is the same in all units: so far that a straight line would bring the loss to
    zero, but no farther than x is from zero, if it is. A loss that is linear far away, as the logistic one is,
    would otherwise seem to have hardly any curvature where columns are large. A loss that bends ever more, as an
    exponential does, can seem to have 1e60 times its curvature: then it is tried again over shorter ways.
    """
    gradient: Any = loss.gradient(start)
    size = max_abs(gradient)
    if size == 0 or not math.isfinite(size):
        return 1.0
    direction = gradient / size
    square, far = inner(direction, direction), max_abs(start.x) or math.inf
    length = min(loss.value(start) / size / square, far)
    if not 0 < length < math.inf:
        length = 1.0
    step = 0.0
    while length > SHORTEST:
        curvature = 2 * loss.divergence(loss.point(start.x - length * direction), start)
        if curvature <= 0:  # or rounding
            return step or 1.0
        if math.isfinite(curvature):  # else the loss has no value there
            found = length / curvature * square * length
            if found <= 2 * step:  # no other curvature than over a longer way
                return step
            step = found
            if step * size >= length / SHORTER:
                return step
        length /= SHORTER
    return step or length / size


# Certificates that fail are one iteration apart, then twice as many each time, up to this number: a run that has
# arrived is soon seen to have.
LONGEST = 64


def next_t(t: float) -> float:
    """The next of the numbers by which momentum grows."""
    return (1 + math.sqrt(1 + 4 * t * t)) / 2


def extrapolated(x: Any, previous: Any, z: Any, t_previous: float, t: float) -> Any:
    """``x + (t_previous - 1)/t (x - previous) + t_previous/t (z - x)``."""
    y = x + (t_previous - 1) / t * (x - previous)
    return y if z is x else y + t_previous / t * (z - x)  # after an accepted step z is x


class Nonmonotone:
    """The state of nmAPG (Li & Lin, NIPS 2015), an accelerated proximal gradient method.

    An extrapolated step is taken if it lies enough below a running average of the objective. Else a plain proximal
    step is made too, and the better of the two is kept.

    Parameters
    ----------
    start : point
        Where to begin; it adds and scales.
    objective : float
        The objective there.
    eta : float, default 0.8
        Memory of the running average, between 0 (monotone) and 1.
    delta : float, default 1e-4
        How far below the average an extrapolated step must lie, times the square of its length.

    Attributes
    ----------
    x : point
        Where the run is.
    """

    def __init__(self, start: Any, objective: Any, eta: float = 0.8, delta: float = 1e-4) -> None:
        self.x = self.previous = self.z = start
        self.average, self.eta, self.delta = objective, eta, delta
        self.t_previous, self.t, self.q = 0.0, 1.0, 1.0

    def advance(self, take_step: Any, announce: Any = lambda *_: None, turns_back: Any = None) -> Any:
        """One step.

        Parameters
        ----------
        take_step : function
            Of the point to step from, and a function that gets the new point before its objective is found.
            It returns a `ell12.solvers.proximal_step.Step` or what behaves like one.
        announce : function, optional
            Gets where the next step is likely to begin, as a function and its arguments.
        turns_back : function, optional
            Of the new point, the extrapolated one and x: whether the momentum leads uphill and begins anew
            (O'Donoghue & Candès, doi:10.1007/s10208-013-9150-3). That nmAPG converges does not depend on momentum.
        """
        x, y = self.x, extrapolated(self.x, self.previous, self.z, self.t_previous, self.t)
        times = (self.t, next_t(self.t))
        step = take_step(y, lambda new: announce(extrapolated, new, x, new, *times))
        self.z = z = step.point
        accepted = step.objective <= self.average - self.delta * step.square
        if not accepted:
            plain = take_step(x, lambda new: announce(extrapolated, new, x, z, *times))
            step = step if step.objective <= plain.objective else plain
        self.x, self.previous, (self.t_previous, self.t) = step.point, x, times
        if turns_back is not None and turns_back(step.point, y, x):  # as at the start: the next begins at x
            self.previous = self.z = step.point
            self.t_previous, self.t = 0.0, 1.0
        q = self.eta * self.q + 1
        self.average = (self.eta * self.q * self.average + step.objective) / q
        self.q = q
        return step

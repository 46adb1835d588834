"""Newton's method on the support, and in groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ell12.backend import as_numpy, like, norm, rounding
from ell12.checks import check_scalars
from ell12.operators.krylov import conjugate_gradients
from ell12.protocols import (
    Array,
    ColumnLoss,
    GroupPenalty,
    Iterate,
    Needs,
    PiecewisePenalty,
    Point,
)
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.proximal_step import ProximalStep, check_step, objective


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

    def columns_to_change(self, smallest: int, free: Any = (), most: int = 0) -> Any:
        """The support, what is free, and the worst violating columns, so that the support at most doubles.

        At least ``smallest`` violating columns are taken, and at least ``most``, where there are as many.
        """
        inside = self.x != 0
        inside[np.asarray(free, dtype=np.int64)] = True
        outside = np.flatnonzero(~inside & (self.slope != 0))
        room = max(most, smallest, int(np.count_nonzero(inside)))
        if outside.size > room:
            outside = outside[np.argpartition(-np.abs(self.slope[outside]), room)[:room]]
        inside[outside] = True
        return np.flatnonzero(inside)


class SmoothProblem:
    """A `ell12.protocols.ColumnLoss` and a penalty that tells its slopes and curvature, seen as NumPy vectors."""

    def __init__(self, loss: Any, penalty: Any) -> None:
        self.loss, self.penalty = loss, penalty
        self._summed = loss.value_scale

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
        """Whether a dense Hessian in this number of columns is small compared with the data."""
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


# nmAPG hands over to Newton's method after SAME_SIGNS steps in which no entry changed its sign: the support is
# then taken as found; and after LONGEST steps in any case (3000 random problems: lower minima as often as higher).
SAME_SIGNS, LONGEST = 50, 1000
# A Newton step is halved NEWTON_HALVINGS times at the most, then a proximal step is taken instead.
NEWTON_HALVINGS = 12
# A Newton step that had to be cut below this fraction of its length asks for a larger shift of the Hessian.
SHORT_STEP = 0.25
# Newton's method does not begin on supports of more entries, whose dense Hessian would take minutes to factorize.
LARGEST_SUPPORT = 5000
# The support grows by this number of entries at a step, even where it is smaller itself.
FEWEST_ENTERING = 64
# Where no dense Hessian is made, a Newton step is found to this relative residual, in this number of products at
# the most: a step that is less exact costs more outer steps, and a more exact one gains nothing.
CONJUGATE_ACCURACY, CONJUGATE_STEPS = 1e-6, 200


@dataclass(frozen=True)
class SupportNewton:
    """nmAPG until the support is nearly found, then Newton's method on the support.

    On a fixed support with fixed signs the objective is smooth. Each step solves with its Hessian there, shifted
    until it is positive definite; entries that would cross zero leave the support, and violating entries enter. A
    step that does not descend, or only where cut short, is followed by a proximal one.

    Parameters
    ----------
    switch : float, default 0.1
        The stationarity, estimated by nmAPG, at which Newton's method takes over. A smaller one stays
        nearer to the minimum that nmAPG would find, and takes longer.
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        Of the proximal steps, as in `ProximalGradient`.

    Notes
    -----
    For real vectors x. The Hessian of the support is a dense matrix, unless that would be larger than sparse
    data: then its systems are solved by conjugate gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, minimize, solvers
    >>> loss = SquaredLoss(np.eye(3), [3.0, -4.0, 0.5])
    >>> minimize(loss, L12(alpha=1.0), solver=solvers.SupportNewton(), tol=1e-12).x.round(4)
    array([ 2.5547, -3.8321,  0.    ])
    """

    switch: float = 0.1
    step: float | str = "lipschitz"
    needs: ClassVar[Needs] = Needs(ColumnLoss, PiecewisePenalty, x="real vector")

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking")
        check_scalars(infinite=True, switch=self.switch)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        problem, signs = PiecewiseProblem(loss, penalty, start), _Signs(start.x)
        for n, iterate in enumerate(NonmonotoneAPG(self.step).iterates(loss, penalty, start)):
            yield iterate
            signs.update(iterate.point.x)
            settled = signs.unchanged >= SAME_SIGNS or n >= LONGEST
            near = settled or iterate.optimality <= self.switch * penalty.alpha
            if near and (signs.support <= LARGEST_SUPPORT or not problem.fits(signs.support)):
                break
        here = problem.place(iterate.point)
        take_newton_step, take_proximal_step = NewtonStep(problem), ProximalStep(loss, penalty, self.step, start)
        while True:
            new = take_newton_step(here)
            if new is None or take_newton_step.length < SHORT_STEP:
                old = new or here
                proximal = problem.place(take_proximal_step(old.point))
                new = proximal if proximal.objective <= old.objective + problem.rounding(old) else old
            here = new
            yield here.iterate


class _Signs:
    """The signs of x, and for how many steps they have stayed the same."""

    def __init__(self, x: Array) -> None:
        self.signs, self.unchanged = np.sign(as_numpy(x)), 0

    def update(self, x: Array) -> None:
        """Go on to the next x."""
        signs = np.sign(as_numpy(x))
        self.unchanged = self.unchanged + 1 if np.array_equal(signs, self.signs) else 0
        self.signs = signs

    @property
    def support(self) -> int:
        """The number of entries that are not zero."""
        return int(np.count_nonzero(self.signs))


class NewtonStep:
    """One step of Newton's method on the support; it remembers the shift and how long the step was."""

    def __init__(self, problem: SmoothProblem) -> None:
        self.problem = problem
        self.shift = self.length = 0.0

    def __call__(self, here: Place) -> Place | None:
        """The place after a step along which the objective falls; None where there is none."""
        found = self._direction(here)
        if found is None:
            return None
        columns, direction, unit = found
        new = self._search(here, columns, direction)
        if self.length < SHORT_STEP:
            self.shift = max(4 * self.shift, unit) if self.shift < 1e12 * unit else 0.0  # all tried: once more
        elif self.length == 1:
            self.shift = self.shift / 4 if self.shift > unit / 4 else 0.0
        return new

    def _direction(self, here: Place) -> tuple[Any, Any, float] | None:
        """The columns to change, Newton's direction in them, and the unit of the shift."""
        columns = self.columns(here)
        for _ in range(4):
            if not np.any(here.slope[columns]):
                return None
            direction, unit = self._newton_direction(here, columns)
            if direction is None:
                return None
            # What enters must move down its slope; the others would be cut off and could spoil the descent.
            entering = here.x[columns] == 0
            wrong = entering & (direction * here.slope[columns] >= 0)
            if not wrong.any():
                break
            columns, direction = columns[~wrong], direction[~wrong]
        return columns, direction, unit

    def _newton_direction(self, here: Place, columns: Any) -> tuple[Any, float]:
        """Newton's direction in some columns, None where there is none, and the unit of the shift."""
        problem, slope = self.problem, here.slope[columns].astype(np.float64)
        unit = problem.penalty.alpha / (norm(here.x) or math.inf)  # a curvature, of the size that the penalty has
        if not problem.fits(columns.size):
            direction = descending(hessian_product(problem, here, columns), self.shift, slope)
            return direction if np.isfinite(direction).all() else None, unit or 1.0
        hessian = problem.hessian(here, columns)
        unit = max(unit, 1e-12 * float(np.abs(np.diagonal(hessian)).max(initial=0.0))) or 1.0
        return -self._solve(hessian, slope, unit) if np.isfinite(hessian).all() else None, unit

    def _solve(self, hessian: Any, slope: Any, unit: float) -> Any:
        """Solve with the Hessian, shifted by as much as it takes to be positive definite."""
        diagonal = np.diagonal(hessian).copy()
        while True:
            np.fill_diagonal(hessian, diagonal + self.shift)
            direction = positive_solution(hessian, slope)
            if direction is not None:
                return direction
            self.shift = max(4 * self.shift, unit)

    def columns(self, here: Place) -> Any:
        """The columns to change: the support, and what is to enter it."""
        return here.columns_to_change(FEWEST_ENTERING)

    def stopping(self, here: Place) -> Callable[[Any], Any]:
        """The map from an x to the entries that meet a kink on the way there: they stop at it, at zero."""
        signs = np.where(here.x != 0, np.sign(here.x), -np.sign(here.slope))
        kinks = as_numpy(self.problem.penalty.kinks(here.point.x))
        return lambda full: kinks & (full * signs <= 0)

    def _search(self, here: Place, columns: Any, direction: Any) -> Place | None:
        """Halve the step until the objective falls."""
        problem, x, slope = self.problem, here.x[columns], here.slope[columns]
        stops, self.length = self.stopping(here), 1.0
        for _ in range(NEWTON_HALVINGS):
            full = here.x.copy()
            full[columns] = x + self.length * direction
            full[stops(full)] = 0
            moved = full[columns]
            point = problem.loss.point(like(full, here.point.x))
            value = objective(problem.loss, problem.penalty, point)
            if value < here.objective + 1e-4 * min(float(slope @ (moved - x)), 0.0):
                return problem.place(point, value)
            if self.length == 1 and value <= here.objective + problem.rounding(here):
                # Near the end only the slope can tell.
                new = problem.place(point, value)
                if new.violation < 0.5 * here.violation:
                    return new
            self.length *= 0.5
        self.length = 0.0
        return None


def hessian_product(problem: SmoothProblem, place: Place, columns: Any) -> Callable[[Any], Any]:
    """The map ``v -> H v`` with the Hessian H of the objective's smooth piece: two products, and no matrix."""
    loss = problem.loss.hessian_product(place.point, columns)
    penalty = problem.penalty.curvature(place.point.x).product(columns)

    def product(v: Any) -> Any:
        there = like(v, place.point.x)
        return as_numpy(loss(there) + penalty(there))

    return product


def positive_solution(matrix: Any, right: Any) -> Any:
    """The solution of a linear system with a symmetric matrix; None unless it is positive definite."""
    if right.size == 0:
        return right
    # LAPACK by itself: SciPy's own checks took as long as a system of a hundred unknowns.
    factor, info = dpotrf(matrix.T, lower=1, clean=0)
    return dpotrs(factor, right, lower=1)[0] if info == 0 else None


def descending(product: Callable[[Any], Any], shift: float, slope: Any) -> Any:
    """About ``-(H + shift I)^-1 slope`` by conjugate gradients, cut off where the curvature is not positive."""
    return conjugate_gradients(
        lambda v: product(v) + shift * v, -slope, tol=CONJUGATE_ACCURACY, max_iter=CONJUGATE_STEPS
    )


# nmAPG takes FIRST_STEPS steps before Newton's method is tried, and twice as many each time after that. Newton's
# method has NEWTON_STEPS each time: some 10 to 40 do as a rule, and more were seen to go to and fro.
FIRST_STEPS, NEWTON_STEPS = 50, 50


@dataclass(frozen=True)
class GroupNewton:
    """The default for groups: nmAPG until some are found, then Newton's method in these.

    Where no group is zero the objective is smooth. Each step solves with its Hessian in the groups in use; groups
    that would turn back through zero leave. A proximal step follows, by which others enter. Where this finds no
    way down, nmAPG goes on, for twice as many steps as before.

    Notes
    -----
    For real vectors x. Where columns are out of memory, or thousands are in use, all steps are nmAPG's.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import GroupL12, SquaredLoss, minimize, solvers
    >>> loss = SquaredLoss(np.eye(4), [3.0, -4.0, 0.5, 0.5])
    >>> minimize(loss, GroupL12([0, 0, 1, 1], 1.0, 0.0), solver=solvers.GroupNewton(), tol=1e-12).x.round(4)
    array([ 2.4, -3.2,  0. ,  0. ])
    """

    needs: ClassVar[Needs] = Needs(ColumnLoss, GroupPenalty, x="real vector, columns at hand")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        problem, point, steps = SmoothProblem(loss, penalty), start, FIRST_STEPS
        take_newton_step = _StepInGroups(problem)
        take_proximal_step = ProximalStep(loss, penalty, "backtracking", start)
        is_far = loss.out_of_memory
        while True:
            for n, iterate in enumerate(NonmonotoneAPG().iterates(loss, penalty, point), 1):
                yield iterate
                if n >= steps and not is_far:
                    break
            here = problem.place(iterate.point)
            for _ in range(NEWTON_STEPS):
                new = take_newton_step(here)
                old, lower = here, new or here
                here = problem.lower(take_proximal_step(lower.point), lower)
                yield here.iterate
                if new is None or not problem.is_progress(old, here):
                    break
            point, steps = here.point, 2 * steps


class _StepInGroups(NewtonStep):
    """A step of Newton's method in the groups that are not zero."""

    def __call__(self, here: Place) -> Place | None:
        """The place after the step; None where there is none, or too many columns are in use."""
        return super().__call__(here) if np.count_nonzero(here.x) <= LARGEST_SUPPORT else None

    def columns(self, here: Place) -> Any:
        """Those in use: groups enter by proximal steps."""
        return np.flatnonzero(here.x)

    def stopping(self, here: Place) -> Callable[[Any], Any]:
        """The map from an x to the entries of groups that would turn back through zero."""
        x, used = here.point.x, here.x != 0
        return lambda full: used & as_numpy(self.problem.penalty.sign_changes(x, like(full, x)))

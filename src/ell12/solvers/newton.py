"""Newton's method on the support, and in groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_array_of, as_numpy, norm, precision, rounding
from ell12.checks import check_scalars
from ell12.operators.krylov import conjugate_gradients
from ell12.protocols import Array, ColumnLoss, GroupPenalty, Iterate, Needs, PiecewisePenalty, Point
from ell12.solvers.gram_descent import ROUNDS, positive_solution
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.proximal_step import ProximalStep, check_step, objective


@dataclass(frozen=True)
class EvaluatedPoint:
    """A point with its gradient, objective and violation."""

    point: Point
    x: Any  # as a NumPy vector
    gradient: Array
    slope: Any  # the smallest subgradient of the objective, as a NumPy vector: zero where nothing is violated
    objective: float
    violation: float

    @property
    def iterate(self) -> Iterate:
        """What a solver yields."""
        return Iterate(self.point, self.objective, self.violation, self.gradient)


class SmoothProblem:
    """A `ell12.protocols.ColumnLoss` and a penalty with slopes and curvature, for NumPy vectors."""

    def __init__(self, loss: Any, penalty: Any) -> None:
        self.loss, self.penalty, self.shift = loss, penalty, 0.0

    def evaluate(self, point: Point, value: float | None = None, gradient: Array | None = None) -> EvaluatedPoint:
        """One product with the adjoint of A, unless the gradient is known."""
        gradient, x = self.loss.gradient(point) if gradient is None else gradient, as_numpy(point.x)
        slope = as_numpy(self.penalty.least_slope(point.x, gradient))
        value = objective(self.loss, self.penalty, point) if value is None else value
        return EvaluatedPoint(point, x, gradient, slope, value, self._violation(point, x, gradient, slope))

    def _violation(self, point: Point, x: Any, gradient: Array, slope: Any) -> float:  # noqa: ARG002
        return self.penalty.violation(point.x, gradient)

    def lower(self, point: Point, current: EvaluatedPoint) -> EvaluatedPoint:
        """The evaluation of a point, or the current one if its objective is lower."""
        new = self.evaluate(point)
        return new if new.objective <= current.objective + self.rounding(current) else current

    def is_progress(self, old: EvaluatedPoint, new: EvaluatedPoint) -> bool:
        """Whether the violation was halved or the objective decreased by more than rounding."""
        return new.violation < 0.5 * old.violation or new.objective < old.objective - self.rounding(old)

    def rounding(self, current: EvaluatedPoint) -> float:
        """The rounding error of an objective, by the terms that it sums."""
        return rounding(max(abs(current.objective), self.loss.value_scale), current.x)

    def may_use_newton(self, point: Point) -> bool:
        """Whether so few entries are in use that systems in these are soon solved."""
        count = int(np.count_nonzero(as_numpy(point.x)))
        return count <= LARGEST or not self.fits(count)

    def support(self, current: EvaluatedPoint) -> Any:
        """The columns in use."""
        return np.flatnonzero(current.x)

    def crossing(self, current: EvaluatedPoint, full: Any) -> Any:
        """Which entries would meet zero, or their group would, on the way to an x."""
        changes = self.penalty.sign_changes(current.point.x, as_array_of(full, current.point.x))
        return (current.x != 0) & as_numpy(changes)

    def may_grow(self, current: EvaluatedPoint) -> bool:
        """Whether entries that are zero violate the condition, so that they may enter."""
        return bool(current.slope[current.x == 0].any())

    def fits(self, columns: int) -> bool:
        """Whether a dense Hessian in this number of columns is small compared with the data."""
        return columns <= self.loss.most_columns

    def newton_step(self, current: EvaluatedPoint) -> EvaluatedPoint | None:
        """What a step on the support leads to that decreases the objective; None where there is none.

        The Hessian is shifted until the objective decreases.
        """
        columns = self.support(current)
        slope = current.slope[columns].astype(np.float64)
        if not slope.any():
            return None
        solve, unit = self._system(current, columns, slope)
        for _ in range(ROUNDS):
            direction = solve(self.shift)
            if direction is not None:
                full = current.x.copy()
                full[columns] += direction
                full[self.crossing(current, full)] = 0
                new = self._lower(current, full, float(slope @ (full - current.x)[columns]))
                if new is not None:
                    self.shift = self.shift / 4 if self.shift > unit else 0.0
                    return new
            self.shift = max(4 * self.shift, unit)
        self.shift = 0.0
        return None

    def _system(self, current: EvaluatedPoint, columns: Any, slope: Any) -> tuple[Callable[[float], Any], float]:
        """Newton's direction under a shift, None where the Hessian is not positive; and the unit of shifts."""
        own, x = self.penalty.curvature(current.point.x), current.point.x
        unit = self.penalty.alpha / (norm(current.x) or math.inf)  # a curvature of the penalty's size
        if not self.fits(columns.size):  # two products in place of a dense matrix
            loss, penalty = self.loss.hessian_product(current.point, columns), own.product(columns)
            steps = {"tol": precision(slope) ** 0.5, "max_iter": columns.size}

            def by_products(shift: float) -> Any:
                return conjugate_gradients(
                    lambda v: as_numpy(loss(as_array_of(v, x))) + penalty(v) + shift * v, -slope, **steps
                )

            return by_products, unit or 1.0
        hessian = np.add(
            as_numpy(self.loss.hessian(current.point, columns)), own.matrix(columns), dtype=np.float64
        )
        diagonal = np.diagonal(hessian).copy()
        unit = max(unit, len(diagonal) * precision(slope) * float(np.abs(diagonal).max(initial=0.0))) or 1.0

        def solve(shift: float) -> Any:
            np.fill_diagonal(hessian, diagonal + shift)
            return positive_solution(hessian, -slope, diagonal)

        return solve, unit

    def _lower(self, current: EvaluatedPoint, full: Any, linear: float) -> EvaluatedPoint | None:
        """The evaluation of an x, if the objective decreases by enough or, near the end, the violation."""
        point = self.loss.point(as_array_of(full, current.point.x))
        value = objective(self.loss, self.penalty, point)
        if value < current.objective + 1e-4 * min(linear, 0.0):
            return self.evaluate(point, value)
        level = value <= current.objective + self.rounding(current)
        new = self.evaluate(point, value) if level else current
        return new if new.violation < 0.5 * current.violation else None


class PiecewiseProblem(SmoothProblem):
    """The same with a `ell12.protocols.PiecewisePenalty`, whose kinks lie at zero in each entry."""

    def __init__(self, loss: Any, penalty: Any) -> None:
        super().__init__(loss, penalty)
        below, above = map(as_numpy, penalty.slopes_at_zero(loss.start()))
        sides, penalised = np.stack([-below, above]), (below < 0) & (above > 0)
        self.steepest = float(sides[np.isfinite(sides)].max(initial=0.0))  # slope at zero: alpha, as a rule
        self._penalised = slice(None) if penalised.all() else penalised

    def _violation(self, point: Point, x: Any, gradient: Array, slope: Any) -> float:
        # Only where all that is penalised is zero, so that a subtracted norm has no slope, is there more to a
        # violation than the slope.
        zero = not np.any(x[self._penalised])
        return self.penalty.violation(point.x, gradient) if zero else float(np.abs(slope).max(initial=0.0))

    def support(self, current: EvaluatedPoint) -> Any:
        """The columns in use, and those that have no kink."""
        return np.flatnonzero((current.x != 0) | ~as_numpy(self.penalty.kinks(current.point.x)))

    def may_grow(self, current: EvaluatedPoint) -> bool:
        """The same; not while there are more entries than rows, whose columns are dependent."""
        return np.count_nonzero(current.x) <= current.point.prediction.shape[0] and super().may_grow(current)

    def crossing(self, current: EvaluatedPoint, full: Any) -> Any:
        """Which entries would meet a kink at zero on the way to an x."""
        return as_numpy(self.penalty.kinks(current.point.x)) & (full * np.sign(current.x) <= 0)


# nmAPG takes this many steps before Newton's method is tried in groups, and twice as many each time after that (36
# fits with groups took 0.7 s, with 1000 steps 1.7 s); ROUNDS times as many on a support that is not nearly
# stationary before, where minima after 50 steps lay up to 20 % higher under MCP.
FIRST_STEPS = 50
# Newton's method does not begin in more entries than this, and working sets hold no more columns: their dense
# Hessian would take seconds to factorize.
LARGEST = 3000


class _NewtonSolver:
    """nmAPG, then Newton's method where the objective is smooth, each step followed by a proximal one."""

    step: float | str = "lipschitz"
    switch: float = 0.0
    first_steps: ClassVar[int] = FIRST_STEPS
    problem: ClassVar[type[SmoothProblem]] = SmoothProblem

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        problem, point, steps = self.problem(loss, penalty), start, self.first_steps
        take_proximal_step = ProximalStep(loss, penalty, self.step, start)
        while True:
            lowest, left, digit = math.inf, FIRST_STEPS, rounding(1.0, point.x)
            for n, iterate in enumerate(NonmonotoneAPG(self.step).iterates(loss, penalty, point), 1):
                yield iterate
                fell = iterate.objective < lowest - digit * abs(iterate.objective)
                lowest, left = (iterate.objective, FIRST_STEPS) if fell else (lowest, left - 1)
                near = n >= steps or left == 0 or iterate.optimality <= self.switch * penalty.alpha
                if near and not loss.out_of_memory and problem.may_use_newton(iterate.point):
                    break
            current, progress = problem.evaluate(iterate.point), True
            while progress:
                new = problem.newton_step(current)
                old, current = current, new or current
                if new is None or problem.may_grow(current):
                    current = problem.lower(take_proximal_step(current.point), current)
                yield current.iterate
                progress = new is not None and problem.is_progress(old, current)
            point, steps = current.point, 2 * steps


@dataclass(frozen=True)
class SupportNewton(_NewtonSolver):
    """nmAPG until the support is nearly found, then Newton's method on the support.

    On a fixed support with fixed signs the objective is smooth. Each step solves with its Hessian there, shifted
    until it is positive definite; entries that would cross zero leave the support. A proximal step follows where
    others enter. Where this finds no way down, nmAPG goes on, for twice as many steps as before.

    Parameters
    ----------
    switch : float, default 0.1
        The stationarity, estimated by nmAPG, at which Newton's method takes over; it does after 1000 steps in any
        case.
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
    first_steps: ClassVar[int] = ROUNDS * FIRST_STEPS
    problem: ClassVar[type[SmoothProblem]] = PiecewiseProblem
    needs: ClassVar[Needs] = Needs(ColumnLoss, PiecewisePenalty, x="real vector")

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking")
        check_scalars(infinite=True, switch=self.switch)


@dataclass(frozen=True)
class GroupNewton(_NewtonSolver):
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

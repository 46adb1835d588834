"""Working sets: the problem in a few columns at a time, solved there by coordinate descent and Newton's method."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ell12.backend import is_numpy, rounding
from ell12.protocols import (
    ColumnLoss,
    FarLoss,
    Iterate,
    Needs,
    PiecewisePenalty,
    Point,
    PointwiseLoss,
    offers,
    with_alpha,
)
from ell12.solvers.proximal_step import ProximalStep, objective, rise
from ell12.solvers.support import descent
from ell12.solvers.support.first_steps import easier_iterates, first_iterates, lower_iterates
from ell12.solvers.support.homotopy import Homotopy
from ell12.solvers.support.hosting import hosted_iterates
from ell12.solvers.support.newton import SupportNewton
from ell12.solvers.support.place import PiecewiseProblem, Place

# A working set holds this number of violators, where there are as many, even if the support is smaller; half as
# many where looking at all columns costs little and the start is not VERY_FAR: leaps have less to factorize.
SMALLEST = 100
# On a device it holds at least so many times the root of the number of columns, for a Gram matrix is cheap there
# beside a look. On 5000 x 100,000, 30,000 x 30,000 and 20,000 x 80,000 that took three quarters of the time, and
# two thirds of the looks, that 100 violators take; more gained little.
SMALLEST_ON_DEVICE = 2
# Where columns are out of memory, a look at all of them costs more than work with some: sets are larger then, and
# solved better. At seven strengths of two losses this saved a quarter of the looks at 600 x 20,000 genotypes, on
# which it was chosen, and a sixth at 300 x 8000 and 1000 x 20,000 others with correlated neighbours.
SMALLEST_WHERE_FAR, CLOSER_WHERE_FAR = 400, 1e-4
# A working set of more columns is left to `SupportNewton`: its dense Hessian would take seconds to factorize. On
# 5000 x 6000 Gaussian columns a set of 2150 took a third of the time that it takes there; on 6000 x 6500, sets of
# 2500 to 3800 took as long as there, with the same minima.
LARGEST_SET = 3000
# The violation within a working set is brought down to this fraction, then all columns are looked at again.
CLOSER = 0.1
# A working set that takes more rounds of coordinate descent and Newton's method is taken for ill-conditioned.
ROUNDS = 6
# Where the penalty's curvature exceeds this fraction of the loss's, there are many minima. On the paper's problem
# coordinate descent was seen to find worse ones than nmAPG, so `SupportNewton`, which begins with nmAPG, chooses.
BENT = 0.05
# Where the penalty bends more than twice as much as the loss, nmAPG goes on to this stationarity before Newton's
# method takes over. With MCP of gamma 0.1 an early switch found worse minima on 12 of 40 problems, this one on 1.
STRONGLY_BENT, LATE_SWITCH = 2.0, 1e-3
# Up to this number of entries of A, a step of nmAPG in all columns costs little beside the rest.
CHEAP = 2**21
# From a violation at the start of this many times the penalty's steepest slope at zero on, alpha as a rule,
# following a path to the solution is the shorter way.
FAR = 10
# Where nothing else is wrong than more columns than rows, and the problem is not convex, it is from this many on.
# On Gaussian columns, and on such with correlated neighbours, a path took half as long again at a violation of 20
# to 100 alpha, and found the same minima.
VERY_FAR = 200
# Up to this number of entries of A, a path takes no more than some tenths of a second, and is followed as soon as
# coordinate descent has failed. On larger data, such as the paper's 500 x 2000 where both find the same minima,
# `SupportNewton` has its try first. On 144 problems of 40 to 100 rows of cosines at 0.005 to 0.03 of the largest
# alpha, a path led to a lower objective than `SupportNewton` 67 times, to a higher one 26 times.
SHORT = 2**18
# On the way to a path of a convex problem a working set takes at least one violator for ROOM rows, in place of
# SMALLEST: it is crowded only when nearly all rows are used up.
ROOM = 10
# A path begins where the strength is the largest over one of these: the first at which the solution is soon found.
FALLS = (100, 10, 1)
# A path begins at a solution whose violation is at most this fraction of the strength.
EXACT = 1e-9
# `SupportNewton` works on some columns for this number of steps before the others are looked at again.
MOST_NEWTON_STEPS = 5000
# A step towards the minimum of a model is halved at most this often.
MODEL_HALVINGS = 10


@dataclass(frozen=True)
class WorkingSet:
    """The default solver, which works in a few columns at a time.

    A few columns at a time: those in the support and those that violate the first-order condition most.

    Off the support the condition is the Lasso's, ``|gradient_k| <= alpha w_k``: one product with the adjoint of A
    tells which columns are missing. The problem in the columns at hand is solved by coordinate descent on their
    Gram matrix, with the subtracted norm replaced by its tangent, and finished by Newton's method on the support.
    Losses that are not quadratic are replaced by models of second order, one after the other, each step halved
    until the objective falls. Where nothing else lowers the objective a proximal step is taken.

    From a very far start the strength falls step by step, without the subtracted norm: rough solutions come soon,
    and fewer columns look worth changing than the problem itself would show.

    Where the loss is squared, its data small, the start far from stationary and columns dependent, and there is no
    ridge, convex problems come first: the penalty without the subtracted norm at a larger alpha, from whose
    solution the others are followed exactly, down to the penalty's own alpha (`Homotopy`); then the tangent of the
    subtracted norm at that solution, at the next, and so on. These are the steps of DCA from the l1 solution, each
    of them solved exactly. From zero, working sets would commit themselves to wrong columns.

    `SupportNewton` takes over in two cases, in the columns at hand, or in all if these are many: where columns are
    so nearly dependent that coordinate descent takes long; and where the subtracted norm bends the objective so
    much (large alpha, few entries) that there are many minima, of which coordinate descent finds worse ones.

    See Also
    --------
    NonmonotoneAPG : The paper's method.
    SupportNewton : Newton's method on the support.

    Notes
    -----
    For real vectors; for losses whose columns are at hand (`ell12.protocols.ColumnLoss`), which those of a
    LinearOperator are not; and for penalties that tell their smooth pieces (`ell12.protocols.PiecewisePenalty`),
    as `ell12.L12` does. The objective never rises beyond rounding. Data on a GPU stay there
    (`ell12.protocols.HostedLoss`): the problem in a few columns is solved on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, WorkingSet, minimize
    >>> loss = SquaredLoss(np.eye(3), [3.0, -4.0, 0.5])
    >>> minimize(loss, L12(alpha=1.0), solver=WorkingSet(), tol=1e-12).x.round(4)
    array([ 2.5547, -3.8321,  0.    ])
    """

    needs: ClassVar[Needs] = Needs(ColumnLoss, PiecewisePenalty, x="real vector, columns at hand")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield the start, for it may do, and one iterate for each working set or step of `SupportNewton`."""
        if not is_numpy(start.x):
            yield from hosted_iterates(self, loss, penalty, start)
            return
        problem = _ColumnsProblem(loss, penalty, start)
        here = problem.place(start)
        problem.look_for_path(here)
        if not (problem.has_path and problem.is_very_far):
            yield from self._working_set_iterates(problem, here)
            return
        yield here.iterate
        best = yield from first_iterates(problem, here)
        yield from lower_iterates(best, self._working_set_iterates(problem, here), problem.pull)
        problem.has_path = False
        yield from self._working_set_iterates(problem, problem.place(best.point))

    def _working_set_iterates(self, problem: _ColumnsProblem, here: Place) -> Iterator[Iterate]:
        """One iterate for each working set or step of `SupportNewton`."""
        stuck = False
        if problem.has_path and problem.is_very_far:
            here = yield from easier_iterates(problem, here)
        while True:
            yield replace(here.iterate, stuck=stuck)
            if problem.penalty.is_convex and problem.has_path and problem.is_crowded(here):
                here = yield from self._path_iterates(problem, here)
                continue
            old, (new, left) = here, problem.improve(here)
            here = new or problem.proximal_step(here)
            stuck = left is None and not problem.is_progress(old, here)
            if problem.leaves_for_path(here, left):
                here = yield from self._path_iterates(problem, here)
            elif left is not None:
                here = yield from self._newton_iterates(problem, here, left)

    def _path_iterates(self, problem: _ColumnsProblem, here: Place) -> Generator[Iterate, None, Place]:
        """Solutions at falling strengths, then with one tangent after the other, while the way goes on."""
        loss, penalty, problem.has_path = problem.loss, problem.penalty, False
        strength, x = problem.known_solution() or problem.first_solution()
        path, best = Homotopy(loss, penalty.convex, x, strength), here.iterate
        value = reached = math.inf
        while True:
            for point in path.points():
                value, tangent = objective(loss, penalty, point), penalty.subtracted_gradient(point.x)
                if value <= best.objective:
                    best = Iterate(point, value, path.violation(tangent))
                yield best
            if path.left > 0 or value >= reached or path.violation(tangent) <= EXACT * penalty.alpha:
                break
            reached = value
            path.lean(tangent)
        return problem.lower(loss.point(best.point.x), here)

    def _newton_iterates(
        self, problem: _ColumnsProblem, here: Place, columns: Any
    ) -> Generator[Iterate, None, Place]:
        """`SupportNewton` in some columns until these are solved for; in all, if they are many."""
        if columns.size > here.slope.size // 2 and not problem.is_far:
            steps = _falling(problem.loss, problem.penalty, here.point, here.objective, problem.switch)
            if problem.is_bent or not problem.has_path:
                yield from steps
            for inner in islice(steps, MOST_NEWTON_STEPS):
                yield inner
            problem.is_stuck = True
            return problem.place(inner.point)
        loss, penalty = problem.loss.restrict(columns), problem.penalty.restrict(columns)
        start, x = Point(here.point.x[columns], here.point.prediction), here.point.x
        enough = problem.closer * min(here.violation, penalty.alpha or here.violation)
        for inner in islice(_falling(loss, penalty, start, here.objective, problem.switch), MOST_NEWTON_STEPS):
            point = Point(_with_entries(x, columns, inner.point.x), inner.point.prediction)
            if inner.optimality <= enough:
                break
            yield Iterate(point, inner.objective, here.violation)
        else:
            problem.is_stuck = True
        return problem.place(point)


class _ColumnsProblem(PiecewiseProblem):
    """A loss and a penalty, and how to lower their sum within some columns."""

    def __init__(self, loss: Any, penalty: Any, start: Point) -> None:
        super().__init__(loss, penalty, start)
        self._step: ProximalStep | None = None
        self.switch = SupportNewton.switch
        self.has_path = self.is_very_far = self.is_bent = self.is_stuck = False
        self.easier: list[tuple[_ColumnsProblem, Place]] = []  # at falling strengths, roughly solved
        self.free = np.flatnonzero(~penalty.kinks(start.x))
        self.is_far = offers(loss, FarLoss) and loss.is_far
        self.entries = start.x.size * math.prod(start.prediction.shape)
        self.descend = descent.Descent(self.entries)
        if self.is_far:  # then all that is done to small data in all columns costs too much
            self.entries = math.inf
        self.closer = CLOSER_WHERE_FAR if self.is_far else CLOSER
        self.smallest = SMALLEST if self.entries > CHEAP else SMALLEST // 2
        if self.is_far:
            self.smallest = SMALLEST_WHERE_FAR
        if not is_numpy(start.prediction):
            self.smallest = max(SMALLEST, SMALLEST_ON_DEVICE * math.isqrt(start.x.size))
        # On small data a loss that is not quadratic was seen to lead to worse minima however little it was bent.
        self.bend_allowed = BENT if loss.is_quadratic or self.entries > CHEAP else 0.0

    def look_for_path(self, here: Place) -> None:
        """Find out whether a run that begins here may follow a path of convex problems."""
        small = self.entries <= CHEAP and self.loss.is_quadratic and here.x.dtype == np.float64
        small = small and is_numpy(here.point.prediction)  # on a device each of its many steps would be a call
        far = small and here.violation > FAR * self.pull > 0 and offers(self.loss, PointwiseLoss)
        self.has_path = far and self.penalty.convex.curvature(here.point.x).largest == 0  # a ridge bends the path
        self.is_very_far = here.violation > VERY_FAR * self.pull
        if self.has_path and self.is_very_far:
            self.smallest = SMALLEST

    @property
    def path_is_next(self) -> bool:
        """Whether a path, if there is one, comes as soon as columns are crowded."""
        return self.penalty.is_convex or self.entries <= SHORT

    def leaves_for_path(self, here: Place, left: Any) -> bool:
        """Whether a path is now the better way; ``left`` are columns that descent could not solve for."""
        if self.is_bent or not self.has_path:
            return False
        if self.entries > SHORT:
            return self.is_stuck
        return left is not None or (self.is_very_far and self.is_crowded(here))

    def is_crowded(self, here: Place) -> bool:
        """Whether the working set has more columns than there are rows, so that these must be dependent."""
        return self.columns(here).size > here.point.prediction.shape[0]

    def is_hopeless(self, here: Place) -> bool:
        """Whether descent is not tried, as a path, or `SupportNewton`, comes next."""
        return self.is_very_far and self.has_path and self.is_crowded(here)

    def at_strength(self, strength: float, start: Place) -> _ColumnsProblem:
        """The same at another strength, without the subtracted norm."""
        convex = self.penalty.convex
        easier = _ColumnsProblem(self.loss, with_alpha(convex, convex.alpha * strength / self.pull), start.point)
        easier.smallest = self.smallest
        if self.penalty.is_convex:  # its columns must not be crowded
            easier.has_path = easier.is_very_far = True
            easier.smallest = min(self.smallest, start.point.prediction.shape[0] // ROOM)
        return easier

    def known_solution(self) -> tuple[float, Any] | None:
        """The smallest strength at which the problem without its subtracted norm is solved, and the solution."""
        for problem, rough in reversed(self.easier):
            solution = problem.solve(rough)
            if solution is not None:
                return problem.penalty.alpha, solution.point.x
        return None

    def solve(self, here: Place) -> Place | None:
        """The place of the solution; None if it is not soon found."""
        while here.violation > EXACT * self.penalty.alpha:
            new, left = self.improve(here)
            if new is None or left is not None:
                return None
            here = new
        return here

    def first_solution(self) -> tuple[float, Any]:
        """A strength at which the problem without its subtracted norm is soon solved, and the solution."""
        convex, zero = self.penalty.convex, self.loss.point(self.loss.start())
        top = _ColumnsProblem(self.loss, convex, zero).place(zero).violation
        for fall in FALLS:
            strength = max(top / fall, convex.alpha)
            easier = _ColumnsProblem(self.loss, with_alpha(convex, strength), zero)
            here = easier.solve(easier.place(zero))
            if here is not None:
                return strength, here.point.x
        return strength, zero.x

    def proximal_step(self, here: Place) -> Place:
        """The place after a proximal step, whose length is found by backtracking."""
        self._step = self._step or ProximalStep(self.loss, self.penalty, "backtracking", here.point)
        new = self.place(self._step(here.point))
        return new if new.objective <= here.objective else here

    def columns(self, here: Place, most: int = 0) -> Any:
        """The working set; ``most`` violators are taken, where there are as many."""
        # Columns beyond the number of rows are dependent, and the farther the start, the more look worth changing.
        rows = here.point.prediction.shape[0]
        largest = rows if self.has_path and self.is_very_far and not most else math.inf
        return here.columns_to_change(self.smallest, self.free, most, largest)

    def columns_for_newton(self, here: Place) -> Any:
        """The columns that are left to `SupportNewton`: all that violate, or few where they are out of memory."""
        return self.columns(here, most=0 if self.is_far else here.slope.size)

    def improve(self, here: Place) -> tuple[Place | None, Any]:
        """A better place, or None; and the columns, if any, that are better left to `SupportNewton`."""
        columns = self.columns(here)
        if columns.size > LARGEST_SET or not self.fits(columns.size):
            return here, self.columns_for_newton(here)
        # Zero may be no minimum though nothing violates the Lasso's condition there; a prox leads away from it.
        if np.abs(here.slope[columns]).max(initial=0.0) <= self.closer * here.violation:
            return None, None
        point, model = (self._quadratic if self.loss.is_quadratic else self._general)(here, columns)
        bend = model.bend
        self.switch = LATE_SWITCH if bend > STRONGLY_BENT else SupportNewton.switch
        self.is_bent = bend > self.bend_allowed
        if self.is_bent and here.violation > CLOSER * self.penalty.alpha:
            return here, columns if self.entries > CHEAP else np.arange(here.slope.size)
        new = self._better(self.place(point), here)
        return new, None if model.solved else self.columns_for_newton(new or here)

    def _better(self, new: Place, here: Place) -> Place | None:
        """The new place if its objective is lower or, near the end where only slopes can tell, its violation."""
        if new.objective < here.objective:
            return new
        level = (
            new.objective <= here.objective + self.rounding(here)
            or rise(self.loss, self.penalty, new.point, here.point, here.gradient) <= 0
        )
        return new if level and new.violation < here.violation else None

    def _quadratic(self, here: Place, columns: Any) -> tuple[Point, descent.Model]:
        """The quadratic loss is its own model."""
        penalty, x = self.penalty.restrict(columns), here.point.x
        hessian = self.loss.hessian(here.point, columns)
        model = descent.Model(hessian, penalty, x[columns], here.gradient[columns], self.descend)
        model.minimise(self.closer * here.violation, 0 if self.is_hopeless(here) else ROUNDS)
        return self.loss.point_within(_with_entries(x, columns, model.x), columns), model

    def _general(self, here: Place, columns: Any) -> tuple[Point, descent.Model]:
        """Models of second order around one point after the other."""
        loss, penalty = self.loss.restrict(columns), self.penalty.restrict(columns)
        point, gradient = Point(here.point.x[columns], here.point.prediction), here.gradient[columns]
        every = np.arange(columns.size)
        for _ in range(ROUNDS):
            hessian = np.asarray(loss.hessian(point, every), dtype=np.float64)
            model = descent.Model(hessian, penalty, point.x, gradient, self.descend)
            model.minimise(0.5 * self.closer * here.violation, ROUNDS)
            new = _search(loss, penalty, point, loss.point(model.x.astype(point.x.dtype)))
            if new is None:
                break
            point, gradient = new, loss.gradient(new)
            if penalty.violation(point.x, gradient) <= self.closer * here.violation:
                break
        return Point(_with_entries(here.point.x, columns, point.x), point.prediction), model


def _falling(loss: Any, penalty: Any, start: Point, value: float, switch: float) -> Iterator[Iterate]:
    """The iterates of `SupportNewton`, the best so far standing in for those that lie higher."""
    best = Iterate(start, value, math.inf)
    for iterate in SupportNewton(switch).iterates(loss, penalty, start):
        if iterate.objective <= best.objective + rounding(best.objective, start.x):
            best = iterate
        yield best


def _search(loss: Any, penalty: Any, point: Point, towards: Point) -> Point | None:
    """The first point of lower objective, the way halved again and again; None if there is none."""
    value, move = objective(loss, penalty, point), towards - point
    if objective(loss, penalty, towards) <= value + rounding(value, point.x):
        return towards
    for halving in range(1, MODEL_HALVINGS):
        new = point + 0.5**halving * move
        if objective(loss, penalty, new) < value:
            return new
    return None


def _with_entries(x: Any, columns: Any, values: Any) -> Any:
    """A vector of the size and dtype of x with these entries, zero elsewhere."""
    full = np.zeros_like(x)
    full[columns] = values
    return full

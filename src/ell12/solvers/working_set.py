"""Working sets: a few columns at a time, solved by coordinate descent and Newton's method on their Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_numpy, indices_like, is_array, is_numpy, rounding
from ell12.protocols import (
    ColumnLoss,
    Iterate,
    Needs,
    PiecewisePenalty,
    Point,
    with_alpha,
)
from ell12.solvers.gram_descent import GramDescent, minimise_by_models
from ell12.solvers.homotopy import Homotopy
from ell12.solvers.newton import PiecewiseProblem, Place, SupportNewton
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.proximal_step import ProximalStep, objective, rise

# A working set holds this number of violating columns, where there are as many, even if the support is smaller;
# where columns are out of memory, and reading all costs more, it holds FAR_COLUMNS.
VIOLATING, FAR_COLUMNS = 100, 400
# A working set of more columns is left to `SupportNewton`: its dense Hessian would take seconds to factorize.
LARGEST_SET = 3000
# The violation within a working set is brought down to this fraction between two gradients of all columns.
CLOSER = 0.1
# Where the penalty's negative curvature exceeds this fraction of the loss's curvature, there are many minima, of
# which coordinate descent finds worse ones than nmAPG on the paper's problem: `SupportNewton`, which begins with
# nmAPG, chooses. Beyond LATE it stays with nmAPG down to this stationarity.
CURVED, LATE, LATE_SWITCH = 0.05, 2.0, 1e-3
# Up to this number of entries of A a step of nmAPG in all columns costs little, and losses that are not quadratic
# have worse minima however little the penalty is curved.
SMALL = 2**21
# Up to this number a homotopy comes as soon as there are more columns than rows, without descent: on 24 problems
# of 100 x 1000 cosines it led to a lower objective 4 times, to a higher one never.
SHORT = 2**18
# From an initial violation of this many times alpha on, alpha decreases by steps of COLD_FALL.
COLD, COLD_FALL = 200, 0.25
# Where columns are so nearly dependent that Newton's method on the Gram matrix fails, exact paths are followed
# from the first of the largest strength over these at which the solution is found, to this fraction of it, if the
# violation was FAR times alpha. On 100 x 1000 cosines at 1e-6 that took 0.7 s, `SupportNewton` 24 s.
STRENGTHS, EXACT, FAR = (100, 10, 1), 1e-9, 10
# A working set that takes more rounds of descent and Newton's method is taken for ill-conditioned.
ROUNDS = 6
# `SupportNewton` works on some columns for this number of steps before the others are looked at again.
NEWTON_STEPS = 5000
# Data on a GPU: where more than one entry in DENSE is not zero, and more than MANY, nmAPG goes on there.
DENSE, MANY = 6, 2000


@dataclass(frozen=True)
class WorkingSet:
    """The default solver, which works in a few columns at a time.

    A few columns at a time: those in the support and those that violate the first-order condition most.

    Off the support the condition is the Lasso's, ``|gradient_k| <= alpha w_k``: one product with the adjoint of A
    tells which columns are missing. The problem in the columns at hand is solved by coordinate descent and by
    Newton's method on their Gram matrix (`ell12.solvers.gram_descent`). A loss that is not quadratic is replaced
    by models of second order, one after the other. Where nothing else decreases the objective a proximal step is
    taken.

    See Also
    --------
    NonmonotoneAPG : The paper's method.
    SupportNewton : Newton's method on the support.

    Notes
    -----
    For real vectors; for losses whose columns are at hand (`ell12.protocols.ColumnLoss`), which those of a
    LinearOperator are not; and for penalties that tell their smooth pieces (`ell12.protocols.PiecewisePenalty`),
    as `ell12.L12` does. The objective never rises beyond rounding. Data on a GPU stay there
    (``on_host`` of the loss): the problem in a few columns is solved on the host.

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
        problem = _Columns(loss, penalty, start)
        here, no_progress = problem.place(start), False
        problem.look_for_homotopy(here)
        if problem.is_cold(here):
            here = yield from problem.colder(here)
        while True:
            yield replace(here.iterate, no_progress=no_progress)
            old, (new, left) = here, problem.improve(here)
            here = new or problem.proximal_step(here)
            no_progress = left is None and not problem.is_progress(old, here)
            if left is not None and problem.use_homotopy and not problem.is_curved:
                here = yield from self._homotopy_iterates(problem, here)
            elif left is not None:
                here = yield from self._newton_iterates(problem, here, left)

    def _homotopy_iterates(self, problem: _Columns, here: Place) -> Generator[Iterate, None, Place]:
        """Solutions at decreasing strengths, then with one tangent of the subtracted norm after the other."""
        loss, penalty, problem.use_homotopy = problem.loss, problem.penalty, False
        strength, x = problem.first_solution()
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

    def _newton_iterates(self, problem: _Columns, here: Place, columns: Any) -> Generator[Iterate, None, Place]:
        """`SupportNewton` in some columns until these are solved for; in all, if they are many."""
        if columns.size > here.slope.size // 2 and not problem.is_far:
            yield from _decreasing(problem.loss, problem.penalty, here.point, here.objective, problem.switch)
        loss, penalty = problem.loss.restrict(columns), problem.penalty.restrict(columns)
        start, x = Point(here.point.x[columns], here.point.prediction), here.point.x
        enough = CLOSER * min(here.violation, penalty.alpha or here.violation)
        for inner in islice(_decreasing(loss, penalty, start, here.objective, problem.switch), NEWTON_STEPS):
            point = Point(_with_entries(x, columns, inner.point.x), inner.point.prediction)
            if inner.optimality <= enough:
                break
            yield Iterate(point, inner.objective, here.violation)
        return problem.place(point)


class _Columns(PiecewiseProblem):
    """A loss and a penalty, and how to decrease their sum within some columns."""

    def __init__(self, loss: Any, penalty: Any, start: Point) -> None:
        super().__init__(loss, penalty, start)
        self._step: ProximalStep | None = None
        self.free = np.flatnonzero(~penalty.kinks(start.x))
        self.is_far = loss.out_of_memory
        self.entries = math.inf if self.is_far else start.x.size * math.prod(start.prediction.shape)
        self.switch, self.is_curved, self.use_homotopy = SupportNewton.switch, False, False
        self.fewest = FAR_COLUMNS if self.is_far else VIOLATING

    def look_for_homotopy(self, here: Place) -> None:
        """Find out whether a run that begins here may follow an exact path of convex problems."""
        small = self.entries <= SMALL and self.loss.is_quadratic and here.x.dtype == np.float64
        small = small and is_numpy(here.point.prediction)  # on a device each of its many steps would be a call
        far = small and here.violation > FAR * self.pull > 0 and self.loss.curvature(here.point) is not None
        self.use_homotopy = far and self.penalty.convex.curvature(here.point.x).largest == 0

    def first_solution(self) -> tuple[float, Any]:
        """A strength at which the problem without its subtracted norm is soon solved, and the solution."""
        convex, zero = self.penalty.convex, self.loss.point(self.loss.start())
        top = _Columns(self.loss, convex, zero).place(zero).violation
        for fall in STRENGTHS:
            strength = max(top / fall, convex.alpha)
            easier = _Columns(self.loss, with_alpha(convex, strength), zero)
            here: Place | None = easier.place(zero)
            left = None
            while here is not None and left is None and here.violation > EXACT * strength:
                here, left = easier.improve(here)
            if here is not None and left is None:
                return strength, here.point.x
        return strength, zero.x

    def is_cold(self, here: Place) -> bool:
        """Whether the start is so far from stationary that larger strengths come first."""
        return self.loss.is_quadratic and here.violation > COLD * self.pull > 0

    def colder(self, here: Place) -> Generator[Iterate, None, Place]:
        """Continuation: solutions of low accuracy at decreasing alpha, without the subtracted norm."""
        strength, there = here.violation, here
        while COLD_FALL * strength > self.pull:
            strength *= COLD_FALL
            easier = _Columns(
                self.loss, with_alpha(self.penalty.convex, strength * self.penalty.alpha / self.pull), there.point
            )
            there = easier.place(there.point, gradient=there.gradient)
            while there.violation > 0.5 * strength:
                new, left = easier.improve(there)
                if new is None or left is not None:
                    return here
                there = new
            found = self.place(there.point, gradient=there.gradient)
            here = found if found.objective <= here.objective else here
            yield here.iterate
        return here

    def proximal_step(self, here: Place) -> Place:
        """The place after a proximal step, whose length is found by backtracking."""
        self._step = self._step or ProximalStep(self.loss, self.penalty, "backtracking", here.point)
        new = self.place(self._step(here.point))
        return new if new.objective <= here.objective else here

    def columns(self, here: Place, most: int = 0) -> Any:
        """The working set; ``most`` violators are taken, where there are as many."""
        return here.columns_to_change(self.fewest, self.free, most)

    def columns_for_newton(self, here: Place) -> Any:
        """The columns that are left to `SupportNewton`: all that violate, or few where they are out of memory."""
        return self.columns(here, most=0 if self.is_far else here.slope.size)

    def improve(self, here: Place) -> tuple[Place | None, Any]:
        """A better place, or None; and the columns, if any, that are better left to `SupportNewton`."""
        columns = self.columns(here)
        if columns.size > LARGEST_SET or not self.fits(columns.size):
            return here, self.columns_for_newton(here)
        is_short = self.use_homotopy and self.entries <= SHORT
        if is_short and columns.size > here.point.prediction.shape[0]:  # these must be dependent
            self.is_curved = False
            return here, columns
        # Zero may be no minimum though nothing violates the Lasso's condition there; a prox leads away from it.
        if np.abs(here.slope[columns]).max(initial=0.0) <= CLOSER * here.violation:
            return None, None
        penalty, x = self.penalty.restrict(columns), here.point.x
        model = GramDescent(self.loss.hessian(here.point, columns), x[columns], here.gradient[columns])
        target = CLOSER * here.violation
        solved = model.solve(penalty, target, ROUNDS)
        if self._is_strongly_curved(model, penalty) and here.violation > CLOSER * self.penalty.alpha:
            return here, columns if self.entries > SMALL else np.arange(x.size)
        if self.loss.is_quadratic:
            point = self.loss.point_within(_with_entries(x, columns, model.x), columns)
        else:
            start = Point(x[columns], here.point.prediction)
            loss = self.loss.restrict(columns)
            inner, _, solved = minimise_by_models(loss, penalty, start, here.gradient[columns], target)
            point = Point(_with_entries(x, columns, inner.x), inner.prediction)
        new = self._better(self.place(point), here)
        return new, None if solved else self.columns_for_newton(new or here)

    def _is_strongly_curved(self, model: GramDescent, penalty: Any) -> bool:
        """Whether there are many minima, of which nmAPG inside `SupportNewton` is to choose."""
        ratio = model.curvature_ratio(penalty)
        self.switch = LATE_SWITCH if ratio > LATE else SupportNewton.switch
        self.is_curved = ratio > (CURVED if self.loss.is_quadratic or self.entries > SMALL else 0.0)
        return self.is_curved

    def _better(self, new: Place, here: Place) -> Place | None:
        """The new place if its objective is lower or, near the end where only slopes can tell, its violation."""
        if new.objective < here.objective:
            return new
        level = (
            new.objective <= here.objective + self.rounding(here)
            or rise(self.loss, self.penalty, new.point, here.point, here.gradient) <= 0
        )
        return new if level and new.violation < here.violation else None


def _decreasing(loss: Any, penalty: Any, start: Point, value: float, switch: float) -> Iterator[Iterate]:
    """The iterates of `SupportNewton`, the best so far standing in for those that lie higher."""
    best = Iterate(start, value, np.inf)
    for iterate in SupportNewton(switch).iterates(loss, penalty, start):
        if iterate.objective <= best.objective + rounding(best.objective, start.x):
            best = iterate
        yield best


def _with_entries(x: Any, columns: Any, values: Any) -> Any:
    """A vector of the size and dtype of x with these entries, zero elsewhere."""
    full = np.zeros_like(x)
    full[columns] = values
    return full


def hosted_iterates(solver: Any, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
    """The iterates of a solver that works on NumPy vectors, the loss seen from the host, and sent to its data.

    They carry their gradients, so that a certificate costs no product. Once they have many entries, nmAPG goes on.
    """
    host = loss.on_host()
    for iterate in solver.iterates(host, hosted_penalty(penalty), host.point(as_numpy(start.x))):
        point = Point(*(_sent(part, start.x) for part in (iterate.point.x, iterate.point.prediction)))
        yield replace(iterate, point=point, gradient=_sent(iterate.gradient, start.x))
        count, is_there = np.count_nonzero(iterate.point.x), not is_numpy(iterate.point.prediction)
        if loss.is_quadratic and is_there and count > max(MANY, iterate.point.x.size // DENSE):
            yield from NonmonotoneAPG().iterates(loss, penalty, point)


def _sent(part: Any, x: Any) -> Any:
    """A NumPy array where x is; anything else as it is."""
    return indices_like(part, x) if is_numpy(part) else part


def hosted_penalty(penalty: Any) -> Any:
    """The same penalty with its weights and bounds as NumPy arrays."""
    if is_array(penalty):
        return as_numpy(penalty)
    if not is_dataclass(penalty):
        return penalty
    parts = {field.name: vars(penalty)[field.name] for field in fields(penalty) if field.init}
    changed = {name: hosted_penalty(part) for name, part in parts.items()}
    changed = {name: part for name, part in changed.items() if part is not parts[name]}
    return replace(penalty, **changed) if changed else penalty  # type: ignore[type-var]

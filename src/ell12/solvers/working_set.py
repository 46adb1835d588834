"""Working sets: a few columns at a time, solved by coordinate descent and Newton's method on their Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np

from ell12.backend import as_numpy, indices_like, is_array, is_numpy, rounding
from ell12.operators.gram import SMALL
from ell12.protocols import ColumnLoss, Iterate, Needs, PiecewisePenalty, Point
from ell12.solvers.gram_descent import GramDescent, minimise_by_models
from ell12.solvers.homotopy import ROUNDING, Homotopy
from ell12.solvers.newton import LARGEST, EvaluatedPoint, PiecewiseProblem, SupportNewton
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.proximal_step import ProximalStep, objective, rise

# A working set holds this number of violating columns, where there are as many, even if the support is smaller; of
# a path, solutions with no more entries are sought from that of the Lasso too (constants in results/race_sparse).
FEW = 100
# The violation within a working set is brought down to this fraction between two gradients of all columns.
CLOSER = 0.1
# Where the penalty's negative curvature exceeds this fraction of the loss's curvature, there are many minima, of
# which coordinate descent finds worse ones than nmAPG on the paper's problem: `SupportNewton`, which begins with
# nmAPG, chooses (results/race). Beyond LATE nmAPG goes on to its end. With 1 in place of 2, of 360 problems under
# MCP 129 have lower minima and 33 higher ones, but a plain fit on 200 x 500 takes 77 iterations in place of 20.
CURVED, LATE = 0.05, 2.0
# From an initial violation of this many times alpha on, an exact path may be followed.
FAR = 100
# `SupportNewton` works on some columns for this number of steps before the gradient in the others is computed.
MOST_STEPS = 5000
# Data on a GPU: where more entries are not zero, nmAPG goes on there. On 20,000 x 80,000 a path of 50 strengths
# down to 1000 entries took 0.5 s from the host and 3.7 s side by side; one down to 7000 took 25 s and 3.7 s
# (results/gpu).
MOST_ENTRIES = 1500


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
        """Yield the start, for it may do, and one iterate for each working set or step of another solver."""
        if not is_numpy(start.x):
            yield from hosted_iterates(self, loss, penalty, start)
            return
        problem, no_progress = _Columns(loss, penalty, start), False
        current = problem.evaluate(start)
        problem.may_follow = problem.allows_homotopy(current)
        if problem.begins_convex(current):
            current = yield from problem.convex_iterates(current)
        while True:
            yield replace(current.iterate, no_progress=no_progress)
            old, (new, ending) = current, problem.improve(current)
            current, solver = new or problem.proximal_step(current), problem.solver_after(ending)
            no_progress = solver == "WorkingSet" and not problem.is_progress(old, current)
            if solver == "Homotopy":
                problem.may_follow, others = False, problem.homotopy_iterates(current)
            elif solver == "SupportNewton":
                others = problem.newton_iterates(current, ending)
            else:
                continue
            current = yield from others


_Iterates = Generator[Iterate | None, None, EvaluatedPoint]


# How work on a working set ends: solved in its columns, or as far as rounding lets it be; with a penalty so curved
# that there are many minima; with columns that are nearly dependent, or too many.
Ending = Literal["done", "curved", "unsolved"]


class _Columns(PiecewiseProblem):
    """A loss and a penalty, and how to decrease their sum within some columns."""

    def __init__(self, loss: Any, penalty: Any, start: Point) -> None:
        super().__init__(loss, penalty)
        self._step: ProximalStep | None = None
        self.unpenalised = ~penalty.kinks(start.x)
        entries = math.inf if loss.out_of_memory else start.x.size * math.prod(start.prediction.shape)
        self.is_small, self.may_follow, self.ratio = entries <= SMALL, False, 0.0

    def solver_after(self, ending: Ending) -> str:
        """The rule for which solver works next.

        Working sets do, as long as their problems can be solved. Where the penalty is curved, nmAPG and Newton's
        method on the support choose the minimum. Where columns are nearly dependent, the exact path of a squared
        loss is followed once; then, or for other losses, Newton's method on the support works.
        """
        if ending == "done":
            return "WorkingSet"
        return "Homotopy" if ending == "unsolved" and self.may_follow else "SupportNewton"

    def allows_homotopy(self, current: EvaluatedPoint) -> bool:
        """Whether a run that begins here may follow an exact path of convex problems."""
        point, loss = current.point, self.loss
        small = self.is_small and loss.is_quadratic and current.x.dtype == np.float64
        small = small and is_numpy(point.prediction)  # on a device each of its many steps would be a call
        small = small and self.fits(math.prod(point.prediction.shape))  # its factors are dense
        cold = small and current.violation > FAR * self.steepest > 0 and loss.curvature(point) is not None
        return bool(cold and self.penalty.convex.curvature(point.x).largest == 0)

    def begins_convex(self, current: EvaluatedPoint) -> bool:
        """Whether a run that begins here has the convex problem first: from zero, with more columns than rows.

        Not under a penalty with a curvature at zero, as MCP's, from where nmAPG chooses better.
        """
        point, loss, penalty = current.point, self.loss, self.penalty
        wide = current.x.size > point.prediction.shape[0] and loss.is_quadratic and not loss.out_of_memory
        cold = wide and not (self.may_follow or current.x.any())
        return cold and not penalty.is_convex and penalty.curvature(point.x).largest == 0

    def convex_iterates(self, current: EvaluatedPoint) -> _Iterates:
        """Working sets with the penalty's convex part alone: those that begin there end at lower minima.

        At the minimum in 108 of 112 problems of the paper's kind and 6 of 8 with neighbouring columns alike, in
        place of 100 and 4, in the same time (results/certificates).
        """
        easier = _Columns(self.loss, self.penalty.convex, current.point)
        inner, best = easier.evaluate(current.point, gradient=current.gradient), current.iterate
        while inner.violation > CLOSER**2 * easier.steepest:
            yield best
            new, ending = easier.improve(inner)
            if new is None or ending != "done":
                break
            inner, value = new, objective(self.loss, self.penalty, new.point)
            best = replace(new.iterate, objective=value) if value <= best.objective else best
        return self.evaluate(best.point, gradient=best.gradient)

    def homotopy_iterates(self, current: EvaluatedPoint) -> _Iterates:
        """Solutions at decreasing strengths, then with one tangent of the subtracted norm after the other."""
        loss, penalty, best = self.loss, self.penalty, replace(current.iterate, method="Homotopy")
        path, value, reached = Homotopy(loss, penalty.convex), math.inf, math.inf
        while True:
            for point in path.points():
                if point is None:
                    yield None
                    continue
                value, tangent = objective(loss, penalty, point), penalty.subtracted_gradient(point.x)
                if value <= best.objective:
                    best = Iterate(point, value, path.violation(tangent), method="Homotopy")
                yield best
            if path.left > 0 or value >= reached or path.violation(tangent) <= ROUNDING * penalty.alpha:
                break
            reached = value
            path.add_tangent(tangent)
        return self.lower(loss.point(best.point.x), current)

    def newton_iterates(self, current: EvaluatedPoint, ending: Ending) -> _Iterates:
        """`SupportNewton` in the columns that violate until these are solved for; in all, if they are many."""
        x, out_of_memory = current.point.x, self.loss.out_of_memory
        columns = self.columns(current, 0 if out_of_memory else x.size)
        if ending == "curved" and self.is_small:
            columns = np.arange(x.size)
        solver = SupportNewton(step="backtracking") if self.ratio <= LATE else SupportNewton(0.0)
        if columns.size > x.size // 2 and not out_of_memory:
            yield from _decreasing(solver, self.loss, self.penalty, current.point, current.objective)
        loss, penalty = self.loss.restrict(columns), self.penalty.restrict(columns)
        start = Point(x[columns], current.point.prediction)
        enough = CLOSER * min(current.violation, penalty.alpha or current.violation)
        for inner in islice(_decreasing(solver, loss, penalty, start, current.objective), MOST_STEPS):
            point = Point(_with_entries(x, columns, inner.point.x), inner.point.prediction)
            if inner.optimality <= enough:
                break
            yield Iterate(point, inner.objective, current.violation, method="SupportNewton")
        return self.evaluate(point)

    def proximal_step(self, current: EvaluatedPoint) -> EvaluatedPoint:
        """A proximal step, whose length is found by backtracking."""
        self._step = self._step or ProximalStep(self.loss, self.penalty, "backtracking", current.point)
        return self.lower(self._step(current.point), current)

    def columns(self, current: EvaluatedPoint, most: int = 0) -> Any:
        """The support, what is unpenalised, and the worst violating columns, so that the support at most doubles.

        At least 100 violating columns are taken, and at least ``most``, where there are as many.
        """
        inside = (current.x != 0) | self.unpenalised
        outside = np.flatnonzero(~inside & (current.slope != 0))
        room = max(most, FEW, int(np.count_nonzero(inside)))
        if outside.size > room:
            outside = outside[np.argpartition(-np.abs(current.slope[outside]), room)[:room]]
        inside[outside] = True
        return np.flatnonzero(inside)

    def improve(self, current: EvaluatedPoint) -> tuple[EvaluatedPoint | None, Ending]:
        """A better point, or None; and whether columns are better left to another solver."""
        columns = self.columns(current)
        if self._is_dependent(current, columns) or columns.size > LARGEST or not self.fits(columns.size):
            return current, "unsolved"
        # Zero may be no minimum though nothing violates the Lasso's condition there; a prox leads away from it.
        target = CLOSER * current.violation
        if np.abs(current.slope[columns]).max(initial=0.0) <= target:
            return None, "done"
        loss, penalty, x = self.loss, self.penalty.restrict(columns), current.point.x
        model = GramDescent(loss.hessian(current.point, columns), x[columns], current.gradient[columns])
        solved = model.solve(penalty, target)
        self.ratio = model.curvature_ratio(penalty)
        # Under losses that are not quadratic minima are worse however little the penalty is curved.
        curved = self.ratio > (CURVED if loss.is_quadratic or not self.is_small else 0.0)
        if curved and current.violation > CLOSER * self.penalty.alpha:
            return current, "curved"
        if loss.is_quadratic:
            point = loss.point_within(_with_entries(x, columns, model.x), columns)
        else:
            inner, start = loss.restrict(columns), Point(x[columns], current.point.prediction)
            start = min(inner.point(model.x), start, key=lambda point: objective(inner, penalty, point))
            end, _, solved = minimise_by_models(inner, penalty, start, inner.gradient(start), target)
            point = Point(_with_entries(x, columns, end.x), end.prediction)
        return self._better(self.evaluate(point), current), "done" if solved else "unsolved"

    def _is_dependent(self, current: EvaluatedPoint, columns: Any) -> bool:
        """Whether more columns than rows are to be followed by a homotopy, without descent.

        Where a full set of violating columns is dependent by itself (on 24 problems of 100 x 1000 cosines that led
        to a lower objective 4 times, to a higher one never), or nearly as many columns as rows are in use (on the
        paper's problem descent took 0.03 s with 420 of 500 in use and 3 s with 490, the homotopy 0.15 and 0.4 s).
        """
        rows = current.point.prediction.shape[0]
        many = rows <= FEW or np.count_nonzero(current.x) > 0.9 * rows
        return self.may_follow and columns.size > rows and bool(many)

    def _better(self, new: EvaluatedPoint, current: EvaluatedPoint) -> EvaluatedPoint | None:
        """The new point if its objective is lower or, near the end where only slopes differ, its violation."""
        if new.objective < current.objective:
            return new
        level = (
            new.objective <= current.objective + self.rounding(current)
            or rise(self.loss, self.penalty, new.point, current.point, current.gradient) <= 0
        )
        return new if level and new.violation < current.violation else None


def _decreasing(solver: Any, loss: Any, penalty: Any, start: Point, value: float) -> Iterator[Iterate]:
    """The iterates of `SupportNewton`, the best so far standing in for those that lie higher."""
    best = Iterate(start, value, np.inf, method="SupportNewton")
    for iterate in solver.iterates(loss, penalty, start):
        if iterate.objective <= best.objective + rounding(best.objective, start.x):
            best = replace(iterate, method="SupportNewton")
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
        if loss.is_quadratic and is_there and count > MOST_ENTRIES:
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

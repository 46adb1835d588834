"""The one loop: it runs a solver, times it, records it, stops it, and says how it ended."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from ell12.backend import all_finite, is_array, max_abs, rounding
from ell12.backend.number_types import Starting, X
from ell12.checks import check_counts, check_scalars
from ell12.minimization.result import DataUnavailable, History, Result, Status
from ell12.minimization.rounding_stop import Stall, as_unknown, gradient_resolution, starting_point
from ell12.minimization.run import CheckpointFile, Run, Saved
from ell12.minimization.solver_choice import check_kind, unmet
from ell12.protocols import (
    Array,
    DifferencePenalty,
    Factored,
    Iterate,
    Loss,
    Penalty,
    Point,
    Solver,
    SplitLoss,
    offers,
)
from ell12.solvers import GroupNewton, NonmonotoneAPG, WorkingSet
from ell12.solvers.proximal_step import LONGEST, first_step, known_lipschitz, rise

DEFAULTS = (WorkingSet(), GroupNewton(), NonmonotoneAPG())  # the fastest first; what each needs, it says itself

_CERTIFIED = (Status.CONVERGED, Status.RANK_CAPPED, Status.ROUNDING)


def minimize(
    loss: Starting[X],
    penalty: Any,
    x0: Array | None = None,
    solver: Solver | None = None,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    run: Run | None = None,
) -> Result[X]:
    """Minimise ``loss(x) + penalty(x)``.

    Parameters
    ----------
    loss : Loss
        Such as `ell12.SquaredLoss`.
    penalty : Penalty
        Such as `ell12.L12`.
    x0 : array, optional
        Where to start; zero by default. It is not written to.
    solver : Solver, optional
        By default `ell12.WorkingSet` if it can be used, for groups `ell12.solvers.GroupNewton`, otherwise
        `ell12.NonmonotoneAPG`.
    tol : float, default 1e-4
        Stop when `stationarity` is at most tol, or when rounding keeps it above. 0 runs until another limit.
    max_iter : int, default 10_000
        Stop after this number of iterations.
    run : Run, optional
        A limit of time, a callback, measurements, a checkpoint, progress: see `ell12.Run`.

    Returns
    -------
    Result
        Its ``status`` says how the run ended; there is no error if it did not converge. Ctrl-C returns the best
        iterate so far. If the data are lost, the ``result`` of the error holds it.

    See Also
    --------
    stationarity : How far a point is from stationary.
    solution_path : Solutions for many strengths of any loss and penalty.
    L12Regressor : Regression with a strength of your own choice.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, minimize
    >>> result = minimize(SquaredLoss(np.eye(3), [3.0, -4.0, 0.5]), L12(alpha=1.0))
    >>> result.x.round(4), result.status.name
    (array([ 2.5547, -3.8321,  0.    ]), 'CONVERGED')
    """
    run = check_limits(tol, max_iter, run)
    check_problem(loss, penalty, solver)
    session: Any = loss.for_run()  # type: ignore[attr-defined]
    checkpoint: Any = run.checkpoint
    file = None if checkpoint is None else CheckpointFile(checkpoint)
    saved = file.load(session.start()) if file is not None and checkpoint.resume else None
    start = session.point(starting_point(session, x0 if saved is None else saved.x))
    solver = _chosen(solver, session, penalty, start)
    recorder = _Recorder(session, penalty, start, run, saved, file)
    status = Status.STOPPED
    try:
        status = _run(recorder, iter(solver.iterates(session, penalty, start)), tol, max_iter, run)
    except KeyboardInterrupt:
        pass
    except DataUnavailable as error:
        error.result = recorder.result(Status.DATA_LOST, tol, solver)
        raise
    finally:
        recorder.save(last=True)
    return recorder.result(status, tol, solver)


def stationarity(loss: Loss, penalty: Penalty, x: Array | Point) -> float:
    """The largest violation of the first-order condition at x, divided by the penalty's strength alpha.

    The one measure by which all solvers are compared. For penalties with a ``violation``, as all of ours have, it
    is exact. For others it is the largest entry of ``(x - prox(x - step gradient(x), step)) / step``, step being
    one over the loss's Lipschitz constant; a difference of convex penalties is first linearised at x. Where alpha
    is zero it is not divided. It is infinite where the gradient overflows.

    See Also
    --------
    minimize : Solve any problem of a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, stationarity
    >>> stationarity(SquaredLoss(np.eye(2), [3.0, 0.5]), L12(alpha=1.0), np.array([3.0, 0.0]))
    0.0
    """
    check_problem(loss, penalty)
    point = x if isinstance(x, Point) else loss.point(as_unknown(loss, x, "x"))
    gradient = loss.gradient(point)
    overflows = is_array(gradient) and not all_finite(gradient)
    return math.inf if overflows else certificate(loss, penalty, point, gradient)


def certificate(loss: Loss, penalty: Any, point: Point, gradient: Array | None = None) -> float:
    """`stationarity` at a point, without a product if the gradient is known."""
    gradient = loss.gradient(point) if gradient is None else gradient
    unit = penalty.alpha or 1.0
    exact = penalty.violation(point.x, gradient)
    if exact is not None:
        return exact / unit
    lipschitz = known_lipschitz(loss)
    step = 1 / lipschitz if math.isfinite(lipschitz) else first_step(loss, point)
    if offers(penalty, DifferencePenalty) and max_abs(point.x) > 0:
        # Linearised at x the penalty is convex, and its residual is zero at stationary points alone. At zero,
        # where what is subtracted may have no gradient, the whole penalty is asked.
        gradient, penalty = gradient - penalty.subtracted_gradient(point.x), penalty.convex
    residual = point.x - penalty.prox(point.x - step * gradient, step)
    return max_abs(residual) / (step * unit)


def _run(recorder: _Recorder, iterates: Iterator[Iterate | None], tol: float, max_iter: int, run: Run) -> Status:
    """Advance the iterates until something ends the run."""
    due, pause, stall = 0, 1, Stall()
    for n in range(recorder.n_iter, max_iter):
        iterate = recorder.advance(iterates, run.max_seconds)
        if isinstance(iterate, Status):
            return iterate
        if n >= due and recorder.history["optimality"][-1] <= tol:
            if recorder.certify(iterate) <= tol or iterate.rank_bound:
                return Status.CONVERGED if recorder.stationarity <= tol else Status.RANK_CAPPED
            # The solver's estimate was too optimistic: let it work before paying again.
            due, pause = n + pause, min(2 * pause, LONGEST)
        state = iterate.optimality, iterate.objective, recorder.value_rounding, iterate.no_progress
        if tol > 0 and stall.is_long(*state) and recorder.is_at_rounding(iterate):
            return Status.ROUNDING
        if recorder.show(run):
            return Status.STOPPED
        if recorder.history["seconds"][-1] >= run.max_seconds:
            return Status.MAX_SECONDS
    return Status.MAX_ITER


class _Recorder:
    """The history of a run, its clocks, and its best iterate."""

    def __init__(
        self,
        loss: Loss,
        penalty: Penalty,
        start: Point,
        run: Run,
        saved: Saved | None,
        file: CheckpointFile | None,
    ) -> None:
        self.loss, self.penalty, self.measure, self.file = loss, penalty, dict(run.measure or {}), file
        self.methods = [("", 0)]
        self.unit = penalty.alpha or 1.0
        self.constant = loss.value_scale
        self.rounding = 0.0 if offers(start.x, Factored) else rounding(1.0, start.x)
        objective = loss.value(start) + penalty.value(start.x)
        if not math.isfinite(objective):
            raise ValueError("x0 has no finite objective: does it satisfy the penalty's constraints?")
        names = ("seconds", "cpu_seconds", "objective", "optimality", *self.measure)
        self.history: History = {name: [] for name in names}
        if file is not None:
            file.check_writable(start.x, self.history)
        self.best = self.certified = self.steadiest = Iterate(start, objective, math.inf)
        self.stationarity = math.nan  # of the certified iterate, once there is one
        if saved is None:
            self._record(self.best, 0.0, 0.0)
        else:
            self._continue(saved, objective)

    @property
    def n_iter(self) -> int:
        """How many iterations the history holds: its first row is the start."""
        return min(map(len, self.history.values())) - 1  # Ctrl-C may have cut a row short

    def advance(self, iterates: Iterator[Iterate | None], max_seconds: float) -> Iterate | Status:
        """The next iterate, or why there is none; only what the solver does is timed."""
        wall, cpu, earlier = time.perf_counter(), time.process_time(), self.history["seconds"][-1]
        iterate = next(iterates, Status.ENDED)
        while iterate is None:  # within a long step
            if earlier + time.perf_counter() - wall >= max_seconds:
                return Status.MAX_SECONDS
            iterate = next(iterates, Status.ENDED)
        if isinstance(iterate, Status):
            return iterate
        wall, cpu = (
            earlier + time.perf_counter() - wall,
            self.history["cpu_seconds"][-1] + time.process_time() - cpu,
        )
        self._record(iterate, wall, cpu)
        if iterate.objective < self.best.objective:
            self.best = iterate
        bound = self.best.objective + self.value_rounding
        if iterate.objective <= bound and (
            iterate.optimality < self.steadiest.optimality or self.steadiest.objective > bound
        ):
            self.steadiest = iterate
        if iterate.method != self.methods[-1][0]:
            self.methods.append((iterate.method, self.n_iter))
        if self.file is not None and self.file.due:
            self.save()
        return iterate if math.isfinite(iterate.objective) else Status.NOT_FINITE

    def show(self, run: Run) -> bool:
        """Print a line of progress, one in a second, if asked to; return whether the callback ends the run."""
        before, now = self.history["seconds"][-2:]
        if run.verbose and (int(now) > int(before) or self.n_iter == 1):
            last = {name: column[-1] for name, column in self.history.items()}
            numbers = f"objective {last['objective']:.6g}, stationarity about {last['optimality']:.2g}"
            print(f"ell12: iteration {self.n_iter}, {numbers}, {now:.3g} s")
        return run.ends(self.history)

    def save(self, *, last: bool = False) -> None:
        """Write the best iterate and the history to the checkpoint, if there is one."""
        if self.file is not None:
            self.file.save(self.best.point.x, self.best.objective, self._whole_rows())
            if last:
                self.file.report()

    def certify(self, iterate: Iterate) -> float:
        """The stationarity of an iterate, kept for the result."""
        self.certified = iterate
        if iterate.exact:
            self.stationarity = iterate.optimality / self.unit
        else:
            self.stationarity = certificate(self.loss, self.penalty, iterate.point, iterate.gradient)
        return self.stationarity

    def is_at_rounding(self, iterate: Iterate) -> bool:
        """Whether rounding hides the violation of an iterate, or of the best one where that lies surely lower.

        Steps of a length that is found by backtracking may lead away again, by rounding: the iterate of least
        violation among those that are as low as the best is asked too.
        """
        if self.rounding == 0:  # of matrices in factors it is not known
            return False
        last = self.best if self._is_surely_lower(self.best, iterate) else iterate
        resolution = gradient_resolution(self.loss, last.point.x)
        return any(self.certify(found) * self.unit <= resolution for found in (last, self.steadiest))

    def _is_surely_lower(self, best: Iterate, iterate: Iterate) -> bool:
        """Whether more than rounding lies between two objectives: that of the values, and of the predictions."""
        if iterate.objective - best.objective <= 2 * self.value_rounding:  # that of each of the two
            return False
        if not offers(self.loss, Loss):  # one that tells no divergence, such as the absolute loss
            return True
        slope = self.loss.gradient(best.point) if best.gradient is None else best.gradient
        return rise(self.loss, self.penalty, iterate.point, best.point, slope) > self.value_rounding

    @property
    def value_rounding(self) -> float:
        """How far rounding can lift the best objective, by the terms that a value sums."""
        return self.rounding * max(abs(self.best.objective), self.constant)

    def result(self, status: Status, tol: float, solver: Any) -> Result:
        """The certified iterate of a run that it ended, the best of any other."""
        final = self.certified if status in _CERTIFIED else self.best
        reached = self.stationarity if self.certified is final else math.nan
        if math.isnan(reached) and final.exact:
            reached = final.optimality / self.unit
        elif math.isnan(reached) and status is not Status.DATA_LOST:
            reached = stationarity(self.loss, self.penalty, final.point)
        name = ", ".join(
            [type(solver).__name__, *(f"{method} from {k} on" for method, k in self.methods if method)]
        )
        numbers = final.objective, reached, status, self.n_iter, tol
        return Result(final.point.x, *numbers, name, self._whole_rows())

    def _whole_rows(self) -> History:
        return {name: column[: self.n_iter + 1] for name, column in self.history.items()}

    def _continue(self, saved: Saved, objective: float) -> None:
        """Take over the history of an earlier run, if x has the objective there that it has here."""
        rounding = 1e-4 * (abs(objective) + abs(saved.objective))  # sums in float32 differ by machine
        if not abs(objective - saved.objective) <= rounding:
            raise ValueError(
                f"the checkpoint is of another problem: its x has the objective {objective:g} here,"
                f" but had {saved.objective:g} there"
            )
        rows = len(saved.history["objective"])
        for name, column in self.history.items():
            column.extend(saved.history.get(name, [math.nan] * rows))

    def _record(self, iterate: Iterate, seconds: float, cpu_seconds: float) -> None:
        values = {name: float(f(iterate.point.x)) for name, f in self.measure.items()}
        values |= {"seconds": seconds, "cpu_seconds": cpu_seconds}
        values |= {"objective": iterate.objective, "optimality": iterate.optimality / self.unit}
        for name, value in values.items():
            self.history[name].append(value)


def _chosen(solver: Any, loss: Any, penalty: Any, start: Point) -> Any:
    """The solver, if its needs are met; without one, the first of `DEFAULTS` whose needs are."""
    for candidate in DEFAULTS if solver is None else (solver,):
        reason = unmet(candidate, loss, penalty, start.x)
        if not reason:
            return candidate
    raise TypeError(reason)


def check_problem(loss: Any, penalty: Any, solver: Any = None) -> None:
    """Raise unless these are a loss, a penalty with its strength, and a solver or None."""
    # What a solver needs of a loss beyond that it says itself.
    check_kind(loss, "loss", SplitLoss if offers(loss, SplitLoss) else Loss, "SquaredLoss(A, b)")
    check_kind(penalty, "penalty", Penalty, "L12(1.0)")
    if solver is not None:
        check_kind(solver, "solver", Solver, "NonmonotoneAPG()")
    if penalty.alpha is None:
        name = type(penalty).__name__
        raise ValueError(f"{penalty!r} has no strength: give {name}(alpha=...)")


def check_limits(tol: float, max_iter: int, run: Run | None) -> Run:
    """The run, a plain one for None; an error unless these can limit it."""
    run = Run() if run is None else run
    if not isinstance(run, Run):
        raise TypeError(f"run must be a Run such as Run(max_seconds=60), got {run!r}")
    check_scalars(infinite=True, tol=tol)
    check_counts(optional=False, max_iter=max_iter)
    return run

"""Paths: several strengths in a few columns, certified by one full gradient (sequential strong rule)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import is_numpy
from ell12.minimization import Result, Status, minimize
from ell12.penalties import L1, L12, WithIntercept
from ell12.protocols import Array, ColumnLoss, Point, missing, with_alpha
from ell12.solvers.gram_descent import GramDescent, minimise_by_models

# All columns are at hand if they are no more than this, and no more than rows or than ten for each strength: their
# Gram matrix (32 MB) then costs no more than full gradients would. Of others at most MOST_COLUMNS are (98 MB).
EVERY, MOST_COLUMNS = 2000, 3500
# Beside those that a strength needs, as many columns are at hand as cost this many full gradients.
GATHERED = 100
# Several strengths are certified at once until the first is halved: the strong rule then says nothing any more.
FALL = 0.5
# One full gradient certifies as many solutions as give about this number of entries (100 MB).
WIDEST = 3 * 2**22
# Within the columns at hand the violation is brought down to this fraction of tol.
CLOSER = 0.5
# Solutions with no more entries than this are sought from that of the Lasso too, and the lower one is kept.
FEW = 50


def screened_path(
    loss: Any,
    penalty: Any,
    alphas: Array,
    start: Array | None,
    max_iter: int = 2,
    sparse: bool = False,
    most_entries: float = math.inf,
) -> ScreenedPath | None:
    """What solves for several strengths at once; None where `ell12.minimize` must solve for each."""
    # In its first iteration a run looks at the start; a wrong max_iter is named by `ell12.minimize`.
    steps = isinstance(max_iter, int | np.integer) and max_iter >= 2
    if not steps or len(alphas) < 2 or min(alphas) <= 0 or missing(loss, ColumnLoss):
        return None
    inner, zero = penalty.penalty if isinstance(penalty, WithIntercept) else penalty, loss.start()
    known = type(inner) in (L12, L1) and is_numpy(zero) and zero.ndim == 1 and zero.dtype.kind == "f"
    if not known or not loss.has_columns or loss.point(zero).prediction.ndim > 1:
        return None
    return ScreenedPath(loss, penalty, alphas, zero if start is None else start, sparse, most_entries)


@dataclass
class Found:
    """Some solutions, one in each column, with their gradients, and the violation of each."""

    x: Array
    values: Array
    gradients: Array
    violations: Array
    violating: Array  # columns that are not at hand
    seen: int = 0  # of how many columns the gradient was found


class ScreenedPath:
    """Solutions at decreasing strengths under an l1-2 penalty.

    Parameters
    ----------
    loss : ColumnLoss
        For one run, whose store of columns grows along the path.
    penalty : L12 or WithIntercept
        Its own strength is not used.
    alphas : array
        All strengths.
    start : array
        Where to begin.
    sparse : bool, default False
        Whether solutions are given as sparse columns.
    most_entries : float, default infinity
        The path ends with a solution that has more.

    Attributes
    ----------
    x : array
        Where the path has come to.
    n_full_gradients : int
        How often all columns were looked at.
    """

    def __init__(
        self, loss: Any, penalty: Any, alphas: Array, start: Array, sparse: bool, most_entries: float
    ) -> None:
        self.loss, self.penalty, self.sparse, self.most_entries = loss, penalty, sparse, most_entries
        self.zero, self.n_full_gradients = loss.start(), 0
        self.size = self.zero.size
        below, above = self._at(1.0).slopes_at_zero(np.zeros(self.size))
        self.below, self.above, self.allowed = below, above, np.isfinite(above)
        self.is_far = loss.out_of_memory
        nothing = loss.point(self.zero)
        self.is_gram = loss.is_quadratic and loss.curvature(nothing) is not None
        self.most, every = min(MOST_COLUMNS, loss.most_columns), np.flatnonzero(self.allowed)
        rows = math.prod(nothing.prediction.shape)
        self.has_every = every.size <= min(EVERY, self.most, max(rows, 10 * len(alphas)))
        self.columns = every if self.has_every else every[:0]
        self.gram, self.lasso, self.seen = None, None, self.size
        self.restart(float(alphas[0]), start)

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another solution, which was found for a strength."""
        self.x, self.before, self.violating = np.asarray(x), strength, self.columns[:0]
        point = self.loss.point(self.x)
        self.gradient = self.loss.gradient(point)
        self.objective = self.loss.value(point), self._at(1.0).value(self.x)

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none: then x is where another solver begins.

        ``tols`` are the stationarities to reach.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        size = self._prepare(alphas)
        while size > 0:
            found = self._certified(*self._solutions(alphas[:size], tols[:size]), alphas)
            reached = found.violations / alphas[: found.violations.size]
            good = int(np.argmin(np.append(reached <= tols[: reached.size], False)))
            if good > 0 or found.violating.size == 0:
                break
            self._learn(found, 0)
            size = self._add(found.violating, size)
        else:
            return []
        seconds = (time.perf_counter() - wall) / max(good, 1), (time.process_time() - cpu) / max(good, 1)
        results = list(self._results(found, alphas[:good], reached, seconds))
        if good:
            self._learn(found, good - 1)
            self.x, self.before = found.x[:, good - 1], float(alphas[good - 1])
        return results

    def _at(self, alpha: float) -> Any:
        return with_alpha(self.penalty, alpha)

    # Columns at hand

    def _prepare(self, alphas: Array) -> int:
        """Choose the columns that the next strengths need; return for how many they are likely to do."""
        if self.has_every:
            return max(1, min(alphas.size, WIDEST // self.size))
        reaches = self._reaches()
        if np.count_nonzero(reaches == math.inf) > self.most:
            return 0
        needed = reaches >= max(2 * float(alphas[0]) - self.before, 0.0)  # the sequential strong rule
        steepest = self._steepest(reaches, int(np.count_nonzero(needed)))
        needed[self.columns] = False
        longest = self._reach(alphas, reaches, steepest)
        if needed.any() or longest >= 2 * self._reach(alphas, reaches, self.columns):
            self._take(steepest)
        return max(
            1, min(self._reach(alphas, reaches, self.columns), WIDEST // max(1, min(self.size, 16 * self.seen)))
        )

    def _reaches(self) -> Array:
        """The strengths below which columns leave zero if gradients stay as they are; infinite where in use."""
        with np.errstate(divide="ignore", invalid="ignore"):
            reaches = np.maximum(-self.gradient / self.above, -self.gradient / self.below)
        reaches[(self.x != 0) | ~(self.above > 0)] = reaches[self.violating] = math.inf
        reaches[~self.allowed] = -math.inf
        return reaches

    def _steepest(self, reaches: Array, needed: int) -> Array:
        """The columns that are needed, and others such that ``(needed + others) others = GATHERED * columns``."""
        others = int(math.sqrt(GATHERED * self.size + needed**2 / 4) - needed / 2)
        total = min(needed + others, int(self.most), int(np.count_nonzero(self.allowed)))
        return np.sort(np.argpartition(-reaches, total - 1)[:total])

    def _reach(self, alphas: Array, reaches: Array, columns: Array) -> int:
        """For how many strengths some columns are likely to do."""
        enough = alphas >= FALL * self.before
        seeks = self._l2_weight > 0 and np.count_nonzero(self.x) <= FEW  # which may need other columns
        if seeks or not self.is_far:
            others = np.ones(self.size, dtype=bool)
            others[columns] = False
            enough &= alphas > float(np.max(reaches, where=others, initial=0.0))
        return int(np.argmin(np.append(enough, False)))

    def _add(self, violating: Array, size: int) -> int:
        """Take columns that were missing too; return the size of the block, 0 if they are too many."""
        self.violating = np.union1d(self.violating, violating)
        columns = np.union1d(self.columns, violating)
        if columns.size > self.most:  # others make way
            reaches = self._reaches()
            if np.count_nonzero(reaches == math.inf) > self.most:
                return 0
            columns = self._steepest(reaches, columns.size)
        self._take(columns)
        return size

    def _take(self, columns: Array) -> None:
        """Add columns, or begin anew with these where all together would be too many."""
        both = np.union1d(self.columns, columns)
        self.columns, self.gram = both if both.size <= self.most else columns, None

    # Solutions

    def _solutions(self, alphas: Array, tols: Array) -> tuple[Array, list[Array]]:
        """Solutions in the columns at hand, one in each column, and their gradients there."""
        kind = self._gram_solutions if self.is_gram else self._model_solutions
        rows, own = [], []
        for x, gradient in kind(alphas, CLOSER * tols):
            full = np.zeros(self.size, dtype=self.zero.dtype)
            full[self.columns] = x
            rows.append(full)
            own.append(gradient.copy())
            if np.count_nonzero(full) > self.most_entries:
                break
        return np.stack(rows, axis=1) if rows else np.empty((self.size, 0)), own

    def _gram_solutions(self, alphas: Array, tols: Array) -> Iterator[tuple[Array, Array]]:
        """A squared loss is its own model, and one Gram matrix serves for all strengths."""
        columns = self.columns
        if self.gram is None:
            self.gram = self.loss.hessian(self.loss.point(self.zero), columns)
        engine = GramDescent(self.gram, self.x[columns], self.gradient[columns])
        linear = self.gram @ engine.x - engine.gradient
        lasso = GramDescent(self.gram, np.zeros(columns.size), -linear)
        for alpha, tol in zip(alphas.tolist(), tols.tolist(), strict=True):
            penalty = self._at(alpha).restrict(columns)
            weight = alpha * self._l2_weight
            engine.solve(penalty, tol * alpha, weight=weight)
            if weight > 0 and np.count_nonzero(engine.x) <= FEW:
                lasso.solve(penalty.convex, tol * alpha, weight=0.0)
                other = GramDescent(self.gram, lasso.x, lasso.gradient)
                other.solve(penalty, tol * alpha, weight=weight)
                if other.objective(linear, penalty) < engine.objective(linear, penalty):
                    engine = other
            yield engine.x, engine.gradient

    @property
    def _l2_weight(self) -> float:
        inner = self.penalty.penalty if isinstance(self.penalty, WithIntercept) else self.penalty
        return inner.l2_weight

    def _model_solutions(self, alphas: Array, tols: Array) -> Iterator[tuple[Array, Array]]:
        """One strength after the other, by models of second order around one point after the other.

        Where all that is penalised is zero, models choose worse columns than nmAPG, which is left to begin.
        """
        inner, x = self.loss.restrict(self.columns), self.x[self.columns]
        point, gradient = inner.point(x), self.gradient[self.columns]
        for alpha, tol in zip(alphas.tolist(), tols.tolist(), strict=True):
            penalty = self._at(alpha).restrict(self.columns)
            if self._l2_weight > 0 and not np.any(point.x[self.above[self.columns] > 0]):
                if penalty.violation(point.x, gradient) > tol * alpha:
                    if self.is_far:  # all other columns take long to read
                        found = inner.point(minimize(inner, penalty, point.x, tol=tol).x)
                        yield found.x, inner.gradient(found)
                    return
            else:
                point, gradient, done = minimise_by_models(inner, penalty, point, gradient, tol * alpha)
                if not done:
                    return
            yield point.x, gradient

    # Certificates

    def _certified(self, x: Array, own: list[Array], alphas: Array) -> Found:
        """The violation of each solution by the gradients of all columns, and the columns that are missing."""
        count, violations, violating = x.shape[1], np.zeros(x.shape[1]), np.zeros(self.size, dtype=bool)
        if count == 0 or not np.isfinite(x[:, 0]).all():
            return Found(x[:, :0], np.empty(0), x[:, :0], np.empty(0), self.columns[:0])
        self.n_full_gradients += 1
        predictions = self.loss.point_within(x, self.columns).prediction
        values, gradients, seen = self._gradients(x, own, predictions, float(alphas[count - 1]))
        for k in range(count):
            penalty = self._at(float(alphas[k]))
            slope = penalty.least_slope(x[:, k], gradients[:, k])
            violations[k] = (
                penalty.violation(x[:, k], gradients[:, k]) if not x[:, k].any() else np.abs(slope).max()
            )
            violating |= slope != 0
        violating[self.columns] = False
        return Found(x, values, gradients, violations, np.flatnonzero(violating), seen)

    def _gradients(self, x: Array, own: list[Array], predictions: Array, alpha: float) -> tuple[Array, Array, int]:
        """The losses, and the gradients in all columns; those too small to matter may be left at zero."""
        weights = self.above[(self.above > 0) & self.allowed]
        least = (
            FALL * alpha * float(weights.min(initial=math.inf)) if weights.size and x.any(axis=0).all() else 0.0
        )
        together = self.loss.gradients(predictions, least)
        if together is None:
            points = [Point(*pair) for pair in zip(x.T, predictions.T, strict=True)]
            gradients = np.stack([self.loss.gradient(point) for point in points], axis=1)
            return np.array([self.loss.value(point) for point in points]), gradients, self.size
        values, where, found = together
        if where.size == self.size:
            return values, found, self.size
        gradients = np.zeros((self.size, values.size), dtype=found.dtype)
        gradients[self.columns] = np.stack(own, axis=1)
        gradients[where] = found
        return values, gradients, where.size

    def _learn(self, found: Found, which: int) -> None:
        """Keep the gradient at one of the solutions, by which columns are chosen: one that failed tells more."""
        self.gradient, self.seen, self.violating = found.gradients[:, which], found.seen, found.violating

    def _results(
        self, found: Found, alphas: Array, reached: Array, seconds: tuple[float, float]
    ) -> Iterator[Result]:
        """Solutions, each as the end of a run of one iteration, with these seconds (wall and processor)."""
        before = self.objective
        for k, alpha in enumerate(alphas.tolist()):
            x = np.ascontiguousarray(found.x[:, k])
            here = float(found.values[k]), self._at(1.0).value(x)
            history = {
                "seconds": [0.0, seconds[0]],
                "cpu_seconds": [0.0, seconds[1]],
                "objective": [before[0] + alpha * before[1], here[0] + alpha * here[1]],
                "optimality": [math.inf, float(reached[k])],
            }
            solution = scipy.sparse.csc_array(x[:, None]) if self.sparse else x
            numbers = history["objective"][1], float(reached[k])
            yield Result(solution, *numbers, Status.CONVERGED, 1, float(reached[k]), "GramDescent", history)
            before = here
        self.objective = before

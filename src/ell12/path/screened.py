"""Paths: several strengths in a few columns, certified by one full gradient (sequential strong rule)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import is_numpy, rounding
from ell12.minimization import Result, Status, minimize
from ell12.operators.column_sources import BLOCK
from ell12.penalties import L1, L12, WithIntercept
from ell12.protocols import Array, ColumnLoss, Point, missing, with_alpha
from ell12.solvers.gram_descent import GramDescent, minimise_by_models, ridge_of, violations
from ell12.solvers.working_set import FEW, LARGEST

# Columns other than those that a strength needs are at hand as long as their Gram matrix costs less than this many
# full gradients, all columns as long as theirs does for each strength (constants in results/race_sparse).
GATHERED = 10


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
    # In its first iteration a run checks the start.
    if max_iter < 2 or len(alphas) < 2 or min(alphas) <= 0 or missing(loss, ColumnLoss):
        return None
    inner, zero = penalty.penalty if isinstance(penalty, WithIntercept) else penalty, loss.start()
    known = type(inner) in (L12, L1) and is_numpy(zero) and zero.ndim == 1 and zero.dtype.kind == "f"
    if not known or not loss.has_columns or loss.point(zero).prediction.ndim > 1:
        return None
    return ScreenedPath(loss, penalty, alphas, zero if start is None else start, sparse, most_entries)


@dataclass
class Found:
    """Some solutions, one in each column, with the gradients there, and the violation of each."""

    x: Array
    values: Array
    gradients: Array
    violations: Array
    violating: Array  # columns that are not at hand
    seen: int  # of how many columns the gradient was found


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
        The number of gradients of all columns.
    """

    def __init__(
        self, loss: Any, penalty: Any, alphas: Array, start: Array, sparse: bool, most_entries: float
    ) -> None:
        self.loss, self.penalty, self.sparse, self.most_entries = loss, penalty, sparse, most_entries
        self.zero, self.n_full_gradients = loss.start(), 0
        self.size = self.zero.size
        inner = penalty.penalty if isinstance(penalty, WithIntercept) else penalty
        self.below, self.above = self._at(1.0).slopes_at_zero(np.zeros(self.size))
        self.l2_weight, self.ridge = inner.l2_weight, ridge_of(self._at(1.0), self.zero)
        self.allowed = np.isfinite(self.above)
        self.out_of_memory = loss.out_of_memory
        nothing = loss.point(self.zero)
        self.is_gram = loss.is_quadratic and loss.curvature(nothing) is not None
        self.most, every = min(LARGEST, loss.most_columns), np.flatnonzero(self.allowed)
        rows = math.prod(nothing.prediction.shape)
        # Full gradients cost as many times more out of memory.
        self.gathered = GATHERED**2 if self.out_of_memory else GATHERED
        self.has_every = every.size <= min(self.most, max(rows, self.gathered * len(alphas)))
        self.columns = every if self.has_every else every[:0]
        self.gram: Any = None
        self.seen, self.value_at_zero = self.size, loss.value(nothing)
        self.values: Array | None = None  # of the loss, where the Gram matrix gives them and all gradients
        self.restart(float(alphas[0]), start)

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another solution, which was found for a strength."""
        self.x, self.before, self.violating = np.asarray(x), strength, self.columns[:0]
        self.rate = np.zeros(self.size)
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
            found = self._certified(self._solutions(alphas[:size], tols[:size]), alphas)
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
            if alphas[0] > alphas[good - 1]:
                rate = (found.gradients[:, 0] - self.gradient) / (alphas[0] - alphas[good - 1])
                self.rate = 0.5 * np.clip(rate, self.below, self.above)
            self.x, self.before = found.x[:, good - 1], float(alphas[good - 1])
        return results

    def _at(self, alpha: float) -> Any:
        return with_alpha(self.penalty, alpha)

    # Columns at hand

    def _prepare(self, alphas: Array) -> int:
        """Choose the columns that the next strengths need; return for how many they are likely to do."""
        if self.has_every:
            return max(1, min(alphas.size, BLOCK // self.size))
        reaches = self._reaches()
        if np.count_nonzero(reaches == math.inf) > self.most:
            return 0
        needed = reaches >= max(2 * float(alphas[0]) - self.before, 0.0)  # the sequential strong rule
        steepest = self._steepest(reaches, int(np.count_nonzero(needed)))
        needed[self.columns] = False
        longest = self._reach(alphas, reaches, steepest)
        if needed.any() or longest >= 2 * self._reach(alphas, reaches, self.columns):
            self._take(steepest)
        widest = BLOCK // max(1, min(self.size, 16 * self.seen))
        return max(1, min(self._reach(alphas, reaches, self.columns), widest))

    def _reaches(self) -> Array:
        """The strengths below which columns leave zero if gradients change at half the rate of the last block.

        Infinite where in use. If all of the rate were taken, blocks would be longer and fail more often.
        """
        start = self.rate * self.before - self.gradient
        with np.errstate(divide="ignore", invalid="ignore"):
            reaches = np.maximum(start / (self.above + self.rate), start / (self.below + self.rate))
        reaches[(self.x != 0) | ~(self.above > 0)] = reaches[self.violating] = math.inf
        reaches[~self.allowed] = -math.inf
        return reaches

    def _steepest(self, reaches: Array, needed: int) -> Array:
        """The columns that are needed, and others such that ``(needed + others) others = gathered * columns``."""
        others = int(math.sqrt(self.gathered * self.size + needed**2 / 4) - needed / 2)
        total = min(needed + others, int(self.most), int(np.count_nonzero(self.allowed)))
        return np.sort(np.argpartition(-reaches, total - 1)[:total])

    def _reach(self, alphas: Array, reaches: Array, columns: Array) -> int:
        """For how many strengths some columns are likely to do."""
        enough = alphas >= 0.5 * self.before  # for smaller ones the strong rule says nothing
        seeks = self.l2_weight > 0 and np.count_nonzero(self.x) <= FEW  # which may need other columns
        if seeks or not self.out_of_memory:
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
        both = np.concatenate([self.columns, np.setdiff1d(columns, self.columns)])  # as the loss holds them
        self.columns, self.gram = both if both.size <= self.most else columns, None
        self.has_every = self.columns.size == np.count_nonzero(self.allowed)

    # Solutions

    def _solutions(self, alphas: Array, tols: Array) -> tuple[Array, Array]:
        """Solutions in the columns at hand, one in each row, and their gradients there."""
        inner, own = (self._gram_solutions if self.is_gram else self._model_solutions)(alphas, 0.5 * tols * alphas)
        many = np.count_nonzero(inner, axis=1) > self.most_entries
        count = int(np.argmax(many)) + 1 if many.any() else len(inner)
        return inner[:count], own[:count]

    def _gram_solutions(self, alphas: Array, targets: Array) -> tuple[Array, Array]:
        """A squared loss is its own model, and one Gram matrix serves for all strengths."""
        columns, done = self.columns, 0
        if self.gram is None:
            self.gram = np.ascontiguousarray(self.loss.hessian(self.loss.point(self.zero), columns), np.float64)
        run = GramDescent(self.gram, self.x[columns], self.gradient[columns], alphas.size)
        linear = self.gram @ run.x - run.gradient
        found, lasso = np.empty((alphas.size, columns.size)), np.stack([np.zeros(columns.size), -linear, linear])
        parts = self.below[columns], self.above[columns], self.ridge[columns], self.l2_weight
        while done < alphas.size and not run.is_too_steep:
            done += run.follow(lasso, parts, FEW, alphas[done:], targets[done:], found[done:])
            if done < alphas.size:
                penalty, weight = self._at(float(alphas[done])).restrict(columns), alphas[done] * self.l2_weight
                run.solve(penalty, targets[done], weight)
                found[done] = run.x
                done += 1
        found = found[:done]
        own = found @ self.gram - linear
        largest = np.abs(found).sum(axis=1).max(initial=0.0) * np.diagonal(self.gram).max(initial=0.0)
        exact = self.has_every and rounding(largest, self.zero) <= 1e-3 * targets[:done].min(initial=math.inf)
        self.values = self.value_at_zero + 0.5 * np.einsum("ij,ij->i", found, own - linear) if exact else None
        return found, own

    def _model_solutions(self, alphas: Array, targets: Array) -> tuple[Array, Array]:
        """One strength after the other, by models of second order around one point after the other.

        Where all that is penalised is zero, models choose worse columns than nmAPG, which is left to begin.
        """
        inner, x, found = self.loss.restrict(self.columns), self.x[self.columns], []
        point, gradient = inner.point(x), self.gradient[self.columns]
        sides: Any = [part[self.columns] for part in (self.below, self.above, self.ridge)]
        for alpha, target in zip(alphas.tolist(), targets.tolist(), strict=True):
            penalty = self._at(alpha).restrict(self.columns)
            if self.l2_weight > 0 and not np.any(point.x[self.above[self.columns] > 0]):
                if penalty.violation(point.x, gradient) > target:
                    if self.out_of_memory:  # all other columns take long to read
                        point = inner.point(minimize(inner, penalty, point.x, tol=target / alpha).x)
                        found.append((point.x, inner.gradient(point)))
                    break
            else:
                scaled = (*(alpha * part for part in sides), alpha * self.l2_weight)
                point, gradient, done = minimise_by_models(
                    inner, penalty, point, gradient, target, scaled, alphas.size
                )
                if not done:
                    break
            found.append((point.x, gradient))
        parts = np.array(found).reshape(len(found), 2, x.size)
        return parts[:, 0], parts[:, 1]

    # Certificates

    def _certified(self, solutions: tuple[Array, Array], alphas: Array) -> Found:
        """The violation of each solution by the gradients of all columns, and the columns that are missing."""
        inside, own = solutions
        alphas, x = alphas[: len(inside)], np.zeros((self.size, len(inside)), dtype=self.zero.dtype)
        if len(inside) == 0 or not np.isfinite(inside[0]).all():
            return Found(x[:, :0], alphas[:0], x[:, :0], alphas[:0], self.columns[:0], 0)
        self.n_full_gradients += 1
        x[self.columns] = inside.T
        values, gradients, seen = self._gradients(x, own, float(alphas[-1]))
        # Most columns are zero.
        off = np.maximum(-gradients - self.above[:, None] * alphas, gradients + self.below[:, None] * alphas)
        sides = (np.multiply.outer(part[self.columns], alphas) for part in (self.below, self.above, self.ridge))
        off[self.columns] = violations(inside.T, gradients[self.columns], (*sides, self.l2_weight * alphas))
        violating, largest = (off > 0).any(axis=1), off.max(axis=0, initial=0.0)
        for k in np.flatnonzero(~x[self.above > 0].any(axis=0)):  # where a subtracted norm has no slope
            largest[k] = self._at(float(alphas[k])).violation(x[:, k], gradients[:, k])
        violating[self.columns] = False
        return Found(x, values, gradients, largest, np.flatnonzero(violating), seen)

    def _gradients(self, x: Array, own: Array, alpha: float) -> tuple[Array, Array, int]:
        """The losses, and the gradients in all columns; those too small to matter may be left at zero."""
        gradients = np.zeros_like(x)
        gradients[self.columns] = own.T
        if self.values is not None:
            return self.values[: len(own)], gradients, self.size
        predictions = self.loss.point_within(x, self.columns).prediction
        weights = self.above[(self.above > 0) & self.allowed]
        small = 0.5 * alpha * float(weights.min(initial=math.inf)) if weights.size and x.any(axis=0).all() else 0.0
        together = self.loss.gradients(predictions, small)
        if together is None:
            points = [Point(*pair) for pair in zip(x.T, predictions.T, strict=True)]
            gradients = np.stack([self.loss.gradient(point) for point in points], axis=1)
            return np.array([self.loss.value(point) for point in points]), gradients, self.size
        values, where, found = together
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

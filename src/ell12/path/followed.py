"""Paths under l1-2 in blocks of strengths, each solved in a few columns and certified by one look at all.

The strong rule says which columns a block needs. They are gathered, and all strengths of the block are solved in
them, in memory (`ell12.path.within`). One product with the adjoint then certifies all of these solutions. A
solution counts only if it holds; columns that were missing are added, and the strengths from the first that
failed on are solved again. So data that are far away or larger than memory are looked at once for each block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import is_numpy
from ell12.backend.compiling import can_compile
from ell12.minimization import Result, Status, minimize
from ell12.path.within import CLOSER, Found, GramWithin, ModelWithin, Numbers
from ell12.penalties import L1, L12, WithIntercept
from ell12.protocols import Array, ColumnLoss, FarLoss, Point, PointwiseLoss, missing, offers, with_alpha

# Loading the compiled loop takes 0.5 s, which pays for paths of this number of strengths. Five folds of 50 took
# 0.3 s (442 x 10) to 4 s (200 x 1000) one by one, and 1 to 400 ms compiled: they pay for it at once. Shorter ones
# pay by and by; the number alone decides, as an answer must not depend on what ran before.
FEWEST_STRENGTHS = 16
# Where a path ends at few entries, as many columns as WIDE times these are too many to have all at hand. Paths
# over 100 x 500, 100 x 1000 and 250 x 2000 down to 15, 22 and 31 entries, 33, 45 and 65 times as many columns,
# took 16, 38 and 195 ms with all columns at hand, and 17, 18 and 39 ms with some.
WIDE = 40
# At least so many columns are gathered beside those that are needed: they cost little beside the call.
FEWEST_NEW = 100
# Up to EVERY columns are all at hand (a Gram matrix of 32 MB), if that matrix takes no more than WORK
# multiplications (0.3 s). Of others at most MOST_COLUMNS are at hand at a time (98 MB).
EVERY, WORK, MOST_COLUMNS = 2000, 2**32, 3500
# Beside those that a strength needs, as many columns are at hand as cost LOOK times the multiplications of a look
# at one point. On 24 paths of 100 strengths (300 x 8000 and 600 x 12,000, four designs, squared and logistic, down
# to 0.05 and 0.01 of the first) 16 took 45 s and up to 43 looks, 64 took 43 s and up to 27, 256 took 52 s and up
# to 22.
LOOK = 100
# A block ends where a column that is not at hand would leave zero if its gradient stayed as it is, and where the
# strength has fallen to FALL of its first. The strong rule, which lets gradients grow as fast as strengths fall,
# ends it sooner: it took 4 looks for 3, and a fifth more time. Where columns are far, FALL alone ends it: a look
# costs more than strengths that fail, and few do, as gradients fall with the strength. On 12 paths of 100
# strengths (genotypes, 300 x 134,000 and 500 x 40,000, squared and logistic) that took 5 to 8 looks in place of 8
# to 17; on 18 paths on which a look certifies 9 strengths at the most, 12 to 17 in place of 33 to 74. Not so while
# other minima are sought, which may need columns that the path itself does not.
FALL = 0.5
# Columns are gathered anew where that lets one look certify this many times as many strengths.
RENEWED = 2
# One look certifies as many solutions as give about this number of gradients (100 MB). Columns out of memory are
# told of where these are steep; a look is taken to tell of no more than TOLD times as many as the last one.
WIDEST, TOLD = 3 * 2**22, 16


def follower_of(
    loss: Any,
    penalty: Any,
    alphas: Array,
    start: Array | None,
    options: Mapping[str, Any],
    sparse: bool = False,
    most_entries: float = math.inf,
) -> Follower | None:
    """What follows a path in compiled blocks; None where `ell12.minimize` must solve for each strength."""
    plain = {key for key, value in options.items() if value not in (None, False, math.inf)} <= {"max_iter"}
    limit = options.get("max_iter", 2)  # a wrong one is told by `ell12.minimize`
    # In its first iteration a run looks at the start.
    short = len(alphas) < FEWEST_STRENGTHS or not (isinstance(limit, int | np.integer) and limit >= 2)
    if short or not plain or min(alphas) <= 0 or missing(loss, ColumnLoss):
        return None
    inner = penalty.penalty if isinstance(penalty, WithIntercept) else penalty
    zero = loss.start()
    known = (
        type(inner) in (L12, L1)
        and isinstance(inner.positive, bool)
        and is_numpy(zero)
        and zero.ndim == 1
        and zero.dtype.kind == "f"
    )
    if not known or not loss.has_columns or not can_compile():
        return None
    below, above = with_alpha(penalty, 1.0).slopes_at_zero(np.zeros(zero.shape))
    numbers = Numbers(below, above, inner.l2_weight, inner.ridge)
    start = zero if start is None else start
    return Follower(loss, penalty, numbers, float(alphas[0]), start, sparse, most_entries)


class Follower:
    """Solutions at falling strengths under an l1-2 penalty.

    Parameters
    ----------
    loss : ColumnLoss
        A session, whose store of columns grows along the path.
    penalty : L12 or WithIntercept
        Its own strength is not used.
    numbers : Numbers
        The same in numbers.
    strength, start : float and array
        The first strength, and where to begin.
    sparse : bool, default False
        Whether solutions are given as sparse columns.
    most_entries : float, default infinity
        A block ends with a solution that has more.

    Attributes
    ----------
    x : array
        Where the path has come to.
    looks : int
        How often all columns were looked at.
    """

    within: Any  # solves in the columns at hand
    values: Any  # where the path has come to, in the columns at hand
    before: float  # the strength for which it was found
    elsewhere: Any = None  # where it has come to, if too many columns are in use there
    wanted: Any  # columns that the last look found missing
    objective: tuple[float, float]  # the loss there, and the penalty at strength 1
    gradient: Any  # of the loss there, in all columns unless all are at hand; where it was not told, zero
    told: int  # of how many columns the last look told the gradient

    def __init__(
        self,
        loss: Any,
        penalty: Any,
        numbers: Numbers,
        strength: float,
        start: Any,
        sparse: bool = False,
        most_entries: float = math.inf,
    ) -> None:
        self.most_entries = most_entries
        self.loss, self.penalty, self.numbers, self.sparse, self.looks = loss, penalty, numbers, sparse, 0
        self.zero, self.size = loss.start(), numbers.above.size
        self.rows = math.prod(loss.point(self.zero).prediction.shape)
        self.most = min(MOST_COLUMNS, loss.most_columns)
        self.is_far = offers(loss, FarLoss) and loss.is_far
        self.allowed = np.isfinite(numbers.above)  # an infinite weight holds an entry at zero
        every = np.flatnonzero(self.allowed)
        few = min(EVERY, self.most, WIDE * most_entries)
        self.has_every = every.size <= few and self.rows * every.size**2 <= WORK
        self.columns, self.within = np.empty(0, dtype=np.int64), None
        if self.has_every:
            self._take(every)
        self.restart(strength, start)

    @property
    def x(self) -> Array:
        """Where the path has come to."""
        return self._full(self.values) if self.elsewhere is None else self.elsewhere

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""
        x, self.elsewhere = np.asarray(x), None
        support = np.flatnonzero((x != 0) | ~(self.numbers.above > 0))
        if not self.has_every and support.size > self.most:
            self.elsewhere = x  # the usual solver goes on from there
            return
        if not self.has_every and (self.within is None or not np.isin(support, self.columns).all()):
            self._take(support)
        self.before, self.values, self.wanted = strength, x[self.columns], self.columns[:0]
        point = self.within.loss.point(self.values)
        self._note(self.within.loss.value(point))
        if not self.has_every:
            self.looks += 1
            self.gradient = self.loss.gradient(Point(x, point.prediction))
            least = self._least(strength) if self.is_far else 0.0
            self.told = int(np.count_nonzero(np.abs(self.gradient) >= least))

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none: then x is where another solver begins.

        ``tols`` are the stationarities to reach.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        size = self._prepare(alphas)
        while size > 0:
            found = self.within.solve(alphas[:size], tols[:size], self.before, self.values)
            if len(found.x) == 0 and self.is_far:
                found = self._minimised(float(alphas[0]), float(tols[0]))
            count = len(found.x)
            if count == 0 or not np.isfinite(found.x[0]).all():
                return []
            reached, (where, gradients), violators = self._look(found, alphas[:count])
            good = int(np.argmin(np.append(reached <= tols[:count], False)))
            if good > 0 or violators.size == 0:
                break
            self._learn(found, where, gradients, 0)
            size = self._add(violators, size)
        else:
            return []
        seconds = (time.perf_counter() - wall) / max(good, 1), (time.process_time() - cpu) / max(good, 1)
        results = list(self._results(found, alphas[:good], reached, seconds))
        last = max(good - 1, 0)
        if not self.has_every:
            self._learn(found, where, gradients, last)
        self.wanted, self.values, self.before = violators, found.x[last], float(alphas[last])
        self._note(float(found.losses[last]))
        return results

    def _learn(self, found: Found, where: Array, gradients: Array, which: int) -> None:
        """Keep the gradient at one of the solutions, by which columns are chosen: one that failed tells more."""
        self.gradient, self.told = self._scattered(where, gradients[:, which]), where.size
        self.gradient[self.columns] = found.gradient[which]

    def _minimised(self, alpha: float, tol: float) -> Found:
        """The solution at one strength by the usual solver, in the columns at hand: all take many looks."""
        penalty = with_alpha(self.penalty, alpha).restrict(self.columns)
        loss = self.within.loss
        point = loss.point(minimize(loss, penalty, self.values, tol=CLOSER * tol).x)
        losses, gradient = np.array([loss.value(point)]), loss.gradient(point)
        return Found(point.x[None, :], gradient[None, :], losses, point.prediction[:, None])

    # Columns at hand

    def _add(self, violators: Array, size: int) -> int:
        """Take columns that were missing too; return the size of the block, 0 if they are too many."""
        self.wanted = np.union1d(self.wanted, violators)
        columns = np.union1d(self.columns, violators)
        if columns.size > self.most:  # others make way
            reaches = self._reaches()
            if np.count_nonzero(reaches == math.inf) > self.most:
                return 0
            columns = self._steepest(reaches, columns.size)
        self._take(columns)
        return size

    def _prepare(self, alphas: Array) -> int:
        """Gather the columns that the next strengths need, and return how many of these one look shall certify."""
        if self.has_every or self.elsewhere is not None:
            return alphas.size if self.has_every else 0
        reaches = self._reaches()
        if np.count_nonzero(reaches == math.inf) > self.most:
            return 0
        # The strong rule says what the first of them needs.
        first = reaches >= max(2 * float(alphas[0]) - self.before, 0.0)
        steepest = self._steepest(reaches, int(np.count_nonzero(first)))
        held, fresh = self._reach(alphas, reaches, self.columns), self._reach(alphas, reaches, steepest)
        first[self.columns] = False
        if first.any() or fresh >= RENEWED * max(held, 1):
            self._take(steepest)
            held = fresh
        return max(1, held)

    def _reaches(self) -> Array:
        """The strengths below which columns leave zero if gradients stay as they are; infinite where in use."""
        reaches = self.numbers.reaches(self.gradient)
        reaches[self.wanted] = reaches[self.columns[self.values != 0]] = math.inf
        reaches[~self.allowed] = -math.inf
        return reaches

    def _steepest(self, reaches: Array, needed: int) -> Array:
        """The columns that are needed, and others such that ``(needed + others) others = LOOK * columns``."""
        others = max(int(math.sqrt(LOOK * self.size + needed**2 / 4) - needed / 2), FEWEST_NEW)
        total = min(needed + others, int(self.most), int(np.count_nonzero(self.allowed)))
        return np.sort(np.argpartition(-reaches, total - 1)[:total])

    def _reach(self, alphas: Array, reaches: Array, columns: Array) -> int:
        """For how many strengths some columns are likely to do."""
        enough = alphas >= FALL * self.before
        if not self.is_far or np.count_nonzero(self.values) <= self.within.few:
            others = np.ones(self.size, dtype=bool)
            others[columns] = False
            enough &= alphas > float(np.max(reaches, where=others, initial=0.0))
        told = max(1, min(self.size, TOLD * self.told))
        return min(int(np.argmin(np.append(enough, False))), max(1, WIDEST // told))

    def _take(self, columns: Array) -> None:
        """Gather some columns, and no others."""
        old, self.within = self.within, None
        if old is not None:
            self.values, old.loss = (
                self.x[columns],
                None,
            )  # which lets go of the old columns before there are new ones
        loss = self.loss if columns.size == self.size and not self.is_far else self.loss.restrict(columns)
        numbers = self.numbers.restrict(columns)
        if self.loss.is_quadratic and offers(self.loss, PointwiseLoss):
            both = np.intersect1d(self.columns, columns, assume_unique=True, return_indices=True)
            self.within = GramWithin(loss, numbers, self.most_entries, old, both[1:])
        else:
            self.within = ModelWithin(loss, numbers, self.most_entries)
        self.columns = columns

    # Certificates

    def _look(self, found: Found, alphas: Array) -> tuple[Array, tuple[Array, Any], Array]:
        """The stationarity of each solution, entries and their gradients, and the columns that are missing."""
        numbers = self.within.numbers
        violations = numbers.violations(found.x, found.gradient, alphas)
        where, gradients, violators = self.columns, found.gradient.T, np.empty(0, dtype=np.int64)
        zero = numbers.are_zero(found.x) if numbers.l2_weight > 0 else np.zeros(alphas.size, dtype=bool)
        if not self.has_every:
            where, gradients = self._gradients(found, 0.0 if zero.any() else self._least(float(alphas[-1])))
            above, below = self.numbers.above[where], self.numbers.below[where]
            held, missing = np.isin(where, self.columns), np.zeros(where.size, dtype=bool)
            for k, alpha in enumerate(alphas.tolist()):
                gradient = gradients[:, k]
                away = np.maximum(-gradient - alpha * above, gradient + alpha * below)
                away[held] = 0.0
                missing |= away > 0
                violations[k] = max(violations[k], float(away.max(initial=0.0)))
            violators = where[missing]
        at_zero = np.flatnonzero(zero)
        for rows in np.array_split(at_zero, 1 + at_zero.size * self.size // WIDEST):
            violations[rows] = self._violations_at_zero(found, alphas, where, gradients, rows)
        return violations / alphas, (where, gradients), violators

    def _violations_at_zero(self, found: Found, alphas: Array, where: Array, gradients: Any, rows: Array) -> Array:
        """Those of rows where the norm has no slope: the penalty itself is asked, unless zero surely stays."""
        x, slopes = np.zeros((rows.size, self.size)), np.zeros((rows.size, self.size))
        slopes[:, where] = gradients[:, rows].T
        x[:, self.columns], slopes[:, self.columns] = found.x[rows], found.gradient[rows]
        violations = self.numbers.violations_at_zero(x, slopes, alphas[rows])
        for k in np.flatnonzero(violations):
            penalty = with_alpha(self.penalty, alphas[rows[k]])
            violations[k] = penalty.violation(x[k].astype(self.zero.dtype), slopes[k].astype(self.zero.dtype))
        return violations

    def _gradients(self, found: Found, least: float) -> tuple[Array, Array]:
        """Entries, and their gradients at all solutions, in columns; those below least need not be told."""
        self.looks += 1
        if offers(self.loss, PointwiseLoss):
            return self.loss.look(found.predictions, least)[1:]
        points = [
            Point(self._full(x), prediction) for x, prediction in zip(found.x, found.predictions.T, strict=True)
        ]
        return np.arange(self.size), np.stack([self.loss.gradient(point) for point in points], axis=1)

    def _least(self, alpha: float) -> float:
        """What is smaller than this matters neither at a strength nor in a block that begins there."""
        weights = self.numbers.above[(self.numbers.above > 0) & self.allowed]
        return FALL * alpha * float(weights.min(initial=math.inf)) if weights.size else 0.0

    # Results

    def _full(self, values: Array) -> Array:
        full = np.zeros(self.size, dtype=self.zero.dtype)
        full[self.columns] = values
        return full

    def _scattered(self, where: Array, values: Array) -> Array:
        full = np.zeros(self.size, dtype=values.dtype)
        full[where] = values
        return full

    def _note(self, value: float) -> None:
        self.objective = value, float(self.within.numbers.values(self.values[None, :])[0])

    def _results(
        self, found: Found, alphas: Array, reached: Array, seconds: tuple[float, float]
    ) -> Iterator[Result]:
        """Solutions, each as the end of a run of one iteration, of so many seconds (wall and processor)."""
        before = self.objective
        for k, (alpha, penalty) in enumerate(
            zip(alphas.tolist(), self.within.numbers.values(found.x), strict=False)
        ):
            here = float(found.losses[k]), float(penalty)
            history = {
                "seconds": [0.0, seconds[0]],
                "cpu_seconds": [0.0, seconds[1]],
                "objective": [before[0] + alpha * before[1], here[0] + alpha * here[1]],
                "optimality": [math.inf, float(reached[k])],
            }
            x = self._column(found.x[k]) if self.sparse else self._full(found.x[k])
            objective = history["objective"][1]
            yield Result(x, objective, float(reached[k]), Status.CONVERGED, 1, 0.0, "screened path", history)
            before = here

    def _column(self, values: Array) -> Any:
        some = np.flatnonzero(values)
        where, ends = self.columns[some], np.array([0, some.size])
        return scipy.sparse.csc_array((values[some], where, ends), shape=(self.size, 1))

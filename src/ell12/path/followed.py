"""Paths under l1-2 in blocks of strengths, each solved in a few columns and certified by one look at all.

The strong rule says which columns a block needs. They are gathered, and all strengths of the block are solved in
them, in memory (`ell12.path.within`). One product with the adjoint then certifies all of these solutions. A
solution counts only if it holds; columns that were missing are added, and the strengths from the first that
failed on are solved again. So data that are far away or larger than memory are looked at once for each block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ell12.backend import is_numpy
from ell12.backend.compiling import can_compile
from ell12.losses import SquaredLoss
from ell12.minimization import Result, Status
from ell12.path.within import Found, GramWithin, ModelWithin, Numbers
from ell12.penalties import L12, WithIntercept
from ell12.protocols import Array, ColumnLoss, Point, PointwiseLoss, missing, offers

# Loading the compiled loop takes 0.5 s, which pays for paths of this number of strengths. Five folds of 50 took
# 0.3 s (442 x 10) to 4 s (200 x 1000) one by one, and 1 to 400 ms compiled: they pay for it at once. Shorter ones
# pay by and by; the number alone decides, as an answer must not depend on what ran before.
FEWEST_STRENGTHS = 16
# A Gram matrix holds at most this number of columns. Where there are more, and where computing the matrix
# of all would take more than WORK multiplications (0.3 s), it holds the columns that the path needs.
MOST_COLUMNS, WORK = 4000, 2**32
# New columns are worth their part of a Gram matrix while that takes no more than LOOK times the multiplications of
# a look at one point; FEWEST_NEW are always.
LOOK, FEWEST_NEW = 4.0, 100
# The strong rule bets that a gradient changes no faster than the strength. A slower change is the rule.
BET = 1.0
# One look certifies at most so many numbers (128 MB).
WIDEST = 2**24


def follower_of(
    loss: Any, penalty: Any, alphas: Array, start: Array | None, options: Mapping[str, Any]
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
        type(inner) is L12
        and inner.bounds is None
        and is_numpy(zero)
        and zero.ndim == 1
        and zero.dtype.kind == "f"
    )
    if not known or not loss.has_columns or not can_compile():
        return None
    below, above = penalty.scaled(1 / penalty.alpha).slopes_at_zero(np.zeros(zero.shape))
    numbers = Numbers(below, above, inner.l2_weight, inner.ridge)
    return Follower(loss, penalty, numbers, float(alphas[0]), zero if start is None else start)


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

    Attributes
    ----------
    x : array
        Where the path has come to.
    looks : int
        How often all columns were looked at.
    """

    values: Any  # where the path has come to, in the columns at hand
    before: float  # the strength for which it was found
    objective: tuple[float, float]  # the loss there, and the penalty at strength 1
    gradient: Any  # of the loss there, in all columns unless all are at hand

    def __init__(self, loss: Any, penalty: Any, numbers: Numbers, strength: float, start: Any) -> None:
        self.loss, self.penalty, self.numbers, self.looks = loss, penalty, numbers, 0
        self.zero, self.size = loss.start(), numbers.above.size
        self.rows = math.prod(loss.point(self.zero).prediction.shape)
        self.most = min(MOST_COLUMNS, loss.most_columns)
        self.allowed = np.isfinite(numbers.above)  # an infinite weight holds an entry at zero
        every = np.flatnonzero(self.allowed)
        self.has_every = every.size <= self.most and self.rows * every.size**2 <= WORK
        self.columns, self.within = np.empty(0, dtype=np.int64), None
        self.wanted = self.columns  # those that a look has found missing
        if self.has_every:
            self._take(every)
        self.restart(strength, start)

    @property
    def x(self) -> Array:
        """Where the path has come to."""
        return self._full(self.values)

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""
        x = np.asarray(x)
        if not self.has_every:
            support = np.flatnonzero((x != 0) | ~(self.numbers.above > 0))
            if not np.isin(support, self.columns).all() or self.within is None:
                self._take(support)
        self.before, self.values = strength, x[self.columns]
        point = self.within.loss.point(self.values)
        self._note(self.within.loss.value(point))
        if not self.has_every:
            self.looks += 1
            self.gradient = self.loss.gradient(Point(x, point.prediction))

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none: then x is where another solver begins.

        ``tols`` are the stationarities to reach.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        size = self._prepare(alphas)
        while size > 0:
            found = self.within.solve(alphas[:size], tols[:size], self.before, self.values)
            count = len(found.x)
            if count == 0 or not np.isfinite(found.x[0]).all():
                return []
            reached, gradients, violators = self._look(found, alphas[:count])
            good = int(np.argmin(np.append(reached <= tols[:count], False)))
            if good > 0 or violators.size == 0:
                break
            size = self._add(violators, size)
        else:
            return []
        seconds = (time.perf_counter() - wall) / max(good, 1), (time.process_time() - cpu) / max(good, 1)
        results = [self._result(found, k, float(alphas[k]), float(reached[k]), seconds) for k in range(good)]
        last = max(good - 1, 0)
        if not self.has_every:
            self.gradient = np.ascontiguousarray(gradients[:, last])
            self.gradient[self.columns] = found.gradient[last]
        self.wanted = violators
        self.values, self.before = found.x[last], float(alphas[last])
        self._note(float(found.losses[last]))
        return results

    # Columns at hand

    def _add(self, violators: Array, size: int) -> int:
        """Take columns that were missing too; return the size of the block, 0 if they are too many."""
        if self.columns.size + violators.size > self.most:
            return 0
        self._take(np.union1d(self.columns, violators))
        return size

    def _prepare(self, alphas: Array) -> int:
        """Take the columns that the next strengths need, and return how many of these one look shall certify."""
        if self.has_every:
            return alphas.size
        reaches = self.numbers.reaches(self.gradient)
        reaches[~self.allowed] = -math.inf
        reaches[self.wanted] = math.inf
        reaches[self.columns[self.values != 0]] = math.inf
        held = np.zeros(self.size, dtype=bool)
        held[self.columns] = True
        certain = int(np.count_nonzero(reaches == math.inf))
        first = self._bound(float(alphas[0]))
        needed = max(certain, int(np.count_nonzero(reaches >= first)))
        if needed > self.most:
            return 0
        # (size + new) new <= LOOK * number of columns
        new = int(math.sqrt(LOOK * self.size + needed**2 / 4) - needed / 2)
        total = min(needed + max(new, FEWEST_NEW), int(self.most), int(np.count_nonzero(self.allowed)))
        order = np.argpartition(-reaches, total - 1)[:total]
        if not held[reaches >= first].all() or self._width(alphas, reaches, held) < 2:
            self._take(np.sort(order))
            held[:] = False
            held[self.columns] = True
        return max(1, self._width(alphas, reaches, held))

    def _bound(self, alpha: float) -> float:
        """Columns whose gradients reach less, in units of their weights, will be zero at a strength."""
        return max(alpha - BET * (self.before - alpha), 1e-300)

    def _width(self, alphas: Array, reaches: Array, held: Array) -> int:
        """For how many strengths the columns at hand will do."""
        outside = float(np.max(reaches, where=~held, initial=0.0))
        enough = np.array([self._bound(float(alpha)) for alpha in alphas]) > outside
        return min(int(np.argmin(np.append(enough, False))), max(1, WIDEST // self.size))

    def _take(self, columns: Array) -> None:
        """Gather some columns, and no others."""
        loss = self.loss if columns.size == self.size else self.loss.restrict(columns)
        numbers = self.numbers.restrict(columns)
        if type(self.loss) is SquaredLoss:
            kept = None
            if self.within is not None:
                kept = np.intersect1d(self.columns, columns, assume_unique=True, return_indices=True)[1:]
            within: Any = GramWithin(loss, numbers, self.within, kept)
        else:
            within = ModelWithin(loss, numbers)
        if self.within is not None:
            full = self._full(self.values)
            self.values = full[columns]
        self.columns, self.within = columns, within

    # Certificates

    def _look(self, found: Found, alphas: Array) -> tuple[Array, Any, Array]:
        """The stationarity of each solution, all gradients, and the columns that are missing."""
        numbers = self.within.numbers
        violations = numbers.violations(found.x, found.gradient, alphas)
        gradients, violators = None, np.empty(0, dtype=np.int64)
        zero = numbers.are_zero(found.x) if numbers.l2_weight > 0 else np.zeros(alphas.size, dtype=bool)
        if not self.has_every:
            gradients = self._gradients(found, 0.0 if zero.any() else self._least(float(alphas[-1])))
            missing = np.zeros(self.size, dtype=bool)
            for k, alpha in enumerate(alphas.tolist()):
                gradient = gradients[:, k]
                away = np.maximum(-gradient - alpha * self.numbers.above, gradient + alpha * self.numbers.below)
                away[self.columns] = 0.0
                missing |= away > 0
                violations[k] = max(violations[k], float(away.max(initial=0.0)))
            violators = np.flatnonzero(missing)
        for k in np.flatnonzero(zero):  # where the norm has no slope, the penalty itself is asked
            penalty = self.penalty.scaled(alphas[k] / self.penalty.alpha)
            gradient = self._full(found.gradient[k]) if gradients is None else gradients[:, k].copy()
            gradient[self.columns] = found.gradient[k]
            violations[k] = penalty.violation(self._full(found.x[k]), gradient)
        return violations / alphas, gradients, violators

    def _gradients(self, found: Found, least: float) -> Array:
        """The gradients at all solutions, in columns; entries below least need not be told."""
        self.looks += 1
        if offers(self.loss, PointwiseLoss):
            return self.loss.look(found.predictions, least)[1]
        points = [
            Point(self._full(x), prediction) for x, prediction in zip(found.x, found.predictions.T, strict=True)
        ]
        return np.stack([self.loss.gradient(point) for point in points], axis=1)

    def _least(self, alpha: float) -> float:
        """What is smaller than this matters neither at a strength nor for the columns that the next ones need."""
        weights = self.numbers.above[(self.numbers.above > 0) & self.allowed]
        return 0.3 * alpha * float(weights.min(initial=1.0))

    # Results

    def _full(self, values: Array) -> Array:
        full = np.zeros(self.size, dtype=self.zero.dtype)
        full[self.columns] = values
        return full

    def _note(self, value: float) -> None:
        self.objective = value, float(self.within.numbers.values(self.values[None, :])[0])

    def _result(self, found: Found, k: int, alpha: float, reached: float, seconds: tuple[float, float]) -> Result:
        """One of the solutions as the end of a run of one iteration, of so many seconds (wall and processor)."""
        value, penalty = self.objective
        if k > 0:
            value, penalty = float(found.losses[k - 1]), self._penalties(found)[k - 1]
        objective = float(found.losses[k] + alpha * self._penalties(found)[k])
        history = {
            "seconds": [0.0, seconds[0]],
            "cpu_seconds": [0.0, seconds[1]],
            "objective": [float(value + alpha * penalty), objective],
            "optimality": [math.inf, reached],
        }
        return Result(self._full(found.x[k]), objective, reached, Status.CONVERGED, 1, history)

    def _penalties(self, found: Found) -> Array:
        return self.within.numbers.values(found.x)

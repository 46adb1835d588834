"""Paths of the squared loss under l1-2: blocks of strengths over a Gram matrix, each block one compiled call.

Every solution is certified from the data, all of a block by two matrix products, and counts only if it holds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_numpy
from ell12.backend.compiling import can_compile
from ell12.losses import SquaredLoss
from ell12.minimization import Result, Status
from ell12.penalties import L12, WithIntercept
from ell12.protocols import Array, Point

# Loading the compiled loop takes 0.5 s, which pays for paths of this number of strengths. Five folds of 50 took
# 0.3 s (442 x 10) to 4 s (200 x 1000) one by one, and 1 to 400 ms compiled: they pay for it at once. Shorter ones
# pay by and by; the number alone decides, as an answer must not depend on what ran before.
FEWEST_STRENGTHS = 16
# A block whose Gram matrix holds some columns alone ends where the strength has fallen to this fraction. The
# strong rule then leaves out the columns whose gradient is below 0.4 times their bound.
BLOCK_FALL = 0.7
# A Gram matrix holds at most this number of columns (32 MB). Where there are more, and where computing the matrix
# of all would take more than WORK multiplications (0.3 s), it holds the columns that the path needs.
MOST_COLUMNS, WORK = 2000, 2**32
# When such a set of columns grows, it doubles, and takes at least this number: a larger matrix costs little beside
# making it anew.
FEWEST_NEW = 100


def follower_of(
    loss: Any, penalty: Any, alphas: Array, start: Array | None, options: Mapping[str, Any]
) -> Follower | None:
    """What follows a path in compiled blocks; None where `ell12.minimize` must solve for each strength."""
    plain = {key for key, value in options.items() if value not in (None, False, math.inf)} <= {"max_iter"}
    # In its first iteration a run looks at the start.
    short = len(alphas) < FEWEST_STRENGTHS or options.get("max_iter", math.inf) < 2
    if short or not plain or min(alphas) <= 0 or type(loss) is not SquaredLoss:
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
    return Follower(loss, penalty, numbers, float(alphas[0]), start)


@dataclass(frozen=True)
class Numbers:
    """What a penalty of the l1-2 family is at strength 1: its slopes below and above zero, and its weights.

    An entry counts in the l2 norm and in the ridge unless its slope above zero is 0.
    """

    below: Any
    above: Any
    l2_weight: float
    ridge: float = 0.0

    def values(self, x: Any) -> Any:
        """The penalty of each row."""
        moduli = np.where(x > 0, _finite(self.above), -_finite(self.below)) * np.abs(x)
        length = self._lengths(x)
        return moduli.sum(axis=1) - self.l2_weight * length + 0.5 * self.ridge * length**2

    def violations(self, x: Any, gradient: Any, alphas: Any) -> Any:
        """The largest violation of the first-order condition in each row; not for rows of zeros."""
        alphas, length = alphas[:, None], self._lengths(x)[:, None]
        bend = self.ridge - self.l2_weight / np.where(length > 0, length, math.inf)
        edge = np.where(x > 0, _finite(self.above), _finite(self.below)) + np.where(self.above > 0, bend, 0) * x
        away = np.maximum(-gradient - alphas * self.above, gradient + alphas * self.below)
        return np.where(x != 0, np.abs(gradient + alphas * edge), np.maximum(away, 0)).max(axis=1)

    def _lengths(self, x: Any) -> Any:
        counted = np.where(self.above > 0, x, 0)
        size = np.abs(counted).max(axis=1, initial=0.0)
        size[size == 0] = 1.0
        return size * np.linalg.norm(counted / size[:, None], axis=1)


@dataclass(frozen=True)
class _Rows:
    """Some vectors x, one in each row, with what is known there; the penalties are those at strength 1."""

    x: Any
    gradient: Any
    losses: Any
    penalties: Any

    def row(self, k: int) -> _Rows:
        """One of them."""
        return _Rows(*(part[k : k + 1] for part in (self.x, self.gradient, self.losses, self.penalties)))

    def objective(self, k: int, alpha: float) -> float:
        """The whole at one of them, at a strength."""
        return float(self.losses[k] + alpha * self.penalties[k])

    def result(
        self, k: int, start: _Rows, alpha: float, stationarity: float, seconds: tuple[float, float]
    ) -> Result:
        """One of them as the end of a run of one iteration, of so many seconds (wall and processor)."""
        history = {
            "seconds": [0.0, seconds[0]],
            "cpu_seconds": [0.0, seconds[1]],
            "objective": [start.objective(0, alpha), self.objective(k, alpha)],
            "optimality": [math.inf, stationarity],
        }
        return Result(self.x[k], history["objective"][1], stationarity, Status.CONVERGED, 1, history)


class Follower:
    """Solutions at falling strengths, a block at a time, of a squared loss under an l1-2 penalty.

    Parameters
    ----------
    loss : SquaredLoss
        A session, whose store of columns grows along the path.
    penalty : L12 or WithIntercept
        Its own strength is not used.
    numbers : Numbers
        The same in numbers.
    strength : float
        The first one.
    start : array or None
        Where to begin; None is zero.

    Attributes
    ----------
    x : array
        Where the path has come to.
    """

    def __init__(self, loss: SquaredLoss, penalty: Any, numbers: Numbers, strength: float, start: Any) -> None:
        self.loss, self.penalty, self.numbers = loss, penalty, numbers
        self.allowed = np.isfinite(numbers.above)  # an infinite weight holds an entry at zero
        self.zero = loss.point(loss.start())
        self.linear = -loss.gradient(self.zero).astype(np.float64)
        self.most = min(MOST_COLUMNS, loss.most_columns)
        columns = np.flatnonzero(self.allowed)
        rows = self.zero.prediction.size
        self.has_every = columns.size <= self.most and rows * columns.size**2 <= WORK
        self._take(columns if self.has_every else columns[:0])
        self.restart(strength, self.zero.x if start is None else start)

    @property
    def x(self) -> Array:
        """Where the path has come to."""
        return self.here.x[0]

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""
        support = np.flatnonzero(x)
        if not self.position[support].all():
            self._take(np.union1d(self.columns, support))
        self.before, self.here = strength, self._look(np.asarray(x)[None, self.columns])

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none: then x is where another solver begins.

        ``tols`` are the stationarities to reach.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        if not self.has_every:
            size = max(1, int(np.count_nonzero(alphas >= BLOCK_FALL * self.before)))
            alphas, tols = alphas[:size], tols[:size]
        good, needed = 0, self.columns if self.has_every else self._needed(float(alphas[-1]))
        while self._has(needed):
            found = self._look(self._solve(alphas, float(tols.min())))
            reached = self._stationarities(found, alphas)
            good = int(np.argmin(np.append(reached <= tols, False)))
            needed = self._violators(found, alphas)
            if good == alphas.size or self.position[needed].all():
                break
        else:
            return []
        seconds = (time.perf_counter() - wall) / max(good, 1), (time.process_time() - cpu) / max(good, 1)
        starts = [self.here, *(found.row(k) for k in range(good - 1))]
        results = [
            found.result(k, start, float(alphas[k]), float(reached[k]), seconds) for k, start in enumerate(starts)
        ]
        last = max(good - 1, 0)
        self.here, self.before = found.row(last), float(alphas[last])
        return results[:good]

    def _needed(self, last: float) -> Array:
        """The columns that are needed down to a strength: the support, what is free, and by the strong rule."""
        gradient, bound = self.here.gradient[0], max(2 * last - self.before, 1e-300)  # not 0, times infinity
        outside = (-gradient >= bound * self.numbers.above) | (-gradient <= bound * self.numbers.below)
        return np.flatnonzero(self.allowed & (outside | (self.x != 0)))

    def _has(self, needed: Array) -> bool:
        """Whether the Gram matrix holds these columns, or can be made to; then it takes some more."""
        new = needed[~self.position[needed]]
        if new.size == 0:
            return True
        size = self.columns.size + new.size
        if size > self.most:
            return False
        others = self.allowed & ~self.position
        others[new] = False
        steep = np.where(others, np.abs(self.here.gradient[0]) / np.maximum(self.numbers.above, 1e-300), -1.0)
        more = min(max(size, FEWEST_NEW), self.most - size, int(np.count_nonzero(others)))
        steepest = np.argsort(-steep, kind="stable")[:more]
        self._take(np.union1d(np.union1d(self.columns, new), steepest))
        return True

    def _take(self, columns: Array) -> None:
        """Make the Gram matrix of some columns, in units in which it is of the size 1.

        These are powers of 2, so that nothing is rounded and columns of any scale take the same steps.
        """
        self.columns, self.within = columns, self.loss.restrict(columns)
        self.position = np.zeros(self.linear.size, dtype=bool)
        self.position[columns] = True
        gram = np.ascontiguousarray(self.loss.hessian(self.zero, columns), dtype=np.float64)
        self.size = _power_of_2(math.sqrt(float(np.diagonal(gram).max(initial=0.0))))
        self.gram = gram / self.size / self.size

    def _solve(self, alphas: Array, tol: float) -> Array:
        """Solutions in the columns at hand, one row for each strength."""
        from ell12.solvers.support.compiled_path import follow

        numbers, columns, size = self.numbers, self.columns, self.size
        height = _power_of_2(max(float(np.abs(self.linear).max()), float(alphas[0])) / size)
        found = follow(
            self.gram,
            self.linear[columns] / size / height,
            numbers.below[columns],
            numbers.above[columns],
            numbers.l2_weight,
            numbers.ridge * (height / size),
            alphas / size / height,
            self.before / size / height,
            self.x[columns].astype(np.float64) * size / height,
            tol,
        )
        return found * height / size

    def _look(self, values: Array) -> _Rows:
        """What is known at some x, of which each row holds the entries at hand: two products with matrices."""
        loss, count = self.loss, values.shape[0]
        x = np.zeros((count, self.linear.size), dtype=self.zero.x.dtype)
        x[:, self.columns] = values
        weight = None if loss.sample_weight is None else loss.sample_weight.reshape(-1)
        targets = np.repeat(loss.b[:, None], count, axis=1)
        wide = SquaredLoss.of_checked(loss.A, targets, sample_weight=weight, scale=loss.scale)
        point = Point(x.T, self.within.point(x[:, self.columns].T).prediction)
        return _Rows(x, wide.gradient(point).T, wide.values(point), self.numbers.values(x))

    def _stationarities(self, found: _Rows, alphas: Array) -> Array:
        reached = self.numbers.violations(found.x, found.gradient, alphas) / alphas
        if self.numbers.l2_weight > 0:  # at zero, where the norm has no slope, the penalty itself is asked
            for k in np.flatnonzero(~np.any(found.x[:, self.numbers.above > 0], axis=1)):
                penalty = self.penalty.scaled(alphas[k] / self.penalty.alpha)
                reached[k] = penalty.violation(found.x[k], found.gradient[k]) / alphas[k]
        return reached

    def _violators(self, found: _Rows, alphas: Array) -> Array:
        """The columns off the support whose first-order condition some row violates."""
        above, below = alphas[:, None] * self.numbers.above, alphas[:, None] * self.numbers.below
        return np.flatnonzero(((-found.gradient > above) | (-found.gradient < below)).any(axis=0) & self.allowed)


def _finite(slopes: Any) -> Any:
    """Slopes with zeros in place of infinities, which no entry that is not zero meets."""
    return np.where(np.isfinite(slopes), slopes, 0.0)


def _power_of_2(size: float) -> float:
    return 2.0 ** round(math.log2(size)) if size > 0 else 1.0

"""Paths under l1-2 over Gram matrices, by compiled calls: of the squared loss many strengths in one.

Every solution is certified from the data, all of a call by two matrix products, and counts only if it holds.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ell12.backend import is_numpy, rounding
from ell12.backend.compiling import can_compile
from ell12.losses import SquaredLoss
from ell12.minimization import Result, Status
from ell12.penalties import L12, WithIntercept
from ell12.protocols import Array, ColumnLoss, Point, missing

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
# Of a loss that is not quadratic, a strength takes three models as a rule. One that takes more than MODELS, or a
# step that is halved more than HALVINGS times, is left to the usual solver.
MODELS, HALVINGS = 20, 10


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
    kind = GramFollower if type(loss) is SquaredLoss else ModelFollower
    return kind(loss, penalty, numbers, float(alphas[0]), zero if start is None else start)


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

    def restrict(self, columns: Any) -> Numbers:
        """The same for some entries alone."""
        return replace(self, below=self.below[columns], above=self.above[columns])

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


class Follower(ABC):
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
    """

    here: _Rows  # what is known there
    before: float  # the strength for which it was found

    def __init__(self, loss: Any, penalty: Any, numbers: Numbers, strength: float, start: Any) -> None:
        self.loss, self.penalty, self.numbers = loss, penalty, numbers
        self.allowed = np.isfinite(numbers.above)  # an infinite weight holds an entry at zero
        self.most = min(MOST_COLUMNS, loss.most_columns)
        self.restart(strength, start)

    @property
    def x(self) -> Array:
        """Where the path has come to."""
        return self.here.x[0]

    @abstractmethod
    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""

    @abstractmethod
    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none: then x is where another solver begins.

        ``tols`` are the stationarities to reach.
        """

    def _needed(self, last: float) -> Array:
        """The columns that are needed down to a strength: the support, what is free, and by the strong rule."""
        gradient, bound = self.here.gradient[0], max(2 * last - self.before, 1e-300)  # not 0, times infinity
        outside = (-gradient >= bound * self.numbers.above) | (-gradient <= bound * self.numbers.below)
        return np.flatnonzero(self.allowed & (outside | (self.x != 0)))

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


class GramFollower(Follower):
    """A block of strengths at a time: a squared loss is its own model, and one Gram matrix serves for all."""

    def __init__(self, loss: SquaredLoss, penalty: Any, numbers: Numbers, strength: float, start: Any) -> None:
        self.zero = loss.point(loss.start())
        self.linear = -loss.gradient(self.zero).astype(np.float64)
        self.columns, self.position = np.empty(0, dtype=np.int64), np.zeros(self.linear.size, dtype=bool)
        super().__init__(loss, penalty, numbers, strength, start)

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""
        every = np.flatnonzero(self.allowed)
        self.has_every = every.size <= self.most and self.zero.prediction.size * every.size**2 <= WORK
        if self.columns.size == 0 or not self.position[x != 0].all():
            self._take(every if self.has_every else np.union1d(self.columns, np.flatnonzero(x)))
        self.before, self.here = strength, self._look(np.asarray(x)[None, self.columns])

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solutions of the first strengths, perhaps of none."""
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
        if good == 0 and not np.isfinite(found.x[0]).all():
            return []
        last = max(good - 1, 0)
        self.here, self.before = found.row(last), float(alphas[last])
        return results[:good]

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
        """Make the Gram matrix of some columns, in units in which it is of the size 1."""
        self.columns, self.within = columns, self.loss.restrict(columns)
        self.position = np.zeros(self.linear.size, dtype=bool)
        self.position[columns] = True
        gram = np.ascontiguousarray(self.loss.hessian(self.zero, columns), dtype=np.float64)
        self.size = _size_of(gram)
        self.gram = gram / self.size / self.size

    def _solve(self, alphas: Array, tol: float) -> Array:
        """Solutions in the columns at hand, one row for each strength."""
        numbers, linear = self.numbers.restrict(self.columns), self.linear[self.columns]
        return _solutions(self.gram, linear, self.size, numbers, alphas, self.before, self.x[self.columns], tol)

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


class ModelFollower(Follower):
    """One strength at a time: models of second order around one point after the other, each over a Gram matrix."""

    def restart(self, strength: float, x: Array) -> None:
        """Go on from another place, which was found for a strength."""
        self.before = strength
        self._move_to(self.loss.point(np.asarray(x)))

    def next_block(self, alphas: Array, tols: Array) -> list[Result]:
        """The certified solution at the first strength, or none.

        Zero is left by the usual solver: around it models were seen to choose worse columns than nmAPG (objectives
        up to 70 % higher on 178 x 13).
        """
        wall, cpu, alpha, start = time.perf_counter(), time.process_time(), float(alphas[0]), self.here
        if self.numbers.l2_weight > 0 and not self.x[self.numbers.above > 0].any():
            return []
        columns = self._needed(alpha)
        self.before = alpha
        for _ in range(MODELS):
            if columns.size > self.most or not self._improve(columns, alpha, float(tols[0])):
                break
            reached = float(self._stationarities(self.here, alphas[:1])[0])
            if reached <= tols[0]:
                seconds = time.perf_counter() - wall, time.process_time() - cpu
                return [self.here.result(0, start, alpha, reached, seconds)]
            columns = np.union1d(columns, self._violators(self.here, alphas[:1]))
        return []

    def _move_to(self, point: Point) -> None:
        x = point.x[None, :]
        parts = self.loss.gradient(point)[None, :], np.array([self.loss.value(point)]), self.numbers.values(x)
        self.point, self.here = point, _Rows(x, *parts)

    def _improve(self, columns: Array, alpha: float, tol: float) -> bool:
        """Step towards the solution of a model in some columns; return whether the objective falls on the way."""
        x, value = self.x, self.here.objective(0, alpha)
        gram = np.ascontiguousarray(self.loss.hessian(self.point, columns), dtype=np.float64)
        linear = gram @ x[columns] - self.here.gradient[0, columns]
        size = _size_of(gram)
        numbers, full = self.numbers.restrict(columns), np.zeros_like(x)
        solve = partial(_solutions, gram / size / size, linear, size, numbers, elsewhere=False)
        full[columns] = solve(np.array([alpha]), alpha, x[columns], tol)[0]
        old, move = self.point, self.loss.point_within(full, columns) - self.point
        for halving in range(HALVINGS):
            new = old + 0.5**halving * move
            rise = self.loss.value(new) + alpha * float(self.numbers.values(new.x[None, :])[0]) - value
            if rise <= (rounding(value, x) if halving == 0 else 0.0):
                self._move_to(Point(full, new.prediction) if halving == 0 else new)
                return True
        return False


def _solutions(
    gram: Any,
    linear: Any,
    size: float,
    numbers: Numbers,
    alphas: Any,
    before: float,
    start: Any,
    tol: float,
    elsewhere: bool = True,
) -> Any:
    """Solutions at some strengths, one in each row, over a Gram matrix that was divided by the square of its size.

    The units are powers of 2, so that nothing is rounded and columns of any scale take the same steps.
    """
    from ell12.solvers.support.compiled_path import follow

    height = _power_of_2(max(float(np.abs(linear).max(initial=0.0)), float(alphas[0])) / size)
    found = follow(
        gram,
        linear / size / height,
        numbers.below,
        numbers.above,
        numbers.l2_weight,
        numbers.ridge * (height / size),
        alphas / size / height,
        before / size / height,
        start.astype(np.float64) * size / height,
        tol,
        elsewhere,
    )
    return found * height / size


def _size_of(gram: Any) -> float:
    """The root of the largest entry on the diagonal, as a power of 2."""
    return _power_of_2(math.sqrt(float(np.diagonal(gram).max(initial=0.0))))


def _finite(slopes: Any) -> Any:
    """Slopes with zeros in place of infinities, which no entry that is not zero meets."""
    return np.where(np.isfinite(slopes), slopes, 0.0)


def _power_of_2(size: float) -> float:
    return 2.0 ** round(math.log2(size)) if size > 0 else 1.0

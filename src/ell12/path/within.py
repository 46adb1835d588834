"""Solutions at falling strengths in a few columns that are in memory, by compiled calls over Gram matrices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ell12.backend import join, power_of_2, rounding
from ell12.protocols import Array, Point

# Of a loss that is not quadratic, a strength takes three models as a rule. One that takes more than MODELS, or a
# step that is halved more than HALVINGS times, is left to the usual solver.
MODELS, HALVINGS = 20, 10
# Models end at this fraction of the tolerance: computed for many strengths at once, the last digits may differ.
CLOSER = 0.9


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
        return np.where(x != 0, np.abs(gradient + alphas * edge), np.maximum(away, 0)).max(axis=1, initial=0.0)

    def violations_at_zero(self, x: Any, gradient: Any, alphas: Any) -> Any:
        """The same of rows that are zero in all entries that are penalised; infinite where this cannot be told.

        There the l2 norm has its slope along every axis: the condition is the Lasso's with that much less weight.
        """
        slope = np.where(self.above > 0, self.l2_weight, 0.0)
        if not np.all(self.above >= slope):
            return np.full(len(x), math.inf)
        rest = replace(self, below=self.below + slope, above=self.above - slope, l2_weight=0.0)
        return rest.violations(x, gradient, alphas)

    def reaches(self, gradient: Any) -> Any:
        """The strength below which an entry of this gradient leaves zero; infinite if it is free."""
        with np.errstate(divide="ignore", invalid="ignore"):
            strengths = np.maximum(-gradient / self.above, -gradient / self.below)
        strengths[~(self.above > 0)] = math.inf
        return strengths

    def are_zero(self, x: Any) -> Any:
        """Which rows are zero in all entries that are penalised."""
        return ~np.any(x[:, self.above > 0], axis=1)

    def restrict(self, columns: Any) -> Numbers:
        """The same for some entries alone."""
        return replace(self, below=self.below[columns], above=self.above[columns])

    def _lengths(self, x: Any) -> Any:
        counted = np.where(self.above > 0, x, 0)
        size = np.abs(counted).max(axis=1, initial=0.0)
        size[size == 0] = 1.0
        return size * np.linalg.norm(counted / size[:, None], axis=1)


@dataclass(frozen=True)
class Found:
    """Some vectors x, one in each row, with what is known there; the predictions stand in columns."""

    x: Any
    gradient: Any
    losses: Any
    predictions: Any

    @classmethod
    def joined(cls, parts: list[Found], empty: Found) -> Found:
        """Several as one."""
        if not parts:
            return cls(empty.x[:0], empty.gradient[:0], empty.losses[:0], empty.predictions[:, :0])
        x, gradient = np.concatenate([part.x for part in parts]), np.concatenate([part.gradient for part in parts])
        losses = np.concatenate([part.losses for part in parts])
        return cls(x, gradient, losses, join([part.predictions for part in parts], 1))


class Within(ABC):
    """Solutions in the columns at hand.

    Parameters
    ----------
    loss : ColumnLoss
        In these columns alone.
    numbers : Numbers
        The penalty's in these.
    most_entries : float, default infinity
        A solution with more that are not zero is the last.
    """

    few = -1  # other minima than the nearest are sought where x has no more entries than this

    def __init__(self, loss: Any, numbers: Numbers, most_entries: float = math.inf) -> None:
        self.loss, self.numbers, self.most_entries = loss, numbers, most_entries

    @abstractmethod
    def solve(self, alphas: Array, tols: Array, before: float, x: Array) -> Found:
        """The solutions at the first strengths, perhaps at none, from one that was found for a strength before."""


class GramWithin(Within):
    """All strengths by one call: a squared loss is its own model, and one Gram matrix serves for all.

    Parameters
    ----------
    old, kept : GramWithin or None, and arrays
        Another, and which of its columns are which of these: their part of the matrix is not made anew.
    """

    def __init__(
        self,
        loss: Any,
        numbers: Numbers,
        most_entries: float,
        old: GramWithin | None,
        kept: tuple[Array, Array],
    ) -> None:
        from ell12.solvers.support.compiled_path import FEW

        super().__init__(loss, numbers, most_entries)
        self.few = FEW if numbers.l2_weight > 0 else -1
        zero = loss.point(loss.start())
        self.linear = -loss.gradient(zero).astype(np.float64)
        self.dtype = zero.x.dtype
        if old is None:
            gram = np.ascontiguousarray(loss.hessian(zero), dtype=np.float64)
        else:
            gram = self._extended(zero, old, *kept)
        self.size = _size_of(gram)
        gram /= self.size  # in two steps, neither of which overflows
        gram /= self.size
        self.gram = gram

    def solve(self, alphas: Array, tols: Array, before: float, x: Array) -> Found:
        """The solutions at all strengths; whether they hold is for the look to say."""
        target = float(tols.min())
        most = int(min(self.most_entries, x.size))
        given = (self.gram, self.linear, self.size, self.numbers, alphas, before, x, target)
        rows = _solutions(*given, most=most)
        rows = rows.astype(self.dtype, copy=False)
        predictions = self.loss.point(rows.T).prediction
        losses, _, gradients = self.loss.look(predictions)
        return Found(rows, gradients.T, losses, predictions)

    def _extended(self, zero: Point, old: GramWithin, theirs: Array, ours: Array) -> Array:
        every = np.arange(self.linear.size)
        new = np.setdiff1d(every, ours)
        gram = np.empty(2 * every.shape)
        known = old.gram[np.ix_(theirs, theirs)]
        known *= old.size
        known *= old.size
        gram[np.ix_(ours, ours)] = known
        del known
        if new.size:
            side = self.loss.hessian(zero, new, every)
            gram[new], gram[:, new] = side, side.T
        return gram


class ModelWithin(Within):
    """One strength after the other, by models of second order around one point after the other."""

    def solve(self, alphas: Array, tols: Array, before: float, x: Array) -> Found:
        """The solutions at the first strengths, up to one that is left to the usual solver.

        That is so where zero is left: around it models were seen to choose worse columns than nmAPG (objectives
        up to 70 % higher on 178 x 13).
        """
        self._move_to(self.loss.point(x))
        start = self.here
        return Found.joined(list(self._solutions(alphas, tols, before)), start)

    def _solutions(self, alphas: Array, tols: Array, before: float) -> Iterator[Found]:
        for alpha, tol in zip(alphas.tolist(), tols.tolist(), strict=True):
            if self.numbers.l2_weight > 0 and self.numbers.are_zero(self.here.x)[0]:
                here, strength = self.here, np.array([alpha])
                if self.numbers.violations_at_zero(here.x, here.gradient, strength)[0] > CLOSER * tol * alpha:
                    return
            elif not self._reach(alpha, CLOSER * tol, max(2 * alpha - before, 0.0)):
                return
            yield self.here
            if np.count_nonzero(self.here.x) > self.most_entries:
                return
            before = alpha

    def _reach(self, alpha: float, tol: float, bound: float) -> bool:
        """Go to the solution at a strength; the columns beyond the bound come first."""
        columns = self._beyond(bound) | (self.here.x[0] != 0)
        for _ in range(MODELS):
            if not self._improve(np.flatnonzero(columns), alpha, tol):
                return False
            here = self.here
            if self.numbers.violations(here.x, here.gradient, np.array([alpha]))[0] <= tol * alpha:
                return True
            columns |= self._beyond(alpha)
        return False

    def _beyond(self, bound: float) -> Array:
        return self.numbers.reaches(self.here.gradient[0]) >= bound

    def _move_to(self, point: Point) -> None:
        losses, gradient = np.array([self.loss.value(point)]), self.loss.gradient(point)[None, :]
        self.point, self.here = point, Found(point.x[None, :], gradient, losses, point.prediction[:, None])

    def _improve(self, columns: Array, alpha: float, tol: float) -> bool:
        """Step towards the solution of a model in some columns; return whether the objective falls on the way."""
        x = self.point.x
        value = self._objective(self.point, alpha)
        gram = np.ascontiguousarray(self.loss.hessian(self.point, columns), dtype=np.float64)
        linear = gram @ x[columns] - self.here.gradient[0, columns]
        size = _size_of(gram)
        numbers, full = self.numbers.restrict(columns), np.zeros_like(x)
        solve = partial(_solutions, gram / size / size, linear, size, numbers, elsewhere=False)
        full[columns] = solve(np.array([alpha]), alpha, x[columns], tol)[0]
        old, move = self.point, self.loss.point_within(full, columns) - self.point
        for halving in range(HALVINGS):
            new = old + 0.5**halving * move
            rise = self._objective(new, alpha) - value
            if rise <= (rounding(value, x) if halving == 0 else 0.0):
                self._move_to(Point(full, new.prediction) if halving == 0 else new)
                return True
        return False

    def _objective(self, point: Point, alpha: float) -> float:
        return self.loss.value(point) + alpha * float(self.numbers.values(point.x[None, :])[0])


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
    most: int | None = None,
) -> Any:
    """Solutions at some strengths, one in each row, over a Gram matrix that was divided by the square of its size.

    The units are powers of 2, so that nothing is rounded and columns of any scale take the same steps.
    """
    from ell12.solvers.support.compiled_path import follow

    height = power_of_2(max(float(np.abs(linear).max(initial=0.0)), float(alphas[0])) / size)
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
        start.size if most is None else most,
    )
    return found * height / size


def _size_of(gram: Any) -> float:
    """The root of the largest entry on the diagonal, as a power of 2."""
    return power_of_2(math.sqrt(float(np.diagonal(gram).max(initial=0.0))))


def _finite(slopes: Any) -> Any:
    """Slopes with zeros in place of infinities, which no entry that is not zero meets."""
    return np.where(np.isfinite(slopes), slopes, 0.0)

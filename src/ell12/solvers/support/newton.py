"""Newton's method on the support that nmAPG finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ell12.backend import as_numpy, is_complex, like, norm, rounding
from ell12.operators.conjugate_gradients import conjugate_gradients
from ell12.protocols import Array, Iterate, Point
from ell12.solvers.proximal_gradient import NonmonotoneAPG
from ell12.solvers.steps import ProximalStep, check_step, objective

PATIENCE = 50  # steps without a change of signs after which the support counts as found
HALVINGS = 12  # of a Newton step, before a proximal step is taken instead
SHORT = 0.25  # a Newton step cut below this fraction asks for a larger shift
LARGEST = 5000  # entries of a support whose Hessian is worth a dense matrix
CONJUGATE_STEPS = 200  # for a Newton step where no dense Hessian is made
CONJUGATE_ACCURACY = 1e-6  # of the residual of such a step, relative to the slope


@dataclass(frozen=True)
class SupportNewton:
    """nmAPG until the support is nearly found, then Newton's method on the support.

    On a fixed support with fixed signs the objective is smooth. Each step solves with its Hessian there, shifted
    until it is positive definite (Levenberg, Marquardt); entries that would cross zero leave the support, and
    entries off it that violate the first-order condition enter, many at a time. A step that does not descend, or
    only where cut short, is followed by a proximal one. After the start the objective never rises beyond rounding.

    Parameters
    ----------
    switch : float
        The stationarity, estimated by nmAPG, at which Newton's method takes over. A smaller one stays
        nearer to the minimum that nmAPG would find, and takes longer.
    step : float or {"lipschitz", "backtracking"}
        Of the proximal steps, as in `ProximalGradient`.

    Notes
    -----
    For real vectors x, and penalties that tell their smooth pieces (``least_slope``, ``hessian``, ``kinks``), as
    `ell12.L12` does. The Hessian of the support is a dense matrix, for up to some thousand entries, unless
    that would be large beside sparse data: then its systems are solved by conjugate gradients.

    Examples
    --------
    >>> from ell12 import L12, SquaredLoss, minimize
    >>> loss = SquaredLoss(np.eye(3), [3.0, -4.0, 0.5])
    >>> minimize(loss, L12(alpha=1.0), solver=SupportNewton(), tol=1e-12).x.round(4)
    array([ 2.5547, -3.8321,  0.    ])
    """

    switch: float = 0.1
    step: float | str = "lipschitz"

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking")
        if not self.switch >= 0:
            raise ValueError(f"switch must be a number >= 0, got {self.switch}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        lack = newton_lacks(loss, penalty, start.x)
        if lack:
            raise TypeError(f"{lack}; use a proximal solver")
        problem, signs = _Problem(loss, penalty), _Signs(start.x)
        for iterate in NonmonotoneAPG(self.step).iterates(loss, penalty, start):
            yield iterate
            signs.update(iterate.point.x)
            near = iterate.optimality <= self.switch * penalty.alpha or signs.unchanged >= PATIENCE
            if near and (signs.support <= LARGEST or not problem.fits(signs.support)):
                break
        here = problem.place(iterate.point)
        take_newton_step, take_proximal_step = _NewtonStep(problem), ProximalStep(loss, penalty, self.step, start)
        while True:
            new = take_newton_step(here)
            if new is None or take_newton_step.length < SHORT:
                new = _lower(problem.place(take_proximal_step((new or here).point)), new or here)
            here = new
            yield Iterate(here.point, here.objective, here.violation)


def newton_lacks(loss: Any, penalty: Any, x: Array) -> str:
    """What Newton's method on the support misses in a problem; nothing if it can solve it."""
    if not all(hasattr(penalty, name) for name in ("least_slope", "hessian", "kinks")):
        return f"{type(penalty).__name__} does not tell its smooth pieces"
    if not all(hasattr(loss, name) for name in ("curvature", "hessian")):
        return f"{type(loss).__name__} has no second derivatives"
    if x.ndim != 1 or is_complex(x):
        return "Newton's method on the support needs a vector of real numbers"
    return ""


class _Signs:
    """The signs of x, and for how many steps they have stayed the same."""

    def __init__(self, x: Array) -> None:
        self.signs, self.unchanged = np.sign(as_numpy(x)), 0

    def update(self, x: Array) -> None:
        """Go on to the next x."""
        signs = np.sign(as_numpy(x))
        self.unchanged = self.unchanged + 1 if np.array_equal(signs, self.signs) else 0
        self.signs = signs

    @property
    def support(self) -> int:
        """The number of entries that are not zero."""
        return int(np.count_nonzero(self.signs))


@dataclass(frozen=True)
class _Place:
    """A point with what is known there."""

    point: Point
    x: Any
    slope: Any  # the least slope: zero where nothing is violated
    objective: float
    violation: float


def _lower(new: _Place, old: _Place) -> _Place:
    return new if new.objective <= old.objective + rounding(old.objective, old.x) else old


def _columns_to_change(place: _Place) -> Any:
    """The support and the worst violators of the first-order condition, so many that it doubles at most."""
    support, violating = np.flatnonzero(place.x), np.flatnonzero((place.x == 0) & (place.slope != 0))
    most = max(support.size, 64)
    if violating.size > most:
        violating = violating[np.argsort(-np.abs(place.slope[violating]))[:most]]
    return np.sort(np.concatenate([support, violating]))


class _Problem:
    """A loss and a penalty, seen as NumPy vectors."""

    def __init__(self, loss: Any, penalty: Any) -> None:
        self.loss, self.penalty = loss, penalty
        self.loss_hessian = _KeptHessian(loss)

    def place(self, point: Point, value: float | None = None) -> _Place:
        """What is known at a point; one product with the adjoint of A."""
        gradient = self.loss.gradient(point)
        slope = np.asarray(as_numpy(self.penalty.least_slope(point.x, gradient)), dtype=np.float64)
        value = objective(self.loss, self.penalty, point) if value is None else value
        return _Place(point, as_numpy(point.x), slope, value, self.penalty.violation(point.x, gradient))

    def hessian(self, place: _Place, columns: Any) -> Any:
        """The Hessian of the objective's smooth piece."""
        return self.loss_hessian(place.point, columns) + as_numpy(self.penalty.hessian(place.point.x, columns))

    def hessian_product(self, place: _Place, columns: Any) -> Callable[[Any], Any]:
        """The map ``v -> H v`` with that Hessian H: two products, and no matrix."""
        loss, penalty, x = self.loss.restrict(columns), self.penalty, place.x
        curvature, tangent = self.loss.curvature(place.point), penalty.subtracted_gradient(x)
        length = norm(tangent)
        unit = tangent[columns] / (length or 1.0)
        bend = length**2 / float(tangent @ x) if length else 0.0
        bent = penalty.subtracted_gradient(np.ones_like(x))[columns] != 0

        def product(v: Any) -> Any:
            return loss.gradient_of(curvature * loss.point(v).prediction) - bend * (bent * v - (unit @ v) * unit)

        return product

    def fits(self, columns: int) -> bool:
        """Whether a dense Hessian in so many columns is small beside the data."""
        return columns <= getattr(self.loss, "most_columns", math.inf)

    def shift_unit(self, place: _Place, hessian: Any = None) -> float:
        """A shift to begin with: the curvature of the subtracted norm where ``l2_weight`` is 1."""
        rounding = 0.0 if hessian is None else 1e-12 * float(np.abs(np.diagonal(hessian)).max(initial=0.0))
        return max(self.penalty.alpha / (norm(place.x) or math.inf), rounding) or 1.0


class _NewtonStep:
    """One step of Newton's method on the support; it remembers the shift and how long the step was."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        self.shift = self.length = 0.0

    def __call__(self, here: _Place) -> _Place | None:
        """The place after a step along which the objective falls; None where there is none."""
        found = self._direction(here)
        if found is None:
            return None
        columns, direction, unit = found
        new = self._search(here, columns, direction)
        if self.length < SHORT:
            self.shift = max(4 * self.shift, unit) if self.shift < 1e12 * unit else 0.0  # all tried: once more
        elif self.length == 1:
            self.shift = self.shift / 4 if self.shift > unit / 4 else 0.0
        return new

    def _direction(self, here: _Place) -> tuple[Any, Any, float] | None:
        """The columns to change, Newton's direction in them, and the unit of the shift."""
        columns = _columns_to_change(here)
        for _ in range(4):
            if not np.any(here.slope[columns]):
                return None
            direction, unit = self._newton_direction(here, columns)
            if direction is None:
                return None
            # What enters must move down its slope; the others would be cut off and could spoil the descent.
            entering = here.x[columns] == 0
            wrong = entering & (direction * here.slope[columns] >= 0)
            if not wrong.any():
                break
            columns, direction = columns[~wrong], direction[~wrong]
        return columns, direction, unit

    def _newton_direction(self, here: _Place, columns: Any) -> tuple[Any, float]:
        """Newton's direction in some columns, None where there is none, and the unit of the shift."""
        problem, slope = self.problem, here.slope[columns]
        if not problem.fits(columns.size):
            direction = descending(problem.hessian_product(here, columns), self.shift, slope)
            return direction if np.isfinite(direction).all() else None, problem.shift_unit(here)
        hessian = problem.hessian(here, columns)
        unit = problem.shift_unit(here, hessian)
        return -self._solve(hessian, slope, unit) if np.isfinite(hessian).all() else None, unit

    def _solve(self, hessian: Any, slope: Any, unit: float) -> Any:
        """Solve with the Hessian, shifted by as much as it takes to be positive definite."""
        diagonal = np.diagonal(hessian).copy()
        while True:
            np.fill_diagonal(hessian, diagonal + self.shift)
            try:
                return cho_solve(cho_factor(hessian, lower=True, check_finite=False), slope, check_finite=False)
            except LinAlgError:
                self.shift = max(4 * self.shift, unit)

    def _search(self, here: _Place, columns: Any, direction: Any) -> _Place | None:
        """Halve the step until the objective falls; entries with a kink at zero stop there."""
        problem, x, slope = self.problem, here.x[columns], here.slope[columns]
        signs = np.where(x != 0, np.sign(x), -np.sign(slope))
        kinks = as_numpy(problem.penalty.kinks(here.point.x))[columns]
        self.length = 1.0
        for _ in range(HALVINGS):
            moved = x + self.length * direction
            moved[kinks & (moved * signs <= 0)] = 0
            full = here.x.copy()
            full[columns] = moved
            point = problem.loss.point(like(full, here.point.x))
            value = objective(problem.loss, problem.penalty, point)
            if value < here.objective + 1e-4 * min(float(slope @ (moved - x)), 0.0):
                return problem.place(point, value)
            if self.length == 1 and value <= here.objective + rounding(
                here.objective, here.x
            ):  # near the end only the slope can tell
                new = problem.place(point, value)
                if new.violation < 0.5 * here.violation:
                    return new
            self.length *= 0.5
        self.length = 0.0
        return None


def descending(product: Callable[[Any], Any], shift: float, slope: Any) -> Any:
    """About ``-(H + shift I)^-1 slope`` by conjugate gradients, cut off where the curvature is not positive.

    Examples
    --------
    >>> descending(lambda v: np.array([1.0, 4.0]) * v, 0.0, np.array([2.0, 4.0])).round(9)
    array([-2., -1.])
    """
    return conjugate_gradients(
        lambda v: product(v) + shift * v, -slope, tol=CONJUGATE_ACCURACY, max_iter=CONJUGATE_STEPS
    )


class _KeptHessian:
    """Hessians of the loss in changing columns: entries are computed once while the curvature stays the same."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self.curvature: Any = None
        self.columns: Any = np.empty(0, dtype=np.int64)
        self.matrix: Any = np.empty((0, 0))

    def __call__(self, point: Point, columns: Any) -> Any:
        """A fresh copy of the Hessian in the given columns, which are sorted."""
        curvature = as_numpy(self.loss.curvature(point))
        if self.curvature is None or not np.array_equal(curvature, self.curvature):
            self._begin(point, columns, curvature)
        new = np.setdiff1d(columns, self.columns, assume_unique=True)
        if self.columns.size + new.size > 2 * columns.size + 64:  # too much that is not used any more
            self._begin(point, columns, curvature)
        elif new.size:
            self._extend(point, new)
        order = np.argsort(self.columns)
        where = order[np.searchsorted(self.columns, columns, sorter=order)]
        return self.matrix[np.ix_(where, where)]

    def _begin(self, point: Point, columns: Any, curvature: Any) -> None:
        self.curvature, self.columns = curvature, columns
        self.matrix = self._block(point, columns)

    def _extend(self, point: Point, new: Any) -> None:
        cross = self._block(point, self.columns, new)
        self.matrix = np.block([[self.matrix, cross], [cross.T, self._block(point, new)]])
        self.columns = np.concatenate([self.columns, new])

    def _block(self, point: Point, *columns: Any) -> Any:
        return np.asarray(as_numpy(self.loss.hessian(point, *columns)), dtype=np.float64)

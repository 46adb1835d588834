"""Splitting methods for the true l1-2 total variation: DCA with split Bregman inside, growing ADMM."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import is_number, namespace, norm
from ell12.operators.conjugate_gradients import conjugate_gradients
from ell12.protocols import Array, Iterate, Point
from ell12.prox.kernel import prox_rows, prox_vector
from ell12.prox.layout import row_norms
from ell12.restoration.normal_equations import (
    Solve,
    exact_solver,
    has_exact_solver,
    normal_product,
)
from ell12.restoration.total_variation import TotalVariationL12


@dataclass(frozen=True)
class TotalVariationDCA:
    """``x <- argmin f(x) + alpha (||D x||_1 - l2_weight <D x, q>)``, q the unit vectors along the last D x.

    The difference-of-convex algorithm of Lou, Zeng, Osher & Xin, doi:10.1137/14098435X, for the penalty without
    smoothing; each convex problem by split Bregman, that is ADMM, whose variables are carried over.

    Parameters
    ----------
    penalty_weight : float or {"auto"}
        ADMM's rho; "auto" is 10 alpha, a threshold of a tenth of the range.
    inner_tol : float
        A convex problem ends when x changes by less than this fraction of itself.
    inner_max_iter : int
        Or after so many steps.
    cg_tol, cg_max_iter
        For operators that no transform makes diagonal, the limits of conjugate gradients.
    """

    smooths: ClassVar[bool] = False

    penalty_weight: float | str = "auto"
    inner_tol: float = 1e-4
    inner_max_iter: int = 300
    cg_tol: float = 1e-5
    cg_max_iter: int = 100

    def __post_init__(self) -> None:
        rho = self.penalty_weight
        if rho != "auto" and not (is_number(rho) and 0 < float(rho) < math.inf):
            raise ValueError(f"penalty_weight must be a number > 0 or 'auto', got {rho!r}")

    def iterates(self, loss: Any, penalty: TotalVariationL12, start: Point) -> Iterator[Iterate]:
        """Yield one iterate per convex problem solved."""
        _check_unsmoothed(penalty)
        if penalty.bounds is not None:
            raise ValueError("TotalVariationDCA takes no bounds; use SmoothedGradient() or GrowingADMM()")
        rho = 10 * penalty.alpha if self.penalty_weight == "auto" else float(self.penalty_weight)
        rho = rho or 1.0
        solve = _solver(loss, penalty, start.x, self.cg_tol, self.cg_max_iter)
        D = penalty.differences(start.x)
        data = _data_gradient(loss)
        x = start.x
        steps = D @ penalty.flipped(x)
        split, multiplier = steps, 0 * steps
        xp = namespace(steps)
        while True:
            unit = penalty.alpha * penalty.l2_weight * _units(steps)
            right = data + penalty.flipped(D.H @ unit)
            for _ in range(self.inner_max_iter):
                old = x
                x = solve(right + rho * penalty.flipped(D.H @ (split - multiplier)), x, rho, 0.0)
                steps = D @ penalty.flipped(x)
                split = prox_vector(steps + multiplier, penalty.alpha / rho, 0.0)
                multiplier = multiplier + steps - split
                if norm(x - old) <= self.inner_tol * norm(x):
                    break
            point = loss.point(x)
            turned = penalty.alpha * penalty.l2_weight * _units(steps) - unit
            # Where differences are zero, but for rounding, every vector no longer than one is a subgradient.
            turned = xp.where(row_norms(split) > 0, turned, 0 * turned)
            yield Iterate(point, loss.value(point) + penalty.value(x), penalty.size(D.H @ turned))


@dataclass(frozen=True)
class GrowingADMM:
    """ADMM on ``f(x) + penalty(W)``, ``W = D x``, whose penalty weight grows by a factor at each step.

    With a fixed weight it need not converge, and cycles; growing, it settles, in the lowest true objective of
    all methods here on photographs. The penalty is the one without smoothing. Bounds are a second constraint.

    Parameters
    ----------
    growth : float
        The factor, above 1.
    first_threshold : float
        The threshold ``alpha / rho`` at the first step, in the units of the image.
    cg_tol, cg_max_iter
        For operators that no transform makes diagonal, the limits of conjugate gradients.
    """

    smooths: ClassVar[bool] = False

    growth: float = 1.05
    first_threshold: float = 1.0
    cg_tol: float = 1e-5
    cg_max_iter: int = 100

    def __post_init__(self) -> None:
        if not self.growth > 1:
            raise ValueError(f"growth must be a number > 1, got {self.growth!r}")
        if not self.first_threshold > 0:
            raise ValueError(f"first_threshold must be a number > 0, got {self.first_threshold!r}")

    def iterates(self, loss: Any, penalty: TotalVariationL12, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        _check_unsmoothed(penalty)
        solve = _solver(loss, penalty, start.x, self.cg_tol, self.cg_max_iter)
        D, data, x = penalty.differences(start.x), _data_gradient(loss), start.x
        rho = (penalty.alpha or 1.0) / self.first_threshold
        bounded = penalty.bounds is not None
        split = D @ penalty.flipped(x)
        multiplier, inside, held = 0 * split, x, 0 * x
        while True:
            right = data + rho * penalty.flipped(D.H @ (split - multiplier))
            if bounded:
                right = right + rho * (inside - held)
            x = solve(right, x, rho, rho if bounded else 0.0)
            steps, old = D @ penalty.flipped(x), split
            split = prox_rows(steps + multiplier, penalty.alpha / rho, penalty.l2_weight)
            multiplier = (multiplier + steps - split) / self.growth
            if bounded:
                inside = penalty.project(x + held)
                held = (held + x - inside) / self.growth
            point = loss.point(penalty.project(x))
            left = rho * (D.H @ (split - old))
            yield Iterate(point, loss.value(point) + penalty.value(point.x), penalty.size(left))
            rho *= self.growth


def _check_unsmoothed(penalty: Any) -> None:
    if not isinstance(penalty, TotalVariationL12) or penalty.smoothing != 0:
        raise ValueError(f"this solver needs a TotalVariationL12 with smoothing 0, got {penalty!r}")


def _data_gradient(loss: Any) -> Array:
    """``A'y``."""
    zero = loss.start()
    return -loss.gradient(Point(zero, 0 * loss.b))


def _units(steps: Array) -> Array:
    """Each pixel's differences divided by their norm; zero where that is zero."""
    size = row_norms(steps)
    return steps / namespace(steps).where(size > 0, size, 1)


def _solver(
    loss: Any, penalty: TotalVariationL12, x: Array, tol: float, max_iter: int
) -> Callable[[Array, Array, float, float], Array]:
    """The map (right, start, weight, shift) -> solution of the normal equations, exact where that is possible."""
    if has_exact_solver(loss.A, penalty):
        exact: Solve = exact_solver(loss.A, penalty, x)
        return lambda right, _start, weight, shift: exact(right, weight, shift)

    def rough(right: Array, start: Array, weight: float, shift: float) -> Array:
        product = normal_product(loss.A, penalty, weight, shift)
        return conjugate_gradients(product, right, start, tol=tol, max_iter=max_iter)

    return rough

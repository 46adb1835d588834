"""Splitting methods for total variation: alternating minimisation, growing ADMM, DCA."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import norm
from ell12.checks import check_counts, check_flags, check_word, set_numbers
from ell12.operators import adjoint_product, product
from ell12.operators.krylov import conjugate_gradients
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration import smoothed_gradient as smooth
from ell12.restoration.splitting_parts import exact_solver, fit_of, has_exact_solver, normal_product


@dataclass(frozen=True)
class AlternatingMinimization:
    """The paper's alternating minimisation over an image and its differences.

    ``W = prox(D x)``, ``x = (A'A + mu D'D)^-1 (A'y + mu D'W)`` in turn, from ``W = 0`` on: AltMin of Yao, Kwok &
    Guo (arXiv:1610.09461, equations 25 to 28 and Proposition IV.3).

    With ``mu = alpha / smoothing`` the paper's ``mu = 100 alpha`` is ``smoothing = 0.01``. One
    round is the step ``x - (A'A + mu D'D)^-1 gradient`` on the smoothed objective, which never raises it, however
    roughly the system is solved.

    Parameters
    ----------
    inner : {"cg", "exact"}, default "cg"
        How x is found: conjugate gradients started at the last x, as in the paper, or one cosine or Fourier
        transform there and back where these make both A'A and D'D diagonal.
    accelerated : bool, default False
        Extrapolate, with gradient restart.
    cg_tol : float, default 1e-4
        Conjugate gradients stop when the residual is at most this fraction of the right-hand side.
    cg_max_iter : int, default 100
        Or after this number of steps.

    See Also
    --------
    SmoothedGradient : The default: a smoothed problem.
    """

    smooths: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(smooth.SmoothImageLoss, smooth.VariationPenalty)

    inner: str = "cg"
    accelerated: bool = False
    cg_tol: float = 1e-4
    cg_max_iter: int = 100

    def __post_init__(self) -> None:
        check_word(self.inner, "inner", "cg", "exact")
        check_flags(accelerated=self.accelerated)
        set_numbers(self, "cg_tol")
        check_counts(least=1, optional=False, cg_max_iter=self.cg_max_iter)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a round."""
        smooth.check_smoothing(penalty, smooths=True, bounded=False)
        if loss.scale > 1 or loss.sample_weight is not None:  # then A'A does not bound the curvature
            raise ValueError(f"this solver needs a loss of scale <= 1 without sample_weight, got {loss!r}")
        step = self._step(loss, penalty, start.x)
        D = penalty.differences(start.x)
        # W = 0: the quadratic mu/2 ||D x||^2 in place of the penalty.
        slope = penalty.mu * adjoint_product(D, product(D, start.x))
        first = loss.point(start.x - step(loss.gradient(start) + slope, start.x))
        return smooth.descend(loss, penalty, first, step, smooth.Momentum() if self.accelerated else None)

    def _step(self, loss: Any, penalty: Any, x: Array) -> Callable[[Array, Array], Array]:
        """The change of x, ``(A'A + mu D'D)^-1 gradient``."""
        if self.inner == "exact":
            exact = exact_solver(loss.A, penalty, x)
            return lambda gradient, _: exact(gradient, penalty.mu, 0.0)
        times = normal_product(loss.A, penalty, penalty.mu)

        def warm_started(gradient: Array, x: Array) -> Array:
            right = times(x) - gradient  # A'y + mu D'W
            return x - conjugate_gradients(times, right, x, tol=self.cg_tol, max_iter=self.cg_max_iter)

        return warm_started


@dataclass(frozen=True)
class TotalVariationDCA:
    """The difference-of-convex algorithm for total variation.

    ``x <- argmin f(x) + alpha (||D x||_1 - l2_weight <D x, q>)``, q the unit vectors along the last D x.

    Isotropic, ``sum_i ||(D x)_i||_2`` in place of the l1 norm, and q is one unit vector for the image.

    The difference-of-convex algorithm of Lou, Zeng, Osher & Xin, doi:10.1137/14098435X, for the penalty without
    smoothing. Each convex problem is solved by split Bregman, that is ADMM.

    Parameters
    ----------
    inner_tol : float, default 1e-4
        A convex problem ends when x changes by less than this fraction of itself.
    inner_max_iter : int, default 300
        Or after this number of steps.
    cg_tol, cg_max_iter
        The limits of conjugate gradients, where these are used.
    convex_start : bool, default False
        Let the first q be zero: the first problem is then total variation, whatever the start. For few
        measurements, where the start is a poor guide.
    least_gain : float, default 0.0
        End after two convex problems that did not lower the objective by this fraction of it; 0: never.
    warm_start : bool, default True
        Carry ADMM's variables over from one convex problem to the next; else each begins at the start.
    inner : {"exact", "cg"}, default "exact"
        Solve ADMM's linear systems by a transform where one makes them diagonal, or always by conjugate gradients.

    See Also
    --------
    GrowingADMM : For other losses.
    SmoothedGradient : The default: a smoothed problem.
    """

    smooths: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs(smooth.ImageLoss, smooth.VariationPenalty)

    inner_tol: float = 1e-4
    inner_max_iter: int = 300
    cg_tol: float = 1e-5
    cg_max_iter: int = 100
    convex_start: bool = False
    least_gain: float = 0.0
    warm_start: bool = True
    inner: str = "exact"

    def __post_init__(self) -> None:
        check_flags(convex_start=self.convex_start, warm_start=self.warm_start)
        check_word(self.inner, "inner", "exact", "cg")
        set_numbers(self, "inner_tol", "cg_tol", "least_gain")
        check_counts(least=1, optional=False, inner_max_iter=self.inner_max_iter, cg_max_iter=self.cg_max_iter)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate per convex problem solved, and None after each step within one."""
        smooth.check_smoothing(penalty, smooths=False)
        rho = 10 * (penalty.alpha or 0.1) / penalty.spread(start.x)  # a threshold of a tenth of the range
        split = self._splitting(loss, penalty, start.x)
        relief = (0.0 if self.convex_start else 1.0) * penalty.relief(split.W)
        best, idle = math.inf, 0
        while True:
            slope = adjoint_product(split.D, relief)
            split = split if self.warm_start else self._splitting(loss, penalty, start.x)
            for step in range(self.inner_max_iter):
                old = split.x
                split.advance(rho, 0.0, slope)
                # The first step need not move x: W begins as its differences.
                if step and norm(split.x - old) <= self.inner_tol * norm(split.x):
                    break
                yield None
            point = loss.point(penalty.project(split.x))
            # Where W is zero every vector no longer than one is a subgradient: zero, so that nothing turns there.
            left, relief = -relief, penalty.relief(split.W)
            left = adjoint_product(split.D, left + relief)
            objective = loss.value(point) + penalty.value(point.x)
            if split.fit.gradient is None:
                yield Iterate(point, objective, penalty.size(left))
            else:
                yield split.certified(point, objective, left + split.left(rho))
            idle = 0 if objective < (1 - self.least_gain) * best else idle + 1
            if self.least_gain and idle == 2:
                return
            best = min(best, objective)

    def _splitting(self, loss: Any, penalty: Any, x: Array) -> _Splitting:
        return _Splitting(loss, penalty, x, self.cg_tol, self.cg_max_iter, self.inner == "exact")


@dataclass(frozen=True)
class GrowingADMM:
    """ADMM whose penalty weight grows in each step.

    ADMM on ``f(x) + penalty(W)``, ``W = D x``, whose penalty weight grows by a factor at each step.

    With a fixed weight it need not converge, and cycles; growing, it settles, in the lowest true objective of
    all methods here on photographs. The penalty is the one without smoothing. Bounds are a second constraint.
    A loss that is not squared must tell the proximal map of its part in the prediction, and has its own constraint
    ``v = A x``.

    Parameters
    ----------
    growth : float, default 1.05
        The factor, above 1.
    first_threshold : float, optional
        The threshold ``alpha / rho`` at the first step; by default the range of the values of the start.
    cg_tol, cg_max_iter
        For operators that no transform makes diagonal, the limits of conjugate gradients.

    See Also
    --------
    TotalVariationDCA : Solves convex problems.
    SmoothedGradient : The default: a smoothed problem.
    """

    smooths: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs(smooth.ImageLoss, smooth.VariationPenalty)

    growth: float = 1.05
    first_threshold: float | None = None
    cg_tol: float = 1e-5
    cg_max_iter: int = 100

    def __post_init__(self) -> None:
        set_numbers(
            self, "growth", "cg_tol", positive="first_threshold" if self.first_threshold is not None else ""
        )
        if self.growth <= 1:
            raise ValueError(f"growth must be a number > 1, got {self.growth!r}")
        check_counts(least=1, optional=False, cg_max_iter=self.cg_max_iter)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate a step, None where the loss is not finite yet."""
        smooth.check_smoothing(penalty, smooths=False)
        split = _Splitting(loss, penalty, start.x, self.cg_tol, self.cg_max_iter)
        rho = split.fit.unit(penalty.alpha) / (self.first_threshold or split.unit)
        if rho == 0:
            raise ValueError(f"first_threshold must be smaller compared with alpha {penalty.alpha:g}")
        average = 0 * start.x
        for count in itertools.count(1):
            before = split.x
            split.advance(rho, penalty.l2_weight)
            point = loss.point(penalty.project(split.x))
            objective = loss.value(point) + penalty.value(point.x)
            if split.fit.gradient is None:
                # A few pixels may go on switching, ever more slightly, so that what is left of the multipliers
                # stays the same: an image that hardly moves is reason enough to compute the certificate.
                optimality = min(penalty.size(split.left(rho)), penalty.size(split.x - before))
                yield Iterate(point, objective, optimality)
            else:
                # Averaged over some 20 steps: pixels that go on switching between two branches of the prox, ever
                # more slightly, have subgradients on both sides, which cancel.
                average = average / self.growth + (1 - 1 / self.growth) * split.left(rho)
                yield split.certified(point, objective, average / (1 - self.growth**-count))
                # The last multipliers go on changing for ever: a run ends where the threshold is negligible.
                # The objective then fell by 2e-6 of itself in 50 steps.
                if split.fit.unit(penalty.alpha) / rho < smooth.NEGLIGIBLE * split.unit:
                    return
            split.scale_multipliers(1 / self.growth)
            rho *= self.growth


class _Splitting:
    """ADMM on ``f(x) + penalty(W)`` subject to ``W = D x`` and to bounds on x: its variables, and one step.

    A loss that is not squared is split off as well, see `SplitPrediction`.

    The ADMM of `ell12.DCA` stays apart. It splits x itself with one weight for the whole run; here the
    differences of x are split off with a weight that may grow, so that a step solves normal equations of A and D.
    """

    def __init__(self, loss: Any, penalty: Any, x: Array, tol: float, max_iter: int, exact: bool = True) -> None:
        self.fit = fit_of(loss, x)
        self.penalty, self.x, self.D = penalty, x, penalty.differences(x)
        self.unit = penalty.spread(x)
        self.solve = _solver(self.fit.A, penalty, x, tol, max_iter, exact)
        self.steps = self.W = self.old_W = product(self.D, x)
        self.u = 0 * self.W  # the scaled multiplier of W = D x
        self.inside, self.held = x, 0 * x  # x within the bounds, and the scaled multiplier of that
        self.old_inside = x

    def advance(self, rho: float, l2_weight: float, slope: Any = 0.0) -> None:
        """One step on ``f(x) + penalty(W) - <slope, x>``, the penalty with this weight."""
        weight = self.fit.weight(rho, self.penalty.alpha)
        right = self.fit.data(weight) + slope + rho * adjoint_product(self.D, self.W - self.u)
        bounded = self.penalty.bounds is not None
        if bounded:
            right = right + rho * (self.inside - self.held)
        self.x = self.solve(right / weight, self.x, rho / weight, rho / weight if bounded else 0.0)
        self.fit.advance(self.x, weight)
        self.steps = product(self.D, self.x)
        self.old_W, self.old_inside = self.W, self.inside
        self.W = self.penalty.shrink(self.steps + self.u, rho, l2_weight)
        self.u = self.u + self.steps - self.W
        if bounded:
            self.inside = self.penalty.project(self.x + self.held)
            self.held = self.held + self.x - self.inside

    def left(self, rho: float) -> Array:
        """The violation of the first-order condition by the subgradients at W, v and within the bounds."""
        moved = adjoint_product(self.D, self.W - self.old_W)
        if self.penalty.bounds is not None:
            moved = moved + self.inside - self.old_inside
        return rho * moved + self.fit.left

    def certified(self, point: Point, objective: float, left: Array) -> Iterate | None:
        """The iterate of a loss that was split off, which no other certificate knows; None if it is infinite.

        Its subgradients are those at points that are split off. These must be near to the image: their distance,
        in units of the smoothing that other solvers have, counts like a violation.
        """
        away = max(norm(self.steps - self.W) / math.sqrt(math.prod(self.x.shape)), self.fit.distance)
        apart = self.penalty.alpha * away / (smooth.SMOOTHED * self.unit)
        iterate = Iterate(point, objective, max(self.penalty.size(left), apart), exact=True)
        return iterate if math.isfinite(objective) else None

    def scale_multipliers(self, factor: float) -> None:
        """Keep the multipliers what they are when the weight is divided by the factor."""
        self.u, self.held = factor * self.u, factor * self.held
        self.fit.scale_multipliers(factor)


def _solver(
    A: Any, penalty: Any, x: Array, tol: float, max_iter: int, wanted: bool
) -> Callable[[Array, Array, float, float], Array]:
    """The map (right, start, weight, shift) -> solution of the normal equations, exact if wanted and possible."""
    if wanted and has_exact_solver(A, penalty, x):
        exact = exact_solver(A, penalty, x)
        return lambda right, _start, weight, shift: exact(right, weight, shift)

    def rough(right: Array, start: Array, weight: float, shift: float) -> Array:
        times = normal_product(A, penalty, weight, shift)
        return conjugate_gradients(times, right, start, tol=tol, max_iter=max_iter)

    return rough

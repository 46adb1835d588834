"""Splitting methods for total variation: alternating minimisation, growing ADMM."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import norm
from ell12.checks import check_counts, check_flags, check_word, set_numbers
from ell12.operators import adjoint_product, product
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration import smoothed_gradient as smooth
from ell12.restoration.splitting_parts import exact_solver, fit_of, has_exact_solver, normal_product, rough_solver


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
            return lambda gradient, x: exact(gradient, x, penalty.mu, 0.0)
        rough = rough_solver(loss.A, penalty, self.cg_tol, self.cg_max_iter)

        def warm_started(gradient: Array, x: Array) -> Array:
            right = normal_product(loss.A, penalty, x, penalty.mu) - gradient  # A'y + mu D'W
            return x - rough(right, x, penalty.mu, 0.0)

        return warm_started


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

    See Also
    --------
    SmoothedGradient : The default: a smoothed problem.
    """

    smooths: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs(smooth.ImageLoss, smooth.VariationPenalty)

    growth: float = 1.05
    first_threshold: float | None = None

    def __post_init__(self) -> None:
        set_numbers(self, "growth", positive="first_threshold" if self.first_threshold is not None else "")
        if self.growth <= 1:
            raise ValueError(f"growth must be a number > 1, got {self.growth!r}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate a step, None where the loss is not finite yet."""
        smooth.check_smoothing(penalty, smooths=False)
        split = Splitting(loss, penalty, start.x)
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


class Splitting:
    """ADMM on ``f(x) + penalty(W)`` subject to ``W = D x`` and to bounds on x: its variables, and one step.

    A loss that is not squared is split off as well, see `SplitPrediction`.

    The ADMM of `ell12.DCA` stays apart. It splits x itself with one weight for the whole run; here the
    differences of x are split off with a weight that may grow, so that a step solves normal equations of A and D.
    """

    def __init__(self, loss: Any, penalty: Any, x: Array) -> None:
        self.fit = fit_of(loss, x)
        self.penalty, self.x, self.D = penalty, x, penalty.differences(x)
        self.unit = penalty.spread(x)
        self.solve = (
            exact_solver(self.fit.A, penalty, x)
            if has_exact_solver(self.fit.A, penalty, x)
            else rough_solver(self.fit.A, penalty)
        )
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

    def convex_steps(self, rho: float, slope: Any, tol: float, max_iter: int) -> Iterator[None]:
        """Steps without the subtracted norm, until x changes by less than ``tol`` of itself or ``max_iter``."""
        for step in range(max_iter):
            old = self.x
            self.advance(rho, 0.0, slope)
            if step and norm(self.x - old) <= tol * norm(self.x):  # the first need not move x: W is D x
                return
            yield None

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

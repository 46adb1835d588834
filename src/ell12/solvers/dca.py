"""The difference-of-convex algorithm (DCA) with ADMM inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import max_abs
from ell12.checks import check_counts, check_positive, set_numbers
from ell12.protocols import Array, DifferencePenalty, Iterate, Needs, Point, ProximalLoss
from ell12.solvers.steps import ProximalStep, objective


@dataclass(frozen=True)
class DCA:
    """``x <- argmin f(x) + convex part(x) - <x, subtracted gradient>``, the inner problem by ADMM.

    Yin, Lou, He & Xin, doi:10.1137/140952363. The loss is factorized once for the whole run; ADMM's variables are
    carried over from one inner problem to the next. As in `SequentialConvex` the first step is a proximal one.

    Parameters
    ----------
    penalty_weight : float or {"auto"}, default "auto"
        ADMM's rho. "auto" is a hundredth of the loss's Lipschitz constant or, where that is infinite or unknown,
        of the curvature that backtracking meets at the start.
    inner_tol : float, default 0.1
        An inner problem ends when its residuals fall below this fraction of the last change of the
        subtracted gradient.
    inner_max_iter : int, default 1000
        Or after this number of steps.
    """

    penalty_weight: float | str = "auto"
    inner_tol: float = 0.1
    inner_max_iter: int = 1000
    needs: ClassVar[Needs] = Needs(ProximalLoss, DifferencePenalty)

    def __post_init__(self) -> None:
        check_positive(self.penalty_weight, "penalty_weight", "auto")
        set_numbers(self, "inner_tol")
        check_counts(least=1, optional=False, inner_max_iter=self.inner_max_iter)

    def iterates(self, loss: Any, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate per inner problem solved, and None after each step within one."""
        take_step = ProximalStep(loss, penalty, "lipschitz", start)
        x = take_step(start)
        yield take_step.iterate(x, start)
        curvature = 1 / take_step.step
        rho = 0.01 * curvature if self.penalty_weight == "auto" else float(self.penalty_weight)
        inner_problem = Admm(loss.proximal(rho), penalty.convex, rho, curvature, x.x)
        slope = penalty.subtracted_gradient(x.x)
        change = penalty.alpha
        while True:
            tol = max(self.inner_tol * change, 1e-12 * penalty.alpha)
            for _ in range(self.inner_max_iter):
                residual = inner_problem.step(slope)
                if residual <= tol:
                    break
                yield None
            x = loss.point(inner_problem.x)
            old, slope = slope, penalty.subtracted_gradient(x.x)
            change = max_abs(slope - old)
            yield Iterate(x, objective(loss, penalty, x), max(change, residual))


class Admm:
    """ADMM for ``min f(v) + convex(x) - <v, slope>`` subject to ``x = v``; it goes on from where it stopped.

    Parameters
    ----------
    solve_loss : function
        ``(q, start) -> argmin_v f(v) + rho/2 ||v - q||^2``.
    convex : Penalty
        The other part, by its prox.
    rho : float
        The weight of the constraint.
    curvature : float
        Of the loss: it turns a distance of x and v into units of the gradient.
    x : array
        Where to begin.
    """

    def __init__(
        self, solve_loss: Callable[[Array, Array], Array], convex: Any, rho: float, curvature: float, x: Array
    ) -> None:
        self.solve_loss, self.convex, self.rho, self.curvature = solve_loss, convex, rho, curvature
        self.x, self.v, self.u = x, x, 0 * x  # u is the scaled multiplier of v = x

    def step(self, slope: Array) -> float:
        """One step; the larger of the two residuals, in units of the gradient."""
        self.v = self.solve_loss(self.x + self.u + slope / self.rho, self.v)
        new = self.convex.prox(self.v - self.u, 1 / self.rho)
        residual = max(self.curvature * max_abs(new - self.v), self.rho * max_abs(new - self.x))
        self.x, self.u = new, self.u + new - self.v
        return residual

"""The difference-of-convex algorithm (DCA) with ADMM inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ell12.backend import is_number, max_abs
from ell12.protocols import Array, DifferencePenalty, Iterate, Point
from ell12.solvers.sequential_convex import check_difference
from ell12.solvers.steps import ProximalStep, objective


@dataclass(frozen=True)
class DCA:
    """``x <- argmin f(x) + convex part(x) - <x, subtracted gradient>``, the inner problem by ADMM.

    Yin, Lou, He & Xin, doi:10.1137/140952363. The loss is factorized once for the whole run; ADMM's variables are
    carried over from one inner problem to the next. As in `SequentialConvex` the first step is a proximal one.

    Parameters
    ----------
    penalty_weight : float or {"auto"}
        ADMM's rho. "auto" is a hundredth of the loss's Lipschitz constant.
    inner_tol : float
        An inner problem ends when its residuals fall below this fraction of the last change of the
        subtracted gradient.
    inner_max_iter : int
        Or after so many steps.
    """

    penalty_weight: float | str = "auto"
    inner_tol: float = 0.1
    inner_max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.penalty_weight != "auto" and not (
            is_number(self.penalty_weight) and float(self.penalty_weight) > 0
        ):
            raise ValueError(f"penalty_weight must be a number > 0 or 'auto', got {self.penalty_weight!r}")

    def iterates(self, loss: Any, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate per inner problem solved."""
        check_difference(penalty)
        if not hasattr(loss, "proximal"):
            raise TypeError(f"{type(loss).__name__} has no proximal step for ADMM; use a proximal solver")
        lipschitz = loss.lipschitz() or 1.0
        rho = 0.01 * lipschitz if self.penalty_weight == "auto" else float(self.penalty_weight)
        take_step = ProximalStep(loss, penalty, "lipschitz", start)
        x = take_step(start)
        yield take_step.iterate(x, start)
        inner_problem = _Admm(loss, penalty.convex, rho, lipschitz, x.x)
        slope = penalty.subtracted_gradient(x.x)
        change = penalty.alpha
        while True:
            tol = max(self.inner_tol * change, 1e-12 * penalty.alpha)
            residual = inner_problem.solve(slope, tol, self.inner_max_iter)
            x = loss.point(inner_problem.x)
            old, slope = slope, penalty.subtracted_gradient(x.x)
            change = max_abs(slope - old)
            yield Iterate(x, objective(loss, penalty, x), max(change, residual))


class _Admm:
    """ADMM for ``min f(v) + convex(x) - <v, slope>`` subject to ``x = v``; it goes on from where it stopped."""

    def __init__(self, loss: Any, convex: Any, rho: float, lipschitz: float, x: Array) -> None:
        self.convex, self.rho, self.lipschitz = convex, rho, lipschitz
        self.solve_loss: Callable[[Array, Array], Array] = loss.proximal(rho)
        self.x, self.v, self.u = x, x, 0 * x  # u is the scaled multiplier of v = x

    def solve(self, slope: Array, tol: float, max_iter: int) -> float:
        """Step until both residuals, in units of the gradient, are at most tol; the last residual."""
        residual = 0.0
        for _ in range(max_iter):
            self.v = self.solve_loss(self.x + self.u + slope / self.rho, self.v)
            new = self.convex.prox(self.v - self.u, 1 / self.rho)
            residual = max(self.lipschitz * max_abs(new - self.v), self.rho * max_abs(new - self.x))
            self.x, self.u = new, self.u + new - self.v
            if residual <= tol:
                break
        return residual

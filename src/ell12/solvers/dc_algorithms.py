"""DCA and sequential convex programming: a penalty's subtracted part by its tangent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import inner, max_abs
from ell12.checks import check_counts, check_flags, check_positive, set_numbers
from ell12.protocols import Array, DifferencePenalty, Iterate, Loss, Needs, Point, ProximalLoss, Solver, missing
from ell12.solvers.proximal_step import ProximalStep, Stepping, objective


@dataclass(frozen=True)
class DCA:
    """The difference-of-convex algorithm, with ADMM for the convex problems.

    ``x <- argmin f(x) + convex part(x) - <x, subtracted gradient>``, the inner problem by ADMM.

    Yin, Lou, He & Xin, doi:10.1137/140952363; Yao, Kwok & Guo, arXiv:1610.09461, equation 4. The loss is
    factorized once for the whole run. As in
    `SequentialConvex` the first step is a proximal one.

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
    warm_start : bool, default True
        Carry x, and ADMM's other variables, over from one inner problem to the next; else each begins at zero.
    inner : solver, optional
        For convex problems, such as `FISTA`, in place of ADMM.

    See Also
    --------
    SequentialConvex : Linearises the subtracted norm.
    NonmonotoneAPG : The paper's method.
    """

    penalty_weight: float | str = "auto"
    inner_tol: float = 0.1
    inner_max_iter: int = 1000
    warm_start: bool = True
    inner: Any = None

    @property
    def needs(self) -> Needs:
        """A loss with a proximal map where ADMM is inside."""
        return Needs(ProximalLoss, DifferencePenalty) if self.inner is None else Needs(penalty=DifferencePenalty)

    def __post_init__(self) -> None:
        check_positive(self.penalty_weight, "penalty_weight", "auto")
        check_flags(warm_start=self.warm_start)
        set_numbers(self, "inner_tol")
        check_counts(least=1, optional=False, inner_max_iter=self.inner_max_iter)
        if self.inner is not None and missing(self.inner, Solver):
            raise TypeError(f"inner must be a Solver such as FISTA(), got {self.inner!r}")

    def iterates(self, loss: Any, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate per inner problem solved, and None after each step within one."""
        take_step = ProximalStep(loss, penalty, "lipschitz", start)
        x = take_step(start)
        yield take_step.iterate(x, start)
        curvature = 1 / take_step.step
        inner_problem = self._inner_problem(loss, penalty.convex, curvature, x)
        slope = penalty.subtracted_gradient(x.x)
        change = penalty.alpha
        while True:
            tol = max(self.inner_tol * change, 1e-12 * penalty.alpha)
            if not self.warm_start:
                inner_problem = self._inner_problem(loss, penalty.convex, curvature, 0 * x)
            for _ in range(self.inner_max_iter):
                residual = inner_problem.step(slope)
                if residual <= tol:
                    break
                yield None
            x = loss.point(inner_problem.x)
            old, slope = slope, penalty.subtracted_gradient(x.x)
            change = max_abs(slope - old)
            yield Iterate(x, objective(loss, penalty, x), max(change, residual))

    def _inner_problem(self, loss: Any, convex: Any, curvature: float, x: Point) -> Any:
        if self.inner is not None:
            return _Solved(self.inner, loss, convex, x)
        rho = 0.01 * curvature if self.penalty_weight == "auto" else float(self.penalty_weight)
        return Admm(loss.proximal(rho), convex, rho, curvature, x.x)


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


class _Solved:
    """``min f(x) + convex(x) - <x, slope>`` by any solver for convex problems, with the interface of `Admm`."""

    def __init__(self, solver: Any, loss: Any, convex: Any, x: Point) -> None:
        self.solver, self.loss, self.convex, self.point, self.x = solver, loss, convex, x, x.x
        self.slope: Any = None

    def step(self, slope: Array) -> float:
        """One step; how far it is from a solution, in units of the gradient. Another slope is another problem."""
        if slope is not self.slope:
            self.slope = slope
            self.iterates = self.solver.iterates(self.loss, _Tilted(self.convex, slope), self.point)
        iterate = next(self.iterates)
        self.point, self.x = iterate.point, iterate.point.x
        return iterate.optimality


@dataclass(frozen=True)
class _Tilted:
    """A convex penalty minus a linear term."""

    convex: Any
    slope: Array

    @property
    def alpha(self) -> float:
        """The strength of the convex penalty."""
        return self.convex.alpha

    def value(self, x: Array) -> float:
        """``convex(x) - <x, slope>``."""
        return self.convex.value(x) - inner(x, self.slope)

    def prox(self, x: Array, step: float) -> Array:
        """The linear term shifts x."""
        return self.convex.prox(x + step * self.slope, step)


@dataclass(frozen=True)
class SequentialConvex(Stepping):
    """Sequential convex programming (SCP).

    ``x <- prox of the convex part at x - step (gradient(x) - subtracted gradient(x))``, SCP.

    The subtracted norm is linearised at x and the loss replaced by its quadratic model (Lu, 2012). Zero would be
    a fixed point, for the subtracted norm has no gradient there, so the first step is a proximal one.

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        As in `ProximalGradient`.

    See Also
    --------
    DCA : Solves a convex problem in each step.
    NonmonotoneAPG : The paper's method.
    """

    needs: ClassVar[Needs] = Needs(penalty=DifferencePenalty)

    def iterates(self, loss: Loss, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        first = ProximalStep(loss, penalty, self.step, start)
        x = first(start)
        yield first.iterate(x, start)
        take_step = ProximalStep(loss, penalty.convex, self.step, x, tilt=penalty.subtracted_gradient)
        while True:
            x, previous = take_step(x), x
            yield take_step.iterate(x, previous, objective(loss, penalty, x))

"""Proximal gradient, FISTA and nmAPG."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.backend import inner
from ell12.checks import set_numbers
from ell12.protocols import Iterate, Loss, Penalty, Point
from ell12.solvers.proximal_step import Nonmonotone, ProximalStep, Stepping, check_step, next_t, objective


@dataclass(frozen=True)
class ProximalGradient(Stepping):
    """The proximal gradient method.

    ``x <- prox(x - step gradient(x), step)``.

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking", "barzilai-borwein"}, default "lipschitz"
        A number; one over the loss's Lipschitz constant, or backtracking where that is infinite or unknown; the
        largest halving of a first guess that the loss allows; or the spectral step of the last move, halved until
        the objective lies below the largest of the last ten (Wright, Nowak & Figueiredo,
        doi:10.1109/TSP.2009.2016892).

    See Also
    --------
    FISTA : With momentum, for convex problems.
    NonmonotoneAPG : The paper's method.
    """

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking", "barzilai-borwein")

    def iterates(self, loss: Loss, penalty: Penalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        if self.step == "barzilai-borwein":
            yield from self._spectral_iterates(loss, penalty, start)
        take_step = ProximalStep(loss, penalty, self.step, start)
        x = start
        while True:
            x, previous = take_step(x), x
            yield take_step.iterate(x, previous)

    def _spectral_iterates(self, loss: Loss, penalty: Penalty, x: Point) -> Iterator[Iterate]:
        take_step = ProximalStep(loss, penalty, "backtracking", x)  # for its first guess
        recent = deque([objective(loss, penalty, x)], maxlen=10)
        gradient = loss.gradient(x)
        while True:
            step, smallest = take_step.step, take_step.step * 2.0**-60
            while True:
                new = loss.point(penalty.prox(x.x - step * gradient, step))
                move, value = new - x, objective(loss, penalty, new)
                square = inner(move.x, move.x)
                if value <= max(recent) - 1e-4 / (2 * step) * square or step < smallest:
                    break
                step *= 0.5
            take_step.step = step
            yield take_step.iterate(new, x, value)
            recent.append(value)
            new_gradient = loss.gradient(new)
            curvature = inner(move.x, new_gradient - gradient)
            if curvature > 0:
                take_step.step = min(max(square / curvature, 1e-8 * step), 1e8 * step)
            x, gradient = new, new_gradient


@dataclass(frozen=True)
class FISTA(Stepping):
    """Accelerated proximal gradient for convex problems (Beck & Teboulle, doi:10.1137/080716542).

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        As in `ProximalGradient`.

    See Also
    --------
    ProximalGradient : Without momentum.
    NonmonotoneAPG : The paper's method.

    Notes
    -----
    Made for convex penalties (``l2_weight=0``). On others it often works, without a guarantee.
    """

    def iterates(self, loss: Loss, penalty: Penalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        take_step = ProximalStep(loss, penalty, self.step, start)
        x = previous = start
        t_previous, t = 0.0, 1.0
        while True:
            y = x + (t_previous - 1) / t * (x - previous)
            x, previous = take_step(y), x
            t_previous, t = t, next_t(t)
            yield take_step.iterate(x, y)


@dataclass(frozen=True)
class NonmonotoneAPG(Stepping):
    """Nonmonotone accelerated proximal gradient, nmAPG (Li & Lin, NIPS 2015): the paper's method.

    An extrapolated step is taken if it lies enough below a running average of the objective; else a plain
    proximal step is made too and the better of the two is kept. An accepted step costs one product with A
    and one with its adjoint.

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        As in `ProximalGradient`.
    eta : float, default 0.8
        Memory of the running average, between 0 (monotone) and 1.
    delta : float, default 1e-4
        How far below the average an extrapolated step must lie, times the square of its length.

    See Also
    --------
    WorkingSet : The default: a few columns at a time.
    ProximalGradient : Without momentum.
    SupportNewton : Newton's method on the support.
    """

    eta: float = 0.8
    delta: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        set_numbers(self, "eta", positive="delta")
        if self.eta >= 1:
            raise ValueError(f"eta must lie in [0, 1), got {self.eta}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        take_step = ProximalStep(loss, penalty, self.step, start)
        state = Nonmonotone(start, objective(loss, penalty, start), self.eta, self.delta)
        while True:
            yield state.advance(take_step.measured, loss.announce).iterate()

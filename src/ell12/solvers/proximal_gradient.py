"""Proximal gradient, FISTA and nmAPG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.checks import set_numbers
from ell12.protocols import Iterate, Loss, Penalty, Point
from ell12.solvers.proximal_step import Nonmonotone, ProximalStep, Stepping, next_t, objective


@dataclass(frozen=True)
class ProximalGradient(Stepping):
    """The proximal gradient method.

    ``x <- prox(x - step gradient(x), step)``.

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        A number; one over the loss's Lipschitz constant, or backtracking where that is infinite or unknown; or the
        largest halving of a first guess that the loss allows.

    See Also
    --------
    FISTA : With momentum, for convex problems.
    NonmonotoneAPG : The paper's method.
    """

    def iterates(self, loss: Loss, penalty: Penalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        take_step, x = ProximalStep(loss, penalty, self.step, start), start
        while True:
            x, previous = take_step(x), x
            yield take_step.iterate(x, previous)


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

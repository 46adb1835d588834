"""Sequential convex programming (SCP)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ell12.protocols import DifferencePenalty, Iterate, Loss, Point, offers
from ell12.solvers.steps import ProximalStep, check_step


@dataclass(frozen=True)
class SequentialConvex:
    """``x <- prox of the convex part at x - step (gradient(x) - subtracted gradient(x))``, SCP.

    The subtracted norm is linearised at x and the loss replaced by its quadratic model (Lu, 2012). Zero would be
    a resting place, for the subtracted norm has no gradient there, so the first step is a proximal one.

    Parameters
    ----------
    step : float or {"lipschitz"}
        A number, or one over the loss's Lipschitz constant.
    """

    step: float | str = "lipschitz"

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz")

    def iterates(self, loss: Loss, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        check_difference(penalty)
        take_step = ProximalStep(loss, penalty, self.step, start)
        step, convex = take_step.step, penalty.convex
        x, previous = take_step(start), start
        while True:
            yield take_step.iterate(x, previous)
            slope = loss.gradient(x) - penalty.subtracted_gradient(x.x)
            x, previous = loss.point(convex.prox(x.x - step * slope, step)), x


def check_difference(penalty: DifferencePenalty) -> None:
    """Raise unless the penalty is a difference of convex functions."""
    if not offers(penalty, DifferencePenalty):
        raise TypeError(f"{type(penalty).__name__} is no difference of convex penalties; use a proximal solver")

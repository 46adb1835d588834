"""Sequential convex programming (SCP)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ell12.protocols import DifferencePenalty, Iterate, Loss, Needs, Point
from ell12.solvers.steps import ProximalStep, check_step, objective


@dataclass(frozen=True)
class SequentialConvex:
    """Sequential convex programming (SCP).

    ``x <- prox of the convex part at x - step (gradient(x) - subtracted gradient(x))``, SCP.

    The subtracted norm is linearised at x and the loss replaced by its quadratic model (Lu, 2012). Zero would be
    a resting place, for the subtracted norm has no gradient there, so the first step is a proximal one.

    Parameters
    ----------
    step : float or {"lipschitz", "backtracking"}, default "lipschitz"
        As in `ProximalGradient`.

    See Also
    --------
    DCA : Solves a convex problem in each step.
    NonmonotoneAPG : The paper's method.
    """

    step: float | str = "lipschitz"
    needs: ClassVar[Needs] = Needs(penalty=DifferencePenalty)

    def __post_init__(self) -> None:
        check_step(self.step, "lipschitz", "backtracking")

    def iterates(self, loss: Loss, penalty: DifferencePenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        first = ProximalStep(loss, penalty, self.step, start)
        x = first(start)
        yield first.iterate(x, start)
        take_step = ProximalStep(loss, penalty.convex, self.step, x, tilt=penalty.subtracted_gradient)
        while True:
            x, previous = take_step(x), x
            yield take_step.iterate(x, previous, objective(loss, penalty, x))

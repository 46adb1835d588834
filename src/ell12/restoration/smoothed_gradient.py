"""The accelerated gradient method on the smoothed total variation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.backend import inner
from ell12.protocols import Iterate, Point
from ell12.restoration.total_variation import TotalVariationL12, root_mean_square


class Momentum:
    """Nesterov's factors, capped where the problem is strongly convex, and restarted on demand."""

    def __init__(self, conditioning: float = 0.0) -> None:
        root = math.sqrt(min(conditioning, 1.0))
        self.cap = (1 - root) / (1 + root)
        self.restart()

    def restart(self) -> None:
        """Begin again without momentum."""
        self.t = 1.0

    def next(self) -> float:
        """The next factor."""
        t, self.t = self.t, (1 + math.sqrt(1 + 4 * self.t**2)) / 2
        return min((t - 1) / self.t, self.cap)


@dataclass(frozen=True)
class SmoothedGradient:
    """``x+ = z - (gradient of f + smoothed penalty at z) / L``, ``z+ = x+ + beta (x+ - x)``, with gradient restart.

    The smoothed penalty is a minimum of quadratics of curvature mu, so that a step of one over
    ``L = ||A||^2 + 4 ndim mu`` never raises the objective. No linear system is solved. The iterates are the points z,
    at which the objective and its gradient are known without a further pass.
    """

    def iterates(self, loss: Any, penalty: TotalVariationL12, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        lipschitz = loss.lipschitz() + penalty.lipschitz
        momentum = Momentum()
        x, z = start.x, start
        while True:
            value, slope = penalty.value_and_gradient(z.x)
            new = penalty.project(z.x - (loss.gradient(z) + slope) / lipschitz)
            move = z.x - new
            yield Iterate(z, loss.value(z) + value, lipschitz * root_mean_square(move))
            beta = momentum.next()
            if inner(move, new - x) > 0:
                momentum.restart()
                beta = 0.0
            x, z = new, loss.point(penalty.project(new + beta * (new - x)))

"""A solver of one's own: accelerated proximal gradient that restarts its momentum."""

# [solver]
from dataclasses import dataclass

from ell12.backend import inner, max_abs
from ell12.protocols import Iterate


@dataclass(frozen=True)
class RestartedFISTA:
    """FISTA that drops its momentum whenever the last move goes uphill.

    O'Donoghue & Candès, doi:10.1007/s10208-013-9150-3.
    """

    def iterates(self, loss, penalty, start):
        """Yield one iterate a step, for ever: `minimize` times, records and stops."""
        step = 1 / loss.lipschitz()
        x, momentum = start, 0 * start
        t = 1.0
        while True:
            y = x + momentum
            new = loss.point(penalty.prox(y.x - step * loss.gradient(y), step))
            move = new - x
            if inner(y.x - new.x, move.x) > 0:
                t = 1.0
            t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
            x, momentum, t = new, (t - 1) / t_next * move, t_next
            objective = loss.value(x) + penalty.value(x.x)
            yield Iterate(x, objective, optimality=max_abs(new.x - y.x) / step)


# [end]

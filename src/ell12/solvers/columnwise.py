"""nmAPG on many problems at once, the columns of x."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.backend import all_true, choose, squares_of_columns, total
from ell12.protocols import Array, Iterate, Loss, Point
from ell12.solvers.proximal_gradient import next_t


@dataclass(frozen=True)
class ColumnwiseAPG:
    """`ell12.NonmonotoneAPG` for each column of x, all products with A being matrix products.

    Every column takes the steps that it would take alone: each accepts or refuses its own extrapolation. It pays
    where a product with one vector waits for memory, on a GPU above all. The loss and the penalty need ``values``,
    one number for each column: `ell12.SquaredLoss` of several right-hand sides and `ell12.ColumnsL12` have it.

    Parameters
    ----------
    eta : float
        Memory of the running averages, between 0 (monotone) and 1.
    delta : float
        How far below its average an extrapolated step must lie, times the square of its length.
    """

    eta: float = 0.8
    delta: float = 1e-4

    def iterates(self, loss: Loss, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        for part in (loss, penalty):
            if not hasattr(part, "values"):
                raise TypeError(f"ColumnwiseAPG needs values of each column, which {type(part).__name__} lacks")
        step = 1 / (loss.lipschitz() or 1.0)

        def take_step(point: Point) -> Point:
            return loss.point(penalty.prox(point.x - step * loss.gradient(point), step))

        def objectives(point: Point) -> Array:
            return loss.values(point) + penalty.values(point.x)  # type: ignore[attr-defined]

        x = previous = z = start
        t_previous, t, q = 0.0, 1.0, 1.0
        average = objectives(x)
        while True:
            y = x + (t_previous - 1) / t * (x - previous) + t_previous / t * (z - x)
            z = take_step(y)
            new, values, move = z, objectives(z), z.x - y.x
            accepted = values <= average - self.delta * squares_of_columns(move)
            if not all_true(accepted):
                plain = take_step(x)
                plain_values = objectives(plain)
                kept = accepted | (values <= plain_values)
                new = Point(choose(kept, z.x, plain.x), choose(kept, z.prediction, plain.prediction))
                values, move = choose(kept, values, plain_values), choose(kept, move, plain.x - x.x)
            x, previous = new, x
            t_previous, t = t, next_t(t)
            q_previous, q = q, self.eta * q + 1
            average = (self.eta * q_previous * average + values) / q
            yield Iterate(x, total(values), penalty.largest(move) / step)

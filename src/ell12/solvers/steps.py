"""One proximal gradient step, of fixed or of backtracked length: what the solvers share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ell12.backend import inner, is_number, max_abs
from ell12.protocols import Array, Iterate, Loss, Penalty, Point

Prox = Callable[[Array, float, Array], Array]


def objective(loss: Loss, penalty: Penalty, point: Point) -> float:
    """The loss plus the penalty; no product."""
    return loss.value(point) + penalty.value(point.x)


def check_step(step: float | str, *names: str) -> None:
    """Raise unless step is a positive number or one of the names."""
    if is_number(step):
        if 0 < float(step) < math.inf:
            return
    elif step in names:
        return
    raise ValueError(f"step must be a finite number > 0 or one of {', '.join(names)}; got {step!r}")


class ProximalStep:
    """``x -> prox(x - step gradient(x), step)``, one product with A and one with its adjoint.

    Where the step is backtracked it is halved, for good, until the loss lies below its quadratic model.
    """

    def __init__(self, loss: Loss, penalty: Penalty, step: float | str, start: Point, prox: Prox | None = None):
        self.loss, self.penalty = loss, penalty
        self.prox = prox or (lambda x, step, _: penalty.prox(x, step))
        self.backtracking = step == "backtracking"
        if is_number(step):
            self.step = float(step)
        else:
            self.step = self._first_guess(start) if self.backtracking else 1 / (loss.lipschitz() or 1.0)

    def __call__(self, point: Point, near: Array | None = None) -> Point:
        """The step from a point; ``near`` is where a numerical prox starts."""
        gradient = self.loss.gradient(point)
        near = point.x if near is None else near
        while True:
            new = self.loss.point(self.prox(point.x - self.step * gradient, self.step, near))
            if not self.backtracking:
                return new
            move = new.x - point.x
            if 2 * self.step * self.loss.divergence(new, point) <= (1 + 1e-12) * inner(move, move):
                return new
            self.step *= 0.5

    def iterate(self, new: Point, old: Point, value: float | None = None) -> Iterate:
        """The iterate at ``new``, which a step from ``old`` has reached."""
        if value is None:
            value = objective(self.loss, self.penalty, new)
        return Iterate(new, value, max_abs(new.x - old.x) / self.step)

    def _first_guess(self, start: Point) -> float:
        """The step that is exact along the gradient: at least 1/L, so that halving finds a good one."""
        gradient: Any = self.loss.gradient(start)
        size = max_abs(gradient)
        if size == 0 or not math.isfinite(size):
            return 1.0
        trial = self.loss.point(start.x - gradient / size)
        curvature = 2 * self.loss.divergence(trial, start)
        return inner(gradient / size, gradient / size) / curvature if curvature > 0 else 1.0

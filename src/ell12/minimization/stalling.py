"""When rounding, and not the solver, keeps a run from its tolerance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import like, max_abs, namespace, rounding
from ell12.protocols import Array, Loss

PATIENCE = 50  # iterations without progress, after which rounding may be what stops a run
MARGIN = 32  # times what the last digits of x do to the gradient, for solvers stop a little above it


class Stall:
    """Counts the iterations since the violation last halved or the objective last fell by more than rounding.

    Examples
    --------
    >>> stall = Stall()
    >>> [stall.is_long(violation, 5.0, 1e-15) for violation in [1.0, 0.4] + 50 * [0.3]].index(True)
    51
    """

    def __init__(self) -> None:
        self.violation = self.objective = math.inf
        self.since, self.patience = 0, PATIENCE

    def is_long(self, violation: float, objective: float, rounding: float) -> bool:
        """Take note of an iteration; return whether it is time to ask for the reason. Each time waits longer."""
        halved, fell = violation <= 0.5 * self.violation, objective < self.objective - rounding
        if halved or fell:
            self.violation, self.objective = min(violation, self.violation), min(objective, self.objective)
            self.since, self.patience = 0, PATIENCE
            return False
        self.since += 1
        if self.since < self.patience:
            return False
        self.since, self.patience = 0, 2 * self.patience
        return True


def gradient_resolution(loss: Loss, x: Array) -> float:
    """How small an entry of the loss's gradient rounding lets one find: below it all is noise.

    What a change of every entry of x by its last digit does to the gradient, with a margin, and the rounding of
    the largest entry that the gradient has at zero. That is measured, by products with A: columns of different
    scales, and terms that cancel in the prediction, count by what they do.

    Examples
    --------
    >>> from ell12 import SquaredLoss
    >>> 1e-16 < gradient_resolution(SquaredLoss(np.eye(2), [1.0, 1.0]), np.ones(2)) < 1e-14
    True
    """
    eps = float(namespace(x).finfo(x.dtype).eps)
    signs = np.random.default_rng(0).choice([-eps, eps], size=tuple(x.shape))
    moved: Any = loss.gradient(loss.point(x + x * like(signs, x))) - loss.gradient(loss.point(x))
    return MARGIN * max_abs(moved) + rounding(max_abs(loss.gradient(loss.point(0 * x))), x)

"""When rounding, not the solver, keeps a run from its tolerance; the start of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.backend import (
    all_finite,
    as_array_of,
    as_floating,
    is_complex,
    is_numpy,
    max_abs,
    namespace,
    refuse_gradient,
    rounding,
    to_device_of,
)
from ell12.minimization.result import Result, Status
from ell12.protocols import Array, Factored, Loss, offers

# After this number of iterations without progress a run asks whether rounding is what stops it.
STALL_AFTER = 50
# Solvers stop a little above what the last digits of x do to the gradient: up to this many times that was seen.
MARGIN = 32
# Up to this stationarity a run that was asked for no more than rounding allows counts as converged.
WIDEST = 0.01


class Stall:
    """Counts the iterations since the violation last halved or the objective last fell by more than rounding.

    Examples
    --------
    >>> from ell12.minimization.rounding_stop import Stall
    >>> stall = Stall()
    >>> [stall.is_long(violation, 5.0, 1e-15) for violation in [1.0, 0.4] + 50 * [0.3]].index(True)
    51
    """

    def __init__(self) -> None:
        self.violation = self.objective = math.inf
        self.since, self.patience = 0, STALL_AFTER

    def is_long(self, violation: float, objective: float, rounding: float, no_progress: bool = False) -> bool:
        """Take note of an iteration; return whether it is time to ask for the reason. Each time waits longer."""
        halved, fell = violation < 0.5 * self.violation, objective < self.objective - rounding
        if halved or fell:
            self.violation, self.objective = min(violation, self.violation), min(objective, self.objective)
            self.since, self.patience = 0, STALL_AFTER
            return False
        # Asking costs about as much as an iteration without progress.
        self.since += STALL_AFTER if no_progress else 1
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
    >>> import numpy as np
    >>> from ell12 import SquaredLoss
    >>> from ell12.minimization.rounding_stop import gradient_resolution
    >>> 1e-16 < gradient_resolution(SquaredLoss(np.eye(2), [1.0, 1.0]), np.ones(2)) < 1e-14
    True
    """
    eps = float(namespace(x).finfo(x.dtype).eps)
    random, step = np.random.default_rng(0), eps * x
    for axis, size in enumerate(x.shape):  # signs for each axis, which take no memory next to that of x
        signs = random.choice([-1.0, 1.0], size=size)
        step = step * as_array_of(signs.reshape(-1, *(1 for _ in x.shape[axis + 1 :])), x)
    moved: Any = loss.gradient(loss.point(x + step)) - loss.gradient(loss.point(x))
    return MARGIN * max_abs(moved) + _rounding_at_zero(loss, 0 * x)


def gradient_rounding(loss: Any, tol: float) -> float:
    """What rounding may do to the entries of a gradient; 0 where that lies far below this tol."""
    zero = loss.start()
    eps = float(namespace(zero).finfo(zero.dtype).eps)
    # In double precision it lies far below the usual tol: the product is saved, and `minimize` sees exceptions.
    return _rounding_at_zero(loss, zero) if tol < 1e7 * eps else 0.0


def _rounding_at_zero(loss: Any, zero: Array) -> float:
    """The rounding of the largest entry that the gradient has at zero."""
    return rounding(max_abs(loss.gradient(loss.point(zero))), zero)


def admit_rounding(result: Result, tol: float) -> Result:
    """The result of a run that was asked for no more than rounding allows, saying so if that was far from tol."""
    if result.converged and result.stationarity > max(tol, WIDEST):
        return replace(result, status=Status.ROUNDING)
    return result


def starting_point(loss: Any, x0: Array | None) -> Array:
    """``x0``, checked, in the precision of the loss; zero where there is none."""
    zero = loss.start()
    if x0 is None:
        return zero
    x0 = as_unknown(loss, x0, "x0")
    return x0 if offers(x0, Factored) or x0.dtype == zero.dtype else namespace(zero).astype(x0, zero.dtype)


def as_unknown(loss: Any, x: Any, name: str) -> Any:
    """``x`` as an unknown of the loss; NumPy arrays keep their precision. An error names the argument."""
    zero = loss.start()
    if offers(zero, Factored):  # the loss, whose unknown is no array, knows what it may be
        try:
            return loss.check_start(x)
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("x0", name)) from error
    refuse_gradient(x, name)
    x = to_device_of(as_floating(x, name), zero, name)
    if tuple(x.shape) != tuple(zero.shape):
        raise ValueError(f"{name} must have shape {tuple(zero.shape)}, got {tuple(x.shape)}")
    if not all_finite(x):
        raise ValueError(f"{name} holds NaN or infinity; every entry must be finite")
    if is_complex(x) and not is_complex(zero):
        raise TypeError(f"{name} holds complex numbers, but the loss is one of real numbers")
    return x if is_numpy(zero) else namespace(zero, x).astype(x, zero.dtype, copy=False)

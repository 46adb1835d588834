"""Momentum, and the nonmonotone acceleration of nmAPG over any point that adds and scales.

Vectors, columns side by side and matrices in factors are such points. What a step is, the caller says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ell12.backend import all_true, is_array

TakeStep = Callable[[Any, Any, Callable[[Any], None]], Any]


def next_t(t: float) -> float:
    """The next of the numbers by which momentum grows."""
    return (1 + math.sqrt(1 + 4 * t * t)) / 2


def extrapolated(x: Any, previous: Any, z: Any, t_previous: float, t: float) -> Any:
    """``x + (t_previous - 1)/t (x - previous) + t_previous/t (z - x)``."""
    y = x + (t_previous - 1) / t * (x - previous)
    return y if z is x else y + t_previous / t * (z - x)  # after an accepted step z is x


def _ignore(*_: Any) -> None:
    """What is done about the next step where nothing is to be gained by knowing it."""


class Nonmonotone:
    """The state of nmAPG (Li & Lin, NIPS 2015), of one problem or of many whose objectives are an array.

    An extrapolated step is taken if it lies enough below a running average of the objective. Else a plain proximal
    step is made too, and the better of the two is kept: of many problems, by each for itself.

    Parameters
    ----------
    start : point
        Where to begin; it adds and scales.
    objective : float or array
        The objective there, or that of each problem.
    eta : float, default 0.8
        Memory of the running average, between 0 (monotone) and 1.
    delta : float, default 1e-4
        How far below the average an extrapolated step must lie, times the square of its length.

    Attributes
    ----------
    x : point
        Where the run is.
    """

    def __init__(self, start: Any, objective: Any, eta: float = 0.8, delta: float = 1e-4) -> None:
        self.x = self.previous = self.z = start
        self.average, self.eta, self.delta = objective, eta, delta
        self.t_previous, self.t, self.q = 0.0, 1.0, 1.0

    def advance(
        self,
        take_step: TakeStep,
        foresee: Callable[..., Any] = _ignore,
        turns_back: Callable[[Any, Any, Any], bool] | None = None,
    ) -> Any:
        """One step.

        Parameters
        ----------
        take_step : function
            Of the point to step from, the present x, and a function to be told of the new point before its
            objective is found. It returns a `ell12.solvers.steps.Step` or what behaves like one.
        foresee : function, default _ignore
            Told where the next step is likely to begin, as a function and its arguments.
        turns_back : function, optional
            Of the new point, the extrapolated one and x: whether the momentum leads uphill and begins anew
            (O'Donoghue & Candès, doi:10.1007/s10208-013-9150-3). That nmAPG converges does not depend on momentum.
        """
        x, y = self.x, extrapolated(self.x, self.previous, self.z, self.t_previous, self.t)
        times = (self.t, next_t(self.t))
        step = take_step(y, x, lambda new: foresee(extrapolated, new, x, new, *times))
        self.z = z = step.point
        accepted = step.objective <= self.average - self.delta * step.square
        if not (all_true(accepted) if is_array(accepted) else accepted):
            plain = take_step(x, x, lambda new: foresee(extrapolated, new, x, z, *times))
            step = step.where(accepted | (step.objective <= plain.objective), plain)
        uphill = turns_back is not None and turns_back(step.point, y, x)
        self.x, self.previous, (self.t_previous, self.t) = step.point, x, times
        if uphill:  # as at the start: the next step begins at x
            self.previous = self.z = step.point
            self.t_previous, self.t = 0.0, 1.0
        q = self.eta * self.q + 1
        self.average = (self.eta * self.q * self.average + step.objective) / q
        self.q = q
        return step

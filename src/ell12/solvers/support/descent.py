"""A quadratic plus a penalty with a kink in each entry: coordinate descent, and Newton's method on the support.

What is minimised is ``1/2 (y - x)' H (y - x) + gradient' (y - x) + penalty(y)`` with H a dense matrix: the squared
loss in the columns of a working set, exactly, or the model of another loss around a point.

Its Newton step is not that of `ell12.SupportNewton`: a quadratic's change along a step costs no product with A,
and a Hessian that is not positive is left to coordinate descent instead of being shifted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.solvers.support.newton import positive_solution

# Newton's method is tried after SWEEPS sweeps of coordinate descent, for NEWTON_STEPS steps in a row while entries
# leave the support; each step is halved HALVINGS times at the most before coordinate descent goes on.
SWEEPS, NEWTON_STEPS, HALVINGS = 10, 3, 4
# A rise of the model by this fraction of the penalty's value may be rounding alone.
ROUNDING = 1e-15


class Model:
    """``1/2 (y - x)' hessian (y - x) + gradient' (y - x) + penalty(y)``, and how far its minimisation has come.

    Parameters
    ----------
    hessian : array of shape (n, n)
        Symmetric, positive semidefinite, in double precision.
    penalty : penalty
        A `ell12.protocols.PiecewisePenalty` such as `ell12.L12`.
    x, gradient : arrays of shape (n,)
        Where the minimisation begins, and the gradient of the quadratic there; neither is written to.
    sweep : function
        `sweep` or its compiled twin.

    Attributes
    ----------
    x, gradient : arrays
        Where it is now, and the gradient there.
    slope : array
        The least slope of the whole there: zero where nothing is violated.
    solved : bool
        Whether `minimise` has reached its target.
    """

    def __init__(self, hessian: Any, penalty: Any, x: Any, gradient: Any, sweep: Callable[..., None]) -> None:
        self.hessian, self.penalty, self._sweep = hessian, penalty, sweep
        self.x, self.gradient = x.astype(np.float64), gradient.astype(np.float64)
        self.slopes = penalty.slopes_at_zero(self.x)
        self.kinks = penalty.kinks(self.x)
        self.solved = False
        # What the convex part bends beyond its kinks: coordinate descent counts it to the quadratic.
        convex, every = penalty.convex.curvature(self.x), np.arange(x.size)
        self._ridge = None if convex.largest == 0 else convex.product(every)(np.ones(x.size))
        self._bowl = hessian if self._ridge is None else hessian + np.diag(self._ridge)
        self._look()

    @property
    def violation(self) -> float:
        """The largest entry of the least slope."""
        return float(np.abs(self.slope).max(initial=0.0))

    @property
    def bend(self) -> float:
        """The largest curvature of what is subtracted, as a fraction of the median of all else in one entry."""
        curvature, median = self.penalty.curvature(self.x), float(np.median(np.diagonal(self._bowl)))
        largest = curvature.largest
        if self._ridge is not None:
            own = np.diagonal(curvature.matrix(np.arange(self.x.size)))
            largest = float((self._ridge - own).max(initial=0.0))
        if largest == 0:
            return 0.0
        return largest / median if median > 0 else math.inf

    def minimise(self, target: float, rounds: int) -> None:
        """Go on until the violation is at most target, which makes this solved, or for a number of rounds."""
        for _ in range(rounds):
            if self.violation <= target:
                break
            self._descend(target)
            for _ in range(NEWTON_STEPS):
                if self.violation <= target or self._newton_step():
                    break
        self.solved = self.violation <= target

    def _descend(self, target: float) -> None:
        """Sweep over the entries, the subtracted norm held at its tangent: this lies above it, so all falls."""
        tangent = self.penalty.subtracted_gradient(self.x)
        slope = self.gradient - tangent + self._pull()
        self._sweep(self._bowl, slope, self.x, *self.slopes, SWEEPS, 0.5 * target)
        self.gradient = slope + tangent - self._pull()
        self._look()

    def _pull(self) -> Any:
        """The slope that the curvature of the convex part adds."""
        return 0.0 if self._ridge is None else self._ridge * self.x

    def _newton_step(self) -> bool:
        """A step on the support that lowers the whole; return whether a further one is of no use."""
        support = np.flatnonzero((self.x != 0) | ~self.kinks)
        direction = self._direction(support)
        if direction is None:
            return True
        x, kinks, value = self.x[support], self.kinks[support], self.penalty.value(self.x)
        for halving in range(HALVINGS):
            new = x + 0.5**halving * direction
            crossed = kinks & (np.sign(new) != np.sign(x))
            new[crossed] = 0
            move = new - x
            full = self.x.copy()
            full[support] = new
            change = self.hessian @ (full - self.x)  # of the gradient; the rows of the support would be copied
            rise = self.gradient[support] @ move + 0.5 * change[support] @ move + self.penalty.value(full) - value
            if rise <= ROUNDING * abs(value):
                self.x, self.gradient = full, self.gradient + change
                self._look()
                return not crossed.any()
        return True

    def _direction(self, support: Any) -> Any:
        """Newton's direction on the support; None where the whole is not convex there."""
        block, own = self.hessian[np.ix_(support, support)], self.penalty.curvature(self.x)
        if own.largest > 0:
            block = np.add(block, own.matrix(support), dtype=np.float64)
        found = positive_solution(block.T, -self.slope[support])  # symmetric; its transpose is in LAPACK's order
        return found if found is not None and np.isfinite(found).all() else None

    def _look(self) -> None:
        self.slope = self.penalty.least_slope(self.x, self.gradient)


def sweep(hessian: Any, slope: Any, x: Any, below: Any, above: Any, sweeps: int, target: float) -> None:
    """Minimise a quadratic plus slopes ``below`` and ``above`` zero, one entry after the other.

    Ends after a number of sweeps, or when one has changed no sign, or no slope by more than target. Newton's
    method is then better placed.

    Parameters
    ----------
    hessian : array of shape (n, n)
        Symmetric.
    slope, x : arrays of shape (n,)
        The gradient of the quadratic at x, and x; both in double precision, and both are written to.
    below, above : arrays of shape (n,)
        Where the gradient of the quadratic lies between ``-above`` and ``-below``, zero is the best entry.
    sweeps, target : int, float
        When to end.

    Examples
    --------
    >>> x, slope = np.zeros(2), np.array([-3.0, 0.5])
    >>> sweep(np.eye(2), slope, x, -np.ones(2), np.ones(2), 5, 0.0)
    >>> x, slope
    (array([2., 0.]), array([-1. ,  0.5]))
    """
    for _ in range(sweeps):
        largest, turned = 0.0, False
        for j in range(x.size):
            old = x[j]
            new = _best_entry(hessian[j, j], old, slope[j], below[j], above[j])
            if new != old:
                turned |= np.sign(new) != np.sign(old)
                x[j] = new
                largest = max(largest, abs(new - old) * hessian[j, j])
                slope += (new - old) * hessian[j]
        if largest <= target or not turned:
            return


def _best_entry(curvature: float, old: float, slope: float, below: float, above: float) -> float:
    """The minimiser in one entry; without curvature there is one only where zero is."""
    if not curvature > 0:
        return 0.0 if below <= -slope <= above else old
    pull = curvature * old - slope
    if pull > above:
        return (pull - above) / curvature
    return (pull - below) / curvature if pull < below else 0.0

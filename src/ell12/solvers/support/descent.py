"""A quadratic plus a penalty with a kink in each entry: descent, and Newton's method on the support.

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

from ell12.backend.compiled_code import can_compile
from ell12.solvers.support.newton import positive_solution

# Newton's method is tried after SWEEPS sweeps of coordinate descent, or as many leaps, for NEWTON_STEPS steps in a
# row while entries leave the support; each step is halved HALVINGS times at the most before descent goes on.
SWEEPS, NEWTON_STEPS, HALVINGS = 10, 3, 4
# A leap in which some entries set out to the wrong side is taken without them if it brings this share of the fall
# that was foreseen; else it is computed anew. On 500 x 2000 0.2, 0.5 and 0.9 took the same time within a tenth.
FORESEEN = 0.5
# Leaps take a working set of up to this number of columns: a sweep costs the square of that, a leap its cube. On
# 500 x 2000 leaps in up to 360 columns took 0.8 to 1.2 times as long as the compiled loop, in 700 1.4 times.
LARGEST_LEAP = 400
# Loading the compiled loop takes 0.3 s. It pays for matrices of this number of entries where leaps do not do, and
# of ALWAYS_FROM entries in all sets.
COMPILED_FROM, ALWAYS_FROM = 2**19, 2**21
# Where a column has less than this share of its square left beside the others, leaps do not do. Coordinate descent
# fails there too, which tells that other ways lead to better minima, or sooner to the only one. On cosines of
# oversampling 10 leaps alone ended higher on 8 of 48 problems, by up to a seventh, and lower on none.
NEARLY_DEPENDENT = 1e-3
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
    descend : function
        `Descent`, or `sweep`, or the compiled twin of that.

    Attributes
    ----------
    x, gradient : arrays
        Where it is now, and the gradient there.
    slope : array
        The least slope of the whole there: zero where nothing is violated.
    solved : bool
        Whether `minimise` has reached its target.
    """

    def __init__(self, hessian: Any, penalty: Any, x: Any, gradient: Any, descend: Callable[..., None]) -> None:
        self.hessian, self.penalty, self._descent = hessian, penalty, descend
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
        curvature = self.penalty.curvature(self.x)
        largest = curvature.largest
        if self._ridge is not None:
            own = np.diagonal(curvature.matrix(np.arange(self.x.size)))
            largest = float((self._ridge - own).max(initial=0.0))
        if largest == 0:
            return 0.0
        median = float(np.median(np.diagonal(self._bowl)))
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
        """Descend with the subtracted norm held at its tangent: this lies above it, so all falls."""
        tangent = self.penalty.subtracted_gradient(self.x)
        slope = self.gradient - tangent + self._pull()
        self._descent(self._bowl, slope, self.x, *self.slopes, SWEEPS, 0.5 * target)
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


class Descent:
    """What descends within a working set: `leap` or, where the set is large or its columns dependent, `sweep`.

    The data alone decide, also whether it is the compiled `sweep`: the ways differ, and an answer must not depend
    on what ran before.

    Parameters
    ----------
    entries : int
        Of the matrix whose columns make the working sets.
    """

    def __init__(self, entries: int) -> None:
        self.entries = entries

    def __call__(self, hessian: Any, slope: Any, *rest: Any) -> None:
        """Descend; the arguments are those of `sweep`."""
        leaps = self.entries < (ALWAYS_FROM if slope.size <= LARGEST_LEAP else COMPILED_FROM)
        if leaps and leap(hessian, slope, *rest):
            return
        if self.entries >= COMPILED_FROM and can_compile():
            from ell12.solvers.support import compiled_descent

            compiled_descent.sweep(hessian, slope, *rest)
        elif leaps or not leap(hessian, slope, *rest):
            sweep(hessian, slope, *rest)


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
    >>> import numpy as np
    >>> from ell12.solvers.support.descent import sweep
    >>> x, slope = np.zeros(2), np.array([-3.0, 0.5])
    >>> sweep(np.eye(2), slope, x, -np.ones(2), np.ones(2), 5, 0.0)
    >>> x, slope
    (array([2., 0.]), array([-1. ,  0.5]))
    """
    # Plain numbers are read and compared several times as fast as entries of arrays.
    entries = list(zip(np.diagonal(hessian).tolist(), below.tolist(), above.tolist(), strict=True))
    values = x.tolist()
    for _ in range(sweeps):
        largest, turned = 0.0, False
        for j, (curvature, low, high) in enumerate(entries):
            old = values[j]
            new = _best_entry(curvature, old, float(slope[j]), low, high)
            if new != old:
                turned = turned or (new > 0) != (old > 0) or (new < 0) != (old < 0)
                x[j] = values[j] = new
                largest = max(largest, abs(new - old) * curvature)
                slope += (new - old) * hessian[j]
        if largest <= target or not turned:
            return


def leap(hessian: Any, slope: Any, x: Any, below: Any, above: Any, steps: int, target: float) -> bool:
    """What `sweep` does, by Newton's method from orthant to orthant: a few factorizations, no loop over entries.

    An entry may change if it is not zero, or if the slope there leads away from zero. In the orthant of all of
    these the whole is a quadratic, whose minimiser a step aims at; what would leave the orthant stops at zero. The
    step is halved until the whole falls, at last down to the first entry that becomes zero, where it must.

    Parameters
    ----------
    hessian, slope, x, below, above, target
        As in `sweep`; the violation is what must come down to target.
    steps : int
        The most steps.

    Returns
    -------
    bool
        False where it ended because the quadratic is not positive definite there, or nearly not.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.solvers.support.descent import leap
    >>> x, slope = np.zeros(2), np.array([-3.0, 0.5])
    >>> leap(np.eye(2), slope, x, -np.ones(2), np.ones(2), 5, 0.0)
    True
    >>> x, slope
    (array([2., 0.]), array([-1. ,  0.5]))
    """
    smooth = below == above
    for _ in range(steps):
        least = _least_slope(slope, x, below, above)
        if np.abs(least).max(initial=0.0) <= target:
            break
        step = _Leap(hessian, least, x, smooth)
        if not step.is_found:
            return False
        x[step.free] = step.new
        slope += step.change
    return True


def _least_slope(slope: Any, x: Any, below: Any, above: Any) -> Any:
    """The least slope of a quadratic plus slopes below and above zero."""
    up, down = slope + above, slope + below
    return np.where(x > 0, up, np.where(x < 0, down, np.minimum(up, 0.0) + np.maximum(down, 0.0)))


class _Leap:
    """One step of `leap`: the entries that may change, where they go, and by how much the slope changes."""

    def __init__(self, hessian: Any, least: Any, x: Any, smooth: Any) -> None:
        signs = np.sign(x)
        signs -= np.sign(least) * (signs == 0)
        self.free = np.flatnonzero(signs)
        rows = hessian.take(self.free, axis=0)
        self._block = rows.take(self.free, axis=1)
        self._x, self._signs, self._slope = x[self.free], signs[self.free], least[self.free]
        self._kinks = ~smooth[self.free]
        size = self.free.size
        self.is_found = bool(np.isfinite(self._slope).all()) and self._find()
        if self.is_found:
            moved = rows if self.free.size == size else hessian.take(self.free, axis=0)
            self.change = (self.new - self._x) @ moved

    def _find(self) -> bool:
        """Find out where to go; return whether the quadratic is positive definite."""
        while True:
            direction = positive_solution(self._block, -self._slope, NEARLY_DEPENDENT)
            if direction is None:
                return False
            wrong = (self._x == 0) & (direction * self._signs <= 0) & self._kinks
            if not wrong.any():
                self._shorten(direction)
                return True
            if self._rise(direction) <= FORESEEN * 0.5 * float(self._slope @ direction):
                return True
            right = np.flatnonzero(~wrong)
            self.free, self._block = self.free[right], self._block.take(right, axis=0).take(right, axis=1)
            self._x, self._signs = self._x[right], self._signs[right]
            self._slope, self._kinks = self._slope[right], self._kinks[right]

    def _rise(self, direction: Any) -> float:
        """Go along a direction, but not beyond zero; return by how much the whole rises."""
        self.new = self._x + direction
        self.new[(self.new * self._signs <= 0) & self._kinks] = 0
        move = self.new - self._x
        return float((self._slope + 0.5 * (self._block @ move)) @ move)

    def _shorten(self, direction: Any) -> None:
        """Halve the step until the whole falls, at last down to the first entry that becomes zero."""
        for halving in range(HALVINGS):
            if self._rise(0.5**halving * direction) < 0:
                return
        ahead = (self._x * direction < 0) & self._kinks
        lengths = np.divide(-self._x, direction, out=np.full(direction.size, np.inf), where=ahead)
        first = min(float(lengths.min(initial=np.inf)), 1.0)
        self.new = self._x + first * direction
        self.new[lengths <= first] = 0


def _best_entry(curvature: float, old: float, slope: float, below: float, above: float) -> float:
    """The minimiser in one entry; without curvature there is one only where zero is."""
    if not curvature > 0:
        return 0.0 if below <= -slope <= above else old
    pull = curvature * old - slope
    if pull > above:
        return (pull - above) / curvature
    return (pull - below) / curvature if pull < below else 0.0

"""Coordinate descent and Newton's method on a Gram matrix: the plain loops, which are the tests' oracle."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ell12.backend import rounding
from ell12.backend.compiled_code import COMPILED_FROM, can_compile
from ell12.protocols import Point

# Compiled sweeps go on while they promise to need no more than this number, which costs as much as a Newton step
# (constants in results/race_sparse).
SWEEPS = 300
# The most turns of descent and Newton's method, Newton steps of a turn, halvings of a step, and models of a loss:
# 3 to 6 do as a rule; what needs more is left to another solver (on 136 fits).
ROUNDS = 20


def engine_for(gram: Any, problems: float = 1) -> tuple[Any, float]:
    """The module with `descend` and `follow`, compiled where that pays; how many sweeps a Newton step costs."""
    if problems * gram.size >= COMPILED_FROM and can_compile():
        from ell12.solvers import gram_descent_compiled

        return gram_descent_compiled, SWEEPS
    return sys.modules[__name__], 1.0


class GramDescent:
    """``1/2 x'G x - c'x + penalty(x)`` with G a dense matrix: where its minimisation has come.

    The squared loss in the columns of a working set, exactly, or the model of another loss around a point.

    Parameters
    ----------
    gram : array of shape (n, n), or larger
        Symmetric, positive semidefinite, in double precision and C order; what lies beyond n does not count.
    x, gradient : arrays of shape (n,)
        Where the minimisation begins, and the gradient of the quadratic there; neither is written to.
    problems : float, default 1
        How many are to be solved over Gram matrices of this size.

    Attributes
    ----------
    x, gradient : arrays
        Where it is now, and the gradient there.
    """

    def __init__(self, gram: Any, x: Any, gradient: Any, problems: float = 1) -> None:
        self.gram = np.ascontiguousarray(gram, dtype=np.float64)
        self.x, self.gradient = x.astype(np.float64), gradient.astype(np.float64)
        self.engine, self.sweeps = engine_for(gram, problems)

    def solve(self, penalty: Any, target: float, weight: float | None = None) -> bool:
        """Minimise until the violation is at most target or no longer falls; return whether it is at most target.

        Parameters
        ----------
        penalty : penalty
            A `ell12.protocols.PiecewisePenalty` such as `ell12.L12`.
        target : float
            In the units of the gradient.
        weight : float, optional
            The subtracted part is this times the l2 norm of the entries that are penalised, which descent then
            follows from entry to entry; without it, its tangent is held during each round.
        """
        if self.is_too_steep:
            return False
        below, above = (np.ascontiguousarray(part, dtype=np.float64) for part in penalty.slopes_at_zero(self.x))
        parts = below, above, ridge_of(penalty, self.x), weight or 0.0
        if weight is not None:
            self._leave_zero(parts, target)
        for _ in range(ROUNDS):
            tangent = penalty.subtracted_gradient(self.x) if weight is None else 0.0
            self.gradient -= tangent
            done = self.descend(parts, target)
            self.gradient += tangent
            if done and weight is not None:
                return True
            if np.abs(self._newton(penalty, target)).max(initial=0.0) <= target:
                return True
        return False

    def follow(self, *given: Any) -> int:
        """Solutions at one strength after the other, as many as descent finds: `follow`, from lasso on."""
        return self.engine.follow(self.gram, self.gradient, self.x, self.sweeps, *given)

    def descend(self, parts: Parts, target: float) -> bool:
        """Coordinate descent with these parts of a penalty: `descend`."""
        return self.engine.descend(self.gram, self.gradient, self.x, parts, target, self.sweeps)

    @property
    def is_too_steep(self) -> bool:
        """Whether squares of entries of x would overflow."""
        largest = float(np.diagonal(self.gram)[: self.x.size].max(initial=0.0))
        return bool(np.abs(self.gradient).max(initial=0.0) > 1e153 * largest > 0)

    def curvature_ratio(self, penalty: Any) -> float:
        """The largest negative curvature of the penalty over the median curvature of all else in one entry."""
        curvature, ridge = penalty.curvature(self.x), ridge_of(penalty, self.x)
        largest = curvature.largest
        if ridge.any():
            largest = float((ridge - np.diagonal(curvature.matrix(np.arange(self.x.size)))).max(initial=0.0))
        if largest == 0:
            return 0.0
        median = float(np.median(np.diagonal(self.gram)[: self.x.size] + ridge))
        return largest / median if median > 0 else math.inf

    def _leave_zero(self, parts: Parts, target: float) -> None:
        """From zero, where the norm has no slope, go to the best vector with one penalised entry."""
        below, above, ridge, weight = parts
        counted = above > 0
        if weight <= 0 or np.any(self.x[counted]):
            return
        if not counted.all():  # the entries that are not penalised come first
            fixed = np.where(counted, -math.inf, below), np.where(counted, math.inf, above)
            self.descend((*fixed, ridge, 0.0), target)
        curvature = np.diagonal(self.gram)[: self.x.size] + ridge
        gain = np.maximum(-self.gradient - above, self.gradient + below) + weight
        some = counted & (curvature > 0) & (gain > 0)
        if some.any():
            best = int(np.divide(gain, np.sqrt(curvature), out=np.zeros_like(gain), where=some).argmax())
            sign = 1.0 if -self.gradient[best] - above[best] >= self.gradient[best] + below[best] else -1.0
            self.x[best] = sign * gain[best] / curvature[best]
            self.gradient += self.x[best] * self.gram[best, : self.x.size]

    def _newton(self, penalty: Any, target: float) -> Any:
        """Newton's method on the support while its steps cross zero; return the minimal-norm subgradient."""
        kinks = penalty.kinks(self.x)
        for _ in range(ROUNDS):
            slope = penalty.least_slope(self.x, self.gradient)
            support = np.flatnonzero((self.x != 0) | ~kinks)
            if np.abs(slope[support]).max(initial=0.0) <= target or not self._newton_step(
                penalty, slope, support, kinks
            ):
                break
        return slope

    @np.errstate(over="ignore")  # a step that is too long for its rise to be a number is shortened
    def _newton_step(self, penalty: Any, slope: Any, support: Any, kinks: Any) -> bool:
        """One step on the support along which the objective does not rise; return whether there is one."""
        x, own = self.x, penalty.curvature(self.x)
        rows = self.gram.take(support, axis=0)
        block = rows.take(support, axis=1)
        direction = -shifted_solution(
            block + own.matrix(support) if own.largest > 0 else block.copy(), slope[support]
        )
        old, bounded, value = x[support], kinks[support], penalty.value(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = np.where(bounded & (old * direction < 0), -old / direction, math.inf)
        first, fraction = float(crossings.min(initial=math.inf)), 1.0
        for attempt in range(ROUNDS):
            new = old + fraction * direction
            new[crossings <= fraction] = 0
            full, move = x.copy(), new - old
            full[support] = new
            rise = (self.gradient[support] + 0.5 * (block @ move)) @ move + penalty.value(full) - value
            if rise <= rounding(value, x):
                self.x, self.gradient = full, self.gradient + (move @ rows)[: x.size]
                return bool(move.any())
            fraction = first if attempt == 0 and first < 1 else 0.5 * fraction
        return False


def minimise_by_models(
    loss: Any, penalty: Any, point: Point, gradient: Any, target: float, parts: Any = None, problems: int = 1
) -> tuple[Point, Any, bool]:
    """Minimise by models of second order around one point after the other, each step halved until all decreases.

    With the parts of the penalty, as `descend` takes them, compiled descent alone solves most models.

    Returns
    -------
    point, gradient : Point, array
        Where it has come to, and the loss's gradient there.
    bool
        Whether the violation is at most target.
    """
    value = loss.value(point) + penalty.value(point.x)
    for _ in range(ROUNDS):
        if parts is None:
            slope, kinks = penalty.least_slope(point.x, gradient), penalty.kinks(point.x)
            done = penalty.violation(point.x, gradient) <= target
        else:
            slope, kinks = violations(point.x, gradient, parts), parts[1] > 0
            done = slope.max(initial=0.0) <= target
        columns = np.flatnonzero((point.x != 0) | (slope != 0) | ~kinks)
        if done or columns.size == 0:
            return point, gradient, done
        entries = problems * point.x.size**2  # as if all columns were in use
        hessian = loss.hessian(point, columns)
        model = GramDescent(hessian, point.x[columns], gradient[columns], entries / columns.size**2)
        own = None if parts is None else (*(part[columns] for part in parts[:3]), parts[3])
        if own is None or not (model.sweeps > 1 and model.descend(own, 0.5 * target)):
            model.solve(penalty.restrict(columns), 0.5 * target, None if own is None else own[3])
        full, fraction = np.zeros_like(point.x), 1.0
        full[columns] = model.x
        move = loss.point_within(full, columns) - point
        for _ in range(ROUNDS):
            new = point + fraction * move
            lower = loss.value(new) + penalty.value(new.x)
            if lower <= value + (rounding(value, point.x) if fraction == 1 else 0.0):
                break
            fraction *= 0.5
        else:
            return point, gradient, False
        point, value, gradient = new, lower, loss.gradient(new)
    return point, gradient, False


def ridge_of(penalty: Any, x: Any) -> Any:
    """The second derivatives of the convex part beyond its kinks."""
    curvature = penalty.convex.curvature(x)
    return np.zeros(x.size) if curvature.largest == 0 else curvature.product(np.arange(x.size))(np.ones(x.size))


def shifted_solution(matrix: Any, right: Any) -> Any:
    """Solve with a symmetric matrix, shifted by as much as makes it positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.solvers.gram_descent import shifted_solution
    >>> shifted_solution(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))
    array([1., 1.])
    """
    diagonal, shift = np.diagonal(matrix).copy(), 0.0
    unit = 1e-10 * float(np.abs(diagonal).max(initial=0.0)) or 1.0
    while True:
        found = positive_solution(matrix, right, diagonal)
        if found is not None:
            return found
        shift = max(10 * shift, unit)
        np.fill_diagonal(matrix, diagonal + shift)


def positive_solution(matrix: Any, right: Any, diagonal: Any) -> Any:
    """The solution of a linear system with a symmetric matrix; None unless that is positive definite."""
    # LAPACK by itself: SciPy's checks take as long as a system of a hundred unknowns.
    factor, info = dpotrf(matrix.T, lower=1, clean=0)
    positive = info == 0 and np.all(np.diagonal(factor) ** 2 > 1e-11 * diagonal)
    return dpotrs(factor, right, lower=1)[0] if positive else None


Parts = tuple[Any, Any, Any, float]  # of a penalty: slopes below and above zero, ridge, weight of the norm


def descend(gram: Any, gradient: Any, x: Any, parts: Parts, target: float, sweeps: float) -> bool:
    """Coordinate descent: minimise a quadratic plus a penalty; x and gradient are written to.

    The objective is ``1/2 x'G x - c'x + slopes + 1/2 sum_j ridge_j x_j^2 - weight ||x||_2``, the slopes being
    those of the parts below and above zero, the norm that of the entries with slopes above zero, and gradient that
    of the first two terms.

    Returns
    -------
    bool
        Whether the violation is at most target; False where Newton's method would cost less than the sweeps left.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.solvers.gram_descent import descend
    >>> x, gradient, one = np.zeros(2), np.array([-3.0, 0.5]), np.ones(2)
    >>> descend(np.eye(2), gradient, x, (-one, one, 0 * one, 0.0), 1e-9, 100.0)
    True
    >>> x, gradient
    (array([2., 0.]), array([-1. ,  0.5]))
    """
    (below, above, ridge, weight), least, most = parts, math.inf, 0
    while True:
        violation = violations(x, gradient, parts)
        worst = violation.max(initial=0.0)
        if worst <= target:
            return True
        active = np.flatnonzero((x != 0) | (violation > 0))
        if worst > 0.5 * least and active.size <= most:  # rounding, or a part that is not convex, is in the way
            return False
        least, most = min(least, worst), max(most, active.size)
        block = gram[np.ix_(active, active)]
        block[np.diag_indices_from(block)] += ridge[active]
        values, old = x[active], x[active]
        slopes = gradient[active] + ridge[active] * old
        limits = below[active], above[active]
        done = _sweeps(block, slopes, values, *limits, weight, 0.5 * target, sweeps)
        move = values - old
        x[active] = values
        gradient += move @ gram[active, : x.size]
        if not (done and move.any()):
            return False


def violations(x: Any, gradient: Any, parts: tuple[Any, Any, Any, Any]) -> Any:
    """How much each entry violates the first-order condition; of problems side by side, columns all, each entry.

    The parts of the penalty are those that `descend` takes.
    """
    below, above, ridge, weight = parts
    counted = above > 0
    length = np.sqrt((np.where(counted, x, 0.0) ** 2).sum(axis=0))
    tilt = np.divide(weight, length, out=np.zeros_like(length), where=length > 0)
    slope = gradient + (ridge - np.where(counted, tilt, 0.0)) * x
    with np.errstate(invalid="ignore"):  # where an infinite slope fixes an entry at zero
        up, down = slope + above, slope + below
        off = np.maximum(np.maximum(-up, down), 0.0)
        return np.where(x > 0, np.abs(up), np.where(x < 0, np.abs(down), off))


def follow(
    gram: Any,
    gradient: Any,
    x: Any,
    sweeps: float,
    lasso: Any,
    parts: Parts,
    few: int,
    alphas: Any,
    targets: Any,
    found: Any,
) -> int:
    """Solutions at one strength after the other by `descend`; return how many there are before it fails.

    The parts of the penalty are those at a strength of 1. Solutions go to the rows of found. Those with at
    most few entries are sought from the Lasso's solution too: its x and gradient, and the quadratic's c, are the
    rows of lasso.
    """
    (below, above, ridge, weight), linear = parts, lasso[2]
    for k, alpha in enumerate(alphas):
        own = alpha * below, alpha * above, alpha * ridge, alpha * weight
        given = targets[k], sweeps
        if (weight > 0 and not x[above > 0].any()) or not descend(gram, gradient, x, own, *given):
            return k
        seeks = weight > 0 and np.count_nonzero(x) <= few
        if seeks and descend(gram, lasso[1], lasso[0], (*own[:3], 0.0), *given):
            other, slope = lasso[:2].copy()
            if descend(gram, slope, other, own, *given) and (
                _objective(other, slope, linear, *own) < _objective(x, gradient, linear, *own)
            ):
                x[:], gradient[:] = other, slope
        found[k] = x
    return len(alphas)


def _objective(x: Any, gradient: Any, linear: Any, below: Any, above: Any, ridge: Any, weight: float) -> float:
    """The quadratic plus the penalty."""
    slope = np.where(x > 0, above, np.where(x < 0, below, 0.0))
    smooth = 0.5 * (gradient - linear + ridge * x) + slope
    return float(x @ smooth - weight * math.sqrt(x[above > 0] @ x[above > 0]))


def _sweeps(
    block: Any, slope: Any, x: Any, below: Any, above: Any, weight: float, target: float, most: float
) -> bool:
    """Sweep until no slope changes by more than target; False where more are needed than Newton's step costs."""
    # Plain numbers are read and compared several times as fast as entries of arrays.
    entries = list(zip(np.diagonal(block).tolist(), below.tolist(), above.tolist(), strict=True))
    values, last = x.tolist(), 0.0
    for sweep in range(10_000):
        square = 0.0
        if weight > 0:
            square = sum(value * value for value, (_, _, high) in zip(values, entries, strict=True) if high > 0)
        largest, turned = 0.0, False
        for j, (curvature, low, high) in enumerate(entries):
            old = values[j]
            tilt = weight / math.sqrt(square) if square > 0 and high > 0 else 0.0
            aim = (curvature + tilt) * old - float(slope[j])
            if curvature > 0:
                new = (aim - min(max(aim, low), high)) / curvature
            else:  # there is a minimiser only where zero is one
                new = 0.0 if low <= aim <= high else old
            if new != old:
                x[j] = values[j] = new
                turned = turned or (new > 0) != (old > 0) or (new < 0) != (old < 0)
                largest = max(largest, abs(new - old) * curvature)
                square = max(square + (new - old) * (new + old), 0.0) if high > 0 and weight > 0 else square
                slope += (new - old) * block[j]
        if largest <= target:
            return True
        late = sweep > 0 and (not turned or sweep > most)
        if late and math.log(last / largest) * most < math.log(largest / target):
            return False
        last = largest
    return False

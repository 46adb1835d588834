"""A whole path over a Gram matrix as one compiled call (numba): l1-2 at falling strengths, each from the last.

What is minimised is ``1/2 x'G x - c'x + alpha (sum_i w_i |x_i| - l2_weight ||x||_2 + ridge/2 ||x||^2)``. The plain
twin is `ell12.minimize` at one strength after the other, which `ell12.path` takes where nothing can be compiled.

The steps are those of `ell12.solvers.support.descent`, written out for one family of penalties: sweeps of
coordinate descent find the support, Newton's method on it finishes. Two things are added, so that columns that
depend on each other need no other solver. A Newton step that crosses zero too often ends at its first crossing.
Where the Hessian is not positive, a step follows the direction that shows this, until an entry is zero.

Loops are written out: NumPy's functions would take several times as long to compile.
"""

from __future__ import annotations

import math

import numpy as np

from ell12.backend.compiled_code import compiled_loop
from ell12.solvers.support.compiled_cholesky import factorise, substitute, substitute_back

# Sweeps before Newton's method, if signs go on changing; Newton steps in a row; halvings of each; and rounds of
# all this before a strength is given up. Of 2500 strengths on five data sets none took more than 8 rounds.
SWEEPS, NEWTON_STEPS, HALVINGS, ROUNDS = 10, 20, 6, 50
# Within the columns at hand the violation is brought down to this fraction of what is asked for: beside the other
# columns, and computed from the data, it must still be small enough.
CLOSER = 0.3
# Where the subtracted norm bends by more than BENT times the mean curvature in one entry, there are many minima.
# In up to FEW entries, where it costs little, the solution is then sought from that of the Lasso too, and the
# lower kept. Of 1500 strengths on 15 designs 28 were then worse and 172 better than `minimize` one by one, before
# 97 and 75.
BENT, FEW = 0.002, 50
# A rise of the objective by this fraction of the penalty's value may be rounding alone.
ROUNDING = 1e-15

loop = compiled_loop(error_model="numpy", nogil=True)


@loop
def follow(gram, linear, below, above, l2_weight, ridge, alphas, before, start, tol, elsewhere, most):  # type: ignore[no-untyped-def]
    """The solutions at falling strengths, one row each, up to the first with more than ``most`` entries.

    Parameters
    ----------
    gram, linear : arrays of shape (k, k) and (k,)
        G and c, in double precision and C order.
    below, above : arrays of shape (k,)
        The penalty's slopes on either side of zero at strength 1: 0 and 0 for an entry that is free, -inf for one
        that must not be negative. An entry counts in the l2 norm where ``above`` is not 0.
    l2_weight, ridge : float
        Of the penalty.
    alphas : array
        Strengths, all positive.
    before, start : float and array of shape (k,)
        A strength and its solution. At another strength all columns are looked at (the strong rule does not hold).
    tol : float
        The violation to reach, as a fraction of each strength.
    elsewhere : bool
        Whether lower minima than the nearest are looked for: not in models that hold near the start alone.
    most : int
        A solution with more entries that are not zero is the last.
    """
    x, gradient = start.copy(), np.empty(linear.size)
    other, slope, lasso = np.empty(x.size), np.empty(x.size), np.zeros(x.size)
    found = np.empty((alphas.size, x.size))
    typical = _mean_diagonal(gram)
    _look(gram, linear, x, gradient)
    for k in range(alphas.size):
        alpha = alphas[k]
        # The strong rule: a gradient seldom changes by more than the strength does.
        _solve(gram, linear, x, gradient, below, above, l2_weight, ridge, alpha, 2.0 * alpha - before, tol)
        before = alpha
        bent = alpha * l2_weight > BENT * typical * math.sqrt(_square(x, above))
        if elsewhere and bent and _indices(x).size <= FEW:
            _look(gram, linear, lasso, slope)
            _solve(gram, linear, lasso, slope, below, above, 0.0, ridge, alpha, alpha, tol)
            _copy(lasso, other)
            _solve(gram, linear, other, slope, below, above, l2_weight, ridge, alpha, alpha, tol)
            value = _value(linear, other, slope, below, above, l2_weight, ridge, alpha)
            if value < _value(linear, x, gradient, below, above, l2_weight, ridge, alpha):
                _copy(other, x)
                _copy(slope, gradient)
        for j in range(x.size):
            found[k, j] = x[j]
        if _indices(x).size > most:
            return found[: k + 1]
    return found


@loop
def _solve(gram, linear, x, gradient, below, above, l2_weight, ridge, alpha, bound, tol):  # type: ignore[no-untyped-def]
    """Set x and its gradient to a solution at one strength; columns with gradients beyond bound come first."""
    active, every = np.empty(x.size, dtype=np.bool_), l2_weight > 0.0 and _square(x, above) == 0.0
    for j in range(x.size):
        outside = -gradient[j] >= max(bound, 0.0) * above[j] or -gradient[j] <= max(bound, 0.0) * below[j]
        active[j] = every or x[j] != 0.0 or outside
    missing = True
    while missing:
        _solve_within(gram, gradient, x, active, below, above, l2_weight, ridge, alpha, tol)
        _look(gram, linear, x, gradient)
        missing = False
        for j in range(x.size):
            up, down = -gradient[j] - alpha * above[j], gradient[j] + alpha * below[j]
            if not active[j] and max(up, down) > CLOSER * tol * alpha:
                active[j] = missing = True


@loop
def _value(linear, x, gradient, below, above, l2_weight, ridge, alpha):  # type: ignore[no-untyped-def]
    """The whole at x, where the quadratic has this gradient."""
    square = _square(x, above)
    value = alpha * (0.5 * ridge * square - l2_weight * math.sqrt(square))
    for j in range(x.size):
        if x[j] != 0.0:
            value += x[j] * (0.5 * (gradient[j] - linear[j]) + alpha * (above[j] if x[j] > 0.0 else below[j]))
    return value


@loop
def _mean_diagonal(gram):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(gram.shape[0]):
        total += gram[j, j]
    return total / max(gram.shape[0], 1)


@loop
def _copy(x, to):  # type: ignore[no-untyped-def]
    for j in range(x.size):
        to[j] = x[j]


@loop
def _look(gram, linear, x, gradient):  # type: ignore[no-untyped-def]
    """Set the gradient of the quadratic."""
    for i in range(x.size):
        gradient[i] = -linear[i]
    for j in range(x.size):
        value = x[j]
        if value != 0.0:
            for i in range(x.size):
                gradient[i] += value * gram[j, i]


@loop
def _indices(x):  # type: ignore[no-untyped-def]
    """Where x is not zero."""
    count = 0
    for j in range(x.size):
        count += x[j] != 0
    found, count = np.empty(count, dtype=np.int64), 0
    for j in range(x.size):
        if x[j] != 0:
            found[count] = j
            count += 1
    return found


@loop
def _square(x, above):  # type: ignore[no-untyped-def]
    """The square of the l2 norm over the entries that count."""
    square = 0.0
    for j in range(x.size):
        if above[j] > 0.0:
            square += x[j] * x[j]
    return square


@loop
def _solve_within(gram, gradient, x, active, below, above, l2_weight, ridge, alpha, tol):  # type: ignore[no-untyped-def]
    """Set the active entries of x to a solution among these, at one strength."""
    columns = _indices(active)
    size = columns.size
    hessian, values, slope = np.empty((size, size)), np.empty(size), np.empty(size)
    lower, upper = np.empty(size), np.empty(size)
    for a in range(size):
        j = columns[a]
        for b in range(size):
            hessian[a, b] = gram[j, columns[b]]
        values[a], slope[a], lower[a], upper[a] = x[j], gradient[j], alpha * below[j], alpha * above[j]
        if above[j] > 0.0:
            hessian[a, a] += alpha * ridge
            slope[a] += alpha * ridge * x[j]
    _settle(hessian, slope, values, lower, upper, alpha * l2_weight, CLOSER * tol * alpha)
    for a in range(size):
        x[columns[a]] = values[a]


@loop
def _settle(hessian, slope, x, below, above, weight, target):  # type: ignore[no-untyped-def]
    """Minimise until the violation is at most target; writes to x and to slope, the quadratic's gradient there."""
    if weight > 0.0 and _square(x, above) == 0.0:
        _fit_free(hessian, slope, x, below, above, target)
        _leave_zero(hessian, slope, x, below, above, weight)
    for _ in range(ROUNDS):
        _sweep(hessian, slope, x, below, above, weight, target)
        on, off = _violations(slope, x, below, above, weight)
        for _ in range(NEWTON_STEPS):
            if on <= target or not _newton_step(hessian, slope, x, below, above, weight):
                break
            on, off = _violations(slope, x, below, above, weight)
        if max(on, off) <= target and not (weight > 0.0 and _leave_zero(hessian, slope, x, below, above, weight)):
            return


@loop
def _fit_free(hessian, slope, x, below, above, target):  # type: ignore[no-untyped-def]
    """Fit the entries that are free, so that the best of the others can be told."""
    for _ in range(ROUNDS):
        largest = 0.0
        for j in range(x.size):
            if below[j] == 0.0 and above[j] == 0.0 and hessian[j, j] > 0.0:
                move = -slope[j] / hessian[j, j]
                largest = max(largest, abs(slope[j]))
                x[j] += move
                for i in range(x.size):
                    slope[i] += move * hessian[j, i]
        if largest <= target:
            break


@loop
def _leave_zero(hessian, slope, x, below, above, weight):  # type: ignore[no-untyped-def]
    """From zero, where the norm has no slope, go to the best vector with one entry; return if there is one."""
    best, most = -1, 0.0
    for j in range(x.size):
        if above[j] > 0.0 and x[j] != 0.0:
            return False
        if above[j] > 0.0 and hessian[j, j] > 0.0:
            fall = (max(-slope[j] - above[j], below[j] + slope[j]) + weight) / math.sqrt(hessian[j, j])
            if fall > most:
                best, most = j, fall
    if best >= 0:
        up, down = -slope[best] - above[best], below[best] + slope[best]
        x[best] = (up + weight if up >= down else -down - weight) / hessian[best, best]
        for i in range(x.size):
            slope[i] += x[best] * hessian[best, i]
    return best >= 0


@loop
def _sweep(hessian, slope, x, below, above, weight, target):  # type: ignore[no-untyped-def]
    """Coordinate descent, the subtracted norm held at its tangent in x as it is, until no sign changes."""
    for _ in range(SWEEPS):
        square = _square(x, above)
        largest, turned = 0.0, False
        for j in range(x.size):
            old = x[j]
            tilt = weight / math.sqrt(square) if square > 0.0 and above[j] > 0.0 else 0.0
            new = _best_entry(hessian[j, j], old, slope[j] - tilt * old, below[j], above[j])
            move = new - old
            if move != 0.0:
                turned |= (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
                largest = max(largest, abs(move) * hessian[j, j])
                x[j] = new
                square = max(square + (above[j] > 0.0) * move * (new + old), 0.0)
                for i in range(x.size):
                    slope[i] += move * hessian[j, i]
        if largest <= target or not turned:
            break


@loop
def _best_entry(curvature, old, slope, below, above):  # type: ignore[no-untyped-def]
    """The minimiser in one entry; without curvature it stays."""
    if not curvature > 0.0:
        return old
    pull = curvature * old - slope
    if pull > above:
        return (pull - above) / curvature
    return (pull - below) / curvature if pull < below else 0.0


@loop
def _violations(slope, x, below, above, weight):  # type: ignore[no-untyped-def]
    """The largest violations of the first-order condition on the support and off it."""
    square, on, off = _square(x, above), 0.0, 0.0
    tilt = weight / math.sqrt(square) if square > 0.0 else 0.0
    for j in range(x.size):
        if x[j] == 0.0:
            off = max(off, -slope[j] - above[j], slope[j] + below[j])
        else:
            tangent = tilt * x[j] if above[j] > 0.0 else 0.0
            on = max(on, abs(slope[j] + (above[j] if x[j] > 0.0 else below[j]) - tangent))
    return on, off


@loop
def _newton_step(hessian, slope, x, below, above, weight):  # type: ignore[no-untyped-def]
    """A step on the support that lowers the whole; return whether there is one."""
    support, square = _indices(x), _square(x, above)
    size = support.size
    tilt = weight / math.sqrt(square) if square > 0.0 else 0.0
    matrix, direction, edge = np.empty((size, size)), np.empty(size), np.empty(size)
    for a in range(size):
        j = support[a]
        for b in range(size):
            matrix[a, b] = hessian[j, support[b]]
        edge[a] = above[j] if x[j] > 0.0 else below[j]
        direction[a] = -(slope[j] + edge[a])
        if tilt > 0.0 and above[j] > 0.0:
            direction[a] += tilt * x[j]
            factor = tilt * (x[j] / square)
            for b in range(size):
                if above[support[b]] > 0.0:
                    matrix[a, b] += factor * x[support[b]]
            matrix[a, a] -= tilt
    rank = factorise(matrix)
    if rank == size:
        substitute(matrix, direction)
    elif not _take_flat_direction(matrix, rank, direction, x, support, below, above):
        return False
    return _search(hessian, slope, x, below, above, weight, support, direction, edge)


@loop
def _take_flat_direction(matrix, rank, direction, x, support, below, above):  # type: ignore[no-untyped-def]
    """Set the direction to one in which the whole does not bend upwards, as long as to its first crossing of zero.

    It lies in the columns that were positive and the one that was not; return whether there is a crossing at all.
    """
    flat, fall = np.empty(rank + 1), direction[rank]
    flat[rank] = 1.0
    for a in range(rank):
        flat[a] = -matrix[a, rank]
    substitute_back(matrix, flat, rank)
    for a in range(rank):
        fall += direction[a] * flat[a]
    sign = -1.0 if fall < 0.0 else 1.0
    for a in range(direction.size):
        direction[a] = sign * flat[a] if a <= rank else 0.0
    reach, first = _first_crossing(direction, x, support, below, above)
    for a in range(direction.size):
        direction[a] *= reach
    return first >= 0


@loop
def _first_crossing(direction, x, support, below, above):  # type: ignore[no-untyped-def]
    """How far along a direction the first entry with a kink crosses zero, and which; infinity and -1 for none."""
    reach, first = math.inf, -1
    for a in range(support.size):
        j = support[a]
        if direction[a] * x[j] < 0.0 and below[j] < above[j] and -x[j] / direction[a] < reach:
            reach, first = -x[j] / direction[a], a
    return reach, first


@loop
def _search(hessian, slope, x, below, above, weight, support, direction, edge):  # type: ignore[no-untyped-def]
    """Go along a direction so far that the whole falls; entries that would cross zero stop there.

    All of the way is tried first, then up to the first crossing, then halves of this. Return whether it falls.
    """
    reach, first = _first_crossing(direction, x, support, below, above)
    fraction, new, change = 1.0, np.empty(x.size), np.empty(x.size)
    for attempt in range(HALVINGS):
        for i in range(x.size):
            new[i], change[i] = x[i], 0.0
        for a in range(support.size):
            j = support[a]
            new[j] += fraction * direction[a]
            crosses = new[j] * x[j] < 0.0 and below[j] < above[j]
            if crosses or (a == first and fraction == reach):
                new[j] = 0.0
            for i in range(x.size):
                change[i] += (new[j] - x[j]) * hessian[j, i]
        if _falls(slope, x, new, change, above, weight, support, edge):
            for i in range(x.size):
                x[i] = new[i]
                slope[i] += change[i]
            return True
        fraction = reach if attempt == 0 and reach < 1.0 else 0.5 * fraction
    return False


@loop
def _falls(slope, x, new, change, above, weight, support, edge):  # type: ignore[no-untyped-def]
    """Whether the whole is not higher at the new x, where the quadratic's gradient has changed by this."""
    value, rise = -weight * math.sqrt(_square(x, above)), -weight * math.sqrt(_square(new, above))
    for a in range(support.size):
        j = support[a]
        value += edge[a] * x[j]
        rise += edge[a] * new[j] + (new[j] - x[j]) * (slope[j] + 0.5 * change[j])
    return rise - value <= ROUNDING * abs(value)

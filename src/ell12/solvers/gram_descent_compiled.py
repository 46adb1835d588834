"""Coordinate descent on a Gram matrix as compiled loops (numba); `ell12.solvers.gram_descent` has the plain ones.

Imported only where a problem is large enough to pay for loading numba; its code is cached on disk where possible.
"""

from __future__ import annotations

import math

import numpy as np

from ell12.backend.compiled_code import compiled_loop

loop = compiled_loop(error_model="numpy", nogil=True)


@loop
def descend(gram, gradient, x, parts, target, sweeps):  # type: ignore[no-untyped-def]
    """As `ell12.solvers.gram_descent.descend`."""
    weight = parts[3]
    active, least, most = np.empty(x.size, dtype=np.int64), math.inf, 0
    while True:
        count, worst = _active(gradient, x, parts, active)
        if worst <= target:
            return True
        if worst > 0.5 * least and count <= most:
            return False
        least, most = min(least, worst), max(most, count)
        block, slope, values, lower, upper = _gathered(gram, gradient, x, parts, active[:count])
        done = _sweeps(block, slope, values, lower, upper, weight, 0.5 * target, sweeps)
        moved = False
        for a in range(count):
            j = active[a]
            move = values[a] - x[j]
            if move != 0.0:
                moved = True
                row = gram[j]
                x[j] = values[a]
                for i in range(x.size):
                    gradient[i] += move * row[i]
        if not (done and moved):
            return False


@loop
def _square(x, above):  # type: ignore[no-untyped-def]
    """The square of the l2 norm over the penalised entries."""
    square = 0.0
    for j in range(x.size):
        if above[j] > 0.0:
            square += x[j] * x[j]
    return square


@loop
def _active(gradient, x, parts, active):  # type: ignore[no-untyped-def]
    """Write down which entries are used or violate the condition; return how many, and the largest violation."""
    below, above, ridge, weight = parts
    square, count, worst = _square(x, above), 0, 0.0
    tilt = weight / math.sqrt(square) if square > 0.0 else 0.0
    for j in range(x.size):
        slope = gradient[j] + (ridge[j] - (tilt if above[j] > 0.0 else 0.0)) * x[j]
        up, down = slope + above[j], slope + below[j]
        violation = abs(up) if x[j] > 0.0 else abs(down) if x[j] < 0.0 else max(-up, down, 0.0)
        worst = max(worst, violation)
        if x[j] != 0.0 or violation > 0.0:
            active[count] = j
            count += 1
    return count, worst


@loop
def _gathered(gram, gradient, x, parts, active):  # type: ignore[no-untyped-def]
    """The problem in the active entries alone."""
    (below, above, ridge, _), size = parts, active.size
    block, slope, values = np.empty((size, size)), np.empty(size), np.empty(size)
    lower, upper = np.empty(size), np.empty(size)
    for a in range(size):
        j = active[a]
        row = gram[j]
        for b in range(size):
            block[a, b] = row[active[b]]
        block[a, a] += ridge[j]
        values[a], slope[a] = x[j], gradient[j] + ridge[j] * x[j]
        lower[a], upper[a] = below[j], above[j]
    return block, slope, values, lower, upper


@loop
def _sweeps(block, slope, x, below, above, weight, target, most):  # type: ignore[no-untyped-def]
    """Sweep until no slope changes by more than target; False where more sweeps than ``most`` are left."""
    last = 0.0
    for sweep in range(10_000):
        largest, turned = _sweep(block, slope, x, below, above, weight)
        if largest <= target:
            return True
        if sweep > 0 and (not turned or sweep > most):
            rate = math.log(last / largest)
            if rate * most < math.log(largest / target):
                return False
        last = largest
    return False


@loop
def _sweep(block, slope, x, below, above, weight):  # type: ignore[no-untyped-def]
    """Minimise in one entry after the other; return the largest change of a slope, and whether a sign changed."""
    square, largest, turned = _square(x, above), 0.0, False
    for a in range(x.size):
        old, curvature = x[a], block[a, a]
        tilt = weight / math.sqrt(square) if square > 0.0 and above[a] > 0.0 else 0.0
        aim = (curvature + tilt) * old - slope[a]
        if curvature > 0.0:
            new = (aim - min(max(aim, below[a]), above[a])) / curvature
        else:  # there is a minimiser only where zero is one
            new = 0.0 if below[a] <= aim <= above[a] else old
        move = new - old
        if move != 0.0:
            x[a] = new
            turned |= (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
            largest = max(largest, abs(move) * curvature)
            if above[a] > 0.0:
                square = max(square + move * (new + old), 0.0)
            row = block[a]
            for b in range(x.size):
                slope[b] += move * row[b]
    return largest, turned


@loop
def follow(gram, gradient, x, sweeps, lasso, parts, few, alphas, targets, found):  # type: ignore[no-untyped-def]
    """As `ell12.solvers.gram_descent.follow`."""
    below, above, ridge, weight = parts
    for k in range(alphas.size):
        convex, target = (alphas[k] * below, alphas[k] * above, alphas[k] * ridge, 0.0), targets[k]
        own = (convex[0], convex[1], convex[2], alphas[k] * weight)
        if weight > 0.0 and _square(x, above) == 0.0:
            return k
        if not descend(gram, gradient, x, own, target, sweeps):
            return k
        if weight > 0.0 and (x != 0.0).sum() <= few and descend(gram, lasso[1], lasso[0], convex, target, sweeps):
            other, slope = lasso[0].copy(), lasso[1].copy()
            lower = descend(gram, slope, other, own, target, sweeps)
            if lower and _objective(other, slope, lasso[2], own) < _objective(x, gradient, lasso[2], own):
                for j in range(x.size):  # assignments to slices take two seconds to compile
                    x[j], gradient[j] = other[j], slope[j]
        for j in range(x.size):
            found[k, j] = x[j]
    return alphas.size


@loop
def _objective(x, gradient, linear, parts):  # type: ignore[no-untyped-def]
    below, above, ridge, weight = parts
    value = -weight * math.sqrt(_square(x, above))
    for j in range(x.size):
        if x[j] != 0.0:
            slope = above[j] if x[j] > 0.0 else below[j]
            value += x[j] * (0.5 * (gradient[j] - linear[j] + ridge[j] * x[j]) + slope)
    return value

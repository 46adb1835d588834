"""The prox of l1-2 with a lower and an upper bound for each entry; arguments were checked before.

An entry has the sign of z, or the one that its bounds allow. With the signs taken off, the problem is to minimise
``1/2 ||y - a||^2 + t (sum_i w_i y_i - l2_weight ||y||_2)`` over ``0 <= y <= u``. Let ``v = a - t w`` and
``s = max(v, 0)``, and let T be ``t l2_weight``.

At a given length r of y the best y is ``min(c s, u)``, as long as s has entries enough for that length. Where all
entries of s at their bounds are longer than T, the minimum is at ``c = 1 / (1 - T/r)``: c rises with r, and this
falls, so that they meet once. Otherwise the entries of s are at their bounds, and others enter too, for the sake
of the length alone: all of these but one are at their bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import like, namespace, positions
from ell12.protocols import Array
from ell12.prox.kernel import prox_vector
from ell12.prox.layout import as_single

# Newton's method for one number ends when it no longer falls, after a few steps as a rule.
NEWTON_STEPS = 100


def without_signs(z: Array, lower: Any, upper: Any) -> tuple[Array, Array]:
    """The sign that each entry of the prox at z has, and z with these signs off; minus infinity if held at 0.

    For bounds that are 0 or infinite: what is left is a problem in non-negative entries.
    """
    xp, sign, room = _signs(z, lower, upper)
    return sign, xp.where(room > 0, sign * z, -math.inf)


def prox_cone(z: Array, t: float, l2_weight: float, weights: Any, lower: Any, upper: Any) -> Array:
    """The prox where every bound is 0 or infinite."""
    sign, size = without_signs(z, lower, upper)
    return sign * prox_vector(size, t, l2_weight, weights, nonnegative=True)


@np.errstate(over="ignore", invalid="ignore")
def prox_box(z: Array, t: float, l2_weight: float, weights: Any, lower: Any, upper: Any) -> Array:
    """The prox with any bounds, lower <= 0 <= upper.

    It is a global minimiser where every bound other than 0 is at least ``t l2_weight`` in modulus, or where all
    are equal. Smaller bounds that differ make a knapsack problem of the choice between entries below the
    threshold, for which some orders are tried (`_beyond`).
    """
    work = as_single(z)
    xp, sign, room = _signs(work, lower, upper)
    size = xp.where(room > 0, sign * work, -math.inf)
    y = prox_vector(size, t, l2_weight, weights, nonnegative=True)
    if not bool(xp.all(y <= room)):  # else the minimiser without bounds is allowed
        y = _bounded(size, t, l2_weight, weights, room)
    return xp.astype(xp.where(xp.isnan(work), work, sign * y), z.dtype, copy=False)  # NaN stays


def _bounded(size: Array, t: float, l2_weight: float, weights: Any, room: Array) -> Array:
    """The solution without signs, of an array of any shape."""
    xp = namespace(size)
    w = 1.0 if weights is None else like(weights, size)
    v, u = xp.reshape(size - t * w, (-1,)), xp.reshape(room, (-1,))
    s = xp.where((v > 0) & (u > 0), v, 0)
    y = s if l2_weight == 0 else _grown(s, v, u, t * l2_weight)
    return xp.reshape(xp.where(y < u, y, u), tuple(size.shape))


def _signs(z: Array, lower: Any, upper: Any) -> tuple[Any, Array, Array]:
    """The namespace, the sign that each entry of the solution has, and how far it may go."""
    xp = namespace(z)
    lower, upper = (xp.zeros_like(z) + like(bound, z) for bound in (lower, upper))
    negative = (upper == 0) | ((lower < 0) & (z < 0))
    sign = xp.where(negative, xp.full_like(z, -1.0), 1.0)
    return xp, sign, xp.where(negative, -lower, upper)


def _grown(s: Array, v: Array, u: Array, T: float) -> Array:
    """The solution without signs."""
    xp = namespace(s)
    # So that no square overflows or underflows; a power of 2, by which a bound is not rounded.
    scale = 2.0 ** (math.frexp(max(float(xp.max(s)), T))[1] - 1)
    s, v, u, T = s / scale, v / scale, u / scale, T / scale
    filled = xp.where(s > 0, u, 0)
    if float(xp.sum(filled * filled)) > T * T:
        return scale * _stretched(s, u, T)
    return scale * (filled + _beyond(xp.where((s > 0) | (u == 0), -math.inf, v), u, T, filled))


def _stretched(s: Array, u: Array, T: float) -> Array:
    """``min(c s, u)`` of length ``T c / (c - 1)``."""
    xp = namespace(s)
    ratio = xp.where(s > 0, u / xp.where(s > 0, s, 1), math.inf)  # the c at which an entry reaches its bound
    order = xp.argsort(ratio)
    c, squares = xp.take(ratio, order, axis=0), xp.take(s * s, order, axis=0)
    ends = xp.isfinite(c)
    bounds = xp.where(ends, xp.take(u, order, axis=0), 0)
    c = xp.where(ends, c, 1)
    inside = xp.flip(xp.cumulative_sum(xp.flip(squares))) - squares
    length = xp.sqrt(xp.cumulative_sum(bounds * bounds) + c * c * inside)
    count = int(xp.sum(xp.astype(ends & (length * (c - 1) <= T * c), xp.int64)))
    last = -1.0 if count == 0 else float(c[count - 1])
    at_bound = ratio <= last
    free = float(xp.sum(xp.where(at_bound, 0, s * s)))
    if free == 0:
        return xp.where(s > 0, u, 0)
    growth = 1 + _growth(float(xp.sum(xp.where(at_bound, u * u, 0))), free, T)
    return xp.where(at_bound | (growth * s > u), u, growth * s)


def _growth(fixed: float, free: float, T: float) -> float:
    """The m with ``m^2 (fixed / (1 + m)^2 + free) = T^2``, found as q = m / (1 + m).

    ``q^2 (fixed + free / (1 - q)^2) - T^2`` is convex and rises with q, so that Newton's method falls on its root.
    """
    q = T / (T + math.sqrt(free))
    if fixed > 0:
        q = min(q, T / math.sqrt(fixed))
    for _ in range(NEWTON_STEPS):
        square = fixed + free / (1 - q) ** 2
        new = q - (q * q * square - T * T) / (2 * q * square + 2 * q * q * free / (1 - q) ** 3)
        if not 0 < new < q:
            break
        q = new
    m = q / (1 - q)
    for _ in range(2):  # where m is large, q has lost its last digits
        m -= (m * m * (fixed / (1 + m) ** 2 + free) - T * T) / (2 * m * (fixed / (1 + m) ** 3 + free))
    return m


def _beyond(v: Array, u: Array, T: float, filled: Array) -> Array:
    """Entries that enter though v is not positive, because a length below T is rewarded.

    They enter in the order of their prices, of their prices for each unit of squared length, or of what they gain
    alone: the best of the three.
    """
    xp, square = namespace(v), float(namespace(v).sum(filled * filled))
    bounds = xp.where(u < T, u, T)  # none is longer
    there = xp.isfinite(v) & (-v < T)  # what is dearer never pays
    price, bounds = xp.where(there, -v, 0), xp.where(there, bounds, 0)
    alone = _last_entry(square + 0 * price, price, bounds, T)
    gain = T * xp.sqrt(square + alone * alone) - 0.5 * alone * alone - price * alone
    keys = (price, price / xp.where(bounds > 0, bounds, 1), -gain)
    found = [_entering(xp.argsort(xp.where(there, key, math.inf)), square, price, bounds, T) for key in keys]
    return min(found, key=lambda pair: pair[0])[1]


def _entering(order: Array, square: float, price: Array, bounds: Array, T: float) -> tuple[float, Array]:
    """The best number of entries that enter in this order, all but the last up to their bounds, and its value."""
    xp = namespace(price)
    price, bounds = xp.take(price, order, axis=0), xp.take(bounds, order, axis=0)
    before = square + xp.cumulative_sum(bounds * bounds) - bounds * bounds
    paid = xp.cumulative_sum(price * bounds) - price * bounds
    y = _last_entry(before, price, bounds, T)
    whole = before + y * y
    value = 0.5 * whole - T * xp.sqrt(whole) + paid + price * y
    best = int(xp.argmin(value))
    last = xp.astype(positions(value) == best, price.dtype)
    entered = xp.where(positions(value) < best, bounds, y * last)
    return float(value[best]), xp.take(entered, xp.argsort(order), axis=0)


def _last_entry(square: Array, price: Array, bounds: Array, T: float) -> Array:
    """The minimiser of ``y^2/2 - T sqrt(square + y^2) + price y`` over 0 <= y <= bound, for each entry.

    The slope is convex where y is large and Newton's method from ``sqrt(T^2 - square)`` falls on its larger root.
    """
    xp = namespace(square)
    y = xp.sqrt(xp.where(square < T * T, T * T - square, 0))
    for _ in range(NEWTON_STEPS):
        length = xp.sqrt(square + y * y)
        length = xp.where(length > 0, length, 1)
        slope, bend = y - T * y / length + price, 1 - T * square / length**3
        new = y - slope / xp.where(bend > 0, bend, math.inf)
        new = xp.where(new > 0, new, 0)
        if not bool(xp.any(new < y)):
            break
        y = xp.where(new < y, new, y)
    y = xp.where(y < bounds, y, bounds)
    length = xp.sqrt(square + y * y)
    return xp.where(0.5 * y * y - T * length + price * y < -T * xp.sqrt(square), y, 0)

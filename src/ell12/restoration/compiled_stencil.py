"""The fused stencil of the smoothed total variation, compiled (numba).

One sweep over the image computes the differences, their prox, the adjoint, a gradient step and the extrapolation,
with the objective and the norms that steer the method. `ell12.restoration.stencil` holds the plain twins that are
its tests' oracles, and imports this module only for images large enough to pay for loading numba.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",  # a division that may raise is not vectorised
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # sums in any order; NaN and infinity keep their meaning
}


@njit(**OPTIONS)
def _pair(x, y, t, relief, growth, l2_weight, zero, half, one):  # type: ignore[no-untyped-def]
    """``d - prox(d)`` of the differences d = (x, y), and their envelope; selections instead of branches."""
    a, b = abs(x), abs(y)
    p, q = max(a - t, zero), max(b - t, zero)
    square = p * p + q * q
    inverse = one / math.sqrt(square)
    some = square > zero
    factor = one + relief * inverse
    kept = max(max(a, b) + growth, zero)  # of equal differences the first is kept
    p = p * factor if some else (kept if a >= b else zero)
    q = q * factor if some else (zero if a >= b else kept)
    length = square * inverse + relief if some else kept
    a, b = a - p, b - q
    envelope = t * (p + q - l2_weight * length) + half * (a * a + b * b)
    return -a if x < zero else a, -b if y < zero else b, envelope


@njit(**OPTIONS)
def _triple(x, y, z, t, relief, growth, l2_weight, zero, half, one):  # type: ignore[no-untyped-def]
    """`_pair` for three differences."""
    a, b, c = abs(x), abs(y), abs(z)
    p, q, r = max(a - t, zero), max(b - t, zero), max(c - t, zero)
    square = p * p + q * q + r * r
    inverse = one / math.sqrt(square)
    some = square > zero
    factor = one + relief * inverse
    top = max(a, b, c)
    kept = max(top + growth, zero)  # of equal differences the first is kept
    p = p * factor if some else (kept if a >= top else zero)
    q = q * factor if some else (kept if (a < top) & (b >= top) else zero)
    r = r * factor if some else (kept if (a < top) & (b < top) else zero)
    length = square * inverse + relief if some else kept
    a, b, c = a - p, b - q, c - r
    envelope = t * (p + q + r - l2_weight * length) + half * (a * a + b * b + c * c)
    return -a if x < zero else a, -b if y < zero else b, -c if z < zero else c, envelope


@njit(**OPTIONS)
def _residuals_2d(here, below, periodic, numbers, down, right):  # type: ignore[no-untyped-def]
    """Fill ``down[j]`` and ``right[j + 1]`` with the residuals of pixel j; ``right[0]`` is what enters pixel 0."""
    n = here.size
    _, t, relief, growth, l2_weight = numbers
    zero, half, one = here.dtype.type(0), here.dtype.type(0.5), here.dtype.type(1)
    shrink = (t, relief, growth, l2_weight, zero, half, one)
    total = zero
    for j in range(n - 1):
        pixel = here[j]
        down[j], right[j + 1], part = _pair(below[j] - pixel, here[j + 1] - pixel, *shrink)
        total += part
    end = here[0] - here[n - 1] if periodic else zero
    down[n - 1], right[n], part = _pair(below[n - 1] - here[n - 1], end, *shrink)
    right[0] = right[n] if periodic else zero
    return total + part


@njit(**OPTIONS)
def _residuals_3d(here, below, behind, periodic, numbers, back, down, right):  # type: ignore[no-untyped-def]
    """`_residuals_2d` with the next plane's row ``behind``; in loops of few arrays each, which are vectorised."""
    n = here.size
    _, t, relief, growth, l2_weight = numbers
    zero, half, one = here.dtype.type(0), here.dtype.type(0.5), here.dtype.type(1)
    for j in range(n):
        back[j] = behind[j] - here[j]
    for j in range(n):
        down[j] = below[j] - here[j]
    for j in range(n - 1):
        right[j + 1] = here[j + 1] - here[j]
    right[n] = here[0] - here[n - 1] if periodic else zero
    total = zero
    for j in range(n):
        back[j], down[j], right[j + 1], part = _triple(
            back[j], down[j], right[j + 1], t, relief, growth, l2_weight, zero, half, one
        )
        total += part
    right[0] = right[n] if periodic else zero
    return total


@njit(**OPTIONS)
def _step(mu, above, down, right, here, y, weight, x, out, step, sums):  # type: ignore[no-untyped-def]
    """A row of the gradient step: x becomes the new point, ``out`` the extrapolated one."""
    size, beta, low, high = step
    loss = square = turn = here.dtype.type(0)
    bounded = math.isfinite(low) or math.isfinite(high)
    for j in range(here.size):
        pixel = here[j]
        away = pixel - y[j]
        pull = weight[j] * away
        gradient = pull + mu * (above[j] - down[j] + right[j] - right[j + 1])
        free = pixel - size * gradient
        new = min(max(free, low), high)
        # Where a bound holds, what is left of the gradient is what a step of length one would still move.
        residual = pixel - min(max(pixel - gradient, low), high) if bounded else gradient
        move = new - x[j]
        x[j] = new
        out[j] = min(max(new + beta * move, low), high)
        loss += pull * away
        square += residual * residual
        turn += gradient * move
    sums[1] += loss
    sums[2] += square
    sums[3] += turn


@njit(**OPTIONS)
def _gradient(mu, above, down, right, out):  # type: ignore[no-untyped-def]
    """A row of the penalty's gradient."""
    for j in range(out.size):
        out[j] = mu * (above[j] - down[j] + right[j] - right[j + 1])


@njit(**OPTIONS)
def sweep_2d(z, periodic, first, last, numbers, data, x, out, step, rows, sums):  # type: ignore[no-untyped-def]
    """Rows ``first`` to ``last`` of an image z.

    ``numbers`` is (mu, t, relief, growth, l2_weight), ``step`` (size, beta, low, high), ``data`` (y, weight)
    with one row of weights or one for each row of y, ``rows`` is scratch. With ``data[0]`` empty ``out`` becomes
    the penalty's gradient, else x and out become what `_step` says. Adds to ``sums``: envelope, twice the loss,
    the squared gradient, its inner product with the move.
    """
    m = z.shape[0]
    y, weight = data
    mu = numbers[0]
    down, above, right = rows[0], rows[1], rows[2]
    above[:] = z.dtype.type(0)
    if periodic or first > 0:
        before = (first - 1) % m
        _residuals_2d(z[before], z[(before + 1) % m], periodic, numbers, above, right)
    for i in range(first, last):
        below = i + 1 if i + 1 < m else (0 if periodic else i)
        sums[0] += _residuals_2d(z[i], z[below], periodic, numbers, down, right)
        if y.size == 0:
            _gradient(mu, above, down, right, out[i])
        else:
            row = weight[min(i, weight.shape[0] - 1)]
            _step(mu, above, down, right, z[i], y[i], row, x[i], out[i], step, sums)
        down, above = above, down


@njit(**OPTIONS)
def sweep_3d(z, periodic, first, last, numbers, data, x, out, step, plane, rows, sums):  # type: ignore
    """`sweep_2d` for planes ``first`` to ``last`` of a volume; ``plane`` is scratch too."""
    depth, m, n = z.shape
    y, weight = data
    mu = numbers[0]
    down, above, right, back = rows[0], rows[1], rows[2], rows[3]
    plane[:] = z.dtype.type(0)
    start = (
        first - 1 if periodic or first > 0 else first
    )  # the plane before, for what flows from it into the first
    for k in range(start, last):
        here = z[k % depth]
        after = z[k + 1 if k + 1 < depth else (0 if periodic else k)]
        above[:] = z.dtype.type(0)
        if periodic:
            _residuals_3d(here[m - 1], here[0], after[m - 1], periodic, numbers, back, above, right)
        for i in range(m):
            below = here[i + 1 if i + 1 < m else (0 if periodic else i)]
            total = _residuals_3d(here[i], below, after[i], periodic, numbers, back, down, right)
            for j in range(n):
                above[j] += plane[i, j] - back[j]
            plane[i] = back[:n]
            if k >= first:
                sums[0] += total
                if y.size == 0:
                    _gradient(mu, above, down, right, out[k, i])
                else:
                    row = weight[min(k, weight.shape[0] - 1), min(i, weight.shape[1] - 1)]
                    _step(mu, above, down, right, here[i], y[k, i], row, x[k, i], out[k, i], step, sums)
            down, above = above, down

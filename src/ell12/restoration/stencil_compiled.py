"""The fused stencil of the smoothed total variation, compiled (numba).

One pass over the image takes several gradient steps: differences, their prox, the adjoint, the step and the
extrapolation, with the objective and the norms that steer the method. `ell12.restoration.stencil` holds the plain
functions that are its tests' oracle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ell12.backend.compiled_code import compiled_loop

FLOATS: dict[str, Any] = {
    "error_model": "numpy",  # a division that may raise is not vectorised
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # sums in any order; NaN and infinity keep their meaning
}
OPTIONS: dict[str, Any] = {"nogil": True, **FLOATS}
# Where it is called for its arrays alone, what it sums up is left out: that takes inlining.
INLINED: dict[str, Any] = {"forceinline": True, **OPTIONS}


def inverse_root(square: Any) -> Any:
    """``1 / sqrt(square)``."""
    return 1 / np.sqrt(square)


@overload(inverse_root, jit_options=FLOATS)  # type: ignore[arg-type]
def _inverse_root(square):  # type: ignore[no-untyped-def]
    """In float64 from that in float32, for which processors have an estimate, by one step of third order."""

    def single(square):  # type: ignore[no-untyped-def]
        return np.float32(1) / math.sqrt(square)

    def double(square):  # type: ignore[no-untyped-def]
        guess = np.float64(np.float32(1) / math.sqrt(np.float32(square)))
        error = 1.0 - square * guess * guess
        return guess + guess * error * (0.5 + 0.375 * error)

    return single if square == types.float32 else double


@compiled_loop(**INLINED)
def _by_axes(x, y, z, numbers):  # type: ignore[no-untyped-def]
    """`residuals` where differences count one by one, and those of a pixel as its l1-2; selections, no branches.

    Differences are cut at t; where none exceeds it the largest, of equal ones the first of z, x and y, is cut at
    ``growth`` instead. What exceeds t is lengthened by ``l2_weight t``.
    """
    _, t, growth, unit, l2_weight, zero, half, _, _ = numbers
    a, b, c = abs(x), abs(y), zero if z is None else abs(z)
    top = max(a, b) if z is None else max(a, b, c)
    some, first, second = top > t, False if z is None else c >= top, a >= top
    lone = t if some else growth
    d, e = min(a, t if first | (not second) else lone), min(b, t if first | second else lone)
    f = zero if z is None else min(c, lone if first else t)
    p, q, r = a - d, b - e, zero if z is None else c - f
    square = (p * unit) * (p * unit) + (q * unit) * (q * unit)  # in units of t: neither overflow nor underflow
    envelope = d * (a - half * d) + e * (b - half * e)
    if z is not None:
        square += (r * unit) * (r * unit)
        envelope += f * (c - half * f)
    factor = l2_weight * inverse_root(square) if some else zero
    relief = square * factor + (half * l2_weight * l2_weight if some else zero)
    far = zero if z is None else math.copysign(f - factor * r, z)
    return math.copysign(d - factor * p, x), math.copysign(e - factor * q, y), far, envelope - t * t * relief


@compiled_loop(**INLINED)
def _by_length(x, y, z, numbers):  # type: ignore[no-untyped-def]
    """`residuals` where a pixel's differences count by their length: it is cut at t."""
    _, t, _, unit, _, zero, half, _, _ = numbers
    square = (x * unit) * (x * unit) + (y * unit) * (y * unit)  # in units of t
    if z is not None:
        square += (z * unit) * (z * unit)
    some = square > half + half
    root = inverse_root(square)
    factor = root if some else half + half
    envelope = square * root - half if some else half * square
    return factor * x, factor * y, zero if z is None else factor * z, t * t * envelope


@compiled_loop(**INLINED)
def _scaled(x, y, z, by_length, scales, numbers):  # type: ignore[no-untyped-def]
    """`residuals`; which branches there are is decided by the types of the arguments, when it is compiled."""
    if scales is not None:
        x, y, z = scales[-2] * x, scales[-1] * y, None if z is None else scales[0] * z
    if by_length is None:
        down, right, far, envelope = _by_axes(x, y, z, numbers)
    else:
        down, right, far, envelope = _by_length(x, y, z, numbers)
    if scales is not None:
        down, right, far = scales[-2] * down, scales[-1] * right, scales[0] * far
    return down, right, far, envelope


@compiled_loop(**INLINED)
def residuals(x, y, z, numbers):  # type: ignore[no-untyped-def]
    """``d - prox(d)`` of a pixel's differences d = (x, y, z), and their envelope; z is None where there are two.

    ``numbers`` is (mu, t, growth, 1 / t, l2_weight, 0, 1/2, length, scales); growth is ``(1 - l2_weight) t``.
    ``length`` is None where differences count one by one, else they count by their length, without l2_weight.
    ``scales`` is None or what the differences along each axis are multiplied with, as are the results.
    """
    return _scaled(x, y, z, numbers[7], numbers[8], numbers)


@compiled_loop(**INLINED)
def _row(here, below, behind, before, y, weight, rule, flow, back, ahead, after):  # type: ignore[no-untyped-def]
    """A row of the step from z, ``here``, and u, ``before``, to ``ahead`` and ``after``; without y: the gradient.

    ``here`` has one pixel more than ``ahead``: what follows its end. ``flow`` holds the residuals of the
    differences that reach into the row from above, then those that leave it below; so does ``back`` across planes,
    and ``behind`` is the next plane's row, both None for images of two axes. ``rule`` is (periodic, numbers, step,
    limits). Returns the envelope, twice the loss, the squared gradient and its inner product with z - u, all at z.
    """
    periodic, numbers, step, limits = rule
    n = ahead.size
    envelope = loss = square = turn = left = numbers[5]
    if periodic:
        last = here[n - 1]
        beyond = None if behind is None else behind[n - 1] - last
        left = residuals(below[n - 1] - last, here[n] - last, beyond, numbers)[1]
    for j in range(n):
        pixel = here[j]
        away = None if behind is None else behind[j] - pixel
        down, right, far, part = residuals(below[j] - pixel, here[j + 1] - pixel, away, numbers)
        slope = (flow[j] - down) + (left - right)
        if behind is not None:
            slope += back[j] - far
            back[j] = far
        slope *= numbers[0]
        flow[j] = down
        left = right
        envelope += part
        if y is None:
            ahead[j] = slope
        else:
            counts = None if weight is None else weight[j]
            ahead[j], after[j], parts = _moved(pixel, before[j], y[j], counts, slope, step, limits)
            loss += parts[0]
            square += parts[1]
            turn += parts[2]
    return envelope, loss, square, turn


@compiled_loop(**INLINED)
def _moved(pixel, before, y, weight, slope, step, limits):  # type: ignore[no-untyped-def]
    """What a step from z makes of a pixel and of u, ``before``, and what the pixel adds to three of the sums."""
    away = pixel - y
    pull = away if weight is None else weight * away
    gradient = residual = pull + slope
    ahead, after = pixel - step[0] * gradient + step[1] * (pixel - before), pixel - step[2] * gradient
    if limits is not None:
        # Where a bound holds, what is left of the gradient is what a step of length one would still move.
        residual = pixel - min(max(pixel - gradient, limits[0]), limits[1])
        ahead, after = min(max(ahead, limits[0]), limits[1]), min(max(after, limits[0]), limits[1])
    return ahead, after, (pull * away, residual * residual, gradient * (pixel - before))


@compiled_loop(**INLINED)
def _copy_row(row, periodic, out):  # type: ignore[no-untyped-def]
    """Copy a row and append what follows its end: the last pixel, or the first."""
    n = row.size
    for j in range(n):
        out[j] = row[j]
    out[n] = row[0] if periodic else row[n - 1]


@compiled_loop(**INLINED)
def _add(sums, parts):  # type: ignore[no-untyped-def]
    sums[0] += parts[0]
    sums[1] += parts[1]
    sums[2] += parts[2]
    sums[3] += parts[3]


@compiled_loop(**OPTIONS)
def sweep_2d(old, y, weight, rule, band, new, scratch, sums):  # type: ignore[no-untyped-def]
    """The rows of a band of images after ``len(steps)`` steps from ``old``, which is (z, u), as is ``new``.

    ``rule`` is (periodic, numbers, steps, limits): ``numbers`` as in `residuals`, a step (size, momentum, left)
    as in `_moved`; ``weight`` and ``limits`` may be None. ``band`` is its first row and the one after its last.
    Added to ``sums`` are what `_row` returns at the z of the last step. Without y a single step makes the first of
    ``new`` the penalty's gradient at z.

    A row after one more step needs the rows around it of the step before, no others. So the steps follow each
    other through the image one row apart, and what lies between them is a few rows that stay in the cache, the
    first of ``scratch``. Rows past the ends of the band are computed too as far as its own depend on them, but not
    returned. They are read from the second of ``scratch``: images x (z, u) x (above, below) x rows. So ``new`` may
    be ``old``.
    """
    (z, u), (new_z, new_u), (rows, edges) = old, new, scratch
    for k in range(z.shape[0]):
        known, counts = None if y is None else y[k], None if weight is None else weight[k]
        _sweep_image((z[k], u[k]), known, counts, rule, band, (new_z[k], new_u[k]), (rows, edges[k]), sums[k])


@compiled_loop(**INLINED)
def _sweep_image(old, y, weight, rule, band, new, scratch, sums):  # type: ignore[no-untyped-def]
    (z, u), (first, last), (new_z, new_u), (rows, edges) = old, band, new, scratch
    periodic, numbers, steps, limits = rule
    m, n = z.shape
    count = steps.shape[0]
    rows[:count, 0] = numbers[5]
    for front in range(first - count - 1, last + count - 1):
        k = front + 1
        if first - count <= k < last + count and (periodic or 0 <= k < m):
            _copy_row(_row_of(z, edges[0], k, first, last), periodic, rows[0, 1 + k % 2])
        for s in range(count):
            i, halo = front - s, count - s
            if i < first - halo or i >= last + halo - 1 or not (periodic or 0 <= i < m):
                continue
            here, below = rows[s, 1 + i % 2], rows[s, 1 + (i + 1 if periodic or i + 1 < m else i) % 2]
            before = rows[s, 3 + i % 2, :n]
            if s == 0:
                before = _row_of(u, edges[1], i, first, last)
            known, counts = None if y is None else y[i % m], None if weight is None else weight[i % m]
            ahead, after = rows[s + 1, 1 + i % 2, :n], rows[s + 1, 3 + i % 2, :n]
            data = (here, below, None, before, known, counts, (periodic, numbers, steps[s], limits), rows[s, 0])
            if s < count - 1 or i < first:
                _row(*data, None, ahead, after)
                rows[s + 1, 1 + i % 2, n] = ahead[0] if periodic else ahead[n - 1]
                continue
            _add(sums, _row(*data, None, new_z[i], new_u[i]))


@compiled_loop(**INLINED)
def _row_of(image, edges, i, first, last):  # type: ignore[no-untyped-def]
    """Row i of an image, from its edges if it lies outside of ``first`` to ``last``."""
    if i < first:
        return edges[0, i - first + edges.shape[1]]
    return edges[1, i - last] if i >= last else image[i]


@compiled_loop(**OPTIONS)
def sweep_3d(old, y, weight, rule, band, new, scratch, sums):  # type: ignore[no-untyped-def]
    """The planes of a band of volumes after one step, as `sweep_2d`; the second of ``scratch`` is a plane.

    Those of ``new`` may be u, not z. A step that leaves z does not write the second.
    """
    (z, u), (first, last), (new_z, new_u), (rows, back) = old, band, new, scratch
    periodic, numbers, steps, limits = rule
    volumes, depth, m, n = z.shape
    flow, here, before = rows[0], rows[1], rows[2, :n]
    for volume in range(volumes):
        back[:] = numbers[5]
        for k in range(first - 1 if periodic or first > 0 else first, last):
            plane = z[volume, k % depth]
            behind = z[volume, (k + 1) % depth] if periodic or k + 1 < depth else plane
            flow[:] = numbers[5]
            for i in range(-1 if periodic else 0, m):
                _copy_row(plane[i % m], periodic, here)
                below = plane[(i + 1) % m] if periodic or i + 1 < m else plane[i]
                before[:] = u[volume, k % depth, i % m]  # apart, as loops are not vectorised in place
                known = None if y is None else y[volume, k % depth, i % m]
                counts = None if weight is None else weight[volume, k % depth, i % m]
                inside = i >= 0 and k >= first
                ahead, after = rows[3, :n], rows[5, :n]
                if inside:
                    ahead = new_z[volume, k, i]
                    if steps[0, 2] != 0:
                        after = new_u[volume, k, i]
                flows = (flow, back[i] if i >= 0 else rows[4, :n])
                data = (known, counts, (periodic, numbers, steps[0], limits), *flows)
                parts = _row(here, below, behind[i % m], before, *data, ahead, after)
                if inside:
                    _add(sums[volume], parts)

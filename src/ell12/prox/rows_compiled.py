"""The closed form of many rows as a compiled loop (numba)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend.compiled_code import compiled_loop


@np.errstate(over="ignore")
def prox_rows(rows: Any, t: float, l2_weight: float) -> Any:
    """The plain kernel without weights for a real array; None where a square would leave the range."""
    z = np.ascontiguousarray(rows).reshape(-1, rows.shape[-1])
    x = np.empty_like(z)
    kind = z.dtype.type
    limits = np.finfo(z.dtype)
    loop = _prox_pairs if z.shape[1] == 2 else _prox_short_rows
    tiny, huge = kind(limits.tiny / limits.eps), kind(limits.max * limits.eps)
    fits = loop(z, x, kind(t), kind(l2_weight * t), kind(t * (l2_weight - 1)), tiny, huge)
    return x.reshape(rows.shape) if fits else None


@compiled_loop(error_model="numpy", nogil=True)
def _prox_pairs(z, x, t, relief, growth, tiny, huge):  # type: ignore[no-untyped-def]
    """Rows of two. Selections instead of branches and flat indices, so that the compiler vectorises it."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    flat, out = z.reshape(-1), x.reshape(-1)
    outside = 0
    for i in range(z.shape[0]):
        z0, z1 = flat[2 * i], flat[2 * i + 1]
        a, b = abs(z0), abs(z1)
        u, v = a - t, b - t
        p, q = zero if u <= zero else u, zero if v <= zero else v  # NaN goes on
        square = p * p + q * q
        factor = one + relief / math.sqrt(square)
        top = a if a >= b else b
        grown = top + growth
        kept = grown if grown > zero else zero
        some = square > zero
        x0 = p * factor if some else (kept if a >= b else zero)
        x1 = q * factor if some else (zero if a >= b else kept)
        out[2 * i] = -x0 if z0 < zero else x0
        out[2 * i + 1] = -x1 if z1 < zero else x1
        outside += (not (square < huge)) | ((top > t) & (square < tiny))
    return outside == 0


@compiled_loop(error_model="numpy", nogil=True)
def _prox_short_rows(z, x, t, relief, growth, tiny, huge):  # type: ignore[no-untyped-def]
    zero = z.dtype.type(0)
    for i in range(z.shape[0]):
        square, top, largest = zero, -z.dtype.type(1), 0
        for j in range(z.shape[1]):
            size = abs(z[i, j])
            u = max(size - t, zero)
            square += u * u
            x[i, j] = zero
            if size > top:
                top, largest = size, j
            if math.isnan(size):
                return False
        if top > t:
            if not tiny < square < huge:
                return False
            factor = z.dtype.type(1) + relief / math.sqrt(square)
            for j in range(z.shape[1]):
                u = max(abs(z[i, j]) - t, zero) * factor
                x[i, j] = -u if z[i, j] < zero else u
        else:
            kept = max(top + growth, zero)
            x[i, largest] = -kept if z[i, largest] < zero else kept
    return True

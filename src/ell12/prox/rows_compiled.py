"""The closed form of many rows as compiled loops (numba)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend.compiled_code import compiled_loop


@np.errstate(over="ignore")
def prox_rows(rows: Any, t: float, l2_weight: float) -> Any:
    """The plain kernel without weights for a real array; None where a square would leave the range."""
    z = np.ascontiguousarray(rows).reshape(-1)
    x, kind, limits = np.empty_like(z), z.dtype.type, np.finfo(z.dtype)
    numbers = map(kind, (t, l2_weight * t, t * (l2_weight - 1), limits.tiny / limits.eps, limits.max * limits.eps))
    loop = _prox_pairs if rows.shape[-1] == 2 else _prox_rows
    return x.reshape(rows.shape) if loop(z, x, rows.shape[-1], *numbers) else None


@compiled_loop(error_model="numpy", nogil=True)
def _prox_pairs(z, x, n, t, relief, growth, tiny, huge):  # type: ignore[no-untyped-def] # noqa: ARG001
    """Rows of two. Selections instead of branches, so that the compiler vectorises it: seven times as fast."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    outside = 0
    for i in range(z.size // 2):
        z0, z1 = z[2 * i], z[2 * i + 1]
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
        x[2 * i] = -x0 if z0 < zero else x0
        x[2 * i + 1] = -x1 if z1 < zero else x1
        outside += (not (square < huge)) | ((top > t) & (square < tiny))
    return outside == 0


@compiled_loop(error_model="numpy", nogil=True, fastmath={"reassoc"})
def _prox_rows(z, x, n, t, relief, growth, tiny, huge):  # type: ignore[no-untyped-def]
    """Rows of any length n; sums may be taken in any order, so that the compiler vectorises them."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    outside = 0
    for i in range(z.size // n):
        square = zero
        for j in range(n):
            u = abs(z[i * n + j]) - t
            u = zero if u <= zero else u  # NaN goes on
            square += u * u
        if square == zero:
            top, largest = abs(z[i * n]), 0
            x[i * n] = zero
            for j in range(1, n):
                x[i * n + j] = zero
                if abs(z[i * n + j]) > top:
                    top, largest = abs(z[i * n + j]), j
            outside += top > t
            kept = max(top + growth, zero)
            x[i * n + largest] = -kept if z[i * n + largest] < zero else kept
        else:
            outside += not (tiny < square < huge)
            factor = one + relief / math.sqrt(square)
            for j in range(n):
                u = abs(z[i * n + j]) - t
                u = zero if u <= zero else u * factor
                x[i * n + j] = -u if z[i * n + j] < zero else u
    return outside == 0

"""Compiled loops (numba) over known entries; each has a plain counterpart that serves as its test's oracle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend.compiled_code import compiled_loop


def sums_of_products(W: Any, H: Any, rows: Any, columns: Any) -> Any:
    """`ell12.completion.low_rank.gathered_sums_of_products` without the gathered rows."""
    out = np.empty(rows.shape[0], dtype=W.dtype)
    _sums_of_products(np.ascontiguousarray(W), np.ascontiguousarray(H), rows, columns, out)
    return out


@compiled_loop(fastmath=True, error_model="numpy")
def _sums_of_products(W, H, rows, columns, out):  # type: ignore[no-untyped-def]
    for e in range(out.shape[0]):
        w, h = W[rows[e]], H[columns[e]]
        total = W.dtype.type(0)
        for k in range(W.shape[1]):
            total += w[k] * h[k]
        out[e] = total


@compiled_loop(fastmath=True, error_model="numpy")
def solve_rows(starts, columns, values, H, ridge, out):  # type: ignore[no-untyped-def]
    """`ell12.completion.gpu_entries.Segments.solve`; ``out`` holds the prior, and then the solution.

    The rows of H that are needed are gathered for BLAS to multiply.
    """
    rank = H.shape[1]
    gram, chunk = np.empty((rank, rank), dtype=H.dtype), np.empty((np.max(np.diff(starts)), rank), dtype=H.dtype)
    for i in range(out.shape[0]):
        count, right = starts[i + 1] - starts[i], out[i]
        rows = chunk[:count]
        for e in range(count):
            h, value = H[columns[starts[i] + e]], values[starts[i] + e]
            for a in range(rank):
                rows[e, a] = h[a]
                right[a] += value * h[a]
        np.dot(rows.T, rows, gram)
        for a in range(rank):
            gram[a, a] += ridge[a]
        _solve_in_place(gram, right)


@compiled_loop(fastmath=True, error_model="numpy")
def _solve_in_place(gram, right):  # type: ignore[no-untyped-def]
    """Cholesky's decomposition in the upper triangle, row by row, and the two substitutions."""
    rank = right.shape[0]
    for a in range(rank):
        root = math.sqrt(gram[a, a])
        for b in range(a, rank):
            gram[a, b] /= root
        right[a] /= root
        for c in range(a + 1, rank):
            factor = gram[a, c]
            right[c] -= factor * right[a]
            for b in range(c, rank):
                gram[c, b] -= factor * gram[a, b]
    for a in range(rank - 1, -1, -1):
        for b in range(a + 1, rank):
            right[a] -= gram[a, b] * right[b]
        right[a] /= gram[a, a]

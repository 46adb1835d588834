"""Compiled loops (numba) over known entries; each has a plain twin that serves as its test's oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


def sums_of_products(W: Any, H: Any, rows: Any, columns: Any) -> Any:
    """`ell12.completion.low_rank.gathered_sums_of_products` without the gathered rows."""
    out = np.empty(rows.shape[0], dtype=W.dtype)
    _sums_of_products(np.ascontiguousarray(W), np.ascontiguousarray(H), rows, columns, out)
    return out


@njit(cache=True, fastmath=True, error_model="numpy", nogil=True)
def _sums_of_products(W, H, rows, columns, out):  # type: ignore[no-untyped-def]
    for e in range(out.shape[0]):
        w, h = W[rows[e]], H[columns[e]]
        total = W.dtype.type(0)
        for k in range(W.shape[1]):
            total += w[k] * h[k]
        out[e] = total

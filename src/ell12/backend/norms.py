"""Norms that solvers ask for together: on a GPU by one kernel, so that the host waits for numbers once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import compiled_code as cuda
from ell12.backend.arrays import as_numpy, device, inner, is_numpy, max_abs, namespace, norm, safe_square
from ell12.protocols import Array

MOST_BLOCKS = 1056  # of threads: as many as an H200 runs at once


def l1_and_l2(x: Array) -> tuple[float, float]:
    """``sum_i |x_i|`` and ``||x||_2``."""
    found = None if is_numpy(x) else _on_gpu(x, x, of_difference=False)
    if found is not None and safe_square(found[1], x):
        return found[0], math.sqrt(found[1])
    xp = namespace(x)
    return float(xp.sum(xp.abs(x))), norm(x)


def difference(x: Array, y: Array) -> tuple[float, float]:
    """``max_i |x_i - y_i|`` and ``sum_i |x_i - y_i|^2``."""
    found = None if is_numpy(x) else _on_gpu(x, y, of_difference=True)
    if found is not None:
        return found[2], found[1]
    move = x - y
    return max_abs(move), inner(move, move)


def _on_gpu(x: Array, y: Array, of_difference: bool) -> list[float] | None:
    """The sum of the moduli, that of their squares, and the largest; None where there is no kernel."""
    size = math.prod(x.shape)
    kernel = cuda.kernel(x, __file__, "norms") if size > 0 and x.shape == y.shape and x.dtype == y.dtype else None
    if kernel is None:
        return None
    blocks, xp = min(MOST_BLOCKS, -(-size // (4 * cuda.THREADS))), namespace(x)
    parts: Any = xp.empty((3, blocks), dtype=xp.float64, device=device(x))
    kernel((blocks, 1), (cuda.one_piece(x), cuda.one_piece(y), parts), (size, of_difference))
    l1, square, largest = as_numpy(parts)
    return [float(np.sum(l1)), float(np.sum(square)), float(np.max(largest))]

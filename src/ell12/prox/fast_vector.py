"""The closed form for long vectors of NumPy, in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import is_number, is_numpy, safe_square
from ell12.protocols import Array

# Sums of squares are taken over pieces of this many entries. BLAS shares longer ones among threads, which wait for
# each other on a busy machine.
BLOCK = 10_000


@np.errstate(over="ignore", invalid="ignore")
def quick_prox(z: Array, t: Any, l2_weight: Any, weights: Any, positive: bool) -> Array | None:
    """`ell12.prox.closed_form.prox_vector` in few passes; None where only the general kernel will do."""
    if not is_numpy(z) or not is_number(t) or not is_number(l2_weight):
        return None
    # NumPy makes scalars of arrays without axes, and NaN of 0 * inf.
    if z.dtype.char not in "fd" or z.ndim == 0 or (t == 0 and weights is not None):
        return None
    if positive:
        x = np.subtract(z, float(t) if weights is None else float(t) * np.asarray(weights, z.dtype), order="C")
        np.maximum(x, 0, out=x)
    elif weights is None:
        x = np.clip(z, -float(t), float(t), order="C")
        np.subtract(z, x, out=x)
    else:
        x = np.abs(z, order="C")
        x -= float(t) * np.asarray(weights, z.dtype)
        np.maximum(x, 0, out=x)
        np.copysign(x, z, out=x)
    square = _sum_of_squares(x.reshape(-1))
    if safe_square(square, x):
        x *= 1.0 + float(l2_weight * t) / math.sqrt(square)
        return x
    if weights is None and not positive and not x.any():
        return _keep_largest(z, x, float(t) * (float(l2_weight) - 1.0))
    return None


def _sum_of_squares(flat: Any) -> float:
    """The sum of squares, in pieces that BLAS sums with one thread."""
    if flat.size <= BLOCK:
        return float(flat.dot(flat))
    return sum(_sum_of_squares(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK))


def _keep_largest(z: Any, zeros: Any, growth: float) -> Any:
    """Case two of `quick_prox`, written into ``zeros``."""
    place = np.unravel_index(np.argmax(np.abs(z, order="C")), z.shape)
    zeros[place] = math.copysign(max(abs(float(z[place])) + growth, 0.0), z[place] + 0.0)
    return zeros

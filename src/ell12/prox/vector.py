"""The prox of one long vector in as few passes as its library allows.

NumPy: in place. On a GPU: two kernels, that is two reads and a write, where plain operations take five passes.
What these compute is the general kernel where some entry lies above the threshold; all else is left to that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import cuda, device, is_number, is_numpy, namespace, safe_square
from ell12.protocols import Array

# Sums of squares are taken over pieces of this many entries. BLAS shares longer ones among threads, which wait for
# each other on a busy machine.
BLOCK = 10_000
MOST_BLOCKS = 4224  # A GPU runs at most this many blocks of threads: the fastest of the numbers tried on an H200.


def quick_prox(z: Array, t: Any, l2_weight: Any, weights: Any, nonnegative: bool) -> Array | None:
    """`ell12.prox.kernel.prox_vector` in few passes; None where only the general kernel will do."""
    if not is_number(t) or not is_number(l2_weight):
        return None
    if is_numpy(z):
        return _prox_numpy(z, t, l2_weight, weights, nonnegative)
    if weights is not None or nonnegative:
        return None
    return _prox_cuda(z, float(t), float(l2_weight))


@np.errstate(over="ignore", invalid="ignore")
def _prox_numpy(z: Any, t: Any, l2_weight: Any, weights: Any, nonnegative: bool) -> Any:
    """One problem, a real NumPy array, in a few passes; None where only the kernel will do."""
    # NumPy makes scalars of arrays without axes, and NaN of 0 * inf.
    if z.dtype.char not in "fd" or z.ndim == 0 or (t == 0 and weights is not None):
        return None
    if nonnegative:
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
    if weights is None and not nonnegative and not x.any():
        return _keep_largest(z, x, float(t) * (float(l2_weight) - 1.0))
    return None


def _sum_of_squares(flat: Any) -> float:
    """The sum of squares, in pieces that BLAS sums with one thread."""
    if flat.size <= BLOCK:
        return float(flat.dot(flat))
    return sum(_sum_of_squares(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK))


def _keep_largest(z: Any, zeros: Any, growth: float) -> Any:
    """Case two of `_prox_numpy`, written into ``zeros``."""
    place = np.unravel_index(np.argmax(np.abs(z, order="C")), z.shape)
    zeros[place] = math.copysign(max(abs(float(z[place])) + growth, 0.0), z[place] + 0.0)
    return zeros


def _prox_cuda(z: Array, t: float, l2_weight: float) -> Array | None:
    """On a GPU: two kernels, of which the second starts before any number is waited for."""
    square_above, shrink = (cuda.kernel(z, __file__, name) for name in ("square_above", "shrink"))
    if square_above is None or shrink is None:
        return None
    z, xp = cuda.one_piece(z), namespace(z)
    size, x = math.prod(z.shape), xp.empty_like(z)
    blocks = min(MOST_BLOCKS, -(-size // cuda.THREADS))
    sums = xp.empty(blocks + 1, dtype=xp.float64, device=device(z))  # one of each block of threads, and of all
    square_above((blocks, 1), (z, sums), (size, t))
    shrink((blocks, 1), (z, sums, x), (size, t, l2_weight * t))
    return x if safe_square(float(sums[blocks]), z) else None


# Every thread reads four entries at a time, so that enough reads are under way. All blocks of the second kernel
# add up the sums of the first in the same order, which costs less than a kernel between the two.

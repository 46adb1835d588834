"""The prox of one long vector in as few passes as its library allows.

NumPy: in place. On a GPU: two kernels, that is two reads and a write, where plain operations take five passes;
PyTorch compiles them by ``torch.compile``, CuPy from two lines of C. What these compute is the general kernel of
`ell12.prox` where some entry lies above the threshold; everything else is left to that.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np

from ell12.backend import inner, is_cupy, is_number, is_numpy, is_torch, safe_square
from ell12.protocols import Array

BLOCK = 10_000  # the longest vectors that BLAS does not split among threads
ROW = 2**14  # entries that one block of threads sums on a GPU
FUSED_FROM = 2**20  # entries from which plain operations on a GPU cost more than the start of its kernels


def prox_vector(z: Array, t: Any, l2_weight: Any, weights: Any, nonnegative: bool) -> Array | None:
    """`ell12.prox.prox_l12` of all entries as one vector; None where only the general kernel will do."""
    if not is_number(t) or not is_number(l2_weight):
        return None
    if is_numpy(z):
        return _prox_numpy(z, t, l2_weight, weights, nonnegative)
    if weights is not None or nonnegative or not str(z.dtype).endswith(("float32", "float64")):
        return None
    if not (is_cupy(z) or (is_torch(z) and z.is_cuda and not z.requires_grad)):
        return None
    prox = _prox_fused if math.prod(z.shape) >= FUSED_FROM else _prox_short
    return prox(z, float(t), float(l2_weight))


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
    """In blocks that BLAS sums with one thread: several would wait for each other on a busy machine."""
    if flat.size <= BLOCK:
        return float(flat.dot(flat))
    return sum(_sum_of_squares(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK))


def _keep_largest(z: Any, zeros: Any, growth: float) -> Any:
    """Case two of `_prox_numpy`, written into ``zeros``."""
    place = np.unravel_index(np.argmax(np.abs(z, order="C")), z.shape)
    zeros[place] = math.copysign(max(abs(float(z[place])) + growth, 0.0), z[place] + 0.0)
    return zeros


def _prox_short(z: Array, t: float, l2_weight: float) -> Array | None:
    """One short problem on a GPU, in as few operations as there can be: their start costs more than they do."""
    above = z - (z.clamp(-t, t) if is_torch(z) else z.clip(-t, t))  # the standard's clip is many operations
    square = inner(above, above)
    return (1 + l2_weight * t / math.sqrt(square)) * above if safe_square(square, z) else None


def _prox_fused(z: Array, t: float, l2_weight: float) -> Array | None:
    """One long problem on a GPU."""
    if is_torch(z):
        kernels, threshold = _torch_kernels(), z.new_full((), t)  # a number would be compiled in
    else:
        kernels, threshold = _cupy_kernels(), z.dtype.type(t)
    square_above, shrink = kernels
    square = square_above(z, threshold)
    x = shrink(z, threshold, 1 + l2_weight * t / square**0.5)  # on its way before the first number is waited for
    return x if safe_square(float(square), z) else None  # nothing above the threshold, NaN, or out of range


def _square_above(z: Array, t: Array) -> Array:
    """The sum of squares of what lies above the threshold."""
    above = z - z.clamp(-t, t)
    return (above * above).sum()


def _shrink(z: Array, t: Array, factor: Array) -> Array:
    """What lies above the threshold, lengthened by a factor."""
    return (z - z.clamp(-t, t)) * factor


@cache
def _torch_kernels() -> tuple[Any, Any]:
    import torch

    with warnings.catch_warnings():  # the compiler's own imports warn, which is not for our users
        warnings.simplefilter("ignore")
        torch.compile(lambda x: x + 1)(torch.ones(4, device="cuda"))
    # By default a kernel is made for the first size alone, which is faster, and another for all others.
    return torch.compile(_square_above), torch.compile(_shrink)


@cache
def _cupy_kernels() -> tuple[Any, Any]:
    import cupy

    above = "(z > t ? z - t : (z < -t ? z + t : (z == z ? T(0) : z)))"
    square = f"{above} * {above}"
    add = cupy.ReductionKernel("T z, T t", "T total", square, "a + b", "total = a", "0", "square_above")

    def square_above(z: Array, t: Any) -> Array:
        """In rows, which are summed side by side: a whole array would be left to one block of threads."""
        flat = z.reshape(-1)
        whole = flat.size - flat.size % ROW
        return add(flat[:whole].reshape(-1, ROW), t, axis=1).sum() + add(flat[whole:], t)

    return square_above, cupy.ElementwiseKernel("T z, T t, T factor", "T x", f"x = {above} * factor", "shrink")

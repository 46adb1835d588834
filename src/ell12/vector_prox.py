"""The prox of one long vector in as few passes as its library allows.

NumPy: in place. On a GPU: two kernels, that is two reads and a write, where plain operations take five passes;
PyTorch compiles them by ``torch.compile``, CuPy from C. What these compute is the general kernel of
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
FUSED_FROM = 2**20  # entries from which PyTorch's plain operations on a GPU cost more than compiled ones' start
THREADS, MOST_BLOCKS = 512, 4224  # of CuPy's kernels: the fastest of those tried on an H200


def prox_vector(z: Array, t: Any, l2_weight: Any, weights: Any, nonnegative: bool) -> Array | None:
    """`ell12.prox.prox_l12` of all entries as one vector; None where only the general kernel will do."""
    if not is_number(t) or not is_number(l2_weight):
        return None
    if is_numpy(z):
        return _prox_numpy(z, t, l2_weight, weights, nonnegative)
    if weights is not None or nonnegative or not str(z.dtype).endswith(("float32", "float64")):
        return None
    if is_cupy(z):
        return _prox_cupy(z, float(t), float(l2_weight))
    if not (is_torch(z) and z.is_cuda and not z.requires_grad):
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
    """One short PyTorch problem on a GPU, in few operations: their start costs more than they do."""
    above = z - z.clamp(-t, t)
    square = inner(above, above)
    return (1 + l2_weight * t / math.sqrt(square)) * above if safe_square(square, z) else None


def _prox_fused(z: Array, t: float, l2_weight: float) -> Array | None:
    """One long PyTorch problem on a GPU."""
    square_above, shrink = _torch_kernels()
    threshold = z.new_full((), t)  # a number would be compiled in
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


def _prox_cupy(z: Array, t: float, l2_weight: float) -> Array | None:
    """One CuPy problem: two kernels, of which the second starts before any number is waited for."""
    import cupy

    square_above, shrink = _cupy_kernels(z.dtype.char)
    flat = z.reshape(-1)
    x, threshold, growth = cupy.empty_like(flat), z.dtype.type(t), z.dtype.type(l2_weight * t)
    blocks = min(MOST_BLOCKS, -(-flat.size // THREADS))
    sums = cupy.empty(blocks + 1)  # one of each block of threads, and of all
    square_above((blocks,), (THREADS,), (flat, np.int64(flat.size), threshold, sums))
    shrink((blocks,), (THREADS,), (flat, np.int64(flat.size), threshold, growth, sums, x))
    return x.reshape(z.shape) if safe_square(float(sums[blocks]), z) else None


@cache
def _cupy_kernels(char: str) -> tuple[Any, Any]:
    import cupy

    source = _CUDA.replace("REAL", "float" if char == "f" else "double").replace("THREADS", str(THREADS))
    return cupy.RawKernel(source, "square_above"), cupy.RawKernel(source, "shrink")


# Every thread reads four entries at a time, so that enough reads are under way. All blocks of the second kernel
# add up the sums of the first in the same order, which costs less than a kernel between the two.
_CUDA = r"""
__device__ REAL above(REAL z, REAL t) {
    return z > t ? z - t : (z < -t ? z + t : (z == z ? REAL(0) : z));
}

__device__ double over_block(double mine) {
    __shared__ double shared[THREADS];
    shared[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    __syncthreads();
    return shared[0];
}

extern "C" __global__ void square_above(const REAL* z, long long size, REAL t, double* sums) {
    const long long stride = (long long)gridDim.x * THREADS;
    REAL total[4] = {0, 0, 0, 0};
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + 3 * stride < size; i += 4 * stride) {
        REAL read[4];
        for (int k = 0; k < 4; ++k) read[k] = z[i + k * stride];
        for (int k = 0; k < 4; ++k) { REAL u = above(read[k], t); total[k] += u * u; }
    }
    for (; i < size; i += stride) { REAL u = above(z[i], t); total[0] += u * u; }
    double sum = over_block((double)total[0] + total[1] + total[2] + total[3]);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void shrink(const REAL* z, long long size, REAL t, REAL growth, double* sums, REAL* x) {
    double mine = 0;
    for (int k = threadIdx.x; k < gridDim.x; k += THREADS) mine += sums[k];
    double square = over_block(mine);
    if (blockIdx.x == 0 && threadIdx.x == 0) sums[gridDim.x] = square;
    const REAL factor = 1 + growth / (REAL)sqrt(square);
    const long long stride = (long long)gridDim.x * THREADS;
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + 3 * stride < size; i += 4 * stride) {
        REAL read[4];
        for (int k = 0; k < 4; ++k) read[k] = z[i + k * stride];
        for (int k = 0; k < 4; ++k) x[i + k * stride] = above(read[k], t) * factor;
    }
    for (; i < size; i += stride) x[i] = above(z[i], t) * factor;
}
"""

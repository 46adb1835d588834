"""The smoothed total variation and its gradient: plainly for arrays of any kind, and by the compiled sweep.

The plain functions are the compiled sweep's oracles.
"""

from __future__ import annotations

import itertools
import math
import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import inner, is_numpy, namespace
from ell12.image_operators import FiniteDifference
from ell12.layout import row_norms
from ell12.protocols import Array
from ell12.prox import prox_l12

COMPILED_FROM = 2**14  # pixels from which an image pays for loading the compiled sweep
PIXELS_PER_THREAD = 2**18


def envelope_and_gradient(x: Array, D: FiniteDifference, t: float, l2_weight: float) -> tuple[float, Array]:
    """``sum_i min_w 1/2 ||w - (D x)_i||^2 + t (||w||_1 - l2_weight ||w||_2)`` and its gradient ``D'(D x - w)``."""
    steps = D @ x
    kept = prox_l12(steps, t, l2_weight=l2_weight, axis=-1)
    away, xp = steps - kept, namespace(x)
    cost = float(xp.sum(xp.abs(kept))) - l2_weight * float(xp.sum(row_norms(kept)))
    return t * cost + 0.5 * inner(away, away), D.H @ away


class Sums(NamedTuple):
    """What a sweep adds up: smoothed penalty, loss, squared norm of the gradient, its product with the move."""

    penalty: float
    loss: float
    square: float
    turn: float


class Sweep:
    """The compiled sweep for images of one shape and dtype, in bands of rows (planes) that threads share."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, penalty: Any, threads: int | None = None) -> None:
        from ell12.restoration import compiled_stencil

        self.kind, self.dtype = np.dtype(dtype).type, np.dtype(dtype)
        self.space = (1, *shape[-1:]) if penalty.ndim == 1 else shape[len(shape) - penalty.ndim :]
        self.images = math.prod(shape) // math.prod(self.space)
        self.kernel = compiled_stencil.sweep_2d if len(self.space) == 2 else compiled_stencil.sweep_3d
        self.periodic = penalty.boundary == "periodic"
        t, l2_weight = penalty.smoothing, penalty.l2_weight
        numbers = (penalty.mu, t, l2_weight * t, (l2_weight - 1) * t, l2_weight)
        self.numbers = tuple(self.kind(number) for number in numbers)
        self.bands = _bands(self.space[0], threads or usable_threads(math.prod(shape)))
        self.scratch = [self._new_scratch() for _ in self.bands]

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        out = np.empty_like(x, order="C")
        none = np.empty((0,) * len(self.space), self.dtype)
        zeros = (self.kind(0),) * 4
        sums = self._run(np.ascontiguousarray(x), lambda _: (none, none), out, out, zeros)
        return sums.penalty, out

    def step(
        self, z: Array, y: Array, weight: Array | None, x: Array, out: Array, step: tuple[float, ...]
    ) -> Sums:
        """Replace x by the gradient step from z, and ``out`` by its extrapolation.

        ``step`` is (size, beta, low, high); ``weight`` is 1 where y counts and 0 where it does not.
        """
        ones = np.ones((1,) * (len(self.space) - 1) + self.space[-1:], self.dtype)
        ys = y.reshape(self.images, *self.space)
        weights = None if weight is None else weight.reshape(self.images, *self.space)

        def data(image: int) -> tuple[Array, Array]:
            return ys[image], ones if weights is None else weights[image]

        return self._run(z, data, x, out, tuple(self.kind(number) for number in step))

    def _run(self, z: Array, data: Callable[[int], Any], x: Array, out: Array, step: tuple[Any, ...]) -> Sums:
        zs, xs, outs = (a.reshape(self.images, *self.space) for a in (z, x, out))
        sums = np.zeros((len(self.bands), 4))

        def sweep(band: int) -> None:
            first, last = self.bands[band]
            for image in range(self.images):
                self.kernel(
                    zs[image],
                    self.periodic,
                    first,
                    last,
                    self.numbers,
                    data(image),
                    xs[image],
                    outs[image],
                    step,
                    *self.scratch[band],
                    sums[band],
                )

        if len(self.bands) == 1:
            sweep(0)
        else:
            with ThreadPoolExecutor(len(self.bands)) as pool:
                list(pool.map(sweep, range(len(self.bands))))
        penalty, loss, square, turn = sums.sum(axis=0).tolist()
        return Sums(float(self.numbers[0]) * penalty, 0.5 * loss, square, turn)

    def _new_scratch(self) -> tuple[Array, ...]:
        rows = np.empty((4, self.space[-1] + 1), self.dtype)
        return (rows,) if len(self.space) == 2 else (np.empty(self.space[1:], self.dtype), rows)


class Buffers:
    """Arrays of one shape whose memory is used again once nobody holds them.

    An image as large as the cache would otherwise be given back to the system and fetched again at each step.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.free: list[Array] = []

    def take(self) -> Array:
        """An array with undefined entries."""
        memory = self.free.pop() if self.free else np.empty(math.prod(self.shape), self.dtype)
        # Made from a buffer, so that every view of it keeps this very object alive.
        array = np.frombuffer(memory.data, self.dtype)
        weakref.finalize(array, self.free.append, memory)
        return array.reshape(self.shape)


def sweep_for(x: Array, penalty: Any, threads: int | None = None) -> Sweep | None:
    """The compiled sweep for images like x; None where only the plain functions will do."""
    small = math.prod(x.shape) < COMPILED_FROM
    if small or not is_numpy(x) or x.dtype.char not in "fd" or penalty.ndim > 3 or penalty.smoothing == 0:
        return None
    try:
        return Sweep(tuple(x.shape), x.dtype, penalty, threads)
    except ImportError:  # numba is optional
        return None


def usable_threads(pixels: int) -> int:
    """One thread for a quarter of a million pixels, no more than there are processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, pixels // PIXELS_PER_THREAD))


def _bands(rows: int, threads: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, rows, min(threads, rows) + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))

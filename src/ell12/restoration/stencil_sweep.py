"""The driver of the compiled stencil: bands of rows that threads share, and memory that is used again."""

from __future__ import annotations

import itertools
import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from ell12.operators.column_sources import processors
from ell12.protocols import Array
from ell12.restoration import stencil_compiled
from ell12.restoration.stencil import STEPS, Moving, Steps, Sums, step_by_step

# A sweep uses one thread for each of this many pixels: with fewer, starting threads costs more than they save.
PIXELS_PER_THREAD = 2**18


class Sweep:
    """The compiled sweep for NumPy images of one shape and dtype, in bands of rows (planes) that threads share."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, penalty: Any, threads: int | None = None) -> None:
        self.shape, self.kind, self.dtype = shape, np.dtype(dtype).type, np.dtype(dtype)
        self.space = (1, *shape[-1:]) if penalty.ndim == 1 else shape[len(shape) - penalty.ndim :]
        self.images = math.prod(shape) // math.prod(self.space)
        self.flat = len(self.space) == 2
        self.kernel = stencil_compiled.sweep_2d if self.flat else stencil_compiled.sweep_3d
        self.periodic, self.mu = penalty.boundary == "periodic", penalty.mu
        # Images that weigh differently have a call each.
        weights = penalty.weights or (1.0,)
        each = self.images // len(weights)
        self.calls = [slice(k * each, (k + 1) * each) for k in range(len(weights))]
        self.numbers = [self._numbers(penalty, weight) for weight in weights]
        self.limits = None if penalty.bounds is None else tuple(map(self.kind, penalty.limits))
        rows = self.space[0]
        count = min(threads or max(1, min(processors(), math.prod(shape) // PIXELS_PER_THREAD)), rows)
        self.bands = list(itertools.pairwise(rows * k // count for k in range(count + 1)))
        self.scratch = [self._new_scratch() for _ in self.bands]
        self.no_step = np.zeros((1, 3), self.dtype)
        self.new_image = Buffers(shape, self.dtype).take

    def value(self, x: Array) -> float:
        """The smoothed penalty at x."""
        x = self.laid_out(x)
        return self._run((x, x), x, None, self.no_step, None).penalty

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        x, out = self.laid_out(x), np.empty_like(x, order="C")
        return self._run((x, x), None, None, self.no_step, (out, out)).penalty, out

    def advance(
        self, old: Moving, y: Array, weight: Array | None, steps: Steps, new: Moving
    ) -> tuple[Moving, Sums]:
        """What ``old``, a pair (z, u), is after some steps, in the memory of ``new``.

        ``weight`` is 1 where y counts and 0 where it does not. The sums are those at the z of the last step, which
        is the second of the pair returned if that step leaves it. ``new`` may be ``old``, or begin with its first:
        what ``old`` was is then lost. A volume whose steps leave more than z needs one image more meanwhile.
        """
        sizes = np.array(steps, self.dtype)
        if self.flat:
            return new, self._run(old, y, weight, sizes, new)

        def run(step: int, old: Moving, into: Moving) -> Sums:
            return self._run(old, y, weight, sizes[step : step + 1], into)

        return step_by_step(run, old, steps, new, self.new_image)

    @staticmethod
    def laid_out(x: Array) -> Array:
        """The array as the sweep takes it: row by row, and writable, the one kind that is compiled."""
        return np.require(x, requirements=["C", "W"])

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads."""
        return ThreadPoolExecutor(len(self.bands))

    def _run(
        self, old: Moving, y: Array | None, weight: Array | None, steps: np.ndarray, new: Moving | None
    ) -> Sums:
        """The kernel on every band; without ``new`` nothing but the sums is made."""
        into = old if new is None else new
        given = [None if a is None else a.reshape(self.images, *self.space) for a in (*old, y, weight, *into)]
        sums = np.zeros((len(self.bands), self.images, 4))
        limits = None if y is None else self.limits  # which a gradient does not need
        # Read before any band writes, as new may be old.
        edges = [self._edges(given, len(steps), band) for band in self.bands]

        def sweep(band: int) -> None:
            for numbers, call in zip(self.numbers, self.calls, strict=True):
                parts = [None if a is None else a[call] for a in given]
                around = [rows[call] for rows in edges[band]]
                where = (self.periodic, *self.bands[band], numbers, steps, limits, *around, new is not None)
                self.kernel(*parts[:4], *where, *parts[4:], *self.scratch[band], sums[band, call])

        if len(self.bands) == 1:
            sweep(0)
        else:
            list(self.pool.map(sweep, range(len(self.bands))))
        penalty, loss, square, turn = sums.sum(axis=(0, 1)).tolist()
        return Sums(self.mu * penalty, 0.5 * loss, square, turn)

    def _edges(self, given: list[Any], count: int, band: tuple[int, int]) -> list[Array]:
        """Copies of the rows around a band that it needs: images x (z, u) x (above, below), none of volumes."""
        if not self.flat:
            return []
        first, last = band
        rows = np.add.outer((first - count, last), np.arange(count)) % self.space[0]
        # In one piece: for another layout the sweep would be compiled anew, and be slow.
        return [np.ascontiguousarray(np.stack([image[:, rows] for image in given[:2]], axis=1))]

    def _numbers(self, penalty: Any, weight: float) -> tuple[Any, ...]:
        """Those of `ell12.restoration.stencil_compiled.pair`."""
        t, l2_weight, spacing = weight * penalty.smoothing, penalty.l2_weight, penalty.relative_spacing
        numbers = (penalty.mu, t, (1 - l2_weight) * t, 1 / t, l2_weight, 0.0, 0.5)
        scales = None if spacing is None else tuple(self.kind(1 / distance) for distance in spacing)
        return (*map(self.kind, numbers), 1 if penalty.isotropic else None, scales)

    def _new_scratch(self) -> tuple[Array, ...]:
        width = 16 * (self.space[-1] // 16 + 2)  # whole lines of the cache, with room for one pixel more
        if self.flat:
            return (_aligned((STEPS + 1, 5, width), self.dtype),)
        return _aligned((6, width), self.dtype), np.empty(self.space[1:], self.dtype)


class Buffers:
    """Arrays of one shape whose memory is used again once nobody holds them.

    An image as large as the cache would otherwise be given back to the system and fetched again at each step.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype
        self.free: list[Array] = []

    def take(self) -> Array:
        """An array with undefined entries."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = np.empty(math.prod(self.shape), self.dtype)
        # Made from a buffer, so that every view of it keeps this very object alive.
        array = np.frombuffer(memory.data, self.dtype)
        weakref.finalize(array, self.free.append, memory)
        return array.reshape(self.shape)


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with undefined entries that begins with a line of the cache, as vector instructions like it."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)

"""The smoothed total variation and its gradient: plainly for arrays of any kind, and by the compiled sweep.

The plain functions are the compiled sweep's oracles.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import compiled_code as cuda
from ell12.backend import inner, is_numpy
from ell12.backend.compiled_code import foresee, is_compiled, pays
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import FiniteDifference
from ell12.operators.reading import processors
from ell12.protocols import Array
from ell12.restoration.pixel_steps import ImageNorms, cost, shrunk

# A sweep uses one thread for each of this many pixels: with fewer, starting threads costs more than they save.
PIXELS_PER_THREAD = 2**18
# A run by plain operations takes about this long for each pixel: 40 steps of 10 (float32) to 20 nanoseconds.
PLAIN_SECONDS = 6e-7
# One sweep takes this many steps of the gradient method. Their rows together still fit in the cache.
STEPS = 4


def envelope_and_gradient(
    x: Array, D: FiniteDifference, t: float, l2_weight: float, isotropic: bool = False
) -> tuple[float, Array]:
    """``sum_i min_w 1/2 ||w - (D x)_i||^2 + t (||w||_1 - l2_weight ||w||_2)`` and its gradient ``D'(D x - w)``.

    Isotropic, ``min_W 1/2 ||W - D x||^2 + t (sum_i ||W_i||_2 - l2_weight ||W||_F)`` for each image.
    """
    steps = product(D, x)
    kept = shrunk(steps, t, l2_weight, isotropic)
    away = steps - kept
    return t * cost(kept, l2_weight, isotropic) + 0.5 * inner(away, away), adjoint_product(D, away)


def plain_gradient(x: Array, penalty: Any, flip: tuple[int, ...] = ()) -> tuple[float, Array]:
    """The smoothed penalty and its gradient by plain operations, with other flips than its own."""
    D = FiniteDifference(tuple(x.shape), penalty.boundary, penalty.ndim, flip, penalty.relative_spacing)
    value, slope = envelope_and_gradient(x, D, penalty.smoothing, penalty.l2_weight, penalty.isotropic)
    return penalty.mu * value, penalty.mu * slope


Moving = tuple[Array, Array]  # z, from which the next step is taken, and u, what the last one left
Steps = Sequence[tuple[float, ...]]  # size, momentum and what is left: see `ell12.restoration.momentum`


_COMPILED: set[Any] = set()  # the kinds of sweeps that were found compiled


def foresee_run(x: Array) -> None:
    """Say that a run by plain operations begins on an image like x."""
    if is_numpy(x):
        foresee(PLAIN_SECONDS * math.prod(x.shape))


def compiled_or_none(sweep: Sweep) -> Sweep | None:
    """The sweep, unless it is yet to be compiled and the plain operations would be done sooner."""
    ready = sweep.is_compiled or pays(PLAIN_SECONDS * math.prod(sweep.shape))
    return sweep if ready else None


class Sums(NamedTuple):
    """What a sweep adds up: smoothed penalty, loss, squared gradient, its product with z - u."""

    penalty: float
    loss: float
    square: float
    turn: float


class Sweep:
    """The compiled sweep for images of one shape and dtype, in bands of rows (planes) that threads share.

    The first and last rows (planes), ``margin`` of them, may belong to the neighbours of a part of an image. They
    are read, but neither summed nor returned; ``STEPS`` of them are enough. ``flip`` are the axes along which the
    arrays that a sweep is given must be flipped.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        penalty: Any,
        threads: int | None = None,
        margin: tuple[int, int] = (0, 0),
    ) -> None:
        from ell12.restoration import compiled_stencil

        self.shape, self.kind, self.dtype = shape, np.dtype(dtype).type, np.dtype(dtype)
        self.space = (1, *shape[-1:]) if penalty.ndim == 1 else shape[len(shape) - penalty.ndim :]
        self.images = math.prod(shape) // math.prod(self.space)
        self.flat = len(self.space) == 2
        self.kernel = compiled_stencil.sweep_2d if self.flat else compiled_stencil.sweep_3d
        self.periodic, self.flip = penalty.boundary == "periodic", penalty.flip
        t, l2_weight = penalty.smoothing, penalty.l2_weight
        numbers = (penalty.mu, t, (1 - l2_weight) * t, 1 / t, l2_weight, 0.0, 0.5)
        self.numbers = tuple(self.kind(number) for number in numbers)
        spacing, self.norms, self.penalty = penalty.relative_spacing, ImageNorms(penalty), penalty
        self.scales = None if spacing is None else tuple(self.kind(1 / distance) for distance in spacing)
        low, high = penalty.limits
        self.limits = None if penalty.bounds is None else (self.kind(low), self.kind(high))
        self.bands = _bands(0, self.space[0], threads or usable_threads(math.prod(shape)))
        self.own = _bands(margin[0], self.space[0] - margin[1], len(self.bands))
        self.scratch = [self._new_scratch() for _ in self.bands]
        self.no_step = np.zeros((1, 3), self.dtype)
        self.no_edges: dict[int, Array] = {}

    def value(self, x: Array) -> float:
        """The smoothed penalty at x."""
        x = for_sweep(x)
        found = self._run((x, x), x, None, self.no_step, None, self.own).penalty
        return plain_gradient(x, self.penalty)[0] if self.norms.undecided else found

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        x, out = for_sweep(x), np.empty_like(x, order="C")
        if self.norms.subtracted:
            self.value(x)
            if self.norms.undecided:
                return plain_gradient(x, self.penalty)
        return self._run((x, x), None, None, self.no_step, (out, out), self.own).penalty, out

    def advance(
        self, old: Moving, y: Array, weight: Array | None, steps: Steps, new: Moving
    ) -> tuple[Moving, Sums]:
        """What ``old``, a pair (z, u), is after some steps, in the memory of ``new``.

        ``weight`` is 1 where y counts and 0 where it does not. The sums are those at the z of the last step, which
        is the second of the pair returned if that step leaves it. ``new`` may be ``old``, or begin with its first:
        what ``old`` was is then lost. A volume whose steps leave more than z needs one image more meanwhile.
        """
        if self.norms.subtracted and not self.norms.sizes:
            self.value(old[0])
        sizes = np.array(steps, self.dtype)
        if self.flat:
            return new, self._run(old, y, weight, sizes, new, self.own)

        def run(step: int, old: Moving, into: Moving) -> Sums:
            bands = self.own if step == len(steps) - 1 else self.bands
            return self._run(old, y, weight, sizes[step : step + 1], into, bands)

        return step_by_step(run, old, steps, new, self.new_image)

    @property
    def is_compiled(self) -> bool:
        """Whether the loop is there for such images, in this process or on disk."""
        numbers = self._numbers(0)
        kind = (self.flat, self.dtype, *map(type, numbers))
        if kind not in _COMPILED:
            fits = is_compiled(self.kernel, lambda types: types[0].dtype.name == self.dtype.name, {7: numbers})
            _COMPILED.update([kind] if fits else [])
        return kind in _COMPILED

    @cached_property
    def new_image(self) -> Callable[[], Array]:
        """Makes an image with undefined entries."""
        small = math.prod(self.shape) * self.dtype.itemsize <= KEPT_BYTES
        return (kept_buffers if small else Buffers)(self.shape, self.dtype).take

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads."""
        return ThreadPoolExecutor(len(self.bands))

    def _run(
        self,
        old: Moving,
        y: Array | None,
        weight: Array | None,
        steps: np.ndarray,
        new: Moving | None,
        bands: list[tuple[int, int]],
    ) -> Sums:
        """The kernel on every band; without ``new`` nothing but the sums is made."""
        into = old if new is None else new
        given = [None if a is None else a.reshape(self.images, *self.space) for a in (*old, y, weight, *into)]
        sums = np.zeros((len(bands), self.images, 5))
        limits = None if y is None else self.limits  # which a gradient does not need
        edges = [(self._edges(given, len(steps), band),) if self.flat else () for band in bands]
        # Where one number belongs to each image, each has a call of its own.
        calls = [slice(k, k + 1) for k in range(self.images)] if self.norms.subtracted else [slice(None)]

        def sweep(band: int) -> None:
            for call in calls:
                parts = [None if a is None else a[call] for a in given]
                around = [rows[call] for rows in edges[band]]
                numbers = self._numbers(call.start or 0)
                where = (self.periodic, *bands[band], numbers, steps, limits, *around, new is not None)
                self.kernel(*parts[:4], *where, *parts[4:], *self.scratch[band], sums[band, call])

        if len(bands) == 1:
            sweep(0)
        else:
            list(self.pool.map(sweep, range(len(bands))))
        penalty, loss, square, turn, _ = sums.sum(axis=(0, 1)).tolist()
        if self.norms.subtracted:
            penalty -= self.norms.relief(sums[..., 4].sum(axis=0).tolist())
        return Sums(float(self.numbers[0]) * penalty, 0.5 * loss, square, turn)

    def _edges(self, given: list[Any], count: int, band: tuple[int, int]) -> Array:
        """The rows around a band; where there are none, as those of a whole image, any will do."""
        if band != (0, self.space[0]) or self.periodic:
            return _edges(given[0], given[1], count, band)
        if count not in self.no_edges:
            self.no_edges[count] = np.empty((self.images, 2, 2, count, self.space[-1]), self.dtype)
        return self.no_edges[count]

    def _numbers(self, image: int) -> tuple[Any, ...]:
        """Those of `ell12.restoration.compiled_stencil.pair`."""
        whole = tuple(map(self.kind, self.norms.numbers(image))) if self.norms.isotropic else None
        return (*self.numbers, whole, self.scales)

    def _new_scratch(self) -> tuple[Array, ...]:
        width = 16 * (self.space[-1] // 16 + 2)  # whole lines of the cache, with room for one pixel more
        if self.flat:
            return (_aligned((STEPS + 1, 5, width), self.dtype),)
        return _aligned((6, width), self.dtype), np.empty(self.space[1:], self.dtype)


def step_by_step(
    run: Callable[[int, Moving, Moving], Any], old: Moving, steps: Steps, new: Moving, spare: Callable[[], Array]
) -> tuple[Moving, Any]:
    """`Sweep.advance` by passes of one step, which may write to the memory of u, but not to that of z.

    ``run(number, old, into)`` takes a step. One that leaves z does not write the second of ``into``.
    """
    memory = list(new)
    for number, (_, _, left) in enumerate(steps):
        free = [a for a in memory if a is not old[0]]
        if left and len(free) < 2:
            memory.append(spare())
            free.append(memory[-1])
        ahead = old[1] if any(a is old[1] for a in free) else free[0]
        after = next(a for a in free if a is not ahead) if left else old[0]
        sums = run(number, old, (ahead, after))
        old = ahead, after
    return old, sums


def for_sweep(x: Array) -> Array:
    """The array as the sweep takes it: row by row, and writable, as another kind would have to be compiled for."""
    return np.require(x, requirements=["C", "W"]) if is_numpy(x) else cuda.one_piece(x)


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


# Memory for images of up to this many bytes is kept for the next call: getting it from the system took as long as
# denoising. That are four kinds of images, with about four of each at a time.
KEPT_BYTES, KINDS_KEPT = 2**22, 4
kept_buffers = lru_cache(KINDS_KEPT)(Buffers)


def usable_threads(pixels: int) -> int:
    """One thread for a quarter of a million pixels, no more than there are processors."""
    return max(1, min(processors(), pixels // PIXELS_PER_THREAD))


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array with undefined entries that begins with a line of the cache, as vector instructions like it."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def _bands(first: int, last: int, threads: int) -> list[tuple[int, int]]:
    count, rows = min(threads, last - first), last - first
    return list(itertools.pairwise(first + rows * k // count for k in range(count + 1)))


def _edges(z: Array, before: Array, count: int, band: tuple[int, int]) -> Array:
    """Copies of the rows around a band that it needs for so many steps: images x (z, before) x (above, below)."""
    first, last = band
    rows = np.add.outer((first - count, last), np.arange(count)) % z.shape[1]
    # In one piece: for another layout the sweep would be compiled anew, and be slow.
    return np.ascontiguousarray(np.stack([z[:, rows], before[:, rows]], axis=1))

"""The smoothed total variation and its gradient by plain array operations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import inner, namespace
from ell12.operators import adjoint_product, product
from ell12.operators.column_sources import processors
from ell12.operators.image_operators import FiniteDifference
from ell12.protocols import Array
from ell12.prox.batching import row_norms
from ell12.prox.closed_form import prox_rows

# One sweep takes this many steps of the gradient method. Their rows together still fit in the cache.
STEPS = 4


def cost(steps: Array, l2_weight: float, isotropic: bool) -> float:
    """``sum_i ||s_i||_1 - l2_weight ||s_i||_2`` over the pixels; isotropic: ``sum_i ||s_i||_2``.

    ``steps`` are those of `ell12.operators.image_operators.FiniteDifference`: a pixel's stand along the last axis.
    """
    xp, lengths = namespace(steps), row_norms(steps)
    whole = float(xp.sum(lengths))
    return whole if isotropic else float(xp.sum(xp.abs(steps))) - l2_weight * whole


def shrunk(steps: Array, t: Any, l2_weight: float, isotropic: bool) -> Array:
    """The prox of t times the cost; t is a number, or an array with one for each image."""
    if l2_weight:
        return prox_rows(steps, t, l2_weight)
    xp = namespace(steps)
    lengths = row_norms(steps) if isotropic else xp.abs(steps)  # without the norm every entry is shrunk alone
    return steps * (xp.where(lengths > t, lengths - t, 0) / xp.where(lengths > 0, lengths, 1))


def envelope_and_gradient(
    x: Array, D: FiniteDifference, t: Any, l2_weight: float, isotropic: bool = False
) -> tuple[float, Array]:
    """``sum_i min_w 1/2 ||w - (D x)_i||^2 + t (||w||_1 - l2_weight ||w||_2)`` and its gradient ``D'(D x - w)``.

    Isotropic, ``||w||_2`` stands in place of the difference of norms.
    """
    steps = product(D, x)
    kept = shrunk(steps, t, l2_weight, isotropic)
    away = steps - kept
    return cost(t * kept, l2_weight, isotropic) + 0.5 * inner(away, away), adjoint_product(D, away)


Moving = tuple[Array, Array]  # z, from which the next step is taken, and u, what the last one left
Steps = Sequence[tuple[float, ...]]  # size, momentum and what is left: see `ell12.restoration.smoothed_gradient`


class Sums(NamedTuple):
    """What a sweep adds up: smoothed penalty, loss, squared gradient, its product with z - u."""

    penalty: float
    loss: float
    square: float
    turn: float


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


# A sweep uses one thread for each of this many pixels: with fewer, starting threads costs more than they save.
PIXELS_PER_THREAD = 2**18


class Sweep:
    """The compiled sweep for NumPy images of one shape and dtype, in bands of rows (planes) that threads share."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, penalty: Any, threads: int | None = None) -> None:
        from ell12.restoration import stencil_compiled  # loads the compiler, which small images do without

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
        width = 16 * (self.space[-1] // 16 + 2)  # whole lines of the cache, with room for one pixel more
        size = (STEPS + 1, 5, width) if self.flat else (6, width)
        self.rows = [np.empty(size, self.dtype) for _ in self.bands]
        self.planes = [np.empty(self.space[1:], self.dtype) for _ in self.bands]
        self.no_step = np.zeros((1, 3), self.dtype)

    def new_image(self) -> Array:
        """An image with undefined entries."""
        return np.empty(self.shape, self.dtype)

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

    def _run(self, old: Moving, y: Array | None, weight: Array | None, steps: np.ndarray, new: Moving) -> Sums:
        """The kernel on every band."""
        given = [None if a is None else a.reshape(self.images, *self.space) for a in (*old, y, weight, *new)]
        sums = np.zeros((len(self.bands), self.images, 4))
        limits = None if y is None else self.limits  # which a gradient does not need
        around = self._edges(given[:2], len(steps)) if self.flat else self.planes

        def sweep(band: int) -> None:
            for numbers, call in zip(self.numbers, self.calls, strict=True):
                z, u, *data, new_z, new_u = [None if a is None else a[call] for a in given]
                scratch = (self.rows[band], around[band][call] if self.flat else around[band])
                rule = (self.periodic, numbers, steps, limits)
                self.kernel((z, u), *data, rule, self.bands[band], (new_z, new_u), scratch, sums[band, call])

        if len(self.bands) == 1:
            sweep(0)
        else:
            list(self.pool.map(sweep, range(len(self.bands))))
        penalty, loss, square, turn = sums.sum(axis=(0, 1)).tolist()
        return Sums(self.mu * penalty, 0.5 * loss, square, turn)

    def _edges(self, moving: list[Any], count: int) -> list[Array]:
        """For each band copies of the rows around it, as new may be old: images x (z, u) x (above, below)."""
        if len(self.bands) == 1 and not self.periodic:  # then there are none
            return [np.empty((self.images, 2, 2, 1, self.space[1]), self.dtype)]
        ends = np.array(self.bands) - (count, 0)
        rows = (ends[..., None] + np.arange(count)) % self.space[0]
        # In one piece: for another layout the sweep would be compiled anew, and be slow.
        return [np.ascontiguousarray(np.stack([image[:, r] for image in moving], axis=1)) for r in rows]

    def _numbers(self, penalty: Any, weight: float) -> tuple[Any, ...]:
        """Those of `ell12.restoration.stencil_compiled.residuals`."""
        t, l2_weight, spacing = weight * penalty.smoothing, penalty.l2_weight, penalty.relative_spacing
        numbers = (penalty.mu, t, (1 - l2_weight) * t, 1 / t, l2_weight, 0.0, 0.5)
        scales = None if spacing is None else tuple(self.kind(1 / distance) for distance in spacing)
        return (*map(self.kind, numbers), 1 if penalty.isotropic else None, scales)

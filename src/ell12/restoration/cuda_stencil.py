"""The fused stencil of the smoothed total variation on a GPU: a gradient step is one kernel.

`CudaSweep` does what `ell12.restoration.stencil.Sweep` does, with arrays of PyTorch and CuPy.
"""

from __future__ import annotations

import math
from typing import Any

from ell12.backend import as_numpy, cuda, device, namespace
from ell12.protocols import Array
from ell12.restoration.stencil import Moving, Steps, Sums

# A kernel is started with at most this many blocks: enough to fill a GPU, few enough that their sums are short.
MOST_BLOCKS_OF_A_SWEEP = 8192


class CudaSweep:
    """The kernel for images like x, of one, two or three axes, on a GPU."""

    def __init__(self, x: Array, penalty: Any, kernel: cuda.Launch) -> None:
        space = tuple(x.shape)[len(x.shape) - penalty.ndim :]
        self.kernel, self.mu = kernel, penalty.mu
        self.kind = {"shape": tuple(x.shape), "dtype": x.dtype, "device": device(x)}
        rows, across = math.prod(x.shape) // space[-1], -(-space[-1] // cuda.THREADS)
        self.blocks = (across, max(1, min(rows, MOST_BLOCKS_OF_A_SWEEP // across)))
        lengths = (1,) * (3 - len(space)) + space
        numbers = (penalty.mu, penalty.smoothing, penalty.l2_weight, penalty.bounds is not None, *penalty.limits)
        self.numbers = (rows, *lengths, penalty.boundary == "periodic", *numbers)
        self.library = namespace(x)

    def value(self, x: Array) -> float:
        """The smoothed penalty at x."""
        return self.gradient(x)[0]

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        x, out = cuda.one_piece(x), self.new_image()
        sums = self._run((x, x, x, x, out, out), stepping=False, weighted=False, step=(0.0, 0.0, 0.0))
        return _total(sums, self.mu).penalty, out

    def advance(
        self, old: Moving, y: Array, weight: Array | None, steps: Steps, point: Array, new: Moving
    ) -> Sums:
        """Make ``new`` what ``old`` is after some steps, as `ell12.restoration.stencil.Sweep.advance` does."""
        z, x = old
        given = y if weight is None else weight
        if len(steps) == 1:  # the last step reads the point, and may overwrite what it came from
            point[...] = z
            z = point
        for left, step in zip(range(len(steps) - 1, -1, -1), steps, strict=True):
            after = (new[0], point)[left] if left < 2 else self.new_image()
            arrays = (z, x, y, given, after, new[1])
            sums = self._run(arrays, stepping=True, weighted=weight is not None, step=step)
            z, x = after, new[1]
        return _total(sums, self.mu)

    def new_image(self) -> Array:
        """An image with undefined entries."""
        return self.library.empty(**self.kind)

    def _run(self, arrays: tuple[Array, ...], *, stepping: bool, weighted: bool, step: tuple[float, ...]) -> Array:
        """The kernel; arrays z, x, y, weight, new z, new x."""
        shape = (self.blocks[0] * self.blocks[1], 4)
        sums = self.library.empty(shape, dtype=self.library.float64, device=self.kind["device"])
        self.kernel(self.blocks, (*arrays, sums), (*self.numbers, stepping, weighted, *step))
        return sums


def sweep_on_gpu(x: Array, penalty: Any) -> CudaSweep | None:
    """The kernel for images like x; None where x is not on a GPU or has no kernel there."""
    kernel = cuda.kernel(x, __file__, "sweep", NDIM=penalty.ndim)
    return None if kernel is None else CudaSweep(x, penalty, kernel)


def _total(sums: Array, mu: float) -> Sums:
    penalty, loss, square, turn = as_numpy(namespace(sums).sum(sums, axis=0)).tolist()
    return Sums(mu * penalty, 0.5 * loss, square, turn)


# A thread walks down a column of rows (of all images), blocks lie side by side along the last axis. Differences
# that reach into a pixel are computed again by the pixel they reach: that costs less than memory for them.

"""The fused stencil of the smoothed total variation on a GPU: a gradient step is one kernel.

`CudaSweep` does what `ell12.restoration.stencil.Sweep` does, with arrays of PyTorch and CuPy.
"""

from __future__ import annotations

import math
from typing import Any

from ell12.backend import compiled_code as cuda
from ell12.backend import device, namespace
from ell12.protocols import Array
from ell12.restoration.stencil import Moving, Steps, Sums, step_by_step

# A kernel is started with at most this many blocks: enough to fill a GPU, few enough that their sums are short.
MOST_BLOCKS_OF_A_SWEEP = 8192


class CudaSweep:
    """The kernel for images like x, of one, two or three axes, on a GPU."""

    def __init__(self, x: Array, penalty: Any, kernel: cuda.Launch) -> None:
        space = tuple(x.shape)[len(x.shape) - penalty.ndim :]
        self.kernel, self.mu = kernel, penalty.mu
        self.kind = {"shape": tuple(x.shape), "dtype": x.dtype, "device": device(x)}
        # Images that weigh differently have a launch each.
        self.weights = penalty.weights or (1.0,)
        rows, across = math.prod(x.shape) // space[-1] // len(self.weights), -(-space[-1] // cuda.THREADS)
        self.blocks = (across, max(1, min(rows, MOST_BLOCKS_OF_A_SWEEP // across)))
        lengths = (1,) * (3 - len(space)) + space
        self.threshold = penalty.smoothing
        spacing = penalty.relative_spacing or (1.0,) * len(space)
        scales = (1.0,) * (3 - len(space)) + tuple(1 / distance for distance in spacing)
        self.layout = (rows, *lengths, 0, penalty.boundary == "periodic", penalty.mu)
        no_norm = (0.0, 1.0, 0.0)  # that of a whole image, which is not subtracted here: nothing to lengthen
        self.numbers = (penalty.l2_weight, penalty.bounds is not None, *penalty.limits, *scales, *no_norm)
        self.library = namespace(x)
        self.laid_out = cuda.one_piece

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        x, out = self.laid_out(x), self.new_image()
        sums = self._run((x, x, x, x, out, out), stepping=False, weighted=False, step=(0.0, 0.0, 0.0))
        return self._total(sums).penalty, out

    def advance(
        self, old: Moving, y: Array, weight: Array | None, steps: Steps, new: Moving
    ) -> tuple[Moving, Sums]:
        """What ``old`` is after some steps, as `ell12.restoration.stencil.Sweep.advance` says."""
        given = y if weight is None else weight

        def run(number: int, old: Moving, into: Moving) -> Array:
            arrays = (*old, y, given, *into)
            return self._run(arrays, stepping=True, weighted=weight is not None, step=steps[number])

        pair, sums = step_by_step(run, old, steps, new, self.new_image)
        return pair, self._total(sums)

    def new_image(self) -> Array:
        """An image with undefined entries."""
        return self.library.empty(**self.kind)

    def _run(self, arrays: tuple[Array, ...], *, stepping: bool, weighted: bool, step: tuple[float, ...]) -> Array:
        """The kernel; arrays z, u, y, weight, new z, new u."""
        shape = (len(self.weights), self.blocks[0] * self.blocks[1], 5)
        sums = self.library.empty(shape, dtype=self.library.float64, device=self.kind["device"])
        for image, weight in enumerate(self.weights):
            numbers = (*self.layout, weight * self.threshold, *self.numbers, stepping, weighted, *step)
            self.kernel(self.blocks, [self._part(array, image) for array in (*arrays, sums)], numbers)
        return sums

    def _part(self, array: Array, image: int) -> Array:
        """What a launch reads or writes of an array."""
        count = len(self.weights)
        return array if count == 1 else self.library.reshape(array, (count, -1))[image, ...]

    def _total(self, sums: Array) -> Sums:
        penalty, loss, square, turn, _ = self.library.sum(sums, axis=(0, 1)).tolist()
        return Sums(self.mu * penalty, 0.5 * loss, square, turn)


def sweep_on_gpu(x: Array, penalty: Any) -> CudaSweep | None:
    """The kernel for images like x; None where x is not on a GPU or has no kernel there."""
    kernel = cuda.kernel(x, __file__, "sweep", NDIM=penalty.ndim, ISOTROPIC=int(penalty.isotropic))
    return None if kernel is None else CudaSweep(x, penalty, kernel)

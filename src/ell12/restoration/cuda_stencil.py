"""The fused stencil of the smoothed total variation on a GPU: a gradient step is one kernel.

`CudaSweep` does what `ell12.restoration.stencil.Sweep` does, with arrays of PyTorch and CuPy.
"""

from __future__ import annotations

import math
from typing import Any

from ell12.backend import as_numpy, device, namespace
from ell12.backend import compiled_code as cuda
from ell12.protocols import Array
from ell12.restoration.pixel_steps import ImageNorms
from ell12.restoration.stencil import Moving, Steps, Sums, plain_gradient, step_by_step

# A kernel is started with at most this many blocks: enough to fill a GPU, few enough that their sums are short.
MOST_BLOCKS_OF_A_SWEEP = 8192


class CudaSweep:
    """The kernel for images like x, of one, two or three axes, on a GPU."""

    def __init__(self, x: Array, penalty: Any, kernel: cuda.Launch) -> None:
        space = tuple(x.shape)[len(x.shape) - penalty.ndim :]
        self.kernel, self.mu = kernel, penalty.mu
        self.kind = {"shape": tuple(x.shape), "dtype": x.dtype, "device": device(x)}
        self.penalty, self.norms = penalty, ImageNorms(penalty)
        # Where one number belongs to each image, each has a launch of its own.
        self.launches = math.prod(x.shape) // math.prod(space) if self.norms.subtracted else 1
        rows, across = math.prod(x.shape) // space[-1] // self.launches, -(-space[-1] // cuda.THREADS)
        self.blocks = (across, max(1, min(rows, MOST_BLOCKS_OF_A_SWEEP // across)))
        lengths = (1,) * (3 - len(space)) + space
        numbers = (penalty.mu, penalty.smoothing, penalty.l2_weight, penalty.bounds is not None, *penalty.limits)
        spacing = penalty.relative_spacing or (1.0,) * len(space)
        scales = (1.0,) * (3 - len(space)) + tuple(1 / distance for distance in spacing)
        flips = sum(1 << (penalty.ndim + axis) for axis in penalty.flip)
        self.numbers = (rows, *lengths, flips, penalty.boundary == "periodic", *numbers, *scales)
        self.flip = ()  # which the kernel sees to
        self.library = namespace(x)

    def value(self, x: Array) -> float:
        """The smoothed penalty at x."""
        x = cuda.one_piece(x)
        found = self._gradient(x)[0]
        return plain_gradient(x, self.penalty, self.penalty.flip)[0] if self.norms.undecided else found

    def gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty at x and its gradient."""
        x = cuda.one_piece(x)
        if self.norms.subtracted:
            self.value(x)
        if self.norms.undecided:
            return plain_gradient(x, self.penalty, self.penalty.flip)
        return self._gradient(x)

    def _gradient(self, x: Array) -> tuple[float, Array]:
        """`gradient`, with the image's norms as they are known."""
        out = self.new_image()
        sums = self._run((x, x, x, x, out, out), stepping=False, weighted=False, step=(0.0, 0.0, 0.0))
        return self._total(sums).penalty, out

    def advance(
        self, old: Moving, y: Array, weight: Array | None, steps: Steps, new: Moving
    ) -> tuple[Moving, Sums]:
        """What ``old`` is after some steps, as `ell12.restoration.stencil.Sweep.advance` says."""
        if self.norms.subtracted and not self.norms.sizes:
            self.value(old[0])
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
        shape = (self.launches, self.blocks[0] * self.blocks[1], 5)
        sums = self.library.empty(shape, dtype=self.library.float64, device=self.kind["device"])
        for image in range(self.launches):
            numbers = (*self.numbers, *self.norms.numbers(image), stepping, weighted, *step)
            self.kernel(self.blocks, [self._part(array, image) for array in (*arrays, sums)], numbers)
        return sums

    def _part(self, array: Array, image: int) -> Array:
        """What a launch reads or writes of an array."""
        return array if self.launches == 1 else self.library.reshape(array, (self.launches, -1))[image, ...]

    def _total(self, sums: Array) -> Sums:
        images = as_numpy(namespace(sums).sum(sums, axis=1))
        penalty, loss, square, turn, _ = images.sum(axis=0).tolist()
        if self.norms.subtracted:
            penalty -= self.norms.relief(images[:, 4].tolist())
        return Sums(self.mu * penalty, 0.5 * loss, square, turn)


def sweep_on_gpu(x: Array, penalty: Any) -> CudaSweep | None:
    """The kernel for images like x; None where x is not on a GPU or has no kernel there."""
    kernel = cuda.kernel(x, __file__, "sweep", NDIM=penalty.ndim, ISOTROPIC=int(penalty.isotropic))
    return None if kernel is None else CudaSweep(x, penalty, kernel)


# A thread walks down a column of rows (of all images), blocks lie side by side along the last axis. Differences
# that reach into a pixel are computed again by the pixel they reach: that costs less than memory for them.

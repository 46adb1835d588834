"""What the differences of the pixels cost and how they shrink, a pixel's by axes or by their length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ell12.backend import is_complex, namespace
from ell12.protocols import Array
from ell12.prox.batching import row_norms
from ell12.prox.closed_form import prox_rows, prox_vector


def cost(steps: Array, l2_weight: float, isotropic: bool) -> float:
    """``sum_i ||s_i||_1 - l2_weight ||s_i||_2`` over the pixels; isotropic, see `shrunk`.

    ``steps`` are those of `ell12.operators.image_operators.FiniteDifference`: a pixel's stand along the last axis.
    """
    xp, lengths = namespace(steps), row_norms(steps)
    if isotropic:
        return float(xp.sum(lengths)) - l2_weight * float(xp.sum(row_norms(_images(lengths, steps))))
    return float(xp.sum(xp.abs(steps))) - l2_weight * float(xp.sum(lengths))


def shrunk(steps: Array, t: float, l2_weight: float, isotropic: bool) -> Array:
    """The prox of t times the cost.

    Isotropic, the cost is ``sum_i ||s_i||_2 - l2_weight ||s||_F`` for each image: the lengths of an image's pixels
    make one l1-2 problem, and the directions stay.
    """
    if not isotropic:
        # Without the norm every entry is shrunk alone.
        return prox_rows(steps, t, l2_weight) if l2_weight else _shrunk_entries(steps, t)
    xp, lengths = namespace(steps), row_norms(steps)
    new = prox_rows(_images(lengths, steps), t, l2_weight, positive=True)
    return xp.reshape(new, tuple(lengths.shape)) * (steps / xp.where(lengths > 0, lengths, 1))


def _shrunk_entries(steps: Array, t: float) -> Array:
    """Each entry's modulus less t, at least zero."""
    if not is_complex(steps):
        return prox_vector(steps, t, 0.0)
    xp = namespace(steps)
    size = xp.abs(steps)
    return steps * (xp.where(size > t, size - t, 0) / xp.where(size > 0, size, 1))


def lengths_of_relief(steps: Array, isotropic: bool) -> Array:
    """The norms that are subtracted, one for each pixel or, isotropic, for each image; they broadcast to steps."""
    lengths = row_norms(steps)
    if not isotropic:
        return lengths
    whole = row_norms(_images(lengths, steps))
    return namespace(whole).reshape(whole, (*whole.shape[:-1], *(1,) * (steps.shape[-1] + 1)))


def units(steps: Array, isotropic: bool) -> Array:
    """The gradient of the subtracted norms: steps divided by them, zero where they are zero."""
    lengths = lengths_of_relief(steps, isotropic)
    return steps / namespace(steps).where(lengths > 0, lengths, 1)


# What a sweep adds, in units of t^2, for a pixel whose differences alone would be kept if none exceeded t. It is
# not zero, and ten billion of them do not reach the square of a rounding error in single precision.
MARK = 1e-32


class ImageNorms:
    """The norms that an isotropic penalty subtracts, one for each image, as sweeps over the images see them.

    Steps longer than t are lengthened by a factor that depends on the sum over the whole image: a sweep needs it
    before it has summed. So it takes the factor of the last one. Its sums are exact, as is the gradient of a
    second sweep at the same place; in between the factor changes little, as long as it is below 1. Where nothing
    exceeds t, the largest step alone is kept, if it exceeds ``(1 - l2_weight) t``: no sum tells which.
    """

    def __init__(self, penalty: Any) -> None:
        self.isotropic, self.l2_weight = penalty.isotropic, penalty.l2_weight if penalty.isotropic else 0.0
        self.squared_threshold = penalty.smoothing**2
        self.sizes: list[float] = []  # norms of what exceeded t in each image, in units of t
        self.undecided = False  # whether in some image the largest step alone is kept

    def relief(self, squares: Sequence[float]) -> float:
        """What the norms take off the envelope, from their squares (in units of t), which are remembered."""
        most = 1e10 * MARK
        self.undecided = any(0 < square <= most for square in squares)
        self.sizes = [math.sqrt(square) if square > most else 0.0 for square in squares]
        total = sum(size + self.l2_weight / 2 for size in self.sizes if size > 0)
        return self.squared_threshold * self.l2_weight * total

    def numbers(self, image: int) -> tuple[float, float, float]:
        """How much of itself is added to what exceeds t, the square of what may be kept alone, and its mark."""
        size = self.sizes[image] if self.sizes else 0.0
        return self.l2_weight / size if size > 0 else 0.0, (1 - self.l2_weight) ** 2, MARK

    @property
    def subtracted(self) -> bool:
        """Whether there are such norms at all."""
        return self.l2_weight > 0

    @property
    def unsteady(self) -> bool:
        """Whether so little exceeds t that the next factor may be quite another."""
        return self.undecided or any(0 < size < self.l2_weight for size in self.sizes)


def _images(lengths: Array, steps: Array) -> Array:
    """The lengths of one image along the last axis."""
    shape: tuple[Any, ...] = tuple(lengths.shape[: len(lengths.shape) - 1 - steps.shape[-1]])
    size = math.prod(lengths.shape) // math.prod(shape)
    return namespace(lengths).reshape(lengths, (*shape, size))

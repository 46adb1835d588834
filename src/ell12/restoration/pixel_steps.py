"""What the differences of the pixels cost and how they shrink, a pixel's by axes or by their length."""

from __future__ import annotations

import math
from typing import Any

from ell12.backend import namespace
from ell12.protocols import Array
from ell12.prox.kernel import prox_rows, prox_vector
from ell12.prox.layout import row_norms


def cost(steps: Array, l2_weight: float, isotropic: bool) -> float:
    """``sum_i ||s_i||_1 - l2_weight ||s_i||_2`` over the pixels; isotropic, see `shrunk`.

    ``steps`` are those of `ell12.operators.images.FiniteDifference`: a pixel's stand along the last axis.
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
        return prox_rows(steps, t, l2_weight) if l2_weight else prox_vector(steps, t, 0.0)
    xp, lengths = namespace(steps), row_norms(steps)
    new = prox_rows(_images(lengths, steps), t, l2_weight, nonnegative=True)
    return xp.reshape(new, tuple(lengths.shape)) * (steps / xp.where(lengths > 0, lengths, 1))


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


def _images(lengths: Array, steps: Array) -> Array:
    """The lengths of one image along the last axis."""
    shape: tuple[Any, ...] = tuple(lengths.shape[: len(lengths.shape) - 1 - steps.shape[-1]])
    size = math.prod(lengths.shape) // math.prod(shape)
    return namespace(lengths).reshape(lengths, (*shape, size))

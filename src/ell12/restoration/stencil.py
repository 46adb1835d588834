"""The smoothed total variation and its gradient by plain array operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ell12.backend import inner, namespace
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import FiniteDifference
from ell12.protocols import Array
from ell12.prox.batching import row_norms
from ell12.prox.closed_form import prox_rows

# One sweep takes this many steps of the gradient method. Their rows together still fit in the cache.
STEPS = 4


def cost(steps: Array, l2_weight: float, isotropic: bool) -> float:
    """``sum_i ||s_i||_1 - l2_weight ||s_i||_2`` over the pixels; isotropic, see `shrunk`.

    ``steps`` are those of `ell12.operators.image_operators.FiniteDifference`: a pixel's stand along the last axis.
    """
    xp, lengths = namespace(steps), row_norms(steps)
    if isotropic:
        relief = l2_weight * float(xp.sum(row_norms(_images(lengths, steps)))) if l2_weight else 0.0
        return float(xp.sum(lengths)) - relief
    return float(xp.sum(xp.abs(steps))) - l2_weight * float(xp.sum(lengths))


def shrunk(steps: Array, t: Any, l2_weight: float, isotropic: bool) -> Array:
    """The prox of t times the cost; t is a number, or an array with one for each image.

    Isotropic, the cost is ``sum_i ||s_i||_2 - l2_weight ||s||_F`` for each image: the lengths of an image's pixels
    make one l1-2 problem, and the directions stay.
    """
    if not isotropic:  # without the norm every entry is shrunk alone
        return prox_rows(steps, t, l2_weight) if l2_weight else _shortened(steps, namespace(steps).abs(steps), t)
    lengths = row_norms(steps)
    if not l2_weight:
        return _shortened(steps, lengths, t)
    xp, images = namespace(steps), _images(lengths, steps)
    t = t if isinstance(t, float) else xp.reshape(t, (*images.shape[:-1], 1))
    new = xp.reshape(prox_rows(images, t, l2_weight, positive=True), tuple(lengths.shape))
    return new * (steps / xp.where(lengths > 0, lengths, 1))


def _shortened(steps: Array, lengths: Array, t: Any) -> Array:
    """Steps whose lengths are t less, at least zero."""
    xp = namespace(steps)
    return steps * (xp.where(lengths > t, lengths - t, 0) / xp.where(lengths > 0, lengths, 1))


def units(steps: Array, isotropic: bool) -> Array:
    """The gradient of the subtracted norms, of each pixel or of each image: zero where they are zero."""
    lengths = row_norms(steps)
    if isotropic:
        whole = row_norms(_images(lengths, steps))
        lengths = namespace(whole).reshape(whole, (*whole.shape[:-1], *(1,) * (steps.shape[-1] + 1)))
    return steps / namespace(steps).where(lengths > 0, lengths, 1)


def _images(lengths: Array, steps: Array) -> Array:
    """The lengths of one image along the last axis."""
    shape: tuple[Any, ...] = tuple(lengths.shape[: len(lengths.shape) - 1 - steps.shape[-1]])
    return namespace(lengths).reshape(lengths, (*shape, math.prod(lengths.shape) // math.prod(shape)))


def envelope_and_gradient(
    x: Array, D: FiniteDifference, t: Any, l2_weight: float, isotropic: bool = False
) -> tuple[float, Array]:
    """``sum_i min_w 1/2 ||w - (D x)_i||^2 + t (||w||_1 - l2_weight ||w||_2)`` and its gradient ``D'(D x - w)``.

    Isotropic, ``min_W 1/2 ||W - D x||^2 + t (sum_i ||W_i||_2 - l2_weight ||W||_F)`` for each image.
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

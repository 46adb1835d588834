"""Choosing the strength: from the level of the noise, or by data held out."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.backend import as_numpy, is_complex, namespace
from ell12.operators import output_shape
from ell12.operators.image_operators import Identity, Sampling, slice_of
from ell12.protocols import Array
from ell12.restoration.risk import lowest

# Noise is averaged over blocks of this many pixels along each axis before the range of the values is taken: on ten
# photographs the range found at noise 0.02 to 0.2 of the scale was within a factor of two of the clean one's.
BLOCK = 4
HELD_OUT = 0.1  # This fraction of the data is held out: what is left is restored nearly as well as the whole.


def strength_for_noise(noise: float, spread: float) -> float:
    """``2.6 spread (noise / spread)^(4/3)``: the best on average over photographs, at ``l2_weight`` 0.5.

    A search for the best of one image begins here. For flat drawings and fine texture it is far off.

    Examples
    --------
    >>> from ell12.restoration.strength import strength_for_noise
    >>> round(strength_for_noise(0.05, 1.0), 4)
    0.0479
    """
    return 2.6 * spread * (noise / spread) ** (4 / 3)


def strength_for_deblurring(noise: float, spread: float) -> float:
    """``0.6 spread (noise / spread)^(3/2)``: the middle of what was best under Gaussian blur, at ``l2_weight`` 0.

    A search for the best of one image begins here. It lay between a fifth and six times as much, being smaller for
    wider blurs and finer texture, larger for drawings.

    Examples
    --------
    >>> from ell12.restoration.strength import strength_for_deblurring
    >>> round(strength_for_deblurring(0.01, 1.0), 6)
    0.0006
    """
    return 0.6 * spread * (noise / spread) ** 1.5


def value_range(image: Array, ndim: int) -> float:
    """The range of the values, nearly without the noise; 1 where all are equal.

    It is the range of the means over blocks of four pixels along each of the last ``ndim`` axes, but at least a
    quarter of the range of the values themselves, for images of details alone. Of complex values it is the range
    along the line that fits them best or across it, whichever is larger. It ignores shifts and phases.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.strength import value_range
    >>> value_range(np.array([3.0, 5.0, 4.0]), 1), round(value_range(np.array([3j, 5j, 4j]), 1), 9)
    (2.0, 2.0)
    """
    xp = namespace(image)
    if is_complex(image):
        away = image - xp.mean(image)
        line = away * cmath.exp(-0.5j * cmath.phase(complex(xp.sum(away * away))))
        return max(value_range(part, ndim) for part in (xp.real(line), xp.imag(line)))
    return max(_range(block_means(image, ndim)), _range(image) / 4) or 1.0


def block_means(image: Array, ndim: int) -> Array:
    """The means over blocks of four pixels along each of the last ``ndim`` axes that has eight."""
    means, xp = image, namespace(image)
    for axis in range(len(image.shape) - ndim, len(image.shape)):
        before, (n, *after) = means.shape[:axis], means.shape[axis:]
        if n >= 2 * BLOCK:
            whole = slice_of(means, axis, 0, n // BLOCK * BLOCK)
            means = xp.mean(xp.reshape(whole, (*before, n // BLOCK, BLOCK, *after)), axis=axis + 1)
    return means


def _range(x: Array) -> float:
    xp = namespace(x)
    return float(xp.max(x)) - float(xp.min(x))


def strength_by_held_out_data(
    y: Array,
    A: Any,
    first: float,
    solve: Callable[[Array, Any, float, Array | None], Array],
    score: Callable[[Array, Array], float],
) -> float:
    """The strength that predicts a tenth of the data, unseen, best from the rest.

    What is held out carries noise of its own, so that the error it shows is that of the image plus a constant
    (J-invariance; Batson & Royer, Noise2Self, 2019). From the first strength the search walks by factors of 1.5
    while the error falls, then takes the vertex of a parabola. ``solve(y, A, alpha, start)`` restores an image,
    ``score(prediction, hidden)`` says how far it is off.
    """
    kept = np.random.default_rng(0).random(output_shape(A)) >= HELD_OUT
    if kept.all() or not kept.any():
        raise ValueError("too few data to hold some out: give alpha, or noise")
    part = kept_part(A, kept)
    seen, unseen = Sampling(kept), Sampling(~kept)
    known, hidden = seen @ y, unseen @ y
    errors: dict[float, float] = {}
    x = None

    def error(alpha: float) -> float:
        nonlocal x
        if alpha not in errors:
            x = solve(known, part, alpha, x)
            errors[alpha] = score(unseen @ (A @ x), hidden)
        return errors[alpha]

    return lowest(error, first)


def kept_part(A: Any, kept: np.ndarray) -> Any:
    """The operator whose results are those of A that are kept."""
    if isinstance(A, Identity):
        return Sampling(kept)
    if type(A) is Sampling:
        mask = as_numpy(A.mask).copy()
        mask[mask] = kept
        return Sampling(mask)
    return Sampling(kept) @ A

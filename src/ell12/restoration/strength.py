"""Choosing the strength: from the level of the noise, or by data held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.operators import output_shape
from ell12.operators.image_operators import Identity, Sampling
from ell12.protocols import Array
from ell12.restoration.risk import lowest

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

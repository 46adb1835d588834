"""At which corner of an image the differences begin.

A pixel's differences are taken together, so that it matters whether they look forward or backward. The image
itself decides, by something that is mirrored with it: so a mirrored image is restored to the mirrored result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from ell12.backend import as_numpy, count_true, is_numpy, namespace
from ell12.protocols import Array

# Sums over an image are taken over parts of this many pixels: on a processor what lies between stays in the cache,
# on a GPU each part costs a few calls.
PIXELS_AT_ONCE, PIXELS_AT_ONCE_ELSEWHERE = 2**16, 2**27
# Halves of an image that differ by less than this fraction weigh the same. Rounding, which depends on the order in
# which parts are summed and on the precision, must not decide over images that are their own mirror images.
TIED = 1e-6

Corner = tuple[int, ...]  # the axes, counted from the last, along which differences begin at the end


def corner_of(image: Array, ndim: int, known: Array | None = None) -> Corner:
    """The corner of an image of ``ndim`` axes towards which it lies further from its mean.

    ``known`` says which pixels count; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.corners import corner_of
    >>> corner_of(np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 0.0]]), 2)
    (-1,)
    """
    xp = namespace(image)
    count = math.prod(image.shape) if known is None else max(1, count_true(known))
    mean = xp.sum(image if known is None else xp.where(known, image, 0 * image)) / count
    profiles = {axis: np.zeros(image.shape[axis]) for axis in range(-ndim, 0)}
    for part in _parts(image):
        inside = None if known is None else known[part, ...]
        for axis, sums in distances(image[part, ...], mean, ndim, inside).items():
            profiles[axis][part if axis == -len(image.shape) else slice(None)] += sums
    return heavier_ends(profiles)


def distances(image: Array, mean: float, ndim: int, known: Array | None = None) -> dict[int, np.ndarray]:
    """How far an image lies from a number, summed up for each place along each axis."""
    xp = namespace(image)
    away = xp.abs(image - mean)
    away = away if known is None else xp.where(known, away, 0 * away)
    axes = range(-len(image.shape), 0)
    return {k: as_numpy(xp.sum(away, axis=tuple(i for i in axes if i != k))) for k in axes[-ndim:]}


def heavier_ends(profiles: dict[int, np.ndarray]) -> Corner:
    """The axes along which the second half of a profile is heavier than the first."""
    return tuple(axis for axis, profile in profiles.items() if _is_heavier_at_the_end(profile))


def toggled(corner: Corner, flip: Corner) -> Corner:
    """The corner after some axes are turned round: each axis that is in one of both, but not in the other."""
    return tuple(sorted(set(corner) ^ set(flip)))


def spin_flips(spins: int, ndim: int) -> list[Corner]:
    """The axes along which the first, second, ... spin is flipped: none, all, then the other choices."""
    axes = range(-ndim, 0)
    every = [flip for count in range(ndim + 1) for flip in itertools.combinations(axes, count)]
    if not isinstance(spins, int) or not 1 <= spins <= len(every):
        raise ValueError(f"spins must be a whole number from 1 to {len(every)} for {ndim} axes, got {spins!r}")
    return [every[0], every[-1], *every[1:-1]][:spins]


def _parts(image: Array) -> Iterator[slice]:
    """Parts of the first axis."""
    pixels = PIXELS_AT_ONCE if is_numpy(image) else PIXELS_AT_ONCE_ELSEWHERE
    rows = max(1, pixels * image.shape[0] // math.prod(image.shape))
    for start in range(0, image.shape[0], rows):
        yield slice(start, min(start + rows, image.shape[0]))


def _is_heavier_at_the_end(profile: np.ndarray) -> bool:
    half = profile.size // 2
    return bool(profile[profile.size - half :].sum() > (1 + TIED) * profile[:half].sum())

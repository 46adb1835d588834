"""The level of white noise in an image, from its finest wavelet coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ell12.backend import as_numpy, is_complex, is_numpy, max_abs, namespace, on_accelerator
from ell12.operators.image_operators import flipped, slice_of
from ell12.protocols import Array
from ell12.restoration.corners import PIXELS_AT_ONCE, Corner, corner_of, spin_flips

# Daubechies' high-pass filter with two vanishing moments: blind to what is locally linear.
FILTER = (-0.4829629131445341, 0.8365163037378079, -0.2241438680420134, -0.1294095225512604)
MEDIAN_OF_MODULUS = 0.6744897501960817  # The modulus of a standard normal variable has this median.
# Blocks of this many coefficients are compared, and the noise is taken from those quieter than nine in ten:
# texture, which looks like noise, seldom fills all of an image.
BLOCK, QUIET = 64, 0.1
# The root of the mean of 64 squares of standard normal variables lies below this with a probability of 0.1.
QUIET_SIZE = 0.8838507
# With fewer blocks the quietest are too uncertain; the median over the image, which texture raises, is taken.
FEWEST_BLOCKS = 32
# Where fewer than this part of the coefficients differ from 0 there is no noise, but edges between flat regions: a
# black background, or what is saturated. The noise is that of the rest.
LIVE = 0.5
# The noise is estimated from at least this many coefficients: the error of their median is then about 20 percent.
FEWEST_COEFFICIENTS = 32
SMALL = 2**14  # Images of fewer pixels are looked at from all their corners: that takes no time.


def estimate_noise(image: Array, ndim: int, known: Array | None = None) -> float:
    """The noise's standard deviation, from the finest diagonal wavelet coefficients in the quietest blocks.

    Of small images, and where pixels are missing, it is the median modulus of all coefficients over 0.6745.

    Parameters
    ----------
    image : array
        Its last ``ndim`` axes make an image; over the others the estimates are averaged.
    ndim : int
        How many.
    known : array of bool, optional
        Which pixels count; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.noise import estimate_noise
    >>> noisy = 0.05 * np.random.default_rng(0).standard_normal((128, 128))
    >>> abs(estimate_noise(noisy, 2) - 0.05) < 0.002
    True
    """
    if not on_accelerator(image):  # so that tensors give what NumPy arrays give, to the last bit
        image, known = as_numpy(image), None if known is None else as_numpy(known)
    xp = namespace(image)
    # A mirrored image gives the same estimate. A small one is looked at from all corners: a few coefficients err.
    small = math.prod(image.shape) < SMALL
    corners = spin_flips(2**ndim, ndim) if small else [corner_of(image, ndim, known)]
    known = None if known is None else xp.asarray(known)
    rounding = 8 * float(xp.finfo(image.dtype).eps) * max_abs(image)
    estimates = [] if small or known is not None else _by_parts(image, ndim, corners[0], rounding)
    for corner in [] if estimates else corners:
        there = None if known is None else flipped(known, corner)
        estimates += _estimates(flipped(image, corner), ndim, there, rounding)
    if not estimates:
        raise ValueError("too few pixels to estimate the noise: give alpha, or noise")
    noise = sum(estimates) / len(estimates)
    return noise if noise > rounding else 0.0


def _by_parts(image: Array, ndim: int, corner: Corner, rounding: float) -> list[float]:
    """One estimate for each image, from blocks in one part of it after the other: little memory is needed.

    None where there are too few blocks, or numbers are complex.
    """
    shape = tuple(image.shape)[len(image.shape) - ndim :]
    if is_complex(image) or shape[0] < len(FILTER) or count_blocks(shape) < FEWEST_BLOCKS:
        return []
    xp, (n, *_), side = namespace(image), shape, _side(shape)
    images = xp.reshape(image, (-1, *shape))
    count = (n - len(FILTER)) // 2 + 1
    rows = max(1, PIXELS_AT_ONCE * n // math.prod(images.shape) // (2 * side)) * side
    sizes: list[list[Array]] = [[] for _ in range(images.shape[0])]
    for first in range(0, count // side * side, rows):
        start, stop = 2 * first, 2 * min(first + rows, count) + len(FILTER) - 2
        part = images[:, n - stop : n - start, ...] if -ndim in corner else images[:, start:stop, ...]
        for found, details in zip(sizes, coefficients(flipped(part, corner)), strict=True):
            found.append(block_sizes(details, rounding))
    return [spread_of_sizes(xp.concat(found)) for found in sizes]


def _estimates(image: Array, ndim: int, known: Array | None, rounding: float) -> list[float]:
    """One estimate for each image, of complex ones two."""
    xp = namespace(image)
    shape = (-1, *image.shape[len(image.shape) - ndim :])
    known = None if known is None else xp.reshape(known, shape)
    parts = (xp.real(image), xp.imag(image)) if is_complex(image) else (image,)
    images = [xp.reshape(part, shape) for part in parts]
    return [
        e for part in images for e in _by_wavelets(part, known, rounding) or _by_neighbours(part, known, rounding)
    ]


def _by_wavelets(images: Array, known: Array | None, rounding: float) -> list[float]:
    """One estimate for each image that has enough coefficients."""
    return estimates_of_values(coefficients(images, known), rounding)


def coefficients(images: Array, known: Array | None = None) -> list[Array]:
    """The finest diagonal wavelet coefficients of each image; where pixels are missing a vector of those known."""
    details = _coarse(images, _high_pass)
    if known is None:
        return [details[i, ...] for i in range(images.shape[0])]
    usable = _coarse(known, _all_of)
    return [details[i, ...][usable[i, ...]] for i in range(images.shape[0])]


def estimates_of_values(values: list[Array], rounding: float, *, blocks: bool = True) -> list[float]:
    """One estimate for each set of coefficients that is large enough, by its quietest blocks or by its median."""
    estimate = _quiet_spread if blocks else _spread
    return [estimate(part, rounding) for part in values if math.prod(part.shape) >= FEWEST_COEFFICIENTS]


def _quiet_spread(details: Array, rounding: float) -> float:
    """The standard deviation in the quietest blocks; by the median of all where there are few blocks."""
    shape = tuple(details.shape)
    side = _side(shape)
    if side ** len(shape) != BLOCK or math.prod(n // side for n in shape) < FEWEST_BLOCKS:
        return _spread(details, rounding)
    return spread_of_sizes(block_sizes(details, rounding))


def count_blocks(shape: Sequence[int]) -> int:
    """How many blocks the coefficients of an image make."""
    counts = [(n - len(FILTER)) // 2 + 1 for n in shape]
    counts = [count if count > 0 else n for count, n in zip(counts, shape, strict=True)]
    return math.prod(count // _side(tuple(shape)) for count in counts)


def _side(shape: tuple[int, ...]) -> int:
    return round(BLOCK ** (1 / len(shape)))


def block_sizes(details: Array, rounding: float) -> Array:
    """The mean squares of blocks of coefficients.

    Blocks most of which is exactly flat do not count: a black background, or what is saturated.
    """
    xp, shape = namespace(details), tuple(details.shape)
    side = _side(shape)
    counts = [n // side for n in shape]
    whole = details[tuple(slice(0, side * count) for count in counts)]
    split = xp.reshape(whole, tuple(n for count in counts for n in (count, side)))
    within = tuple(range(1, 2 * len(shape), 2))
    live = xp.mean(xp.astype(xp.abs(split) > rounding, split.dtype), axis=within) >= LIVE
    return xp.mean(split**2, axis=within)[live]


def spread_of_sizes(sizes: Array) -> float:
    """The standard deviation of which the quietest blocks speak; 0 where there are none."""
    ordered = namespace(sizes).sort(sizes)
    return math.sqrt(float(ordered[int(QUIET * ordered.shape[0])])) / QUIET_SIZE if ordered.shape[0] else 0.0


def _by_neighbours(images: Array, known: Array | None, rounding: float) -> list[float]:
    """One estimate from all differences of known neighbours, for images in which no whole window is known."""
    if known is None:
        return []
    steps = differences(images, known, range(1, len(images.shape)))
    return [e / math.sqrt(2) for e in estimates_of_values([steps], rounding, blocks=False)]


def differences(images: Array, known: Array, axes: Iterable[int]) -> Array:
    """The differences of all known neighbours along some axes, as a vector."""
    steps = []
    for axis in axes:
        n = images.shape[axis]
        both = slice_of(known, axis, 0, n - 1) & slice_of(known, axis, 1, n)
        steps.append((slice_of(images, axis, 1, n) - slice_of(images, axis, 0, n - 1))[both])
    return namespace(images).concat(steps)


def _spread(values: Array, rounding: float) -> float:
    """The standard deviation of normal values with this median modulus; 0 where most are flat."""
    xp = namespace(values)
    sizes = xp.reshape(xp.abs(values), (-1,))
    live = sizes[sizes > rounding]
    n = live.shape[0]
    if n < LIVE * sizes.shape[0]:
        return 0.0
    if is_numpy(live):
        return float(np.median(live)) / MEDIAN_OF_MODULUS
    ordered = xp.sort(live)
    return (float(ordered[(n - 1) // 2]) + float(ordered[n // 2])) / 2 / MEDIAN_OF_MODULUS


def _high_pass(taps: list[Array]) -> Array:
    total = FILTER[0] * taps[0]
    for weight, tap in zip(FILTER[1:], taps[1:], strict=True):  # one after the other, as they may be large
        total = total + weight * tap
    return total


def _all_of(taps: list[Array]) -> Array:
    return taps[0] & taps[1] & taps[2] & taps[3]


def _coarse(x: Array, combine: Callable[[list[Array]], Array]) -> Array:
    """Combine four neighbours, at every second place, along every axis but the first that has four."""
    for axis in range(1, len(x.shape)):
        count = (x.shape[axis] - len(FILTER)) // 2 + 1
        if count > 0:
            before = (slice(None),) * axis
            x = combine([x[(*before, slice(i, i + 2 * count - 1, 2), ...)] for i in range(len(FILTER))])
    return x

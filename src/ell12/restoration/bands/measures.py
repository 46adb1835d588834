"""What an image in bands tells of itself, as the whole would: its corner, the range of its values, its noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import max_abs
from ell12.operators.images import flipped
from ell12.protocols import Array
from ell12.restoration.bands.arrays import BandedArray
from ell12.restoration.corners import Corner, distances, heavier_ends
from ell12.restoration.noise import (
    FEWEST_BLOCKS,
    block_sizes,
    coefficients,
    count_blocks,
    differences,
    estimate_noise,
    estimates_of_values,
    spread_of_sizes,
)
from ell12.restoration.strength import block_means

# Bands are cut at multiples of this number of rows, so that means over 2, 4, 8 and 16 are those of the whole.
EVEN = 16
# The noise of an image of so many pixels is estimated in memory.
IN_MEMORY = 2**22
# Where pixels are missing, about so many coefficients at most are looked at, in some of the bands.
MOST_COEFFICIENTS = 2**24


def corner_of(image: BandedArray, ndim: int, known: BandedArray | None = None) -> Corner:
    """`ell12.restoration.corners.corner_of` an image in bands."""
    layout, parts, count = image.device, image.parts, len(image.parts)
    counts = [None] * count if known is None else known.parts
    sums = np.array(layout.keeper.run(_sum, [parts, counts])[1])
    mean = sums[:, 0].sum() / max(1, sums[:, 1].sum())
    found = layout.keeper.run(_distances, [parts, [mean] * count, [ndim] * count, counts])[1]
    profiles = {axis: sum(part[axis] for part in found) for axis in range(-ndim, 0) if axis != layout.axis}
    profiles[layout.axis] = np.concatenate([part[layout.axis] for part in found])
    return tuple(sorted(heavier_ends(profiles)))


def _sum(band: Array, known: Array | None) -> tuple[tuple[float, int]]:
    if known is None:
        return ((float(band.sum(dtype=np.float64)), band.size),)
    return ((float(band.sum(dtype=np.float64, where=known)), int(known.sum())),)


def _distances(band: Array, mean: float, ndim: int, known: Array | None) -> tuple[dict[int, Array]]:
    return (distances(band, mean, ndim, known),)


def cut_from(image: BandedArray, corner: Corner) -> BandedArray:
    """The image cut at multiples of `EVEN` rows, counted from a corner."""
    first, *inner, last = image.device.cuts
    rest = last % EVEN if image.device.axis in corner else 0
    return image.recut((first, *(cut // EVEN * EVEN + rest for cut in inner), last))


def range_of(image: BandedArray, ndim: int) -> float:
    """`ell12.restoration.strength.value_range` of an image in bands, cut from its corner."""
    ends = np.array(image.device.keeper.run(_extremes, [image.parts, [ndim] * len(image.parts)])[1])
    low, high = ends[:, :2].min(axis=0), ends[:, 2:].max(axis=0)
    return float(max(high[0] - low[0], (high[1] - low[1]) / 4)) or 1.0


def _extremes(band: Array, ndim: int) -> tuple[tuple[float, ...]]:
    """The least mean over a few pixels, the least value, and the largest ones."""
    means = block_means(band, ndim)
    return ((float(means.min()), float(band.min()), float(means.max()), float(band.max())),)


def noise_of(image: BandedArray, ndim: int, known: BandedArray | None = None) -> float:
    """`ell12.estimate_noise` of an image in bands."""
    if len(image.parts) == 1 or math.prod(image.shape) <= IN_MEMORY:
        everything = (slice(None),) * image.ndim
        return estimate_noise(image[everything], ndim, None if known is None else known[everything])
    corner, rounding = corner_of(image, ndim, known), 8 * float(np.finfo(image.dtype).eps) * max_abs(image)
    bands, run = _with_rows_below(image, corner), image.device.keeper.run
    if known is None and count_blocks(image.shape[-ndim:]) >= FEWEST_BLOCKS:
        found = run(_block_sizes, [bands, *_each(len(bands), ndim, rounding)])[1]
        estimates = [spread_of_sizes(np.concatenate(parts)) for parts in zip(*found, strict=True)]
    else:
        step = -(-math.prod(image.shape) // (MOST_COEFFICIENTS * 2**ndim))
        counts = [None] * len(bands) if known is None else _with_rows_below(known, corner)
        columns = [bands[::step], counts[::step], *_each(len(bands[::step]), ndim)]
        found = run(_coefficients, columns)[1]
        values = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        estimates = estimates_of_values(values, rounding, blocks=known is not None)
        if not estimates and known is not None:
            steps = np.concatenate(run(_differences, columns)[1])
            estimates = [e / math.sqrt(2) for e in estimates_of_values([steps], rounding, blocks=False)]
    if not estimates:
        raise ValueError("too few pixels to estimate the noise: give alpha, or noise")
    noise = sum(estimates) / len(estimates)
    return noise if noise > rounding else 0.0


def _with_rows_below(image: BandedArray, corner: Corner) -> list[tuple[Array, Array | None]]:
    """The bands from a corner on, with the two rows that follow them, into which filters of four rows reach."""
    whole = flipped(cut_from(image, corner), corner)
    return [(own, below) for _, own, below in whole.neighbourhoods(2, periodic=False)]


def _each(count: int, *values: Any) -> list[list[Any]]:
    return [[value] * count for value in values]


def _images(band: tuple[Array, Array | None], ndim: int) -> Array:
    """A band and the rows below it, one image for each channel along the first axis."""
    rows = np.concatenate([part for part in band if part is not None], axis=-ndim)
    return rows.reshape(-1, *rows.shape[-ndim:])


def _block_sizes(band: tuple[Array, Array | None], ndim: int, rounding: float) -> tuple[list[Array]]:
    return ([block_sizes(details, rounding) for details in coefficients(_images(band, ndim))],)


def _coefficients(
    band: tuple[Array, Array | None], known: tuple[Array, Array | None] | None, ndim: int
) -> tuple[list[Array]]:
    found = coefficients(_images(band, ndim), None if known is None else _images(known, ndim))
    return ([np.ravel(values) for values in found],)


def _differences(band: tuple[Array, Array | None], known: tuple[Array, Array | None], ndim: int) -> tuple[Array]:
    rows, counts, own = _images(band, ndim), _images(known, ndim), band[0].shape[-ndim]
    across = differences(
        rows[:, : own + 1], counts[:, : own + 1], [1]
    )  # the last pair of rows ends below the band
    return (np.concatenate([across, differences(rows[:, :own], counts[:, :own], range(2, ndim + 1))]),)

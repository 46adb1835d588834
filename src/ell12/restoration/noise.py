"""The level of white noise in an image, and the strength that suits it."""

from __future__ import annotations

import math

import numpy as np

from ell12.backend import as_numpy, is_complex, namespace
from ell12.protocols import Array

# Daubechies' high-pass filter with two vanishing moments: blind to what is locally linear.
FILTER = (-0.4829629131445341, 0.8365163037378079, -0.2241438680420134, -0.1294095225512604)
MEDIAN_OF_MODULUS = 0.6744897501960817  # of a standard normal variable
FEWEST = 32  # coefficients below which their median says little


def estimate_noise(image: Array, ndim: int, known: Array | None = None) -> float:
    """The noise's standard deviation: the median modulus of the finest diagonal wavelet coefficients over 0.6745.

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
    >>> noisy = 0.05 * np.random.default_rng(0).standard_normal((128, 128))
    >>> abs(estimate_noise(noisy, 2) - 0.05) < 0.002
    True
    """
    pixels = as_numpy(image)
    parts = [pixels.real, pixels.imag] if is_complex(image) else [pixels]
    shape = (-1, *pixels.shape[pixels.ndim - ndim :])
    usable = None if known is None else _all_known(as_numpy(known).reshape(shape), ndim)
    estimates = []
    for part in parts:
        for index, plane in enumerate(part.reshape(shape)):
            details = _details(plane)
            chosen = details.reshape(-1) if usable is None else details[usable[index]]
            if chosen.size >= FEWEST:
                estimates.append(float(np.median(np.abs(chosen))) / MEDIAN_OF_MODULUS)
    if not estimates:
        raise ValueError("the image is too small to estimate its noise: give alpha, or noise")
    return sum(estimates) / len(estimates)


def strength_for_noise(noise: float, l2_weight: float, spread: float) -> float:
    """``2.6 (noise / spread)^(4/3) spread`` at ``l2_weight`` 0.5, the best found on photographs."""
    if noise == 0:
        return 0.0
    return 2.6 * spread * (noise / spread) ** (4 / 3)


def value_range(image: Array, noise: float) -> float:
    """The range of the values less what noise adds at both ends, at least 1: what the strength is relative to."""
    xp = namespace(image)
    sizes = xp.abs(image) if is_complex(image) else image
    return max(1.0, float(xp.max(sizes)) - float(xp.min(sizes)) - 9 * noise)


def _details(plane: np.ndarray) -> np.ndarray:
    """The coefficients that are high-pass along every axis longer than the filter, every second one."""
    for axis in range(plane.ndim):
        count = (plane.shape[axis] - len(FILTER)) // 2 + 1
        if count < 1:
            continue
        taps = [_every_second(plane, axis, offset, count) for offset in range(len(FILTER))]
        plane = sum(weight * tap for weight, tap in zip(FILTER, taps, strict=True))
    return plane if plane.size else np.zeros(0)


def _all_known(known: np.ndarray, ndim: int) -> np.ndarray:
    """Where every pixel that a coefficient is made of is known."""
    for axis in range(1, ndim + 1):
        count = (known.shape[axis] - len(FILTER)) // 2 + 1
        if count < 1:
            continue
        taps = [_every_second(known, axis, offset, count) for offset in range(len(FILTER))]
        known = np.logical_and.reduce(taps)
    return known


def _every_second(x: np.ndarray, axis: int, offset: int, count: int) -> np.ndarray:
    return x[(slice(None),) * axis + (slice(offset, offset + 2 * count - 1, 2),)]


def is_level(noise: float) -> bool:
    """Whether a given noise level makes sense."""
    return 0 <= noise < math.inf

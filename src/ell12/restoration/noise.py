"""The level of white noise in an image, from its finest wavelet coefficients."""

from __future__ import annotations

import numpy as np

from ell12.backend import as_numpy, is_complex
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
        Its last ``ndim`` axes make an image; over the others the estimates are averaged. Brought to NumPy.
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
    shape = (-1, *pixels.shape[pixels.ndim - ndim :])
    usable = None if known is None else _coarse(as_numpy(known).reshape(shape), np.logical_and.reduce)
    estimates = []
    for part in (pixels.real, pixels.imag) if is_complex(image) else (pixels,):
        for index, details in enumerate(_coarse(part.reshape(shape), _high_pass)):
            chosen = details if usable is None else details[usable[index]]
            if chosen.size >= FEWEST:
                estimates.append(float(np.median(np.abs(chosen))) / MEDIAN_OF_MODULUS)
    if not estimates:
        raise ValueError("too few pixels to estimate the noise: give alpha, or noise")
    return sum(estimates) / len(estimates)


def _high_pass(taps: list[np.ndarray]) -> np.ndarray:
    return np.sum([tap.dtype.type(weight) * tap for weight, tap in zip(FILTER, taps, strict=True)], axis=0)


def _coarse(x: np.ndarray, combine: object) -> np.ndarray:
    """Combine four neighbours along every axis but the first that has so many, at every second place."""
    for axis in range(1, x.ndim):
        count = (x.shape[axis] - len(FILTER)) // 2 + 1
        if count > 0:
            before = (slice(None),) * axis
            starts = range(len(FILTER))
            x = combine([x[(*before, slice(i, i + 2 * count - 1, 2))] for i in starts])  # type: ignore[operator]
    return x

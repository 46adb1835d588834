"""The standard deviation of white noise in an image, from its finest diagonal wavelet coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from ell12.backend import as_numpy, is_complex, max_abs, namespace, on_accelerator
from ell12.operators.image_operators import slice_of
from ell12.protocols import Array
from ell12.restoration.pixels import as_image, channels_first

# Daubechies' high-pass filter with two vanishing moments: blind to what is locally linear.
FILTER = tuple((a + b * math.sqrt(3)) / math.sqrt(32) for a, b in ((-1, -1), (3, 1), (-3, 1), (1, -1)))
# A median needs at least this many values, and a strength is chosen by no fewer pixels.
FEWEST = 32


def estimate_sigma(image: Array, *, channel_axis: int | None = None) -> float:
    """Estimate the standard deviation of white noise in an image.

    The median absolute value of the finest diagonal wavelet coefficients over that of a standard normal variable,
    as in scikit-image. Fine texture makes it larger. Channels are averaged.

    Parameters
    ----------
    image : array
        As in `ell12.denoise_tv`.
    channel_axis : int, optional
        The axis of channels; by default the image has none.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration import estimate_sigma
    >>> noisy = 0.05 * np.random.default_rng(0).standard_normal((128, 128))
    >>> abs(estimate_sigma(noisy) - 0.05) < 0.002
    True
    """
    return noise_level(*channels_first(as_image(image), channel_axis))


def noise_level(image: Array, ndim: int, known: Array | None = None) -> float:
    """`estimate_sigma` of the last ``ndim`` axes, averaged over the others, from the pixels that are known."""
    if not on_accelerator(image):  # so that tensors give what NumPy arrays give, to the last bit
        image, known = as_numpy(image), None if known is None else as_numpy(known)
    xp, shape = namespace(image), (-1, *image.shape[len(image.shape) - ndim :])
    rounding = 8 * float(xp.finfo(image.dtype).eps) * max_abs(image)
    estimates: list[float] = []
    for part in (xp.real(image), xp.imag(image)) if is_complex(image) else (image,):
        images, masks = xp.reshape(part, shape), None if known is None else xp.reshape(known, shape)
        for k in range(images.shape[0]):
            estimates += _of_one(images[k, ...], None if masks is None else masks[k, ...], rounding)
    if not estimates:
        raise ValueError("too few pixels to estimate the noise: give alpha, or sigma")
    noise = sum(estimates) / len(estimates)
    return noise if noise > rounding else 0.0


def _of_one(image: Array, known: Array | None, rounding: float) -> list[float]:
    """The estimate of one image; none where too few pixels are known."""
    details = _coarse(image, _high_pass)
    if known is not None:
        details = details[_coarse(known, lambda taps: taps[0] & taps[1] & taps[2] & taps[3])]
    if math.prod(details.shape) >= FEWEST:
        return [_by_median(details, rounding)]
    # No whole window of the filter is known.
    steps = _known_differences(image, known) if known is not None else details
    return [_by_median(steps, rounding) / math.sqrt(2)] if math.prod(steps.shape) >= FEWEST else []


def _by_median(values: Array, rounding: float) -> float:
    """The standard deviation of normal values with this median absolute value; 0 where most are flat."""
    xp = namespace(values)
    sizes = xp.reshape(xp.abs(values), (-1,))
    live = xp.sort(sizes[sizes > rounding])
    n = live.shape[0]
    median = float(live[(n - 1) // 2] + live[n // 2]) / 2 if 2 * n >= sizes.shape[0] else 0.0
    return median / NormalDist().inv_cdf(0.75)


def _known_differences(image: Array, known: Array) -> Array:
    """The differences of all neighbours that are known, as a vector."""
    steps = []
    for axis, n in enumerate(image.shape):
        both = slice_of(known, axis, 0, n - 1) & slice_of(known, axis, 1, n)
        steps.append((slice_of(image, axis, 1, n) - slice_of(image, axis, 0, n - 1))[both])
    return namespace(image).concat(steps)


def _high_pass(taps: list[Array]) -> Array:
    return sum((weight * tap for weight, tap in zip(FILTER[1:], taps[1:], strict=True)), FILTER[0] * taps[0])


def _coarse(x: Array, combine: Callable[[list[Array]], Array]) -> Array:
    """Combine four neighbours, at every second place, along every axis that has four."""
    for axis in range(len(x.shape)):
        count = (x.shape[axis] - len(FILTER)) // 2 + 1
        if count > 0:
            before = (slice(None),) * axis
            x = combine([x[(*before, slice(i, i + 2 * count - 1, 2), ...)] for i in range(len(FILTER))])
    return x

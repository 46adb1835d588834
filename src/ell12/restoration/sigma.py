"""The standard deviation of white noise in an image, from its finest diagonal wavelet coefficients."""

from __future__ import annotations

import math
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
        images = xp.reshape(part if known is None else xp.where(known, part, xp.nan * part), shape)
        for k in range(images.shape[0]):
            estimates += _of_one(images[k, ...], rounding)
    if not estimates:
        raise ValueError("too few pixels to estimate the noise: give alpha, or sigma")
    noise = sum(estimates) / len(estimates)
    return noise if noise > rounding else 0.0


def _of_one(image: Array, rounding: float) -> list[float]:
    """The estimate of one image, unknown pixels being NaN: 0 where most is flat, none where too few are known."""
    xp, details = namespace(image), image
    for axis, n in enumerate(image.shape):
        count, before = (n - len(FILTER)) // 2 + 1, (slice(None),) * axis
        if count > 0:  # every second window
            taps = [details[(*before, slice(i, i + 2 * count - 1, 2), ...)] for i in range(len(FILTER))]
            details = sum(weight * tap for weight, tap in zip(FILTER, taps, strict=True))
    sizes, factor = xp.abs(details[xp.isfinite(details)]), 1.0
    if sizes.shape[0] < FEWEST:  # hardly a whole window is known: differences of neighbours
        pairs = [
            (slice_of(image, axis, 0, n - 1), slice_of(image, axis, 1, n)) for axis, n in enumerate(image.shape)
        ]
        steps = xp.concat([xp.reshape(after - before, (-1,)) for before, after in pairs])
        sizes, factor = xp.abs(steps[xp.isfinite(steps)]), math.sqrt(2)
    live = xp.sort(sizes[sizes > rounding])
    n = live.shape[0]
    median = float(live[(n - 1) // 2] + live[n // 2]) / 2 if 2 * n >= max(sizes.shape[0], 1) else 0.0
    # The median absolute value of a standard normal variable.
    return [median / (factor * NormalDist().inv_cdf(0.75))] if sizes.shape[0] >= FEWEST else []

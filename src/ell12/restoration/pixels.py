"""Images as scikit-image takes them: integers scaled to [0, 1], channels by axis, n axes."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.backend import (
    all_finite,
    as_floating,
    as_numpy,
    indices_like,
    inner,
    is_array,
    is_complex,
    is_half,
    is_numpy,
    max_abs,
    namespace,
    refuse_masked,
)
from ell12.checks import check_container, naming
from ell12.operators import Reshaped, adjoint_product, product, sent_to_device_of
from ell12.operators import image_operators as maps
from ell12.protocols import Array


def as_image(image: Any, name: str = "image") -> Array:
    """The image in floating point, checked.

    Unsigned integers are divided by their largest value, signed ones mapped to [-1, 1], truth values become 0
    and 1, half precision becomes single, long double becomes double; other floating and complex arrays are taken
    as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.pixels import as_image
    >>> as_image(np.array([[0, 255]], dtype=np.uint8))
    array([[0., 1.]])
    """
    if np.ma.isMaskedArray(image):
        raise TypeError(f"{name} must not be a masked array: fill it, or give its mask to inpaint_tv")
    refuse_far(image, name)
    check_container(image, name)
    with naming(name):  # such as rows of different lengths
        image = image if is_array(image) else np.asarray(image)
    image = as_pixels(image, name)
    if math.prod(image.shape) == 0 or len(image.shape) == 0:
        raise ValueError(f"{name} is empty: its shape is {tuple(image.shape)}")
    if not all_finite(image):
        raise ValueError(f"{name} holds NaN or infinity; every pixel must be finite")
    limits, size = namespace(image).finfo(image.dtype), max_abs(image)
    if size > 0 and not 1e3 * math.sqrt(limits.smallest_normal) <= size <= math.sqrt(limits.max):
        # If squares vanish any image converges.
        raise ValueError(f"{name} has values up to {size:g}, whose squares {image.dtype} cannot hold: rescale it")
    return image


def refuse_far(image: Any, name: str = "image") -> None:
    """Raise on arrays of Dask and Zarr."""
    kind = type(image).__module__.partition(".")[0]
    if kind in ("dask", "zarr"):
        functions = "ell12.distributed.denoise_tv or inpaint_tv"
        raise TypeError(f"{name} is an array of {kind.title()}: give it to {functions}, or a NumPy array")


def as_pixels(image: Array, name: str = "image") -> Array:
    """The numbers of an image, in floating point."""
    image = as_floating(_scaled(image), name)
    if is_numpy(image) and image.dtype.char in "gG":  # long double, which neither SciPy nor compiled code takes
        return image.astype(np.float64 if image.dtype.char == "g" else np.complex128)
    return namespace(image).astype(image, namespace(image).float32) if is_half(image) else image


def _scaled(image: Array) -> Array:
    """Integers as numbers between -1 and 1, the way scikit-image converts them."""
    if type(image) is np.ndarray and image.dtype.kind not in "iu":
        return image
    xp = namespace(image)
    if not xp.isdtype(image.dtype, "integral"):
        return image
    limits = xp.iinfo(image.dtype)
    value = xp.astype(image, xp.asarray(0.0).dtype)
    value = value / float(limits.max)
    return value if limits.min == 0 else xp.where(value < -1, -1.0, value)


def channels_first(image: Array, channel_axis: int | None) -> tuple[Array, int]:
    """The image with its channels along the first axis, and how many axes make one channel."""
    ndim = len(image.shape)
    if channel_axis is None:
        return image, ndim
    if not isinstance(channel_axis, int | np.integer) or not -ndim <= channel_axis < ndim:
        raise ValueError(f"channel_axis {channel_axis!r} is out of range for the shape {tuple(image.shape)}")
    if ndim == 1:
        raise ValueError("an image with channels needs an axis besides channel_axis")
    moved = namespace(image).moveaxis(image, int(channel_axis), 0)
    return np.ascontiguousarray(moved) if is_numpy(moved) else moved, ndim - 1


def channels_back(image: Array, channel_axis: int | None) -> Array:
    """The inverse of `channels_first`."""
    return image if channel_axis is None else namespace(image).moveaxis(image, 0, int(channel_axis))


def as_mask(mask: Any) -> Array:
    """The mask as an array; an error names it."""
    refuse_masked(mask, "mask")
    with naming("mask"):  # such as rows of different lengths
        return mask if is_array(mask) else np.asarray(mask)


def mask_like(mask: Any, image: Any, channel_axis: int | None, name: str = "image") -> Array:
    """The mask in the shape of the image, and as the kind of array that it is; errors name the image."""
    mask = as_mask(mask)
    refuse_masked(image, name)
    refuse_far(image, name)
    if getattr(image, "is_sparse", False):
        raise TypeError(f"{name} must be a dense array, got a sparse tensor")
    mask = sent_to_device_of(mask, image) if is_array(image) and not is_numpy(image) else as_numpy(mask)
    with naming(name):  # such as rows of different lengths
        shape = tuple(np.shape(image))
    ndim = len(shape)
    xp = namespace(mask)
    if not xp.isdtype(mask.dtype, "bool"):
        raise TypeError(f"mask must hold truth values, True where a pixel is known; got dtype {mask.dtype}")
    if tuple(mask.shape) == shape:
        return mask
    if channel_axis is not None and -ndim <= channel_axis < ndim:
        axis = int(channel_axis) % ndim
        if tuple(mask.shape) == shape[:axis] + shape[axis + 1 :]:
            return xp.asarray(xp.broadcast_to(xp.expand_dims(mask, axis=axis), shape), copy=True)
    raise ValueError(f"mask of shape {tuple(mask.shape)} does not fit an image of shape {shape}")


def without_unknown(image: Any, known: Array) -> Array:
    """The image with zeros where it is not known."""
    image = image if is_array(image) else np.asarray(image)
    xp = namespace(image)
    return xp.where(known, image, xp.zeros_like(image))


def filled(image: Array, known: Array, ndim: int) -> Array:
    """The image with its unknown pixels filled from coarser and coarser means of the known ones.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.pixels import filled
    >>> filled(np.array([1.0, 0.0, 0.0, 4.0]), np.array([True, False, False, True]), 1)
    array([1., 1., 4., 4.])
    """
    xp, axes = namespace(image), range(len(image.shape) - ndim, len(image.shape))
    known = xp.asarray(known)
    count = xp.astype(known, xp.abs(image).dtype)
    total = image * count
    for axis in axes:
        total, count = _pair_sums(total, axis), _pair_sums(count, axis)
    mean = total / xp.where(count > 0, count, 1)
    if any(mean.shape[axis] > 1 for axis in axes) and not bool(xp.all(count > 0)):
        mean = filled(mean, count > 0, ndim)
    for axis in axes:
        mean = xp.take(mean, indices_like(np.arange(image.shape[axis]) // 2, image), axis=axis)
    return xp.where(known, image, mean)


def _pair_sums(x: Array, axis: int) -> Array:
    """Sums of two neighbours; a last one alone stays as it is."""
    xp, before = namespace(x), (slice(None),) * axis
    even, odd = x[(*before, slice(0, None, 2), ...)], x[(*before, slice(1, None, 2), ...)]
    if odd.shape[axis] < even.shape[axis]:
        odd = xp.concat([odd, xp.zeros_like(even[(*before, slice(-1, None), ...)])], axis=axis)
    return even + odd


def value_range(image: Array, ndim: int) -> float:
    """The range of the values, nearly without the noise; 1 where all are equal.

    It is the range of the means over blocks of four pixels along each of the last ``ndim`` axes, but at least a
    quarter of the range of the values themselves, for images of details alone. Of complex values it is the range
    along the line that fits them best or across it, whichever is larger. It ignores shifts and phases.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.pixels import value_range
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
        if n >= 8:
            whole = maps.slice_of(means, axis, 0, n // 4 * 4)
            means = xp.mean(xp.reshape(whole, (*before, n // 4, 4, *after)), axis=axis + 1)
    return means


def _range(x: Array) -> float:
    xp = namespace(x)
    return float(xp.max(x)) - float(xp.min(x))


def by_numpy(A: Any) -> Any:
    """The same operator on NumPy arrays; None for one of another kind, which may act on tensors alone."""
    if isinstance(A, maps.Stacked | maps.RealInput):
        inside = by_numpy(A.A)
        return None if inside is None else replace(A, A=inside)
    if isinstance(A, Reshaped):
        return Reshaped(as_numpy(A.A), A.input_shape) if is_array(A.A) else None
    if isinstance(A, maps.Sampling):  # of Fourier coefficients too
        return type(A)(as_numpy(A.mask))
    if isinstance(A, maps.Convolution | maps.MirroredConvolution):
        return type(A)(as_numpy(A.kernel), A.input_shape)
    return A if isinstance(A, maps.Identity) else None


def first_image(A: Any, y: Array) -> Array:
    """A constant plus the adjoint of what it leaves of the data, scaled to fit: it follows shifts and units."""
    x = adjoint_product(A, y)
    flat = namespace(x).ones_like(x)
    image = product(A, flat)
    level = _fit(image, y)
    left = y - level * image
    rest = adjoint_product(A, left)
    return level * flat + _fit(product(A, rest), left) * rest


def _fit(image: Array, y: Array) -> complex:
    """The factor by which an image of A comes nearest to the data; a real one for real data."""
    square = inner(image, image) or 1.0
    fit = inner(image, y) / square
    return complex(fit, inner(1j * image, y) / square) if is_complex(image) and is_complex(y) else fit

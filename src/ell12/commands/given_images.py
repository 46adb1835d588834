"""Blurs and masks that are given as files."""

from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands import CommandError
from ell12.commands.image_files import read_image
from ell12.commands.pictures import COLOUR_BY_COLOUR, Index, Picture

# A blur lies on few pixels. If its file is at the edges as bright as half the mean, these pixels (counted as if
# all had the same weight) are at most this many along each axis, else four times as many. Of 21 photographs of
# scikit-image all have more; at 64 x 64 pixels two pass, which are black around. Discs of 129 pixels, Gaussians
# cut off at 1.5 deviations and tracks of shaken cameras have fewer. A box, of one value, is always a blur.
WIDEST, DARK_EDGE = 32, 0.5
SAME_COLOURS = 0.02  # of the brightest value: what JPEG makes of grey


def read_kernels(path: Path) -> list[np.ndarray]:
    """The blur in a file, its sum 1; one for each colour where they differ.

    Zeros around it are cut off, so that the file may be larger than the image.

    Raises
    ------
    CommandError
        If it cannot be read, has no positive sum, or is a photograph.
    """
    picture = read_image(path)
    values = picture.values()
    kernels = [values] if picture.channel_axis is None else list(np.moveaxis(values, picture.channel_axis, 0))
    grey = sum(kernels[1:], kernels[0]) / np.float32(len(kernels))
    if max(np.abs(kernel - grey).max() for kernel in kernels) <= SAME_COLOURS * np.abs(values).max():
        kernels = [grey]
    totals = [kernel.sum(dtype=float) for kernel in kernels]
    if not all(0 < total < np.inf for total in totals):
        raise CommandError(f"{path} is no blur: its values have the sum {min(totals):g}, not one above 0")
    _refuse_photograph(grey, path)
    part = _support(grey)
    return [kernel[part] / kernel.dtype.type(total) for kernel, total in zip(kernels, totals, strict=True)]


def _refuse_photograph(kernel: np.ndarray, path: Path) -> None:
    """Raise if the mass is spread over too many pixels for a blur."""
    count = np.abs(kernel).sum(dtype=float) ** 2 / np.square(kernel, dtype=float).sum()
    inner = kernel[(slice(1, -1),) * kernel.ndim]
    edge = (kernel.sum(dtype=float) - inner.sum(dtype=float)) / (kernel.size - inner.size)
    flat = np.ptp(kernel) == 0  # a box
    bright = edge > DARK_EDGE * kernel.mean(dtype=float) and not flat
    if count > (4 * WIDEST) ** kernel.ndim or (bright and count > WIDEST**kernel.ndim):
        raise CommandError(
            f"{path} is no blur but looks like a photograph: its brightness is spread over {count:.0f} pixels. "
            "A blur is black but for a small part: crop it, or subtract its background"
        )


def _support(kernel: np.ndarray) -> tuple[slice, ...]:
    """Where the kernel is not zero; its centre, entry ``size // 2``, stays the centre.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.commands.given_images import _support
    >>> _support(np.array([0, 0, 0, 1, 2, 0, 0]))
    (slice(2, 5, None),)
    """
    slices = []
    for axis, size in enumerate(kernel.shape):
        others = tuple(k for k in range(kernel.ndim) if k != axis)
        places = np.flatnonzero(np.any(kernel != 0, axis=others))
        reach = int(np.abs(places - size // 2).max())
        slices.append(slice(max(size // 2 - reach, 0), size // 2 + reach + 1))
    return tuple(slices)


def kernel_for(kernels: list[np.ndarray], picture: Picture, index: Index) -> tuple[np.ndarray]:
    """The blur of a part of a picture: that of its colour where the blur has colours."""
    if len(kernels) == 1:
        return (kernels[0],)
    axis = picture.axes.find(COLOUR_BY_COLOUR)
    if axis < 0 or picture.pixels.shape[axis] != len(kernels):
        raise ValueError(f"kernel has {len(kernels)} different colours, which the image has not: save it in grey")
    colour = index[axis]
    assert isinstance(colour, int)
    return (kernels[colour],)


def read_mask(path: Path) -> np.ndarray:
    """The pixels that a file marks: those brighter than half of its brightest, or nonzero in an array."""
    picture = read_image(path)
    mask: Any = picture.values()
    if picture.channel_axis is not None:
        mask = mask.mean(axis=picture.channel_axis)
    return mask != 0 if path.suffix.lower() == ".npy" else mask > 0.5 * mask.max()


def mask_for(mask: np.ndarray, picture: Picture, index: Index) -> tuple[np.ndarray]:
    """The mask of a part of a picture: it may mark one image, or every one of a stack."""
    if mask.shape == picture.pixels.shape:
        return (mask[index],)
    places = list(zip(index, picture.pixels.shape, strict=True))
    if picture.channel_axis is not None:
        del places[picture.channel_axis]
    if mask.shape == tuple(size for _, size in places):
        return (mask[tuple(place for place, _ in places)],)
    return (mask,)

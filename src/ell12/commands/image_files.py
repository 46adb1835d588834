"""Images as files: PNG, JPEG, WebP, BMP, TIFF and NPY; written whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands.pictures import COLOURS, REMEDY, SPACE, ImageFileError, Notes, Picture, check_numbers
from ell12.commands.pillow_files import (
    encode_bmp,
    encode_jpeg,
    encode_picture_as_png,
    encode_webp,
    read_with_pillow,
)
from ell12.commands.tiff_files import encode_tiff, read_tiff
from ell12.files import write_atomically

PNG, JPEG, WEBP, BMP, TIFF, NPY = (".png",), (".jpg", ".jpeg"), (".webp",), (".bmp",), (".tif", ".tiff"), (".npy",)
SUFFIXES = (*PNG, *JPEG, *WEBP, *BMP, *TIFF, *NPY)
LONGEST_SIDE = {JPEG: 65535, WEBP: 16383}  # more pixels the formats cannot count

__all__ = ["SUFFIXES", "ImageFileError", "Notes", "Picture", "check_target", "read_image", "write_image"]


def read_image(path: Path, channel_axis: int | None = None, axes: str = "") -> Picture:
    """The content of a file.

    An axis of NPY and TIFF is one of colours only where the file or the caller says so: ``channel_axis`` names
    one, ``axes`` has a letter for each, and both count more than what the file says.

    Raises
    ------
    ImageFileError
        If the file is missing, cut off, of another kind, or holds no numbers.
    """
    by_pillow = dict.fromkeys((PNG, JPEG, WEBP, BMP), read_with_pillow)
    reader = _choose(path, by_pillow | {TIFF: read_tiff, NPY: _read_npy})
    try:
        picture = reader(path)
    except ImageFileError:
        raise
    except ImportError as error:
        raise ImageFileError(f"{path} needs {error.name}, which cannot be found: {REMEDY}") from error
    except OSError as error:
        reason = error.strerror if error.errno else str(error)
        raise ImageFileError(f"cannot read {path}: {reason}") from error
    except MemoryError as error:
        raise ImageFileError(f"cannot read {path}: it does not fit in memory") from error
    except Exception as error:  # decoders raise what they like on a damaged file
        raise ImageFileError(f"cannot read {path}: {error or type(error).__name__}") from error
    return _with_channels(_with_axes(picture, axes, path), channel_axis, path)


def check_target(path: Path, picture: Picture) -> None:
    """Raise if a picture does not fit in the kind of file that the path names."""
    suffix = _choose(path, {kind: kind for kind in (PNG, JPEG, WEBP, BMP, TIFF, NPY)})
    if suffix is NPY:
        return
    if np.iscomplexobj(picture.pixels):
        raise ImageFileError(f"{path} cannot hold complex numbers: write a .npy file")
    if suffix is TIFF:
        return
    _check_shape(path, picture, suffix)
    if suffix in (JPEG, BMP) and picture.opacity is not None:
        raise ImageFileError(f"{path} cannot hold transparent pixels: write a .png, .webp or .tif file")
    if picture.unit > 1:
        return  # its values are in [0, 1]
    values = picture.values()
    values = values[np.isfinite(values)]  # missing pixels may hold NaN
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ImageFileError(
            f"{path} holds values in [0, 1] only, and the input's are in [{values.min():g}, {values.max():g}]: "
            "scale the input, or write a .npy or .tif file"
        )


def _check_shape(path: Path, picture: Picture, suffix: tuple[str, ...]) -> None:
    """Raise if a picture has more axes, channels or pixels in a row than a kind of photograph."""
    shape = list(picture.pixels.shape)
    n_channels = 1 if picture.channel_axis is None else shape.pop(picture.channel_axis)
    if len(shape) != 2:
        raise ImageFileError(f"{path} cannot hold an array with {len(shape)} axes: write a .npy or .tif file")
    if n_channels not in (1, 3):
        raise ImageFileError(f"{path} cannot hold {n_channels} channels: write a .npy or .tif file")
    if max(shape) > LONGEST_SIDE.get(suffix, max(shape)):
        raise ImageFileError(
            f"{path} cannot hold more than {LONGEST_SIDE[suffix]} pixels in a row: write a .png or .tif file"
        )


def write_image(path: Path, picture: Picture, values: np.ndarray) -> None:
    """Write restored values (as `Picture.values` has them) in the manner of the picture they come from.

    PNG and TIFF keep the picture's 8 or 16 bits. Floating point numbers become 16 bits in PNG and stay in TIFF,
    as other integers do. JPEG, WebP and BMP have 8 bits. NPY keeps the numbers as they are, the opacity as the
    last channel. What the file said besides its pixels is written where the format has a place for it.

    Raises
    ------
    ImageFileError
        If the file cannot be written; what was there before is then still there.
    """
    encoders: dict[tuple[str, ...], Callable[[Picture, np.ndarray], bytes]]
    encoders = {PNG: encode_picture_as_png, JPEG: encode_jpeg, WEBP: encode_webp, BMP: encode_bmp}
    encoders |= {TIFF: encode_tiff, NPY: _encode_npy}
    as_ome = path.name.lower().endswith((".ome.tif", ".ome.tiff"))
    content = encode_tiff(picture, values, as_ome) if as_ome else _choose(path, encoders)(picture, values)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ImageFileError(f"cannot write {path}: {error.strerror or error}") from error


def _choose(path: Path, choices: dict[tuple[str, ...], Any]) -> Any:
    for suffixes, choice in choices.items():
        if path.suffix.lower() in suffixes:
            return choice
    raise ImageFileError(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")


def _with_axes(picture: Picture, axes: str, path: Path) -> Picture:
    """The picture with a letter for each axis as the caller has them."""
    if not axes or axes == picture.letters:
        return picture
    if len(axes) != picture.pixels.ndim:
        shape = "x".join(map(str, picture.pixels.shape))
        raise ImageFileError(f"{path} has {picture.pixels.ndim} axes ({shape}), so they cannot be {axes}")
    if picture.opacity is not None:
        raise ImageFileError(f"{path} has transparent pixels, so its axes are {picture.letters}, not {axes}")
    return replace(picture, axes=axes, channel_axis=axes.index(COLOURS) if COLOURS in axes else None)


def _with_channels(picture: Picture, channel_axis: int | None, path: Path) -> Picture:
    """The picture with an axis of colours, if the caller names one and the file does not."""
    ndim = picture.pixels.ndim
    if channel_axis is None or picture.channel_axis is not None:
        return picture
    if not -ndim <= channel_axis < ndim or ndim < 2:
        raise ImageFileError(f"{path} has {ndim} axes, so channels cannot be axis {channel_axis}")
    axes = list(picture.axes)
    if axes:
        axes[channel_axis] = COLOURS
    if axes and not set(axes) & set(SPACE):
        raise ImageFileError(f"{path} has no axis of space besides axis {channel_axis}")
    return replace(picture, axes="".join(axes), channel_axis=channel_axis % ndim)


def _read_npy(path: Path) -> Picture:
    pixels = np.load(path, allow_pickle=False)
    if not isinstance(pixels, np.ndarray):
        raise ImageFileError(f"cannot read {path}: it holds several arrays; save one as .npy")
    return Picture(check_numbers(pixels, path))


def _encode_npy(picture: Picture, values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, picture.joined(values), allow_pickle=False)
    return file.getvalue()

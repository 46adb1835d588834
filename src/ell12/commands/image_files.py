"""Images as files: PNG, JPEG and TIFF of 8 or 16 bits, grey or colour, and NPY; written whole or not at all.

Pillow reads PNG and JPEG, tifffile TIFF; where Pillow would drop the lower byte of 16-bit colours, both bytes are
read, and `encode_png` writes them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands import CommandError
from ell12.commands.png import encode_png
from ell12.files import write_atomically

PNG, JPEG, TIFF, NPY = (".png",), (".jpg", ".jpeg"), (".tif", ".tiff"), (".npy",)
SUFFIXES = (*PNG, *JPEG, *TIFF, *NPY)
JPEG_QUALITY = 95
REMEDY = "pip install 'ell12[images]'"


class ImageFileError(CommandError):
    """What is wrong with a file, its name included."""


@dataclass(frozen=True)
class Picture:
    """The content of an image file.

    Attributes
    ----------
    pixels : array
        As stored (unsigned integers, or any numbers from NPY and TIFF), upright, without the opacity.
    channel_axis : int or None
        The axis of the colours; None where every axis is one of space.
    opacity : array or None
        The opacity (alpha channel) of each pixel.
    profile : bytes or None
        The colour profile (ICC).
    """

    pixels: np.ndarray
    channel_axis: int | None = None
    opacity: np.ndarray | None = None
    profile: bytes | None = None

    def values(self) -> np.ndarray:
        """The pixels as floating point numbers; 8 and 16 bits become float32 in [0, 1].

        Examples
        --------
        >>> Picture(np.array([[0, 255]], dtype=np.uint8)).values()
        array([[0., 1.]], dtype=float32)
        """
        return _as_fractions(self.pixels)

    def joined(self, pixels: np.ndarray) -> np.ndarray:
        """Other pixels, in [0, 1], with this picture's opacity as the last channel."""
        if self.opacity is None:
            return pixels
        colours = pixels[..., None] if self.channel_axis is None else pixels
        return np.concatenate([colours, _as_fractions(self.opacity)[..., None].astype(pixels.dtype)], axis=-1)


def read_image(path: Path, channel_axis: int | None = None) -> Picture:
    """The content of a file; an axis of NPY and TIFF is one of colours only where the file or the caller says so.

    Raises
    ------
    ImageFileError
        If the file is missing, cut off, of another kind, or holds no numbers.
    """
    reader = _choose(path, {PNG: _read_with_pillow, JPEG: _read_with_pillow, TIFF: _read_tiff, NPY: _read_npy})
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
    return _with_channels(picture, channel_axis, path)


def check_target(path: Path, picture: Picture) -> None:
    """Raise if a picture does not fit in the kind of file that the path names."""
    suffix = _choose(path, {kind: kind for kind in (PNG, JPEG, TIFF, NPY)})
    if suffix is NPY:
        return
    pixels = picture.pixels
    if np.iscomplexobj(pixels):
        raise ImageFileError(f"{path} cannot hold complex numbers: write a .npy file")
    if suffix is TIFF:
        return
    spatial = pixels.ndim - (picture.channel_axis is not None)
    if spatial != 2:
        raise ImageFileError(f"{path} cannot hold an array with {spatial} axes: write a .npy or .tif file")
    if picture.channel_axis is not None and pixels.shape[picture.channel_axis] not in (1, 3):
        n_channels = pixels.shape[picture.channel_axis]
        raise ImageFileError(f"{path} cannot hold {n_channels} channels: write a .npy or .tif file")
    if suffix is JPEG and picture.opacity is not None:
        raise ImageFileError(f"{path} cannot hold transparent pixels: write a .png or .tif file")
    values = picture.values()
    values = values[np.isfinite(values)]  # missing pixels may hold NaN
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ImageFileError(
            f"{path} holds values in [0, 1] only, and the input's are in [{values.min():g}, {values.max():g}]: "
            "scale the input, or write a .npy or .tif file"
        )


def write_image(path: Path, picture: Picture, values: np.ndarray) -> None:
    """Write restored values (as `Picture.values` has them) in the manner of the picture they come from.

    PNG and TIFF keep the picture's 8 or 16 bits. Floating point numbers become 16 bits in PNG and stay in TIFF.
    JPEG has 8 bits. NPY keeps the numbers as they are, the opacity as the last channel.

    Raises
    ------
    ImageFileError
        If the file cannot be written; what was there before is then still there.
    """
    encode: Callable[[Picture, np.ndarray], bytes]
    encode = _choose(path, {PNG: _encode_png, JPEG: _encode_jpeg, TIFF: _encode_tiff, NPY: _encode_npy})
    content = encode(picture, values)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ImageFileError(f"cannot write {path}: {error.strerror or error}") from error


def _choose(path: Path, choices: dict[tuple[str, ...], Any]) -> Any:
    for suffixes, choice in choices.items():
        if path.suffix.lower() in suffixes:
            return choice
    raise ImageFileError(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")


def _with_channels(picture: Picture, channel_axis: int | None, path: Path) -> Picture:
    if channel_axis is None or picture.channel_axis is not None:
        return picture
    if not -picture.pixels.ndim <= channel_axis < picture.pixels.ndim or picture.pixels.ndim < 2:
        raise ImageFileError(f"{path} has {picture.pixels.ndim} axes, so channels cannot be axis {channel_axis}")
    return Picture(np.moveaxis(picture.pixels, channel_axis, -1), -1, picture.opacity, picture.profile)


def _as_fractions(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype in (np.uint8, np.uint16):
        return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return pixels.astype(np.float32) if pixels.dtype in (np.bool_, np.float16) else pixels


# Reading


def _read_npy(path: Path) -> Picture:
    pixels = np.load(path, allow_pickle=False)
    if not isinstance(pixels, np.ndarray):
        raise ImageFileError(f"cannot read {path}: it holds several arrays; save one as .npy")
    return Picture(_checked(pixels, path))


def _checked(pixels: np.ndarray, path: Path) -> np.ndarray:
    """The pixels in the byte order of this machine, if it is plain what their numbers mean."""
    if not (pixels.dtype.kind in "bfc" or pixels.dtype in (np.uint8, np.uint16)):
        raise ImageFileError(
            f"cannot read {path}: it holds {pixels.dtype}; save 8 or 16 bits (uint8, uint16) or floating point"
        )
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _read_with_pillow(path: Path) -> Picture:
    from PIL import Image, ImageOps, UnidentifiedImageError

    content = path.read_bytes()
    try:
        opened = Image.open(io.BytesIO(content))
    except UnidentifiedImageError:
        raise ImageFileError(f"cannot read {path}: it is no image of a known kind") from None
    with opened as image:
        n_frames = getattr(image, "n_frames", 1)
        if image.format == "PNG" and n_frames > 1:
            raise ImageFileError(f"cannot read {path}: it holds {n_frames} frames, not one image")
        profile = image.info.get("icc_profile")
        raw = image.tile[0][3] if image.format == "PNG" and image.tile else ""
        if isinstance(raw, str) and raw.endswith(";16B"):
            pixels, key = _sixteen_bits(content, raw), image.info.get("transparency")
        else:
            upright = ImageOps.exif_transpose(image)
            pixels, key = _checked(np.asarray(_plain_mode(upright)), path), None
    return _split_opacity(pixels, key, profile)


def _plain_mode(image: Any) -> Any:
    """The image as grey or colours of 8 bits, or grey of 16, with opacity where a pixel may be transparent."""
    if image.mode.startswith("I;16"):
        return image
    if image.mode in ("L", "RGB", "LA", "RGBA") and "transparency" not in image.info:
        return image
    grey = image.mode in ("1", "L", "LA")
    opaque = image.mode not in ("LA", "PA", "RGBA", "RGBa", "La") and "transparency" not in image.info
    return image.convert(("L" if grey else "RGB") + ("" if opaque else "A"))


def _sixteen_bits(content: bytes, raw: str) -> np.ndarray:
    """The pixels of a PNG with 16 bits: Pillow keeps one byte of a colour, which one depends on the byte order."""
    if raw == "I;16B":
        return _decode(content, None).astype(np.uint16)
    if raw == "LA;16B":  # four bytes, as those of red, green, blue and opacity
        return np.ascontiguousarray(_decode(content, "RGBA")).view(">u2").astype(np.uint16)
    high, low = (_decode(content, raw[:-1] + order).astype(np.uint16) for order in "BL")
    return 256 * high + low


def _decode(content: bytes, raw: str | None) -> np.ndarray:
    from PIL import Image

    image: Any
    with Image.open(io.BytesIO(content)) as image:
        if raw is not None:
            image.tile = [(*tile[:3], raw) for tile in image.tile]
        return np.asarray(image)


def _split_opacity(pixels: np.ndarray, key: Any, profile: bytes | None) -> Picture:
    """Colours and opacity; ``key`` is the one colour that a PNG may declare transparent."""
    n_channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    opacity = None
    if n_channels in (2, 4):
        pixels, opacity = pixels[..., :-1], pixels[..., -1]
        pixels = pixels[..., 0] if n_channels == 2 else pixels
    elif key is not None:
        seen = pixels != key if pixels.ndim == 2 else np.any(pixels != np.asarray(key), axis=-1)
        opacity = seen.astype(pixels.dtype) * np.iinfo(pixels.dtype).max
    return Picture(pixels, None if pixels.ndim == 2 else -1, opacity, profile)


def _read_tiff(path: Path) -> Picture:
    import tifffile

    file: Any
    with tifffile.TiffFile(path) as file:
        if len(file.series) != 1:
            raise ImageFileError(f"cannot read {path}: it holds {len(file.series)} images of different kinds")
        page, series = file.pages.first, file.series[0]
        orientation = page.tags.get("Orientation")
        upright = orientation is None or orientation.value == 1
        if (_is_packed(page) or not upright) and len(file.pages) == 1 and _is_whole_to_pillow(page):
            return _read_with_pillow(path)
        if not upright:
            raise ImageFileError(f"cannot read {path}: it is stored turned or mirrored; save it upright")
        if series.keyframe.photometric not in (1, 2):
            raise ImageFileError(f"cannot read {path}: its colours are {page.photometric.name}, not grey or RGB")
        return _tiff_picture(_checked(series.asarray(), path), series.axes, page)


def _is_packed(page: Any) -> bool:
    """Whether tifffile may be unable to unpack a page, or Pillow must convert its colours."""
    return page.compression not in (1, 8, 32946) or page.photometric not in (1, 2) or page.bitspersample < 8


def _is_whole_to_pillow(page: Any) -> bool:
    """Whether Pillow keeps every bit of a page."""
    return page.bitspersample in (1, 8) or (page.bitspersample == 16 and page.samplesperpixel == 1)


def _tiff_picture(pixels: np.ndarray, axes: str, page: Any) -> Picture:
    """The axis S holds a pixel's samples: colours, and opacity where the file says so."""
    if "S" not in axes:
        return Picture(pixels, None, None, page.iccprofile)
    pixels = np.moveaxis(pixels, axes.index("S"), -1)
    opacity = None
    if page.extrasamples and page.extrasamples[-1] in (1, 2):
        associated = page.extrasamples[-1] == 1
        pixels, opacity = pixels[..., :-1], pixels[..., -1]
        pixels = _undimmed(pixels, opacity) if associated else pixels
    if pixels.shape[-1] == 1:
        return Picture(pixels[..., 0], None, opacity, page.iccprofile)
    return Picture(pixels, -1, opacity, page.iccprofile)


def _undimmed(pixels: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    """The colours of a TIFF that stores them multiplied by their opacity; black where the opacity is 0."""
    full = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1
    share = np.where(opacity > 0, opacity, full)[..., None] / full
    colours = np.minimum(pixels / share, full)
    return (np.rint(colours) if pixels.dtype.kind == "u" else colours).astype(pixels.dtype)


# Writing


def _encode_npy(picture: Picture, values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, picture.joined(values), allow_pickle=False)
    return file.getvalue()


def _encode_png(picture: Picture, values: np.ndarray) -> bytes:
    bits = np.uint8 if picture.pixels.dtype in (np.uint8, np.bool_) else np.uint16
    return encode_png(_rounded(picture.joined(values), bits), picture.profile)


def _encode_jpeg(picture: Picture, values: np.ndarray) -> bytes:
    from PIL import Image

    pixels = _rounded(values, np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
    image.save(file, "JPEG", quality=JPEG_QUALITY, subsampling=0, icc_profile=picture.profile)
    return file.getvalue()


def _encode_tiff(picture: Picture, values: np.ndarray) -> bytes:
    import tifffile

    stored = picture.pixels.dtype
    pixels = picture.joined(values)
    pixels = _rounded(pixels, stored.type) if stored in (np.uint8, np.uint16) else pixels
    coloured = picture.channel_axis is not None and values.shape[-1] == 3
    file = io.BytesIO()
    tifffile.imwrite(
        file,
        pixels,
        photometric="rgb" if coloured else "minisblack",
        planarconfig="contig" if pixels.ndim > values.ndim or picture.channel_axis is not None else None,
        extrasamples=None if picture.opacity is None else ["unassalpha"],
        compression="zlib",
        iccprofile=picture.profile,
        metadata=None,
    )
    return file.getvalue()


def _rounded(values: np.ndarray, kind: Any) -> np.ndarray:
    """The nearest integers of 8 or 16 bits to values in [0, 1]; those outside are clipped."""
    return np.rint(np.clip(values, 0, 1) * np.iinfo(kind).max).astype(kind)

"""Image files as arrays and back, by Pillow, tifffile, imagecodecs and NumPy: 16 bits stay 16 bits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PHOTOGRAPHS = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
SUFFIXES = (*PHOTOGRAPHS, ".tif", ".tiff", ".npy")
SPACE, COLOURS = "ZYX", "S"  # letters of axes as TIFF files have them
MOST_BYTES = 2**32  # that a TIFF may unpack to, or four times its size
SIXTEEN = (24, 16)  # the byte of a PNG that holds the bits of a channel, and its value


@dataclass(frozen=True)
class Picture:
    """The content of an image file.

    Attributes
    ----------
    pixels : array
        As stored, upright, colours last, without opacity.
    axes : str
        A letter for each axis: Z, Y, X are space, S colours; images along any other axis are separate.
    opacity : array or None
        The opacity (alpha channel) of each pixel.
    notes : dict
        What Pillow writes again: EXIF, colour profile, resolution.
    """

    pixels: np.ndarray
    axes: str
    opacity: np.ndarray | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def channel_axis(self) -> int | None:
        """The axis of the colours in each part."""
        return -1 if COLOURS in self.axes else None

    @property
    def values(self) -> np.ndarray:
        """The pixels as floating point numbers; 8 and 16 bits become float32 in [0, 1]."""
        return _values(self.pixels)

    def grey(self) -> np.ndarray:
        """The values, averaged over colours."""
        return self.values.mean(axis=-1) if COLOURS in self.axes else self.values

    @property
    def _order(self) -> list[int]:
        """The axes of separate images first, then those of space and colours."""
        return sorted(range(len(self.axes)), key=lambda k: self.axes[k] in SPACE + COLOURS)

    def parts(self) -> Iterator[np.ndarray]:
        """The values of each separate image."""
        values = self.values.transpose(self._order)
        n_separate = sum(letter not in SPACE + COLOURS for letter in self.axes)
        yield from values.reshape(-1, *values.shape[n_separate:])

    def joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The values of all separate images as one array, its axes in the order of the file."""
        shape = [self.pixels.shape[k] for k in self._order]
        return np.stack(parts).reshape(shape).transpose(np.argsort(self._order))


def _values(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype in (np.uint8, np.uint16):
        return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return pixels if pixels.dtype.kind in "fc" and pixels.itemsize > 2 else pixels.astype(float)


def _stored(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Values as numbers of the kind that a file has."""
    if kind.kind not in "iu":
        return values
    limits = np.iinfo(kind)
    scale = limits.max if kind in (np.uint8, np.uint16) else 1
    return np.rint(np.clip(values * scale, limits.min, limits.max)).astype(kind)


def read_picture(path: Path, axes: str = "") -> Picture:
    """The content of a file; ``axes`` counts more than what the file says."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} has an unknown suffix; known are {' '.join(SUFFIXES)}")
    if suffix in PHOTOGRAPHS:
        return _read_photograph(path)
    pixels, found, opacity = _read_tiff(path) if suffix != ".npy" else _read_npy(path)
    axes = axes.upper() or found
    if len(axes) != pixels.ndim or len(set(axes)) < len(axes) or not set(axes) & set(SPACE):
        raise ValueError(
            f"its {pixels.ndim} axes {pixels.shape} cannot be {axes!r}: say what they are with --axes"
        )
    if not (pixels.dtype.kind in "bfiu" and pixels.itemsize <= 8):
        raise ValueError(f"it holds {pixels.dtype}, not real numbers")
    if COLOURS in axes:
        axes, pixels = axes.replace(COLOURS, "") + COLOURS, np.moveaxis(pixels, axes.index(COLOURS), -1)
    return Picture(pixels, axes, opacity)


def _read_npy(path: Path) -> tuple[np.ndarray, str, None]:
    pixels = np.load(path, allow_pickle=False)
    return pixels, SPACE[-pixels.ndim :] if 0 < pixels.ndim <= len(SPACE) else "", None


def _read_tiff(path: Path) -> tuple[np.ndarray, str, np.ndarray | None]:
    """Pixels, axes and opacity; pages of a file that says nothing of its axes are separate images."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        page: Any = file.pages[0]
        series = file.series[0]
        if len(file.series) > 1:
            raise ValueError(f"it holds {len(file.series)} images of different kinds")
        if series.nbytes > max(MOST_BYTES, 4 * path.stat().st_size):
            raise ValueError(f"it unpacks to {series.nbytes:,} bytes")
        if page.photometric.name not in ("MINISBLACK", "RGB"):
            raise ValueError(f"its colours are {page.photometric.name}, not grey or RGB")
        if "Orientation" in page.tags and page.tags["Orientation"].value != 1:
            raise ValueError("it is stored turned or mirrored: save it upright")
        pixels, axes, opacity = series.asarray(), series.axes, None
        if COLOURS in axes and page.extrasamples:
            pixels, axes = np.moveaxis(pixels, axes.index(COLOURS), -1), axes.replace(COLOURS, "") + COLOURS
            pixels, opacity = pixels[..., :-1], pixels[..., -1]
            if pixels.shape[-1] == 1:
                pixels, axes = pixels[..., 0], axes[:-1]
        return pixels, axes, opacity


def _read_photograph(path: Path) -> Picture:
    """A file that Pillow knows. More pixels than `PIL.Image.MAX_IMAGE_PIXELS` are an error."""
    from PIL import Image, ImageOps

    image: Any
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            if image.format in ("PNG", "WEBP") and getattr(image, "n_frames", 1) > 1:
                raise ValueError(f"it holds {image.n_frames} frames, not one image")
            if image.format == "PNG" and path.read_bytes()[SIXTEEN[0]] == SIXTEEN[1]:
                import imagecodecs  # Pillow keeps 8 bits of colours

                pixels, notes = imagecodecs.png_decode(path.read_bytes()), {}
            else:
                upright = ImageOps.exif_transpose(image)
                names = ("icc_profile", "dpi") if image.mode != "CMYK" else ("dpi",)
                notes = {name: image.info[name] for name in names if name in image.info}
                notes["exif"] = upright.getexif().tobytes()
                pixels = np.asarray(upright.convert(_plain_mode(upright)))
    opacity = None
    if pixels.ndim == 3 and pixels.shape[-1] in (2, 4):
        pixels, opacity = pixels[..., :-1], pixels[..., -1]
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    return Picture(pixels, "YXS" if pixels.ndim == 3 else "YX", opacity, notes)


def _plain_mode(image: Any) -> str:
    """Grey or colours of 8 bits, with opacity where a pixel may be transparent."""
    grey = image.mode in ("1", "L", "LA")
    return ("L" if grey else "RGB") + ("A" if image.has_transparency_data else "")


def check_target(path: Path, picture: Picture) -> None:
    """Raise if a picture does not fit in the kind of file that the path names."""
    if path.suffix.lower() not in PHOTOGRAPHS:
        return
    if picture.axes not in ("YX", "YXS") or picture.pixels.shape[2:] not in ((), (3,)):
        shape = "x".join(map(str, picture.pixels.shape))
        raise ValueError(f"{path} cannot hold an array of {shape}: write a .tif or .npy file")
    if picture.opacity is not None and path.suffix.lower() in (".jpg", ".jpeg", ".bmp"):
        raise ValueError(f"{path} cannot hold transparent pixels: write a .png, .webp or .tif file")
    values = picture.values[np.isfinite(picture.values)]  # missing pixels may be NaN
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"{path} holds values in [0, 1], the input has others: write a .tif or .npy file")


def write_picture(path: Path, picture: Picture, values: np.ndarray) -> None:
    """Write restored values in the manner of the picture they come from.

    PNG and TIFF keep 8 or 16 bits; floating point numbers become 16 bits in PNG and stay in TIFF. JPEG, WebP
    (lossless) and BMP have 8 bits. NPY keeps floating point numbers.
    """
    suffix, kind = path.suffix.lower(), picture.pixels.dtype
    if suffix in PHOTOGRAPHS:
        kind = np.dtype(np.uint16 if suffix == ".png" and kind not in (np.uint8, bool) else np.uint8)
    pixels = values if suffix == ".npy" else _stored(values, kind)
    if picture.opacity is not None:
        opacity = _values(picture.opacity).astype(values.dtype)
        opacity = opacity if suffix == ".npy" else _stored(opacity, kind)
        pixels = np.concatenate([pixels if COLOURS in picture.axes else pixels[..., None], opacity[..., None]], -1)
    with replacing(path) as temporary:
        if suffix == ".npy":
            np.save(temporary, pixels, allow_pickle=False)
        elif suffix in (".tif", ".tiff"):
            _write_tiff(temporary, picture, pixels)
        elif pixels.dtype == np.uint16:
            import imagecodecs

            temporary.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(pixels)))
        else:
            from PIL import Image

            lossless = {
                "quality": 95,
                "subsampling": 0,
                "lossless": True,
                "exact": True,
            }  # each format takes its own
            Image.fromarray(pixels).save(temporary, **picture.notes | lossless)


def _write_tiff(path: Path, picture: Picture, pixels: np.ndarray) -> None:
    import tifffile

    axes = picture.axes + ("" if picture.opacity is None or COLOURS in picture.axes else COLOURS)
    coloured = COLOURS in picture.axes and picture.pixels.shape[-1] == 3
    tifffile.imwrite(
        path,
        pixels,
        photometric="rgb" if coloured else "minisblack",
        planarconfig="contig" if COLOURS in axes else None,
        extrasamples=None if picture.opacity is None else ["unassalpha"],
        compression="zlib",
        metadata={"axes": axes},
        iccprofile=picture.notes.get("icc_profile"),
    )


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder, which becomes the path once it is written."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

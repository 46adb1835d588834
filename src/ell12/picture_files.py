"""Image files as arrays and back, by Pillow, tifffile, imagecodecs and NumPy: 16 bits stay 16 bits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PHOTOGRAPHS = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
SUFFIXES = (*PHOTOGRAPHS, ".tif", ".tiff", ".npy")
SPACE, SAMPLES = "ZYX", "S"  # letters of axes as TIFF files have them
# A TIFF that unpacks to more than 4 GB and more than four times its size is refused: a small file could fill the
# memory. Compressed photographs and stacks of microscopes stay far below.
MOST_BYTES = 2**32


@dataclass(frozen=True)
class Picture:
    """The content of an image file.

    Attributes
    ----------
    pixels : array
        As stored, upright, with colours and opacity along the last axis.
    axes : str
        A letter for each axis: Z, Y, X are space, S is colours and opacity; images along any other are separate.
    has_opacity : bool
        Whether the last number of each pixel is its opacity.
    notes : dict
        What Pillow writes again: EXIF, colour profile, resolution.
    """

    pixels: np.ndarray
    axes: str
    has_opacity: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def has_colours(self) -> bool:
        """Whether a pixel has more than one number next to its opacity."""
        return SAMPLES in self.axes and self.pixels.shape[-1] > 1 + self.has_opacity

    @property
    def values(self) -> np.ndarray:
        """The pixels without opacity as floating point numbers; 8 and 16 bits become float32 in [0, 1]."""
        values = as_values(self.pixels[..., :-1] if self.has_opacity else self.pixels)
        return values if self.has_colours or SAMPLES not in self.axes else values[..., 0]

    def grey(self) -> np.ndarray:
        """The values, averaged over colours."""
        return self.values.mean(axis=-1) if self.has_colours else self.values


def as_values(pixels: np.ndarray) -> np.ndarray:
    """Pixels as floating point numbers."""
    if pixels.dtype in (np.uint8, np.uint16):
        return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return pixels if pixels.dtype.kind == "f" and pixels.itemsize > 2 else pixels.astype(float)


def as_stored(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Values as numbers of the type that a file has."""
    if kind.kind not in "iu":
        return values
    limits = np.iinfo(kind)
    scale = limits.max if kind in (np.uint8, np.uint16) else 1
    return np.rint(np.clip(values * scale, limits.min, limits.max)).astype(kind)


def read_picture(path: Path, axes: str = "") -> Picture:
    """The content of a file; ``axes`` replaces what a TIFF or array says of its axes."""
    if path.suffix.lower() in PHOTOGRAPHS:
        return _read_photograph(path)
    if path.suffix.lower() == ".npy":
        pixels, has_opacity = np.load(path, allow_pickle=False), False
        found = SPACE[-pixels.ndim :]
    else:
        pixels, found, has_opacity = _read_tiff(path)
    axes = axes.upper() or found
    if len(axes) != pixels.ndim or len(set(axes)) < len(axes) or not set(axes) & set(SPACE):
        raise ValueError(f"its {pixels.ndim} axes {pixels.shape} cannot be {axes!r}: name them with --axes")
    if not (pixels.dtype.kind in "bfiu" and pixels.itemsize <= 8):
        raise ValueError(f"it holds {pixels.dtype}, not real numbers")
    if SAMPLES in axes:
        axes, pixels = axes.replace(SAMPLES, "") + SAMPLES, np.moveaxis(pixels, axes.index(SAMPLES), -1)
    return Picture(pixels, axes, has_opacity)


def _read_tiff(path: Path) -> tuple[np.ndarray, str, bool]:
    """Pixels, axes and whether there is opacity; pages of a file that names no axes are separate images."""
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
        return series.asarray(), series.axes, SAMPLES in series.axes and bool(page.extrasamples)


def _read_photograph(path: Path) -> Picture:
    """A file that Pillow knows. More pixels than `PIL.Image.MAX_IMAGE_PIXELS` are an error."""
    from PIL import Image, ImageOps

    notes: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            if image.format in ("PNG", "WEBP") and getattr(image, "n_frames", 1) > 1:
                raise ValueError("it holds several frames, not one image")
            if image.format == "PNG" and "16" in str(image.tile[0][3]):  # Pillow reads 8 bits of these colours
                import imagecodecs

                pixels = imagecodecs.png_decode(path.read_bytes())
            else:
                upright: Any = ImageOps.exif_transpose(image)
                notes = {"exif": upright.getexif().tobytes()}
                kept = ("dpi",) if image.mode == "CMYK" else ("dpi", "icc_profile")
                notes |= {name: image.info[name] for name in kept if name in image.info}
                mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
                pixels = np.asarray(upright.convert(mode + "A" * upright.has_transparency_data))
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    return Picture(pixels, "YXS"[: pixels.ndim], pixels.ndim == 3 and pixels.shape[-1] != 3, notes)


def check_target(path: Path, picture: Picture) -> None:
    """Raise if a picture does not fit in the kind of file that the path names."""
    if path.suffix.lower() not in PHOTOGRAPHS:
        return
    values = picture.values
    if picture.axes not in ("YX", "YXS") or values.shape[2:] not in ((), (3,)):
        shape = "x".join(map(str, picture.pixels.shape))
        raise ValueError(f"{path} cannot hold an array of {shape}: write a .tif or .npy file")
    if np.any((values < 0) | (values > 1)):  # missing pixels may be NaN
        raise ValueError(f"{path} holds values in [0, 1], the input has others: write a .tif or .npy file")


def write_picture(path: Path, picture: Picture, values: np.ndarray) -> None:
    """Write restored values in the manner of the picture they come from.

    PNG and TIFF keep 8 or 16 bits; floating point numbers become 16 bits in PNG and stay in TIFF. JPEG, WebP
    (lossless) and BMP have 8 bits. NPY keeps floating point numbers.
    """
    suffix, kind = path.suffix.lower(), picture.pixels.dtype
    if picture.has_opacity:
        opacity = as_values(picture.pixels[..., -1:]).astype(values.dtype)
        values = np.concatenate([values if picture.has_colours else values[..., None], opacity], axis=-1)
    if suffix == ".npy":
        kind = values.dtype
    elif suffix in PHOTOGRAPHS:
        kind = np.dtype(np.uint16 if suffix == ".png" and kind not in (np.uint8, bool) else np.uint8)
    with replacing(path) as temporary:
        _write_pixels(temporary, picture, as_stored(values, kind))


def _write_pixels(path: Path, picture: Picture, pixels: np.ndarray) -> None:
    """Write numbers of the type that they are to have in the file."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        np.save(path, pixels, allow_pickle=False)
    elif suffix in (".tif", ".tiff"):
        import tifffile

        is_rgb = picture.has_colours and picture.pixels.shape[-1] == 3 + picture.has_opacity
        options: dict[str, Any] = {"planarconfig": "contig"} if SAMPLES in picture.axes else {}
        options |= {"extrasamples": ["unassalpha"]} if picture.has_opacity else {}
        options |= {"photometric": "rgb" if is_rgb else "minisblack", "metadata": {"axes": picture.axes}}
        tifffile.imwrite(path, pixels, compression="zlib", **options)
    elif pixels.dtype == np.uint16:
        import imagecodecs

        path.write_bytes(imagecodecs.png_encode(np.ascontiguousarray(pixels)))
    else:
        from PIL import Image

        options = {"quality": 95, "subsampling": 0, "lossless": True, "exact": True}
        Image.fromarray(pixels).save(path, **picture.notes | options)  # each format takes its own of them


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder, which becomes the path once it is written."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

"""TIFF files, those of microscopes (OME-TIFF) and of ImageJ included, with their axes and what else they say."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands.exif import (
    DESCRIPTION,
    SOFTWARE,
    exif_of_tiff,
    place_holders,
    tags_of_exif,
    tiff_tag,
    upright,
    upright_xmp,
    with_lists,
)
from ell12.commands.ome import description_of, spacing_of
from ell12.commands.pictures import COLOURS, ImageFileError, Notes, Picture, check_numbers
from ell12.commands.pillow_files import read_with_pillow

XMP, INCH, CENTIMETRE = 700, 2, 3
STRUCTURES = ("imagej=", "scifio=", "<?xml", "<ome", '{"shape"')  # descriptions of how pages are stored
CLASSIC = 42  # the third byte of a TIFF with places of four bytes, up to 4 GB; in larger ones lists are left out
OWN_AXES = "ZYXCTSA"  # letters that say what an axis is; I and Q only count pages


def read_tiff(path: Path) -> Picture:
    """The content of a TIFF file.

    Pages of a file that says nothing of its axes are separate images: to take them for a volume would blur one
    into the other, the opposite mistake only forgoes something.
    """
    import tifffile

    file: Any
    with tifffile.TiffFile(path) as file:
        if len(file.series) != 1:
            raise ImageFileError(f"cannot read {path}: it holds {len(file.series)} images of different kinds")
        page, series = file.pages.first, file.series[0]
        if any(frame is None for frame in series):
            raise ImageFileError(f"cannot read {path}: some of its planes are in files that are not there")
        plain = series.keyframe.photometric in (1, 2) and page.bitspersample >= 8
        packed = page.compression not in (1, 8, 32946)  # tifffile may be unable to unpack it
        by_pillow = (packed or not plain) and _is_whole_to_pillow(page)
        if by_pillow and len(file.pages) == 1 and series.kind not in ("ome", "imagej"):
            return read_with_pillow(path)
        if not plain:
            raise ImageFileError(f"cannot read {path}: its colours are {page.photometric.name}, not grey or RGB")
        notes, spacing = _notes(file, series)
        if by_pillow and not page.extrasamples:
            axes, pixels, orientation = _unpacked(series, path)
        else:
            axes, pixels, orientation = series.axes, series.asarray(), _tag(page, 274, 1)
        axes, pixels = _upright(*_colours_last(axes, check_numbers(pixels, path)), orientation)
        return _tiff_picture(pixels, axes, page, notes, spacing)


def _unpacked(series: Any, path: Path) -> tuple[str, np.ndarray, int]:
    """Axes, pixels and their orientation by Pillow, page by page; newer versions turn pages upright."""
    from PIL import Image

    image: Any
    pages: list[np.ndarray] = []
    with Image.open(path) as image:
        for frame in series:
            image.seek(frame.index)
            pages.append(np.array(image))
        orientation = image.getexif().get(274, 1)
    n_leading = len(series.shape) - pages[0].ndim
    axes = series.axes[:n_leading] + ("YX" if pages[0].ndim == 2 else "YXS")
    return axes, np.stack(pages).reshape(*series.shape[:n_leading], *pages[0].shape), orientation


def _is_whole_to_pillow(page: Any) -> bool:
    """Whether Pillow keeps every bit of a page."""
    grey = page.samplesperpixel == 1 and page.bitspersample in (16, 32)
    return page.bitspersample in (1, 8) or (grey and page.dtype in (np.uint16, np.float32))


def _upright(axes: str, pixels: np.ndarray, orientation: int) -> tuple[str, np.ndarray]:
    """The pixels turned and mirrored along rows and columns, wherever these axes are."""
    if orientation == 1:
        return axes, pixels
    places = (axes.index("Y"), axes.index("X"))
    return axes, np.moveaxis(upright(np.moveaxis(pixels, places, (0, 1)), orientation), (0, 1), places)


def _tiff_picture(pixels: np.ndarray, axes: str, page: Any, notes: Notes, spacing: Mapping[str, float]) -> Picture:
    """The axis S holds a pixel's samples: colours, and opacity where the file says so."""
    if notes.imagej:  # which has one order of axes when it is written
        order = sorted(range(len(axes)), key=lambda k: "ITZCYXS".index(axes[k]))
        axes, pixels = "".join(axes[k] for k in order), np.transpose(pixels, order)
    opacity = None
    if COLOURS in axes and page.extrasamples and page.extrasamples[-1] in (1, 2):
        associated = page.extrasamples[-1] == 1
        pixels, opacity = pixels[..., :-1], pixels[..., -1]
        pixels = _undimmed(pixels, opacity) if associated else pixels
    if COLOURS in axes and pixels.shape[-1] == 1:
        axes, pixels = axes[:-1], pixels[..., 0]
    notes = replace(notes, axes=axes)
    channel_axis = -1 if COLOURS in axes else None
    return Picture(pixels, channel_axis, opacity, page.iccprofile, axes, spacing, notes)


def _colours_last(axes: str, pixels: np.ndarray) -> tuple[str, np.ndarray]:
    if COLOURS not in axes:
        return axes, pixels
    return axes.replace(COLOURS, "") + COLOURS, np.moveaxis(pixels, axes.index(COLOURS), -1)


def _undimmed(pixels: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    """The colours of a TIFF that stores them multiplied by their opacity; black where the opacity is 0."""
    full = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1
    share = np.where(opacity > 0, opacity, full)[..., None] / full
    colours = np.minimum(pixels / share, full)
    return (np.rint(colours) if pixels.dtype.kind == "u" else colours).astype(pixels.dtype)


def _notes(file: Any, series: Any) -> tuple[Notes, dict[str, float]]:
    """What the file says besides its pixels, and the distances between their centres."""
    page = file.pages.first
    if series.kind == "ome":
        return Notes(ome=file.ome_metadata), spacing_of(file.ome_metadata)
    if series.kind == "imagej":
        described = {key: value for key, value in file.imagej_metadata.items() if key != "order"}
        return Notes(imagej=described), _imagej_spacing(page, described)
    orientation, unit = _tag(page, 274, 1), {INCH: 1.0, CENTIMETRE: 2.54}.get(int(_tag(page, 296, INCH)))
    across, down = ((unit or 0.0) * _ratio(_tag(page, code, (0, 1))) for code in (282, 283))
    dpi = (down, across) if orientation >= 5 else (across, down)
    exif = b"" if file.is_bigtiff or file.is_shaped else exif_of_tiff(file.filehandle)
    xmp = upright_xmp(_tag(page, XMP, b""), orientation)
    return Notes(exif, xmp, dpi if across > 0 and down > 0 else None), {}


def _tag(page: Any, code: int, otherwise: Any) -> Any:
    tag = page.tags.get(code)
    return otherwise if tag is None else tag.value


def _ratio(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1] if pair[1] else 0.0


def _imagej_spacing(page: Any, described: Mapping[str, Any]) -> dict[str, float]:
    """Pixels per unit along rows and columns, and the distance of slices in that unit."""
    found = {"X": _ratio(_tag(page, 282, (0, 1))), "Y": _ratio(_tag(page, 283, (0, 1)))}
    spacing = {axis: 1 / density for axis, density in found.items() if density > 0}
    depth = described.get("spacing")
    return spacing | ({"Z": float(depth)} if isinstance(depth, int | float) and depth > 0 else {})


# Writing


def encode_tiff(picture: Picture, values: np.ndarray, as_ome: bool = False) -> bytes:
    """A TIFF with the numbers, axes and notes that the picture's file had; ``as_ome`` makes it an OME-TIFF."""
    notes = picture.notes
    axes = notes.axes if notes.ome or notes.imagej else picture.letters
    pixels = picture.stored(picture.joined(values))
    if picture.opacity is None:
        axes, pixels = _colours_last(axes, pixels)
    else:
        axes = axes if COLOURS in axes else axes + COLOURS
    n_samples = pixels.shape[-1] if COLOURS in axes else 1
    coloured = n_samples - (picture.opacity is not None) == 3
    options: dict[str, Any] = {"photometric": "rgb" if coloured else "minisblack"}
    options["planarconfig"] = "contig" if COLOURS in axes else None
    options["extrasamples"] = None if picture.opacity is None else ["unassalpha"]
    options |= {"iccprofile": picture.profile, "compression": "zlib", "metadata": None}
    if notes.ome:
        return _written(pixels, options | {"description": description_of(notes.ome, pixels.dtype)})
    if notes.imagej and pixels.dtype.char in "BHhf":
        return _written(pixels, options | _imagej_options(picture, axes))
    if as_ome:
        sizes = {f"PhysicalSize{axis}": size for axis, size in picture.spacing.items()}
        return _written(pixels, options | {"ome": True, "metadata": {"axes": axes.replace("I", "Q")} | sizes})
    if len(axes) > 2 + (COLOURS in axes) and set(axes) <= set(OWN_AXES):
        return _written(pixels, options | {"metadata": {"axes": axes}})
    return _photograph(pixels, picture, options)


def _written(pixels: np.ndarray, options: dict[str, Any]) -> bytes:
    import tifffile

    file = io.BytesIO()
    tifffile.imwrite(file, pixels, **options)
    return file.getvalue()


def _imagej_options(picture: Picture, axes: str) -> dict[str, Any]:
    """ImageJ reads no compressed hyperstacks."""
    options: dict[str, Any] = {"imagej": True, "compression": None}
    told = {
        _escaped(key): value if key == "Info" else _escaped(value) for key, value in picture.notes.imagej.items()
    }
    options["metadata"] = told | {"axes": axes.replace("I", "Z")}  # as ImageJ opens them
    if {"X", "Y"} <= set(picture.spacing):
        options["resolution"] = (1 / picture.spacing["X"], 1 / picture.spacing["Y"])
    return options


def _escaped(value: Any) -> Any:
    r"""A text such as "µm" as ImageJ writes it, "\u00B5m"; other values as they are."""
    if not isinstance(value, str):
        return value
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04X}" for letter in value)


def _photograph(pixels: np.ndarray, picture: Picture, options: dict[str, Any]) -> bytes:
    """Pages with the notes of cameras and of editing programs."""
    notes = picture.notes
    tags, lists = tags_of_exif(notes.exif)
    description, software = tags.pop(DESCRIPTION, None), tags.pop(SOFTWARE, None)
    if isinstance(description, str) and not description.lower().startswith(STRUCTURES):
        options["description"] = description.encode()
    options["software"] = software.encode() if isinstance(software, str) else False
    options["extratags"] = [tiff_tag(tag, value) for tag, value in tags.items()]
    options["extratags"] += place_holders(lists)
    if notes.xmp:
        options["extratags"].append(tiff_tag(XMP, notes.xmp))
    if notes.dpi is not None:
        options |= {"resolution": notes.dpi, "resolutionunit": INCH}
    content = _written(pixels, options)
    return with_lists(content, lists) if lists and content[2] == CLASSIC else content

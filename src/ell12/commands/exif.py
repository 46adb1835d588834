"""Which way up a picture is, and the notes of cameras (EXIF), as the formats pass them on."""

from __future__ import annotations

import io
import re
import struct
import warnings
from collections.abc import Container, Mapping
from numbers import Rational
from typing import Any, BinaryIO

import numpy as np

MARK = b"Exif\x00\x00"  # what the notes begin with
ORIENTATION, DESCRIPTION, SOFTWARE = 274, 270, 305
CAMERA, PLACE = 34665, 34853  # lists of their own: how the photograph was taken, and where
WIDTH, HEIGHT = 40962, 40963
# Of a TIFF's tags these describe the picture, the others how it is stored: names, dates, cameras, authors, the
# white point, ratings, positions on a map, Windows' titles, keywords of news agencies.
DESCRIPTIVE = frozenset(
    (
        *(269, DESCRIPTION, 271, 272, 285, SOFTWARE, 306, 315, 316, 318, 319, 18246, 33432, 33550, 33723),
        *(33922, 34264, 34735, 34736, 34737, *range(40091, 40096)),
    )
)


class _Text(str):
    """A text that Pillow has read byte by byte: it writes the same bytes, not "?" for all that is no ASCII."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        return super().encode("latin-1")


def upright(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Rows and columns, the first two axes, turned and mirrored as an orientation from 1 to 8 says.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.commands.exif import upright
    >>> upright(np.array([[1, 2, 3]]), 6).tolist()
    [[1], [2], [3]]
    """
    turned = np.swapaxes(pixels, 0, 1) if orientation >= 5 else pixels
    if orientation in (2, 3, 6, 7):
        turned = turned[:, ::-1]
    return turned[::-1] if orientation in (3, 4, 7, 8) else turned


def read_exif(image: Any) -> tuple[int, bytes]:
    """The orientation of an image that Pillow opened, and its notes once it is upright.

    Notes that need no change are passed on byte by byte.
    """
    orientation = 1
    try:
        exif = image.getexif()
        orientation = exif.get(ORIENTATION, 1)
        if orientation in range(2, 9):
            return orientation, _upright_notes(exif, orientation)
        notes = image.info.get("exif") or (exif.tobytes() if len(exif) else b"")
        return 1, notes if notes.startswith(MARK) or not notes else MARK + notes  # WebP leaves out the mark
    except Exception:  # what a camera wrote may be damaged, the picture is not
        warnings.warn("its EXIF data cannot be read and are left out", stacklevel=2)
        return orientation if orientation in range(2, 9) else 1, b""


def _upright_notes(exif: Any, orientation: int) -> bytes:
    """The notes without the orientation. Pillow leaves out the small copy, which would lie on its side."""
    del exif[ORIENTATION]
    notes, lists = _copied(exif, exif), _lists(exif)
    camera = lists.get(CAMERA, {})
    if orientation >= 5 and WIDTH in camera and HEIGHT in camera:
        camera[WIDTH], camera[HEIGHT] = camera[HEIGHT], camera[WIDTH]
    return _joined(notes, lists)


def _copied(tags: Mapping[int, Any], wanted: Container[int]) -> dict[int, Any]:
    """Some of the tags, with texts that Pillow writes as it has read them."""
    values = {tag: tags[tag] for tag in tags if tag in wanted}
    return {tag: _Text(value) if isinstance(value, str) else value for tag, value in values.items()}


def _lists(exif: Any) -> dict[int, dict[int, Any]]:
    """The lists of camera and place."""
    found = {tag: exif.get_ifd(tag) for tag in (CAMERA, PLACE)}
    return {tag: _copied(values, values) for tag, values in found.items() if values}


def _joined(notes: Mapping[int, Any], lists: Mapping[int, Any]) -> bytes:
    """Notes as they stand in a file; none where there are none."""
    from PIL import Image

    exif = Image.Exif()
    for tag, value in (*notes.items(), *lists.items()):
        exif[tag] = value
    return exif.tobytes() if len(exif) else b""


def upright_xmp(xmp: bytes | str | None, orientation: int) -> bytes:
    """The notes of editing programs; where the picture was turned they say that it is upright."""
    content = xmp.encode() if isinstance(xmp, str) else (xmp or b"")
    return re.sub(rb'(tiff:Orientation(="|>))\d', rb"\g<1>1", content) if orientation != 1 else content


def exif_of_tiff(file: BinaryIO) -> bytes:
    """The notes in a TIFF file: its tags that describe the picture, and the lists of camera and place."""
    from PIL import Image

    found = Image.Exif()
    try:
        file.seek(0)
        found.load_from_fp(file)
        return _joined(_copied(found, DESCRIPTIVE), _lists(found))
    except Exception:  # as in `read_exif`
        warnings.warn("its EXIF data cannot be read and are left out", stacklevel=2)
        return b""


def tags_of_exif(exif: bytes) -> tuple[dict[int, Any], dict[int, dict[int, Any]]]:
    """The tags that describe the picture, and the lists of camera and place, by their tags."""
    if not exif:
        return {}, {}
    from PIL import Image

    notes = Image.Exif()
    notes.load(exif)
    return _copied(notes, DESCRIPTIVE), _lists(notes)


def tiff_tag(tag: int, value: Any) -> tuple[int, int, int, Any, bool]:
    """A tag as tifffile writes it: number, kind, count, value, and that it stands on the first page only."""
    if isinstance(value, str):
        return tag, 2, 0, _Text(value).encode() + b"\0", True
    if isinstance(value, bytes):
        return tag, 1, len(value), value, True
    numbers = value if isinstance(value, tuple) else (value,)
    if all(isinstance(number, int) for number in numbers):
        return tag, 3 if max(numbers) < 2**16 else 4, len(numbers), numbers, True
    if all(isinstance(number, Rational) for number in numbers):
        pairs = [int(part) for number in numbers for part in (number.numerator, number.denominator)]
        return tag, 5, len(numbers), tuple(pairs), True
    return tag, 12, len(numbers), tuple(map(float, numbers)), True


def place_holders(lists: Mapping[int, Any]) -> list[tuple[int, int, int, int, bool]]:
    """Tags of a TIFF in whose place `with_lists` puts those of the lists: tifffile does not write these."""
    return [(tag + 1, 4, 1, 0, True) for tag in lists]


def with_lists(content: bytes, lists: Mapping[int, Mapping[int, Any]]) -> bytes:
    """A TIFF file, written with `place_holders`, with lists of tags at its end."""
    import tifffile
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    file = io.BytesIO(content)
    with tifffile.TiffFile(io.BytesIO(content)) as tiff:
        tags: Any = tiff.pages.first.tags
        for tag, values in lists.items():
            start = file.seek(0, io.SEEK_END)
            directory = ImageFileDirectory_v2(content[:8], group=tag)
            for key, value in values.items():
                directory[key] = value
            file.write(directory.tobytes(start))
            file.seek(tags[tag + 1].offset)
            file.write(struct.pack(tiff.byteorder + "HHII", tag, 4, 1, start))
    return file.getvalue()

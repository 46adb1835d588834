"""Pictures: pixels, what their axes mean, and what their files say besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from ell12.commands import CommandError

SPACE, COLOURS = "ZYX", "S"  # letters of axes as OME-TIFF has them; images along any other are separate ones
COLOUR_BY_COLOUR = "s"  # the letter of colours that are restored each by itself
REMEDY = "pip install 'ell12[images]'"
Index = tuple[int | slice, ...]


class ImageFileError(CommandError):
    """What is wrong with a file, its name included."""


@dataclass(frozen=True)
class Notes:
    """What a file says besides its pixels, to be written again.

    Attributes
    ----------
    exif : bytes
        What the camera noted (EXIF), beginning with its mark; a picture on its side is turned upright here too.
    xmp : bytes
        The notes of programs that edit photographs.
    dpi : tuple of two numbers, or None
        Pixels per inch, along a row and along a column.
    lossless : bool
        Whether the file kept every bit, as all but JPEG and most WebP do.
    axes : str
        The letters of a TIFF's axes, in the order of the pixels.
    ome : str
        The description of an OME-TIFF.
    imagej : dict
        The description of a TIFF that ImageJ wrote.
    """

    exif: bytes = b""
    xmp: bytes = b""
    dpi: tuple[float, float] | None = None
    lossless: bool = True
    axes: str = ""
    ome: str = ""
    imagej: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """The content of an image file.

    Attributes
    ----------
    pixels : array
        As stored (8 or 16 bits, other integers or floating point from NPY and TIFF), upright, without opacity.
    channel_axis : int or None
        The axis of the colours; None where there is none.
    opacity : array or None
        The opacity (alpha channel) of each pixel.
    profile : bytes or None
        The colour profile (ICC).
    axes : str
        A letter for each axis: Z, Y, X are space, S colours, others separate images; "" if all but the colours
        are space.
    spacing : dict
        The distance between pixel centres by letters of space, where the file has it.
    notes : Notes
        What else the file says.
    """

    pixels: np.ndarray
    channel_axis: int | None = None
    opacity: np.ndarray | None = None
    profile: bytes | None = None
    axes: str = ""
    spacing: Mapping[str, float] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    @property
    def letters(self) -> str:
        """A letter for each axis.

        Examples
        --------
        >>> import numpy as np
        >>> from ell12.commands.pictures import Picture
        >>> Picture(np.zeros((4, 5, 3)), -1).letters
        'YXS'
        """
        if self.axes:
            return self.axes
        n_space = self.pixels.ndim - (self.channel_axis is not None)
        letters = list(("Q" * n_space + SPACE)[-n_space:]) if n_space else []
        if self.channel_axis is not None:
            letters.insert(self.channel_axis % self.pixels.ndim, COLOURS)
        return "".join(letters)

    @property
    def separate(self) -> tuple[int, ...]:
        """The axes along which the images are separate ones."""
        return tuple(k for k, letter in enumerate(self.axes) if letter not in SPACE + COLOURS)

    def colour_by_colour(self) -> Picture:
        """The picture with its colours as separate images."""
        return replace(self, axes=self.letters.replace(COLOURS, COLOUR_BY_COLOUR), channel_axis=None)

    def parts(self) -> Iterator[tuple[Index, Picture]]:
        """The pictures that are restored each by itself, and where they are in the whole."""
        places: list[Sequence[int | slice]]
        places = [range(n) if k in self.separate else [slice(None)] for k, n in enumerate(self.pixels.shape)]
        kept = "".join(letter for letter in self.axes if letter in SPACE + COLOURS)
        channel_axis = kept.index(COLOURS) if COLOURS in kept else self.channel_axis
        for index in product(*places):
            yield index, Picture(self.pixels[index], channel_axis, axes=kept, spacing=self.spacing)

    @property
    def distances(self) -> tuple[float, ...] | None:
        """The distance between pixel centres along each axis of space; None where the file does not have all.

        Examples
        --------
        >>> import numpy as np
        >>> from ell12.commands.pictures import Picture
        >>> Picture(np.zeros((4, 5, 3)), -1, spacing={"X": 0.5, "Y": 0.25}).distances
        (0.25, 0.5)
        """
        found = [self.spacing.get(letter) for letter in self.letters if letter in SPACE]
        known = tuple(distance for distance in found if distance is not None)
        return known if known and len(known) == len(found) else None

    def values(self) -> np.ndarray:
        """The pixels as floating point numbers; 8 and 16 bits become float32 in [0, 1].

        Examples
        --------
        >>> import numpy as np
        >>> from ell12.commands.pictures import Picture
        >>> Picture(np.array([[0, 255]], dtype=np.uint8)).values()
        array([[0., 1.]], dtype=float32)
        """
        return _as_values(self.pixels)

    def stored(self, values: np.ndarray) -> np.ndarray:
        """Other values as numbers of the kind that this picture has, where those are integers.

        Examples
        --------
        >>> import numpy as np
        >>> from ell12.commands.pictures import Picture
        >>> Picture(np.array([[0, 255]], dtype=np.uint8)).stored(np.array([[0.2, 1.1]]))
        array([[ 51, 255]], dtype=uint8)
        """
        kind = self.pixels.dtype
        if kind.kind not in "iu":
            return values
        if kind in (np.uint8, np.uint16):
            return rounded(values, kind.type)
        limits = np.iinfo(kind)
        return np.rint(np.clip(values, limits.min, limits.max)).astype(kind)

    def joined(self, pixels: np.ndarray) -> np.ndarray:
        """Other values, as `values` has them, with this picture's opacity as the last channel."""
        if self.opacity is None:
            return pixels
        colours = pixels[..., None] if self.channel_axis is None else pixels
        return np.concatenate([colours, _as_values(self.opacity)[..., None].astype(pixels.dtype)], axis=-1)

    @property
    def unit(self) -> int:
        """What the file's numbers are divided by to become `values`."""
        return np.iinfo(self.pixels.dtype).max if self.pixels.dtype in (np.uint8, np.uint16) else 1


def rounded(values: np.ndarray, kind: Any) -> np.ndarray:
    """The nearest integers of 8 or 16 bits to values in [0, 1]; those outside are clipped."""
    return np.rint(np.clip(values, 0, 1) * np.iinfo(kind).max).astype(kind)


def _as_values(pixels: np.ndarray) -> np.ndarray:
    """Numbers to compute with: single precision where it holds every number of the file."""
    kind = pixels.dtype
    if kind in (np.uint8, np.uint16):
        return pixels.astype(np.float32) / np.float32(np.iinfo(kind).max)
    if kind.kind in "iu":
        return pixels.astype(np.float32 if kind.itemsize <= 2 else np.float64)
    return pixels.astype(np.float32) if kind in (np.bool_, np.float16) else pixels


def check_numbers(pixels: np.ndarray, path: Any) -> np.ndarray:
    """The pixels in the byte order of this machine, if it is plain what their numbers mean."""
    integers = pixels.dtype.kind in "iu" and pixels.dtype.itemsize <= 4
    if not (pixels.dtype.kind in "bfc" or integers):
        raise ImageFileError(
            f"cannot read {path}: it holds {pixels.dtype}; save integers of at most 32 bits or floating point"
        )
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)

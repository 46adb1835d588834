"""Bands of images in temporary files: each is read when it is worked on, and its file goes with its last user."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ell12.protocols import Array
from ell12.restoration.bands.arrays import Layout, Part


class Folder:
    """A keeper of bands: a temporary folder, which is removed once nobody holds it or a band of it.

    It is made where the module `tempfile` of Python's library makes folders: the environment's ``TMPDIR`` decides.
    """

    threads = None

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ell12-"))
        self.close = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self.numbers = itertools.count()

    def later(self, function: Callable[..., Array], *parts: Any, rowwise: bool = True) -> Part:
        """What the function makes of these parts, made each time when it is read."""
        return Expression(function, parts, rowwise)

    def rows(self, part: Part, axis: int, first: int, last: int | None) -> Part:
        """Some rows of a part: of what is in a file no others are read."""
        if isinstance(part, Expression) and part.rowwise:
            inside = (self.rows(inner, axis, first, last) for inner in part.parts)
            return Expression(part.function, tuple(inside))
        return Expression(_Rows(axis, first, last), (part,), rowwise=False)

    def settled(self, parts: Sequence[Part]) -> Sequence[Part]:
        """The parts as they are: to read bytes and scale them takes less time than to read numbers."""
        return parts

    def run(
        self, function: Callable[..., tuple[Any, ...]], columns: Sequence[Sequence[Any]], kept: int = 0
    ) -> tuple[list[list[Part]], list[Any]]:
        """Call the function for one band after the other; what it returns is written before the next."""
        parts: list[list[Part]] = [[] for _ in range(kept)]
        found = []
        for arguments in zip(*columns, strict=True):
            *arrays, last = function(*map(loaded, arguments))
            for column, array in zip(parts, arrays, strict=True):
                column.append(self.keep(array))
            found.append(last)
        return parts, found

    def keep(self, array: Array) -> File:
        """A file that holds the array."""
        path = self.path / f"{next(self.numbers)}.npy"
        try:
            np.save(path, array)
        except OSError as error:
            raise OSError(
                error.errno or errno.ENOSPC,  # NumPy tells of a short write without a number
                f"the temporary files of an image in blocks could not be written ({error}): free some of the disk,"
                " or set the environment's TMPDIR to a folder with more room than",
                str(self.path),
            ) from error
        return File(self, path)

    def receive(self, shape: tuple[int, ...], dtype: Any, layout: Layout) -> Inbox:
        """A place for an image whose pixels arrive in any order."""
        files = []
        for height in layout.heights:
            band = list(shape)
            band[layout.axis] = height
            files.append(self.keep(np.zeros(band, dtype)))  # a disk that is full says so here, not later
        return Inbox(layout, files)


class File:
    """A band in a file, which is removed with this object."""

    def __init__(self, folder: Folder, path: Path) -> None:
        self.folder, self.path = folder, path
        weakref.finalize(self, _remove, path)

    def load(self) -> Array:
        """The band, of which only what is looked at is read."""
        return np.asarray(np.load(self.path, mmap_mode="r"))


@dataclass(frozen=True, eq=False)
class Expression:
    """What a function makes of parts."""

    function: Callable[..., Array]
    parts: tuple[Any, ...]
    rowwise: bool = True

    def load(self) -> Array:
        """The band, made anew."""
        return self.function(*map(loaded, self.parts))


@dataclass(frozen=True)
class _Rows:
    axis: int
    first: int
    last: int | None

    def __call__(self, band: Array) -> Array:
        if np.ndim(band) < -self.axis or band.shape[self.axis] == 1:  # the same for all rows
            return band
        return band[(..., slice(self.first, self.last), *(slice(None),) * (-1 - self.axis))]


@dataclass(frozen=True)
class Inbox:
    """Files of bands that take any part of the image, as an array would."""

    layout: Layout
    files: list[File]

    def __setitem__(self, region: tuple[slice, ...], values: Array) -> None:
        axis = len(region) + self.layout.axis
        first, last = region[axis].start, region[axis].stop
        for file, (start, stop) in zip(self.files, itertools.pairwise(self.layout.cuts), strict=True):
            low, high = max(first, start), min(last, stop)
            if low < high:
                there = (*region[:axis], slice(low - start, high - start), *region[axis + 1 :])
                here = (*(slice(None),) * axis, slice(low - first, high - first))
                np.load(file.path, mmap_mode="r+")[there] = values[here]


def loaded(part: Any) -> Any:
    """A part as an array, those within a tuple too; anything else as it is."""
    if isinstance(part, tuple):
        return tuple(map(loaded, part))
    return part.load() if isinstance(part, File | Expression) else part


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone with its folder, or still open, and then it goes with its folder
        os.unlink(path)


def is_zarr(image: Any) -> bool:
    """Whether this is an array of Zarr; while that is not imported, there is none."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(image, zarr.Array)


def regions(shape: Iterable[int], chunks: Iterable[int]) -> Iterable[tuple[slice, ...]]:
    """The parts of an image that is stored in chunks, one after the other."""
    axes = [[slice(a, min(a + step, n)) for a in range(0, n, step)] for n, step in zip(shape, chunks, strict=True)]
    return itertools.product(*axes)

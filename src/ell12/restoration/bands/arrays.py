"""Images in bands of rows (planes) that lie elsewhere, as arrays: they add and scale, and have sums.

What `ell12.minimize` asks of an array, asked of each band. Functions of single pixels are only noted, and applied
when a band is read; so an image is neither read nor written for them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ell12.protocols import Array

Part = Any  # what a keeper gives for a band that it keeps, such as a file's name


class Keeper(Protocol):
    """Where bands lie, and who works on them: files and this process, or the workers of a cluster."""

    threads: int | None  # that work on one band; None for as many as there are processors

    def later(self, function: Callable[..., Array], *parts: Any, rowwise: bool = True) -> Part:
        """What the function makes of these parts, made when it is asked for.

        ``rowwise`` says that it acts on each row by itself, so that few rows need few rows.
        """
        ...

    def rows(self, part: Part, axis: int, first: int, last: int | None) -> Part:
        """Some rows of a part."""
        ...

    def settled(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Parts in the form in which they are best read many times."""
        ...

    def run(
        self, function: Callable[..., tuple[Any, ...]], columns: Sequence[Sequence[Any]], kept: int = 0
    ) -> tuple[list[list[Part]], list[Any]]:
        """Call the function for each band with its entry of each column, in which parts become arrays.

        It returns ``kept`` arrays, which become columns of parts, and one more thing, which is brought here.
        """
        ...


@dataclass(frozen=True, eq=False)
class Layout:
    """Who keeps the bands of an image, which axis is cut (counted from the last, -1) and where."""

    keeper: Keeper
    axis: int
    cuts: tuple[int, ...]

    @property
    def heights(self) -> tuple[int, ...]:
        """The number of rows of each band."""
        return tuple(itertools.starmap(lambda a, b: b - a, itertools.pairwise(self.cuts)))

    def split(self, values: Array) -> list[Array]:
        """A NumPy array in bands; one that is the same for all rows as it is."""
        if np.ndim(values) < -self.axis or values.shape[self.axis] == 1:
            return [values] * (len(self.cuts) - 1)
        return np.split(values, self.cuts[1:-1], axis=self.axis)


class BandedArray:
    """An array in bands. Its ``device`` is the layout, by which others like it are made."""

    __array_priority__ = 1000.0  # a NumPy number leaves products with it to this class

    def __init__(self, layout: Layout, parts: Sequence[Part], shape: tuple[int, ...], dtype: Any) -> None:
        self.device, self.parts, self.shape, self.dtype = layout, parts, shape, np.dtype(dtype)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return FUNCTIONS

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def neighbourhoods(self, border: int, periodic: bool) -> list[tuple[Any, Part, Any]]:
        """Each band between the nearest rows of the bands beside it; None past the end of the image."""
        keeper, axis, count = self.device.keeper, self.device.axis, len(self.parts)
        if count == 1:
            return [(None, self.parts[0], None)]
        above = [keeper.rows(part, axis, -border, None) for part in self.parts]
        below = [keeper.rows(part, axis, 0, border) for part in self.parts]
        ends = (above[-1], below[0]) if periodic else (None, None)
        return list(zip([ends[0], *above[:-1]], self.parts, [*below[1:], ends[1]], strict=True))

    def recut(self, cuts: tuple[int, ...]) -> BandedArray:
        """The same image, cut elsewhere."""
        keeper, axis, parts = self.device.keeper, self.device.axis, []
        if cuts == self.device.cuts:
            return self
        for first, last in itertools.pairwise(cuts):
            pieces = list(self._pieces(first, last))
            parts.append(keeper.later(_Joined(axis), *pieces, rowwise=False))
        return BandedArray(Layout(keeper, axis, cuts), parts, self.shape, self.dtype)

    def settled(self) -> BandedArray:
        """The same image, in the form in which it is best read many times."""
        return BandedArray(self.device, self.device.keeper.settled(self.parts), self.shape, self.dtype)

    def by_rows(self, function: Callable[[Array], Array]) -> BandedArray:
        """What a function makes of each row by itself, of the same shape and dtype; it is only noted."""
        parts = [self.device.keeper.later(function, part) for part in self.parts]
        return BandedArray(self.device, parts, self.shape, self.dtype)

    def _pieces(self, first: int, last: int) -> Iterator[Part]:
        """The rows of each band that lie between two rows of the image."""
        for part, (start, stop) in zip(self.parts, itertools.pairwise(self.device.cuts), strict=True):
            if start < last and first < stop:
                yield self.device.keeper.rows(
                    part, self.device.axis, max(first - start, 0), min(last, stop) - start
                )

    def __getitem__(self, region: tuple[Any, ...]) -> Array:
        """A part of the image, named by slices, as a NumPy array."""
        axis, given = self.ndim + self.device.axis, [item for item in region if item is not Ellipsis]
        if not all(isinstance(item, slice) for item in given) or (region[0] is not ... and len(given) < self.ndim):
            raise TypeError(f"parts of an image in bands are named by slices of the last axes, got {region!r}")
        region = (*[slice(None)] * (self.ndim - len(given)), *given)
        first, last, _ = region[axis].indices(self.shape[axis])
        pieces, rest = list(self._pieces(first, last)), (*region[:axis], slice(None), *region[axis + 1 :])
        return np.concatenate(self.device.keeper.run(_taking, [[rest] * len(pieces), pieces])[1], axis=axis)

    def __add__(self, other: Any) -> BandedArray:
        return pixelwise(operator.add, self, other)

    def __sub__(self, other: Any) -> BandedArray:
        return pixelwise(operator.sub, self, other)

    def __mul__(self, other: Any) -> BandedArray:
        return pixelwise(operator.mul, self, other)

    def __truediv__(self, other: Any) -> BandedArray:
        return pixelwise(operator.truediv, self, other)

    def __radd__(self, other: Any) -> BandedArray:
        return pixelwise(operator.add, other, self)

    def __rmul__(self, other: Any) -> BandedArray:
        return pixelwise(operator.mul, other, self)

    def __neg__(self) -> BandedArray:
        return pixelwise(operator.neg, self)


def pixelwise(function: Callable[..., Array], *values: Any, **options: Any) -> BandedArray:
    """A function of single pixels, applied to arrays in bands and to numbers; it is only noted."""
    first = next(value for value in values if isinstance(value, BandedArray))
    layout, shape = first.device, np.broadcast_shapes(*(np.shape(value) for value in values))
    call = _Call(function, tuple(None if isinstance(value, BandedArray) else value for value in values), options)
    arrays = [value.parts for value in values if isinstance(value, BandedArray)]
    parts = [layout.keeper.later(call, *parts) for parts in zip(*arrays, strict=True)]
    samples = [np.ones(1, value.dtype) if isinstance(value, BandedArray) else value for value in values]
    return BandedArray(layout, parts, shape, function(*samples, **options).dtype)


@dataclass(frozen=True)
class _Call:
    """A function with its numbers filled in: None stands where an array comes."""

    function: Callable[..., Array]
    numbers: tuple[Any, ...]
    options: dict[str, Any]

    def __call__(self, *arrays: Array) -> Array:
        rest = iter(arrays)
        return self.function(*(next(rest) if n is None else n for n in self.numbers), **self.options)


@dataclass(frozen=True)
class _Joined:
    """Arrays one behind the other along an axis."""

    axis: int

    def __call__(self, *arrays: Array) -> Array:
        return np.concatenate(arrays, axis=self.axis)


@dataclass(frozen=True)
class _Reduced:
    """What a function, such as a sum, makes of each band."""

    function: Callable[..., Any]

    def __call__(self, *arrays: Array) -> tuple[Any]:
        return (self.function(*arrays),)


def _taking(region: tuple[slice, ...], rows: Array) -> tuple[Array]:
    return (np.array(rows[region]),)


def reduced(function: Callable[..., Any], join: Callable[..., Any], *arrays: BandedArray) -> Any:
    """What a function makes of each band, joined."""
    keeper = arrays[0].device.keeper
    return join(keeper.run(_Reduced(function), [array.parts for array in arrays])[1])


class _Functions:
    """The functions of the array API standard that the loop, the losses and the penalty ask of images."""

    __name__ = "ell12.restoration.bands.arrays"
    bool, float32, float64, complex64, complex128 = np.bool, np.float32, np.float64, np.complex64, np.complex128
    finfo, isdtype, result_type = staticmethod(np.finfo), staticmethod(np.isdtype), staticmethod(np.result_type)
    stack = staticmethod(np.stack)  # of parts of images, which are in memory

    def abs(self, x: BandedArray) -> BandedArray:
        return pixelwise(np.abs, x)

    def clip(self, x: BandedArray, low: float | None = None, high: float | None = None) -> BandedArray:
        return pixelwise(np.clip, x, a_min=low, a_max=high)

    def where(self, condition: Any, x: Any, y: Any) -> BandedArray:
        return pixelwise(np.where, condition, x, y)

    def astype(self, x: BandedArray, dtype: Any, **_: Any) -> BandedArray:
        return x if x.dtype == dtype else pixelwise(np.astype, x, np.dtype(dtype))

    def zeros(self, shape: tuple[int, ...], *, dtype: Any, device: Layout) -> BandedArray:
        return self.asarray(np.broadcast_to(np.zeros((), dtype), shape), device=device)

    def asarray(self, values: Any, *, dtype: Any = None, device: Layout | None = None) -> Any:
        values = np.asarray(values, dtype=dtype)
        return values if device is None else BandedArray(device, device.split(values), values.shape, values.dtype)

    def reshape(self, x: BandedArray, shape: tuple[int, ...]) -> BandedArray:
        """All entries as a vector, band after band."""
        if tuple(shape) != (-1,):
            raise TypeError("an image in bands takes no other shape than that of a vector")
        parts = [x.device.keeper.later(np.ravel, part, rowwise=False) for part in x.parts]
        return BandedArray(x.device, parts, (math.prod(x.shape),), x.dtype)

    def flip(self, x: BandedArray, *, axis: tuple[int, ...]) -> BandedArray:
        """The image turned round: bands change places where the axis is the one that is cut."""
        layout, turn = x.device, _Call(np.flip, (None,), {"axis": axis})
        parts = [layout.keeper.later(turn, part, rowwise=layout.axis not in axis) for part in x.parts]
        if layout.axis in axis:
            cuts = tuple(layout.cuts[-1] - cut for cut in reversed(layout.cuts))
            parts, layout = parts[::-1], Layout(layout.keeper, layout.axis, cuts)
        return BandedArray(layout, parts, x.shape, x.dtype)

    def sum(self, x: BandedArray) -> Any:
        return reduced(np.sum, math.fsum, x)

    def max(self, x: BandedArray) -> Any:
        return reduced(np.max, np.max, x)

    def min(self, x: BandedArray) -> Any:
        return reduced(np.min, np.min, x)

    def all(self, x: BandedArray) -> Any:
        return reduced(np.all, np.all, x)

    def isfinite(self, x: Any) -> Any:
        return pixelwise(np.isfinite, x) if isinstance(x, BandedArray) else np.isfinite(x)

    def vdot(self, x: BandedArray, y: BandedArray) -> Any:
        return reduced(np.vdot, math.fsum, x, y)


FUNCTIONS = _Functions()

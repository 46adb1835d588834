"""Images larger than memory, Dask and Zarr arrays: restored in bands of rows (planes), as the whole would be.

Every band takes each step with the nearest rows of its neighbours, and what decides over momentum, restart and end
is summed over all bands. So there are no seams, and bands may be cut as it suits memory.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ell12.backend.compiling import can_compile
from ell12.operators.images import Identity, Masking
from ell12.protocols import Array
from ell12.restoration.band_files import Folder, Inbox, loaded, regions
from ell12.restoration.bands import BandedArray, Layout, pixelwise
from ell12.restoration.images import as_pixels, check_filled, check_values, coarser, filled, finer
from ell12.restoration.problems import ImageModel, ImageProblem, ImageRun
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.strength import block_means

# A band holds about this many pixels. While it is worked on, some ten arrays of its size are in memory, 160 MB in
# double precision. With a quarter of it, reading and writing took longer; with four times as many, no less.
PIXELS = 2**21
# It has at least this many rows (planes) of its own, as it is worked on with eight of its neighbours.
LEAST_ROWS = 16
# Bands are cut at multiples of this number of rows, so that means over 2, 4 and 8 of them are those of the whole.
EVEN, LEVELS = 8, 3


def is_larger_than_memory(image: Any) -> bool:
    """Whether this is an array of Dask or Zarr."""
    return hasattr(image, "__dask_graph__") or _is_zarr(image)


def _is_zarr(image: Any) -> bool:
    zarr = sys.modules.get("zarr")  # not imported yet, it has made no array
    return zarr is not None and isinstance(image, zarr.Array)


def restore_in_bands(image: Any, mask: Any, alpha: Any, model: ImageModel, options: ImageRun) -> Any:
    """`ell12.denoise_tv` or, with a mask, `ell12.inpaint_tv` of a Dask or Zarr array."""
    source = _Source(image, model.channel_axis)
    _check(source, alpha, model, options)
    try:
        problem = source.problem(mask, model, options)
        found = problem.restore(alpha)
        restored = source.returned(found.image)
    except BaseException:
        source.keeper.close()
        raise
    runs = tuple(replace(run, x=restored) for run in found.runs)
    return replace(problem, options=options)._finished(replace(found, image=restored, runs=runs))


def _check(source: _Source, alpha: Any, model: ImageModel, options: ImageRun) -> None:
    """Raise on what only an image in memory can have."""
    refused = {
        "alpha='held-out'": isinstance(alpha, str),
        "checkpoint": options.checkpoint is not None,
        "measure": bool(options.measure),
        "objectives": options.objectives,
        "smoothing=0": model.smoothing == 0,
        f"solver={model.solver!r}": not (
            model.solver == "accelerated" or isinstance(model.solver, SmoothedGradient)
        ),
        f"an image of {source.ndim} axes": source.ndim not in (2, 3),
        "complex numbers": source.image.dtype.kind == "c",
    }
    for what, given in refused.items():
        if given:
            raise ValueError(f"{what} cannot be had with a {source.kind} array: give the image as a NumPy array")
    if not can_compile():
        raise ImportError(f"an image given as a {source.kind} array needs numba: pip install 'ell12[fast]'")


@dataclass(frozen=True)
class BandedProblem(ImageProblem):
    """An `ImageProblem` whose arrays are in bands, channels first."""

    @cached_property
    def spread(self) -> float:
        """The range of the image's values, from those of the bands."""
        keeper = self.start.device.keeper
        count = len(self.start.parts)
        ends = np.array(keeper.run(_extremes, [self.start.parts, [self.ndim] * count])[1])
        low, high = ends[:, :2].min(axis=0), ends[:, 2:].max(axis=0)
        return float(max(high[0] - low[0], (high[1] - low[1]) / 4)) or 1.0

    @property
    def _is_slow_here(self) -> bool:
        return False


@dataclass(frozen=True)
class _Source:
    """A Dask or Zarr array, the bands that it is cut into, and the way back."""

    image: Any
    channel_axis: int | None

    def __post_init__(self) -> None:
        if self.is_dask:
            from ell12.distributed.images import check_chunks

            check_chunks(self.image, "image")
        check_filled(self.image)
        axis = self.channel_axis
        if axis is not None and not -self.image.ndim <= axis < self.image.ndim:
            raise ValueError(f"channel_axis {axis!r} is out of range for an image of shape {self.image.shape}")

    @property
    def is_dask(self) -> bool:
        """Whether it is Dask's."""
        return hasattr(self.image, "__dask_graph__")

    @property
    def kind(self) -> str:
        """The library's name, for errors."""
        return "Dask" if self.is_dask else "Zarr"

    @cached_property
    def keeper(self) -> Any:
        """Dask's workers, where there are any; else files."""
        if self.is_dask:
            from ell12.distributed.images import workers

            return workers() or Folder()
        return Folder()

    @property
    def ndim(self) -> int:
        """How many axes make one channel."""
        return self.image.ndim - (self.channel_axis is not None)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """That of the image, channels first."""
        return self._moved(self.image.shape)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Where the bands begin, and the end."""
        rows = self.shape[-self.ndim]
        height = max(LEAST_ROWS, PIXELS * rows // int(np.prod(self.shape))) // EVEN * EVEN
        cuts = list(range(0, rows, height))
        return (*(cuts[:-1] if len(cuts) > 1 and rows - cuts[-1] < EVEN else cuts), rows)

    def problem(self, mask: Any, model: ImageModel, options: ImageRun) -> BandedProblem:
        """What is to be solved."""
        raw, known = self._bands(self.image), None if mask is None else self._known(mask)
        y = pixelwise(as_pixels, raw if known is None else pixelwise(np.where, known, raw, raw.dtype.type(0)))
        check_values(y)
        A = Identity(y.shape) if known is None else Masking(known)
        start = y if known is None else _filled(y, known, self.ndim)
        model, options = replace(model, channel_axis=None), replace(options, return_result=True)
        return BandedProblem(y, A, start, self.ndim, model, options)

    def returned(self, x: BandedArray) -> Any:
        """The image as an array of the kind that was given."""
        if self.is_dask:
            return self._as_dask(x)
        try:
            return self._as_zarr(x)
        finally:
            self.keeper.close()

    def _moved(self, items: Any) -> tuple[Any, ...]:
        """Something for each axis, that of channels first."""
        items = list(items)
        return tuple(items if self.channel_axis is None else [items.pop(self.channel_axis), *items])

    def _known(self, mask: Any) -> BandedArray:
        """The mask in bands, of the shape of the image."""
        axis, shape = self.channel_axis, tuple(np.shape(mask))
        if np.dtype(getattr(mask, "dtype", type(mask))).kind != "b":
            raise TypeError(f"mask must hold truth values, True where a pixel is known; got {mask!r}")
        if shape == tuple(self.image.shape):
            return self._bands(mask)
        if axis is None or shape != self.shape[1:]:
            raise ValueError(f"mask of shape {shape} does not fit an image of shape {self.image.shape}")
        known = replace(self, image=mask, channel_axis=None)._bands_in(self)
        return pixelwise(np.logical_and, known, np.ones((self.shape[0], *(1,) * self.ndim), bool))

    def _bands(self, image: Any) -> BandedArray:
        return replace(self, image=image)._bands_in(self)

    def _bands_in(self, whole: _Source) -> BandedArray:
        """This array in bands like those of the whole."""
        keeper, layout = whole.keeper, Layout(whole.keeper, -whole.ndim, whole.cuts)
        dtype = self.image.dtype
        image = self.image
        if isinstance(keeper, Folder):
            inbox = keeper.receive(self.shape, dtype, -whole.ndim, whole.cuts)
            self._send(inbox)
            return BandedArray(layout, inbox.files, self.shape, dtype)
        from ell12.distributed.images import bands_on_workers

        moved = image if self.channel_axis is None else np.moveaxis(image, self.channel_axis, 0)
        return BandedArray(layout, bands_on_workers(keeper, moved, -whole.ndim, whole.cuts), self.shape, dtype)

    def _send(self, inbox: Inbox) -> None:
        """Read the whole array, chunk by chunk, into files."""
        if self.is_dask:
            from ell12.distributed.images import store

            store(self.image if self.channel_axis is None else np.moveaxis(self.image, self.channel_axis, 0), inbox)
            return
        for region in regions(self.image.shape, getattr(self.image, "chunks", self.image.shape)):
            inbox[self._moved(region)] = self._first(np.asarray(self.image[region]))

    def _first(self, block: Array) -> Array:
        return block if self.channel_axis is None else np.moveaxis(block, self.channel_axis, 0)

    def _back(self, block: Any) -> Any:
        return block if self.channel_axis is None else np.moveaxis(block, 0, self.channel_axis)

    def _as_dask(self, x: BandedArray) -> Any:
        from ell12.distributed.images import joined

        axis = x.ndim + x.device.axis
        shapes = [(*x.shape[:axis], height, *x.shape[axis + 1 :]) for height in x.device.heights]
        whole = joined(x.parts, shapes, x.dtype, axis, loaded)
        return self._back(whole).rechunk(self.image.chunks)

    def _as_zarr(self, x: BandedArray) -> Any:
        """An array in a temporary store, which is removed once nobody holds it."""
        import zarr

        folder = tempfile.mkdtemp(prefix="ell12-")
        try:
            store = zarr.storage.LocalStore(folder)
            weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
            chunks = tuple(self.image.chunks)
            result = zarr.create_array(store=store, shape=self.image.shape, chunks=chunks, dtype=x.dtype)
            for region in regions(self.image.shape, chunks):
                result[region] = self._back(x[self._moved(region)])
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return result


def _extremes(band: Array, ndim: int) -> tuple[tuple[float, ...]]:
    """The least mean over a few pixels, the least value, and the largest ones."""
    means = block_means(band, ndim)
    return ((float(means.min()), float(band.min()), float(means.max()), float(band.max())),)


def _filled(y: BandedArray, known: BandedArray, ndim: int) -> BandedArray:
    """`ell12.restoration.images.filled` of an image in bands: only means over 8 pixels along each axis are joined."""
    layout, each = y.device, [ndim] * len(y.parts)
    found = layout.keeper.run(_coarse, [y.parts, known.parts, each])[1]
    mean, some = (np.concatenate(parts, axis=layout.axis) for parts in zip(*found, strict=True))
    whole = mean if some.all() else filled(mean, some, ndim)
    heights = np.cumsum([part[0].shape[layout.axis] for part in found])[:-1]
    columns = [np.split(whole, heights, axis=layout.axis), y.parts, known.parts, each]
    (parts,), _ = layout.keeper.run(_fine, columns, kept=1)
    return BandedArray(layout, parts, y.shape, y.dtype)


def _coarse(image: Array, known: Array, ndim: int) -> tuple[tuple[Array, Array]]:
    for _ in range(LEVELS):
        image, known = coarser(image, known, ndim)
    return ((image, known),)


def _fine(mean: Array, image: Array, known: Array, ndim: int) -> tuple[Array, None]:
    levels = [(image, known)]
    for _ in range(LEVELS - 1):
        levels.append(coarser(*levels[-1], ndim))
    for image_there, known_there in reversed(levels):
        mean = finer(mean, image_there, known_there, ndim)
    return mean, None

"""Images larger than memory, Dask and Zarr arrays: restored in bands of rows (planes), as the whole would be.

Every band takes each step with the nearest rows of its neighbours, and what decides over momentum, restart and end
is summed over all bands. So there are no seams, and bands may be cut as it suits memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import methodcaller
from typing import Any

import numpy as np

from ell12.backend.compiling import can_compile
from ell12.operators.images import Identity, Masking, flipped
from ell12.protocols import Array
from ell12.restoration.bands.arrays import BandedArray, Layout, pixelwise
from ell12.restoration.bands.files import Folder, Inbox, is_zarr, loaded, regions
from ell12.restoration.bands.measures import EVEN, corner_of, cut_from, noise_of, range_of
from ell12.restoration.bands.sweep import Neighbourhood
from ell12.restoration.colour import acts_alike
from ell12.restoration.corners import Corner
from ell12.restoration.images import PASSES, as_pixels, check_filled, check_values, coarser, eased, filled, finer
from ell12.restoration.problems import ImageModel, ImageProblem, ImageRun, finished
from ell12.restoration.risk import Sample
from ell12.restoration.smoothed_gradient import SmoothedGradient

# A band holds about this many pixels. While it is worked on, some ten arrays of its size are in memory, 160 MB in
# double precision. With a quarter of it, reading and writing took longer; with four times as many, no less.
PIXELS = 2**21
# It has at least this many rows (planes) of its own, as it is worked on with eight of its neighbours.
LEAST_ROWS = 16
# Missing pixels are first filled from means over 2 to this power along each axis, in memory.
LEVELS = 3


def is_larger_than_memory(image: Any) -> bool:
    """Whether this is an array of Dask or Zarr."""
    return hasattr(image, "__dask_graph__") or is_zarr(image)


def restore_in_bands(image: Any, mask: Any, alpha: Any, model: ImageModel, options: ImageRun) -> Any:
    """`ell12.denoise_tv` or, with a mask, `ell12.inpaint_tv` of a Dask or Zarr array."""
    source = _Source(image, model.channel_axis)
    _check(source, alpha, model, options)
    try:
        problem = source.problem(mask, model, options)
        found = problem.restore(alpha, problem.estimate_noise)
        restored = source.returned(found.image)
    except BaseException:
        source.keeper.close()
        raise
    runs = tuple(replace(run, x=restored) for run in found.runs)
    return finished(replace(found, image=restored, runs=runs), options.return_result, stacklevel=4)


def _check(source: _Source, alpha: Any, model: ImageModel, options: ImageRun) -> None:
    """Raise on what only an image in memory can have."""
    refused = {
        "alpha='held-out'": isinstance(alpha, str),
        "checkpoint": options.checkpoint is not None,
        "measure": bool(options.measure),
        "objectives": options.objectives,
        "smoothing=0": model.smoothing == 0,
        f"loss={model.loss!r}": model.loss != "squared",
        "isotropic=True with l2_weight > 0 (with 0 it can, nearly the same)": model.isotropic
        and model.l2_weight > 0,
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
        return range_of(self._pixels_from_the_corner, self.ndim)

    @cached_property
    def corner(self) -> Corner:
        """Where differences begin, from what the bands add to it."""
        return corner_of(self._pixels, self.ndim)

    @property
    def _pixels_from_the_corner(self) -> BandedArray:
        return flipped(cut_from(self._pixels, self.corner), self.corner)

    def _along_opponents(self) -> ImageProblem:
        """The problem along opponent axes, which bands must be able to take pixel by pixel."""
        if self.model.bounds is not None or not acts_alike(self.A):
            what = "a mask that differs between channels" if self.model.bounds is None else "bounds"
            raise ValueError(f"{what} cannot be had for colours in blocks: give colour=False, or a NumPy array")
        problem = super()._along_opponents()
        return replace(problem, y=problem.y.settled(), start=problem.start.settled())

    def sample(self) -> Sample:
        """The tiles of the whole, which are in memory."""
        return Sample.of(self.y, self._known, self.ndim)

    def estimate_noise(self) -> float:
        """As `ell12.estimate_noise` of the whole."""
        return noise_of(self.y, self.ndim, self._known)

    @property
    def _known(self) -> BandedArray | None:
        return None if isinstance(self.A, Identity) else self.A.mask


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
        return _channels_first(self.image.shape, self.channel_axis)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Where the bands begin, and the end."""
        rows = self.shape[-self.ndim]
        height = max(LEAST_ROWS, PIXELS * rows // int(np.prod(self.shape))) // EVEN * EVEN
        cuts = list(range(0, rows, height))
        return (*(cuts[:-1] if len(cuts) > 1 and rows - cuts[-1] < EVEN else cuts), rows)

    def problem(self, mask: Any, model: ImageModel, options: ImageRun) -> BandedProblem:
        """What is to be solved."""
        raw, known = self._bands(self.image, self.channel_axis), None if mask is None else self._known(mask)
        y = pixelwise(as_pixels, raw if known is None else pixelwise(np.where, known, raw, raw.dtype.type(0)))
        check_values(y)
        corner = corner_of(y, self.ndim, known)
        y, known = cut_from(y, corner).settled(), None if known is None else cut_from(known, corner).settled()
        A = Identity(y.shape) if known is None else Masking(known)
        start = y if known is None else _filled(y, known, self.ndim, corner)
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

    def _known(self, mask: Any) -> BandedArray:
        """The mask in bands, of the shape of the image."""
        shape, axis = tuple(np.shape(mask)), self.channel_axis
        mask = mask if hasattr(mask, "dtype") else np.asarray(mask)
        if mask.dtype.kind != "b":
            raise TypeError(f"mask must hold truth values, True where a pixel is known; got dtype {mask.dtype}")
        if shape == tuple(self.image.shape):
            return self._bands(mask, axis)
        if axis is None or shape != self.shape[1:]:
            raise ValueError(f"mask of shape {shape} does not fit an image of shape {tuple(self.image.shape)}")
        each = np.ones((self.shape[0], *(1,) * self.ndim), bool)
        return pixelwise(np.logical_and, self._bands(mask, None), each)

    def _bands(self, values: Any, channel_axis: int | None) -> BandedArray:
        """Something of the image's shape, or of one channel's, in bands."""
        keeper, shape, axis = self.keeper, _channels_first(values.shape, channel_axis), -self.ndim
        layout = Layout(keeper, axis, self.cuts)
        if isinstance(keeper, Folder):
            inbox = keeper.receive(shape, values.dtype, layout)
            _send(values, channel_axis, inbox)
            return BandedArray(layout, inbox.files, shape, values.dtype)
        from ell12.distributed.images import bands_on_workers

        parts = bands_on_workers(keeper, _moved(values, channel_axis), axis, self.cuts)
        return BandedArray(layout, parts, shape, values.dtype)

    def _as_dask(self, x: BandedArray) -> Any:
        from ell12.distributed.images import joined

        axis = x.ndim + x.device.axis
        shapes = [(*x.shape[:axis], height, *x.shape[axis + 1 :]) for height in x.device.heights]
        whole = joined(x.parts, shapes, x.dtype, axis, loaded)
        return _moved(whole, self.channel_axis, back=True).rechunk(self.image.chunks)

    def _as_zarr(self, x: BandedArray) -> Any:
        """An array in a temporary store, which is removed once nobody holds it."""
        import zarr

        folder, chunks = Folder(), tuple(self.image.chunks)
        try:
            store = zarr.storage.LocalStore(folder.path)
            weakref.finalize(store, methodcaller("close"), folder)
            result = zarr.create_array(store=store, shape=self.image.shape, chunks=chunks, dtype=x.dtype)
            for region in regions(self.image.shape, chunks):
                block = x[_channels_first(region, self.channel_axis)]
                result[region] = _moved(block, self.channel_axis, back=True)
        except BaseException:
            folder.close()
            raise
        return result


def _channels_first(items: Sequence[Any], channel_axis: int | None) -> tuple[Any, ...]:
    """Something for each axis, that of channels first."""
    rest = list(items)
    return tuple(rest if channel_axis is None else [rest.pop(channel_axis), *rest])


def _moved(block: Any, channel_axis: int | None, back: bool = False) -> Any:
    """An array, NumPy's or Dask's, with its channels first, or where they were."""
    if channel_axis is None:
        return block
    return np.moveaxis(block, *((0, channel_axis) if back else (channel_axis, 0)))


def _send(image: Any, channel_axis: int | None, inbox: Inbox) -> None:
    """Read the whole array, chunk by chunk, into files."""
    if hasattr(image, "__dask_graph__"):
        from ell12.distributed.images import store

        store(_moved(image, channel_axis), inbox)
        return
    for region in regions(image.shape, getattr(image, "chunks", image.shape)):
        inbox[_channels_first(region, channel_axis)] = _moved(np.asarray(image[region]), channel_axis)


def _filled(y: BandedArray, known: BandedArray, ndim: int, corner: Corner) -> BandedArray:
    """`ell12.restoration.images.filled` of bands: only means over 8 pixels along each axis are joined."""
    y, known = flipped(y, corner), flipped(known, corner)
    layout, each = y.device, [ndim] * len(y.parts)
    found = layout.keeper.run(_coarse, [y.parts, known.parts, each])[1]
    mean, some = (np.concatenate(parts, axis=layout.axis) for parts in zip(*found, strict=True))
    whole = mean if some.all() else filled(mean, some, ndim)
    heights = np.cumsum([part[0].shape[layout.axis] for part in found])[:-1]
    columns = [np.split(whole, heights, axis=layout.axis), y.parts, known.parts, each]
    (parts,), _ = layout.keeper.run(_fine, columns, kept=1)
    start = BandedArray(layout, parts, y.shape, y.dtype)
    columns = [image.neighbourhoods(PASSES, periodic=False) for image in (start, known)]
    (parts,), _ = layout.keeper.run(partial(_eased, ndim), columns, kept=1)
    return flipped(BandedArray(layout, parts, y.shape, y.dtype), corner)


def _eased(ndim: int, image: Neighbourhood, known: Neighbourhood) -> tuple[Array, None]:
    """`ell12.restoration.images.eased` of a band, by as many rows of its neighbours as there are passes."""
    whole, seen = (np.concatenate([part for part in parts if part is not None], -ndim) for parts in (image, known))
    first = 0 if image[0] is None else image[0].shape[-ndim]
    rows = slice(first, first + image[1].shape[-ndim])
    return eased(whole, seen, ndim)[(..., rows, *(slice(None),) * (ndim - 1))].copy(), None


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

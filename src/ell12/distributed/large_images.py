"""Images larger than memory: Dask and Zarr arrays, restored in bands of rows by `dask.array.map_overlap`."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed

from ell12 import restoration
from ell12.distributed.executor import active_client, compute, reaching
from ell12.protocols import Array
from ell12.restoration import TotalVariationL12
from ell12.restoration.pixels import as_pixels, block_means, filled
from ell12.restoration.smoothed_gradient import Momentum
from ell12.restoration.stencil import STEPS

# Pixels in a band, and in the middle of the image that chooses the strength. Each thread has some twenty arrays of
# the size of a band in memory, 80 MB in double precision (docs/decisions/studies.md).
PIXELS = 2**19


def denoise_tv(
    image: Any,
    alpha: float | None = None,
    *,
    penalty: TotalVariationL12 | None = None,
    channel_axis: int | None = None,
    tol: float = 0.05,
    max_iter: int = 5000,
) -> da.Array:
    """`ell12.denoise_tv` of a Dask or Zarr array that is larger than memory.

    The smoothed problem of the whole image is solved by the accelerated gradient method: a pass over the image
    takes four steps in each band of rows, which sees four rows of its neighbours, and the sums that decide over
    restarts and the end are those of the whole image. So there are no seams.

    Parameters
    ----------
    image : dask array or zarr array
        A real image of known shape.
    alpha : float, optional
        Strength. None takes the one that `ell12.denoise_tv` chooses for the middle of the image, of at most 2^19
        pixels.
    penalty : TotalVariationL12, optional
        Its shape; its own alpha and ndim are not used. By default that of the function for images in memory.
        Isotropic differences need ``l2_weight=0``.
    channel_axis : int, optional
        The axis of channels, each of which is restored by itself, colours too.
    tol, max_iter
        As in `ell12.denoise_tv`.

    Returns
    -------
    dask array
        The image with the chunks of the one given. What it reads lies on the workers of a Dask cluster, else in
        temporary files, as long as the array does; ``da.to_zarr`` stores it.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from ell12.distributed import denoise_tv
    >>> noisy = np.random.default_rng(0).normal(np.ones((64, 64)), 0.1)
    >>> bool(denoise_tv(da.from_array(noisy, chunks=32), 0.1).std().compute() < 0.03)
    True
    """
    return _restored(image, None, alpha, penalty, channel_axis, tol, max_iter)


def inpaint_tv(
    image: Any,
    mask: Any,
    alpha: float | None = None,
    *,
    penalty: TotalVariationL12 | None = None,
    channel_axis: int | None = None,
    tol: float = 0.005,
    max_iter: int = 5000,
) -> da.Array:
    """`ell12.inpaint_tv` of a Dask or Zarr array; see `denoise_tv`.

    Parameters
    ----------
    image, alpha, penalty, channel_axis, tol, max_iter
        As in `denoise_tv`. Missing pixels may hold anything.
    mask : dask, zarr or NumPy array of bool
        True where a pixel is known, of the shape of the image or of one channel.

    Returns
    -------
    dask array
        As `denoise_tv`.
    """
    penalty = TotalVariationL12(l2_weight=0.0, isotropic=True) if penalty is None else penalty
    return _restored(image, mask, alpha, penalty, channel_axis, tol, max_iter)


def _restored(
    image: Any, mask: Any, alpha: Any, penalty: Any, channel_axis: Any, tol: float, max_iter: int
) -> da.Array:
    image = _as_dask(image, "image", channel_axis)
    known = None if mask is None else _as_known(mask, image.shape, channel_axis)
    if alpha is None:
        parts = [_middle(part, channel_axis) for part in (image, known) if part is not None]
        choose = restoration.denoise_tv if mask is None else restoration.inpaint_tv
        found = choose(*parts, penalty=penalty, channel_axis=channel_axis, return_result=True)
        alpha, penalty = found.alpha, replace(found.penalty, smoothing=None) if penalty is None else penalty
    ndim, store = image.ndim - (channel_axis is not None), _Store()
    data = _data(image, known, channel_axis)
    (data,) = store.keep(data, chunks=_bands(data.shape, ndim))
    # Bands see the rows of four passes around them: so holes as wide are filled as in the whole image.
    start = data if known is None else _overlapped(partial(_filled, ndim=ndim), 4 * STEPS, False, ndim, data)
    (start,) = store.keep(start[:1])
    penalty = _penalty_for(start, alpha, penalty, ndim)
    state = start.map_blocks(penalty.project, dtype=start.dtype)
    strongly_convex, bounded = known is None, penalty.bounds is not None
    momentum = Momentum(1 + penalty.lipschitz, float(strongly_convex), plain=bounded, every=STEPS)
    for _ in range(max_iter):
        move = partial(_moved, penalty=penalty, steps=[momentum.next() for _ in range(STEPS)])
        moved = _overlapped(move, STEPS, penalty.boundary == "periodic", ndim, state, data)
        state, square, turn = store.keep(moved[:2], moved[2].sum(), moved[3].sum())
        if penalty.unit * math.sqrt(square / image.size) <= tol * penalty.alpha:
            break
        momentum.check(turn, square)
    else:
        message = f"the image was not restored to tol={tol:g} in max_iter={max_iter} iterations"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    restored = state[1] if channel_axis is None else da.moveaxis(state[1], 0, channel_axis)
    return restored.rechunk(image.chunks)


class _Store:
    """Where images lie between passes: on the workers of a cluster, else in temporary files without a name."""

    def __init__(self) -> None:
        self.client = active_client()

    def keep(self, array: da.Array, *sums: da.Array, chunks: Any = None) -> list[Any]:
        """The array, computed and kept in these chunks, and some sums, found in the same pass."""
        chunks = chunks or array.chunks
        if self.client is not None:
            with reaching(self.client):
                array, *persisted = dask.persist(array.rechunk(chunks), *sums)
            return [array, *compute(self.client, [total.to_delayed().item() for total in persisted])]
        file: Any = _File(array.shape, array.dtype)
        found = dask.compute(da.store(array, file, lock=False, compute=False), *sums)[1:]
        return [da.from_array(file, chunks=chunks, name=False, lock=False), *found]


class _File:
    """An array in a temporary file without a name; Dask would copy a memory map as a whole."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), dtype
        with tempfile.TemporaryFile(prefix="ell12-") as file:
            if hasattr(os, "posix_fallocate"):  # so that a full disk is an error here, and no crash later
                os.posix_fallocate(file.fileno(), 0, math.prod(shape) * dtype.itemsize)
            self.values: Any = np.memmap(file, dtype, "w+", shape=shape)

    def __getitem__(self, index: Any) -> Array:
        return np.asarray(self.values[index])

    def __setitem__(self, index: Any, values: Array) -> None:
        self.values[index] = values

    def __dask_tokenize__(self) -> int:
        return id(self)  # Dask would pickle all of it to find a name


def _overlapped(function: Any, depth: int, periodic: bool, ndim: int, *images: da.Array) -> da.Array:
    """What a function makes of bands that see some rows of their neighbours: four images of the same shape."""
    axis = images[0].ndim - ndim
    depths, boundary = {axis: min(depth, *images[0].chunks[axis])}, {axis: "periodic" if periodic else "none"}
    wider = [da.overlap.overlap(image, depths, boundary, allow_rechunk=False) for image in images]
    options = {"chunks": ((4,), *wider[0].chunks[1:]), "dtype": images[0].dtype, "meta": images[0]._meta}
    return da.overlap.trim_overlap(da.map_blocks(function, *wider, **options), depths, boundary)


def _moved(state: Array, data: Array, *, penalty: TotalVariationL12, steps: list[tuple[float, ...]]) -> Array:
    """Z and u after some steps; and at the z before the last one, what the sums over pixels decide by."""
    z, u, y, known = state[0], state[-1], data[0], data[1] if len(data) == 2 else 1
    for size, repeated, back in steps:
        before, gradient = (z, u), known * (z - y) + penalty.value_and_gradient(np.ascontiguousarray(z))[1]
        z = penalty.project(z - size * gradient + repeated * (z - u))
        u = penalty.project(before[0] - back * gradient) if back else before[0]
    left = gradient if penalty.bounds is None else before[0] - penalty.project(before[0] - gradient)
    return np.stack([z, u, left * left, gradient * (before[0] - before[1])])


def _data(image: da.Array, known: da.Array | None, channel_axis: int | None) -> da.Array:
    """The image, and where it is known, channels first."""
    y = da.map_blocks(as_pixels, image, dtype=as_pixels(np.zeros(1, image.dtype)).dtype)
    planes = [y] if known is None else [da.where(known, y, 0), known.astype(y.dtype)]
    return da.stack([plane if channel_axis is None else da.moveaxis(plane, channel_axis, 0) for plane in planes])


def _bands(shape: tuple[int, ...], ndim: int) -> tuple[Any, ...]:
    """The chunks of some images that are cut into bands of rows."""
    rows = shape[-ndim]
    height = max(16, PIXELS * rows // math.prod(shape[1:]) // 4 * 4)
    count = max(1, rows // height)
    heights = (height,) * (count - 1) + (rows - height * (count - 1),)
    return tuple(heights if axis == len(shape) - ndim else (size,) for axis, size in enumerate(shape))


def _filled(data: Array, ndim: int) -> Array:
    """The image with its missing pixels filled from known ones near them, four times."""
    return np.stack([filled(data[0], data[1] != 0, ndim)] * 4)


def _penalty_for(x: da.Array, alpha: float, penalty: TotalVariationL12 | None, ndim: int) -> TotalVariationL12:
    """The penalty with its strength, and with the smoothing that images in memory have."""
    bands = [delayed(_extent)(band, ndim) for band in x.to_delayed().ravel()]
    low, high, least, largest = np.transpose(compute(active_client(), bands))
    if not np.isfinite([least, largest]).all():
        raise ValueError("image holds NaN or infinity; give missing pixels to inpaint_tv")
    spread = max(high.max() - low.min(), (largest.max() - least.min()) / 4) or 1.0
    shape = replace(penalty or TotalVariationL12(), alpha=alpha, ndim=ndim)
    shape = replace(shape, smoothing=0.01 * spread) if shape.smoothing is None else shape
    if shape.smoothing == 0:
        raise ValueError("images larger than memory need smoothing > 0")
    return shape


def _extent(band: Array, ndim: int) -> list[float]:
    means = block_means(band, ndim)
    return [float(value) for value in (means.min(), means.max(), band.min(), band.max())]


def _as_dask(image: Any, name: str, channel_axis: int | None = None) -> da.Array:
    """A Dask, Zarr or NumPy array as a dask array, checked."""
    if not isinstance(image, da.Array):
        if hasattr(image, "__dask_graph__"):
            raise TypeError(f"{name} must be a Dask or Zarr array, got a Dask {type(image).__name__}")
        image = da.from_array(image, chunks=getattr(image, "chunks", "auto"), name=False)
    if any(map(math.isnan, image.shape)):
        raise ValueError(f"{name} has chunks of unknown shape: call {name}.compute_chunk_sizes() first")
    if channel_axis is not None and not (image.ndim > 1 and -image.ndim <= channel_axis < image.ndim):
        raise ValueError(f"channel_axis {channel_axis!r} is out of range for an image of shape {image.shape}")
    if image.dtype.kind == "c" or 0 in image.shape:
        raise ValueError(f"{name} must hold real numbers, got shape {image.shape} and dtype {image.dtype}")
    return image


def _as_known(mask: Any, shape: tuple[int, ...], channel_axis: int | None) -> da.Array:
    """The mask with the shape of the image."""
    known = _as_dask(mask, "mask")
    if known.dtype.kind != "b":
        raise TypeError(f"mask must hold truth values, True where a pixel is known; got dtype {known.dtype}")
    if known.ndim < len(shape) and channel_axis is not None:
        known = da.expand_dims(known, channel_axis)
    if known.ndim != len(shape) or any(own not in (1, size) for own, size in zip(known.shape, shape, strict=True)):
        raise ValueError(f"mask of shape {np.shape(mask)} does not fit an image of shape {shape}")
    return da.broadcast_to(known, shape)


def _middle(image: da.Array, channel_axis: int | None) -> Array:
    """The middle of an image, in memory."""
    axes = [axis for axis in range(image.ndim) if channel_axis is None or axis != channel_axis % image.ndim]
    share = min(1.0, (PIXELS / image.size) ** (1 / len(axes)))
    cut = [slice(None)] * image.ndim
    for axis in axes:
        margin = int(image.shape[axis] * (1 - share) / 2)
        cut[axis] = slice(margin, image.shape[axis] - margin)
    return compute(active_client(), [image[tuple(cut)].rechunk(-1).to_delayed().item()])[0]

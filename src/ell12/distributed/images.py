"""Images in bands on Dask's workers: where they come from, who works on them, and what comes back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from ell12.distributed.executor import LARGE_GRAPHS, active_client, compute, reaching
from ell12.protocols import Array


class Workers:
    """A keeper of bands, as `ell12.restoration.bands.arrays` asks for one: each is a task that a worker has done.

    What does not fit in their memory the workers lay down on their disks.
    """

    threads = 1  # a worker has threads of its own

    def __init__(self, client: Any) -> None:
        self.client = client

    def later(self, function: Callable[..., Array], *parts: Any, rowwise: bool = True) -> Delayed:  # noqa: ARG002
        """What the function makes of these parts, a task yet to be done."""
        return delayed(function, pure=False)(*parts)

    def rows(self, part: Any, axis: int, first: int, last: int | None) -> Delayed:
        """Some rows of a part, cut where it lies."""
        return self.later(_rows, part, axis, first, last)

    def run(
        self, function: Callable[..., tuple[Any, ...]], columns: Sequence[Sequence[Any]], kept: int = 0
    ) -> tuple[list[list[Delayed]], list[Any]]:
        """Call the function for all bands; the arrays that it returns stay on the workers."""
        call = delayed(_call, nout=kept + 1, pure=False)
        tasks = [call(function, *arguments) for arguments in zip(*columns, strict=True)]
        items = self.persist([task[i] for i in range(kept + 1) for task in tasks])
        found = [items[i * len(tasks) : (i + 1) * len(tasks)] for i in range(kept + 1)]
        return found[:kept], compute(self.client, found[kept])

    def settled(self, parts: Sequence[Delayed]) -> list[Delayed]:
        """The parts, kept as they are now: tasks would be done again in every pass."""
        return self.persist(parts)

    def persist(self, tasks: Sequence[Delayed]) -> list[Delayed]:
        """The tasks, to be done now and kept."""
        with reaching(self.client), dask.config.set(LARGE_GRAPHS):
            return list(dask.persist(*tasks, optimize_graph=False))

    def close(self) -> None:
        """Nothing to remove: what nobody holds any more the workers forget."""


def workers() -> Workers | None:
    """The workers of the active client; None without one."""
    client = active_client()
    return None if client is None else Workers(client)


def check_chunks(image: Any, name: str) -> None:
    """Raise unless this is an array whose chunks have known shapes."""
    if not isinstance(image, da.Array):
        raise TypeError(f"{name} must be a Dask array, got a Dask {type(image).__name__}")
    if any(map(math.isnan, image.shape)):
        raise ValueError(f"{name} has chunks of unknown shape: call {name}.compute_chunk_sizes() first")


def bands_on_workers(keeper: Workers, image: Any, axis: int, cuts: Sequence[int]) -> list[Delayed]:
    """An image, cut along one axis, whose bands stay on the workers."""
    whole = image if isinstance(image, da.Array) else da.from_array(image, chunks=-1)
    heights = tuple(np.diff(cuts).tolist())
    chunks = dict.fromkeys(range(whole.ndim), -1) | {axis % whole.ndim: heights}
    return keeper.persist(whole.rechunk(chunks).to_delayed().ravel().tolist())


def store(image: Any, target: Any) -> None:
    """Write an image chunk by chunk to something that takes slices."""
    da.store(image, target, lock=False, compute=True)


def joined(
    parts: Sequence[Any], shapes: Sequence[tuple[int, ...]], dtype: Any, axis: int, load: Callable[[Any], Array]
) -> da.Array:
    """An image of parts that tasks load, one behind the other along an axis."""
    arrays = [
        da.from_delayed(part if isinstance(part, Delayed) else delayed(load)(part, pure=False), shape, dtype)
        for part, shape in zip(parts, shapes, strict=True)
    ]
    return da.concatenate(arrays, axis=axis)


def _call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
    """What the function returns; views as copies, so that a worker keeps no more than what is looked at."""
    return tuple(
        np.array(item) if isinstance(item, np.ndarray) and item.base is not None else item
        for item in function(*arguments)
    )


def _rows(band: Array, axis: int, first: int, last: int | None) -> Array:
    if np.ndim(band) < -axis or band.shape[axis] == 1:  # the same for all rows
        return band
    return band[(..., slice(first, last), *(slice(None),) * (-1 - axis))].copy()

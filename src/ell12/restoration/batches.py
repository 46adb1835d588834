"""Images along a batch axis: each is restored by itself, as so many calls would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ell12.backend import is_array, namespace
from ell12.checks import check_axis, naming
from ell12.minimization import Status
from ell12.protocols import Array
from ell12.restoration.problems import Restoration, finished, numbered

Call = dict[str, Any]  # the arguments of a function of images, by name


def restore_each(function: Callable[..., Any], call: Call, *, whole: str = "") -> Any:
    """Call the function for each image along ``batch_axis`` of its first argument, and put the results together.

    ``call`` are the function's arguments in its order. The argument named ``whole``, a mask, is divided too where
    it has the shape of the batch, with or without channels.
    """
    name, *_ = call
    data, axis, channel_axis = (call.pop(key) for key in (name, "batch_axis", "channel_axis"))
    with naming(name):  # such as rows of different lengths
        data = data if is_array(data) else np.asarray(data)
    ndim = len(data.shape)
    check_axis(axis, "batch_axis")
    check_axis(channel_axis, "channel_axis")
    if not -ndim <= axis < ndim:
        raise ValueError(f"batch_axis {axis!r} is out of range for {name} of shape {tuple(data.shape)}")
    along = int(axis) % ndim
    if 0 in data.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(data.shape)}")
    channels = None if channel_axis is None else _without(channel_axis, along, ndim)
    asked, checkpoint = call.pop("return_result"), call.pop("checkpoint")
    masks = _masks(call.pop(whole), tuple(data.shape), along, channel_axis) if whole else None
    found = []
    for k in range(data.shape[along]):
        own = call | {name: _image(data, along, k), "channel_axis": channels, "return_result": True}
        own |= {} if masks is None else {whole: masks[k]}
        own |= {"checkpoint": None if checkpoint is None else numbered(Path(checkpoint), k)}
        found.append(function(**own))
        if call["stop"] is None and any(run.status is Status.STOPPED for run in found[-1].runs):
            raise KeyboardInterrupt  # the loop's answer to Ctrl-C, which ends the batch too
    image = namespace(found[0].image).stack([one.image for one in found], axis=int(axis))
    runs = tuple(run for one in found for run in one.runs)
    together = Restoration(image, tuple(one.alpha for one in found), tuple(one.noise for one in found), runs)
    return finished(together, asked, stacklevel=4)


def _without(channel_axis: int, batch_axis: int, ndim: int) -> int:
    """The axis of the channels in one image of the batch."""
    axis = int(channel_axis) + ndim if channel_axis < 0 else int(channel_axis)
    if axis == batch_axis:
        raise ValueError(f"batch_axis and channel_axis must be different axes, both are {axis}")
    if not 0 <= axis < ndim:
        raise ValueError(f"channel_axis {channel_axis!r} is out of range for a batch of {ndim} axes")
    return axis - (axis > batch_axis)


def _image(data: Array, axis: int, k: int) -> Array:
    return data[(slice(None),) * axis + (k, ...)]


def _masks(mask: Any, shape: tuple[int, ...], batch_axis: int, channel_axis: int | None) -> list[Any]:
    """The mask of each image: its own where the mask has the shape of the batch, else the same for all."""
    with naming("mask"):
        mask = mask if is_array(mask) else np.asarray(mask)
    count, along = range(shape[batch_axis]), batch_axis
    if channel_axis is not None and len(mask.shape) < len(shape):
        channels = int(channel_axis) % len(shape)
        shape, along = shape[:channels] + shape[channels + 1 :], batch_axis - (batch_axis > channels)
    return [_image(mask, along, k) if tuple(mask.shape) == shape else mask for k in count]

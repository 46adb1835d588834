"""Problems laid out as rows, one along the last axis.

Batches along any axes, groups of entries and one threshold per problem all become rows here, so that the proximal
kernel knows rows only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import (
    as_numpy,
    constant,
    indices_like,
    is_half,
    is_number,
    like,
    namespace,
)
from ell12.protocols import Array


def lay_out(z: Array, t: Any, weights: Any, axis: int | tuple[int, ...] | None) -> tuple[Array, Any, Any, Any]:
    """z, t and weights laid out with one problem along the last axis, and the way back.

    Half precision is laid out in single precision; the way back returns to it.
    """
    xp, shape, ndim = namespace(z), tuple(z.shape), len(z.shape)
    axes = tuple(range(ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if any(not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) < len(axes):
        raise ValueError(f"axis {axis} does not name different axes of z of shape {shape}")
    axes = tuple(a % ndim for a in axes)
    batch = tuple(a for a in range(ndim) if a not in axes)
    order = (*batch, *axes)
    batch_shape, moved = tuple(shape[a] for a in batch), tuple(shape[a] for a in order)
    length = math.prod(shape[a] for a in axes)
    back = tuple(sorted(range(ndim), key=order.__getitem__))

    def rows_of(a: Array) -> Array:
        return xp.reshape(xp.permute_dims(a, order), (*batch_shape, length))

    def restore(x: Array) -> Array:
        x = xp.permute_dims(xp.reshape(x, moved), back)
        return xp.astype(x, z.dtype) if is_half(z) else x

    work = as_single(z)
    w_rows = None if weights is None else rows_of(xp.broadcast_to(like(weights, work), shape))
    return rows_of(work), thresholds(t, work, shape, axes), w_rows, restore


def thresholds(t: Any, z: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """One threshold for all problems, or one per problem with a last axis of length 1, of the kind of z.

    ``shape`` is that of all problems, and ``axes`` are those of one problem.
    """
    if is_number(t):
        return float(t)
    t, batch_shape = like(t, z), tuple(n for a, n in enumerate(shape) if a not in axes)
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape))
    if tuple(t.shape) not in ((), batch_shape, kept):
        got = tuple(t.shape)
        raise ValueError(f"t must be a number or of shape {batch_shape}, one per problem; got shape {got}")
    return t if t.shape == () else namespace(t).reshape(t, (*batch_shape, 1))


def as_single(z: Array) -> Array:
    """Half precision, which holds no sum of squares, as single precision; anything else as it is."""
    return namespace(z).astype(z, namespace(z).float32) if is_half(z) else z


def row_norms(rows: Array) -> Array:
    """Euclidean norms along the last axis (kept), scaled so that squares are safe, differentiable at zero."""
    xp = namespace(rows)
    size = xp.abs(rows)
    top = constant(xp.max(size, axis=-1, keepdims=True))
    scale = xp.where(top > 0, top, 1)
    square = xp.sum((size / scale) ** 2, axis=-1, keepdims=True)
    return xp.where(top == 0, 0, scale * xp.sqrt(xp.where(top == 0, 1, square)))


@dataclass(frozen=True)
class GroupRows:
    """Groups laid out as rows, padded to the longest, so that group norms are row norms."""

    members: Any  # for each group the indices of its entries
    real: Any  # which of them are not padding
    place: Any  # for each entry where it stands among the members, flattened


def group_rows(groups: Any) -> GroupRows:
    """The layout of groups numbered 0, 1, ...; computed once where one prox after the other uses it."""
    if isinstance(groups, GroupRows):
        return groups
    labels = as_numpy(groups)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise ValueError("groups must hold one integer per entry")
    labels = labels.astype(np.int64)
    counts = np.bincount(labels) if labels.size and labels.min() >= 0 else np.zeros(labels.size, dtype=int)
    if np.any(counts == 0):
        raise ValueError("groups must be numbered 0, 1, ... without gaps")
    width, order = int(counts.max(initial=0)), np.argsort(labels, kind="stable")
    slot = np.arange(labels.size) - (np.cumsum(counts) - counts)[labels[order]]
    members = np.zeros((counts.size, width), dtype=np.int64)
    real = np.zeros((counts.size, width), dtype=bool)
    members[labels[order], slot] = order
    real[labels[order], slot] = True
    place = np.empty(labels.size, dtype=np.int64)
    place[order] = labels[order] * width + slot
    return GroupRows(members, real, place)


def grouped(z: Array, groups: GroupRows) -> Array:
    """The entries of z laid out one group per row, zeros as padding."""
    if tuple(z.shape) != groups.place.shape:
        entries = groups.place.size
        raise ValueError(f"groups has {entries} entries, which does not fit z of shape {tuple(z.shape)}")
    xp = namespace(z)
    flat = xp.take(z, indices_like(groups.members.reshape(-1), z), axis=0)
    return xp.where(indices_like(groups.real, z), xp.reshape(flat, groups.members.shape), 0)


def group_norms(z: Array, groups: Any) -> Array:
    """The Euclidean norm of each group of entries of z."""
    return row_norms(grouped(z, group_rows(groups)))[:, 0]

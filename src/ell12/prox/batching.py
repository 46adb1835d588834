"""Batches, groups and axes laid out as rows of one matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ell12.backend import (
    as_array_of,
    as_numpy,
    device,
    indices_like,
    is_half,
    is_number,
    is_numpy,
    namespace,
    refuse_masked,
    stop_gradient,
)
from ell12.backend import compiled_code as cuda
from ell12.checks import naming
from ell12.protocols import Array
from ell12.prox.cuda_rows import norms_on_gpu


def lay_out(z: Array, t: Any, weights: Any, axis: int | tuple[int, ...] | None) -> tuple[Array, Any, Any, Any]:
    """z, t and weights laid out with one problem along the last axis, and the way back.

    Half precision is laid out in single precision; the way back returns to it.
    """
    xp, shape, ndim = namespace(z), tuple(z.shape), len(z.shape)
    with naming("axis"):
        axes = normalize_axis_tuple(range(ndim) if axis is None else axis, ndim)
    last = tuple(range(ndim - len(axes), ndim))
    moved = xp.moveaxis(z, axes, last).shape

    def rows_of(a: Array) -> Array:
        return xp.reshape(
            xp.moveaxis(a, axes, last), (*moved[: ndim - len(axes)], math.prod(shape[a] for a in axes))
        )

    def restore(x: Array) -> Array:
        x = xp.moveaxis(xp.reshape(x, moved), last, axes)
        return xp.astype(x, z.dtype) if is_half(z) else x

    work = as_single(z)
    w_rows = None if weights is None else rows_of(xp.broadcast_to(as_array_of(weights, work), shape))
    return rows_of(work), thresholds(t, work, shape, axes), w_rows, restore


def thresholds(t: Any, z: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """One threshold for all problems, or one per problem with a last axis of length 1, of the kind of z.

    ``shape`` is that of all problems, and ``axes`` are those of one problem.
    """
    if is_number(t):
        return float(t)
    t, batch_shape = as_array_of(t, z), tuple(n for a, n in enumerate(shape) if a not in axes)
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape))
    if tuple(t.shape) not in ((), batch_shape, kept):
        got = tuple(t.shape)
        raise ValueError(f"t must be a number or of shape {batch_shape}, one per problem; got shape {got}")
    return t if t.shape == () else namespace(t).reshape(t, (*batch_shape, 1))


def as_single(z: Array) -> Array:
    """Half precision, which holds no sum of squares, as single precision; anything else as it is."""
    return namespace(z).astype(z, namespace(z).float32) if is_half(z) else z


def as_decomposable(Z: Array) -> Array:
    """``Z`` in a precision that has singular values: half as single precision, extended as double."""
    extended = {"float128": np.float64, "complex256": np.complex128}.get(str(Z.dtype)) if is_numpy(Z) else None
    return as_single(Z) if extended is None else Z.astype(extended)


def row_norms(rows: Array) -> Array:
    """Euclidean norms along the last axis (kept), scaled so that squares are safe, differentiable at zero."""
    norms = None if is_numpy(rows) else norms_on_gpu(rows)
    return plain_row_norms(rows) if norms is None else norms


def plain_row_norms(rows: Array) -> Array:
    """`row_norms` without branches: the reference of the kernel in tests."""
    xp = namespace(rows)
    size = xp.abs(rows)
    top = stop_gradient(xp.max(size, axis=-1, keepdims=True))
    scale = xp.where(top > 0, top, 1)
    square = xp.sum((size / scale) ** 2, axis=-1, keepdims=True)
    return xp.where(top == 0, 0, scale * xp.sqrt(xp.where(top == 0, 1, square)))


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of the entries of a vector, laid out once for one prox after the other.

    Groups of similar sizes share one array of rows, padded to the longest of them. A group is less than twice as
    long as another of its array, so that all rows together hold fewer than two numbers for each entry.
    """

    labels: Any  # for each entry the number of its group
    first: Any  # which entries are the first of their group
    rows: tuple[tuple[Any, Any], ...]  # entries, a group in each row; which are not padding, None if all
    order: Any  # for each group where its row is among the rows of all arrays
    _sent: dict[Any, Any] = field(default_factory=dict, repr=False)  # indices on devices: sent once for all proxes

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.order.size

    def check_shape(self, shape: tuple[int, ...], name: str) -> None:
        """Raise where there is not one label for each entry of an array of this shape."""
        if shape != self.labels.shape:
            entries = self.labels.size
            raise ValueError(f"groups has {entries} entries, which does not fit {name} of shape {shape}")

    def norms(self, z: Array) -> Array:
        """The Euclidean norm of each group."""
        xp, z = namespace(z), as_single(z)
        if not self.rows:
            return xp.abs(z)
        found = []
        for entries, real in self.rows:
            rows = xp.reshape(xp.take(z, xp.reshape(self._on_device_of(entries, z), (-1,)), axis=0), entries.shape)
            rows = rows if real is None else xp.where(self._on_device_of(real, z), rows, 0)
            found.append(row_norms(rows)[:, 0])
        return xp.take(xp.concat(found), self._on_device_of(self.order, z), axis=0)

    def spread(self, values: Array) -> Array:
        """One number for each group, at every entry of the group."""
        return namespace(values).take(values, self._on_device_of(self.labels, values), axis=0)

    def rebuild(self, z: Array, norms: Array, new: Array) -> Array:
        """The groups of z, whose norms are given, with new norms and the same directions.

        A group of zeros that must grow (``l2_weight`` above its weight) grows along its first entry.
        """
        xp, some = namespace(z), self.spread(norms > 0)
        unit = z / self.spread(stop_gradient(xp.where(norms > 0, norms, 1)))
        length = self.norms(unit)  # not 1 where the norm of z is so small that it has few digits
        unit = unit / self.spread(xp.where(norms > 0, length, 1))
        first = xp.astype(self._on_device_of(self.first, z), z.dtype)
        return xp.astype(self.spread(new) * xp.where(some, unit, first), z.dtype, copy=False)

    def _on_device_of(self, indices: Any, z: Array) -> Array:
        """Indices or truth values of this layout as an array of the kind and device of z."""
        if not cuda.on_gpu(z):
            return indices_like(indices, z)
        key = (id(indices), type(z), str(device(z)))
        if key not in self._sent:
            self._sent[key] = indices_like(indices, z)
        return self._sent[key]

    def __repr__(self) -> str:
        return f"{self.count} groups"

    def __getstate__(self) -> dict[str, Any]:
        """All but what is on devices."""
        return self.__dict__ | {"_sent": {}}


def as_groups(groups: Any) -> Groups:
    """The layout of groups with these labels, in the order of the sorted labels, or the layout itself."""
    if isinstance(groups, Groups):
        return groups
    refuse_masked(groups, "groups")
    with naming("groups"):
        labels = as_numpy(groups)
        if labels.ndim != 1:
            raise ValueError(f"groups must hold one label for each entry, got shape {labels.shape}")
        try:
            labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        except TypeError as error:
            raise ValueError(f"groups must hold labels that can be sorted: {error}") from error
    counts, entries = np.bincount(labels), np.argsort(labels, kind="stable")
    starts = np.cumsum(counts) - counts
    first = np.zeros(labels.size, dtype=bool)
    first[entries[starts]] = True
    kinds = np.frexp(counts)[1]  # the binary digits of the sizes
    rows, numbers = [], []
    for kind in np.unique(kinds):
        numbers.append(np.flatnonzero(kinds == kind))
        sizes, begin = counts[numbers[-1], None], starts[numbers[-1], None]
        slots = np.arange(sizes.max())
        real = slots < sizes
        rows.append((entries[begin + np.where(real, slots, 0)], None if real.all() else real))
    order = np.argsort(np.concatenate(numbers)) if numbers else np.empty(0, dtype=np.int64)
    return Groups(labels, first, tuple(rows), order)

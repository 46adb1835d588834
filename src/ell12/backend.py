"""Arrays of any kind: which namespace they belong to, and the few reductions that solvers need.

The only module that imports array-api-compat. NumPy, PyTorch, CuPy and JAX arrays go in, the same kind,
dtype and device come out. Reductions return Python floats, so that solvers read as the mathematics does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat.numpy
import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_array_api_strict_namespace,
    is_jax_namespace,
    is_torch_namespace,
)

from ell12.protocols import Array


def namespace(*arrays: Array) -> Any:
    """The array API namespace that the arrays share."""
    if all(type(a) is np.ndarray for a in arrays):  # the common case, without the price of finding out
        return array_api_compat.numpy
    return array_namespace(*(a for a in arrays if is_array_api_obj(a)))


def is_numpy(x: Array) -> bool:
    """Whether x is a NumPy array, for which a faster path may exist."""
    return type(x) is np.ndarray


def is_complex(x: Array) -> bool:
    """Whether x holds complex numbers."""
    return bool(namespace(x).isdtype(x.dtype, "complex floating"))


def as_floating(x: Any, name: str) -> Array:
    """``x`` as a real or complex floating array: lists become NumPy arrays, integers the default float."""
    if isinstance(x, np.generic) or not is_array_api_obj(x):
        x = np.asarray(x)
    if is_numpy(x) and x.dtype.kind in "fc":
        return x
    if is_numpy(x) and x.dtype.kind not in "biu":
        raise TypeError(f"{name} must hold numbers, got dtype {x.dtype}")
    xp = namespace(x)
    if xp.isdtype(x.dtype, ("real floating", "complex floating")) or is_half(x):
        return x
    return xp.astype(x, xp.asarray(0.0).dtype)


def is_half(x: Array) -> bool:
    """Whether x is in half precision, which holds neither sums of squares nor their roots."""
    return str(x.dtype).endswith("float16")


def constant(x: Array) -> Array:
    """``x`` without its derivative: for scales that cancel, whose own derivatives could overflow."""
    xp = namespace(x)
    if is_torch_namespace(xp):
        return x.detach()
    if is_jax_namespace(xp):
        from jax.lax import stop_gradient

        return stop_gradient(x)
    return x


def number_like(value: Any, x: Array) -> Any:
    """A plain number as a float, which never widens the dtype of x; anything else as `like`."""
    return float(value) if is_number(value) else like(value, x)


def like(value: Any, x: Array) -> Array:
    """``value`` as an array of the kind, device and real dtype of x (its derivative, if any, is kept)."""
    dtype = real_dtype(x)
    if is_array_api_obj(value) and not isinstance(value, np.ndarray | np.generic):
        return value if value.dtype == dtype else namespace(x).astype(value, dtype)
    return _send(np.asarray(value, dtype=np.float64), x, dtype=dtype)


def indices_like(value: np.ndarray, x: Array) -> Array:
    """A NumPy array of integers or truth values as an array of the kind and device of x."""
    return _send(value, x)


def positions(x: Array) -> Array:
    """``0, 1, ..., n - 1`` along the last axis of x, on its device."""
    xp = namespace(x)
    if is_jax_namespace(xp):  # a traced array has no device
        return xp.arange(x.shape[-1])
    return xp.arange(x.shape[-1], device=device(x))


def _send(value: np.ndarray, x: Array, **dtype: Any) -> Array:
    xp = namespace(x)
    if is_jax_namespace(xp):
        return xp.asarray(value, **dtype)
    return xp.asarray(value, **dtype, device=device(x))


def real_dtype(x: Array) -> Any:
    """The dtype of the modulus of x."""
    xp = namespace(x)
    if x.dtype == getattr(xp, "complex64", None):
        return xp.float32
    if x.dtype == getattr(xp, "complex128", None):
        return xp.float64
    return x.dtype


def is_number(value: Any) -> bool:
    """Whether value is a plain real number rather than an array."""
    return isinstance(value, int | float | np.integer | np.floating)


def inner(x: Array, y: Array) -> float:
    """The real inner product ``Re <x, y>`` over all entries."""
    if is_numpy(x):
        return float(np.vdot(x, y).real)
    xp = namespace(x, y)
    product = xp.vecdot(xp.reshape(x, (-1,)), xp.reshape(y, (-1,)))
    return float(xp.real(product) if is_complex(x) else product)


def norm(x: Array) -> float:
    """The Euclidean norm over all entries, without overflow or underflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = inner(x, x)
    if safe_square(square, x):
        return math.sqrt(square)
    largest = max_abs(x)
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(inner(x / largest, x / largest))


def safe_square(square: float, x: Array) -> bool:
    """Whether a sum of squares of x neither overflowed nor lost digits to underflow."""
    tiny, huge = _square_range(x.dtype)
    return tiny < square < huge


@lru_cache(typed=True)  # dtypes of different libraries must not be compared
def _square_range(dtype: Any) -> tuple[float, float]:
    return (1e-270, 1e300) if str(dtype).endswith(("float64", "complex128")) else (1e-22, 1e37)


def row_norms(rows: Array) -> Array:
    """Euclidean norms along the last axis (kept), scaled so that squares are safe, differentiable at zero."""
    xp = namespace(rows)
    size = xp.abs(rows)
    top = constant(xp.max(size, axis=-1, keepdims=True))
    scale = xp.where(top > 0, top, 1)
    square = xp.sum((size / scale) ** 2, axis=-1, keepdims=True)
    return xp.where(top == 0, 0, scale * xp.sqrt(xp.where(top == 0, 1, square)))


def max_abs(x: Array) -> float:
    """The largest modulus of the entries; 0 for an empty array."""
    if is_numpy(x):
        return float(np.abs(x).max(initial=0.0))
    xp = namespace(x)
    return float(xp.max(xp.abs(x))) if math.prod(x.shape) else 0.0


def all_finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite; one pass without temporaries where the answer is yes."""
    xp = namespace(x)
    if is_numpy(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(np.sum(x))) or bool(np.isfinite(x).all())
    return bool(xp.all(xp.isfinite(x)))


def scatter(values: Array, indices: Array, size: int) -> Array:
    """Return a vector of ``size`` zeros with ``values`` at the given, different, ``indices``."""
    xp = namespace(values)
    if is_jax_namespace(xp):
        return xp.zeros(size, dtype=values.dtype).at[indices].set(values)
    zeros = xp.zeros(size, dtype=values.dtype, device=device(values))
    if not is_array_api_strict_namespace(xp):
        zeros[indices] = values
        return zeros
    for i in range(values.shape[0]):  # the bare standard assigns no array of indices
        zeros[int(indices[i])] = values[i]
    return zeros


def as_rows(z: Array, t: Any, weights: Any, axis: int | tuple[int, ...] | None) -> tuple[Array, Any, Any, Any]:
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

    work = xp.astype(z, xp.float32) if is_half(z) else z
    t_rows = float(t) if is_number(t) else _t_as_rows(like(t, work), batch_shape, shape, axes)
    w_rows = None if weights is None else rows_of(xp.broadcast_to(like(weights, work), shape))
    return rows_of(work), t_rows, w_rows, restore


def _t_as_rows(t: Array, batch_shape: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """One threshold per problem, with a last axis of length 1."""
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape))
    if tuple(t.shape) not in ((), batch_shape, kept):
        got = tuple(t.shape)
        raise ValueError(f"t must be a number or of shape {batch_shape}, one per problem; got shape {got}")
    xp = namespace(t)
    return t if t.shape == () else xp.reshape(t, (*batch_shape, 1))


def check_numbers(**arguments: Any) -> None:
    """Raise, with the argument's name, on anything but real numbers >= 0, finite ones except for weights.

    Arrays of other libraries are trusted: looking would wait for the device, or break a trace.
    """
    for name, value in arguments.items():
        if is_number(value) and 0 <= value < math.inf:
            continue
        if name == "l2_weight" and np.shape(value) != ():
            raise ValueError(f"l2_weight must be one number, got shape {tuple(np.shape(value))}")
        foreign = is_array_api_obj(value) and not isinstance(value, np.ndarray | np.generic)
        if not (foreign or (value is None and name == "weights")):
            _check_values(name, value)


def _check_values(name: str, value: Any) -> None:
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {value!r}")
    # One pass each; the initial value serves empty arrays, and a NaN fails both comparisons.
    if numbers.min(initial=0) >= 0 and (name == "weights" or numbers.max(initial=0) < math.inf):
        return
    if numbers.ndim == 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value}")
    raise ValueError(f"{name} must hold {'' if name == 'weights' else 'finite '}numbers >= 0 only")


def check_weights(weights: Any, shape: tuple[int, ...]) -> None:
    """Raise if weights do not broadcast to the shape of z."""
    if weights is None:
        return
    try:
        fits = np.broadcast_shapes(np.shape(weights), shape) == shape
    except ValueError:
        fits = False
    if not fits:
        got = tuple(np.shape(weights))
        raise ValueError(f"weights of shape {got} do not broadcast to z of shape {shape}")


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
    labels = np.asarray(groups)
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

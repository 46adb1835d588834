"""The closed form of the proximal operator (Yao, Kwok & Guo, arXiv:1610.09461, Proposition III.5), unchecked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import (
    arange_like,
    as_array_of,
    is_complex,
    is_number,
    namespace,
    safe_square,
    stop_gradient,
)
from ell12.backend.compiled_code import COMPILED_FROM, can_compile
from ell12.protocols import Array
from ell12.prox.batching import Groups, as_single
from ell12.prox.cuda_rows import prox_on_gpu


def prox_vector(z: Array, t: float, l2_weight: float, weights: Any = None, positive: bool = False) -> Array:
    """All entries of z as one problem, by the fastest way there is for its kind of array.

    ``weights`` broadcast against z. Half precision is computed in single precision.
    """
    is_plain = type(z) is np.ndarray and z.size > 0 and isinstance(t, float) and isinstance(l2_weight, float)
    x = quick_prox(z, t, l2_weight, weights, positive) if is_plain else None
    if x is not None:
        return x
    xp = namespace(z)
    if math.prod(z.shape) == 0:
        return xp.asarray(z, copy=True)
    work = as_single(z)
    if weights is not None:
        weights = xp.reshape(xp.broadcast_to(as_array_of(weights, work), tuple(z.shape)), (-1,))
    x = xp.reshape(prox_rows(xp.reshape(work, (-1,)), t, l2_weight, weights, positive), tuple(z.shape))
    return xp.astype(x, z.dtype, copy=False)


def prox_rows(rows: Array, t: Any, l2_weight: Any, weights: Array | None = None, positive: bool = False) -> Array:
    """One problem along the last axis (Yao et al., Proposition IV.3); ``t`` may have a last axis of length 1."""
    x = None
    if type(rows) is not np.ndarray:
        x = prox_on_gpu(rows, t, l2_weight, weights, positive)
    elif (
        (weights is None and not positive and is_number(t) and is_number(l2_weight))
        and (rows.size >= COMPILED_FROM and rows.dtype.char in "fd")
        and can_compile()
    ):
        from ell12.prox import rows_compiled as compiled

        x = compiled.prox_rows(rows, t, l2_weight)
    return x if x is not None else plain_prox_rows(rows, t, l2_weight, weights, positive)


@np.errstate(over="ignore", invalid="ignore")  # as silent as the other libraries; inf and NaN tell enough
def plain_prox_rows(z: Array, t: Any, l2_weight: Any, weights: Array | None, positive: bool) -> Array:
    """`prox_rows` without branches, to be differentiated and traced: the reference of the fast ways in tests."""
    xp = namespace(z)
    size = z if positive else _modulus(xp, z)
    if weights is not None:
        size, weights = _without_infinite(xp, size, weights)
    u = size - (t if weights is None else t * weights)
    # Case one, some u is positive. Scaled by the largest, so that no square overflows or underflows; 1 stands in
    # for what would divide by zero. A NaN is found by the sum (some libraries' max drops it) and comes out here.
    top = stop_gradient(xp.max(u, axis=-1, keepdims=True))
    above = xp.where(u < 0, 0, u)
    scaled = above / xp.where(top > 0, top, 1)
    square = xp.sum(scaled * scaled, axis=-1, keepdims=True)
    some = (top > 0) | xp.isnan(square)
    length = xp.sqrt(xp.where(some, square, 1))
    several = above + l2_weight * (t * (scaled / length))
    # Case two, none is: the first largest stays. (|z| and x order as u does, and round no more than x does.)
    grown = size + t * (l2_weight - (1.0 if weights is None else weights))
    largest = xp.argmax(size if weights is None else grown, axis=-1, keepdims=True)
    single = xp.where((arange_like(z) == largest) & (grown > 0), grown, 0)
    x = xp.where(some, several, single)
    return x if positive else with_signs(xp, x, z, size)


def _modulus(xp: Any, z: Array) -> Array:
    """``|z|``, where z is real with derivative 1 at zero: what has weight 0 passes, with its derivative."""
    return xp.abs(z) if type(z) is np.ndarray or is_complex(z) else xp.where(z < 0, -z, z)


def _without_infinite(xp: Any, size: Array, weights: Array) -> tuple[Array, Array]:
    """Sizes and weights with no product 0 * inf: an entry of weight inf becomes one that never enters."""
    fixed = xp.isinf(weights) & ~xp.isnan(size)
    return xp.where(fixed, -math.inf, size), xp.where(fixed, 0, weights)


def with_signs(xp: Any, x: Array, z: Array, size: Array) -> Array:
    """The magnitudes x with the signs (phases) of z, + where z is zero."""
    if not is_complex(z):
        return xp.where(z < 0, -x, x)
    large = xp.where(size < 1e-18, xp.full_like(size, 2.0**64), 1.0)  # dividing by a subnormal number overflows
    unit = xp.where(size > 0, (large * z) / stop_gradient(xp.where(size > 0, large * size, 1)), 1)
    return x * (unit / xp.abs(unit))


def prox_groups(z: Array, t: Any, groups: Groups, l2_weight: Any, weights: Any = None) -> Array:
    """The norms of groups of entries as one problem; the groups keep their directions."""
    norms = groups.norms(z)
    return groups.rebuild(z, norms, prox_vector(norms, t, l2_weight, weights, positive=True))


def prox_spectral(Z: Array, t: Any, l2_weight: Any) -> Array:
    """The singular values as one problem (Yao et al., Proposition IV.1); ``t`` as in `prox_rows`."""
    xp = namespace(Z)
    finite = xp.all(xp.isfinite(Z), axis=(-2, -1), keepdims=True)
    U, s, Vh = xp.linalg.svd(xp.where(finite, Z, 0), full_matrices=False)
    s = prox_rows(s, t, l2_weight, positive=True)
    return xp.where(finite, (U * xp.astype(s, U.dtype)[..., None, :]) @ Vh, math.nan)


def largest_direction(z: Array, t: float, weights: Any, positive: bool) -> Array:
    """The signed unit vector along the first largest ``|z_i| - t w_i``."""
    xp = namespace(z)
    size = z if positive else xp.abs(z)
    order = size
    if weights is not None:
        size, weights = _without_infinite(xp, size, xp.broadcast_to(as_array_of(weights, z), tuple(z.shape)))
        order = size - t * weights
    largest = xp.argmax(xp.reshape(order, (-1,)))
    unit = xp.reshape(xp.astype(arange_like(xp.reshape(z, (-1,))) == largest, size.dtype), tuple(z.shape))
    return unit if positive else with_signs(xp, unit, z, size)


# Sums of squares are taken over pieces of this many entries. BLAS shares longer ones among threads, which wait for
# each other on a busy machine.
BLOCK = 10_000


@np.errstate(over="ignore", invalid="ignore")
def quick_prox(z: Any, t: float, l2_weight: float, weights: Any, positive: bool) -> Any:
    """`ell12.prox.closed_form.prox_vector` of a NumPy array in few passes; None where the general kernel must."""
    # NumPy makes scalars of arrays without axes, and NaN of 0 * inf.
    if z.dtype.char not in "fd" or z.ndim == 0 or (t == 0 and weights is not None):
        return None
    if positive:
        x = np.subtract(z, t if weights is None else t * np.asarray(weights, z.dtype), order="C")
        np.maximum(x, 0, out=x)
    elif weights is None:
        x = np.clip(z, -t, t, order="C")
        np.subtract(z, x, out=x)
    else:
        x = np.abs(z, order="C")
        x -= t * np.asarray(weights, z.dtype)
        np.maximum(x, 0, out=x)
        np.copysign(x, z, out=x)
    square = _sum_of_squares(x.reshape(-1))
    if safe_square(square, x):
        x *= 1.0 + l2_weight * t / math.sqrt(square)
        return x
    if weights is None and not positive and not x.any():
        largest = np.unravel_index(np.argmax(np.abs(z, order="C")), z.shape)
        x[largest] = math.copysign(max(abs(float(z[largest])) + t * (l2_weight - 1.0), 0.0), z[largest] + 0.0)
        return x
    return None


def _sum_of_squares(flat: Any) -> float:
    """The sum of squares, in pieces that BLAS sums with one thread."""
    if flat.size <= BLOCK:
        return float(flat.dot(flat))
    return sum(_sum_of_squares(flat[i : i + BLOCK]) for i in range(0, flat.size, BLOCK))

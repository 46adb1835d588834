"""Closed-form proximal operators of the l1-2 penalty, as pure functions.

Every variant is one kernel applied to other thresholds and other moduli: vectors, batches along axes,
weights, non-negative and complex data, groups, singular values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import (
    as_floating,
    constant,
    indices_like,
    is_complex,
    is_half,
    is_number,
    is_numpy,
    namespace,
    norm,
    number_like,
    positions,
)
from ell12.backend.compiling import can_compile
from ell12.checks import check_numbers, check_weights
from ell12.protocols import Array
from ell12.prox.layout import as_rows, group_rows, grouped, row_norms
from ell12.prox.vector import prox_vector

COMPILED_FROM = 2**17  # entries from which a batch of short problems pays for loading the compiled loop


def soft_threshold(z: Array, t: Any) -> Array:
    """Shrink every entry towards zero: ``sign(z) max(|z| - t, 0)``, the prox of ``t ||x||_1``.

    Examples
    --------
    >>> soft_threshold([3.0, -0.5, -2.0], 1.0)
    array([ 2.,  0., -1.])
    """
    return prox_l12(z, t, l2_weight=0.0)


def prox_l12(
    z: Array,
    t: Any,
    *,
    l2_weight: Any = 1.0,
    weights: Any = None,
    nonnegative: bool = False,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    r"""Global minimiser of ``1/2 ||x - z||^2 + t (sum_i w_i |x_i| - l2_weight ||x||_2)``.

    With ``u_i = |z_i| - t w_i``: where some u is positive the solution is ``u+ + l2_weight t u+ / ||u+||``;
    where none is, it keeps one entry, the first largest ``u_j``, at ``max(u_j + l2_weight t, 0)``. Signs
    (phases) are those of z, and + where z is zero.

    Parameters
    ----------
    z : array
        NumPy, PyTorch, CuPy or JAX; real or complex; integers count as floats. NaN or inf in, NaN out.
    t : float or array
        Threshold, at least 0. An array gives one per problem: its shape is that of z without `axis`
        (or with `axis` kept at length 1).
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 is soft-thresholding.
    weights : array, optional
        Weights of the l1 norm, at least 0, broadcast against z; ``inf`` holds an entry at zero.
    nonnegative : bool
        Minimise over ``x >= 0``.
    axis : int or tuple of int, optional
        The axes of one problem; the others count problems. By default all of z is one problem.

    Returns
    -------
    array
        Same kind, shape, dtype and device as z.

    References
    ----------
    Lou & Yan, Fast L1-L2 minimization via a proximal operator, doi:10.1007/s10915-017-0463-2.

    Examples
    --------
    >>> prox_l12([3.0, -4.0, 0.5], 1.0)
    array([ 2.5547002 , -3.83205029,  0.        ])
    >>> prox_l12([0.2, -0.7], 1.0)
    array([ 0. , -0.7])
    """
    z = as_floating(z, "z")
    check_numbers(t=t, l2_weight=l2_weight, weights=weights)
    check_weights(weights, tuple(z.shape))
    if nonnegative and is_complex(z):
        raise TypeError("nonnegative=True needs real z, got complex numbers")
    if math.prod(z.shape) == 0:
        return namespace(z).asarray(z, copy=True)
    if axis is None:
        x = prox_vector(z, t, l2_weight, weights, nonnegative)
        if x is not None:
            return x
    rows, t_rows, w_rows, restore = as_rows(z, t, weights, axis)
    if weights is None and not nonnegative and is_numpy(rows) and is_number(t) and is_number(l2_weight):
        x = _prox_rows_compiled(rows, float(t), float(l2_weight))
        if x is not None:
            return restore(x)
    return restore(_prox_rows(rows, t_rows, number_like(l2_weight, rows), w_rows, nonnegative))


def moreau_l12(
    z: Array,
    t: Any,
    *,
    l2_weight: Any = 1.0,
    weights: Any = None,
    nonnegative: bool = False,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """Smallest value of ``1/2 ||x - z||^2 + t (sum_i w_i |x_i| - l2_weight ||x||_2)``, per problem.

    Parameters are those of `prox_l12`. The value is summed at the minimiser, which keeps digits that the
    shorter ``1/2 ||z||^2 - 1/2 ||x||^2`` cancels.

    Returns
    -------
    array
        The shape of z without `axis` (zero-dimensional by default); half precision gives single.

    Examples
    --------
    >>> float(moreau_l12([3.0, 4.0], 0.0))
    0.0
    >>> float(moreau_l12([0.0, 0.5], 1.0))
    0.0
    """
    z = as_floating(z, "z")
    x = prox_l12(z, t, l2_weight=l2_weight, weights=weights, nonnegative=nonnegative, axis=axis)
    rows, t_rows, w_rows, _ = as_rows(z, t, weights, axis)
    x_rows, _, _, _ = as_rows(x, t, None, axis)
    xp = namespace(rows)
    if rows.shape[-1] == 0:
        return xp.sum(xp.abs(rows), axis=-1)
    size, distance = xp.abs(x_rows), xp.abs(x_rows - rows)
    # A weight of inf belongs to an entry held at zero, which costs nothing.
    weighted = size if w_rows is None else xp.where(size > 0, w_rows, 0) * size
    difference = xp.sum(weighted, axis=-1, keepdims=True) - number_like(l2_weight, rows) * row_norms(x_rows)
    return (0.5 * xp.sum(distance * distance, axis=-1, keepdims=True) + t_rows * difference)[..., 0]


def prox_l12_groups(z: Array, t: Any, groups: Any, *, l2_weight: float = 1.0, weights: Any = None) -> Array:
    """Global minimiser of ``1/2 ||x - z||^2 + t (sum_g w_g ||x_g||_2 - l2_weight ||x||_2)``.

    Parameters
    ----------
    z : array of shape (n,)
        Real or complex.
    t : float
        Threshold, at least 0.
    groups : array of int of shape (n,)
        The group, 0, 1, ..., of each entry.
    l2_weight : float
        Weight of the subtracted norm; 0 is the group lasso.
    weights : array, optional
        One per group, at least 0; the square root of a group's size is a common choice. 1 by default.

    Examples
    --------
    >>> prox_l12_groups([3.0, 4.0, 0.1, 0.2], 1.0, [0, 0, 1, 1])
    array([3., 4., 0., 0.])
    """
    z = as_floating(z, "z")
    check_numbers(t=t, l2_weight=l2_weight, weights=weights)
    xp = namespace(z)
    layout = group_rows(groups)
    count = layout.members.shape[0]
    if weights is not None and np.shape(weights) not in ((), (count,)):
        raise ValueError(f"weights must hold one number for each of the {count} groups")
    if math.prod(z.shape) == 0:
        return xp.asarray(z, copy=True)
    if is_half(z):
        x = prox_l12_groups(xp.astype(z, xp.float32), t, layout, l2_weight=l2_weight, weights=weights)
        return xp.astype(x, z.dtype)
    rows = grouped(z, layout)
    size = row_norms(rows)
    shrunk = prox_l12(size[:, 0], t, l2_weight=l2_weight, weights=weights, nonnegative=True)[:, None]
    # A group of zeros that must grow (l2_weight above its weight) grows along its first entry.
    first = xp.astype(positions(rows) == 0, rows.dtype)
    unit = rows / constant(xp.where(size > 0, size, 1))
    direction = xp.where(size > 0, unit / xp.where(size > 0, row_norms(unit), 1), first)
    return xp.take(xp.reshape(shrunk * direction, (-1,)), indices_like(layout.place, z), axis=0)


def prox_l12_spectral(Z: Array, t: Any, *, l2_weight: Any = 1.0) -> Array:
    """Global minimiser of ``1/2 ||X - Z||_F^2 + t (||X||_* - l2_weight ||X||_F)``.

    It is `prox_l12` of the singular values.

    Parameters
    ----------
    Z : array of shape (..., m, n)
        A matrix or a stack of matrices, real or complex.
    t : float or array
        Threshold, one for all or one per matrix.
    l2_weight : float
        Weight of the Frobenius norm; 0 is singular value thresholding.

    Examples
    --------
    >>> prox_l12_spectral([[2.0, 0.0], [0.0, 1.0]], 1.5)
    array([[2., 0.],
           [0., 0.]])
    """
    Z = as_floating(Z, "Z")
    if len(Z.shape) < 2:
        raise ValueError(f"Z must be a matrix or a stack of matrices, got shape {tuple(Z.shape)}")
    xp = namespace(Z)
    if math.prod(Z.shape) == 0:
        return xp.asarray(Z, copy=True)
    if is_half(Z):
        return xp.astype(prox_l12_spectral(xp.astype(Z, xp.float32), t, l2_weight=l2_weight), Z.dtype)
    finite = xp.all(xp.isfinite(Z), axis=(-2, -1), keepdims=True)
    U, s, Vh = xp.linalg.svd(xp.where(finite, Z, 0), full_matrices=False)
    s = prox_l12(s, t, l2_weight=l2_weight, nonnegative=True, axis=-1)
    return xp.where(finite, (U * xp.astype(s, U.dtype)[..., None, :]) @ Vh, math.nan)


def prox_l12_iterative(
    z: Array,
    t: float,
    *,
    l2_weight: float = 1.0,
    weights: Any = None,
    nonnegative: bool = False,
    start: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[Array, int]:
    """The numerical method that the closed form replaces: a fixed point of soft-thresholding.

    Repeats ``x <- soft(z + l2_weight t x / ||x||, t)`` (difference-of-convex steps). Where x is zero every
    unit vector is a subgradient of the norm; the one along the largest entry of z is taken, so that it
    does not rest there. From another start, or at ties, it may end in a stationary point that is no minimum.

    Parameters
    ----------
    z, t, l2_weight, weights, nonnegative
        As in `prox_l12`, for one problem.
    start : array, optional
        A warm start; z by default.
    tol : float
        Stop when the step is at most tol times the norm of x.
    max_iter : int
        Stop after so many steps in any case.

    Returns
    -------
    x : array
        The last step.
    n_iter : int
        The number of steps.

    Examples
    --------
    >>> x, n_iter = prox_l12_iterative([3.0, -4.0, 0.5], 1.0)
    >>> x.round(6), n_iter > 1
    (array([ 2.5547 , -3.83205,  0.     ]), True)
    """
    z = as_floating(z, "z")
    check_numbers(t=t, l2_weight=l2_weight, weights=weights)
    options = {"weights": weights, "nonnegative": nonnegative}
    x = z if start is None else as_floating(start, "start")
    if x.shape != z.shape:
        raise ValueError(f"start must have the shape {tuple(z.shape)} of z, got {tuple(x.shape)}")
    if math.prod(z.shape) == 0:
        return namespace(z).asarray(z, copy=True), 0
    relief = float(l2_weight) * float(t)
    n_iter = 0
    while n_iter < max_iter:
        length = norm(x)
        direction = x / length if length > 0 else _largest_direction(z, t, weights, nonnegative)
        new = prox_l12(z + relief * direction, t, l2_weight=0.0, **options)
        change, x = norm(new - x), new
        n_iter += 1
        if not change > tol * norm(x):
            break
    return x, n_iter


@np.errstate(over="ignore", invalid="ignore")  # as silent as the other libraries; inf and NaN tell enough
def _prox_rows(z: Array, t: Any, l2_weight: Any, weights: Array | None, nonnegative: bool) -> Array:
    """The kernel: one problem along the last axis. Branch-free, to be differentiated and traced."""
    xp = namespace(z)
    size = z if nonnegative else _modulus(xp, z)
    if weights is not None:
        size, weights = _without_infinite(xp, size, weights)
    u = size - (t if weights is None else t * weights)
    # Case one, some u is positive. Scaled by the largest, so that no square overflows or underflows; 1 stands in
    # for what would divide by zero. A NaN is found by the sum (some libraries' max drops it) and comes out here.
    top = constant(xp.max(u, axis=-1, keepdims=True))
    positive = xp.where(u < 0, 0, u)
    scaled = positive / xp.where(top > 0, top, 1)
    square = xp.sum(scaled * scaled, axis=-1, keepdims=True)
    some = (top > 0) | xp.isnan(square)
    length = xp.sqrt(xp.where(some, square, 1))
    several = positive + l2_weight * (t * (scaled / length))
    # Case two, none is: the first largest stays. (|z| and x order as u does, and round no more than x does.)
    grown = size + t * (l2_weight - (1.0 if weights is None else weights))
    largest = xp.argmax(size if weights is None else grown, axis=-1, keepdims=True)
    single = xp.where((positions(z) == largest) & (grown > 0), grown, 0)
    x = xp.where(some, several, single)
    return x if nonnegative else with_signs(xp, x, z, size)


def _modulus(xp: Any, z: Array) -> Array:
    """``|z|``, where z is real with derivative 1 at zero: what has weight 0 passes, with its derivative."""
    return xp.abs(z) if is_numpy(z) or is_complex(z) else xp.where(z < 0, -z, z)


def _without_infinite(xp: Any, size: Array, weights: Array) -> tuple[Array, Array]:
    """Sizes and weights with no product 0 * inf: an entry of weight inf becomes one that never enters."""
    held = xp.isinf(weights) & ~xp.isnan(size)
    return xp.where(held, -math.inf, size), xp.where(held, 0, weights)


def with_signs(xp: Any, x: Array, z: Array, size: Array) -> Array:
    """The moduli x with the signs (phases) of z, + where z is zero."""
    if not is_complex(z):
        return xp.where(z < 0, -x, x)
    large = xp.where(size < 1e-18, xp.full_like(size, 2.0**64), 1.0)  # dividing by a subnormal number overflows
    unit = xp.where(size > 0, (large * z) / constant(xp.where(size > 0, large * size, 1)), 1)
    return x * (unit / xp.abs(unit))


def _prox_rows_compiled(rows: Any, t: float, l2_weight: float) -> Any:
    """`_prox_rows` as one compiled loop for many short real problems; None where that does not apply."""
    if rows.size < COMPILED_FROM or rows.shape[-1] > 16 or rows.dtype.char not in "fd":
        return None
    if not can_compile():
        return None
    from ell12.prox import compiled

    return compiled.prox_rows(rows, t, l2_weight)


def _largest_direction(z: Array, t: float, weights: Any, nonnegative: bool) -> Array:
    """The signed unit vector along the first largest ``|z_i| - t w_i``."""
    xp = namespace(z)
    rows, t_rows, w_rows, restore = as_rows(z, t, weights, None)
    order = size = rows if nonnegative else xp.abs(rows)
    if w_rows is not None:
        size, w_rows = _without_infinite(xp, size, w_rows)
        order = size - t_rows * w_rows
    largest = xp.argmax(order, axis=-1, keepdims=True)
    unit = xp.astype(positions(rows) == largest, size.dtype)
    return restore(unit if nonnegative else with_signs(xp, unit, rows, size))

"""Closed-form proximal operators of the l1-2 penalty, as pure functions.

Every variant is one kernel applied to other thresholds and other magnitudes: vectors, batches along axes,
weights, non-negative and complex data, groups, singular values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ell12.backend import as_floating, is_complex, is_number, namespace, norm, number_like
from ell12.backend.number_types import ArrayT, Whole
from ell12.checks import check_counts, check_flags, check_numbers, check_scalars, check_weights
from ell12.protocols import Array
from ell12.prox.batching import as_decomposable, as_groups, as_single, lay_out, row_norms, thresholds
from ell12.prox.closed_form import largest_direction, prox_groups, prox_rows, prox_spectral, prox_vector

P = ParamSpec("P")


class OfArray(Protocol[P]):
    """A function of an array that returns one of the same kind; lists and integers give NumPy's float64."""

    @overload
    def __call__(self, z: Whole, /, *args: P.args, **kwargs: P.kwargs) -> NDArray[np.float64]: ...
    @overload
    def __call__(self, z: ArrayT, /, *args: P.args, **kwargs: P.kwargs) -> ArrayT: ...


def of_array(function: Callable[Concatenate[Any, P], Any]) -> OfArray[P]:
    """The function itself, with the types of `OfArray` for type checkers."""
    return function


@of_array
def soft_threshold(z: Array, t: Any) -> Array:
    """Shrink every entry towards zero: ``sign(z) max(|z| - t, 0)``, the prox of ``t ||x||_1``.

    Examples
    --------
    >>> from ell12.prox.functions import soft_threshold
    >>> soft_threshold([3.0, -0.5, -2.0], 1.0)
    array([ 2.,  0., -1.])
    """
    return prox_l12(z, t, l2_weight=0.0)


@of_array
def prox_l12(
    z: Array,
    t: Any,
    *,
    l2_weight: Any = 1.0,
    weights: Any = None,
    positive: bool = False,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    r"""The proximal step of l1-2.

    The global minimiser of ``1/2 ||x - z||^2 + t (sum_i w_i |x_i| - l2_weight ||x||_2)``.

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
    l2_weight : float, default 1.0
        Weight of the subtracted norm: 1 is l1-2, 0 is soft-thresholding.
    weights : array, optional
        Weights of the l1 norm, at least 0, broadcast against z; ``inf`` holds an entry at zero.
    positive : bool, default False
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
    >>> from ell12 import prox_l12
    >>> prox_l12([3.0, -4.0, 0.5], 1.0)
    array([ 2.5547002 , -3.83205029,  0.        ])
    >>> prox_l12([0.2, -0.7], 1.0)
    array([ 0. , -0.7])
    """
    z = as_floating(z, "z")
    _check_options(z, t, l2_weight, weights, positive)
    if math.prod(z.shape) == 0:
        return namespace(z).asarray(z, copy=True)
    if axis is None and is_number(t) and is_number(l2_weight):
        return prox_vector(z, float(t), float(l2_weight), weights, positive)
    rows, t_rows, w_rows, restore = lay_out(z, t, weights, axis)
    return restore(prox_rows(rows, t_rows, number_like(l2_weight, rows), w_rows, positive))


@of_array
def moreau_l12(
    z: Array,
    t: Any,
    *,
    l2_weight: Any = 1.0,
    weights: Any = None,
    positive: bool = False,
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """The smallest value of the problem that `prox_l12` solves.

    It is that of ``1/2 ||x - z||^2 + t (sum_i w_i |x_i| - l2_weight ||x||_2)``, per problem.

    Parameters are those of `prox_l12`. The value is summed at the minimiser, which keeps digits that the
    shorter ``1/2 ||z||^2 - 1/2 ||x||^2`` cancels.

    Returns
    -------
    array
        The shape of z without `axis` (zero-dimensional by default); half precision gives single.

    Examples
    --------
    >>> from ell12.prox import moreau_l12
    >>> float(moreau_l12([3.0, 4.0], 0.0))
    0.0
    >>> float(moreau_l12([0.0, 0.5], 1.0))
    0.0
    """
    z = as_floating(z, "z")
    x = prox_l12(z, t, l2_weight=l2_weight, weights=weights, positive=positive, axis=axis)
    rows, t_rows, w_rows, _ = lay_out(z, t, weights, axis)
    x_rows, _, _, _ = lay_out(x, t, None, axis)
    xp = namespace(rows)
    if rows.shape[-1] == 0:
        return xp.sum(xp.abs(rows), axis=-1)
    size, distance = xp.abs(x_rows), xp.abs(x_rows - rows)
    # A weight of inf belongs to an entry fixed at zero, which costs nothing.
    weighted = size if w_rows is None else xp.where(size > 0, w_rows, 0) * size
    difference = xp.sum(weighted, axis=-1, keepdims=True) - number_like(l2_weight, rows) * row_norms(x_rows)
    return (0.5 * xp.sum(distance * distance, axis=-1, keepdims=True) + t_rows * difference)[..., 0]


@of_array
def prox_l12_groups(z: Array, t: Any, groups: Any, *, l2_weight: float = 1.0, weights: Any = None) -> Array:
    """The proximal step of l1-2 for groups.

    The global minimiser of ``1/2 ||x - z||^2 + t (sum_g w_g ||x_g||_2 - l2_weight ||x||_2)``.

    Parameters
    ----------
    z : array of shape (n,)
        Real or complex.
    t : float
        Threshold, at least 0.
    groups : array of int of shape (n,)
        The group, 0, 1, ..., of each entry.
    l2_weight : float, default 1.0
        Weight of the subtracted norm; 0 is the group lasso.
    weights : array, optional
        One per group, at least 0; the square root of a group's size is a common choice. 1 by default.

    Examples
    --------
    >>> from ell12.prox import prox_l12_groups
    >>> prox_l12_groups([3.0, 4.0, 0.1, 0.2], 1.0, [0, 0, 1, 1])
    array([3., 4., 0., 0.])
    """
    z = as_floating(z, "z")
    check_numbers(single=True, t=t, l2_weight=l2_weight)
    layout = as_groups(groups)
    layout.check_shape(tuple(z.shape), "z")
    if weights is not None:
        check_numbers(infinite=True, weights=weights)
        if np.shape(weights) not in ((), (layout.count,)):
            raise ValueError(f"weights must hold one number for each of the {layout.count} groups")
    if math.prod(z.shape) == 0:
        return namespace(z).asarray(z, copy=True)
    work = as_single(z)
    x = prox_groups(work, number_like(t, work), layout, number_like(l2_weight, work), weights)
    return namespace(z).astype(x, z.dtype, copy=False)


@of_array
def prox_l12_spectral(Z: Array, t: Any, *, l2_weight: Any = 1.0) -> Array:
    """The proximal step of l1-2 for singular values.

    The global minimiser of ``1/2 ||X - Z||_F^2 + t (||X||_* - l2_weight ||X||_F)``.

    It is `prox_l12` of the singular values.

    Parameters
    ----------
    Z : array of shape (..., m, n)
        A matrix or a stack of matrices, real or complex.
    t : float or array
        Threshold, one for all or one per matrix.
    l2_weight : float, default 1.0
        Weight of the Frobenius norm; 0 is singular value thresholding.

    Examples
    --------
    >>> from ell12.prox import prox_l12_spectral
    >>> prox_l12_spectral([[2.0, 0.0], [0.0, 1.0]], 1.5)
    array([[2., 0.],
           [0., 0.]])
    """
    Z = as_floating(Z, "Z")
    if len(Z.shape) < 2:
        raise ValueError(f"Z must be a matrix or a stack of matrices, got shape {tuple(Z.shape)}")
    check_numbers(t=t)
    check_numbers(single=True, l2_weight=l2_weight)
    if math.prod(Z.shape) == 0:
        return namespace(Z).asarray(Z, copy=True)
    work, count = as_decomposable(Z), len(Z.shape)
    t_rows = thresholds(t, work, tuple(Z.shape[:-1]), (count - 2,))
    return namespace(Z).astype(prox_spectral(work, t_rows, number_like(l2_weight, work)), Z.dtype, copy=False)


def prox_l12_iterative(
    z: Array,
    t: float,
    *,
    l2_weight: float = 1.0,
    weights: Any = None,
    positive: bool = False,
    start: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> tuple[Array, int]:
    """The numerical method that the closed form replaces: a fixed point of soft-thresholding.

    Repeats ``x <- soft(z + l2_weight t x / ||x||, t)`` (difference-of-convex steps; Yao, Kwok & Guo,
    arXiv:1610.09461, equation 11). Where x is zero every
    unit vector is a subgradient of the norm; the one along the largest entry of z is taken, so that it
    does not rest there. From another start, or at ties, it may end in a stationary point that is no minimum.

    Parameters
    ----------
    z, t, l2_weight, weights, positive
        As in `prox_l12`, for one problem.
    start : array, optional
        A warm start; z by default.
    tol : float, default 1e-10
        Stop when the step is at most tol times the norm of x.
    max_iter : int, default 1000
        The most steps.

    Returns
    -------
    x : array
        The last step.
    n_iter : int
        The number of steps.

    Examples
    --------
    >>> from ell12.prox import prox_l12_iterative
    >>> x, n_iter = prox_l12_iterative([3.0, -4.0, 0.5], 1.0)
    >>> x.round(6), n_iter > 1
    (array([ 2.5547 , -3.83205,  0.     ]), True)
    """
    z = as_floating(z, "z")
    _check_options(z, t, l2_weight, weights, positive)
    start = z if start is None else as_floating(start, "start")
    if start.shape != z.shape:
        raise ValueError(f"start must have the shape {tuple(z.shape)} of z, got {tuple(start.shape)}")
    if math.prod(z.shape) == 0:
        return namespace(z).asarray(z, copy=True), 0
    check_numbers(single=True, t=t)
    check_scalars(infinite=True, tol=tol)
    check_counts(optional=False, max_iter=max_iter)
    t, l2_weight, x, change, n_iter = float(t), float(l2_weight), start, math.inf, 0
    while n_iter < max_iter and (n_iter == 0 or change > tol * norm(x)):
        length = norm(x)
        direction = x / length if length > 0 else largest_direction(z, t, weights, positive)
        new = prox_vector(z + l2_weight * t * direction, t, 0.0, weights, positive)
        change, x, n_iter = norm(new - x), new, n_iter + 1
    return x, n_iter


def _check_options(z: Array, t: Any, l2_weight: Any, weights: Any, positive: bool) -> None:
    check_numbers(t=t)
    check_numbers(single=True, l2_weight=l2_weight)
    if weights is not None:
        check_numbers(infinite=True, weights=weights)
        check_weights(weights, tuple(z.shape))
    if positive is not False:
        check_flags(positive=positive)
    if positive and is_complex(z):
        raise TypeError("positive=True needs real z, got complex numbers")

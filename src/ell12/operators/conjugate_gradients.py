"""Conjugate gradients: linear systems with a symmetric map that is known by its products alone."""

from __future__ import annotations

from collections.abc import Callable

from ell12.backend import inner, norm
from ell12.protocols import Array


def conjugate_gradients(
    product: Callable[[Array], Array], right: Array, x: Array | None = None, *, tol: float, max_iter: int
) -> Array:
    """Solve ``product(x) = right`` approximately, for arrays of any shape and kind.

    Along a direction of non-positive curvature the quadratic ``1/2 <x, product(x)> - <x, right>`` has no minimum.
    The method then stops and returns the x it has. Without a start, and at the first step, that is ``right``, the
    direction of steepest descent.

    Parameters
    ----------
    product : function
        A symmetric (Hermitian) linear map.
    right : array
        The right-hand side.
    x : array, optional
        Where to start; zero by default.
    tol : float
        Stop when the norm of the residual is at most tol times the norm of ``right``.
    max_iter : int
        Stop after this number of steps in any case.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.conjugate_gradients import conjugate_gradients
    >>> conjugate_gradients(lambda v: [1.0, 4.0] * v, np.array([2.0, 4.0]), tol=1e-8, max_iter=5).round(9)
    array([2., 1.])
    """
    residual = 1 * right if x is None else right - product(x)
    stuck, x = (right, 0 * right) if x is None else (x, x)
    direction, square = 1 * residual, inner(residual, residual)
    limit = tol * norm(right)
    limit *= limit  # a power would raise where it overflows
    for count in range(max_iter):
        if square <= limit:
            break
        image = product(direction)
        curvature = inner(direction, image)
        if curvature <= 0:
            return stuck
        step = square / curvature
        move = step * direction
        if count:
            x += move
        else:
            x = x + move  # from here on an array of our own, as the others are: they are changed in place
        stuck = x
        residual -= step * image
        old, square = square, inner(residual, residual)
        direction *= square / old
        direction += residual
    return x

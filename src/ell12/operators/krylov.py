"""Lanczos iterations for the largest eigenvalue, with a bound, and conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import LinearOperator, eigsh

from ell12.backend import as_array_of, as_numpy, inner, max_abs, norm, orthogonalise
from ell12.protocols import Array

DOUBT = 1e-4  # The bound fails, over random starts, with at most this chance.
MOST_FOR_A_BOUND = 40  # After this many products without a bound, the norm is better found outright.


@np.errstate(invalid="ignore")  # BLAS may set this flag on finite numbers; NaN is an error of the solver below
def largest_eigenvalue(
    apply: Callable[[Array], Array], start: Array, *, rtol: float = 1e-2, max_iter: int = 100, enough: float = 0.0
) -> float:
    """An upper bound on the largest eigenvalue of a positive semidefinite map, within rtol of it.

    Lanczos with full reorthogonalisation. Its k-th vector is ``p(map) v`` for a polynomial p that grows beyond the
    Ritz values, and of length 1: an eigenvector u has ``p(eigenvalue) |<u, v>| <= 1``. A random unit vector v has
    ``|<u, v>|`` above ``DOUBT / sqrt(n)`` but for a chance below DOUBT, so the eigenvalue lies where p is below
    ``sqrt(n) / DOUBT``. (A small residual of the largest Ritz value only says that *some* eigenvalue is near.)

    Parameters
    ----------
    apply : callable
        The map.
    start : array
        A random vector.
    rtol : float, default 1e-2
        How far above the largest eigenvalue the bound may lie, relative to it.
    max_iter : int, default 100
        The most products; a bound that needed more is not as close.
    enough : float, default 0.0
        A bound below this need not be closer.

    References
    ----------
    Hochstenbach, Probabilistic upper bounds for the matrix two-norm, doi:10.1007/s10915-013-9716-x.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.operators.krylov import largest_eigenvalue
    >>> bound = largest_eigenvalue(lambda v: np.array([1.0, 4.0]) * v, np.array([1.0, 1.0]))
    >>> round(bound, 3)
    4.0
    """
    basis: list[Array] = []
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    vector, length, theta, margin = start, norm(start), 0.0, rtol
    growth = math.log(math.sqrt(math.prod(start.shape)) / DOUBT)

    def holds(margin: float) -> bool:
        return _log_growth(theta * (1 + margin), diagonal, off_diagonal) >= growth

    for _ in range(max_iter):
        basis.append(vector / length)
        vector = apply(basis[-1])
        diagonal.append(inner(basis[-1], vector))
        for _ in range(2):
            vector = orthogonalise(vector, basis)
        length = norm(vector)
        theta = float(eigh_tridiagonal(np.array(diagonal), np.array(off_diagonal), eigvals_only=True)[-1])
        off_diagonal.append(length)
        margin = rtol if theta <= 0 else max(rtol, enough / theta - 1)
        if holds(margin):
            break
    while not holds(margin) and margin < 1e9:  # where the products ran out
        margin *= 2
    while margin > 1e-5 and holds(margin / 2):
        margin /= 2
    return theta * (1 + margin)


def norm_from_gram(gram: Callable[[Array], Array], start: Array, enough: float = 0.0) -> float:
    """The spectral norm of a matrix G from products with ``G'G``, to a ten-thousandth.

    Where it is surely below ``enough``, a bound that is, too, in far fewer products. The norm itself is left to
    ARPACK, which restarts: the method above keeps every vector, too many where hundreds of products are needed.
    """
    size = start.shape[0]

    def on_host(v: np.ndarray) -> np.ndarray:
        return as_numpy(gram(as_array_of(v.ravel(), start)))

    image = max_abs(gram(start))
    if size == 1 or image == 0:  # too little for ARPACK
        return math.sqrt(image / max_abs(start))
    if enough > 0:
        bound = largest_eigenvalue(gram, start, max_iter=MOST_FOR_A_BOUND, enough=enough**2)
        if bound <= enough**2:
            return math.sqrt(bound)
    first = as_numpy(start)
    operator = LinearOperator((size, size), matvec=on_host, dtype=first.dtype)
    square = eigsh(operator, k=1, tol=2e-4, v0=first, return_eigenvectors=False)
    return math.sqrt(max(float(square[0]), 0.0))


def _log_growth(t: float, diagonal: list[float], off_diagonal: list[float]) -> float:
    """The logarithm of the Lanczos polynomial at t, by its recurrence; infinite once the basis is complete."""
    total, ratio, before = 0.0, math.inf, 0.0
    for d, b in zip(diagonal, off_diagonal, strict=True):
        pivot = t - d - before / ratio
        if b == 0:
            return math.inf
        if pivot <= 0:  # not beyond the Ritz values
            return -math.inf
        ratio, before = pivot / b, b
        total += math.log(ratio)
    return total


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
    >>> from ell12.operators.krylov import conjugate_gradients
    >>> conjugate_gradients(lambda v: [1.0, 4.0] * v, np.array([2.0, 4.0]), tol=1e-8, max_iter=5).round(9)
    array([2., 1.])
    """
    residual = 1 * right if x is None else right - product(x)
    stuck, x = (right, 0 * right) if x is None else (x, 1 * x)  # x is an array of our own, changed in place
    direction, square = 1 * residual, inner(residual, residual)
    limit = tol * norm(right)
    limit *= limit  # a power would raise where it overflows
    for _ in range(max_iter):
        if square <= limit:
            break
        image = product(direction)
        curvature = inner(direction, image)
        if curvature <= 0:
            return stuck
        step = square / curvature
        x += step * direction
        stuck = x
        residual -= step * image
        old, square = square, inner(residual, residual)
        direction *= square / old
        direction += residual
    return x

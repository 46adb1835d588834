"""The largest eigenvalue of a symmetric map, from products with it alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh_tridiagonal

from ell12.backend import inner, norm
from ell12.protocols import Array


def largest_eigenvalue(
    apply: Callable[[Array], Array], start: Array, *, rtol: float = 1e-3, max_iter: int = 100
) -> float:
    """An upper bound on the largest eigenvalue of a positive semidefinite map, within about rtol of it.

    Lanczos with full reorthogonalisation. The bound is the largest Ritz value plus its residual, the radius
    around it within which an eigenvalue must lie.

    Examples
    --------
    >>> bound = largest_eigenvalue(lambda v: np.array([1.0, 4.0]) * v, np.array([1.0, 1.0]))
    >>> round(bound, 6)
    4.0
    """
    basis: list[Array] = []
    diagonal: list[float] = []
    beside: list[float] = []
    length = norm(start)
    vector = start
    bound = 0.0
    for _ in range(max_iter):
        if length <= 1e-14 * abs(bound):  # the basis spans an invariant subspace
            break
        basis.append((1 / length) * vector)
        vector = apply(basis[-1])
        diagonal.append(inner(basis[-1], vector))
        for _ in range(2):
            for b in basis:
                vector = vector - inner(b, vector) * b
        length = norm(vector)
        theta, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
        residual = length * abs(vectors[-1, -1])
        bound = float(theta[-1] + residual)
        if residual <= rtol * theta[-1]:
            break
        beside.append(length)
    return bound * (1 + 1e-6)

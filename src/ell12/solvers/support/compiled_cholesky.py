"""Small systems with positive matrices as compiled loops (numba), for `ell12.solvers.support.compiled_path`.

Its plain twin is `ell12.solvers.support.newton.positive_solution`, whose LAPACK compiled code cannot call.
"""

from __future__ import annotations

import math

from ell12.backend.compiled_code import compiled_loop

# A column depends on those before it if these leave less than this fraction of its square.
DEPENDENT = 1e-11

loop = compiled_loop(error_model="numpy", nogil=True)


@loop
def factorise(matrix):  # type: ignore[no-untyped-def]
    """``matrix = R'R`` with R upper, in its place; return how many columns come before the first that depends."""
    size = matrix.shape[0]
    for k in range(size):
        pivot = matrix[k, k]
        for i in range(k):
            pivot -= matrix[i, k] * matrix[i, k]
        if not pivot > DEPENDENT * matrix[k, k]:
            return k
        _subtract_rows(matrix, k)
        matrix[k, k] = math.sqrt(pivot)
        for j in range(k + 1, size):
            matrix[k, j] /= matrix[k, k]
    return size


@loop
def _subtract_rows(matrix, k):  # type: ignore[no-untyped-def]
    """Subtract the rows above from row k, four at once: a pass over the row costs as much as its arithmetic."""
    size, fours = matrix.shape[0], k - k % 4
    for i in range(0, fours, 4):
        p, q, r, s = matrix[i, k], matrix[i + 1, k], matrix[i + 2, k], matrix[i + 3, k]
        for j in range(k + 1, size):
            pair = p * matrix[i, j] + q * matrix[i + 1, j]
            matrix[k, j] -= pair + (r * matrix[i + 2, j] + s * matrix[i + 3, j])
    for i in range(fours, k):
        p = matrix[i, k]
        for j in range(k + 1, size):
            matrix[k, j] -= p * matrix[i, j]


@loop
def substitute(matrix, right):  # type: ignore[no-untyped-def]
    """Solve ``R'R x = right`` in the place of the right-hand side."""
    for k in range(right.size):
        right[k] /= matrix[k, k]
        for j in range(k + 1, right.size):
            right[j] -= right[k] * matrix[k, j]
    substitute_back(matrix, right, right.size)


@loop
def substitute_back(matrix, right, size):  # type: ignore[no-untyped-def]
    """Solve ``R x = right`` in its place, in the first columns."""
    for k in range(size - 1, -1, -1):
        value = right[k]
        for j in range(k + 1, size):
            value -= matrix[k, j] * right[j]
        right[k] = value / matrix[k, k]

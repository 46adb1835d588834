"""The leading singular triplets of a matrix that changes a little from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ell12.backend import is_numpy, like, namespace
from ell12.completion.low_rank import LowRank
from ell12.protocols import Array

SPARE = 10  # vectors carried beyond those that the prox keeps
GROWTH = 1.5


class FullTriplets:
    """All singular triplets, by a full decomposition each time: the reference."""

    is_full = False

    def __call__(self, Z: Array) -> tuple[Array, Array, Array]:
        """U, s and V of a dense matrix."""
        U, s, Vh = namespace(Z).linalg.svd(Z, full_matrices=False)
        return U, s, Vh.T

    def keep(self, count: int) -> None:
        """Nothing is carried over."""


class WarmBlock:
    """Leading triplets by one step of subspace iteration a call, begun at the vectors of the last call.

    All Ritz vectors are carried over, also those that the prox drops: fresh random ones instead would take their
    time to turn to the directions that come up next. ``is_full`` says that the prox kept all there are, so that
    there may be more; the next call then works with a larger block.
    """

    def __init__(self, start: LowRank, rng: Any = None) -> None:
        self.random = np.random.default_rng(rng)
        self.V = start.V
        self.limit = min(start.shape)
        self.is_full = True
        self.size = min(start.rank + SPARE, self.limit)

    def __call__(self, Z: Any) -> tuple[Array, Array, Array]:
        """U, s and V, approximately, of a matrix known by its products."""
        V = _widened(self.V, self.size, self.random)
        Q = orthonormal(Z @ V)
        U, s, V = ritz(Q, Z.T @ Q)
        self.V = V
        return U, s, V

    def keep(self, count: int) -> None:
        """Carry on with what suits a prox that kept ``count`` triplets."""
        size = self.V.shape[1]
        self.is_full = count >= size and size < self.limit
        wanted = max(count + SPARE, int(GROWTH * size)) if self.is_full else count + SPARE
        self.size = min(-(-wanted // 4) * 4, self.limit)  # few different sizes: a library may compile each anew
        self.V = self.V[:, : min(self.size, size)]


def ritz(Q: Array, B: Array) -> tuple[Array, Array, Array]:
    """The singular triplets of ``Q B'``, Q with orthonormal columns, from the eigenvectors of ``B'B``."""
    xp = namespace(B)
    squares, P = xp.linalg.eigh(B.T @ B)
    squares, P = xp.flip(squares), xp.flip(P, axis=1)
    s = xp.sqrt(xp.where(squares > 0, squares, 0))
    V = B @ P
    # Of a direction of size zero there is no right vector; orthonormal columns are made of what rounding left.
    return Q @ P, s, V / xp.where(s > 0, s, 1)


def orthonormal(A: Array) -> Array:
    """Orthonormal columns that span those of A: by Cholesky where that is accurate, else by Householder.

    The columns are scaled first. Two rounds make up for what the first loses where they are nearly dependent.
    """
    xp = namespace(A)
    if not is_numpy(A):
        return xp.linalg.qr(A)[0]
    try:
        return _cholesky_qr(_cholesky_qr(A / (np.sqrt(np.einsum("ij,ij->j", A, A)) + np.finfo(A.dtype).tiny)))
    except LinAlgError:
        return np.linalg.qr(A)[0]


def _cholesky_qr(A: np.ndarray) -> np.ndarray:
    R = cholesky(A.T @ A, check_finite=False)
    diagonal = np.diagonal(R)
    if not diagonal.min() > 1e3 * np.sqrt(np.finfo(A.dtype).eps) * diagonal.max():
        raise LinAlgError("nearly dependent columns")
    return solve_triangular(R, A.T, trans="T", check_finite=False).T


def _widened(V: Array, size: int, random: np.random.Generator) -> Array:
    """V with random columns, orthogonal to its own, up to ``size`` columns."""
    xp = namespace(V)
    missing = size - V.shape[1]
    if missing <= 0:
        return V
    fresh = like(random.standard_normal((V.shape[0], missing)), V)
    if V.shape[1] == 0:
        return orthonormal(fresh)
    fresh = fresh - V @ (V.T @ fresh)
    return xp.concat([V, orthonormal(fresh)], axis=1)

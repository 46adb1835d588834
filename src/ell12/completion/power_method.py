"""Leading singular vectors of sparse, and of sparse plus low-rank, matrices by power methods with warm starts.

A proximal gradient step on observed entries asks for the singular values of ``Y - S(Y - O)``: the extrapolated Y
has low rank, the rest is sparse. Both parts belong in both products, ``Z v`` and ``Z' u``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.completion.leading import orthonormal


def leading_svd(
    Z: Any, basis: np.ndarray, *, passes: int = 3, tol: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ritz values and vectors of Z from a warm block power method.

    ``Q = orth(Z R)``, then up to ``passes`` times ``Q = orth(Z (Z' Q))``, then the small singular value
    decomposition of ``Q' Z``. The better the span of R, the fewer passes it takes.

    Parameters
    ----------
    Z : object with ``@``, ``T`` and ``shape``
        A sparse matrix, or a sparse plus low-rank one.
    basis : array of shape (n, k)
        The columns of R; those beyond ``min(m, n)`` are not used.
    passes : int
        At most so many.
    tol : float
        Stop earlier when the first column of Q moves by no more than this.

    Returns
    -------
    U, s, V : arrays
        ``s`` descending, U and V with orthonormal columns; ``U diag(s) V' = Q Q' Z``.

    References
    ----------
    Halko, Martinsson & Tropp, Finding structure with randomness, doi:10.1137/090771806.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> U, s, V = leading_svd(csr_array(np.diag([3.0, 1.0, 0.0])), np.ones((3, 1)), passes=20)
    >>> s.round(6)
    array([3.])
    """
    Q = orthonormal(Z @ basis[:, : min(Z.shape)])
    for _ in range(passes):
        new = orthonormal(Z @ (Z.T @ Q))
        # A column may change its sign from one pass to the next.
        moved = min(np.linalg.norm(new[:, 0] - Q[:, 0]), np.linalg.norm(new[:, 0] + Q[:, 0])) if Q.size else 0.0
        Q = new
        if moved <= tol:
            break
    V, s, rotation = np.linalg.svd(Z.T @ Q, full_matrices=False)
    return Q @ rotation.T, s, V


def leading_pair(
    Z: Any, start: np.ndarray, *, tol: float = 1e-5, max_iter: int = 50
) -> tuple[np.ndarray, float, np.ndarray]:
    """The leading singular triplet ``u, s, v`` of Z by alternating ``v = Z'u/||.||`` and ``u = Z v/||.||``.

    Parameters
    ----------
    Z : object with ``@`` and ``T``
        A sparse matrix, for example.
    start : array of shape (m,)
        Where u starts; not in the left null space of Z.
    tol : float
        Stop when s changes by no more than this, relatively.
    max_iter : int
        At most so many pairs of products.

    Returns
    -------
    u, s, v : array, float, array
        ``s = 0`` where Z vanishes along the start.

    Examples
    --------
    >>> u, s, v = leading_pair(np.array([[0.0, 5.0], [1.0, 0.0]]), np.ones(2))
    >>> round(s, 4)
    5.0
    """
    u, s = start / (np.linalg.norm(start) or 1.0), 0.0
    Zt = Z.T
    v = np.zeros(Zt.shape[0], dtype=u.dtype)
    for _ in range(max_iter):
        v = Zt @ u
        length = float(np.linalg.norm(v))
        if length == 0:
            return u, 0.0, v
        v = v / length
        u = Z @ v
        before, s = s, float(np.linalg.norm(u))
        u = u / (s or 1.0)
        if s - before <= tol * s:
            break
    return u, s, v


def merged_basis(basis: np.ndarray, more: np.ndarray, *, tol: float = 1e-6) -> np.ndarray:
    """``basis`` and those columns of ``more`` whose squared distance to its span is above tol, orthonormalised.

    Parameters
    ----------
    basis : array of shape (n, k)
        Orthonormal columns.
    more : array of shape (n, l)
        Columns of length about 1.
    tol : float
        The squared distance from which a column adds something.

    Examples
    --------
    >>> e = np.eye(3)
    >>> merged_basis(e[:, :1], e[:, :2]).shape
    (3, 2)
    """
    if more.shape[1] == 0 or basis.shape[1] == 0:
        return basis if more.shape[1] == 0 else more
    rest = more - basis @ (basis.T @ more)
    rest = rest[:, np.sum(rest * rest, axis=0) > tol]
    return np.concatenate([basis, orthonormal(rest)], axis=1)[:, : basis.shape[0]] if rest.shape[1] else basis


def random_block(rng: np.random.Generator, rows: int, columns: int, dtype: Any) -> np.ndarray:
    """Gaussian columns of length about 1, to start a power method from."""
    return (rng.standard_normal((rows, columns)) / math.sqrt(rows)).astype(dtype)

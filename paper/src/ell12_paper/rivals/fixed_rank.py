"""The manifold of matrices of one rank: tangent vectors, projection onto them, and the way back.

At ``X = U diag(s) V'`` a tangent vector is ``U M V' + Up V' + U Vp'`` with ``U' Up = 0`` and ``V' Vp = 0``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.completion.low_rank import LowRank, sums_of_products


@dataclass(frozen=True)
class Tangent:
    """``U M V' + Up V' + U Vp'`` at a `LowRank` matrix x; tangent vectors at the same x add and scale.

    References
    ----------
    Vandereycken, Low-rank matrix completion by Riemannian optimization, doi:10.1137/110845768.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import LowRank
    >>> from ell12_paper.rivals.fixed_rank import Tangent
    >>> x = LowRank.from_factors(np.eye(3)[:, :1], np.eye(2)[:, :1])
    >>> tangent = Tangent.project(np.arange(6.0).reshape(3, 2), x)
    >>> left, right = tangent.factors()
    >>> (left @ right.T).round(12)
    array([[0., 1.],
           [2., 0.],
           [4., 0.]])
    """

    x: LowRank
    M: np.ndarray
    Up: np.ndarray
    Vp: np.ndarray

    @classmethod
    def project(cls, G: Any, x: LowRank) -> Tangent:
        """The tangent vector at x nearest to the matrix G, which is asked for two products with r columns."""
        return cls._from_products(x, G @ x.V, G.T @ x.U)

    @classmethod
    def _from_products(cls, x: LowRank, GV: np.ndarray, GtU: np.ndarray) -> Tangent:
        M = x.U.T @ GV
        return cls(x, M, GV - x.U @ M, GtU - x.V @ M.T)

    def transport(self, x: LowRank) -> Tangent:
        """The projection onto the tangent vectors at another matrix."""
        left, right = self.factors()
        return self._from_products(x, left @ (right.T @ x.V), right @ (left.T @ x.U))

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Two factors whose product ``left right'`` it is."""
        left = np.concatenate([self.x.U @ self.M + self.Up, self.x.U], axis=1)
        return left, np.concatenate([self.x.V, self.Vp], axis=1)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The entries at pairs of row and column."""
        return sums_of_products(*self.factors(), rows, columns)

    def inner(self, other: Tangent) -> float:
        """The inner product of the matrices; the three parts are orthogonal to each other."""
        pairs = ((self.M, other.M), (self.Up, other.Up), (self.Vp, other.Vp))
        return float(sum(np.vdot(a, b) for a, b in pairs))

    def norm(self) -> float:
        """The Frobenius norm."""
        return math.sqrt(max(self.inner(self), 0.0))

    def __add__(self, other: Tangent) -> Tangent:
        return Tangent(self.x, self.M + other.M, self.Up + other.Up, self.Vp + other.Vp)

    def __rmul__(self, factor: float) -> Tangent:
        return Tangent(self.x, factor * self.M, factor * self.Up, factor * self.Vp)

    def retract(self, step: float) -> LowRank:
        """The matrix of at most the rank of x that is nearest to ``x + step * self``."""
        x = self.x
        moved = x.weighted + step * (x.U @ self.M + self.Up)
        left = np.concatenate([moved, x.U], axis=1)
        right = np.concatenate([x.V, step * self.Vp], axis=1)
        return LowRank.from_factors(left, right).truncate(x.rank)

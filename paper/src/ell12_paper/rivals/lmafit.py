"""LMaFit: low-rank matrix fitting by successive over-relaxation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
from ell12.completion.singular_vectors import leading_svd, random_block
from ell12.protocols import Iterate, Point
from ell12_paper.rivals.common import Rival, sparse_gradient

CHECK_EVERY = 10  # steps between two gradients projected on matrices of this rank


@dataclass(frozen=True)
class LMaFit(Rival):
    """Alternating least squares with over-relaxation for ``min ||X Y - Z||_F^2, S(Z) = S(O)``, of rank k.

    A step takes ``X = orth(Z Y')``, ``Y = X' Z``, then ``Z = X Y + (1 + w) S(O - X Y)``. With q the ratio of
    the new residual to the old: where ``q >= 1`` the step is taken back and w becomes 0; where ``q > 0.7`` w
    grows.

    Parameters
    ----------
    rank : int
        The rank, the largest if it rises.
    strategy : {"fixed", "increasing"}, default "fixed"
        Whether the rank stays, or grows by ``max(min(5, rank/5), 1)`` when ``|1 - q| < stall``.
    first_rank : int, default 1
        Where an increasing rank begins.
    stall : float, default 1.25e-3
        How slow a step must be for an increasing rank to grow.
    random_state : int, default 0
        Seed of the columns that an increasing rank adds.

    Notes
    -----
    Run it with `NoPenalty`. The published rule stops where the residual falls below 1.25e-4 of the data, or the
    ratio q is within half of that of 1 after five steps.

    References
    ----------
    Wen, Yin & Zhang, Solving a low-rank factorization model for matrix completion by a nonlinear successive
    over-relaxation algorithm, doi:10.1007/s12532-012-0044-1.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import minimize
    >>> from ell12.penalties import NoPenalty
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import LMaFit
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, NoPenalty(), solver=LMaFit(rank=1))
    >>> round(float(result.x.to_array()[0, 2]), 3)
    2.0
    """

    rank: int
    strategy: str = "fixed"
    first_rank: int = 1
    stall: float = 1.25e-3
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step that lowers the residual."""
        self.check(loss, penalty)
        limit = min(self.rank, *loss.observed.shape)
        fit = _Fit(loss, start, min(self.first_rank, limit) if self.strategy == "increasing" else limit)
        rng = np.random.default_rng(self.random_state)
        for k in itertools.count(1):
            q = fit.step()
            bound = fit.V.shape[1] >= limit and k % CHECK_EVERY == 0
            optimality = penalty.tangent_violation(fit.x.x, fit.gradient) if bound else fit.size
            yield Iterate(fit.x, loss.value(fit.x), optimality, rank_bound=bound)
            if fit.V.shape[1] < limit and abs(1 - q) < self.stall:
                fit.grow(min(max(min(5, limit // 5), 1), limit - fit.V.shape[1]), rng)


class _Fit:
    """The matrix ``x = X Y`` of rank k, its gradient, its right vectors V, and the over-relaxation w.

    The right singular vectors of x stand for Y: both span the same rows.
    """

    def __init__(self, loss: Any, start: Point, rank: int) -> None:
        self.loss, self.V = loss, _first_basis(start.x, rank)
        self._set(start)

    def _set(self, x: Point) -> None:
        self.x, self.gradient = x, sparse_gradient(self.loss, x.prediction)
        self.size, self.w, self.growth = float(np.linalg.norm(self.gradient.data)), 0.0, 1.0

    def step(self) -> float:
        """One step, made anew without over-relaxation where the residual has grown; the ratio of the residuals."""
        Z = SparsePlusLowRank(-(1 + self.w) * self.gradient, [(1.0, self.x.x)])
        U, s, V = leading_svd(Z, self.V, passes=0)
        rank = int(np.count_nonzero(s > np.finfo(s.dtype).eps * max(Z.shape) * s[0]))
        new = self.loss.point(LowRank(U[:, :rank], s[:rank], V[:, :rank]))
        gradient = sparse_gradient(self.loss, new.prediction)
        size = float(np.linalg.norm(gradient.data))
        q = size / self.size if self.size > 0 else 1.0
        if q >= 1 and self.w > 0:
            self.growth, self.w = max(0.1 * self.w, 0.1 * self.growth), 0.0
            return self.step()
        if q >= 1:
            return q
        self.x, self.gradient, self.size, self.V = new, gradient, size, V
        if q > 0.7:
            self.growth = max(self.growth, 0.25 * self.w)
            self.w += self.growth
        return q

    def grow(self, columns: int, rng: np.random.Generator) -> None:
        """Let the rank rise."""
        self.V = np.concatenate([self.V, random_block(rng, self.V.shape[0], columns, self.V.dtype)], axis=1)
        self._set(self.x)


def _first_basis(x: LowRank, rank: int) -> np.ndarray:
    """The right singular vectors of x, filled up with columns of the identity as the published method starts."""
    identity = np.eye(x.shape[1], max(rank - x.rank, 0), dtype=x.dtype)
    return np.concatenate([x.V, identity], axis=1)[:, :rank]

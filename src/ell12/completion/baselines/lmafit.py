"""LMaFit: low-rank matrix fitting by successive over-relaxation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_counts, set_numbers
from ell12.completion.baselines.sparse_gradient import sparse_gradient
from ell12.completion.low_rank import LowRank
from ell12.completion.sparse_plus_low_rank import SparsePlusLowRank, leading_svd, random_block
from ell12.protocols import Iterate, Point

FIRST_LOOK, LAST_LOOK = 5, 50  # the steps between which a falling rank waits for a clear gap
CHECK_EVERY = 10  # steps between two looks at the gradient among matrices of this rank


@dataclass(frozen=True)
class LMaFit:
    """Alternating least squares with over-relaxation for ``min ||X Y - Z||_F^2, S(Z) = S(O)``, of rank k.

    A step takes ``X = orth(Z Y')``, ``Y = X' Z``, then ``Z = X Y + (1 + w) S(O - X Y)``. With q the ratio of
    the new residual to the old: where ``q >= 1`` the step is taken back and w becomes 0; where ``q > 0.7`` w
    grows.

    Parameters
    ----------
    rank : int
        The rank, the first rank if it falls, the largest if it rises.
    strategy : {"fixed", "decreasing", "increasing"}
        Whether the rank stays; is cut, once, to where the ratio of two successive singular values of X Y is
        largest, when that is ten times their mean or after 50 steps; or grows by ``max(min(5, rank/5), 1)``
        when ``|1 - q| < stall``.
    first_rank : int
        Where an increasing rank begins.
    stall : float
        How slow a step must be for an increasing rank to grow.
    random_state : int
        Seed of the columns that an increasing rank adds.

    Notes
    -----
    Run it with `NoPenalty`. The published rule stops where the relative residual falls below 1.25e-4 or
    ``|1 - q|`` below half of that after five steps: ``stop=objective_settled(relative=1.25e-4, after=5)`` is the
    same up to the residual's square. The published code reads the falling rank off a pivoted QR, of which the
    diagonal estimates the singular values used here.

    References
    ----------
    Wen, Yin & Zhang, Solving a low-rank factorization model for matrix completion by a nonlinear successive
    over-relaxation algorithm, doi:10.1007/s12532-012-0044-1.

    Examples
    --------
    >>> from ell12 import minimize
    >>> from ell12.completion import CompletionLoss, as_observed
    >>> from ell12.penalties import NoPenalty
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
    >>> X[0, 2] = np.nan
    >>> result = minimize(CompletionLoss(as_observed(X)), NoPenalty(), solver=LMaFit(rank=1))
    >>> round(float(result.x.to_array()[0, 2]), 3)
    2.0
    """

    rank: int
    strategy: str = "fixed"
    first_rank: int = 1
    stall: float = 1.25e-3
    random_state: int = 0

    def __post_init__(self) -> None:
        check_counts(rank=self.rank, first_rank=self.first_rank)
        set_numbers(self, "stall")
        if self.strategy not in ("fixed", "decreasing", "increasing"):
            raise ValueError(f"strategy must be 'fixed', 'decreasing' or 'increasing', got {self.strategy!r}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, a step taken back included."""
        limit = min(self.rank, *loss.observed.shape)
        x, V = start, _first_basis(start.x, self._first_rank(limit))
        gradient = sparse_gradient(loss, x.prediction)
        size, w, growth, k, may_cut = float(np.linalg.norm(gradient.data)), 0.0, 1.0, 0, True
        rng = np.random.default_rng(self.random_state)
        while True:
            k += 1
            Z = SparsePlusLowRank(-(1 + w) * gradient, ((1.0, x.x),))
            new, V_new, s = _step(loss, Z, V)
            gradient_new = sparse_gradient(loss, new.prediction)
            size_new = float(np.linalg.norm(gradient_new.data))
            q = size_new / size if size > 0 else 1.0
            if q >= 1:
                growth, w = max(0.1 * w, 0.1 * growth), 0.0
            else:
                x, V, gradient, size = new, V_new, gradient_new, size_new
                if q > 0.7:
                    growth = max(growth, 0.25 * w)
                    w += growth
            yield self._iterate(loss, penalty, x, gradient, k, V.shape[1] >= limit)
            if self.strategy == "decreasing" and may_cut and _gap_found(s, k):
                x, V, may_cut, limit = *_cut(loss, x, V, s), False, int(np.argmax(_ratios(s))) + 1
                gradient = sparse_gradient(loss, x.prediction)
                size, w, growth = float(np.linalg.norm(gradient.data)), 0.0, 1.0
            elif self.strategy == "increasing" and abs(1 - q) < self.stall and V.shape[1] < limit:
                more = min(max(min(5, limit // 5), 1), limit - V.shape[1])
                V = np.concatenate([V, random_block(rng, V.shape[0], more, V.dtype)], axis=1)
                w, growth = 0.0, 1.0

    def _first_rank(self, limit: int) -> int:
        return min(self.first_rank, limit) if self.strategy == "increasing" else limit

    def _iterate(self, loss: Any, penalty: Any, x: Point, gradient: Any, k: int, final: bool) -> Iterate:
        """The optimality is the whole gradient's norm, now and then that among matrices of the final rank."""
        value = loss.value(x)
        if not final or self.strategy == "decreasing" or k % CHECK_EVERY:
            return Iterate(x, value, float(np.linalg.norm(gradient.data)))
        return Iterate(x, value, penalty.tangent_violation(x.x, gradient), capped=True)


def _step(loss: Any, Z: SparsePlusLowRank, V: np.ndarray) -> tuple[Point, np.ndarray, np.ndarray]:
    """``X = orth(Z Y')``, ``Y = X' Z`` as a point, with all right vectors and singular values of X Y.

    The right singular vectors V of the last X Y stand for Y: both have the same rows' span.
    """
    U, s, V = leading_svd(Z, V, passes=0)
    rank = int(np.count_nonzero(s > np.finfo(s.dtype).eps * max(Z.shape) * s[0]))
    return loss.point(LowRank(U[:, :rank], s[:rank], V[:, :rank])), V, s


def _first_basis(x: LowRank, rank: int) -> np.ndarray:
    """The right singular vectors of x, filled up with columns of the identity as the published method starts."""
    identity = np.eye(x.shape[1], max(rank - x.rank, 0), dtype=x.dtype)
    return np.concatenate([x.V, identity], axis=1)[:, :rank]


def _ratios(s: np.ndarray) -> np.ndarray:
    """Each singular value over the next; rounding errors count as one size."""
    floor = float(np.finfo(s.dtype).eps) * s.size * float(s[0])
    return s[:-1] / np.maximum(s[1:], floor or 1.0)


def _gap_found(s: np.ndarray, k: int) -> bool:
    """Whether one ratio stands out ten times above the mean of the others, or the wait is over."""
    if s.size < 2 or k < FIRST_LOOK:
        return False
    ratios = _ratios(s)
    others = float(ratios.sum() - ratios.max())
    return k >= LAST_LOOK or (s.size - 1) * float(ratios.max()) > 10 * others


def _cut(loss: Any, x: Point, V: np.ndarray, s: np.ndarray) -> tuple[Point, np.ndarray]:
    rank = int(np.argmax(_ratios(s))) + 1
    return loss.point(x.x.truncate(rank)), V[:, :rank]

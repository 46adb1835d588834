"""One proximal gradient step on factors: what AIS-Impute, FaNCL and Soft-Impute share.

With step 1/L the step from Y is ``prox(Y - gradient(Y)/L)``. Its matrix is sparse plus low-rank, so the leading
singular vectors come from a power method that starts from those of the step before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.completion.baselines.rival import sparse_gradient
from ell12.completion.forms import SparsePlusLowRank
from ell12.completion.leading import leading_svd, orthonormal, random_block
from ell12.completion.low_rank import LowRank
from ell12.protocols import Iterate, Point

Terms = list[tuple[float, LowRank]]


@dataclass(frozen=True)
class SpectralStep:
    """``x = prox(y - gradient(y) / L, 1 / L)`` for a penalty of the singular values.

    Parameters
    ----------
    loss : CompletionLoss
        Its gradient is sparse.
    passes : int
        Passes of the power method.
    max_rank : int, optional
        The largest rank of x.
    """

    loss: Any
    passes: int
    max_rank: int | None = None

    def __call__(
        self, penalty: Any, terms: Terms, prediction: np.ndarray, basis: np.ndarray, tol: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        """The step from ``y = sum of terms``, whose observed entries are ``prediction``.

        Returns the new point and all right Ritz vectors, also those that the penalty cut off: they are the best
        guess at the directions that will enter next.
        """
        step = 1 / self.loss.lipschitz()
        gradient = sparse_gradient(self.loss, prediction)
        U, s, V = leading_svd(SparsePlusLowRank(-step * gradient, terms), basis, passes=self.passes, tol=tol)
        shrunk = penalty.prox_values(s, step)
        rank = min(int(np.count_nonzero(shrunk > 0)), self.max_rank or shrunk.size)
        return self.loss.point(LowRank(U[:, :rank], shrunk[:rank], V[:, :rank])), V


def next_basis(ritz: np.ndarray, rank: int, spare: int, rng: np.random.Generator) -> np.ndarray:
    """The ``rank + spare`` leading Ritz vectors, half as many again where the rank filled the block.

    Missing columns are Gaussian, so that no direction stays out of reach.
    """
    wanted = rank + max(spare, rank // 2 if rank >= ritz.shape[1] else 0)
    wanted = min(max(wanted, 1), ritz.shape[0])
    missing = wanted - ritz.shape[1]
    if missing <= 0:
        return ritz[:, :wanted]
    return np.concatenate([ritz, random_block(rng, ritz.shape[0], missing, ritz.dtype)], axis=1)


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


def iterate_at(
    loss: Any, penalty: Any, new: Point, base: np.ndarray, max_rank: int | None, excess: float = 0.0
) -> Iterate:
    """The iterate at ``new``, which a step from a point with the prediction ``base`` has reached.

    Its subgradient is the part of the move that lies off the observed entries. It is estimated by the part on
    them, as if the move were spread evenly; ``excess`` is how far the strength in use is from the penalty's.
    Where the bound on the rank binds the violation among matrices of that rank is exact.
    """
    fraction = loss.observed.fraction
    off = math.sqrt((1 - fraction) / fraction)
    moved = float(np.linalg.norm(new.prediction - base))
    value = loss.value(new) + penalty.value(new.x)
    if new.x.rank == max_rank:
        return Iterate(new, value, penalty.tangent_violation(new.x, loss.gradient(new)) + excess, capped=True)
    return Iterate(new, value, loss.lipschitz() * moved * max(off, 1e-3) + excess)

"""What AIS-Impute, FaNCL and Soft-Impute share: a proximal gradient step on factors, and what it starts from.

With step 1/L the step from Y is ``prox(Y - gradient(Y)/L)``. Its matrix is sparse plus low-rank, so the leading
singular vectors come from a power method that starts from those of the step before.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ell12.checks import check_counts
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
from ell12.completion.singular_vectors import leading_svd, orthonormal, random_block
from ell12.completion.squared_error import EntryLoss
from ell12.penalties.spectral import Spectral
from ell12.protocols import Iterate, Needs, Point
from ell12_paper.rivals.rival import Rival, sparse_gradient


class PenalisedRival(Rival):
    """A rival that takes a penalty of the singular values, whose vectors come from a power method."""

    passes: int
    spare: int
    max_rank: int | None
    random_state: int

    needs: ClassVar[Needs] = Needs(EntryLoss, Spectral, "factors")

    def __post_init__(self) -> None:
        check_counts(passes=self.passes, spare=self.spare)
        check_counts(least=1, max_rank=self.max_rank)

    def check_penalty(self, penalty: Any) -> None:
        """Any will do."""

    def step(
        self, loss: Any, penalty: Any, y: list[tuple[float, Point]], basis: np.ndarray, tol: float = 0.0
    ) -> tuple[Point, np.ndarray]:
        """The step from a combination y of points.

        Returns the new point and all right Ritz vectors, also those that the penalty cut off: they are the best
        guess at the directions that will enter next.
        """
        length = 1 / loss.lipschitz()
        Z = SparsePlusLowRank(-length * sparse_gradient(loss, prediction_of(y)), [(c, p.x) for c, p in y])
        U, s, V = leading_svd(Z, basis, passes=self.passes, tol=tol)
        shrunk = penalty.prox_values(s, length)
        rank = min(int(np.count_nonzero(shrunk > 0)), self.max_rank or shrunk.size)
        return loss.point(LowRank(U[:, :rank], shrunk[:rank], V[:, :rank])), V

    def next_basis(self, ritz: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
        """The ``rank + spare`` leading Ritz vectors, half as many again where the rank filled the block.

        Missing columns are Gaussian, so that no direction stays out of reach.
        """
        wanted = rank + max(self.spare, rank // 2 if rank >= ritz.shape[1] else 0)
        wanted = min(max(wanted, 1), ritz.shape[0])
        missing = wanted - ritz.shape[1]
        if missing <= 0:
            return ritz[:, :wanted]
        return np.concatenate([ritz, random_block(rng, ritz.shape[0], missing, ritz.dtype)], axis=1)

    def iterate(
        self, loss: Any, penalty: Any, new: Point, y: list[tuple[float, Point]], excess: float = 0.0
    ) -> Iterate:
        """The iterate at ``new``, which a step from y has reached.

        Its subgradient is the part of the move that lies off the observed entries. It is estimated by the part on
        them, as if the move were spread evenly; ``excess`` is how far the strength in use is from the penalty's.
        Where the bound on the rank binds the violation among matrices of that rank is exact.
        """
        value = loss.value(new) + penalty.value(new.x)
        if new.x.rank == self.max_rank:
            violation = penalty.tangent_violation(new.x, loss.gradient(new))
            return Iterate(new, value, violation + excess, capped=True)
        fraction = loss.observed.fraction
        off = max(math.sqrt((1 - fraction) / fraction), 1e-3)
        moved = float(np.linalg.norm(new.prediction - prediction_of(y)))
        return Iterate(new, value, loss.lipschitz() * moved * off + excess)


def prediction_of(y: list[tuple[float, Point]]) -> np.ndarray:
    """The observed entries of a combination of points."""
    return sum(c * point.prediction for c, point in y)


def merged_basis(basis: np.ndarray, more: np.ndarray, *, tol: float = 1e-6) -> np.ndarray:
    """``basis`` and those columns of ``more`` whose squared distance to its span is above tol, orthonormalised.

    The columns of ``basis`` are orthonormal, those of ``more`` of length about 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.rivals.spectral_step import merged_basis
    >>> e = np.eye(3)
    >>> merged_basis(e[:, :1], e[:, :2]).shape
    (3, 2)
    """
    if more.shape[1] == 0 or basis.shape[1] == 0:
        return basis if more.shape[1] == 0 else more
    rest = more - basis @ (basis.T @ more)
    rest = rest[:, np.sum(rest * rest, axis=0) > tol]
    return np.concatenate([basis, orthonormal(rest)], axis=1)[:, : basis.shape[0]] if rest.shape[1] else basis

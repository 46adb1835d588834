"""Soft-Impute, AIS-Impute and FaNCL: proximal gradient steps whose singular vectors come from a power method."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
from ell12.completion.singular_vectors import leading_svd, orthonormal, random_block
from ell12.completion.squared_error import EntryLoss
from ell12.penalties.spectral import Spectral
from ell12.protocols import Iterate, Needs, Point
from ell12.solvers.proximal_step import next_t
from ell12_paper.rivals.common import Rival, sparse_gradient


def prediction_of(y: list[tuple[float, Point]]) -> np.ndarray:
    """The observed entries of a combination of points."""
    return sum(c * point.prediction for c, point in y)


def merged_basis(basis: np.ndarray, more: np.ndarray, *, tol: float = 1e-6) -> np.ndarray:
    """``basis`` and those columns of ``more`` whose squared distance to its span is above tol, orthonormalised.

    The columns of ``basis`` are orthonormal, those of ``more`` of length about 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.rivals.impute import merged_basis
    >>> e = np.eye(3)
    >>> merged_basis(e[:, :1], e[:, :2]).shape
    (3, 2)
    """
    if more.shape[1] == 0 or basis.shape[1] == 0:
        return basis if more.shape[1] == 0 else more
    rest = more - basis @ (basis.T @ more)
    rest = rest[:, np.sum(rest * rest, axis=0) > tol]
    return np.concatenate([basis, orthonormal(rest)], axis=1)[:, : basis.shape[0]] if rest.shape[1] else basis


@dataclass(frozen=True)
class SoftImpute(Rival):
    """``X <- soft_alpha(X + S(O - X))``: fill in, decompose, shrink the singular values.

    It minimises ``1/2 ||S(X - O)||_F^2 + alpha ||X||_*``; with the prox of another spectral penalty it is the
    proximal gradient method for that one. The filled-in matrix is sparse plus low-rank and is never formed; its
    singular vectors come from a power method warm-started by the last step's.

    Parameters
    ----------
    passes : int, default 3
        Passes of the power method in each step.
    spare : int, default 10
        Ritz vectors carried beyond the rank.
    random_state : int, default 0
        Seed of the first block.

    References
    ----------
    Mazumder, Hastie & Tibshirani, Spectral regularization algorithms for learning large incomplete matrices,
    JMLR 11 (2010) 2287-2322.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralL12, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import SoftImpute
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralL12(0.01, l2_weight=0.0), solver=SoftImpute())
    >>> round(float(result.x.to_array()[0, 2]), 1)
    2.0
    """

    passes: int = 3
    spare: int = 10
    random_state: int = 0
    needs: ClassVar[Needs] = Needs(EntryLoss, Spectral, "factors")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        x, previous, ritz = start, start, start.x.V
        for k in itertools.count(1):
            kept, y = self.next_basis(ritz, x.x.rank, rng), [(1.0, x)]
            basis = self.first_basis(kept, previous.x.V, k)
            previous = x
            x, ritz = self.step(loss, penalty, y, basis)
            yield self.iterate(loss, penalty, x, y)

    def first_basis(self, kept: np.ndarray, before: np.ndarray, k: int) -> np.ndarray:  # noqa: ARG002
        """Where the power method of step k begins: at the Ritz vectors of the last step."""
        return kept

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
        rank = int(np.count_nonzero(shrunk > 0))
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
        """
        value = loss.value(new) + penalty.value(new.x)
        fraction = loss.observed.fraction
        off = max(math.sqrt((1 - fraction) / fraction), 1e-3)
        moved = float(np.linalg.norm(new.prediction - prediction_of(y)))
        return Iterate(new, value, loss.lipschitz() * moved * off + excess)


@dataclass(frozen=True)
class AISImpute(SoftImpute):
    """Soft-Impute with momentum, a falling strength and an inexact singular value decomposition.

    For ``1/2 ||S(X - O)||_F^2 + alpha ||X||_*``, in step k::

        Y = X_k + b (X_k - X_{k-1}),  b = (t_{k-1} - 1)/t_k,  Z = Y + S(O - Y)
        alpha_k = alpha + max(alpha_max - alpha, 0) decay^k,  alpha_max = ||S(O)||_2
        X_{k+1} = soft_{alpha_k}(Z)

    The last line is found by a power method that starts from the singular vectors of ``X_k`` and ``X_{k-1}``.
    Momentum starts again when the objective rises.

    Parameters
    ----------
    passes : int, default 10
        The most passes of the power method in each step. It stops when its first vector moves by less than
        ``max(1e-6, 0.95^k)``.
    spare : int, default 5
        Ritz vectors carried beyond the rank. The published method carries none, and can then miss directions.
    random_state
        As in `SoftImpute`.
    decay : float, default 0.85
        How fast the strength falls to alpha; 0 starts at alpha.

    Notes
    -----
    The published rule stops when the objective changes by less than a tolerance. The published code leaves
    the sparse part of Z out of one of the two products of the power method; here it is in both.

    References
    ----------
    Yao & Kwok, Accelerated inexact soft-impute for fast large-scale matrix completion, IJCAI 2015;
    extended in doi:10.1109/TKDE.2018.2867533.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import SpectralL12, minimize
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import AISImpute
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralL12(0.01, l2_weight=0.0), solver=AISImpute())
    >>> round(float(result.x.to_array()[0, 2]), 1)
    2.0
    """

    passes: int = 10
    spare: int = 5
    decay: float = 0.85

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        above = max(_largest_strength(loss, rng) - penalty.alpha, 0.0)
        x = previous = start
        ritz = ritz_previous = start.x.V
        t_previous, t, value = 1.0, 1.0, math.inf
        for k in itertools.count(1):
            excess, b = above * self.decay**k, (t_previous - 1) / t
            y = [(1 + b, x), (-b, previous)]
            kept = self.next_basis(ritz, x.x.rank, rng)
            basis = merged_basis(kept, ritz_previous[:, : previous.x.rank])
            eased = replace(penalty, alpha=penalty.alpha + excess)
            previous, ritz_previous = x, ritz
            x, ritz = self.step(loss, eased, y, basis, tol=max(1e-6, 0.95**k))
            iterate = self.iterate(loss, penalty, x, y, excess)
            yield iterate
            t_previous, t = t, next_t(t)
            if iterate.objective > value:
                previous, t_previous, t = x, 1.0, 1.0
            value = iterate.objective


def _largest_strength(loss: Any, rng: np.random.Generator) -> float:
    """``||S(O)||_2`` by five power steps: from here on up, the solution is zero."""
    gradient = loss.gradient(loss.point(loss.start()))
    start = random_block(rng, gradient.shape[1], 1, gradient.dtype)
    return float(leading_svd(gradient, start, passes=4)[1][0])


@dataclass(frozen=True)
class FaNCL(SoftImpute):
    """``X <- prox(X + S(O - X))`` for a nonconvex spectral penalty such as log-sum, with inexact decompositions.

    Run with `SpectralLogSum` it minimises ``1/2 ||S(X - O)||_F^2 + alpha sum_i log(1 + sigma_i / theta)``;
    the published choice is ``theta = sqrt(alpha)``. Step k starts its power method from the singular vectors of
    X_k and those of X_{k-1} that are farther than ``1e-6 sqrt(k)`` (squared) from their span.

    Parameters
    ----------
    passes, spare, random_state
        As in `SoftImpute`.

    Notes
    -----
    The published rule stops when the relative decrease falls below a tolerance. The published log pairs the loss
    of one step with the penalty of the next; here both are those of the iterate.

    References
    ----------
    Yao, Kwok & Zhong, Fast low-rank matrix learning with nonconvex regularization, doi:10.1109/ICDM.2015.9.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import minimize
    >>> from ell12.penalties import SpectralLogSum
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import FaNCL
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, SpectralLogSum(0.01, theta=0.1), solver=FaNCL())
    >>> round(float(result.x.to_array()[0, 2]), 2)
    2.0
    """

    spare: int = 5

    def first_basis(self, kept: np.ndarray, before: np.ndarray, k: int) -> np.ndarray:
        """The last step's Ritz vectors and those of the one before."""
        return merged_basis(kept, before, tol=1e-6 * math.sqrt(k))

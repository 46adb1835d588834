"""ARSS-M3F: a fixed-rank Riemannian method inside a loop that lets the rank grow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ell12.completion.low_rank import LowRank, sums_of_products
from ell12.completion.singular_vectors import leading_svd, random_block
from ell12.protocols import Iterate, Point
from ell12_paper.rivals.common import Rival, sparse_gradient


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
    >>> from ell12_paper.rivals.arss_m3f import Tangent
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


SUFFICIENT = 1e-4  # A step must bring this share of the decrease that the slope promises.
HALVINGS = 30  # A step that is halved this many times without bringing it is given up.


@dataclass(frozen=True)
class ARSSM3F(Rival):
    """Riemannian conjugate gradients on matrices of rank r, where r grows by the leading part of the gradient.

    Least squares; the publication has maximum-margin factorization of ordinal data too. For a rank r, conjugate
    gradients (Polak-Ribiere, restarted where they do not descend) with projection as transport and the truncated
    singular value decomposition as retraction; the first step ``-<S(e), g> / (L ||S(e)||^2)`` along e is exact for
    least squares, then it is halved until the
    loss has decreased enough. Then the rank grows by the number of singular values of the gradient that are at
    least ``share`` times the largest.

    Parameters
    ----------
    max_rank : int, default 200
        Where the rank stops growing.
    share : float, default 0.7
        Of the largest singular value of the gradient, for another direction to enter with it; in (0, 1].
    growth : int, default 5
        The most directions that enter at once.
    steps : int, default 30
        The most conjugate gradient steps for each rank but the last.
    inner_tol : float, default 1e-2
        The relative decrease below which those end earlier.
    outer_tol : float, default 1e-3
        The rank stops growing where a larger one decreases the loss by less than this, relatively, or where the
        gradient's largest singular value falls below this times its first.
    final_steps : int, default 300
        The number of conjugate gradient steps for the last rank, after which it ends.
    random_state : int, default 0
        Seed of the power method.

    Notes
    -----
    Run it with `NoPenalty`; the publication's ridge (of weight 0 to 0.02 there) is left out. In the last rank the
    optimality is the norm of the Riemannian gradient and the iterates are marked as capped.
    A rule that watches single steps may end a run while
    the rank still grows: leave the end to ``final_steps``.

    References
    ----------
    Yan, Tan, Tsang, Yang, Zhang & Shi, Scalable maximum margin matrix factorization by active Riemannian subspace
    search, IJCAI 2015. Vandereycken, doi:10.1137/110845768.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import minimize
    >>> from ell12.penalties import NoPenalty
    >>> from ell12.completion import CompletionLoss
    >>> from ell12_paper.rivals import ARSSM3F
    >>> loss = CompletionLoss([[1, 1, np.nan], [2, 2, 4], [3, 3, 6]])
    >>> result = minimize(loss, NoPenalty(), solver=ARSSM3F(max_rank=1))
    >>> round(float(result.x.to_array()[0, 2]), 3)
    2.0
    """

    max_rank: int = 200
    share: float = 0.7
    growth: int = 5
    steps: int = 30
    inner_tol: float = 1e-2
    outer_tol: float = 1e-3
    final_steps: int = 300
    random_state: int = 0

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, of growth or of conjugate gradients, and end after the final ones."""
        self.check(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        limit = min(self.max_rank, *loss.observed.shape)
        here, first = descent_point(loss, start), 0.0
        while here.point.x.rank < limit:
            grown, size = self._grow(loss, here, limit, rng)
            first, before = max(first, size), here.value
            if size <= self.outer_tol * first or not grown.value < before:
                break
            here = grown
            yield Iterate(here.point, here.value, here.gradient_norm)
            for better in self._steps(loss, grown):
                here = better
                yield Iterate(here.point, here.value, here.gradient_norm)
            if before - here.value <= self.outer_tol * before:
                break
        for last in itertools.islice(conjugate_descent(loss, here), self.final_steps):
            yield Iterate(last.point, last.value, last.slope.norm(), rank_bound=True)

    def _steps(self, loss: Any, here: DescentPoint) -> Iterator[DescentPoint]:
        """A limited number of conjugate gradient steps."""
        for new in itertools.islice(conjugate_descent(loss, here), self.steps):
            yield new
            if here.value - new.value <= self.inner_tol * here.value:
                return
            here = new

    def _grow(
        self, loss: Any, here: DescentPoint, limit: int, rng: np.random.Generator
    ) -> tuple[DescentPoint, float]:
        """A point of larger rank along the leading singular vectors of the gradient, and the largest value."""
        x = here.point.x
        block = min(self.growth, limit - x.rank)
        start = random_block(rng, x.shape[1], block + 2, x.dtype)
        U, s, V = (part[..., :block] for part in leading_svd(here.descent, start, passes=10))
        if s[0] == 0:
            return here, 0.0
        count = int(np.count_nonzero(s >= self.share * s[0]))
        direction = LowRank(U[:, :count], s[:count], V[:, :count])
        square = direction.norm() ** 2  # the direction is a part of the gradient, orthogonal to the rest
        move = direction.entries(loss.observed.rows, loss.observed.columns)
        step = first_step(loss, -square, move)
        left = np.concatenate([x.weighted, step * direction.weighted], axis=1)
        right = np.concatenate([x.V, direction.V], axis=1)
        return descent_point(loss, loss.point(LowRank.from_factors(left, right))), float(s[0])


@dataclass(frozen=True)
class DescentPoint:
    """A point with its objective and minus its gradient, a sparse matrix."""

    point: Point
    value: float
    descent: Any

    @cached_property
    def slope(self) -> Tangent:
        """The Riemannian gradient."""
        return -1.0 * Tangent.project(self.descent, self.point.x)

    @property
    def gradient_norm(self) -> float:
        """The Frobenius norm of the whole gradient."""
        return float(np.linalg.norm(self.descent.data))


def descent_point(loss: Any, point: Point, value: float | None = None) -> DescentPoint:
    """A point with minus its gradient, and with its objective, which may be known."""
    descent = -sparse_gradient(loss, point.prediction)
    return DescentPoint(point, loss.value(point) if value is None else value, descent)


def first_step(loss: Any, promised: float, move: np.ndarray) -> float:
    """The step to the minimum of a quadratic bound, exact for least squares.

    ``promised`` is the slope along a direction, ``move`` its observed entries.
    """
    curvature = loss.lipschitz() * float(np.vdot(move, move))
    return -promised / curvature if curvature > 0 else 0.0


def conjugate_descent(loss: Any, here: DescentPoint) -> Iterator[DescentPoint]:
    """Points of ever smaller objective, of the first rank, along a manifold: no linear system is solved."""
    direction = -1.0 * here.slope
    while True:
        new = _line_search(loss, here, direction) or _line_search(loss, here, -1.0 * here.slope) or here
        yield new
        change = new.slope.inner(new.slope) - new.slope.inner(here.slope.transport(new.point.x))
        ratio = max(0.0, change / (here.slope.inner(here.slope) or 1.0))
        direction = -1.0 * new.slope + ratio * direction.transport(new.point.x)
        if not direction.inner(new.slope) < 0:
            direction = -1.0 * new.slope
        here = new


def _line_search(loss: Any, here: DescentPoint, direction: Tangent) -> DescentPoint | None:
    """The first of ever shorter steps that decreases the objective enough; None where none does."""
    observed, promised = loss.observed, here.slope.inner(direction)
    move = direction.entries(observed.rows, observed.columns)
    step = first_step(loss, promised, move)
    for _ in range(HALVINGS if step > 0 else 0):
        new = loss.point(direction.retract(step))
        value = loss.value(new)
        if value <= here.value + SUFFICIENT * step * promised:
            return descent_point(loss, new, value)
        step *= 0.5
    return None

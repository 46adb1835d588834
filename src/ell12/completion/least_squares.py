"""Alternating least squares under the l1-2 penalty: for ratings, under a bound on the rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_numpy, concat, count_true, is_numpy, namespace, take
from ell12.checks import generator
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import check_rank
from ell12.completion.observed import Observed
from ell12.completion.singular_vectors import SPARE, WarmBlock
from ell12.completion.squared_error import SweepLoss
from ell12.penalties import SpectralL12
from ell12.penalties.spectral import Spectral, thin_norm
from ell12.protocols import Array, Iterate, Needs, Point


@dataclass(frozen=True)
class AlternatingLeastSquares:
    """Alternating least squares: the factors of rows and of columns in turn.

    ``X = W H'`` with the rows of W and of H solved for in turn.

    With ``||X||_* = min 1/2 (||W||^2 + ||H||^2)`` and the subtracted norm linearised, each row of W solves::

        (H_i'H_i + alpha I) w = H_i'o_i + (alpha l2_weight / ||W H'||_F) (H'H) w_old

    where H_i are the rows of H at the known entries o_i of row i. No sweep raises the objective, which is the one
    of the other engines, and what a sweep changes is over-relaxed while that lowers the objective further. Between
    sweeps the factors are balanced, directions whose loss lowers the objective are dropped, and where the rank is
    below its bound those that the gradient asks for are added.

    Parameters
    ----------
    max_rank : int, default 10
        The largest rank allowed; the work of a sweep grows with its square.
    n_threads : int, default 1
        Threads that share the rows.
    random_state : int or Generator, default 0
        Of the start, where none is given; 0 by default, so that runs repeat.

    References
    ----------
    Salakhutdinov & Roweis, Adaptive overrelaxed bound optimization methods, ICML 2003.
    """

    max_rank: int = 10
    n_threads: int = 1
    random_state: Any = 0

    needs: ClassVar[Needs] = Needs(SweepLoss, Spectral, "factors")

    def __post_init__(self) -> None:
        check_rank(self.max_rank)
        check_rank(self.n_threads, "n_threads")
        generator(self.random_state)
        if self.max_rank is None:
            raise ValueError("max_rank must be an integer >= 1: the factors have as many columns")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a sweep."""
        if not isinstance(penalty, SpectralL12) or penalty.strength == 0:
            raise ValueError(f"alternating least squares needs a SpectralL12 with alpha > 0, got {penalty!r}")
        sweep = loss.make_sweep(penalty, self.n_threads)
        max_rank = min(self.max_rank, *loss.observed.shape)
        x = start.x.truncate(max_rank) if start.x.rank else first_guess(loss.observed, max_rank, self.random_state)
        beyond = WarmBlock(LowRank.zeros(x.shape, like=x.s), rng=self.random_state)
        value, length = math.inf, 1.0

        def valued(x: LowRank) -> tuple[LowRank, Point, float]:
            point = loss.point(x)
            return x, point, loss.value(point) + penalty.value(x)

        while True:
            swept = sweep(x) if x.rank else x
            found = valued(_lengthened(x, swept, length))
            length *= 2  # twice as far each time, until that raises the objective
            if found[0] is not swept and not found[2] <= value:
                found, length = valued(swept), 1.0
            x, point, value = found
            gradient = loss.gradient(point)
            tangent = _SharedSpaces(x, gradient, penalty)
            kept = tangent.worth_keeping()
            optimality = tangent.violation()
            changed = None
            if not kept.all():
                some = np.flatnonzero(kept)
                changed = LowRank.trusted(take(x.U, some, 1), take(x.s, some, 0), take(x.V, some, 1))
            elif x.rank < max_rank and optimality <= penalty.strength:
                changed = _with_missing(x, gradient, penalty, beyond, max_rank)
            if changed is not None:
                optimality, (x, point, value) = math.inf, valued(changed)
            yield Iterate(point, value, optimality, rank_bound=x.rank == max_rank)


def _lengthened(x: LowRank, swept: LowRank, length: float) -> LowRank:
    """The matrix that lies ``factor`` times as far from x as the swept one, along their balanced factors.

    Factors are the same up to a rotation; the one that brings those of the two matrices nearest is taken.
    """
    if length == 1 or swept.rank != x.rank or x.rank == 0:
        return swept
    xp = namespace(x.s)
    (W, H), (W1, H1) = ((y.U * xp.sqrt(y.s), y.V * xp.sqrt(y.s)) for y in (x, swept))
    P, _, Q = xp.linalg.svd(W1.T @ W + H1.T @ H)
    R = P @ Q
    return LowRank.from_factors(W + length * (W1 @ R - W), H + length * (H1 @ R - H))


class _SharedSpaces:
    """What the gradient says within the spaces of x."""

    def __init__(self, x: LowRank, gradient: Any, penalty: SpectralL12) -> None:
        self.x, self.penalty = x, penalty
        self.left, self.right = gradient @ x.V, gradient.T @ x.U

    def violation(self) -> float:
        """As `Spectral.tangent_violation`, from products that are there already."""
        if self.x.rank == 0:
            return 0.0
        slopes = self.penalty.slopes_of(self.x.s)
        return max(thin_norm(self.left + self.x.U * slopes), thin_norm(self.right + self.x.V * slopes))

    def worth_keeping(self) -> np.ndarray:
        """Which singular triplets are worth their price.

        Without those of a set D the loss rises by ``sum_D s_i (s_i / 2 - u_i'G v_i)`` at most, and the penalty
        falls by ``alpha (sum_D s_i - l2_weight (||X|| - ||X without D||))``. The largest stays where it is free.
        """
        s, penalty = as_numpy(self.x.s), self.penalty
        rise = s * (s / 2 - as_numpy(_column_products(self.x.U, self.left)))
        dropped = rise < penalty.strength * s
        if penalty.l2_weight >= 1:
            dropped[:1] = False
        length = self.x.norm()
        while dropped.any():
            shortened = length - math.sqrt(float(np.sum(np.square(s), where=~dropped)))
            if rise[dropped].sum() < penalty.strength * (s[dropped].sum() - penalty.l2_weight * shortened):
                break
            dropped[np.flatnonzero(dropped)[0]] = False  # the largest of them
        return ~dropped


def _column_products(A: Array, B: Array) -> Array:
    """The inner product of each column of A with that of B."""
    return np.einsum("ij,ij->j", A, B) if is_numpy(A) else namespace(A).sum(A * B, axis=0)


def first_guess(observed: Observed, rank: int, rng: Any) -> LowRank:
    """The leading singular triplets of the known entries, lengthened as if the unknown ones were like them."""
    block = WarmBlock(LowRank.zeros(observed.shape, like=observed.values), rng=rng)
    block.size, matrix = min(rank + SPARE, block.limit), observed.sparse()
    for _ in range(rank):
        U, s, V = block(matrix)
    rank = count_true(s[:rank] > 0)
    return LowRank.trusted(U[:, :rank], s[:rank] / observed.fraction, V[:, :rank])


def _with_missing(
    x: LowRank, gradient: Any, penalty: SpectralL12, block: WarmBlock, max_rank: int
) -> LowRank | None:
    """X with the directions beyond its spaces that the gradient asks for; None where there are none."""
    U, s, V = block(_Beyond(gradient, x))
    block.keep(0)
    # From zero on, where the subtracted norm is not smooth, a proximal step.
    grown = namespace(s).where(s > penalty.strength * (1 + 1e-5), s - penalty.strength, 0)
    sizes = grown if x.rank else penalty.prox_values(s, 1.0)
    count = min(count_true(sizes > 0), max_rank - x.rank)
    if count == 0:
        return None
    W = concat([x.weighted, U[:, :count] * sizes[:count]], axis=1)
    return LowRank.from_factors(W, concat([x.V, V[:, :count]], axis=1))


class _Beyond:
    """``-(I - U U') G (I - V V')`` by its products."""

    def __init__(self, gradient: Any, x: LowRank) -> None:
        self.gradient, self.x = gradient, x

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape

    @property
    def T(self) -> _Beyond:
        return _Beyond(self.gradient.T, self.x.T)

    def __matmul__(self, B: Array) -> Array:
        B = self.gradient @ (B - self.x.V @ (self.x.V.T @ B))
        return self.x.U @ (self.x.U.T @ B) - B

"""Alternating least squares under the l1-2 penalty: for ratings, under a bound on the rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import as_numpy, concat, count_true, namespace, take
from ell12.checks import check_counts, generator
from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
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
    random_state : int or Generator, default 0
        Of the start, where none is given; 0 by default, so that runs repeat.

    References
    ----------
    Salakhutdinov & Roweis, Adaptive overrelaxed bound optimization methods, ICML 2003.
    """

    max_rank: int = 10
    random_state: Any = 0

    needs: ClassVar[Needs] = Needs(SweepLoss, Spectral, "factors")

    def __post_init__(self) -> None:
        check_counts(least=1, optional=False, max_rank=self.max_rank)
        generator(self.random_state)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a sweep."""
        if not isinstance(penalty, SpectralL12) or penalty.strength == 0:
            raise ValueError(f"alternating least squares needs a SpectralL12 with alpha > 0, got {penalty!r}")
        sweep = loss.make_sweep(penalty)
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
            left, right, slopes = gradient @ x.V, gradient.T @ x.U, penalty.slopes_of(x.s)
            optimality = max(thin_norm(left + x.U * slopes), thin_norm(right + x.V * slopes))
            changed = _without_worst(x, left, penalty)
            if changed is None and x.rank < max_rank and optimality <= penalty.strength:
                changed = _with_missing(x, (gradient, left, right), penalty, beyond, max_rank)
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
    (W, H), (W1, H1) = x.balanced, swept.balanced
    P, _, Q = xp.linalg.svd(W1.T @ W + H1.T @ H)
    R = P @ Q
    return LowRank.from_factors(W + length * (W1 @ R - W), H + length * (H1 @ R - H))


def _without_worst(x: LowRank, left: Array, penalty: SpectralL12) -> LowRank | None:
    """X without the singular triplet that is least worth its price; None where all are worth theirs.

    Without the i-th the loss rises by ``s_i (s_i / 2 - u_i'G v_i)`` at most, and the penalty falls by
    ``alpha (s_i - l2_weight (||X|| - ||X without it||))``; ``left`` is G V.
    """
    s = as_numpy(x.s).astype(float)
    rise = s * (s / 2 - as_numpy(namespace(left).sum(x.U * left, axis=0)))
    square = np.sum(s**2)
    fall = penalty.strength * (s - penalty.l2_weight * (np.sqrt(square) - np.sqrt(square - s**2)))
    if not np.any(fall > rise):
        return None
    kept = np.delete(np.arange(x.rank), np.argmax(fall - rise))
    return LowRank.trusted(take(x.U, kept, 1), take(x.s, kept, 0), take(x.V, kept, 1))


def first_guess(observed: Observed, rank: int, rng: Any) -> LowRank:
    """The leading singular triplets of the known entries, lengthened as if the unknown ones were like them."""
    block = WarmBlock(LowRank.zeros(observed.shape, like=observed.values), rng=rng)
    block.size, matrix = min(rank + SPARE, block.limit), observed.sparse()
    for _ in range(rank):
        U, s, V = block(matrix)
    rank = count_true(s[:rank] > 0)
    return LowRank.trusted(U[:, :rank], s[:rank] / observed.fraction, V[:, :rank])


def _with_missing(
    x: LowRank, products: tuple[Any, Array, Array], penalty: SpectralL12, block: WarmBlock, max_rank: int
) -> LowRank | None:
    """X with the directions beyond its spaces that the gradient G asks for; None where there are none.

    They are the leading ones of ``(I - U U') G (I - V V') = G - U (G'U)' - (I - U U') (G V) V'``; the products are
    G, G V and G'U.
    """
    gradient, left, right = products
    inside = concat([x.U, left - x.U @ (x.U.T @ left)], axis=1), concat([right, x.V], axis=1)
    both = LowRank.trusted(inside[0], namespace(x.s).ones_like(inside[0][0]), inside[1])  # two factors, no more
    U, s, V = block(SparsePlusLowRank(gradient, [(-1.0, both)]))
    block.keep(0)
    # From zero on, where the subtracted norm is not smooth, a proximal step.
    grown = namespace(s).where(s > penalty.strength * (1 + 1e-5), s - penalty.strength, 0)
    sizes = grown if x.rank else penalty.prox_values(s, 1.0)
    count = min(count_true(sizes > 0), max_rank - x.rank)
    if count == 0:
        return None
    W = concat([x.weighted, -U[:, :count] * sizes[:count]], axis=1)
    return LowRank.from_factors(W, concat([x.V, V[:, :count]], axis=1))

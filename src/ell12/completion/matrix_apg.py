"""nmAPG for matrices of low rank: dense, as factors and a sparse residual, or by full decompositions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from ell12.backend import concat, count_true, inner, namespace, norm
from ell12.checks import check_counts, generator
from ell12.completion.low_rank import LowRank
from ell12.completion.singular_vectors import FullTriplets, WarmBlock
from ell12.completion.squared_error import EntryLoss
from ell12.penalties.spectral import Spectral
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.solvers.proximal_step import Nonmonotone


class Mixture:
    """``sum_i c_i X_i`` of estimates: it adds and scales, and nothing is computed before it is asked for."""

    def __init__(self, terms: dict[Estimate, float]) -> None:
        self.terms = terms

    def __add__(self, other: Mixture, factor: float = 1.0) -> Mixture:
        total = dict(self.terms)
        for estimate, c in other.terms.items():
            total[estimate] = total.get(estimate, 0.0) + factor * c
        return Mixture(total)

    def __sub__(self, other: Mixture) -> Mixture:
        return self.__add__(other, -1.0)

    def __rmul__(self, factor: float) -> Mixture:
        return Mixture({estimate: factor * c for estimate, c in self.terms.items()})

    @cached_property
    def prediction(self) -> Array:
        """The entries at the known positions."""
        return sum([c * estimate.prediction for estimate, c in self.terms.items()])

    @cached_property
    def full(self) -> Array:
        """All entries, in the dense form."""
        return sum([c * estimate.full for estimate, c in self.terms.items()])


class Estimate(Mixture):
    """A low-rank matrix with its entries at the known positions and, in the dense form, all of them."""

    def __init__(self, x: LowRank, prediction: Array, full: Array = None) -> None:
        self.x, self.prediction, self.full = x, prediction, full
        self.point = Point(x, prediction)  # what the loss and the loop know of it

    @property
    def terms(self) -> dict[Estimate, float]:  # type: ignore[override]
        """Itself."""
        return {self: 1.0}


class SparsePlusLowRank:
    """``R + sum_i c_i X_i`` with R sparse and the X low-rank: a matrix known by its products."""

    def __init__(self, sparse: Any, terms: list[tuple[float, LowRank]]) -> None:
        self.sparse, self.terms = sparse, terms

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.sparse.shape

    @property
    def T(self) -> SparsePlusLowRank:
        """The transpose."""
        return SparsePlusLowRank(self.sparse.T, [(c, x.T) for c, x in self.terms])

    def __matmul__(self, B: Array) -> Array:
        total = self.sparse @ B
        for c, x in self.terms:
            total = total + c * (x @ B)
        return total


def combined_norm(terms: list[tuple[float, LowRank]]) -> float:
    """``||sum_i c_i X_i||_F``, accurate to about 1e-8 of the largest term."""
    W = concat([c * x.weighted for c, x in terms], axis=1)
    H = concat([x.V for _, x in terms], axis=1)
    return math.sqrt(max(float(namespace(W).sum((W.T @ W) * (H.T @ H))), 0.0))


class MatrixStep(NamedTuple):
    """Where a proximal step led."""

    point: Estimate
    objective: float
    distance: float  # of the two points, in units of the gradient
    rank_bound: bool  # the bound on the rank binds
    is_full: bool  # the block had no vector to spare, so that directions may be missing
    length: float  # of the step
    square: float  # of the distance of the two points

    def iterate(self) -> Iterate:
        """The step as the loop wants it; one that may miss directions is never taken for optimal.

        A distance that rounding alone may have made, in single precision above all, counts as none.
        """
        x = self.point.x
        rounding = 4 * float(namespace(x.s).finfo(x.s.dtype).eps) * x.norm() / self.length
        optimality = math.inf if self.is_full else max(self.distance - rounding, 0.0)
        return Iterate(self.point.point, self.objective, optimality, rank_bound=self.rank_bound)


class DenseSteps:
    """``Y -> prox(Y - length (gradient(Y) - slope), length)`` with one over the Lipschitz constant as length.

    Every matrix is dense; on any kind of array.
    """

    slope: Any = None

    def __init__(self, loss: Any, penalty: Any, triplets: Any, max_rank: int | None = None) -> None:
        self.loss, self.penalty, self.triplets, self.max_rank = loss, penalty, triplets, max_rank
        self.length = 1 / loss.lipschitz()

    def __call__(self, y: Mixture, *_: Any) -> MatrixStep:
        """The step from a combination of estimates."""
        move = -self.length * self.loss.residual(Point(None, y.prediction))  # only known entries move
        start, Z = self.moved(y, move)
        U, s, V = self.triplets(Z if self.slope is None else Z + self.length * self.slope.to_array())
        s = self.penalty.prox_values(s[: self.max_rank], self.length)
        rank = count_true(s > 0)
        self.triplets.keep(rank)
        new = self.estimate(LowRank.trusted(U[:, :rank], s[:rank], V[:, :rank]))
        distance = self.distance(new, start)
        value = self.loss.value(new.point) + self.penalty.value_of(new.x.s)
        square, full = distance * distance, self.triplets.is_full  # a power would raise where it overflows
        return MatrixStep(new, value, distance / self.length, rank == self.max_rank, full, self.length, square)

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        full = x.to_array()
        xp = namespace(full)
        return Estimate(x, xp.take(xp.reshape(full, (-1,)), self.loss.observed.flat, axis=0), full)

    def moved(self, y: Mixture, move: Array) -> tuple[Any, Any]:
        """Y, and the matrix that it becomes when its known entries move so."""
        return y.full, y.full + self.loss.observed.dense(move)

    def distance(self, new: Estimate, start: Any) -> float:
        """The Frobenius norm of the difference from where the step began."""
        return norm(new.full - start)


class FactoredSteps(DenseSteps):
    """The same where every matrix is a sum of low-rank ones and a sparse one."""

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        return Estimate(x, self.loss.point(x).prediction)

    def moved(self, y: Mixture, move: Array) -> tuple[Any, Any]:
        """Y as its terms, and the matrix that it becomes when its known entries move so."""
        terms = [(c, estimate.x) for estimate, c in y.terms.items()]
        return terms, SparsePlusLowRank(self.loss.observed.sparse(move), terms)

    def distance(self, new: Estimate, start: Any) -> float:
        """The Frobenius norm of the difference, from the factors' inner products."""
        return combined_norm([(1.0, new.x), *((-c, x) for c, x in start)])


@dataclass(frozen=True)
class BlockAPG:
    """nmAPG on dense matrices; each proximal step starts from the singular vectors of the last one.

    The engine where a quarter or more of the entries is known. The block holds a few vectors more than the prox
    keeps, all carried from step to step, so that one pass of subspace iteration a step is enough.

    Parameters
    ----------
    max_rank : int, optional
        The largest rank allowed.
    random_state : int or Generator, default 0
        Of the block's first columns; 0 by default, so that runs repeat.
    """

    max_rank: int | None = None
    random_state: Any = 0

    needs: ClassVar[Needs] = Needs(EntryLoss, Spectral, "factors")
    steps: ClassVar[Any] = DenseSteps
    triplets: ClassVar[Any] = WarmBlock

    def __post_init__(self) -> None:
        check_counts(least=1, max_rank=self.max_rank)
        generator(self.random_state)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        take_step = self.steps(loss, penalty, self.triplets(start.x, self.random_state), self.max_rank)
        x = take_step.estimate(start.x.truncate(self.max_rank))
        state = Nonmonotone(x, loss.value(x.point) + penalty.value(x.x))
        while True:
            yield state.advance(take_step, turns_back=turns_back).iterate()


@dataclass(frozen=True)
class FactoredAPG(BlockAPG):
    """nmAPG on factors and a sparse residual, for large matrices of which little is known.

    A step costs products of the known entries and of the factors with a few vectors; no dense matrix is made.

    Parameters
    ----------
    max_rank, random_state
        As in `BlockAPG`.
    """

    steps: ClassVar[Any] = FactoredSteps


@dataclass(frozen=True)
class FullSVD(BlockAPG):
    """nmAPG on dense matrices with a full decomposition in each step, to compare with.

    Parameters
    ----------
    max_rank : int, optional
        The largest rank allowed.
    """

    random_state: Any = field(default=0, init=False, repr=False)  # nothing is random

    triplets: ClassVar[Any] = FullTriplets


def turns_back(new: Estimate, y: Mixture, x: Estimate) -> bool:
    """Whether the step from an extrapolated point goes against the move from x, seen at the known entries."""
    return inner(y.prediction - new.prediction, new.prediction - x.prediction) > 0

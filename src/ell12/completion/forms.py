"""Two ways to hold the matrices of a proximal step: dense, or as factors beside a sparse matrix.

A step needs a combination Y of past estimates, the matrix Z that a gradient step from Y leads to, and an estimate
made of the singular triplets that the prox of Z keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ell12.backend import namespace, norm
from ell12.completion.loss import EntryLoss
from ell12.completion.low_rank import LowRank
from ell12.completion.segments import has_segments
from ell12.protocols import Array, Point


class Mixture:
    """``sum_i c_i X_i`` of estimates: it adds and scales, and nothing is computed before it is asked for."""

    def __init__(self, terms: dict[Estimate, float]) -> None:
        self.terms = terms

    def __add__(self, other: Mixture) -> Mixture:
        total = dict(self.terms)
        for estimate, c in other.terms.items():
            total[estimate] = total.get(estimate, 0.0) + c
        return Mixture({estimate: c for estimate, c in total.items() if c != 0})

    def __sub__(self, other: Mixture) -> Mixture:
        return self + -1.0 * other

    def __rmul__(self, factor: float) -> Mixture:
        return Mixture({estimate: factor * c for estimate, c in self.terms.items()})

    def combine(self, part: str) -> Any:
        """The combination of the estimates' predictions, or of their full matrices."""
        return combined([(c, getattr(estimate, part)) for estimate, c in self.terms.items()])

    @property
    def factors(self) -> list[tuple[float, LowRank]]:
        """The low-rank matrices with their weights."""
        return [(c, estimate.x) for estimate, c in self.terms.items()]


@dataclass(frozen=True, eq=False)
class Estimate(Mixture):
    """A low-rank matrix with its entries at the known places and, in the dense form, all of them."""

    x: LowRank
    prediction: Array
    full: Array = None

    @property
    def terms(self) -> dict[Estimate, float]:  # type: ignore[override]
        """Itself."""
        return {self: 1.0}

    @property
    def point(self) -> Point:
        """What the loss and the loop know of it."""
        return Point(self.x, self.prediction)


class DenseForm:
    """Every matrix is dense; on any kind of array."""

    def __init__(self, loss: EntryLoss) -> None:
        self.loss, self.observed, self.known = loss, loss.observed, loss.observed.mask()
        self.goals: Array = None
        self.filled: Array = None

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        full = x.to_array()
        xp = namespace(full)
        return Estimate(x, xp.take(xp.reshape(full, (-1,)), self.observed.flat, axis=0), full)

    def step(self, y: Mixture, length: float) -> tuple[Array, Array]:
        """Y, and the matrix that a gradient step of this length leads to: only its known entries move."""
        matrix, goals = y.combine("full"), self.loss.after_step(y.combine("prediction"), length)
        if goals is not self.goals:  # for the squared error they are always the same
            self.goals, self.filled = goals, self.observed.dense(goals)
        return matrix, namespace(matrix).where(self.known, self.filled, matrix)

    def add(self, Z: Array, factor: float, x: LowRank) -> Array:
        """``Z + factor X``."""
        return Z + factor * x.to_array()

    def distance(self, new: Estimate, matrix: Array) -> float:
        """The Frobenius norm of their difference."""
        return norm(new.full - matrix)


class FactoredForm:
    """Every matrix is a sum of low-rank ones and a sparse one."""

    def __init__(self, loss: EntryLoss) -> None:
        if not has_segments(loss.observed.values):
            raise TypeError(
                "X must be a NumPy, PyTorch or CuPy array for steps on factors; use BlockAPG for others"
            )
        self.loss = loss

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        return Estimate(x, self.loss.point(x).prediction)

    def step(self, y: Mixture, length: float) -> tuple[Any, SparsePlusLowRank]:
        """Y as its terms, and the matrix that a gradient step of this length leads to."""
        prediction = y.combine("prediction")
        move = self.loss.observed.sparse(self.loss.after_step(prediction, length) - prediction)
        return y.factors, SparsePlusLowRank(move, y.factors)

    def add(self, Z: SparsePlusLowRank, factor: float, x: LowRank) -> SparsePlusLowRank:
        """``Z + factor X``."""
        return SparsePlusLowRank(Z.sparse, [*Z.terms, (factor, x)])

    def distance(self, new: Estimate, terms: list[tuple[float, LowRank]]) -> float:
        """The Frobenius norm of their difference, from the factors' inner products."""
        return combined_norm([(1.0, new.x), *((-c, x) for c, x in terms)])


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
        return combined([(1.0, self.sparse @ B), *((c, x @ B) for c, x in self.terms)])


def combined_norm(terms: list[tuple[float, LowRank]]) -> float:
    """``||sum_i c_i X_i||_F``, accurate to about 1e-8 of the largest term."""
    terms = [(c, x) for c, x in terms if x.rank]
    square = 0.0
    for i, (c, x) in enumerate(terms):
        for j, (d, y) in enumerate(terms[: i + 1]):
            product = namespace(x.s).sum((x.U.T @ y.weighted) * ((x.V * x.s).T @ y.V))
            square += (1 if j == i else 2) * c * d * float(product)
    return math.sqrt(max(square, 0.0))


def combined(terms: list[tuple[float, Array]]) -> Array:
    """``sum_i c_i A_i`` of arrays."""
    (c, A), *others = terms
    total = c * A
    for c, A in others:
        if c != 0:
            total = total + c * A
    return total

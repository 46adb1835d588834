"""Two ways to hold the matrices of a proximal step: dense, or as factors beside a sparse matrix.

A step needs a combination Y of past estimates, the target ``Z = Y - S(Y - O)`` of its prox, and an estimate made
of the singular triplets that the prox keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from ell12.backend import namespace, norm
from ell12.completion.loss import CompletionLoss
from ell12.completion.low_rank import LowRank
from ell12.protocols import Array, Point

DENSE_FROM = 0.25  # the share of known entries from which the dense form is the faster one
DENSE_LIMIT = 2**26  # entries; a larger dense matrix is not made unasked


@dataclass(frozen=True)
class Estimate:
    """A low-rank matrix with its entries at the known places and, in the dense form, all of them."""

    x: LowRank
    prediction: Array
    full: Array = None

    @property
    def point(self) -> Point:
        """What the loss and the loop know of it."""
        return Point(self.x, self.prediction)


class Combination(NamedTuple):
    """``sum_i c_i X_i`` with its entries at the known places."""

    matrix: Any
    prediction: Array


Terms = list[tuple[float, Estimate]]


class DenseForm:
    """Every matrix is dense; on any kind of array."""

    def __init__(self, loss: CompletionLoss) -> None:
        self.observed = loss.observed
        self.known, self.values = self.observed.mask(), self.observed.dense()

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        full = x.to_array()
        xp = namespace(full)
        return Estimate(x, xp.take(xp.reshape(full, (-1,)), self.observed.flat, axis=0), full)

    def combine(self, terms: Terms) -> Combination:
        """The combination of estimates."""
        return Combination(
            combined([(c, e.full) for c, e in terms]), combined([(c, e.prediction) for c, e in terms])
        )

    def target(self, y: Combination, slope: LowRank | None) -> Array:
        """``Y - S(Y - O) + slope``: the known entries, and Y's where none is known."""
        Z = namespace(self.values).where(self.known, self.values, y.matrix)
        return Z if slope is None else Z + slope.to_array()

    def distance(self, new: Estimate, y: Combination) -> float:
        """The Frobenius norm of their difference."""
        return norm(new.full - y.matrix)


class FactoredForm:
    """Every matrix is a sum of low-rank ones and a sparse one; NumPy arrays alone."""

    def __init__(self, loss: CompletionLoss) -> None:
        self.loss, self.observed = loss, loss.observed

    def estimate(self, x: LowRank) -> Estimate:
        """The estimate of these singular triplets."""
        return Estimate(x, self.loss.point(x).prediction)

    def combine(self, terms: Terms) -> Combination:
        """The combination of estimates."""
        return Combination([(c, e.x) for c, e in terms], combined([(c, e.prediction) for c, e in terms]))

    def target(self, y: Combination, slope: LowRank | None) -> SparsePlusLowRank:
        """``Y - S(Y - O) + slope``, the middle term sparse."""
        terms = y.matrix if slope is None else [*y.matrix, (1.0, slope)]
        return SparsePlusLowRank(self.observed.sparse(self.observed.values - y.prediction), terms)

    def distance(self, new: Estimate, y: Combination) -> float:
        """The Frobenius norm of their difference, from the factors' inner products."""
        return combined_norm([(1.0, new.x), *((-c, x) for c, x in y.matrix)])


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


def suits_dense(loss: CompletionLoss) -> bool:
    """Whether the dense form is the faster one, and small enough to be made unasked."""
    observed = loss.observed
    return observed.fraction >= DENSE_FROM and math.prod(observed.shape) <= DENSE_LIMIT


def combined(terms: list[tuple[float, Array]]) -> Array:
    """``sum_i c_i A_i`` of arrays."""
    (c, A), *others = terms
    total = c * A
    for c, A in others:
        if c != 0:
            total = total + c * A
    return total

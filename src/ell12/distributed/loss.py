"""A loss over rows that live on workers: a sum over blocks, one pass for each evaluation."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ell12.backend import inner, norm, rise_above_tangent, rounding
from ell12.distributed.batches import batches, row_counts
from ell12.distributed.blocks import Kind, evaluate, gram_product
from ell12.distributed.executor import Blocks
from ell12.distributed.moments import moments
from ell12.distributed.substitution import NoSubstitution, Selection, Substitution
from ell12.losses import SquaredLoss
from ell12.losses.of_prediction import Sessions, fact
from ell12.operators.krylov import largest_eigenvalue
from ell12.protocols import Array, Batch, Point

# Up to 1000 columns one pass adds up the products of all columns, which costs about as much as a few other passes.
GRAM_COLUMNS = 1000
# A session remembers four points: nmAPG works with x, the one before, z and the extrapolated y.
REMEMBERED = 4


@dataclass(eq=False, slots=True)
class VisitedPoint:
    """A point, and the loss and gradient there once a pass has found them."""

    x: Array
    value: float = math.nan
    gradient: Array = None


@dataclass(frozen=True, slots=True)
class PointCombination:
    """What stands in for a prediction: of which places a point is a linear combination.

    Predictions are as long as the rows and never leave the workers. What is known at the places serves instead:
    the gradient of a squared loss is affine in x.
    """

    factors: dict[VisitedPoint, float] = field(default_factory=dict)

    def __add__(self, other: PointCombination) -> PointCombination:
        factors = dict(self.factors)
        for place, factor in other.factors.items():
            factors[place] = factors.get(place, 0.0) + factor
        return PointCombination(factors)

    def __rmul__(self, factor: float) -> PointCombination:
        return PointCombination({place: factor * own for place, own in self.factors.items()})

    def __sub__(self, other: PointCombination) -> PointCombination:
        return self + -1.0 * other

    def gradient(self) -> Array | None:
        """An affine gradient here; None where it is not known at every place, or this is no affine combination."""
        used = [(place, factor) for place, factor in self.factors.items() if factor != 0]
        if abs(sum(factor for _, factor in used) - 1) > 1e-12 or any(place.gradient is None for place, _ in used):
            return None
        total = 0.0
        for place, factor in used:
            total = total + factor * place.gradient
        return total


class VisitedPoints:
    """The places where a run was lately, and the one where it is likely to go."""

    def __init__(self) -> None:
        self.places: OrderedDict[bytes, VisitedPoint] = OrderedDict()
        self.foreseen: VisitedPoint | None = None

    def place(self, x: Array) -> VisitedPoint:
        """The place of x."""
        key = x.tobytes()
        place = self.places.pop(key, None) or VisitedPoint(x)
        self.places[key] = place
        while len(self.places) > REMEMBERED:
            self.places.popitem(last=False)
        return place

    def take_foreseen(self) -> VisitedPoint | None:
        """The place foreseen, which is then forgotten."""
        place, self.foreseen = self.foreseen, None
        return place


class SumLoss(Sessions):
    """``scale * sum_i f_i(x)``, f_i being an in-memory loss over the i-th block of rows, on its worker.

    An evaluation is one pass: x goes to the blocks, a number and a gradient come back for each and are added on
    the way. Nothing of the length of the rows moves. An iteration of nmAPG takes one pass, and one more where it
    falls back on a plain step: for the squared loss the gradient at the extrapolated point follows from gradients
    that are known, and for other losses the solver says beforehand where it will extrapolate to (`foresee`), so
    that both points go out together.

    Made by `ell12.distributed.sum_loss`.

    Attributes
    ----------
    passes : int
        How many passes over the blocks were made.
    """

    def __init__(
        self,
        blocks: Blocks,
        kind: Kind,
        *,
        dtype: Any,
        scale: float = 1.0,
        target: Any = None,
        substitution: Substitution | None = None,
        gram: Array | None = None,
    ) -> None:
        super().__init__()
        self.blocks, self.kind = blocks, kind
        self.dtype, self.scale, self.target = np.dtype(dtype), scale, target
        self.substitution = NoSubstitution() if substitution is None else substitution
        if gram is not None:
            self._facts["_gram"] = gram
        self._affine = issubclass(kind.loss, SquaredLoss)

    def __repr__(self) -> str:
        return f"SumLoss({self.kind.loss.__name__} over {len(self.blocks.blocks)} blocks, scale={self.scale:g})"

    @property
    def passes(self) -> int:
        """How many passes over the blocks were made."""
        return self.blocks.passes

    def point(self, x: Array) -> Point:
        """``x`` and a stand-in for its prediction; no pass."""
        return Point(x, PointCombination({self._place(x): 1.0}))

    def start(self) -> Array:
        """Zeros."""
        return np.zeros(self.substitution.adjoint(np.zeros(self.kind.size)).size, dtype=self.dtype)

    def value(self, point: Point) -> float:
        """The loss; a pass where it is not known yet."""
        return self._known(point).value

    def gradient(self, point: Point) -> Array:
        """The gradient; a pass where it neither is known nor follows from what is."""
        known = point.prediction.gradient() if self._affine else None
        return self._known(point).gradient if known is None else known

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``. What rounding made counts as 0."""
        move, slope = point.x - base.x, self.gradient(base)
        if not self._affine:
            return rise_above_tangent(self.value(point), self.value(base), inner(slope, move), move)
        new_slope = self.gradient(point)  # from which it follows exactly, where values would cancel
        size = norm(move) * (norm(slope) + norm(new_slope))
        return max(0.5 * (inner(move, new_slope - slope) - rounding(size, move)), 0.0)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant, never the sum of the blocks' own.

        Up to 1000 columns one pass adds up the products of the columns; beyond, Lanczos takes some 15 passes,
        which ``step="backtracking"`` spares.
        """
        bound = self.kind.loss.second_bound
        return bound if math.isinf(bound) else bound * self.scale * self._gram_norm

    def restrict(self, columns: Array) -> SumLoss:
        """The same loss in the given entries of x alone, the others being zero."""
        chosen = Selection(np.asarray(columns), self.start().size, self.substitution)
        shared = {
            "dtype": self.dtype,
            "scale": self.scale,
            "target": self.target,
            "gram": self._facts.get("_gram"),
        }
        other = SumLoss(self.blocks, self.kind, substitution=chosen, **shared)
        return other if self._memory is None else other.session()

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses over some rows of a block at a time, which sum to this one; for stochastic solvers.

        The blocks come to this process, one in memory at a time: a pass over their rows.
        """
        return batches(self.blocks, self._row_counts, size, random, self.substitution, self.target, self.scale)

    def foresee(self, make_point: Callable[..., Point], *arguments: Any) -> None:
        """Say where a gradient is likely asked for soon: the next pass goes to ``make_point(*arguments)`` too."""
        if not self._affine and self._memory is not None:
            self._memory.foreseen = self._place(make_point(*arguments).x)

    def _place(self, x: Array) -> VisitedPoint:
        """The place of x, the same as before if a session was there lately."""
        return VisitedPoint(x) if self._memory is None else self._memory.place(x)

    def _new_memory(self) -> VisitedPoints:
        return VisitedPoints()

    def _known(self, point: Point) -> VisitedPoint:
        """The place of a point, evaluated."""
        factors = point.prediction.factors
        single = len(factors) == 1 and next(iter(factors.values())) == 1
        place = next(iter(factors)) if single else self._place(point.x)
        if place.gradient is None:
            ahead = None if self._memory is None else self._memory.take_foreseen()
            both = ahead is not None and ahead is not place and ahead.gradient is None
            self._evaluate([place, ahead] if ahead is not None and both else [place])
        return place

    def _evaluate(self, places: list[VisitedPoint]) -> None:
        """One pass."""
        offset = self.substitution.offset()
        points = np.stack([self.substitution.linear(place.x) + offset for place in places]).astype(self.dtype)
        found = self.blocks.total("gradient", evaluate, points, self.target)
        for place, value, gradient in zip(places, found.values, found.gradients, strict=True):
            place.value = self.scale * float(value)
            place.gradient = (self.scale * self.substitution.adjoint(gradient)).astype(self.dtype)

    @fact
    def _row_counts(self) -> list[int]:
        return self.blocks.total("rows", row_counts)

    @fact
    def _gram_norm(self) -> float:
        start = np.random.default_rng(0).standard_normal(self.start().size)
        apply = self._gram_product()
        substitution = self.substitution
        closeness = 1e-1 if self._gram is None else 1e-2  # a pass for each product: fewer, and shorter steps
        return largest_eigenvalue(
            lambda v: substitution.adjoint(apply(substitution.linear(v))), start, rtol=closeness
        )

    @fact
    def _gram(self) -> Array | None:
        """The products of the columns: one pass. None where these are many."""
        if self.kind.width > GRAM_COLUMNS:
            return None
        found = self.blocks.total("moments", moments, True, "none")
        return found.gram(self.kind.width, self.kind.intercept)

    def _gram_product(self) -> Callable[[Array], Array]:
        """``v -> A' diag(w) A v``: from the products of the columns, or one pass for each v."""
        gram = self._gram
        if gram is not None:
            return lambda v: gram @ v
        return lambda v: self.blocks.total("gram-product", gram_product, v.astype(self.dtype), self.target)

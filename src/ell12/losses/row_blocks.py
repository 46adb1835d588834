"""`RowsLoss`: a loss over blocks of rows, streamed or on workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import zip_longest
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from ell12.backend import as_array_of, as_numpy, inner, norm, rise_above_tangent, rounding
from ell12.checks import naming
from ell12.losses.block_of_rows import Block, BlockKind, block_loss, evaluate, gram_product, row_counts
from ell12.losses.moments import moments
from ell12.losses.of_prediction import Sessions, fact
from ell12.losses.pointwise import SquaredLoss
from ell12.losses.sum_over_rows import LinearLoss, check_kind
from ell12.operators.gram import GRAM_COLUMNS
from ell12.operators.krylov import largest_eigenvalue
from ell12.protocols import Array, Batch, Loss, Point


@dataclass(eq=False, slots=True)
class VisitedPoint:
    """A point, and the loss and gradient there once a pass has found them."""

    x: Array
    value: float = math.nan
    gradient: Array = None


@dataclass(frozen=True, slots=True)
class PointCombination:
    """What stands in for a prediction: a linear combination of visited points.

    Predictions are as long as the rows and never leave the workers. What is known at visited points serves
    instead: the gradient of a squared loss is affine in x.
    """

    factors: dict[VisitedPoint, float] = field(default_factory=dict)

    def __add__(self, other: PointCombination) -> PointCombination:
        points = self.factors | other.factors
        return PointCombination({p: self.factors.get(p, 0.0) + other.factors.get(p, 0.0) for p in points})

    def __rmul__(self, factor: float) -> PointCombination:
        return PointCombination({point: factor * own for point, own in self.factors.items()})

    def __sub__(self, other: PointCombination) -> PointCombination:
        return self + -1.0 * other

    def gradient(self) -> Array | None:
        """An affine gradient; None where it is not known at every point, or this is no affine combination."""
        used = [(point, factor) for point, factor in self.factors.items() if factor != 0]
        if abs(sum(factor for _, factor in used) - 1) > 1e-12 or any(point.gradient is None for point, _ in used):
            return None
        return sum(factor * point.gradient for point, factor in used)


class VisitedPoints:
    """The last four points of a run, and the one that is likely the next.

    nmAPG works with x, the one before, z and the extrapolated y.
    """

    def __init__(self) -> None:
        self.recent: list[VisitedPoint] = []  # replaced and never changed: threads may share a session
        self.announced: VisitedPoint | None = None

    def at(self, x: Array) -> VisitedPoint:
        """The visited point x, which may be new."""
        same = (point for point in self.recent if np.array_equal(as_numpy(point.x), as_numpy(x)))
        found = next(same, None) or VisitedPoint(x)
        self.recent = [*(point for point in self.recent if point is not found), found][-4:]
        return found


class RowsLoss(Sessions, Loss):
    """A loss over blocks of rows, which are read again for every pass, or stay on Dask's workers.

    ``scale sum_i w_i l((A x)_i, b_i)`` with a loss l of each row.

    An evaluation is one pass: x goes to the blocks, a number and a gradient come back for each and are added.
    Nothing as long as the rows is kept here. An iteration of `ell12.NonmonotoneAPG` takes one pass, and one more
    where it falls back on a plain step: for the squared loss the gradient at the extrapolated point follows from
    gradients that are known, and for other losses the solver says beforehand where it will extrapolate to, so that
    both points go out together. `ell12.solvers.ProxSVRG` makes the most of a pass.

    Parameters
    ----------
    blocks : iterable or callable
        Of ``(A, b)`` or ``(A, b, sample_weight)``: a list, another object that can be iterated over many times, or
        a function that returns an iterator. They must come in the same order each time; one is in memory at a
        time. For rows on Dask's workers see `ell12.distributed.rows_loss`.
    loss : class, default SquaredLoss
        `ell12.SquaredLoss`, `ell12.LogisticLoss`, `ell12.HuberLoss` or `ell12.PoissonLoss`.
    scale : float, optional
        Factor of the whole loss; by default one over the number of rows, or their weight: the mean.
    **options
        Of the loss, such as ``delta``.

    See Also
    --------
    SquaredLoss : Sums of squares.
    ProxSVRG : Some rows in each step.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.losses import RowsLoss
    >>> A, b = np.eye(4), np.arange(4.0)
    >>> loss = RowsLoss([(A[:2], b[:2]), (A[2:], b[2:])])
    >>> loss.value(loss.point(np.zeros(4))), loss.gradient(loss.point(np.zeros(4)))
    (1.75, array([ 0.  , -0.25, -0.5 , -0.75]))
    """

    def __init__(
        self,
        blocks: Iterable[Any] | Callable[[], Iterator[Any]],
        loss: type[LinearLoss] = SquaredLoss,
        *,
        scale: float | None = None,
        **options: Any,
    ) -> None:
        stream = Stream(blocks, loss, options | ({} if scale is None else {"scale": scale}))
        self._hold(stream, stream.kind, stream.start, 1 / stream.weight if scale is None else stream.scale)

    @classmethod
    def over(
        cls, blocks: Any, kind: BlockKind, dtype: Any, scale: float, gram: Any = None, **parts: Any
    ) -> RowsLoss:
        """The loss over the blocks of an executor, such as `ell12.distributed.executor.Blocks`."""
        loss = cls.__new__(cls)
        loss._hold(blocks, kind, np.zeros(kind.size, dtype), scale, **parts)
        loss._facts = {} if gram is None else {"_gram": gram}
        return loss

    def _hold(
        self, blocks: Any, kind: BlockKind, zeros: Array, scale: float, target: Any = None, centre: Any = None
    ) -> None:
        super().__init__()
        self.blocks, self.kind, self.scale, self.target = blocks, kind, scale, target
        nothing: Any = (None, 0.0)
        self._matrix, self._offset = centre or nothing
        self._map = scipy.sparse.eye_array(kind.size, format="csr") if self._matrix is None else self._matrix
        self._zeros = zeros if self._matrix is None else np.zeros(self._map.shape[1], zeros.dtype)
        self._affine = issubclass(kind.loss, SquaredLoss)

    def __repr__(self) -> str:
        return f"RowsLoss({self.kind.loss.__name__} over {self.blocks!r}, scale={self.scale:g})"

    @property
    def passes(self) -> int:
        """How many passes over the blocks were made."""
        return self.blocks.passes

    def point(self, x: Array) -> Point:
        """``x`` and a stand-in for its prediction; no pass."""
        return Point(x, PointCombination({self._visited(x): 1.0}))

    def start(self) -> Array:
        """Zeros."""
        return 0 * self._zeros

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

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses over some rows of a block at a time, which sum to this one; for stochastic solvers.

        The blocks come to this process, one in memory at a time: a pass over their rows. With ``random`` the
        batches of a block come in a random order, and so do blocks on workers.
        """
        counts = [-(-rows // size) for rows in self._row_counts]
        firsts = np.cumsum([0, *counts]).tolist()
        for number, block in self.blocks.loaded(random):
            if counts[number] > 0:
                loss = block_loss(block, self._matrix, self._offset, self.target, self.scale)
                for batch in loss.batches(size, random):
                    yield Batch(batch.loss, firsts[number] + batch.index, firsts[-1])

    def announce(self, make_point: Callable[..., Point], *arguments: Any) -> None:
        """Say where a gradient is likely asked for soon: the next pass goes to ``make_point(*arguments)`` too."""
        if not self._affine and self._memory is not None:
            self._memory.announced = self._visited(make_point(*arguments).x)

    def _visited(self, x: Array) -> VisitedPoint:
        """The visited point x, the same as before if the session had it lately."""
        return VisitedPoint(x) if self._memory is None else self._memory.at(x)

    def _new_memory(self) -> VisitedPoints:
        return VisitedPoints()

    def _known(self, point: Point) -> VisitedPoint:
        """The visited point of a point, evaluated."""
        factors, memory = point.prediction.factors, self._memory
        single = len(factors) == 1 and next(iter(factors.values())) == 1
        found = next(iter(factors)) if single else self._visited(point.x)
        if found.gradient is None:
            points = [found]
            if memory is not None:
                ahead, memory.announced = memory.announced, None
                points += [ahead] if ahead not in (None, found) and ahead.gradient is None else []
            self._evaluate(points)
        return found

    def _evaluate(self, visited: list[VisitedPoint]) -> None:
        """One pass."""
        matrix = self._map
        points = np.stack([matrix @ as_numpy(point.x) + self._offset for point in visited])
        found = self.blocks.total("gradient", evaluate, self._as_here(points), self.target)
        for point, value, gradient in zip(visited, found[:, 0], found[:, 1:], strict=True):
            point.value = self.scale * float(value)
            point.gradient = as_array_of(self._as_here(self.scale * (matrix.T @ gradient)), self._zeros)

    def _as_here(self, values: Array) -> Array:
        """NumPy numbers in the precision of x."""
        return values.astype(as_numpy(self._zeros).dtype)

    @fact
    def _row_counts(self) -> list[int]:
        return self.blocks.total("rows", row_counts)

    @fact
    def _gram_norm(self) -> float:
        start = np.random.default_rng(0).standard_normal(tuple(self._zeros.shape))
        gram, matrix = self._gram, self._map

        def apply(v: Array) -> Array:
            """``A' diag(w) A v``: from the products of the columns, or by one pass."""
            if gram is not None:
                return gram @ v
            return self.blocks.total("gram-product", gram_product, self._as_here(v), self.target)

        closeness = 1e-1 if gram is None else 1e-2  # a pass for each product: fewer, and shorter steps
        return largest_eigenvalue(lambda v: matrix.T @ apply(matrix @ v), start, rtol=closeness)

    @fact
    def _gram(self) -> Array | None:
        """The products of the columns: one pass. None where these are many."""
        if self.kind.width > GRAM_COLUMNS or isinstance(self.blocks, Stream):
            return None
        found = self.blocks.total("moments", moments, True, "none")
        return found.gram(self.kind.width, self.kind.intercept)


class Stream:
    """Blocks of rows that are read again for every pass: an executor of this process, as Dask's workers are one.

    The first pass, made at once, finds the weight of the rows, zeros like x, and how many rows each block has.
    """

    def __init__(self, chunks: Any, loss: Any, options: dict[str, Any]) -> None:
        check_kind(loss)
        if not callable(chunks) and not isinstance(chunks, Iterable):
            raise TypeError(f"blocks must be an iterable or a function of one, got {type(chunks).__name__}")
        with naming("blocks"):  # an array of no axes passes for an iterable
            used_up = not callable(chunks) and iter(chunks) is chunks  # by a first pass
        if used_up:
            raise TypeError("blocks can be read once only; give a list or a function that returns an iterator")
        self.chunks, self.passes = chunks, 0
        self.options, self.rows, self.weight = options, [], 0.0
        self.kind = BlockKind(loss, {name: v for name, v in options.items() if name != "scale"}, 0, False)
        starts: list[Any] = []
        for whole in self._losses():
            self.rows.append(whole.b.shape[0])
            self.weight += self.rows[-1] if whole.sample_weight is None else float(whole.sample_weight.sum())
            self.scale, starts = whole.scale, [*starts[:1], whole.start()]
            first, last = len(starts[0]), len(starts[-1])
            if first != last:
                raise ValueError(f"block {len(self.rows) - 1}: it has {last} columns, where the first has {first}")
        if self.weight == 0:
            raise ValueError("blocks hold no rows of positive weight")
        self.start, self.kind = starts[0], BlockKind(loss, self.kind.options, first, False)

    def __repr__(self) -> str:
        return f"{len(self.rows)} blocks"

    def total(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ARG002
        """``sum_i function(block_i, *arguments)``: one pass."""
        return reduce(add, (function(block, *arguments) for _, block in self.loaded()))

    def loaded(self, random: Any = None) -> Iterator[tuple[int, Block]]:  # noqa: ARG002
        """The blocks with their numbers, in their order, as many and as long as they were at first."""
        self.passes += 1
        again = "every pass must give the same ones again, as a list or a function that begins anew does"
        for number, (whole, count) in enumerate(zip_longest(self._losses(), self.rows)):
            if whole is None:
                raise ValueError(f"blocks ended after {number} of {len(self.rows)}: {again}")
            if whole.b.shape[0] != count:
                raise ValueError(f"block {number} has not the rows that it had at first: {again}")
            yield number, Block.of_loss(self.kind, f"block {number}", whole)

    def _losses(self) -> Iterator[LinearLoss]:
        """The loss of each block that is not empty."""
        with naming("blocks"):
            chunks = iter(self.chunks() if callable(self.chunks) else self.chunks)
        for number, chunk in enumerate(chunks):
            with naming(f"block {number}"):
                if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
                    raise TypeError("blocks must be pairs (A, b) or triples (A, b, sample_weight)")
                A, b, weight = chunk if len(chunk) == 3 else (*chunk, None)
                with naming("b"):
                    is_empty = np.shape(b)[:1] == (0,)
                whole = None if is_empty else self.kind.loss(A, b, sample_weight=weight, **self.options)
            if whole is not None:
                yield whole

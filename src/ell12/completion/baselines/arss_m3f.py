"""ARSS-M3F: a fixed-rank Riemannian method inside a loop that lets the rank grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.checks import check_counts
from ell12.completion.baselines.sparse_gradient import sparse_gradient
from ell12.completion.fixed_rank import Tangent
from ell12.completion.low_rank import LowRank
from ell12.completion.sparse_plus_low_rank import SparsePlusLowRank, leading_svd, random_block
from ell12.penalties import SquaredFrobenius
from ell12.protocols import Iterate, Point

SUFFICIENT = 1e-4  # the share of the decrease that the slope promises which a step must bring
HALVINGS = 30


@dataclass(frozen=True)
class ARSSM3F:
    """Riemannian conjugate gradients on matrices of rank r, where r grows by the leading part of the gradient.

    The loss says which variant it is: least squares with `CompletionLoss`, maximum-margin factorization of ordinal
    data with `OrdinalHingeLoss`. For a rank r, conjugate gradients (Polak-Ribiere, restarted where they do not
    descend) with projection as transport and the truncated singular value decomposition as retraction; the
    first step ``-<S(e), g> / (L ||S(e)||^2)`` along e is exact for least squares, then it is halved until the
    loss has decreased enough. Then the rank grows by the number of singular values of the gradient that are at
    least ``share`` times the largest.

    Parameters
    ----------
    max_rank : int
        Where the rank stops growing.
    share : float
        Of the largest singular value of the gradient, for another direction to enter with it; in (0, 1].
    growth : int
        At most so many directions enter at once.
    steps : int
        At most so many conjugate gradient steps for each rank but the last.
    inner_tol : float
        The relative decrease below which those end earlier.
    outer_tol : float
        The rank stops growing where a larger one decreases the loss by less than this, relatively, or where the
        gradient's largest singular value falls below this times its first. Conjugate gradients then go on.
    random_state : int
        Seed of the power method.

    Notes
    -----
    Run it with `NoPenalty`, or with `SquaredFrobenius`, the publication's ridge (of weight 0 to 0.02 there). In
    the last rank the optimality is the norm of the Riemannian gradient and the iterates are marked as capped.
    The publication treats ratings; for pixels use least squares, or quantise
    them (``OrdinalHingeLoss(observed, n_levels=...)``). The thresholds of the ordinal loss, alternated in the
    publication, are at their best in every evaluation here.

    References
    ----------
    Yan, Tan, Tsang, Yang, Zhang & Shi, Automatic rank estimation: scalable maximum margin matrix factorization
    (active Riemannian subspace search), IJCAI 2015. Vandereycken, doi:10.1137/110845768.

    Examples
    --------
    >>> from ell12 import minimize
    >>> from ell12.completion import CompletionLoss, as_observed
    >>> from ell12.penalties import NoPenalty
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
    >>> X[0, 2] = np.nan
    >>> result = minimize(CompletionLoss(as_observed(X)), NoPenalty(), solver=ARSSM3F(max_rank=1))
    >>> round(float(result.x.to_array()[0, 2]), 3)
    2.0
    """

    max_rank: int = 200
    share: float = 0.7
    growth: int = 5
    steps: int = 30
    inner_tol: float = 1e-2
    outer_tol: float = 1e-3
    random_state: int = 0

    def __post_init__(self) -> None:
        check_counts(max_rank=self.max_rank, growth=self.growth, steps=self.steps)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must lie in (0, 1], got {self.share}")
        for name in ("inner_tol", "outer_tol"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), got {getattr(self, name)}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step, of growth or of conjugate gradients."""
        if penalty.alpha and not isinstance(penalty, SquaredFrobenius):
            raise TypeError(f"ARSSM3F needs NoPenalty or SquaredFrobenius, got {penalty!r}")
        problem = SmoothProblem(loss, penalty)
        rng = np.random.default_rng(self.random_state)
        limit = min(self.max_rank, *loss.observed.shape)
        point, first, before = start, 0.0, problem.value(start)
        while point.x.rank < limit:
            grown, size = self._grow(problem, point, limit, rng)
            first = max(first, size)
            if size <= self.outer_tol * first or not problem.value(grown) < before:
                break
            point = grown
            yield problem.iterate(point)
            for better in self._steps(problem, grown):
                point = better
                yield problem.iterate(point)
            value = problem.value(point)
            if before - value <= self.outer_tol * before:
                break
            before = value
        for last, size in conjugate_gradients(problem, point):
            yield Iterate(last, problem.value(last), size, capped=True)

    def _steps(self, problem: SmoothProblem, point: Point) -> Iterator[Point]:
        """A limited number of conjugate gradient steps."""
        before = problem.value(point)
        for k, (new, _) in enumerate(conjugate_gradients(problem, point), start=1):
            yield new
            value = problem.value(new)
            if k >= self.steps or before - value <= self.inner_tol * before:
                return
            before = value

    def _grow(
        self, problem: SmoothProblem, point: Point, limit: int, rng: np.random.Generator
    ) -> tuple[Point, float]:
        """A point of larger rank along the leading singular vectors of the gradient, and the largest value."""
        block = min(self.growth, limit - point.x.rank)
        descent = problem.descent(point)
        start = random_block(rng, descent.shape[1], block + 2, point.x.dtype)
        U, s, V = (part[..., :block] for part in leading_svd(descent, start, passes=10))
        if s[0] == 0:
            return point, 0.0
        count = int(np.count_nonzero(s >= self.share * s[0]))
        direction = LowRank(U[:, :count], s[:count], V[:, :count])
        square = direction.norm() ** 2  # the direction is a part of the gradient, orthogonal to the rest
        move = direction.entries(problem.loss.observed.rows, problem.loss.observed.columns)
        step = problem.first_step(-square, move, square)
        left = np.concatenate([point.x.weighted, step * direction.weighted], axis=1)
        right = np.concatenate([point.x.V, direction.V], axis=1)
        return problem.loss.point(LowRank.from_factors(left, right)), float(s[0])


@dataclass(frozen=True)
class SmoothProblem:
    """A loss with a sparse gradient and a ridge ``alpha/2 ||X||_F^2``, alpha perhaps zero."""

    loss: Any
    penalty: Any

    def value(self, point: Point) -> float:
        """The objective."""
        return self.loss.value(point) + self.penalty.value(point.x)

    def descent(self, point: Point) -> SparsePlusLowRank:
        """Minus the gradient, a sparse matrix less alpha X."""
        gradient = sparse_gradient(self.loss, point.prediction)
        return SparsePlusLowRank(-gradient, ((-self.penalty.alpha, point.x),))

    def slope(self, point: Point) -> Tangent:
        """The Riemannian gradient."""
        return -1.0 * Tangent.project(self.descent(point), point.x)

    def iterate(self, point: Point) -> Iterate:
        """The iterate at a point whose rank may still grow; the optimality is a bound on the gradient's norm."""
        sparse = float(np.linalg.norm(sparse_gradient(self.loss, point.prediction).data))
        return Iterate(point, self.value(point), sparse + self.penalty.alpha * point.x.norm())

    def first_step(self, promised: float, move: np.ndarray, square: float) -> float:
        """The step to the minimum of a quadratic bound, exact for least squares.

        ``promised`` is the slope along a direction, ``move`` its observed entries, ``square`` its squared norm.
        """
        curvature = self.loss.lipschitz() * float(np.vdot(move, move)) + self.penalty.alpha * square
        return -promised / curvature if curvature > 0 else 0.0


def conjugate_gradients(problem: SmoothProblem, point: Point) -> Iterator[tuple[Point, float]]:
    """Points of ever smaller objective, of the first rank, each with the norm of its Riemannian gradient."""
    slope = problem.slope(point)
    direction = -1.0 * slope
    while True:
        new = _line_search(problem, point, slope, direction)
        if new is None:
            new = _line_search(problem, point, slope, -1.0 * slope)
        point = point if new is None else new
        slope_new = problem.slope(point)
        yield point, slope_new.norm()
        change = slope_new.inner(slope_new) - slope_new.inner(slope.transport(point.x))
        ratio = max(0.0, change / (slope.inner(slope) or 1.0))
        direction = -1.0 * slope_new + ratio * direction.transport(point.x)
        slope = slope_new
        if not direction.inner(slope) < 0:
            direction = -1.0 * slope


def _line_search(problem: SmoothProblem, point: Point, slope: Tangent, direction: Tangent) -> Point | None:
    """The first of ever shorter steps that decreases the objective enough; None where none does."""
    observed = problem.loss.observed
    value, promised = problem.value(point), slope.inner(direction)
    move = direction.entries(observed.rows, observed.columns)
    step = problem.first_step(promised, move, direction.inner(direction))
    if not step > 0:
        return None
    for _ in range(HALVINGS):
        new = problem.loss.point(direction.retract(step))
        if problem.value(new) <= value + SUFFICIENT * step * promised:
            return new
        step *= 0.5
    return None

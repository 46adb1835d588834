"""Matrices of low rank by a sequence of convex problems: for comparison with nmAPG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.completion.forms import DenseForm, Estimate, FactoredForm, combined_norm, suits_dense
from ell12.completion.leading import FullTriplets, WarmBlock
from ell12.completion.loss import CompletionLoss
from ell12.completion.proximal import MatrixStep, Step, check_problem, turns_back
from ell12.protocols import Iterate, Point


@dataclass(frozen=True)
class MatrixSequentialConvex:
    """Sequential convex programming: the subtracted part of the penalty linearised in every proximal step.

    As in `ell12.SequentialConvex` the first step is one with the whole penalty, since the subtracted norm has no
    slope at zero.

    Parameters
    ----------
    triplets : {"block", "full"}
        Singular vectors from a warm block, as in `BlockAPG`, or from a full decomposition each step.
    random_state : int or Generator, optional
        Of the block's first columns; 0 by default, so that runs repeat.
    """

    triplets: str = "block"
    random_state: Any = 0

    def __post_init__(self) -> None:
        _check_triplets(self.triplets)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        take_step = _steps(loss, penalty, start, self.triplets, self.random_state)
        step = take_step([(1.0, take_step.form.estimate(start.x))], penalty)
        while True:
            yield _judged(step, loss, penalty)
            x = step.estimate
            step = take_step([(1.0, x)], penalty.convex, penalty.subtracted_gradient(x.x))


@dataclass(frozen=True)
class MatrixDCA:
    """The difference-of-convex algorithm: the subtracted part linearised, the convex problem solved by FISTA.

    FISTA begins at the last solution and restarts its momentum where it points uphill.

    Parameters
    ----------
    inner_tol : float
        A convex problem ends when its step is below this fraction of the last change of the linear part.
    inner_max_iter : int
        Or after so many steps.
    triplets, random_state
        As in `MatrixSequentialConvex`.
    """

    inner_tol: float = 0.1
    inner_max_iter: int = 200
    triplets: str = "block"
    random_state: Any = 0

    def __post_init__(self) -> None:
        _check_triplets(self.triplets)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate per convex problem solved."""
        take_step = _steps(loss, penalty, start, self.triplets, self.random_state)
        step = take_step([(1.0, take_step.form.estimate(start.x))], penalty)
        yield _judged(step, loss, penalty)
        slope, change = penalty.subtracted_gradient(step.estimate.x), penalty.alpha
        while True:
            step = self._solve(take_step, step.estimate, penalty.convex, slope, self.inner_tol * change)
            old, slope = slope, penalty.subtracted_gradient(step.estimate.x)
            change = max(combined_norm([(1.0, slope), (-1.0, old)]), 1e-8 * penalty.alpha)
            yield _judged(step._replace(distance=max(change, step.distance)), loss, penalty)

    def _solve(self, take_step: MatrixStep, x: Estimate, convex: Any, slope: Any, tol: float) -> Step:
        """The convex problem, by FISTA."""
        previous, k = x, 0
        for _ in range(self.inner_max_iter):
            momentum = k / (k + 3)
            terms = [(1 + momentum, x), (-momentum, previous)]
            step = take_step(terms, convex, slope)
            k = 0 if turns_back(step.estimate, terms, x) else k + 1
            x, previous = step.estimate, x
            if step.distance <= tol and not step.is_full:
                break
        return step


def _steps(loss: CompletionLoss, penalty: Any, start: Point, triplets: str, rng: Any) -> MatrixStep:
    check_problem(loss, penalty)
    dense = triplets == "full" or suits_dense(loss)
    form = DenseForm(loss) if dense else FactoredForm(loss)
    return MatrixStep(loss, form, FullTriplets() if triplets == "full" else WarmBlock(start.x, rng=rng))


def _judged(step: Step, loss: CompletionLoss, penalty: Any) -> Iterate:
    """The step as an iterate of the whole problem, not of a convex one."""
    value = loss.value(step.estimate.point) + penalty.value_of(step.estimate.x.s)
    return step._replace(objective=value).iterate()


def _check_triplets(triplets: str) -> None:
    if triplets not in ("block", "full"):
        raise ValueError(f"triplets must be 'block' or 'full', got {triplets!r}")

"""The numerical proximal step, and matrices by sequences of convex problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.completion.matrix_apg import DenseSteps, Estimate, MatrixStep, combined_norm, turns_back
from ell12.completion.singular_vectors import WarmBlock
from ell12.completion.squared_error import EntryLoss
from ell12.penalties import L12
from ell12.penalties.spectral import Spectral
from ell12.protocols import Iterate, Needs, Point
from ell12.prox import prox_l12_iterative
from ell12.solvers import NonmonotoneAPG


@dataclass(frozen=True)
class NumericalAPG(NonmonotoneAPG):
    """nmAPG on `ell12.L12` with the proximal step by fixed-point iteration, begun at the last iterate.

    Parameters
    ----------
    prox_tol : float, default 1e-8
        Relative accuracy of the proximal step.
    """

    prox_tol: float = 1e-8

    def iterates(self, loss: Any, penalty: L12, start: Any) -> Iterator[Any]:
        """Yield one iterate a step."""
        numerical = _Numerical(penalty, start.x, self.prox_tol)
        for iterate in super().iterates(loss, numerical, start):
            numerical.near = iterate.point.x
            yield iterate


class _Numerical:
    """The penalty with its prox by iteration, from a point near by."""

    def __init__(self, penalty: L12, near: Any, tol: float) -> None:
        self.penalty, self.near, self.tol = penalty, near, tol

    def __getattr__(self, name: str) -> Any:
        return getattr(self.penalty, name)

    def prox(self, x: Any, step: float) -> Any:
        """The proximal step to a relative accuracy of ``tol``."""
        p = self.penalty
        options = {"l2_weight": p.l2_weight, "weights": p.weights, "start": self.near, "tol": self.tol}
        return prox_l12_iterative(x, p.strength * step, **options)[0]


@dataclass(frozen=True)
class MatrixDCA:
    """The difference-of-convex algorithm for matrices, with FISTA for the convex problems.

    FISTA begins at the last solution and restarts its momentum where it points uphill. As in `ell12.DCA` the
    first step is one with the whole penalty, since the subtracted norm has no slope at zero.

    Parameters
    ----------
    inner_tol : float, default 0.1
        A convex problem ends when its step is below this fraction of the last change of the linear part.
    inner_max_iter : int, default 200
        Or after this many steps.
    random_state : int or Generator, default 0
        Of the first columns of the warm block, as in `BlockAPG`; 0 by default, so that runs repeat.
    """

    inner_tol: float = 0.1
    inner_max_iter: int = 200
    random_state: Any = 0

    needs: ClassVar[Needs] = Needs(EntryLoss, Spectral, "factors")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate for each convex problem solved, and None after each step within one."""
        take_step = DenseSteps(loss, penalty, WarmBlock(start.x, rng=self.random_state))
        for step in self._steps(take_step, take_step.estimate(start.x), penalty):
            if step is None:
                yield None
                continue
            # The objective is that of the whole problem, not of a convex one.
            value = loss.value(step.point.point) + penalty.value_of(step.point.x.s)
            yield step._replace(objective=value).iterate()

    def _steps(self, take_step: DenseSteps, x: Estimate, penalty: Any) -> Iterator[MatrixStep | None]:
        step = take_step(x)
        yield step
        take_step.penalty, change = penalty.convex, penalty.alpha
        take_step.slope = penalty.subtracted_gradient(step.point.x)
        while True:
            tol, k, x = self.inner_tol * change, 0, step.point
            previous = x
            for _ in range(self.inner_max_iter):
                y = x + k / (k + 3) * (x - previous)
                step = take_step(y)
                k = 0 if turns_back(step.point, y, x) else k + 1
                x, previous = step.point, x
                if step.distance <= tol and not step.is_full:
                    break
                yield None
            old, take_step.slope = take_step.slope, penalty.subtracted_gradient(x.x)
            change = max(combined_norm([(1.0, take_step.slope), (-1.0, old)]), 1e-8 * penalty.alpha)
            yield step._replace(distance=max(change, step.distance))

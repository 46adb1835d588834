"""Random restarts: the best of several local minima."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from ell12.checks import check_counts, generator
from ell12.protocols import ColumnLoss, Iterate, Needs, PiecewisePenalty, Point, Solver, missing
from ell12.solvers.gram_descent import GramDescent
from ell12.solvers.newton import LARGEST
from ell12.solvers.working_set import MOST_STEPS, WorkingSet

# A start has at most this number of random columns, and is minimised to this violation in units of alpha: chosen
# on other seeds than those of benchmarks/certificates.py.
MOST_COLUMNS, CLOSE = 11, 1e-3
# Correlation of a column in use with another column above which starts pay: there 17 of the 19 worse answers among
# 120 were, and a third of the others (docs/decisions); reported on the seeds of benchmarks/certificates.py.
ALIKE = 0.9


@dataclass(frozen=True)
class Restarts:
    """A solver run from the start, and short runs from random sparse points; the best is finished.

    A random point is the least-squares fit in up to 11 random columns, or one step of Newton's method where the
    loss is not squared.

    Parameters
    ----------
    n_starts : int, optional
        How many random points; by default 200 where a column in use has a correlation above 0.9 with another
        column, or there are too many columns to compare, and none elsewhere: there the solver alone nearly
        always finds the best value.
    random_state : int or Generator, default 0
        Their seed.
    solver : Solver, optional
        What runs from the start, and from the best point; `ell12.WorkingSet` by default.

    See Also
    --------
    certify : A proof that a solution is a global minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, SquaredLoss, minimize
    >>> from ell12.solvers import Restarts
    >>> minimize(SquaredLoss(np.eye(3), [3.0, -4.0, 0.5]), L12(alpha=1.0), solver=Restarts(5)).solver
    'Restarts, WorkingSet (6 of 6 starts at the best value) from 2 on'
    """

    n_starts: int | None = None
    random_state: Any = 0
    solver: Any = field(default_factory=WorkingSet)

    needs: ClassVar[Needs] = Needs(ColumnLoss, PiecewisePenalty, x="real vector, columns at hand")

    def __post_init__(self) -> None:
        check_counts(most=10**6, n_starts=self.n_starts)
        generator(self.random_state)
        if missing(self.solver, Solver):
            raise TypeError(f"solver must be a Solver such as WorkingSet(), got {self.solver!r}")

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield the best point of the runs whenever there is a better one; then the iterates from the last."""
        found: list[float] = []
        value, point = np.inf, start
        for other, reached in self.minima(loss, penalty, start):
            found.append(other)
            if other < value:
                value, point = other, reached
            yield Iterate(point, value, np.inf) if found[-1] == value else None
        close = sum(other <= value + 1e-4 * abs(value) for other in found)
        method = f"{type(self.solver).__name__} ({close} of {len(found)} starts at the best value)"
        for iterate in self.solver.iterates(loss, penalty, point):
            yield iterate and replace(iterate, method=method)

    def minima(self, loss: Any, penalty: Any, start: Point) -> Iterator[tuple[float, Point]]:
        """The objective and the point of each run."""
        first = self._run(loss, penalty, start)
        yield first
        zero = loss.point(loss.start())
        gradient, random = loss.gradient(zero), np.random.default_rng(self.random_state)
        n_starts, gram = self.n_starts, None
        if gradient.size <= LARGEST and (loss.is_quadratic or n_starts is None):
            gram = loss.hessian(zero)
        if n_starts is None:
            n_starts = 200 if gram is None or _are_alike(gram, np.flatnonzero(first[1].x)) else 0
        for _ in range(n_starts):
            x = np.zeros_like(gradient)
            size = min(x.size, int(random.integers(1, MOST_COLUMNS + 1)))
            columns = np.sort(random.choice(x.size, size, replace=False))
            block = loss.hessian(zero, columns) if gram is None else gram[np.ix_(columns, columns)]
            x[columns] = -np.linalg.lstsq(block, gradient[columns], rcond=None)[0]
            if gram is None or not loss.is_quadratic:
                yield self._run(loss, penalty, loss.point_within(x, columns))
                continue
            run = GramDescent(gram, x, gradient + gram[columns].T @ x[columns], n_starts)
            run.solve(penalty, CLOSE * penalty.alpha)
            point = loss.point_within(run.x, np.flatnonzero(run.x))
            yield loss.value(point) + penalty.value(run.x), point

    def _run(self, loss: Any, penalty: Any, start: Point) -> tuple[float, Point]:
        """A run of the solver, until it is close to stationary."""
        best = (np.inf, start)
        for iterate in islice(self.solver.iterates(loss, penalty, start), MOST_STEPS):
            if iterate is not None:
                best = min(best, (iterate.objective, iterate.point), key=lambda each: each[0])
                if iterate.optimality <= CLOSE * penalty.alpha:
                    break
        return best


def _are_alike(gram: Any, columns: Any) -> bool:
    """Whether one of these columns has a correlation above 0.9 with another column."""
    squares = np.diag(gram)
    rows = gram[columns] ** 2
    rows[np.arange(columns.size), columns] = 0.0
    return bool(np.any(rows > ALIKE**2 * squares[columns, None] * squares))

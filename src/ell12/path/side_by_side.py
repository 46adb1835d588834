"""Strengths and folds side by side, as columns of one problem, for GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.backend import as_numpy, like, namespace, take
from ell12.losses import LinearLoss, LogisticLoss, SquaredLoss
from ell12.minimization import Result, Status, minimize
from ell12.minimization.rounding_stop import admit_rounding, gradient_rounding
from ell12.minimization.run import collected
from ell12.path.columnwise import ColumnsL12, ColumnwiseAPG, InterceptSquaredLoss
from ell12.path.screened import WIDEST
from ell12.penalties import WithIntercept
from ell12.protocols import Array, Point, Wrapper


def columns_penalty(
    loss: LinearLoss,
    alphas: Any,
    l2_weight: float,
    *,
    tol: float,
    weights: Any = None,
    positive: bool = False,
    ridge: float = 0.0,
    intercept: bool = False,
) -> Any:
    """`ColumnsL12` where the loss is, leaving out the last row of x where that holds the intercepts.

    No column is asked for a stationarity below the rounding of the gradient.
    """
    zero = loss.start()
    alphas = np.asarray(alphas, dtype=np.float64)
    units = alphas if tol == 0 else np.maximum(alphas, gradient_rounding(loss, tol) / tol)
    penalty = ColumnsL12(
        like(alphas, zero),  # sent once, not at every step
        l2_weight,
        weights=None if weights is None else like(weights, zero),
        positive=positive,
        units=like(units, zero),
        ridge=ridge,
    )
    return WithIntercept(penalty) if intercept else penalty


def solve_side_by_side(
    loss: LinearLoss, penalty: Any, x0: Array | None = None, *, tol: float, **options: Any
) -> tuple[Point, list[Result]]:
    """The solutions of all columns, with their predictions, and how each ended; options as in `minimize`."""
    run = minimize(loss, penalty, x0, ColumnwiseAPG(rest=tol), tol=tol, **collected(options))
    point = loss.point(run.x)
    reached = as_numpy(penalty.stationarities(run.x, loss.gradient(point))).tolist()
    objectives = as_numpy(loss.values(point) + penalty.values(run.x)).tolist()
    columns = penalty.wrapped if isinstance(penalty, Wrapper) else penalty
    units = as_numpy(columns.units / columns.alphas).tolist()
    results = []
    for k, objective in enumerate(objectives):
        status = Status.CONVERGED if reached[k] <= tol else run.status
        changes = {"objective": objective, "stationarity": reached[k] * units[k], "status": status}
        result = replace(run, x=run.x[:, k], **changes)
        results.append(admit_rounding(result, tol))
    return point, results


# The losses that are told by their targets and weights alone, so that the folds of one can be its columns.
SIDE_BY_SIDE = (SquaredLoss, LogisticLoss)
# Columns to solve at once, as long as a fold has strengths to go on with. Warm starts want few strengths at once,
# matrix products many columns. On an H200, 5 folds x 30 strengths of a regression, 10, 25, 40, 75 and 150 columns
# took 2.2, 1.4, 1.1, 0.7 and 0.7 s (10,000 x 20,000) and 2.4, 1.8, 1.3, 0.7 and 0.8 s (2000 x 5000); on one core
# of a CPU 40, 75 and 150 took 0.33, 0.25 and 0.27 s (500 x 250) and 2.2, 2.3 and 2.8 s (300 x 1000).
COLUMNS = 75


class FoldColumns:
    """The problems that all folds make, one column for each fold and target.

    Parameters
    ----------
    problems : list of `ell12.linear_model.fit_problem.FitProblem`
        Those of all rows, one for each target: their losses share a matrix, whose columns are centred if there is
        an intercept.
    folds : list of (train, test)
        Numbers of rows; one that is named twice in train counts twice.
    sample_weight : array of shape (n_samples,), optional
        Weights.
    intercept : bool
        Whether every fold has an intercept of its own.
    """

    def __init__(
        self, problems: list[Any], folds: list[Any], sample_weight: Array | None, intercept: bool
    ) -> None:
        self.problems, self.count = problems, len(folds)
        targets = [problem.loss.b for problem in problems]
        xp = namespace(targets[0])
        self.targets = xp.stack(targets, axis=1)
        rows = np.arange(self.targets.shape[0])
        times = np.stack([np.bincount(rows[train], minlength=rows.size) for train, _ in folds], axis=1)
        weights = like(times, self.targets)
        if sample_weight is not None:
            weights = sample_weight[:, None] * weights
        totals = xp.sum(weights, axis=0)
        if bool(xp.any(totals == 0)):
            raise ValueError("sample_weight sums to zero in a fold: no sample is left to fit")
        self.weights = weights / totals
        kind = type(problems[0].loss)
        self.kind = InterceptSquaredLoss if intercept and kind is SquaredLoss else kind

    def loss(self, folds: range) -> Any:
        """The loss of some folds: a column for each of their targets."""
        n_targets = self.targets.shape[1]
        weights = take(self.weights, np.repeat(folds, n_targets), 1)
        targets = take(self.targets, np.tile(np.arange(n_targets), len(folds)), 1)
        return self.kind.of_checked(self.problems[0].loss.A, targets, sample_weight=weights)

    def blocks(self, n_alphas: int) -> Iterator[tuple[range, int]]:
        """Blocks of folds, each with a number of strengths to solve for at once, that the memory can hold."""
        rows, columns = self.targets.shape[0], self.problems[0].loss.start().shape[0]
        most = WIDEST // (rows + columns)
        n_targets = self.targets.shape[1]
        size = max(1, min(self.count, most // n_targets))
        alphas = max(1, min(n_alphas, min(COLUMNS, most) // (size * n_targets)))
        for first in range(0, self.count, size):
            yield range(first, min(first + size, self.count)), alphas

    def coefficients(self, loss: Any, point: Point, n_folds: int) -> tuple[Array, Array]:
        """The coefficients, (n_alphas, n_folds, n_targets, n_features), and intercepts of a block."""
        first, x = self.problems[0], namespace(point.x).permute_dims(point.x, (1, 0))
        xp, shape = namespace(x), (-1, n_folds, self.targets.shape[1])
        coef = x[:, :-1] if first.constant else x
        if first.constant:
            found = first.constant * x[:, -1]
        else:
            found = loss.intercepts(point) if isinstance(loss, InterceptSquaredLoss) else 0 * x[:, 0]
        levels = xp.reshape(found - coef @ first.means, shape)
        given = xp.stack([0 * levels[0, 0, 0] + problem.level for problem in self.problems])
        return xp.reshape(coef, (*shape, coef.shape[1])), levels + given


def solve_folds(
    columns: FoldColumns, alphas: Array, options: dict[str, Any], limits: dict[str, Any]
) -> Iterator[tuple[Array, Array, list[Result]]]:
    """For each fold the coefficients, (n_alphas, n_targets, n_features), the intercepts, and how the runs ended.

    Some strengths are solved for at once, beginning where the one before them ended. ``options`` go to
    `ell12.path.side_by_side.columns_penalty`, ``limits`` to `ell12.minimize`.
    """
    for folds, size in columns.blocks(len(alphas)):
        narrow = columns.loss(folds)
        width, start, parts = narrow.b.shape[1], None, []
        results: list[list[Result]] = [[] for _ in folds]
        for first in range(0, len(alphas), size):
            some = alphas[first : first + size]
            loss = narrow.select_problems(np.tile(np.arange(width), len(some)))
            penalty = columns_penalty(loss, np.repeat(some, width), tol=limits["tol"], **options)
            if start is not None:
                start = take(start, np.tile(np.arange(width), len(some)), 1)
            point, runs = solve_side_by_side(loss, penalty, start, **limits)
            start = point.x[:, -width:]
            parts.append(columns.coefficients(loss, point, len(folds)))
            for k, run in enumerate(runs):
                results[k % width // columns.targets.shape[1]].append(run)
        xp = namespace(start)
        coefs, intercepts = (xp.concat(part) for part in zip(*parts, strict=True))
        for k in range(len(folds)):
            yield coefs[:, k, :, :], intercepts[:, k, :], results[k]

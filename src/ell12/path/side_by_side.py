"""Many problems as the columns of one, solved side by side: every product with A is one of matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ell12.backend import as_numpy, like
from ell12.losses import LinearLoss
from ell12.minimization import Result, Status, minimize
from ell12.minimization.run import collected
from ell12.minimization.stalling import admit_rounding, gradient_rounding
from ell12.penalties import ColumnsL12, WithIntercept
from ell12.protocols import Array, Point, Wrapper
from ell12.solvers import ColumnwiseAPG


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
    """`ell12.ColumnsL12` where the loss is, leaving out the last row of x where that holds the intercepts.

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

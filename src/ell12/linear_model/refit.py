"""The refit on a support without a penalty, which takes back the shrinkage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ell12.backend import as_array_of, as_numpy, max_abs, namespace, precision, rounding, take
from ell12.linear_model.fit_problem import FitProblem
from ell12.minimization import minimize
from ell12.penalties import L12, WithIntercept
from ell12.protocols import Array, Point


def refit(problem: FitProblem, x: Array, penalty: Any, columns: Array | None = None) -> Array | None:
    """The x of least loss with the same support, signs kept; None where none is finite and unique.

    Parameters
    ----------
    problem : FitProblem
        A problem whose loss is an `ell12.protocols.ColumnLoss`.
    x : array
        Its penalised solution.
    penalty : Penalty
        That of the solution; its ``positive`` entries stay so.
    columns : array of int, optional
        The entries to fit in place of the support, those of intercepts among them.
    """
    columns = support(problem, x) if columns is None else columns
    if columns.size == 0:
        return x
    loss = problem.loss.restrict(columns)
    point = loss.point(take(x, columns, 0))
    diagonal = np.diagonal(_matrix(loss.hessian(point, np.arange(columns.size))))
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))  # steps in which all second derivatives are 1
    signs = _signs(penalty, columns[: columns.size - problem.n_intercepts])
    if signs is False:
        found = _newton(loss, point, unit)
    else:
        kept: Any = L12(0.0, positive=signs)
        enough = math.sqrt(precision(x)) * max_abs(loss.gradient(loss.point(loss.start())))
        kept = WithIntercept(kept, problem.n_intercepts) if problem.n_intercepts else kept
        found = _within_limits(loss, kept, point, unit, enough)
    if found is None:
        return None
    full = np.zeros(x.shape, dtype=as_numpy(x).dtype)
    full[columns] = as_numpy(found)
    return namespace(x).astype(as_array_of(full, x), x.dtype, copy=False)


def refit_path(problem: FitProblem, solutions: list[Array], penalty: Any, most: float) -> Iterator[Array]:
    """Refits of the solutions of a path, of which neighbours often share one.

    A solution stays where it has no refit, or more than ``most`` entries: such a refit follows the noise.
    """
    last, found = np.array([-1]), None
    for x in solutions:
        columns = support(problem, x)
        if columns.size > most:
            yield x
            continue
        if not np.array_equal(columns, last):
            last, found = columns, refit(problem, x, penalty, columns)
        yield x if found is None else found


def mix(plain: Array, refitted: Array, share: float) -> Array:
    """The penalised values and a share of what a refit changes."""
    return plain if share == 0 else refitted if share == 1 else (1 - share) * plain + share * refitted


def _signs(penalty: Any, columns: Array) -> Any:
    """Which of these entries must not be negative: False if none, True if all, or an array."""
    positive = vars(penalty).get("positive", False) if columns.size else False
    return positive if isinstance(positive, bool) else as_numpy(positive)[columns]


def _newton(loss: Any, point: Point, unit: Array) -> Array | None:
    """The minimiser of a loss by Newton's method with halved steps; some ten are enough where there is one.

    The last step promises to lower the loss by no more than rounding. Where there is no finite minimiser, the
    promises fall as the loss does, and the Hessian comes near a singular one before.
    """
    most = -math.log2(precision(point.x))  # halved more often, a step would be rounding
    for _ in range(round(most)):
        gradient = loss.gradient(point)
        scaled = _scaled_hessian(loss, point, unit)
        if not _is_positive(scaled, gradient):
            return None
        slope = (unit * _matrix(gradient).T).T
        newton = np.linalg.solve(scaled, slope)
        step = (unit * newton.T).T
        move = loss.point(as_array_of(-step, point.x))
        value, size = loss.value(point), 1.0
        highest = value + rounding(value, point.x)  # near the end only the gradient can tell
        while not loss.value(point + size * move) <= highest and size > 0.5**most:
            size *= 0.5
        last = loss.is_quadratic or float(np.sum(slope * newton)) <= highest - value
        point = point + size * move
        if last:
            return point.x
    return None


def _within_limits(loss: Any, penalty: Any, point: Point, unit: Array, enough: float) -> Array | None:
    """The same with signs, which the penalty of strength 0 keeps."""
    if not _is_positive(_scaled_hessian(loss, point, unit), point.x):
        return None
    result = minimize(loss, penalty, point.x, tol=enough)
    there = result.converged and _is_positive(_scaled_hessian(loss, loss.point(result.x), unit), point.x)
    return result.x if there else None


def support(problem: FitProblem, x: Array) -> Array:
    """The entries, or rows, of x that are not zero, and the intercept where x has one; a NumPy array."""
    used = as_numpy(x) != 0
    used = used.any(axis=1) if used.ndim == 2 else used
    used[used.size - problem.n_intercepts :] = True
    return np.flatnonzero(used)


def _scaled_hessian(loss: Any, point: Point, unit: Array) -> Array:
    return unit[:, None] * _matrix(loss.hessian(point, np.arange(unit.size))) * unit


def _is_positive(scaled: Array, x: Array) -> bool:
    """Whether a Hessian, in units of its first diagonal, is positive definite beyond rounding.

    If not, columns depend on each other, or the curvature has vanished on the way to infinity, as that of classes
    does that can be separated without error.
    """
    return bool(np.isfinite(scaled).all()) and float(np.linalg.eigvalsh(scaled)[0]) > math.sqrt(precision(x))


def _matrix(values: Array) -> Array:
    return np.asarray(as_numpy(values), dtype=np.float64)


def no_refit(problem: FitProblem, x: Array) -> str:
    """Why there is no refit, and what is reported instead."""
    selected = support(problem, x).size - problem.n_intercepts
    return (
        f"relax=True: without a penalty the {selected} features selected have no unique finite coefficients (as"
        " many features as samples, columns that depend on each other, or classes that can be separated without"
        " error). The penalised coefficients are kept; a larger alpha selects fewer features."
    )

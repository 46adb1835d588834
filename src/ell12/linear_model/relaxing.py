"""The refit on a support without a penalty, which takes back the shrinkage."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import as_numpy, like, max_abs, namespace, precision, take
from ell12.linear_model.problems import FitProblem
from ell12.minimization import minimize
from ell12.path import l12_penalty
from ell12.protocols import Array

# The Hessian of a refit, its diagonal at the penalised solution scaled to 1, must have eigenvalues above this
# power of the precision. Below it the columns are dependent up to rounding, or the curvature has vanished on the
# way to infinity, as that of classes does which can be told apart without error.
LEAST_EIGENVALUE = 0.5
# A refit ends at a gradient this power of the precision times the first one, as those that begin a path do.
ACCURACY = 0.625
REFIT_STEPS = 1000  # A refit takes this number of iterations at the most; Newton's method needs some ten.


def refit(problem: FitProblem, x: Array, nonnegative: bool = False, bounds: Any = None) -> Array | None:
    """The x of least loss with the same support, signs and bounds kept; None where none is finite and unique.

    Parameters
    ----------
    problem : FitProblem
        A problem whose loss is an `ell12.protocols.ColumnLoss`.
    x : array
        Its penalised solution.
    nonnegative, bounds
        As in `ell12.path.l12_penalty`.
    """
    columns = support(problem, x)
    if columns.size == 0:
        return x
    loss, every = problem.loss.restrict(columns), np.arange(columns.size)
    point = loss.point(take(x, columns, 0))
    hessian = _matrix(loss.hessian(point, every))
    unit = 1 / np.sqrt(np.where(np.diagonal(hessian) > 0, np.diagonal(hessian), 1))
    if not _is_positive(hessian, unit, x):
        return None
    if loss.is_quadratic and not nonnegative and bounds is None:
        step = np.linalg.solve(unit[:, None] * hessian * unit, (unit * _matrix(loss.gradient(point)).T).T)
        return _scattered(point.x - like((unit * step.T).T, point.x), columns, x)
    kept = columns[: columns.size - bool(problem.constant)]
    limits: dict[str, Any] = {}
    if kept.size > 0:  # else there is but an intercept, which is not bounded
        limits = {"nonnegative": nonnegative, "bounds": None if bounds is None else bounds.restrict(kept)}
        limits["intercept"] = bool(problem.constant)
    size = max_abs(loss.gradient(loss.point(loss.start())))
    penalty, tol = l12_penalty(0.0, **limits), precision(x) ** ACCURACY * size
    result = minimize(loss, penalty, point.x, tol=tol, max_iter=REFIT_STEPS)
    if not (result.converged and _is_positive(_matrix(loss.hessian(loss.point(result.x), every)), unit, x)):
        return None
    return _scattered(result.x, columns, x)


def support(problem: FitProblem, x: Array) -> Array:
    """The entries, or rows, of x that are not zero, and the intercept where x has one; a NumPy array."""
    used = as_numpy(x) != 0
    used = used.any(axis=1) if used.ndim == 2 else used
    if problem.constant:
        used[-1] = True
    return np.flatnonzero(used)


def _is_positive(hessian: Array, unit: Array, x: Array) -> bool:
    """Whether the Hessian, in units of its diagonal, is positive definite beyond rounding."""
    scaled = unit[:, None] * hessian * unit
    least = precision(x) ** LEAST_EIGENVALUE
    return bool(np.isfinite(scaled).all()) and float(np.linalg.eigvalsh(scaled)[0]) > least


def _matrix(values: Array) -> Array:
    return np.asarray(as_numpy(values), dtype=np.float64)


def _scattered(values: Array, columns: Array, x: Array) -> Array:
    """An array like x with these entries or rows, zero elsewhere."""
    full = np.zeros(x.shape, dtype=as_numpy(x).dtype)
    full[columns] = as_numpy(values)
    return namespace(x).astype(like(full, x), x.dtype, copy=False)


def no_refit(problem: FitProblem, x: Array) -> str:
    """Why a refit was not to be had, and what stands in its place."""
    selected = support(problem, x).size - bool(problem.constant)
    return (
        f"relax=True: without a penalty the {selected} features selected have no unique finite coefficients (as"
        " many features as samples, columns that depend on each other, or classes that can be told apart without"
        " error). The penalised coefficients are kept; a larger alpha selects fewer features."
    )

"""Directions in which one column differs from all others: the rows of an inverse of the correlations.

The direction of a column a_j is a vector z_j that is nearly orthogonal to the other columns. An exact inverse has
those that are orthogonal, and exists for fewer columns than samples. The nodewise Lasso (Zhang & Zhang 2014, van
de Geer et al. 2014) takes the residual of a_j after a Lasso on the others. Ridge (Buehlmann 2013) takes column j
of ``A (R + strength I)^-1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ell12.losses import SquaredLoss
from ell12.minimization import minimize
from ell12.operators.gram import ridge_solver
from ell12.operators.linear_operator import to_dense
from ell12.penalties import L12
from ell12.protocols import Array
from ell12.selection.local_model import LARGEST, LocalColumns
from ell12.solvers.gram_descent import ROUNDS, engine_for

Directions = Callable[[Array], Array]  # numbers of columns -> their directions, one for each

# How far a nodewise problem is solved, relative to its strength: bias and variance change by as little.
TOL = np.finfo(np.float64).eps ** (1 / 3)
# Strengths fall by this factor, which decides how near to INFLATION errors come: within some per cent.
STEP = 0.8
# The standard error that a direction may have, relative to the reference of the scaled Lasso: Zhang & Zhang take
# 1.25, with which intervals of correlated columns held 93 % where 1.4 held 94 %, being 11 % longer
# (benchmarks/results/interval_coverage.md).
INFLATION = 1.4
# Coefficients are not zero for at most this share of the samples: with independent columns, where there is little
# bias, half of the samples are in use before errors grow at all.
MOST_USED = 1 / 3
# A column depends on others if its direction is shorter than this share of it.
LEAST_LENGTH = np.finfo(np.float64).eps ** 0.25


def exact(columns: LocalColumns) -> Directions:
    """The columns of ``A R^-1``, R being the correlations; these must have an inverse."""
    inverse: Any = columns.inverse()
    return lambda which: columns.product(inverse[:, which])


def ridge(columns: LocalColumns) -> Directions:
    """The columns of ``A (R + strength I)^-1``, the strength being 1/n as Buehlmann proposes."""
    strength = columns.total / columns.curvature.size
    dense = to_dense(columns.A)
    solve = ridge_solver(dense, columns.curvature, strength)

    def find(which: Array) -> Array:
        unit = np.zeros((columns.size, which.size))
        unit[which, np.arange(which.size)] = columns.total
        return dense @ solve(unit)

    return find


def nodewise(columns: LocalColumns, n_jobs: int | None = None) -> Directions:
    """The residuals of nodewise Lassos, each at a strength that a rule finds.

    Strengths fall by STEP from ``sqrt(log p / n)``, the columns being of length 1. The first at most
    ``sqrt(log p / n)`` times the length of the residual, as the scaled Lasso has it, is the reference. From there
    they go on falling, and bias with them, as long as the standard error is at most INFLATION times that of the
    reference.
    """
    solver = (GramSolver if columns.size**2 <= LARGEST else ColumnSolver)(columns)

    def find(which: Array) -> Array:
        rows = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(_direction)(solver, int(j)) for j in which)
        return columns.product(np.reshape(rows, (which.size, columns.size)).T)

    return find


class GramSolver:
    """Nodewise problems over the matrix of all correlations, by a compiled call for each strength."""

    def __init__(self, columns: LocalColumns) -> None:
        self.columns = columns
        self.gram = np.ascontiguousarray(columns.correlations())
        self.descend = engine_for(self.gram)[0].descend

    def solve(self, j: int, strength: float, x: Array) -> Array:
        """The coefficients of the others, from those at another strength."""
        x, used = x.copy(), np.flatnonzero(x)
        gradient = x[used] @ self.gram[used] - self.gram[j]
        above, zeros = np.full(x.size, strength), np.zeros(x.size)
        above[j] = np.inf  # fixes it at zero
        parts, target = (-above, above, zeros, 0.0), 0.1 * TOL * strength
        for _ in range(ROUNDS):  # one ends where the violation has not halved
            if self.descend(self.gram, gradient, x, parts, target, np.inf):
                break
        return x

    def moments(self, j: int, x: Array) -> tuple[float, float]:
        """The products of the residual with itself and with the column."""
        used = np.flatnonzero(x)
        explained = float(self.gram[j, used] @ x[used])
        own = self.gram[j, j]
        return own - 2 * explained + float(x[used] @ self.gram[np.ix_(used, used)] @ x[used]), own - explained


class ColumnSolver:
    """The same over the columns themselves: where they are too many for that matrix."""

    def __init__(self, columns: LocalColumns) -> None:
        self.columns = columns

    def solve(self, j: int, strength: float, x: Array) -> Array:
        """The coefficients of the others, from those at another strength."""
        columns = self.columns
        target, weights = columns.take(np.array([j]))[:, 0], np.ones(x.size)
        weights[j] = np.inf
        loss = SquaredLoss.of_checked(columns.A, target, sample_weight=columns.curvature, scale=1 / columns.total)
        return minimize(loss, L12(strength, 0.0, weights=weights), x, tol=TOL).x

    def moments(self, j: int, x: Array) -> tuple[float, float]:
        """The products of the residual with itself and with the column."""
        column = self.columns.take(np.array([j]))[:, 0]
        rest, weight = column - self.columns.product(x), self.columns.curvature / self.columns.total
        return float(weight @ rest**2), float(weight @ (rest * column))


def _direction(solver: Any, j: int) -> Array:
    """1 for a column and minus the coefficients of the others, at the strength of the rule."""
    size, n = solver.columns.size, solver.columns.n_samples
    first = math.sqrt(math.log(max(size, 2)) / n)
    x, strength, reference = np.zeros(size), first, math.inf
    kept = x
    for _ in range(40):  # 0.8^40 is 1e-4
        x = solver.solve(j, strength, x)
        square, product = solver.moments(j, x)
        length = math.sqrt(max(square, 0.0))
        if not length > LEAST_LENGTH:  # it depends on others
            kept = x
            break
        error = length / product
        if error > INFLATION * reference or np.count_nonzero(x) > MOST_USED * n:
            break
        if reference == math.inf and strength <= first * length:
            reference = error
        kept, strength = x, STEP * strength
    kept = -kept
    kept[j] = 1.0
    return kept

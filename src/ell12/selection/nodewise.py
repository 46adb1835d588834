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
from ell12.operators import to_dense
from ell12.operators.gram import ridge_solver
from ell12.penalties import L12
from ell12.protocols import Array
from ell12.selection.local_model import LARGEST, LocalColumns
from ell12.solvers.gram_descent import ROUNDS, engine_for

Directions = Callable[[Array], Array]  # numbers of columns -> their directions, one for each

# How far a nodewise problem is solved, relative to its strength: bias and variance change by as little. Any
# vector is a valid direction; eps^(1/3) takes 1.2 to 1.4 times as long.
TOL = np.finfo(np.float64).eps ** 0.25
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
    use_gram = columns.size**2 <= LARGEST

    def find(which: Array) -> Array:
        engine = engine_for(columns.correlations, 10 * which.size)[0] if use_gram else None  # ten strengths each
        tasks = (delayed(_direction)(columns, engine, int(j)) for j in which)
        rows = Parallel(n_jobs=n_jobs, prefer="threads")(tasks)
        return columns.product(np.reshape(rows, (which.size, columns.size)).T)

    return find


def _direction(columns: LocalColumns, engine: Any, j: int) -> Array:
    """1 for a column and minus the coefficients of the others, at the strength of the rule."""
    size, n = columns.size, columns.n_samples
    first = math.sqrt(math.log(max(size, 2)) / n)
    strength, reference, kept = first, math.inf, np.zeros(size)
    solve = _by_columns(columns, j) if engine is None else _by_gram(columns.correlations, engine, j)
    for _ in range(40):  # 0.8^40 is 1e-4
        x, square, product = solve(strength)
        length = math.sqrt(max(square, 0.0))
        if not length > LEAST_LENGTH:  # it depends on others
            kept = x
            break
        error = length / product
        if error > INFLATION * reference or np.count_nonzero(x) > MOST_USED * n:
            break
        if reference == math.inf and strength <= first * length:
            reference = error
        kept, strength = x.copy(), STEP * strength
    kept = -kept
    kept[j] = 1.0
    return kept


Solve = Callable[[float], tuple[Array, float, float]]


def _by_gram(gram: Array, engine: Any, j: int) -> Solve:
    """The other columns' coefficients, and the products of the residual with itself and with the column.

    By a compiled call for each strength over the matrix of all correlations.
    """
    x, zeros, above, gradient = np.zeros(len(gram)), np.zeros(len(gram)), np.zeros(len(gram)), -gram[j]

    def solve(strength: float) -> tuple[Array, float, float]:
        above[:], above[j] = strength, np.inf  # fixes it at zero
        parts, target = (-above, above, zeros, 0.0), TOL * strength
        for _ in range(ROUNDS):  # one ends where the violation has not halved
            if engine.descend(gram, gradient, x, parts, target, np.inf):
                break
        product = float(gram[j, j] - gram[j] @ x)
        return x, product + float(gradient @ x), product

    return solve


def _by_columns(columns: LocalColumns, j: int) -> Solve:
    """The same over the columns themselves: where they are too many for that matrix."""
    column, weights = columns.take(np.array([j]))[:, 0], np.ones(columns.size)
    weights[j] = np.inf
    weight = columns.curvature / columns.total
    loss = SquaredLoss.of_checked(columns.A, column, sample_weight=weight)
    x = np.zeros(columns.size)

    def solve(strength: float) -> tuple[Array, float, float]:
        nonlocal x
        x = minimize(loss, L12(strength, 0.0, weights=weights), x, tol=TOL).x
        rest = column - columns.product(x)
        return x, float(weight @ rest**2), float(weight @ (rest * column))

    return solve

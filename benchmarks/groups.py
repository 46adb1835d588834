"""GroupNewton, the default for groups, against the paper's nmAPG, the default before it, to stationarity 1e-5.

Squared and logistic loss with l1-2 of groups of five columns, neighbouring columns correlated by 0, 0.9 or 0.5; 20
groups of the model are not zero, with noise. The strength is a part of that at which all groups vanish (of the
penalty with l2_weight 0). All from zero, each with a fresh loss. One run per seed and method, the methods taking
turns; time and objective are medians over the seeds, on which nothing was chosen. The note counts the seeds at
which the objective is no higher than nmAPG's by more than 1e-6 of it.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

import ell12
from timing import CLOCK, Row, version_of

BASELINE = "GroupNewton"
TOL, SLACK = 1e-5, 1e-6
SEEDS = range(100, 103)
SHAPES = ((500, 2000, 0.0), (1000, 5000, 0.9), (3000, 1000, 0.5))
SOLVERS: dict[str, Any] = {"GroupNewton": ell12.solvers.GroupNewton(), "nmAPG": ell12.NonmonotoneAPG()}
SIZE, USED = 5, 20


def rows() -> Iterator[Row]:
    for shape, kind, part, l2_weight in itertools.product(
        SHAPES, ("squared", "logistic"), (0.3, 0.03), (0.0, 1.0)
    ):
        yield from compare(shape, kind, part, l2_weight, SEEDS)


def compare(
    shape: tuple[int, int, float], kind: str, part: float, l2_weight: float, seeds: range
) -> Iterator[Row]:
    """One problem: a row per solver."""
    found: dict[str, list[tuple[float, ell12.Result]]] = {name: [] for name in SOLVERS}
    for seed in seeds:
        A, b = correlated(*shape, seed)
        for name in sorted(SOLVERS, reverse=seed % 2 == 1):
            found[name].append(timed(A, b, kind, part, l2_weight, SOLVERS[name]))
    paper = np.array([result.objective for _, result in found["nmAPG"]])
    base = statistics.median(seconds for seconds, _ in found[BASELINE])
    for name, runs in found.items():
        seconds = statistics.median(seconds for seconds, _ in runs)
        value = statistics.median(result.objective for _, result in runs)
        lower = int(np.sum(np.array([result.objective for _, result in runs]) <= (1 + SLACK) * paper))
        worst, steps = (max(getattr(result, of) for _, result in runs) for of in ("stationarity", "n_iter"))
        note = f"stationarity at most {worst:.1e}, at most {steps} steps; "
        note += "the paper's method" if name == "nmAPG" else f"objective no higher at {lower} of {len(runs)} seeds"
        m, n, correlation = shape
        problem = (
            f"{kind}, {m} x {n}, correlation {correlation:g}, {part:g} of the largest, l2_weight {l2_weight:g}"
        )
        yield Row(problem, name, version_of("ell12"), seconds, seconds / base, value, note)


def correlated(m: int, n: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of which neighbours are correlated, and what some groups of them make, with noise."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n))
    for j in range(1, n):
        A[:, j] = correlation * A[:, j - 1] + np.sqrt(1 - correlation**2) * A[:, j]
    x = np.zeros((n // SIZE, SIZE))
    x[random.choice(n // SIZE, USED, replace=False)] = random.standard_normal((USED, SIZE))
    return A, A @ x.ravel() + 0.5 * random.standard_normal(m)


def timed(
    A: np.ndarray, b: np.ndarray, kind: str, part: float, l2_weight: float, solver: Any
) -> tuple[float, ell12.Result]:
    m, n = A.shape
    loss: Any = (
        ell12.SquaredLoss(A, b, scale=1 / m)
        if kind == "squared"
        else ell12.LogisticLoss(A, np.where(b > 0, 1, -1), scale=1 / m)
    )
    gradient = loss.gradient(loss.point(loss.start())).reshape(-1, SIZE)
    alpha = part * float(np.linalg.norm(gradient, axis=1).max())
    penalty = ell12.GroupL12(np.arange(n) // SIZE, alpha, l2_weight)
    begin = CLOCK()
    result = ell12.minimize(loss, penalty, solver=solver, tol=TOL, max_iter=10**5)
    return CLOCK() - begin, result

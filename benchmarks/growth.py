"""How the time of a fit grows with the number of columns and of rows.

Correlated Gaussian designs (0.9 between neighbours) with 20 nonzeros, alpha 0.1 of max |A'b|; one dimension is
fixed at 500 while the other grows. The default solver to stationarity 1e-6, from zero, with l1-2 and as a Lasso,
and celer's Lasso beside it. The slope is that of the logarithm of time over the last two sizes: 1 is linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ell12
from race_problems import Problem, correlated
from timing import Row, load, median_seconds, version_of

BASELINE = "ell12, l1-2"
SIZES = [1000, 3000, 10_000, 30_000, 100_000]
celer, celer_missing = load("celer")


def rows() -> Iterator[Row]:
    for name, shapes in (
        ("columns", [(500, size) for size in SIZES]),
        ("rows", [(size, 500) for size in SIZES]),
    ):
        previous: dict[str, float] = {}
        for k, (n, p) in enumerate(shapes):
            problem = correlated(n, p, f"more {name}", 0.1, nonzero=20)
            calls = solvers(problem)
            seconds = median_seconds(calls, budget=6.0)
            for method, call in calls.items():
                x = np.asarray(call())
                note = f"{np.count_nonzero(x)} nonzeros"
                if previous:
                    slope = math.log(seconds[method] / previous[method]) / math.log(SIZES[k] / SIZES[k - 1])
                    note += f", slope {slope:.2f}"
                ratio = seconds[method] / seconds[BASELINE]
                objective = None if method != BASELINE else problem.objective(x)
                yield Row(
                    problem.name, method, version_of(method.split(",")[0]), seconds[method], ratio, objective, note
                )
            previous = seconds
        if celer is None:
            yield Row(f"more {name}", "celer", version_of("celer"), note=celer_missing)


def solvers(problem: Problem) -> dict[str, Callable[[], Any]]:
    def ours(l2_weight: float) -> Callable[[], Any]:
        return lambda: ell12.minimize(problem.loss(), ell12.L12(problem.alpha, l2_weight), tol=1e-6).x

    calls = {BASELINE: ours(1.0), "ell12, Lasso": ours(0.0)}
    if celer is not None:
        A, n = np.asfortranarray(problem.A), len(problem.b)
        model = celer.Lasso(problem.alpha / n, tol=1e-6, fit_intercept=False)
        calls["celer, Lasso"] = lambda: model.fit(A, problem.b).coef_
    return calls

"""Stochastic solvers against nmAPG, in passes over the data.

20,000 rows and 200 columns whose neighbours correlate by 0.9; squared loss, logistic loss, and the Lasso. How far
the objective lies above the lowest that is known (SupportNewton to 1e-9) after each pass: reading all
rows once, for a product with A and one with its adjoint. An iterate of nmAPG is one pass, of ProxSVRG two, of
SAGA one and a half. docs/images/stochastic.py draws the figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import study
from ell12 import L12, LogisticLoss, NonmonotoneAPG, SquaredLoss, datasets, minimize
from ell12.solvers import SAGA, ProxSVRG, SupportNewton

ROWS, COLUMNS, NONZERO, PASSES = 20_000, 200, 10, 300
SOLVERS: dict[str, tuple[Any, float]] = {
    "nmAPG": (NonmonotoneAPG(), 1.0),
    "ProxSVRG": (ProxSVRG(), 2.0),
    "SAGA": (SAGA(), 1.5),
}
TARGETS = (1e-3, 1e-5, 1e-7, 1e-9)


def problems() -> dict[str, tuple[Any, L12]]:
    data = datasets.correlated_design(0, n_samples=ROWS, n_features=COLUMNS, n_nonzero=NONZERO)
    squared = SquaredLoss(data.A, data.b, scale=1 / ROWS)
    logistic = LogisticLoss(data.A, np.where(data.b > 0, 1.0, -1.0), scale=1 / ROWS)
    return {
        "squared loss, l1-2": (squared, L12(0.02)),
        "logistic loss, l1-2": (logistic, L12(0.005)),
        "squared loss, l1": (squared, L12(0.02, l2_weight=0.0)),
    }


def main() -> None:
    rows, tables = [], []
    for problem, (loss, penalty) in problems().items():
        best = minimize(loss, penalty, solver=SupportNewton(), tol=1e-9).objective
        lines = ["| solver | " + " | ".join(f"to {target:g}" for target in TARGETS) + " |"]
        lines.append("| --- |" + " ---: |" * len(TARGETS))
        for name, (solver, cost) in SOLVERS.items():
            result = minimize(loss, penalty, solver=solver, tol=1e-9, max_iter=round(PASSES / cost))
            above = np.array(result.history["objective"]) - best
            rows.append({"problem": problem, "solver": name, "passes_each": cost, "above": above.tolist()})
            reached = [np.flatnonzero(above <= target * best) for target in TARGETS]
            cells = [f"{cost * hit[0]:g}" if hit.size else f"over {PASSES}" for hit in reached]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            print(problem, name, cells, flush=True)
        tables.append(
            f"## {problem}\n\nPasses to a relative distance from the lowest objective.\n\n" + "\n".join(lines)
        )
    settings = {"rows": ROWS, "columns": COLUMNS, "nonzero": NONZERO}
    study.write("stochastic", __doc__, settings, rows, tables)


if __name__ == "__main__":
    main()

"""How well the support is found by cross-validation: l1-2 against the Lasso, over seeds.

Run ``python benchmarks/support_recovery.py --seeds 20``; means over seeds, and their spread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LassoCV

from ell12 import L12RegressorCV
from ell12.datasets import compressed_sensing, correlated_design

DESIGNS = {"correlated": correlated_design, "paper": compressed_sensing}
COLUMNS = ("F1", "selected", "found", "CV error", "seconds")


def row(design: str, seed: int, model) -> list[float]:
    problem = DESIGNS[design](seed)
    start = time.perf_counter()
    model.fit(problem.A, problem.b)
    seconds = time.perf_counter() - start
    found, wanted = model.coef_ != 0, problem.x != 0
    both = int(np.sum(found & wanted))
    error = model.mse_path_.mean(axis=1).min()
    return [2 * both / (found.sum() + wanted.sum()), int(found.sum()), both, float(error), seconds]


def models(n_alphas: int, eps: float) -> dict:
    return {
        "l1-2": L12RegressorCV(n_alphas=n_alphas, eps=eps, tol=1e-3),
        "l1-2, 1se": L12RegressorCV(n_alphas=n_alphas, eps=eps, tol=1e-3, selection="1se"),
        "lasso": LassoCV(alphas=n_alphas, eps=eps, max_iter=20_000),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--design", choices=DESIGNS, default="correlated")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--alphas", type=int, default=50)
    parser.add_argument("--eps", type=float, default=1e-2)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    print(f"{'':>12}" + "".join(f"{name:>12}" for name in COLUMNS))
    for name, model in models(options.alphas, options.eps).items():
        rows = Parallel(n_jobs=options.jobs)(
            delayed(row)(options.design, seed, model) for seed in range(options.seeds)
        )
        for label, values in ((name, np.mean(rows, axis=0)), ("spread", np.std(rows, axis=0))):
            print(f"{label:>12}" + "".join(f"{value:12.4g}" for value in values), flush=True)


if __name__ == "__main__":
    main()

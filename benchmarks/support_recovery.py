"""How well cross-validation finds the support: l1-2 against the Lasso, over seeds.

Two designs: "correlated" (200 x 1000, neighbouring Gaussian columns correlate by 0.9, 20 nonzeros, noise 20 %)
and "paper" (the paper's compressed sensing, 500 x 2000, 100 nonzeros). Each model chooses its strength by
5-fold cross-validation on its own grid of the same length and reach. F1 is that of the support: 1 where exactly
the true features are selected. "l1-2, 1se" takes the largest strength within one standard error of the best,
"lasso, 1se" likewise, for a fair comparison.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import Lasso, LassoCV

import study
from ell12 import L12RegressorCV
from ell12.datasets import compressed_sensing, correlated_design

DESIGNS = {"correlated": correlated_design, "paper": compressed_sensing}
MEASURES = {"F1": "{:.3f}", "selected": "{:.1f}", "found": "{:.1f}", "CV error": "{:.3g}", "CPU seconds": "{:.2g}"}
LASSO_1SE = "lasso, 1se"


def models(n_alphas: int, eps: float) -> dict[str, Any]:
    return {
        "l1-2": L12RegressorCV(alphas=n_alphas, eps=eps, tol=1e-3),
        "l1-2, 1se": L12RegressorCV(alphas=n_alphas, eps=eps, tol=1e-3, selection="1se"),
        "lasso": LassoCV(alphas=n_alphas, eps=eps, max_iter=20_000),
        LASSO_1SE: LassoCV(alphas=n_alphas, eps=eps, max_iter=20_000),
    }


def row(design: str, seed: int, name: str, model: Any, size: dict[str, int]) -> dict[str, Any]:
    """One fit on one draw of the data."""
    problem = DESIGNS[design](seed, **size)
    start = time.process_time()
    model = clone(model).fit(problem.A, problem.b)
    alpha, coef = _one_standard_error(model, problem) if name == LASSO_1SE else (model.alpha_, model.coef_)
    seconds = time.process_time() - start
    chosen, wanted = coef != 0, problem.x != 0
    found = int(np.sum(chosen & wanted))
    return {
        "design": design,
        "seed": seed,
        "method": name,
        "F1": float(2 * found / (chosen.sum() + wanted.sum())),
        "selected": int(chosen.sum()),
        "nonzeros": int(wanted.sum()),
        "found": found,
        "CV error": float(model.mse_path_.mean(axis=1).min()),
        "CPU seconds": seconds,
        "at_end": bool(np.isclose(alpha, model.alphas_.min())),
    }


def _one_standard_error(model: LassoCV, problem: Any) -> tuple[float, Any]:
    """The largest alpha within one standard error of the best, and the Lasso's coefficients there."""
    means = model.mse_path_.mean(axis=1)
    best = int(np.argmin(means))
    error = model.mse_path_[best].std(ddof=1) / np.sqrt(model.mse_path_.shape[1])
    alpha = model.alphas_[np.argmax(means <= means[best] + error)]
    return alpha, Lasso(alpha=alpha, max_iter=20_000).fit(problem.A, problem.b).coef_


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One table for each design: mean over the seeds, and standard deviation."""
    for design in dict.fromkeys(row["design"] for row in rows):
        own = [row for row in rows if row["design"] == design]
        seeds = len({row["seed"] for row in own})
        yield f"## {design}: {own[0]['nonzeros']} nonzeros, {seeds} seeds"
        lines = [_line(own, method) for method in dict.fromkeys(row["method"] for row in own)]
        yield study.table(["method", *MEASURES, "alpha at the grid's end", "F1 above the lasso's"], lines)


def _line(rows: list[dict[str, Any]], method: str) -> list[str]:
    own = {row["seed"]: row for row in rows if row["method"] == method}
    rival = {row["seed"]: row for row in rows if row["method"] == ("lasso, 1se" if "1se" in method else "lasso")}
    cells = []
    for measure, form in MEASURES.items():
        values = [row[measure] for row in own.values()]
        cells.append(f"{form.format(np.mean(values))} ± {form.format(np.std(values))}")
    above = sum(own[seed]["F1"] > rival[seed]["F1"] for seed in own)
    ends = str(sum(row["at_end"] for row in own.values()))
    return [method, *cells, ends, "" if method.startswith("lasso") else f"at {above} of {len(own)} seeds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--design", choices=(*DESIGNS, "both"), default="both")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--alphas", type=int, default=50)
    parser.add_argument("--eps", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--n-samples", type=int, help="a smaller problem, to try the script")
    options = parser.parse_args()
    designs = list(DESIGNS) if options.design == "both" else [options.design]
    size = {} if options.n_samples is None else {"n_samples": options.n_samples}
    jobs = [
        delayed(row)(design, seed, name, model, size)
        for design in designs
        for seed in range(options.seeds)
        for name, model in models(options.alphas, options.eps).items()
    ]
    rows = []
    for found in Parallel(n_jobs=options.jobs, return_as="generator")(jobs):
        print(f"{found['design']} {found['seed']} {found['method']:>12}: F1 {found['F1']:.3f}", flush=True)
        rows.append(found)
    settings = {"seeds": options.seeds, "alphas": options.alphas, "eps": options.eps, "folds": 5, **size}
    study.write("support_recovery", __doc__, settings, rows, tables(rows))


if __name__ == "__main__":
    main()

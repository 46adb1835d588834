"""Cross-validation side by side: L12RegressorCV and LassoCV, L12ClassifierCV and its rivals, on real data.

Every model gets the same standardised columns, the same 5 folds and the same grid: 50 strengths down to a
thousandth of the first for regression, 20 down to a twentieth for classification. One thread; a number is the
median processor time of rounds in which all take turns. The strengths at `l2_weight=1` begin at its own first one,
and LassoCV gets those too. "LassoCV, matched" has the largest tol of 1e-4, 1e-6 and 1e-8 at which nine of ten
solutions of its path on all rows reach our tol, a stationarity of 1e-4, within 10,000 iterations; "-" where none
does. Stationarity, in brackets for peers, is the ninth decile along the path on all rows. "worse" and "better"
count the strengths of that path at which the objective lies more than 1e-5 above or below that of the same path
solved by `minimize`, strength by strength.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LassoCV, LogisticRegressionCV, lasso_path
from sklearn.model_selection import StratifiedKFold

import real_data
import study
from ell12 import L12, L12ClassifierCV, L12RegressorCV, LogisticLoss, WorkingSet, stationarity
from ell12.path import alpha_grid, alpha_max, path_results, squared_loss
from ell12.penalties import WithIntercept

# Nine tall and wide problems with a number to predict, and two with two classes. None was timed while the
# compiled paths were written; their minima were looked at for the rule that begins at the Lasso's solution too.
PROBLEMS = (
    "hitters",
    "hitters, interactions",
    "college",
    "chemical yield",
    "permeability",
    "meat",
    "cars",
    "players",
    "fermentation",
    "alzheimer",
    "attrition",
)
TOLS = [1e-4, 1e-6, 1e-8]
LONG = 1.0  # seconds; a longer call is timed once
MATCHED = "LassoCV, matched"


def seconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median processor time of each, in rounds in which all take turns; the first call is not timed."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            if turn > 0 and samples[name] and max(samples[name]) > LONG:
                continue
            start = time.process_time()
            call()
            passed = time.process_time() - start
            if turn > 0 or passed > LONG:
                samples[name].append(passed)
    return {name: statistics.median(times) for name, times in samples.items()}


def decile(values: list[float]) -> float:
    return float(np.quantile(values, 0.9))


def compare_minima(loss: Any, penalty: Any, alphas: np.ndarray, results: list[Any]) -> dict[str, int]:
    """At how many strengths the path is worse or better than one solved strength by strength."""
    plain = path_results(loss, penalty, alphas, solver=WorkingSet())
    ratios = np.array([ours.objective / other.objective for ours, other in zip(results, plain, strict=True)])
    return {"worse": int((ratios > 1 + 1e-5).sum()), "better": int((ratios < 1 - 1e-5).sum())}


def regression_rows(problem: real_data.Problem, rounds: int) -> list[dict[str, Any]]:
    X, y = problem.standardised(), problem.y - problem.y.mean()
    rows, loss = [], squared_loss(X, y)
    for l2_weight in (0.0, 1.0):
        alphas = alpha_grid(alpha_max(loss, L12(l2_weight=l2_weight)), 50)
        calls: dict[str, Callable[[], Any]] = {
            "L12RegressorCV": L12RegressorCV(penalty=L12(l2_weight=l2_weight), alphas=alphas, cv=5).fit,
            "LassoCV": LassoCV(alphas=alphas, cv=5, max_iter=10_000).fit,
        }
        results = path_results(loss, L12(1.0, l2_weight), alphas)
        reached = {"L12RegressorCV": decile([result.stationarity for result in results])}
        for tol in TOLS:
            coefs = lasso_path(X, y, alphas=alphas, tol=tol, max_iter=10_000)[1]
            violations = [stationarity(loss, L12(a, 0.0), coefs[:, k]) for k, a in enumerate(alphas)]
            reached.setdefault("LassoCV", decile(violations))
            if decile(violations) <= 1e-4:
                calls[MATCHED] = LassoCV(alphas=alphas, cv=5, tol=tol, max_iter=10_000).fit
                reached[MATCHED] = decile(violations)
                break
        minima = compare_minima(loss, L12(1.0, l2_weight), alphas, results)
        times = seconds({name: lambda fit=fit: fit(X, y) for name, fit in calls.items()}, rounds)
        for method, passed in times.items():
            own = minima if method == "L12RegressorCV" else {}
            row = {"problem": str(problem), "package": problem.package, "l2_weight": l2_weight, "method": method}
            rows.append(row | {"seconds": passed, "stationarity": reached[method]} | own)
    return rows


def skglm_path(X: np.ndarray, y: np.ndarray, alphas: np.ndarray, folds: list[Any], tol: float) -> None:
    """What a cross-validation by skglm costs, which has none of its own: warm-started paths on the folds."""
    from skglm import SparseLogisticRegression

    for train, _ in [*folds, (np.arange(len(y)), None)]:
        model = SparseLogisticRegression(alphas[0], tol=tol, warm_start=True)
        for alpha in alphas:
            model.alpha = alpha
            model.fit(X[train], y[train])


def classification_rows(problem: real_data.Problem, rounds: int) -> list[dict[str, Any]]:
    X, n = np.ascontiguousarray(problem.standardised()), len(problem.y)
    y = np.where(problem.y == np.unique(problem.y)[-1], 1, -1)
    A = np.hstack([X, np.ones((n, 1))])
    loss, rows = LogisticLoss(A, y, scale=1 / n), []
    folds = list(StratifiedKFold(5).split(X, y))
    for l2_weight in (0.0, 0.5, 1.0):
        alphas = alpha_grid(alpha_max(loss, WithIntercept(L12(l2_weight=l2_weight))), 20, 0.05)
        ours = L12ClassifierCV(penalty=L12(l2_weight=l2_weight), alphas=alphas, cv=5)
        calls: dict[str, Callable[[], Any]] = {"L12ClassifierCV": lambda ours=ours: ours.fit(X, y)}
        if l2_weight == 0:
            options = {"Cs": 1 / (0.8 * n * alphas), "cv": 5, "l1_ratios": [1.0], "scoring": "neg_log_loss"}
            options |= {"use_legacy_attributes": False, "max_iter": 1000}
            saga = LogisticRegressionCV(solver="saga", tol=1e-3, **options)
            liblinear = LogisticRegressionCV(solver="liblinear", tol=1e-4, **options)
            calls["LogisticRegressionCV, saga"] = lambda model=saga: model.fit(X, y)
            calls["LogisticRegressionCV, liblinear"] = lambda model=liblinear: model.fit(X, y)
            skglm_path(X[:60], y[:60], alphas[:1], [], 1e-4)  # compiles
            calls["skglm"] = lambda alphas=alphas: skglm_path(X, y, alphas, folds, 1e-4)
        penalty = WithIntercept(L12(1.0, l2_weight))
        results = path_results(loss, penalty, alphas)
        minima = compare_minima(loss, penalty, alphas, results)
        for method, passed in seconds(calls, rounds).items():
            own = minima | {"stationarity": decile([r.stationarity for r in results])}
            row = {"problem": str(problem), "package": problem.package, "l2_weight": l2_weight, "method": method}
            rows.append(row | {"seconds": passed} | (own if method == "L12ClassifierCV" else {}))
    return rows


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def table(rows: list[dict[str, Any]], own: str, rivals: list[str], l2_weight: float) -> str:
    """One line for each problem: our time, and the rivals' times with ours as multiples of them."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        # Rivals of the classifier know l2_weight=0 alone, and are compared with it at every l2_weight.
        lasting = row["method"] in rivals and own == "L12ClassifierCV"
        if row["l2_weight"] == l2_weight or lasting:
            found.setdefault(row["problem"], {})[row["method"]] = row
    lines, ratios = [], {rival: [] for rival in rivals}
    for problem, methods in found.items():
        if own not in methods:
            continue
        ours = methods[own]
        line = [problem, f"{1e3 * ours['seconds']:.0f}", f"{ours['stationarity']:.0e}"]
        for rival in rivals:
            their = methods.get(rival)
            ratio = None if their is None else ours["seconds"] / their["seconds"]
            line += [_cell(their and 1e3 * their["seconds"], "{:.0f}"), _cell(ratio, "{:.2f}")]
            if ratio is not None:
                ratios[rival].append(ratio)
            if their is not None and "stationarity" in their:
                line[-2] += f" ({their['stationarity']:.0e})"
        lines.append([*line, f"{ours['worse']} / {ours['better']}"])
    medians = [
        cell for rival in rivals for cell in ("", _cell(statistics.median(ratios[rival] or [np.nan]), "{:.2f}"))
    ]
    lines.append(["**median of the ratio**", "", "", *medians, ""])
    header = ["problem", f"{own}, ms", "stationarity"]
    header += [text for rival in rivals for text in (f"{rival}, ms", "ratio")]
    return f"## `l2_weight={l2_weight:g}`: {own}\n\n" + study.table([*header, "worse / better"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="measure problems whose names begin so, and keep the other rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers that do not converge: the stationarity says so
    rows: list[dict[str, Any]] = []
    if arguments.only:
        kept = json.loads((study.RESULTS / "cross_validation.json").read_text())["rows"]
        rows = [row for row in kept if not row["problem"].startswith(arguments.only)]
    for problems, measure in (
        (real_data.regression_problems(), regression_rows),
        (real_data.classification_problems(), classification_rows),
    ):
        for problem in problems:
            wanted = not arguments.only or problem.name.startswith(arguments.only)
            if problem.name not in PROBLEMS or not wanted:
                continue
            new = measure(problem, arguments.rounds)
            for row in new:
                print({key: value for key, value in row.items() if key != "package"}, flush=True)
            rows += new
            write(rows, arguments.rounds)


def write(rows: list[dict[str, Any]], rounds: int) -> None:
    """The rows so far."""
    logistic = ["LogisticRegressionCV, saga", "LogisticRegressionCV, liblinear", "skglm"]
    tables = [table(rows, "L12RegressorCV", ["LassoCV", MATCHED], weight) for weight in (0.0, 1.0)]
    if any(row["method"] == "L12ClassifierCV" for row in rows):
        tables += [table(rows, "L12ClassifierCV", logistic, weight) for weight in (0.0, 0.5, 1.0)]
    settings = {"rounds": rounds, "skglm": version("skglm"), "numba": version("numba")}
    study.write("cross_validation", __doc__, settings, rows, tables)


if __name__ == "__main__":
    main()

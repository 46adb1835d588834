"""How often intervals hold what is missing, and what several imputations are worth.

`L12Imputer().intervals` on real tables, a synthetic one and ratings. Of each, 50 draws of what is missing (at
least 20 of the hundred thousand ratings, each without 10,000 or 30,000): a tenth or three tenths of the entries,
each as likely as any other. "Covered" is the share of the missing entries that lie in their intervals, the mean
over the draws and their range. "Width" is the mean width as a multiple of what a normal error of the same
standard deviation would ask for, column by column: below one where errors are not normal, or where the intervals
know which of them are small. "Worst column" is the least share over the columns that miss at least 100 entries in
all draws; "thirds" are items with few, more and many ratings, a third of the missing ratings each. "New rows": a
random half of the rows is fitted, the other half gets intervals. "Large values": a value is missing with a
probability that grows with the value itself, 30 % on average. Of ratings the choices (strength, weight, rank,
offsets) are made on the first of ten draws and kept for nine, to save time.

`L12Imputer().draws`: samples of 100 rows, three tenths of the entries missing. The 95 % interval of the mean of a
column, and of a coefficient of a regression of it on two others, from ten completed tables by Rubin's rules.
Beside it: one completed table, column means in place of what is missing, complete rows alone, and nothing
missing. The real samples are drawn with replacement from the table, whose own mean and coefficient are the truth.

The constants of the method were chosen on other synthetic data.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats

import study
from ell12 import L12Imputer
from ell12.datasets import synthetic_ratings
from real_data import classification_problems, regression_problems
from real_ratings import movielens_100k

COVERAGES = (0.8, 0.9, 0.95)
SHARES = (0.1, 0.3)
TABLES = ("wine", "diabetes", "hitters", "breast cancer")
RATINGS = ("synthetic ratings", "MovieLens 100k")
PARTS = ("tables", "ratings", "draws")
SAMPLE, N_TABLES, POPULATION = 100, 10, "breast cancer"


@dataclass(frozen=True)
class Setting:
    """What is missing of which data."""

    data: str
    missing: float
    kind: str = "at random"


def settings(part: str) -> list[Setting]:
    if part == "ratings":
        return [Setting(name, share) for name in RATINGS for share in SHARES]
    made = [Setting(name, share) for name in (*TABLES, "synthetic") for share in SHARES]
    return made + [Setting(name, 0.3, kind) for kind in ("new rows", "large values") for name in TABLES[:2]]


# Data


@cache
def table(name: str) -> Any:
    """A table with its rows in random order."""
    if name == "synthetic":
        random = np.random.default_rng(11)
        X = random.standard_normal((250, 4)) @ random.standard_normal((4, 15))
        return np.geomspace(0.1, 1000, 15) * (X + random.uniform(0.2, 2, 15) * random.standard_normal(X.shape))
    problems = (*regression_problems(), *classification_problems())
    X = next(problem.X for problem in problems if problem.name == name)
    X = X[:, :10] if name == POPULATION else X  # means; the others are deviations and extremes of the same
    return np.random.default_rng(99).permutation(X)


def ratings(name: str) -> tuple[Any, Any, Any, tuple[int, int]]:
    found = synthetic_ratings(21, 300, 200, 6_000) if name == RATINGS[0] else movielens_100k()
    return found.rows, found.columns, found.values, found.shape


# One draw: for each coverage the share, the width, and counts by column or third.


def table_draw(setting: Setting, X: Any, seed: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    missing = random.random(X.shape) < probabilities(setting, X)
    missing[:, missing.all(axis=0)] = False
    known, judged = np.where(missing, np.nan, X), np.arange(X.shape[0])
    fitted = judged
    if setting.kind == "new rows":
        fitted, judged = np.array_split(random.permutation(X.shape[0]), 2)
    model = L12Imputer(random_state=seed).fit(known[fitted])
    X, known, missing = X[judged], known[judged], missing[judged]
    error = np.where(missing, model.transform(known) - X, np.nan)
    deviation = np.sqrt(np.nanmean(error**2, axis=0))
    found = []
    for coverage in COVERAGES:
        lower, upper = model.intervals(known, coverage=coverage)
        inside = (lower <= X) & (upper >= X)
        normal = (
            2 * scipy.stats.norm.ppf((1 + coverage) / 2) * np.maximum(deviation, 1e-12 * np.abs(X).max(axis=0))
        )
        shares = {"covered": inside[missing].mean(), "width": np.mean(((upper - lower) / normal)[missing])}
        groups = [(inside & missing).sum(axis=0).tolist(), missing.sum(axis=0).tolist()]
        found.append({"coverage": coverage, "groups": groups} | {k: float(v) for k, v in shares.items()})
    return found


def probabilities(setting: Setting, X: Any) -> Any:
    if setting.kind != "large values":
        return setting.missing
    ranks = scipy.stats.rankdata(X, axis=0) / X.shape[0]
    return 3 * setting.missing * ranks**2  # the mean of a square of what is even in (0, 1) is a third


def ratings_draw(setting: Setting, data: Any, seed: int, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    rows, columns, values, shape = data
    test = np.random.default_rng(seed).random(values.size) < setting.missing
    X = scipy.sparse.coo_array((values[~test], (rows[~test], columns[~test])), shape=shape)
    model = L12Imputer(random_state=seed, **chosen).fit(X)
    if not chosen:
        chosen |= {name: getattr(model, f"{name}_") for name in ("alpha", "l2_weight", "max_rank", "center")}
    at, value = (rows[test], columns[test]), values[test]
    deviation = np.sqrt(np.mean((model.predict(*at) - value) ** 2))
    counts = np.bincount(columns[~test], minlength=shape[1])[columns[test]]
    third = np.argsort(np.argsort(counts, kind="stable")) * 3 // counts.size
    found = []
    for coverage in COVERAGES:
        lower, upper = model.intervals(*at, coverage=coverage)
        inside = (lower <= value) & (value <= upper)
        normal = 2 * scipy.stats.norm.ppf((1 + coverage) / 2) * deviation
        groups = [np.bincount(third, inside).astype(int).tolist(), np.bincount(third).tolist()]
        shares = {"covered": inside.mean(), "width": np.mean(upper - lower) / normal}
        found.append({"coverage": coverage, "groups": groups} | {k: float(v) for k, v in shares.items()})
    return found


# Many draws


def chunk(part: str, setting: Setting, seeds: list[int]) -> list[list[dict[str, Any]]]:
    """Some draws of a setting, in a process of its own."""
    warnings.simplefilter("ignore")
    if part == "draws":
        return [sample(setting, seed) for seed in seeds]
    if part == "tables":
        X = table(setting.data)
        return [table_draw(setting, X, seed) for seed in seeds]
    data, chosen = ratings(setting.data), {}
    return [ratings_draw(setting, data, seed, chosen) for seed in seeds]


def gathered(setting: Setting, draws: list[list[dict[str, Any]]], part: str) -> Iterator[dict[str, Any]]:
    """One row for each coverage."""
    for k, coverage in enumerate(COVERAGES):
        found = [draw[k] for draw in draws]
        shares = [draw["covered"] for draw in found]
        inside, number = np.sum([draw["groups"] for draw in found], axis=0)
        row = {"part": part, "data": setting.data, "missing": setting.missing, "kind": setting.kind}
        row |= {"coverage": coverage, "draws": len(draws), "covered": float(np.mean(shares))}
        row |= {"least": min(shares), "most": max(shares), "width": float(np.mean([d["width"] for d in found]))}
        if part == "tables":
            enough = number >= 100
            row["worst column"] = float(np.min(inside[enough] / number[enough]))
        else:
            row["thirds"] = (inside / number).tolist()
        yield row


# Draws


def sample(setting: Setting, seed: int) -> list[dict[str, Any]]:
    """Whether 95 % intervals of a mean and of a coefficient hold the truth, for one sample of rows."""
    population, truths = truth(setting.data)
    random = np.random.default_rng(seed)
    X = population(random)
    known = np.where(random.random(X.shape) < setting.missing, np.nan, X)
    model = L12Imputer(random_state=seed).fit(known)
    tables = {
        "nothing missing": [X],
        "ten draws": model.draws(known, N_TABLES, random_state=seed),
        "one completed table": [model.transform(known)],
        "column means": [np.where(np.isnan(known), np.nanmean(known, axis=0), known)],
        "complete rows": [known[~np.isnan(known[:, :3]).any(axis=1)]],
    }
    found = []
    for method, completed in tables.items():
        for estimand, estimate in (("mean", mean), ("coefficient", coefficient)):
            centre, half = by_rubin([estimate(Y) for Y in completed], SAMPLE)
            error = centre - truths[estimand]
            facts = {"held": abs(error) <= half, "half": half, "error": error}
            found.append({"method": method, "estimand": estimand} | {k: float(v) for k, v in facts.items()})
    return found


def truth(name: str) -> tuple[Callable[[Any], Any], dict[str, float]]:
    """What draws a sample, and the mean and coefficient of all."""
    if name == "synthetic":
        random = np.random.default_rng(12)
        L = np.array([[1.0, 0.8, -0.6, 0.9, 0.5, -0.7], [0.3, -0.6, 0.7, 0.5, -0.8, 0.6]])
        noise = random.uniform(0.3, 0.8, 6)
        C = L.T @ L + np.diag(noise**2)
        slope = np.linalg.solve(C[1:3, 1:3], C[1:3, 0])[0]
        return (
            lambda r: r.standard_normal((SAMPLE, 2)) @ L + noise * r.standard_normal((SAMPLE, 6)),
            {"mean": 0.0, "coefficient": float(slope)},
        )
    X = table(name)[:, [0, 4, 7, 1, 2, 3, 5, 6, 8, 9]]  # radius, smoothness, concave points, the others
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return lambda r: X[r.integers(len(X), size=SAMPLE)], {k: f(X)[0] for k, f in ESTIMANDS.items()}


def mean(X: Any) -> tuple[float, float]:
    """The mean of the first column and its variance."""
    return float(X[:, 0].mean()), float(X[:, 0].var(ddof=1) / len(X))


def coefficient(X: Any) -> tuple[float, float]:
    """The first coefficient of the first column on the second and third, and its variance."""
    A = np.column_stack([np.ones(len(X)), X[:, 1:3]])
    b, *_ = np.linalg.lstsq(A, X[:, 0], rcond=None)
    residual = X[:, 0] - A @ b
    # Robust to unequal variances, which real columns have.
    G = np.linalg.inv(A.T @ A)
    meat = (A * (residual**2)[:, None]).T @ A * len(X) / (len(X) - 3)
    return float(b[1]), float((G @ meat @ G)[1, 1])


ESTIMANDS = {"mean": mean, "coefficient": coefficient}


def by_rubin(estimates: list[tuple[float, float]], n_rows: int) -> tuple[float, float]:
    """The centre and half the width of a 95 % interval."""
    centres, variances = np.array(estimates).T
    m, within = len(centres), variances.mean()
    between = (1 + 1 / m) * np.var(centres, ddof=1) if m > 1 else 0.0
    freedom = min((m - 1) * (1 + within / between) ** 2, n_rows - 3) if between > 0 else n_rows - 3
    return centres.mean(), scipy.stats.t.ppf(0.975, freedom) * math.sqrt(within + between)


def summed(setting: Setting, draws: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for k, first in enumerate(draws[0]):
        found = [draw[k] for draw in draws]
        row = {"part": "draws", "data": setting.data, "missing": setting.missing, "samples": len(draws)}
        row |= {key: first[key] for key in ("estimand", "method")}
        row |= {"covered": float(np.mean([f["held"] for f in found]))}
        row |= {"half width": float(np.mean([f["half"] for f in found]))}
        yield row | {"root mean square error": math.sqrt(np.mean([f["error"] ** 2 for f in found]))}


# Results


def run(part: str, n_draws: int, pool: ProcessPoolExecutor) -> list[dict[str, Any]]:
    made = settings(part) if part != "draws" else [Setting(name, 0.3) for name in ("synthetic", POPULATION)]
    seeds = list(range(2 * n_draws if part == "draws" else n_draws))
    size = 5 if part != "ratings" else 10
    most = {RATINGS[1]: min(n_draws, 20)}
    parts = [
        (setting, seeds[i : i + size])
        for setting in made
        for i in range(0, most.get(setting.data, len(seeds)), size)
    ]
    jobs = [(setting, pool.submit(chunk, part, setting, some)) for setting, some in parts]
    found: dict[Setting, list[Any]] = {setting: [] for setting in made}
    for setting, job in jobs:
        found[setting] += job.result()
    if part == "draws":
        return [row for setting, draws in found.items() for row in summed(setting, draws)]
    return [row for setting, draws in found.items() for row in gathered(setting, draws, part)]


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    titles = {"tables": "## Tables", "ratings": "## Ratings", "draws": "## Several imputations"}
    for part in PARTS:
        some = [row for row in rows if row["part"] == part]
        if some and part == "draws":
            yield f"{titles[part]}\n\n" + draws_table(some)
        elif some:
            yield f"{titles[part]}\n\n" + intervals_table(some, part)


def intervals_table(rows: list[dict[str, Any]], part: str) -> str:
    last = "worst column" if part == "tables" else "thirds"
    header = ["data, missing", "draws", "coverage asked", "covered", "range", "width", last]
    lines = []
    for row in rows:
        kind = "" if row["kind"] == "at random" else f", {row['kind']}"
        end = percent(row[last]) if part == "tables" else ", ".join(map(percent, row[last]))
        span = f"{percent(row['least'])} to {percent(row['most'])}"
        first = f"{row['data']}, {100 * row['missing']:.0f} %{kind}"
        shares = [percent(row["coverage"]), percent(row["covered"]), span]
        lines.append([first, str(row["draws"]), *shares, f"{row['width']:.2f}", end])
    return study.table(header, lines)


def draws_table(rows: list[dict[str, Any]]) -> str:
    header = ["data", "what", "method", "samples", "covered of 95", "half width", "root mean square error"]
    lines = [
        [row["data"], row["estimand"], row["method"], str(row["samples"]), percent(row["covered"])]
        + [f"{row[key]:.3g}" for key in ("half width", "root mean square error")]
        for row in rows
    ]
    return study.table(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="the others are kept as they are")
    arguments = parser.parse_args()
    file = study.RESULTS / "intervals.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for part in arguments.parts:
            rows = [row for row in rows if row["part"] != part] + run(part, arguments.draws, pool)
    rows.sort(key=lambda row: PARTS.index(row["part"]))
    study.write("intervals", __doc__, {"draws": arguments.draws}, rows, tables(rows))


if __name__ == "__main__":
    main()

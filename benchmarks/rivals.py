"""The paper's rivals and ours on real ratings, each with its parameters chosen on hidden ratings.

The hundred thousand ratings of MovieLens (943 users, 1,682 films). Half of them, at random, are known, and the
error is that on the other half; several such splits. A tenth of the known ones, at random, is hidden to choose
each method's strength, rank and other parameters; with what predicts them best it is fitted to all known ones, a
fit under a penalty beginning at the one chosen. Values are tried in order, strengths falling and each fit begun at
the last, until three in a row (ranks: five) bring nothing better, and so are several grids, one for each theta,
say, until two do. The last lines name each choice that lies at an end of its grid.

Every method sees the ratings as they are, and less the mean and the biases of users and films (shrunk as if each
had five more ratings of no bias). One rule for all: a user or a film without a known rating is predicted by the
mean and the bias of the other, and predictions are cut to 1 .. 5.

What is minimised: by AIS-Impute and "nuclear norm" the nuclear norm; by FaNCL and "log-sum" the sum of
alpha log(1 + sigma/theta), theta as published or chosen; by "l1-2" the nuclear norm less the Frobenius norm, or
less the share of it that is chosen. SketchyCGM bounds the nuclear norm; its radius and its steps are chosen.
ARSS-M3F, LMaFit and ER1MP bound the rank; it is chosen, and so is the number of steps, since stopping early is
what keeps them from fitting noise. ARSS-M3F is published for ordinal ratings, which have no biases to take off;
there its ridge is chosen too, and whether it predicts levels or numbers between them. "rank bounded" is by
alternating least squares, the others of ours by nmAPG on factors. AIS-Impute and FaNCL leave the choice to the
latter, which minimises the same in less time. L12Imputer() gets nothing but the known ratings.
cmfrec has biases of its own in place of those taken off; its rank, its strength and how that counts are chosen.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import study
from ell12.completion import Observed
from real_ratings import movielens_100k
from rivals_methods import METHODS, NATURAL, OTHERS, Chain, Method, Problem, cmfrec_grid, fit_cmfrec, fit_imputer
from rivals_tables import summary, tables
from timing import CLOCK, version_of

KNOWN, HIDDEN = 0.5, 0.1
FIRST_SEED = 100  # of the splits reported; grids and protocol were settled on splits of smaller seeds.
FRUITLESS = 2  # Of several grids in order, one for each theta, say, so many without gain in a row end the choice.
SHARED = (
    ("nuclear norm", "AIS-Impute", "l1-2", "l1-2, weight chosen"),
    ("log-sum, theta = sqrt(alpha)", "FaNCL, theta = sqrt(alpha)", "log-sum, theta chosen", "FaNCL, theta chosen"),
)
SUMMARY = Path(__file__).resolve().parents[1] / "paper/src/ell12_paper/ratings.json"


def split(seed: int, data: str | None) -> tuple[Observed, Observed, Observed, Observed]:
    """The known ratings, the others, and the known ones in two parts, the second hidden to choose by."""
    ratings = movielens_100k(data)
    every = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
    random = np.random.default_rng(seed)
    is_known = random.permutation(every.n_observed) < KNOWN * every.n_observed
    known = every.select(is_known)
    is_hidden = random.permutation(known.n_observed) < HIDDEN * known.n_observed
    return known, every.select(~is_known), known.select(~is_hidden), known.select(is_hidden)


def errors(problem: Problem, predicted: Any, at: Observed) -> tuple[float, float]:
    """Root mean square and mean absolute error."""
    difference = problem.finish(predicted, at.rows, at.columns) - at.values
    return float(np.sqrt(np.mean(difference**2))), float(np.mean(np.abs(difference)))


def choose(
    chains: list[Chain], problem: Problem, hidden: Observed, followed: dict[str, Any]
) -> tuple[dict[str, Any], Chain, Any]:
    """What predicts the hidden ratings best, its chain, and the matrix found there.

    A chain that is in ``followed`` is not followed again, but its time counts again.
    """
    best: dict[str, Any] = {"error": np.inf}
    where, state, fruitless, seconds = chains[0], None, 0, 0.0
    for chain in chains:
        if chain.key not in followed:
            followed[chain.key] = follow(chain, problem, hidden)
        found, x, taken = followed[chain.key]
        seconds += taken
        fruitless = 0 if found["error"] < best["error"] else fruitless + 1
        if fruitless == 0:
            best, where, state = found, chain, x
        if fruitless == FRUITLESS and "ridge" not in chain.label:
            break
    return best | {"seconds": seconds}, where, state


def follow(chain: Chain, problem: Problem, hidden: Observed) -> tuple[dict[str, Any], Any, float]:
    """The best along one chain, the matrix found there, and the time."""
    begin, best, state = CLOCK(), {"error": np.inf}, None
    values = list(chain.values(problem))
    x, fruitless = None, 0
    for place, value in enumerate(values):
        found, x = _judged(chain, problem, hidden, value, x)
        fruitless = 0 if found["error"] < best["error"] else fruitless + 1
        if fruitless == 0:
            best, state = found | {"first": place == 0, "last": 0 < place == len(values) - 1}, x
        if fruitless == chain.patience:
            break
    return best, state, CLOCK() - begin


def _judged(chain: Chain, problem: Problem, hidden: Observed, value: float, x0: Any) -> tuple[dict[str, Any], Any]:
    """The error at one value of the parameter, by the best predictor at the best number of steps."""

    def judge(name: str) -> Callable[[Any], float]:
        predict = getattr(problem, name)
        return lambda x: errors(problem, predict(x, hidden.rows, hidden.columns), hidden)[0]

    judges = {name: judge(name) for name in chain.predictors}
    result = chain.run(problem, value, x0, last=False, measure=judges if chain.steps else None)
    if not chain.steps:
        return {"value": value, "steps": None, "predictor": "real", "error": judges["real"](result.x)}, result.x
    name = min(judges, key=lambda name: min(result.history[name]))
    column = result.history[name]
    steps = int(np.argmin(column))
    found = {"value": value, "steps": steps, "predictor": name, "error": column[steps]}
    return found | {"cut": steps == chain.steps}, None


def measure(names: tuple[str, ...], center: str | None, seed: int, data: str | None) -> list[dict[str, Any]]:
    """Some methods on one split: the choice, the last fit, the errors."""
    known, test, part, hidden = split(seed, data)
    whole, rows, followed = Problem(known, center), [], {}
    for name in names:
        row = {"method": name, "center": center, "seed": seed, "processor": _processor()}
        begin = CLOCK()
        fitted = _fit(METHODS[name], whole, Problem(part, center), hidden, followed)
        if isinstance(fitted, str):
            rows.append(row | {"note": fitted})
            continue
        predict, found = fitted
        times = {"seconds": CLOCK() - begin, "all_seconds": CLOCK() - begin} | found
        rmse, mae = errors(whole, predict(test.rows, test.columns), test)
        rows.append(row | {"RMSE": rmse, "MAE": mae} | times)
    return rows


def _fit(method: Method, whole: Problem, part: Problem, hidden: Observed, followed: dict[str, Any]) -> Any:
    """A function that predicts, with what was chosen; or the reason why there is none."""
    if method.name == "L12Imputer()":
        predict, chosen, rank = fit_imputer(whole)
        return predict, {"chosen": chosen, "rank": rank, "edges": []}
    if method.name == "cmfrec":
        return _tuned_cmfrec(whole, part, hidden)
    if method.group == OTHERS:
        return whole.offsets.entries, {"chosen": {}, "rank": 0, "edges": []}
    chains = method.chains()
    best, chain, x0 = choose(chains, part, hidden, followed)
    begin = CLOCK()
    steps = {} if best["steps"] is None else {"max_iter": best["steps"]}
    result = chain.run(whole, best["value"], x0, last=True, **steps)
    seconds = CLOCK() - begin
    chosen = chain.label | {chain.parameter: best["value"]}
    chosen |= {} if best["steps"] is None else {"steps": best["steps"]}
    chosen |= {} if len(chain.predictors) == 1 else {"predictor": best["predictor"]}
    predictor = getattr(whole, best["predictor"])
    found = {
        "chosen": chosen,
        "hidden_RMSE": best["error"],
        "rank": result.x.rank,
        "status": result.status.name,
        "edges": _edges(best, chain, chains, result.x.rank),
        "seconds": seconds,
        "all_seconds": best["seconds"] + seconds,
    }
    return lambda rows, columns: predictor(result.x, rows, columns), found


def _edges(best: dict[str, Any], chain: Chain, chains: list[Chain], rank: int) -> list[str]:
    """The parameters whose choice lies at an end of its grid beyond which there might be something better."""
    found = []
    # The first strength is where the solution is zero, or of rank one; the first rank is one.
    if best["last"] or (best["first"] and chain.parameter == "radius"):
        found.append(chain.parameter)
    found += ["steps"] if best.get("cut") and chain.parameter != "rank" else []
    for key, value in chain.label.items():
        values = {other.label[key] for other in chains}
        is_end = not isinstance(value, str) and value in (min(values), max(values)) and (key, value) not in NATURAL
        if is_end and not (key == "bound" and rank < value):  # which does not bind
            found.append(key)
    return found


def _tuned_cmfrec(whole: Problem, part: Problem, hidden: Observed) -> Any:
    best, chosen, begin = np.inf, None, CLOCK()
    for settings in cmfrec_grid():
        predict = fit_cmfrec(part, settings)
        if isinstance(predict, str):
            return predict
        error = errors(part, predict(hidden.rows, hidden.columns), hidden)[0]
        if error < best:
            best, chosen = error, settings
    choice, begin = CLOCK() - begin, CLOCK()
    predict = fit_cmfrec(whole, chosen)
    seconds = CLOCK() - begin
    grid = [s for s in cmfrec_grid() if s["scale_lam"] == chosen["scale_lam"]]
    edges = [k for k in ("k", "lambda_") if chosen[k] in (min(s[k] for s in grid), max(s[k] for s in grid))]
    edges = [k for k in edges if (k, chosen[k]) != ("k", 1)]
    return predict, {
        "chosen": chosen, "hidden_RMSE": best, "rank": chosen["k"], "edges": edges,
        "seconds": seconds, "all_seconds": choice + seconds,
    }  # fmt: skip


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS), metavar="NAME")
    parser.add_argument("--data", help="a copy of recbole's file ml-100k.inter, where recbole is not installed")
    parser.add_argument("--keep", action="store_true", help="keep the stored rows of the other methods")
    options = parser.parse_args()
    jobs = [
        delayed(measure)(names, center, seed, options.data)
        for seed in range(FIRST_SEED, FIRST_SEED + options.splits)
        for names, center in families(options.methods)
    ]
    rows = _stored(options.methods) if options.keep else []
    for found in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(jobs):
        for row in found:
            print(json.dumps(row), flush=True)
        rows += found
    store(rows, options.splits)


def families(methods: list[str]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """Methods that follow the same chains stay in one process; what is taken off first."""
    shared = [[name for name in family if name in methods] for family in SHARED]
    alone = [[name] for name in methods if not any(name in family for family in SHARED)]
    for names in filter(None, [*shared, *alone]):
        for center in METHODS[names[0]].centers:
            yield tuple(names), center


def store(rows: list[dict[str, Any]], splits: int) -> None:
    """Write the results, and the summary that the study of completion reads."""
    order = list(METHODS)
    rows.sort(key=lambda row: (order.index(row["method"]), str(row["center"]), row["seed"]))
    settings = {"splits": splits, "known": KNOWN, "hidden": HIDDEN}
    study.write("rivals", __doc__, settings | {"cmfrec": version_of("cmfrec")}, rows, tables(rows))
    command = " ".join(["python benchmarks/rivals.py", *sys.argv[1:]])
    text = json.dumps(summary(rows, command), indent=1) + "\n"
    study.replace(SUMMARY, text)


def _stored(methods: list[str]) -> list[dict[str, Any]]:
    path = study.RESULTS / "rivals.json"
    stored = json.loads(path.read_text())["rows"] if path.exists() else []
    return [row for row in stored if row["method"] not in methods]


if __name__ == "__main__":
    main()

"""Stability selection: false selections against the bound that is promised, and how many true features are found.

`StabilitySelection` with its plain settings (100 halves) and three weights of the subtracted norm: l2_weight 1 and
0.5 are l1-2, 0 is the Lasso with the same procedure. Data: 200 samples, 500 Gaussian features, 10 of them with
coefficients of one size and random signs, at random places. The noise is normal, or Student's t with 3 degrees of
freedom and the same variance. Features are independent, or neighbours correlate by 0.5 or by 0.9 (Toeplitz). All
methods see the same draws and the same halves.

"False" counts selected features without a coefficient; "far" counts those of them whose correlation with every
true feature is below 0.5. The promise is on features that a half selects no sooner than by chance. A neighbour of
a true feature is selected sooner, so that "false" may exceed the bound where features correlate: see the notes of
`StabilitySelection`. "Power" is the share of the true features that are selected. Numbers are means over the draws
and their standard errors.

A verdict compares the power with the Lasso's, draw by draw: by a sign test of the draws in which they differ,
two-sided, at the level 0.05 for all comparisons of the table together (Holm's correction). Where the test does not
decide, or the mean difference has the other sign, it is "not decidable". The settings (threshold, number of
strengths, size of the coefficients) were chosen on other draws, which `--tune` shows.

The draws were made in several runs (`--resume` adds to them), on two machines; the same seed is the same draw.

"scikit-learn" is a plain loop over the same halves with scikit-learn's `lasso_path` on the same strengths: an
independent check of the Lasso's rows.

Times are of one core: 100 halves against one full path (100 strengths down to 1e-3, the same options), medians of
processor time of several runs that take turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from joblib import Parallel, delayed
from sklearn.linear_model import lasso_path

import study
from ell12 import L12, L12Classifier, L12Regressor, StabilitySelection
from ell12.path import alpha_grid
from ell12.selection.confidence import adjusted_p_values
from ell12.selection.half_samples import PathSelector, complementary_pairs
from ell12.selection.stability import settle

N, P, TRUE = 200, 500, 10
DESIGNS = {"independent": 0.0, "Toeplitz 0.5": 0.5, "Toeplitz 0.9": 0.9}
NOISES = ("normal", "t(3)")
METHODS = {"l1-2": 1.0, "l1-2 at 0.5": 0.5, "Lasso": 0.0}
CHECK = "scikit-learn"
# The coefficients, in units of the noise's deviation: at this size neither all true features are found nor none.
SIZE = 0.5
# Draws that choose have these seeds and above; those reported on begin at 0.
TUNING = 10**6
THRESHOLDS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
KEYS = ("design", "noise", "seed", "method")
TIMES = {
    "1000 x 200": (1000, 200),
    "200 x 1000": (200, 1000),
    "500 x 5000": (500, 5000),
    "400 x 300, logistic": (400, 300),
}


def draw(design: str, noise: str, seed: int) -> tuple[Any, Any, Any]:
    """Features, targets, and the true coefficients."""
    random = np.random.default_rng([seed, list(DESIGNS).index(design), NOISES.index(noise)])
    rho = DESIGNS[design]
    X = random.standard_normal((N, P))
    for j in range(1, P):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    coef = np.zeros(P)
    coef[random.choice(P, TRUE, replace=False)] = SIZE * random.choice([-1.0, 1.0], TRUE)
    errors = random.standard_normal(N) if noise == "normal" else random.standard_t(3, N) / np.sqrt(3)
    return X, X @ coef + errors, coef


def row(design: str, noise: str, seed: int, method: str) -> dict[str, Any]:
    """One selection on one draw."""
    X, y, coef = draw(design, noise, seed)
    model = L12Regressor(penalty=L12(l2_weight=METHODS.get(method, 0.0)))
    start = time.process_time()
    found = StabilitySelection(model, random_state=seed).fit(X, y)
    seconds = time.process_time() - start
    chosen = found.get_support() if method != CHECK else _by_hand(X, y, found, seed)
    near = _near(design, coef)
    false = chosen & (coef == 0)
    return {
        "design": design,
        "noise": noise,
        "seed": seed,
        "method": method,
        "false": int(false.sum()),
        "far": int((false & ~near).sum()),
        "found": int((chosen & (coef != 0)).sum()),
        "bound": found.bound_,
        "most_selected": found.most_selected_,
        "threshold": found.threshold_,
        "seconds": round(seconds, 3),
    }


def _near(design: str, coef: Any) -> Any:
    """Which features correlate with a true one by at least 0.5."""
    return (DESIGNS[design] ** np.abs(np.arange(P)[:, None] - np.flatnonzero(coef))).max(axis=1) >= 0.5


def _by_hand(X: Any, y: Any, found: StabilitySelection, seed: int) -> Any:
    """What is selected by a loop over the halves with scikit-learn's path."""
    counts, n_pairs = np.zeros(P), found.n_subsamples // 2
    for pair in complementary_pairs(n_pairs, np.arange(N), None, np.random.RandomState(seed)):
        for rows in pair:
            A, b = X[rows] - X[rows].mean(axis=0), y[rows] - y[rows].mean()
            chosen: list[int] = []
            for last in (8, 12, 16, 20, found.alphas_.size):  # as far as is needed
                coefs = lasso_path(A, b, alphas=found.alphas_[:last], tol=1e-6, max_iter=10_000)[1]
                if np.count_nonzero(coefs[:, -1]) > found.most_selected_:
                    break
            for column in coefs.T:
                new = [int(j) for j in np.argsort(-np.abs(column)) if column[j] != 0 and j not in chosen]
                chosen += new
                if len(chosen) >= found.most_selected_:
                    break
            counts[chosen[: found.most_selected_]] += 1
    return counts / (2 * n_pairs) >= found.threshold_ - 1e-9


def collect(
    tasks: list[tuple[Any, ...]], jobs: int, kept: Path | None, seconds: float, known: list[Any]
) -> list[Any]:
    """The rows of tasks, those on file not again; each is kept as soon as it is there."""
    rows: list[dict[str, Any]] = list(known)
    if kept is not None and kept.exists():
        rows += [json.loads(line) for line in kept.read_text().splitlines()]
    done = {tuple(found[key] for key in KEYS) for found in rows}
    left, end = [task for task in tasks if task not in done], time.monotonic() + seconds
    part = 8 * max(jobs, 1)
    with Parallel(n_jobs=jobs) as parallel:
        for first in range(0, len(left), part):
            if time.monotonic() > end:
                break
            found = parallel(delayed(row)(*task) for task in left[first : first + part])
            rows += found
            if kept is not None:
                with kept.open("a") as file:
                    file.writelines(json.dumps(one) + "\n" for one in found)
            print(f"{min(first + part, len(left))} of {len(left)}", flush=True)
    return rows


def tasks_of(draws: int, checked: int) -> list[tuple[Any, ...]]:
    """Draw by draw, so that a run that ends early has as many of each setting."""
    return [
        (design, noise, seed, method)
        for seed in range(draws)
        for design in DESIGNS
        for noise in NOISES
        for method in (*METHODS, *([CHECK] if seed < checked else []))
    ]


# Tables


def tables(rows: list[dict[str, Any]], times: list[dict[str, Any]]) -> Iterator[str]:
    """Selections, verdicts, the check by scikit-learn, times."""
    bound = rows[0]["bound"]
    settings = f"q = {rows[0]['most_selected']}, threshold {rows[0]['threshold']:g}"
    yield f"## Selections: at most {bound:.3g} false ones are promised ({settings})"
    groups = [(design, noise) for design in DESIGNS for noise in NOISES]
    lines = [_line(rows, design, noise, method) for design, noise in groups for method in METHODS]
    yield study.table(
        ["design, noise", "method", "draws", "false", "far", "false within the bound", "power"], lines
    )
    yield "## Power against the Lasso with the same procedure"
    verdicts = _verdicts(rows, groups)
    header = ["design, noise", "method", "difference", "more, fewer, as many", "p (Holm)", "verdict"]
    yield study.table(header, verdicts)
    yield _in_words(rows, verdicts)
    checks = [found for found in rows if found["method"] == CHECK]
    if checks:
        yield _check(rows, checks)
    if times:
        yield "## Time of 100 halves, in full paths"
        yield study.table(
            ["data", "l2_weight", "q", "full path", "100 halves", "in full paths"], map(_time_line, times)
        )


def _of(rows: list[dict[str, Any]], design: str, noise: str, method: str) -> dict[int, dict[str, Any]]:
    own = (
        found for found in rows if (found["design"], found["noise"], found["method"]) == (design, noise, method)
    )
    return {found["seed"]: found for found in own}


def _mean(values: Any) -> tuple[float, float]:
    """The mean, and its standard error."""
    values = np.asarray(values, dtype=float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def _line(rows: list[dict[str, Any]], design: str, noise: str, method: str) -> list[str]:
    own = list(_of(rows, design, noise, method).values())
    false, far, power = (_mean([found[key] for found in own]) for key in ("false", "far", "found"))
    bound = own[0]["bound"]
    low, high = false[0] - 2 * false[1], false[0] + 2 * false[1]
    words = "yes" if high <= bound else "no" if low > bound else "not decidable"
    cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in (false, far)]
    return [
        f"{design}, {noise}",
        method,
        str(len(own)),
        *cells,
        words,
        f"{power[0] / TRUE:.3f} ± {power[1] / TRUE:.3f}",
    ]


def _verdicts(rows: list[dict[str, Any]], groups: list[Any]) -> list[list[str]]:
    found = []
    for design, noise in groups:
        lasso = _of(rows, design, noise, "Lasso")
        for method in list(METHODS)[:2]:
            own = _of(rows, design, noise, method)
            gaps = np.array(
                [own[seed]["found"] - lasso[seed]["found"] for seed in sorted(own.keys() & lasso.keys())]
            )
            counts = [int((gaps > 0).sum()), int((gaps < 0).sum()), int((gaps == 0).sum())]
            differ = counts[0] + counts[1]
            p = scipy.stats.binomtest(counts[0], differ).pvalue if differ else 1.0
            found.append((f"{design}, {noise}", method, _mean(gaps / TRUE), counts, p))
    adjusted = adjusted_p_values([line[-1] for line in found])
    lines = []
    for (name, method, (mean, error), counts, _), p in zip(found, adjusted, strict=True):
        sides = {np.sign(mean), np.sign(counts[0] - counts[1])}
        sure = p <= 0.05 and len(sides) == 1
        verdict = ("more power" if mean > 0 else "less power") if sure else "not decidable"
        lines.append(
            [name, method, f"{mean:+.4f} ± {error:.4f}", ", ".join(map(str, counts)), f"{p:.2g}", verdict]
        )
    return lines


def _in_words(rows: list[dict[str, Any]], verdicts: list[list[str]]) -> str:
    """Where l1-2 gains power and where it does not, with the false selections there."""
    parts = []
    for verdict in ("more power", "less power", "not decidable"):
        names = [f"{line[1]} ({line[0]})" for line in verdicts if line[-1] == verdict]
        parts.append(f"{verdict.capitalize()} than the Lasso: {'; '.join(names) or 'nowhere'}.")
    counts = []
    for name in dict.fromkeys(line[0] for line in verdicts if line[-1] != "more power"):
        design, _, noise = name.rpartition(", ")
        means = [f"{_mean([r['false'] for r in _of(rows, design, noise, m).values()])[0]:.2f}" for m in METHODS]
        counts.append(f"{', '.join(means)} ({name})")
    if counts:
        parts.append(
            f"Where it is not more, the false selections are, for {', '.join(METHODS)}: {'; '.join(counts)}."
        )
    return " ".join(parts).replace("Not decidable than the Lasso", "Not decidable")


def _check(rows: list[dict[str, Any]], checks: list[dict[str, Any]]) -> str:
    same = 0
    for one in checks:
        ours = _of(rows, one["design"], one["noise"], "Lasso")[one["seed"]]
        same += (one["false"], one["found"]) == (ours["false"], ours["found"])
    return (
        f"Of {len(checks)} draws a plain loop with scikit-learn's `lasso_path` selected as many false and true"
        f" features as `StabilitySelection(L12Regressor(l2_weight=0))` in {same}."
    )


# Times


def measure(name: str, l2_weight: float, repetitions: int) -> dict[str, Any]:
    """The processor time of one full path, and of 100 halves; in turns."""
    n, p = TIMES[name]
    random = np.random.default_rng(0)
    X = random.standard_normal((n, p))
    y = X[:, :10].sum(axis=1) + 2 * random.standard_normal(n)
    model: Any = L12Regressor(penalty=L12(l2_weight=l2_weight))
    if "logistic" in name:
        model, y = L12Classifier(penalty=L12(l2_weight=l2_weight)), y > 0
    times: dict[str, list[float]] = {"path": [], "halves": []}
    for seed in range(-1, repetitions):
        start = time.process_time()
        checked, targets, _ = model._observed(X, y, None)
        problems = model._problems(checked, targets, None)
        model._solve(problems[0], alpha_grid(model._alpha_max(problems), 100, 1e-3))
        between = time.process_time()
        found = StabilitySelection(model, random_state=abs(seed)).fit(X, y)
        if seed >= 0:  # the first turn loads what is compiled
            times["path"].append(between - start)
            times["halves"].append(time.process_time() - between)
    medians = {key: float(np.median(values)) for key, values in times.items()}
    return {"data": name, "l2_weight": l2_weight, "most_selected": found.most_selected_, **medians}


def _time_line(found: dict[str, Any]) -> list[str]:
    path, halves = found["path"], found["halves"]
    seconds = (f"{1000 * path:.0f} ms", f"{halves:.2f} s")
    return [
        found["data"],
        f"{found['l2_weight']:g}",
        str(found["most_selected"]),
        *seconds,
        f"{halves / path:.1f}",
    ]


# What was chosen


def tune(draws: int, jobs: int) -> None:
    """Power and far false selections of thresholds, sizes and lengths of the path, on draws of their own."""
    cases = [(d, n, TUNING + seed, m) for seed in range(draws) for d in DESIGNS for n in NOISES for m in METHODS]
    for n_alphas in (100, 50, 25):
        lines = Parallel(n_jobs=jobs)(delayed(_thresholds)(*case, n_alphas) for case in cases)
        for method in METHODS:
            for k, threshold in enumerate(THRESHOLDS):
                own = [line[k] for line, case in zip(lines, cases, strict=True) if case[-1] == method]
                (found, found_error), (far, far_error) = (_mean(values) for values in zip(*own, strict=True))
                words = f"found {found:.2f} ± {found_error:.2f}, far {far:.3f} ± {far_error:.3f}"
                print(f"{n_alphas} strengths, {method}, threshold {threshold}: {words}", flush=True)


def _thresholds(design: str, noise: str, seed: int, method: str, n_alphas: int) -> list[tuple[int, int]]:
    """The true and the far false selections at each threshold, at the same promise, from one set of paths."""
    X, y, coef = draw(design, noise, seed)
    selector = PathSelector(L12Regressor(penalty=L12(l2_weight=METHODS[method])), n_alphas, 1e-3)
    selector.take(X, y, None)
    settings = [settle(P, 100, threshold=threshold, expected_false=1.0) for threshold in THRESHOLDS]
    most = max(one.most_selected for one in settings)
    pairs = complementary_pairs(50, np.arange(N), None, np.random.RandomState(0))
    halves = [selector.select(rows, most, 0).chosen for pair in pairs for rows in pair]
    near, counts = _near(design, coef), []
    for one in settings:
        times = np.bincount(np.concatenate([half[: one.most_selected] for half in halves]), minlength=P)
        chosen = times / 100 >= one.threshold - 1e-9
        counts.append((int((chosen & (coef != 0)).sum()), int((chosen & (coef == 0) & ~near).sum())))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--checked", type=int, default=10, help="draws that scikit-learn's path checks")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on from results/stability.json, times kept")
    parser.add_argument("--rows", type=Path, help="a file that keeps the rows, from which a run goes on")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no further draws after this time")
    parser.add_argument("--repetitions", type=int, default=5, help="of the times; 0 leaves them out")
    parser.add_argument("--tune", action="store_true", help="show what was chosen, on draws of their own")
    options = parser.parse_args()
    if options.tune:
        tune(options.draws, options.jobs)
        return
    known: dict[str, Any] = {"rows": [], "settings": {"times": []}}
    if options.resume:
        known = json.loads((study.RESULTS / "stability.json").read_text())
    times = known["settings"]["times"] or [
        measure(name, weight, options.repetitions)
        for name in TIMES
        for weight in ((0.5,) if "logistic" in name else METHODS.values())
        if options.repetitions
    ]
    tasks = tasks_of(options.draws, options.checked)
    rows = collect(tasks, options.jobs, options.rows, options.seconds, known["rows"])
    complete = _complete(rows)
    settings = {"draws": len({found["seed"] for found in complete}), "checked": options.checked, "times": times}
    study.write("stability", __doc__, settings, complete, tables(complete, times))


def _complete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the draws that all methods and designs have seen."""
    wanted = len(DESIGNS) * len(NOISES) * len(METHODS)
    counts: dict[int, int] = {}
    for found in rows:
        counts[found["seed"]] = counts.get(found["seed"], 0) + (found["method"] != CHECK)
    order = {key: k for k, key in enumerate((*DESIGNS, *NOISES, *METHODS, CHECK))}
    kept = [found for found in rows if counts[found["seed"]] == wanted]
    return sorted(
        kept, key=lambda found: (found["seed"], *(order[found[key]] for key in ("design", "noise", "method")))
    )


if __name__ == "__main__":
    main()

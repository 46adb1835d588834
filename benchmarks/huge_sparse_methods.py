"""One measurement of benchmarks/huge_sparse.py in a process of its own: `child(task)` makes a dictionary.

The data are read from the files that the parent wrote, so that the peak of this process's memory is that of the
data and the fit. Settings of a method follow each other in one process, from rough to accurate.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import ell12.losses.of_prediction
from ell12 import L12, L12Classifier, L12Regressor
from ell12.operators import select_columns
from ell12.operators.centering import by_rows
from ell12.operators.gram import weighted_gram
from timing import load

WARM = 1e-4  # the accuracy of a first run that is not timed; rougher ones compiled only a part of skglm
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
Fit = Callable[[float], tuple[Any, float]]  # from an accuracy to coefficients and an intercept


def read(folder: str, form: str, narrow: bool = False) -> tuple[Any, np.ndarray, np.ndarray]:
    """The matrix and both targets; with ``narrow``, for those who take no others, indices of 32 bits."""
    parts = [np.load(Path(folder) / f"{name}.npy") for name in ("data", "indices", "indptr")]
    y, labels = (np.load(Path(folder) / f"{name}.npy") for name in ("y", "labels"))
    if narrow:
        parts[1:] = [part.astype(np.int32) for part in parts[1:]]
    X = scipy.sparse.csc_array(tuple(parts), shape=(y.size, parts[2].size - 1))
    del parts
    X = X.tocsr() if form == "csr" else X
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is counted
    return X, y, labels


def memory(kind: str) -> int:
    """The memory that this process has (VmRSS), or the most that it has had (VmHWM), in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(kind))


def largest_strength(X: Any, y: np.ndarray, loss: str, intercept: bool) -> float:
    """From which on all coefficients are zero, where nothing is subtracted."""
    target = y if loss == "squared" else (y > 0) - 0.5
    return float(np.abs(X.T @ (target - target.mean() if intercept else target)).max() / y.size)


def count_looks(columns: int) -> dict[str, int]:
    """Count, from now on, the products of losses with all columns: of the adjoint, which are looks, and of A."""
    counts, product = {"looks": 0, "forward": 0}, ell12.losses.of_prediction.product

    def counting(A: Any, x: Any) -> Any:
        result = product(A, x)
        counts["looks"] += result.shape[0] in (columns, columns + 1)
        counts["forward"] += x.shape[0] in (columns, columns + 1)
        return result

    ell12.losses.of_prediction.product = counting
    return counts


def fit(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A fit of ours to the tolerance of the study."""
    X, y, labels = read(task["folder"], task["form"])
    b = y if task["loss"] == "squared" else labels
    alpha = task["strength"] * largest_strength(X, b, task["loss"], intercept=True)
    before = memory("VmRSS")
    counts, begin, cpu = count_looks(X.shape[1]), time.perf_counter(), time.process_time()
    kind = L12Regressor if task["loss"] == "squared" else L12Classifier
    model = kind(penalty=L12(alpha, task["l2_weight"]), tol=task["tol"]).fit(X, b)
    result = model.results_[0]
    yield {
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "peak_bytes": memory("VmHWM"),
        "before_bytes": before,
        **counts,
        "features": int(np.count_nonzero(result.x[: X.shape[1]])),
        "objective": float(result.objective),
        "stationarity": float(result.stationarity),
        "status": result.status.name,
    }


def side_by_side(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One method on the l1 problem at growing accuracies: time and objective of each."""
    X, y, labels = read(
        task["folder"], "csr" if task["method"].endswith("saga") else "csc", task["method"] != "ell12"
    )
    b, intercept = (y, True) if task["loss"] == "squared" else (labels, False)
    alpha = task["strength"] * largest_strength(X, b, task["loss"], intercept)
    make, why = METHODS[task["loss"], task["method"]](alpha, b.size)
    if make is None:
        yield {"note": why}
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rough settings are rough
        for accuracy in ACCURACIES:
            try:
                if accuracy == ACCURACIES[0]:
                    make(WARM)(X, b)  # loads and compiles what is loaded and compiled once
                begin, cpu = time.perf_counter(), time.process_time()
                model = make(accuracy)(X, b)
            except Exception as error:  # a peer may fail in any way; the table says how
                yield {"note": f"{type(error).__name__}: {error}"[:200]}
                return
            seconds, used = time.perf_counter() - begin, time.process_time() - cpu
            row = {"accuracy": accuracy, "seconds": seconds, "cpu_seconds": used, "peak_bytes": memory("VmHWM")}
            coef, level = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0] if intercept else 0.0)
            row["objective"] = l1_objective(X, b, task["loss"], coef, level, alpha)
            yield row | {"features": int(np.count_nonzero(coef))}


def l1_objective(X: Any, b: np.ndarray, loss: str, coef: np.ndarray, level: float, alpha: float) -> float:
    prediction = X @ coef + level
    each = 0.5 * (b - prediction) ** 2 if loss == "squared" else np.logaddexp(0, -b * prediction)
    return float(each.mean() + alpha * np.abs(coef).sum())


def _ours(kind: Any) -> Any:
    def make(alpha: float, _rows: int) -> tuple[Any, str]:
        intercept = kind is L12Regressor
        options = {"alpha": alpha, "l2_weight": 0.0, "fit_intercept": intercept}
        return lambda tol: kind(**options, tol=tol).fit, ""

    return make


def _lasso(module: str) -> Any:
    def make(alpha: float, _rows: int) -> tuple[Any, str]:
        package, why = load(module)
        if package is None:
            return None, why
        options = {"max_iter": 100_000} if module == "sklearn.linear_model" else {}
        return lambda tol: package.Lasso(alpha=alpha, tol=tol, **options).fit, ""

    return make


def _sklearn_logistic(solver: str) -> Any:
    def make(alpha: float, rows: int) -> tuple[Any, str]:
        from sklearn.linear_model import LogisticRegression

        options = {"C": 1 / (alpha * rows), "l1_ratio": 1.0, "fit_intercept": False, "max_iter": 2000}
        return lambda tol: LogisticRegression(solver=solver, tol=tol, random_state=0, **options).fit, ""

    return make


def _celer_logistic(alpha: float, rows: int) -> tuple[Any, str]:
    package, why = load("celer")
    if package is None:
        return None, why
    return lambda tol: package.LogisticRegression(C=1 / (alpha * rows), tol=tol).fit, ""


def _skglm_logistic(alpha: float, _rows: int) -> tuple[Any, str]:
    package, why = load("skglm")
    if package is None:
        return None, why
    return lambda tol: package.SparseLogisticRegression(alpha=alpha, tol=tol, fit_intercept=False).fit, ""


METHODS = {
    ("squared", "ell12"): _ours(L12Regressor),
    ("squared", "scikit-learn"): _lasso("sklearn.linear_model"),
    ("squared", "celer"): _lasso("celer"),
    ("squared", "skglm"): _lasso("skglm"),
    ("logistic", "ell12"): _ours(L12Classifier),
    ("logistic", "scikit-learn, liblinear"): _sklearn_logistic("liblinear"),
    ("logistic", "scikit-learn, saga"): _sklearn_logistic("saga"),
    ("logistic", "celer"): _celer_logistic,
    ("logistic", "skglm"): _skglm_logistic,
}


def passes(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the parts of a fit cost for each entry, or each pair of entries that meet in a row, in seconds."""
    X, y, _ = read(task["folder"], task["form"])
    frequent = np.argsort(
        -np.bincount(X.indices, minlength=X.shape[1]) if task["form"] == "csr" else -np.diff(X.indptr)
    )
    random = np.random.default_rng(0)
    some = np.sort(
        np.concatenate([frequent[:100], random.choice(frequent[100 : X.shape[1] // 2], 900, replace=False)])
    )
    coef = np.zeros(X.shape[1])
    coef[some] = 1.0

    def timed(call: Callable[[], Any]) -> tuple[float, Any]:
        begin = time.process_time()
        result = call()
        return time.process_time() - begin, result

    look = min(timed(lambda: X.T @ y)[0] for _ in range(3))
    forward = min(timed(lambda: X @ coef)[0] for _ in range(3))
    gather, block = timed(lambda: select_columns(X, some))
    turn, rows = timed(lambda: by_rows(block))
    weight = random.random(X.shape[0])
    weighted_gram(rows, weight)  # loads the compiled loop
    gram, _ = timed(lambda: weighted_gram(rows, weight))
    met = float((np.bincount(rows.tocoo().row, minlength=X.shape[0]).astype(float) ** 2).sum())
    yield {
        "look": look / X.nnz,
        "forward": forward / X.nnz,
        "gather": gather / block.nnz,
        "gather_of_all": gather / X.nnz,
        "by_rows": turn / block.nnz,
        "gram": gram / met,
        "block_entries": int(block.nnz),
        "met": met,
    }


KINDS = {"fit": fit, "side by side": side_by_side, "passes": passes}

"""How much memory a fit to sparse, text-like data takes.

For each estimator the most that the fit held beside the data at one time (as tracemalloc counts what NumPy and
SciPy allocate), and both together as a multiple of the data. Target: less than 3 times the data, at any alpha. The
time is that of the fit while its memory is traced.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np
import scipy.sparse

import study
from ell12 import L1, L12Classifier, L12Regressor

MODELS = {
    "L12Regressor, alpha=2e-4": L12Regressor(alpha=2e-4),
    "L12Regressor, alpha=1e-5": L12Regressor(alpha=1e-5),
    "L12Regressor, alpha=5e-6": L12Regressor(alpha=5e-6),
    "L12Regressor, alpha=2e-6": L12Regressor(alpha=2e-6),
    "L12Regressor, l2_weight=0, alpha=2e-4": L12Regressor(alpha=2e-4, penalty=L1()),
    "L12Regressor, l2_weight=0, alpha=5e-6": L12Regressor(alpha=5e-6, penalty=L1()),
    "L12Classifier, alpha=5e-5": L12Classifier(alpha=5e-5),
    "L12Classifier, alpha=2e-5": L12Classifier(alpha=2e-5),
}
HEADER = ("estimator", "features", "beside the data", "in all, times the data", "time", "objective")


def text_like(rows: int, columns: int, full: float, seed: int = 0) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Words, some more frequent than others, in rows of norm 1; targets from 50 of the words."""
    random = np.random.default_rng(seed)
    per_row = round(full * columns)
    words = np.minimum(columns * random.random(rows * per_row) ** 3, columns - 1).astype(np.int32)
    places = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
    X = scipy.sparse.csr_array((np.ones(rows * per_row), words, places), shape=(rows, columns))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    truth = np.zeros(columns)
    truth[random.choice(columns // 20, 50, replace=False)] = 10 * random.standard_normal(50)
    return X, X @ truth + 0.1 * random.standard_normal(rows)


def measure(model: Any, X: scipy.sparse.csr_array, y: np.ndarray) -> dict[str, Any]:
    """Fit a model while its memory is traced."""
    classifies = isinstance(model, L12Classifier)
    start = time.process_time()
    tracemalloc.start()
    model.fit(X, y > 0 if classifies else y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = model.results_[0]
    return {
        "features": int(np.count_nonzero(model.coef_)),
        "bytes": peak,
        "seconds": time.process_time() - start,
        "objective": result.objective,
        "status": result.status.name,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--full", type=float, default=0.001)
    options = parser.parse_args()
    X, y = text_like(options.rows, options.columns, options.full)
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    L12Regressor(alpha=2e-4).fit(X, y)  # loads what is loaded once, such as the compiled loop
    rows = []
    for name, model in MODELS.items():
        row = {"estimator": name} | measure(model, X, y)
        rows.append(row | {"multiple": 1 + row["bytes"] / data})
        print(rows[-1], flush=True)
    title = f"{options.rows} x {options.columns}, {options.full:.1%} full, {data / 2**20:.1f} MB of data:"
    study.write(
        "memory",
        __doc__,
        vars(options) | {"data_bytes": data},
        rows,
        [title, study.table(HEADER, map(cells, rows))],
    )


def cells(row: dict[str, Any]) -> list[str]:
    return [
        row["estimator"],
        str(row["features"]),
        f"{row['bytes'] / 2**20:.1f} MB",
        f"{row['multiple']:.2f}",
        f"{row['seconds']:.1f} s",
        f"{row['objective']:.9g}" + ("" if row["status"] == "CONVERGED" else f" ({row['status']})"),
    ]


if __name__ == "__main__":
    main()

"""How much memory a fit to sparse, text-like data takes.

    python benchmarks/memory.py [--rows 20000] [--columns 100000] [--full 0.001]

For each estimator the size of the data, the most that the fit held beside them at one time (as tracemalloc counts
what NumPy and SciPy allocate), and both together as a multiple of the data.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np
import scipy.sparse

from ell12 import L12Classifier, L12Regressor

MODELS = {
    "L12Regressor": L12Regressor(alpha=2e-4),
    "L12Regressor, many features": L12Regressor(alpha=5e-6),
    "L12Regressor, l2_weight=0": L12Regressor(alpha=2e-4, l2_weight=0.0),
    "L12Classifier": L12Classifier(alpha=5e-5),
}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--full", type=float, default=0.001)
    options = parser.parse_args()
    X, y = text_like(options.rows, options.columns, options.full)
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    L12Regressor(alpha=2e-4).fit(X, y)  # loads what is loaded once, such as the compiled loop
    print(f"{options.rows} x {options.columns}, {options.full:.1%} full: {data / 2**20:.1f} MB of data")
    for name, model in MODELS.items():
        start = time.process_time()
        tracemalloc.start()
        model.fit(X, y > 0 if isinstance(model, L12Classifier) else y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"{name:28} {peak / 2**20:8.1f} MB beside the data, {1 + peak / data:.2f} times the data in all,"
            f" {np.count_nonzero(model.coef_)} features, {time.process_time() - start:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

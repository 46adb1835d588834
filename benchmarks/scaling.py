"""How time grows with rows and columns, and how much memory a fit and a restoration take.

Time: correlated Gaussian designs (0.9 between neighbours) with 20 nonzeros, alpha 0.1 of max |A'b|; one
dimension is 500 while the other grows. The default solver to stationarity 1e-6, from zero, with l1-2 and as a
Lasso, next to celer's Lasso. The slope is that of the logarithm of time over the last two sizes: 1 is linear.

Memory: fits to sparse, text-like data (20,000 x 100,000, one entry in a thousand), as tracemalloc counts what
NumPy and SciPy allocate; the aim is less than 3 times the data at any alpha. Denoising with default settings,
each picture in a process of its own: the most memory the process held, the image included, less what it had
held before; the aim is 12 times the image.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

import ell12
import study
from race import Problem, correlated
from study import Row

BASELINE = "ell12, l1-2"
SIZES = [1000, 3000, 10_000, 30_000, 100_000]
MODELS = {
    "L12Regressor, alpha=2e-4": ell12.L12Regressor(alpha=2e-4),
    "L12Regressor, alpha=1e-5": ell12.L12Regressor(alpha=1e-5),
    "L12Regressor, penalty=L1(), alpha=2e-4": ell12.L12Regressor(alpha=2e-4, penalty=ell12.L1()),
    "L12Classifier, alpha=5e-5": ell12.L12Classifier(alpha=5e-5),
}
PICTURES = [((4096, 4096), 1), ((4096, 4096), 2), ((256, 256, 256), 1)]
# What is loaded once, the compiled loop among it, comes before memory is first read.
CHILD = """
import json, resource, sys, time
import numpy as np
import ell12
from ell12.restoration import SmoothedGradient

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

shape, threads = json.loads(sys.argv[1])
solver = SmoothedGradient(threads=threads)
ell12.denoise_tv(np.zeros((32,) * (len(shape) - 2) + (128, 128), np.float32), 0.05, solver=solver)
before = peak()
image = np.random.default_rng(0).random(shape, np.float32)
start = time.process_time()
found = ell12.denoise_tv(image, 0.05, solver=solver, return_result=True)
seconds = time.process_time() - start
print(json.dumps([seconds, (peak() - before) / image.nbytes, found.result.n_iter, found.result.converged]))
"""


def rows() -> Iterator[Row]:
    yield from growth("columns", [(500, size) for size in SIZES])
    yield from growth("rows", [(size, 500) for size in SIZES])
    yield from memory_of_fits()
    yield from memory_of_pictures()


def growth(name: str, shapes: list[tuple[int, int]]) -> Iterator[Row]:
    previous: dict[str, float] = {}
    for k, (n, p) in enumerate(shapes):
        problem = correlated(n, p, f"more {name}", 0.1, nonzero=20)
        calls = solvers(problem)
        seconds = study.median_seconds(calls, budget=6.0)
        for method, call in calls.items():
            note = f"{np.count_nonzero(call())} nonzeros"
            if previous:
                slope = math.log(seconds[method] / previous[method]) / math.log(SIZES[k] / SIZES[k - 1])
                note += f", slope {slope:.2f}"
            version, ratio = study.version_of(method.split(",")[0]), seconds[method] / seconds[BASELINE]
            yield Row(problem.name, method, version, seconds[method], ratio, note=note)
        previous = seconds


def solvers(problem: Problem) -> dict[str, Callable[[], Any]]:
    def ours(l2_weight: float) -> Callable[[], Any]:
        return lambda: ell12.minimize(problem.loss(), ell12.L12(problem.alpha, l2_weight), tol=1e-6).x

    calls = {BASELINE: ours(1.0), "ell12, Lasso": ours(0.0)}
    celer, _ = study.load("celer")
    if celer is not None:
        A, n = np.asfortranarray(problem.A), len(problem.b)
        model = celer.Lasso(problem.alpha / n, tol=1e-6, fit_intercept=False)
        calls["celer, Lasso"] = lambda: model.fit(A, problem.b).coef_
    return calls


def text_like(rows: int, columns: int, share: float) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Words, some more frequent than others, in rows of norm 1; targets from 50 of the words."""
    random = np.random.default_rng(0)
    per_row = round(share * columns)
    words = np.minimum(columns * random.random(rows * per_row) ** 3, columns - 1).astype(np.int32)
    begins = np.arange(0, rows * per_row + 1, per_row, dtype=np.int32)
    X = scipy.sparse.csr_array((np.ones(rows * per_row), words, begins), shape=(rows, columns))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    truth = np.zeros(columns)
    truth[random.choice(columns // 20, 50, replace=False)] = 10 * random.standard_normal(50)
    return X, X @ truth + 0.1 * random.standard_normal(rows)


def memory_of_fits() -> Iterator[Row]:
    X, y = text_like(20_000, 100_000, 0.001)
    data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    ell12.L12Regressor(alpha=2e-4).fit(X, y)  # loads what is loaded once, such as compiled loops
    for name, model in MODELS.items():
        begin = time.process_time()
        tracemalloc.start()
        model.fit(X, y > 0 if name.startswith("L12Classifier") else y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        note = f"{1 + peak / data:.2f} times the data in all, {np.count_nonzero(model.coef_)} features"
        yield Row("memory, sparse text", name, study.version_of("ell12"), time.process_time() - begin, note=note)


def memory_of_pictures() -> Iterator[Row]:
    for shape, threads in PICTURES:
        command = [sys.executable, "-c", CHILD, json.dumps([shape, threads])]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, multiple, sweeps, converged = json.loads(output)
        note = f"{multiple:.3g} times the image, {sweeps} iterations, {'' if converged else 'not '}converged"
        problem = f"memory, {' x '.join(map(str, shape))}, float32, threads: {threads}"
        yield Row(problem, "denoise_tv", study.version_of("ell12"), seconds, note=note)


if __name__ == "__main__":
    study.write_rows("scaling", __doc__ or "", rows(), BASELINE)

"""Data that do not fit into memory: paths over columns on disk, and rows on one and on two workers of Dask.

Columns are like genotypes: 0, 1 or 2 as int8, made by a seed, each copying seven tenths of its neighbour.
Thirty of them explain four fifths of the variance of y; the logistic loss has its signs. A path has 100 alphas
down to 0.05 of the first, on standardised columns, which we standardise without a copy. "passes" counts how
often all columns were read. "memory" is the peak of what is not file cache, beyond what the process held before
it had data. Peers hold the columns in double precision; making them is not timed. The stationarity is the worst
of the path, computed afresh. Every run has a process of its own. `--size ROWS COLUMNS` measures that size;
peers run up to 2e8 entries.

Rows: the worker processes make chunks of 250,000 x 50 by seed in each pass, so the data are never held. A
squared loss becomes the products of its columns in one pass; a logistic fit takes ten iterations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ALPHAS, EPS, CAUSAL, SHARE, COPIED, BLOCK = 100, 0.05, 30, 0.8, 0.7, 4096
MOST_ENTRIES_OF_PEERS = 2 * 10**8
PEERS = ("scikit-learn", "celer", "skglm")
Row = dict[str, Any]


# Columns


def make_columns(path: Path, rows: int, columns: int) -> None:
    """Write the matrix, a block of columns at a time."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.int8, shape=(rows, columns), fortran_order=True)
    random = np.random.default_rng(0)
    alleles = np.zeros((2, rows), dtype=bool)
    for first in range(0, columns, BLOCK):
        count = min(BLOCK, columns - first)
        frequency = random.integers(13, 128, count, dtype=np.uint8)  # of 256
        drawn = random.integers(0, 256, (count, 2, rows), dtype=np.uint8) < frequency[:, None, None]
        copied = random.integers(0, 256, (count, 2, rows), dtype=np.uint8) < round(256 * COPIED)
        for k in range(count):
            alleles = np.where(copied[k], alleles, drawn[k])
            drawn[k] = alleles
        out[:, first : first + count] = drawn.sum(axis=1, dtype=np.int8).T
        out.flush()


def response(X: np.ndarray) -> np.ndarray:
    """A sum of some columns, and noise."""
    random = np.random.default_rng(1)
    some = X[:, np.sort(random.choice(X.shape[1], CAUSAL, replace=False))].astype(float)
    effects = random.uniform(0.5, 1.0, CAUSAL) * random.choice([-1.0, 1.0], CAUSAL)
    signal = ((some - some.mean(axis=0)) / some.std(axis=0)) @ effects
    y = np.sqrt(SHARE) * signal / signal.std() + np.sqrt(1 - SHARE) * random.standard_normal(X.shape[0])
    return y - y.mean()


def standardised(X: np.ndarray) -> np.ndarray:
    """The columns in double precision, of mean 0 and deviation 1."""
    A = np.empty(X.shape, order="F")
    for first in range(0, X.shape[1], BLOCK):
        part = X[:, first : first + BLOCK].astype(float)
        part -= part.mean(axis=0)
        A[:, first : first + BLOCK] = part / np.where(part.any(axis=0), part.std(axis=0), 1.0)
    return A


class Peak:
    """The most memory that this process holds beyond what it held at first, in MB, by samples of a thread."""

    def __init__(self) -> None:
        self.start = self.most = anonymous_megabytes()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.most = max(self.most, anonymous_megabytes())
            time.sleep(0.01)


def anonymous_megabytes() -> float:
    """What the process holds that is not of files."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) / 1024


def our_path(loss: str, l2_weight: float, path: Path, y: np.ndarray) -> Row:
    from ell12 import L12, Columns, LogisticLoss, SquaredLoss, l12_path, solution_path
    from ell12.operators.centering import CenteredColumns

    random = np.random.default_rng(0)
    l12_path(random.standard_normal((20, 30)), random.standard_normal(20))  # what is compiled
    peak, start, cpu = Peak(), time.perf_counter(), time.process_time()
    columns = Columns(path, scale=True)
    A = CenteredColumns(columns, columns.moments()[0])
    kind, target = (SquaredLoss, y) if loss == "squared" else (LogisticLoss, np.where(y > 0, 1.0, -1.0))
    found = solution_path(kind(A, target, scale=1 / y.size), L12(l2_weight=l2_weight), alphas=ALPHAS, eps=EPS)
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "memory": peak.most - peak.start,
        "passes": columns.reads,
        "stationarity": max(result.stationarity for result in found.results),
        "support": int((found.results[-1].x != 0).sum()),
    }


def peers_path(package: str, path: Path, y: np.ndarray) -> Row:
    """The Lasso of a peer at the tolerance of its default."""
    call = globals()[package.replace("-", "_")]
    random = np.random.default_rng(0)
    small = np.asfortranarray(random.standard_normal((20, 30)))
    call(small, random.standard_normal(20), np.array([0.1, 0.05]))  # what is compiled
    peak, A = Peak(), standardised(np.load(path, mmap_mode="r"))
    alphas = np.abs(A.T @ y).max() / y.size * np.geomspace(1, EPS, ALPHAS)
    start, cpu = time.perf_counter(), time.process_time()
    coefs = call(A, y, alphas)
    row = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu, "passes": None}
    worst = 0.0
    for x, alpha in zip(coefs.T, alphas, strict=True):
        gradient = A.T @ (A @ np.ascontiguousarray(x) - y) / y.size
        off = np.maximum(np.abs(gradient) - alpha, 0)
        worst = max(worst, float(np.where(x != 0, np.abs(gradient + alpha * np.sign(x)), off).max()) / alpha)
    support = int(np.count_nonzero(coefs[:, -1]))
    return row | {"memory": peak.most - peak.start, "stationarity": worst, "support": support}


def scikit_learn(A: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import lasso_path

    return lasso_path(A, y, alphas=alphas, tol=1e-4, max_iter=10_000, precompute=False, copy_X=False)[1]


def celer(A: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    from celer import celer_path

    return celer_path(A, y, "lasso", alphas=alphas, max_iter=100)[1]


def skglm(A: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    from skglm import datafits, penalties, solvers

    solver = solvers.AndersonCD(fit_intercept=False, max_iter=200)
    return solver.path(A, y, datafits.Quadratic(), penalties.L1(1.0), alphas=alphas)[1]


def column_rows(rows: int, columns: int, folder: Path, limit: float) -> Iterator[Row]:
    """All runs of one size; the columns are made, and removed afterwards."""
    path = folder / f"columns_{rows}_{columns}.npy"
    make_columns(path, rows, columns)
    runs = [("ell12", loss, weight) for loss in ("squared", "logistic") for weight in (0.0, 1.0)]
    if rows * columns <= MOST_ENTRIES_OF_PEERS:
        runs += [(package, "squared", 0.0) for package in PEERS]
    for package, loss, weight in runs:
        command = [sys.executable, __file__, "--run", package, loss, str(weight), "--file", str(path)]
        row = {"problem": f"{rows} x {columns:,}, {loss}, l2_weight {weight:g}", "method": package}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
            yield row | json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            yield row | {"note": f"more than {limit:g} s"}
        except subprocess.CalledProcessError as error:
            yield row | {"note": (error.stderr.strip().splitlines() or ["it ended"])[-1][:100]}
    path.unlink()


# Rows


def worker_rows(rows: int, iterations: int = 10) -> Iterator[Row]:
    """Both losses on one worker and on two."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from ell12 import L12, L12Regressor, LogisticLoss, minimize
    from ell12.distributed import rows_loss

    columns, chunk = 50, 250_000
    coef = np.where(np.arange(columns) < 10, np.linspace(-1, 4, columns), 0.0)

    def make(block_info: Any = None) -> np.ndarray:
        info = block_info[None]
        return np.random.default_rng(info["chunk-location"][0]).standard_normal(info["chunk-shape"])

    def observe(X: np.ndarray, block_info: Any = None) -> np.ndarray:
        return X @ coef + 0.5 * np.random.default_rng([1, block_info[0]["chunk-location"][0]]).standard_normal(
            len(X)
        )

    for n_workers in (1, 2):
        options = {"threads_per_worker": 1, "memory_limit": "2GB", "dashboard_address": ":0"}
        with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
            chunks = da.core.normalize_chunks((chunk, columns), (rows, columns))
            X = da.map_blocks(make, chunks=chunks, dtype=np.float64)
            y = X.map_blocks(observe, drop_axis=1, dtype=np.float64)
            loss = rows_loss(LogisticLoss, X, da.sign(y), scale=1 / rows, persist=False)
            calls: dict[str, Callable[[], Any]] = {
                "squared, one pass": partial(L12Regressor(0.01).fit, X, y),
                f"logistic, {iterations} iterations": partial(
                    minimize, loss, L12(0.01, 0.5), tol=0, max_iter=iterations
                ),
            }
            for what, call in calls.items():
                begin = time.perf_counter()
                call()
                seconds = time.perf_counter() - begin
                yield {
                    "problem": f"{rows:,} x {columns}, {what}",
                    "method": f"workers: {n_workers}",
                    "seconds": seconds,
                }


def cells(row: Row) -> list[str]:
    def shown(name: str, form: str) -> str:
        return "" if row.get(name) is None else format(row[name], form)

    numbers = [("seconds", ".1f"), ("cpu_seconds", ".1f"), ("passes", ".1f"), ("memory", ".0f")]
    numbers += [("stationarity", ".1e"), ("support", "d")]
    return [row["problem"], row["method"], *(shown(*number) for number in numbers), row.get("note", "")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs=2, default=[1000, 100_000], metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--worker-rows", type=int, default=4_000_000, help="rows of the problem on workers")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--limit", type=float, default=900, help="seconds for a run")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        package, loss, weight = options.run
        y = response(np.load(options.file, mmap_mode="r"))
        ours = package == "ell12"
        found = our_path(loss, float(weight), options.file, y) if ours else peers_path(package, options.file, y)
        print(json.dumps(found))
        return
    import study

    rows = []
    for row in (*column_rows(*options.size, options.folder, options.limit), *worker_rows(options.worker_rows)):
        print(row, flush=True)
        rows.append(row)
    header = [
        "problem",
        "method",
        "seconds",
        "processor",
        "passes",
        "memory, MB",
        "stationarity",
        "support",
        "note",
    ]
    settings = {"size": options.size, "worker_rows": options.worker_rows, "processors": os.cpu_count()}
    study.write("out_of_memory", __doc__ or "", settings, rows, [study.table(header, map(cells, rows))])


if __name__ == "__main__":
    main()

"""Paths over columns that two workers keep, against one worker.

`python benchmarks/dask_columns.py [--rows M] [--columns N] [--repeats K]` writes results/dask_columns.{json,md}.
Each worker is a process of one thread and keeps its columns in memory: genotypes, 0, 1 or 2 as int8, made by seed
where they stay, scaled to standard deviation 1 and centred implicitly. A path has 100 strengths, evenly spaced
from the largest to a tenth of it, as biglasso's. One worker and two take turns; the seconds are medians of wall
time and hold everything but the making of the columns. A pass is one look of the workers at all of their columns.
At the end one of two workers is killed in the middle of a path, and the solutions are compared bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import study
from ell12 import L12, LogisticLoss, SquaredLoss
from ell12.distributed import columns
from ell12.operators.centering import CenteredColumns
from ell12.path import solution_path
from ell12.penalties import WithIntercept

CHUNK, CAUSAL, STRENGTHS = 5000, 50, np.linspace(1.0, 0.1, 100)
CASES = {"squared, l2_weight 0": (SquaredLoss, 0.0), "squared, l2_weight 1": (SquaredLoss, 1.0)}
CASES["logistic, l2_weight 0"] = (LogisticLoss, 0.0)
VECTORS = 8  # that a look multiplies at a time where it is measured by itself


def genotypes(m: int, n: int) -> da.Array:
    """Columns by seed, a chunk at a time."""

    def make(block_info: Any = None) -> np.ndarray:
        place = block_info[None]
        random = np.random.default_rng(place["chunk-location"][1])
        shares = random.uniform(0.05, 0.5, place["chunk-shape"][1])
        draws = [random.random(place["chunk-shape"][::-1], dtype=np.float32) < shares[:, None] for _ in range(2)]
        return (draws[0].astype(np.int8) + draws[1]).T

    return da.map_blocks(make, chunks=da.core.normalize_chunks((m, CHUNK), (m, n)), dtype=np.int8)


@contextmanager
def connected(cluster: LocalCluster, shape: tuple[int, int]) -> Iterator[tuple[Client, Any]]:
    """A client, and the columns, which the workers hold."""
    with Client(cluster) as client:
        X = columns(genotypes(*shape), persist=True, scale=True)
        wait(X.source.blocks.blocks)
        yield client, X


def path(X: Any, kind: type, l2_weight: float) -> list[Any]:
    """All solutions, and how they were found."""
    m, n = X.shape
    means, _ = X.moments()
    random = np.random.default_rng(0)
    causal = np.sort(random.choice(n, CAUSAL, replace=False))
    y = (X.select_columns(causal) - means[causal]) @ random.standard_normal(CAUSAL) + 5 * random.standard_normal(m)
    squared = kind is SquaredLoss
    y = y - y.mean() if squared else np.where(y > np.median(y), 1.0, -1.0)  # at zero the intercept is zero too
    loss = kind(CenteredColumns(X, means, constant=0.0 if squared else 1.0), y, scale=1 / m)
    largest = float(np.abs(loss.gradient(loss.point(loss.start()))[:n]).max())
    penalty = L12(largest, l2_weight)
    return solution_path(loss, penalty if squared else WithIntercept(penalty), largest * STRENGTHS, sparse=True)


def bits(results: list[Any]) -> str:
    """A digest of all solutions: they are the same to the last bit where it is."""
    return hashlib.sha256(
        b"".join(part.tobytes() for result in results for part in (result.x.indices, result.x.data))
    ).hexdigest()


def timed(cluster: LocalCluster, shape: tuple[int, int], name: str) -> dict[str, Any]:
    with connected(cluster, shape) as (_, X):
        begin, passes = time.perf_counter(), X.source.blocks.passes
        results = path(X, *CASES[name])
        seconds = time.perf_counter() - begin
        return {
            "case": name,
            "workers": len(cluster.workers),
            "seconds": seconds,
            "passes": X.source.blocks.passes - passes,
            "reads": X.reads,
            "converged": sum(result.converged for result in results),
            "stationarity": max(result.stationarity for result in results),
            "support": int(results[-1].x.nnz),
            "objective": results[-1].objective,
            "bits": bits(results),
        }


def looks(cluster: LocalCluster, shape: tuple[int, int], repeats: int) -> dict[str, Any]:
    """One look by itself: seconds, and the bytes that come back with a threshold and without."""
    with connected(cluster, shape) as (_, X):
        vectors = np.random.default_rng(1).standard_normal((shape[0], VECTORS))
        _, every = X.source.products(vectors, 0.0)
        least = 0.8 * float(np.abs(every).max())
        seconds = []
        for _ in range(2 * repeats + 1):
            begin = time.perf_counter()
            where, values = X.source.products(vectors, least)
            seconds.append(time.perf_counter() - begin)
        sent = {"bytes": where.nbytes + values.nbytes, "bytes_of_all": every.nbytes + 8 * shape[1]}
        return {"case": "look", "workers": len(cluster.workers), "seconds": statistics.median(seconds)} | sent


def disturbed(cluster: LocalCluster, shape: tuple[int, int], name: str, seconds: float) -> str:
    """The bits of a path during which a worker is killed."""
    with connected(cluster, shape) as (client, X):
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(seconds, os.kill, [victim, signal.SIGKILL])
        timer.start()
        found = bits(path(X, *CASES[name]))
        timer.join()
        assert victim not in client.run(os.getpid).values(), "the worker was to be killed before the end"
        return found


def measure(shape: tuple[int, int], repeats: int) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0", "silence_logs": 50}
    rows: list[dict[str, Any]] = []
    same: dict[str, bool] = {}
    with LocalCluster(n_workers=1, **options) as one, LocalCluster(n_workers=2, **options) as two:
        rows += [looks(cluster, shape, repeats) for cluster in (one, two)]
        for name in CASES:
            timed(two, shape, name)  # which loads what is compiled
            runs = [timed(cluster, shape, name) for _ in range(repeats) for cluster in (one, two)]
            same[f"{name}: one worker and two"] = len({run["bits"] for run in runs}) == 1
            middle = 0.4 * statistics.median(run["seconds"] for run in runs if run["workers"] == 2)
            same[f"{name}: a worker killed"] = runs[0]["bits"] == disturbed(two, shape, name, middle)
            rows += runs
            print(*(f"{run['workers']}: {run['seconds']:.1f} s, {run['passes']} passes" for run in runs), same)
    return rows, same


def tables(rows: list[dict[str, Any]], same: dict[str, bool]) -> list[str]:
    header = ("path", "1 worker, s", "2 workers, s", "ratio", "passes", "converged", "stationarity", "support")
    lines = []
    for name in ("look", *CASES):
        own = [row for row in rows if row["case"] == name]
        one, two = (statistics.median(row["seconds"] for row in own if row["workers"] == k) for k in (1, 2))
        times = [f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"]
        last = own[-1]
        if name == "look":
            lines.append([f"one look, {VECTORS} vectors", *times, "1", "", "", ""])
            continue
        found = [str(last["passes"]), str(last["converged"]), f"{last['stationarity']:.1e}", str(last["support"])]
        lines.append([name, *times, *found])
    look = rows[0]
    sent = (
        f"The look sends back {look['bytes'] / 1e3:.1f} kB where products below 0.8 of the largest are left out,"
        f" and {look['bytes_of_all'] / 1e6:.1f} MB where none is."
    )
    answers = study.table(
        ("the same bits?", "answer"), [(what, "yes" if answer else "no") for what, answer in same.items()]
    )
    return [study.table(header, lines), sent, answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    settings = vars(options) | {"processors": os.cpu_count(), "load": os.getloadavg()[0]}
    rows, same = measure((options.rows, options.columns), options.repeats)
    settings["same"] = same
    study.write("dask_columns", __doc__ or "", settings, rows, tables(rows, same), ("dask", "distributed"))


if __name__ == "__main__":
    main()

"""Paths over columns that two workers keep, against one worker.

`python benchmarks/dask_columns.py [--rows M] [--columns N] [--repeats K]` writes results/dask_columns.{json,md}.
Each worker is a process of one thread and keeps its columns in memory: genotypes, 0, 1 or 2 as int8, made by seed
where they stay, scaled to standard deviation 1 and centred implicitly. A path has 100 strengths, evenly spaced
from the largest to a tenth of it, as biglasso's. One worker and two take turns. The seconds are medians of wall
time and hold everything but the making of the columns.

Where other work goes on, wall time says little. So processor time is counted too: "client" is that of the thread
which solves within the few columns in use, "worker" that of the busier worker, added up over all passes. The two
wait for each other, so that their sum is what a path takes at least, and "processor ratio" is this sum with one
worker over that with two. A pass is one look of the workers at all of their columns; "MB back" is what they sent
back of all looks of a path, beside all products that they found.

"bare product" is a look without Dask: a process multiplies its columns in memory, one process all of them or two
processes half of them each. It is what two processes can gain on this machine at that moment.

At the end one of two workers is killed in the middle of a path over a tenth of the columns, and the solutions are
compared bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait

import study
from ell12 import L12, Columns, LogisticLoss, SquaredLoss
from ell12.distributed import columns
from ell12.operators.centering import CenteredColumns
from ell12.path import path_results
from ell12.penalties import WithIntercept

CHUNK, CAUSAL, STRENGTHS = 32_000, 50, np.linspace(1.0, 0.1, 100)
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


class Workers:
    """A cluster, and the source of the columns that its workers keep."""

    def __init__(self, count: int, shape: tuple[int, int], cleanup: ExitStack) -> None:
        options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0", "silence_logs": 50}
        self.count, self.shape = count, shape
        self.client = cleanup.enter_context(
            Client(cleanup.enter_context(LocalCluster(n_workers=count, **options)))
        )
        with self.client.as_current():
            self.source = columns(genotypes(*shape), persist=True).source
        wait(self.source.blocks.blocks)
        self.processes = [psutil.Process(each) for each in self.client.run(os.getpid).values()]

    def processor_seconds(self) -> np.ndarray:
        """Those of each worker since it began; 0 of one that is gone."""
        return np.array([seconds_of(process) for process in self.processes])

    def columns(self) -> Columns:
        """They, with nothing known of them."""
        return Columns(self.source, scale=True)


def seconds_of(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0


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
    return path_results(loss, penalty if squared else WithIntercept(penalty), largest * STRENGTHS, sparse=True)


def bits(results: list[Any]) -> str:
    """A digest of all solutions: they are the same to the last bit where it is."""
    return hashlib.sha256(
        b"".join(part.tobytes() for result in results for part in (result.x.indices, result.x.data))
    ).hexdigest()


@contextmanager
def watched(workers: Workers, before: Callable[[str], None], sent: list[tuple[int, int]]) -> Iterator[list[float]]:
    """Call a function before the blocks are asked, and note the bytes of what a look sends back, and of all.

    Gives the processor seconds of the busier worker in each pass.
    """
    blocks, busy = workers.source.blocks, []
    results = blocks.results

    def watch(what: str, *arguments: Any, **options: Any) -> list[Any]:
        before(what)
        begin = workers.processor_seconds()
        found = results(what, *arguments, **options)
        busy.append(float(np.max(workers.processor_seconds() - begin)))
        if what == "look":
            width = found[0][1].shape[1]
            sent.append((sum(where.nbytes + values.nbytes for where, values in found), width))
        return found

    blocks.results = watch
    try:
        yield busy
    finally:
        del blocks.results  # the instance's, so that the method is seen again


def timed(workers: Workers, name: str) -> dict[str, Any]:
    X, passes = workers.columns(), workers.source.blocks.passes
    sent: list[tuple[int, int]] = []
    wall, cpu, everything = time.perf_counter(), time.thread_time(), time.process_time()
    with watched(workers, lambda _: None, sent) as busy:
        results = path(X, *CASES[name])
    return {
        "case": name,
        "workers": workers.count,
        "seconds": time.perf_counter() - wall,
        "client_cpu_seconds": time.thread_time() - cpu,
        "client_process_cpu_seconds": time.process_time() - everything,
        "worker_cpu_seconds": sum(busy),
        "passes": workers.source.blocks.passes - passes,
        "reads": X.reads,
        "converged": sum(result.converged for result in results),
        "stationarity": max(result.stationarity for result in results),
        "support": int(results[-1].x.nnz),
        "objective": results[-1].objective,
        "bits": bits(results),
        "bytes": sum(size for size, _ in sent),
        "bytes_of_all": sum(8 * width * workers.shape[1] for _, width in sent),
    }


def looks(workers: Workers, repeats: int) -> list[dict[str, Any]]:
    """One look by itself, some times."""
    vectors = np.random.default_rng(1).standard_normal((workers.shape[0], VECTORS))
    rows = []
    for _ in range(2 * repeats + 1):
        wall, cpu, begin = time.perf_counter(), time.thread_time(), workers.processor_seconds()
        workers.source.products(vectors, np.inf)
        busy = float(np.max(workers.processor_seconds() - begin))
        row = {"case": "look", "workers": workers.count, "seconds": time.perf_counter() - wall}
        rows.append(row | {"client_cpu_seconds": time.thread_time() - cpu, "worker_cpu_seconds": busy})
    return rows


def bare_products(shape: tuple[int, int], repeats: int) -> list[dict[str, Any]]:
    """The same product by processes without Dask."""
    rows, context = [], multiprocessing.get_context("spawn")
    for count in (1, 2) * (repeats + 1):
        share, ready, found = (shape[0], shape[1] // count), context.Barrier(count), context.Queue()
        processes = [context.Process(target=multiply, args=(share, ready, found)) for _ in range(count)]
        for process in processes:
            process.start()
        wall, cpu = zip(*(found.get() for _ in processes), strict=True)
        for process in processes:
            process.join()
        row = {"case": "bare", "workers": count, "seconds": max(wall)}
        rows.append(row | {"client_cpu_seconds": 0.0, "worker_cpu_seconds": max(cpu)})
    return rows


def multiply(shape: tuple[int, int], ready: Any, found: Any) -> None:
    """Tell the wall and processor seconds of one look at columns of this process."""
    X = Columns(np.ones(shape, dtype=np.int8, order="F"))
    vectors = np.random.default_rng(1).standard_normal((shape[0], VECTORS))
    ready.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    X.look(vectors, np.inf)
    found.put((time.perf_counter() - wall, time.process_time() - cpu))


def disturbed(workers: Workers, name: str) -> str:
    """The bits of a path whose fourth look finds one of the workers killed."""
    victim = next(iter(workers.client.run(os.getpid).values()))
    asked: list[str] = []

    def kill(what: str) -> None:
        asked.append(what)
        if what == "look" and asked.count("look") == 4:
            os.kill(victim, signal.SIGKILL)

    with watched(workers, kill, []):
        found = bits(path(workers.columns(), *CASES[name]))
    assert asked.count("look") >= 4
    return found


def measure(shape: tuple[int, int], repeats: int) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    rows, same = bare_products(shape, repeats), {}
    smaller = shape[0], shape[1] // 10
    with ExitStack() as own:
        whole = Workers(2, smaller, own)
        for name in CASES:  # which loads what is compiled, too
            undisturbed = timed(whole, name)["bits"]
            with ExitStack() as victim:
                killed = disturbed(Workers(2, smaller, victim), name)
            same[f"{name}: a worker killed, {smaller[1]:,} columns"] = undisturbed == killed
    print(same, flush=True)
    with ExitStack() as cleanup:
        both = [Workers(count, shape, cleanup) for count in (1, 2)]
        rows += [row for workers in both for row in looks(workers, repeats)]
        for name in CASES:
            runs = [timed(workers, name) for _ in range(repeats) for workers in both]
            same[f"{name}: one worker and two"] = len({run["bits"] for run in runs}) == 1
            rows += runs
            print(name, *(f"{run['workers']}: {run['seconds']:.1f} s, {run['passes']} passes" for run in runs))
    return rows, same


TITLES = {"bare": f"bare product, {VECTORS} vectors", "look": f"one look, {VECTORS} vectors"}
TIMES = ("case", "1 worker", "2 workers", "ratio", "client", "worker of 1", "busier of 2", "processor ratio")
FOUND = ("path", "passes", "MB back", "MB of all", "converged", "stationarity", "support")


def times(rows: list[dict[str, Any]], name: str) -> list[str]:
    """The line of one case."""

    def median(column: str, count: int) -> float:
        return statistics.median(row[column] for row in rows if (row["case"], row["workers"]) == (name, count))

    wall, client, worker = (
        [median(column, count) for count in (1, 2)]
        for column in ("seconds", "client_cpu_seconds", "worker_cpu_seconds")
    )
    least = [sum(pair) for pair in zip(client, worker, strict=True)]
    numbers = [*wall, wall[0] / wall[1], statistics.mean(client), *worker, least[0] / least[1]]
    units = ["s", "s", "", "s", "s", "s", ""]
    return [TITLES.get(name, name), *(f"{x:.2f} {unit}".strip() for x, unit in zip(numbers, units, strict=True))]


def tables(rows: list[dict[str, Any]], settings: dict[str, Any]) -> list[str]:
    lines, same = [], settings["same"]
    size = f"{settings['rows']:,} x {settings['columns']:,}"
    about = f"{size}; load of the machine's {settings['processors']} processors before: {settings['load']:.1f}."
    for name in CASES:
        last = next(row for row in reversed(rows) if row["case"] == name)
        sizes = f"{last['bytes'] / 1e6:.1f}", f"{last['bytes_of_all'] / 1e6:.0f}"
        reached = str(last["converged"]), f"{last['stationarity']:.1e}", str(last["support"])
        lines.append((name, str(last["passes"]), *sizes, *reached))
    answers = [(what, "yes" if answer else "no") for what, answer in same.items()]
    return [
        about,
        study.table(TIMES, [times(rows, name) for name in (*TITLES, *CASES)]),
        study.table(FOUND, lines),
        study.table(("the same bits?", "answer"), answers),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=1_600_000)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    settings = vars(options) | {"processors": os.cpu_count(), "load": os.getloadavg()[0]}
    rows, same = measure((options.rows, options.columns), options.repeats)
    settings["same"] = same
    study.write("dask_columns", __doc__ or "", settings, rows, tables(rows, settings), ("dask", "distributed"))


if __name__ == "__main__":
    main()

"""Completion of ratings in Parquet files on Dask workers.

`python benchmarks/dask_completion.py [--ratings N] [--sweeps K] [--data FOLDER] [FOLDER]` writes
dask_completion.json and dask_completion.md there, by default into benchmarks/results; `make bench` does not. The
ratings, by default 1e8, are written by seed into a temporary folder, or into that given, where they are kept: a
matrix of rank 8 with noise, a file for each range of users. Two workers of 3 GB and one thread complete it by
alternating least squares, with biases taken off, and 20 more ratings of each of 1000 users say how well. A tenth
as many are completed too: what the plan makes of them for all is compared with what all took. A small matrix is
completed in memory as well, and the factors are compared.

A pass sends the factor of the items to each worker, and to each block its own rows of what belongs to users; rows
come back from each block, and sums over all from each worker. Bytes are those of the arrays. Work is processor
time: other programs lengthen it too, by what they take of caches and memory, but far less than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import ell12
from ell12 import SpectralL12
from ell12.completion import AlternatingLeastSquares
from ell12.distributed import complete_matrix
from ell12.distributed.executor import Blocks

RANK, PER_USER, PER_FILE, NOISE = 8, 200, 2_000_000, 0.5
SOLVER = AlternatingLeastSquares()
FIT = {"alpha": 50.0, "max_rank": 10, "center": "biases"}  # and l2_weight 0.5
WORKERS = 2
# What the plan is for, and assumes: ratings, sweeps, the client's network in bytes a second, threads of a worker.
PLANNED, SWEEPS, NETWORK, THREADS = 10**9, 20, 1.25e9, 4
CLUSTERS = 2, 4, 8, 16


def factors(users: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Those of the users and of the items."""
    random = np.random.default_rng(0)
    return random.standard_normal((users, RANK)), random.standard_normal((items, RANK)) / RANK**0.5


def ratings(first: int, last: int, W: np.ndarray, H: np.ndarray, seed: int, per_user: int) -> pd.DataFrame:
    """Ratings of some users: different items each, in single precision."""
    random, items = np.random.default_rng([seed, first]), len(H)
    numbers = np.repeat(np.arange(first, last), per_user)
    drawn = numbers * items + random.integers(items, size=numbers.size)
    users, chosen = np.divmod(np.unique(drawn), items)
    values = np.einsum("ij,ij->i", W[users], H[chosen]) + NOISE * random.standard_normal(users.size)
    types = {"user": np.int32, "item": np.int32, "value": np.float32}
    return pd.DataFrame({"user": users, "item": chosen, "value": values}).astype(types)


def write(folder: Path, count: int, users: int, items: int) -> list[Path]:
    """The ratings as Parquet files of whole users; those that are there already are kept."""
    W, H = factors(users, items)
    step = max(PER_FILE // PER_USER, 1)
    paths = []
    for first in range(0, users, step):
        path = folder / f"ratings_{count}_{first:09d}.parquet"
        if not path.exists():
            part = path.with_suffix(".part")
            ratings(first, min(first + step, users), W, H, 1, PER_USER).to_parquet(part)
            part.replace(path)
        paths.append(path)
    return paths


def size_of(thing: Any) -> int:
    """The bytes of the arrays in what is sent."""
    if isinstance(thing, dict):
        return sum(map(size_of, thing.values()))
    if isinstance(thing, list | tuple):
        return sum(map(size_of, thing))
    if hasattr(thing, "sums"):  # rows and sums
        return size_of(thing.rows) + size_of(thing.sums)
    return getattr(thing, "nbytes", 0)


@contextmanager
def noted_passes(client: Client) -> Iterator[dict[str, list[dict[str, float]]]]:
    """What each pass sends to every worker, to all blocks together, what comes back, and how long it takes.

    Work is the processor time of all workers since the pass before.
    """
    notes: dict[str, list[dict[str, float]]] = defaultdict(list)
    total, works = Blocks.total, [work_of(client)]

    def noted(self: Blocks, name: str, function: Any, *arguments: Any, each: Any = None) -> Any:
        begin = time.perf_counter()
        found = total(self, name, function, *arguments, each=each)
        seconds, rows = time.perf_counter() - begin, getattr(found, "rows", {})
        works.append(work_of(client))
        notes[name].append(
            {
                "to each worker": size_of(arguments),
                "to the blocks": size_of(each),
                "rows back": size_of(rows),
                "sums back": size_of(found) - size_of(rows),
                "seconds": seconds,
                "work": works[-1] - works[-2],
            }
        )
        return found

    Blocks.total = noted  # type: ignore[method-assign]
    try:
        yield notes
    finally:
        Blocks.total = total  # type: ignore[method-assign]


def work_of(client: Client) -> float:
    """The processor time of all workers so far."""
    return sum(client.run(time.process_time).values())


def largest(client: Client) -> float:
    """The memory of the largest worker, in MB."""
    workers = client.scheduler_info()["workers"].values()
    return max(worker["metrics"]["memory"] for worker in workers) / 2**20


def passes_of(notes: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """A row for each kind of pass: how often, and the mean of each."""
    rows: list[dict[str, Any]] = []
    for name, several in notes.items():
        mean = {key: float(np.mean([note[key] for note in several])) for key in several[0]}
        rows.append({"pass": name, "times": len(several)} | mean)
    return rows


def large(folder: Path, count: int, sweeps: int) -> dict[str, Any]:
    users, items = max(count // PER_USER, 1), min(20_000, max(count // 500, 10))
    # In another process, since what writing takes is not the client's.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        paths = other.submit(write, folder, count, users, items).result()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    memory: list[float] = []

    def note(_history: Any) -> bool:
        memory.append(largest(client))
        return False

    settings: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": "3GB"}
    with (
        LocalCluster(**settings, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        noted_passes(client) as notes,
    ):
        empty, own, begin = largest(client), time.process_time(), time.perf_counter()
        result = complete_matrix(
            paths, **FIT, shape=(users, items), tol=1e-3, max_iter=sweeps, run=ell12.Run(callback=note)
        )
        seconds, own = time.perf_counter() - begin, time.process_time() - own
    W, H = factors(users, items)
    some = np.arange(0, users, max(users // 1000, 1))
    held = pd.concat([ratings(u, u + 1, W, H, 2, 20) for u in some])
    error = held["value"] - result.predict(held["user"].to_numpy(), held["item"].to_numpy())
    passes = passes_of(notes)
    return {
        "ratings": count,
        "users": users,
        "items": items,
        "files": len(paths),
        "seconds": seconds,
        "seconds per sweep": float(np.median(np.diff(result.history["seconds"]))),
        "sweeps": result.n_iter,
        "status": result.status.name,
        "rank": result.x.rank,
        "RMSE on new ratings": float(np.sqrt(np.mean(error**2))),
        "standard deviation of the noise": NOISE,
        "passes": sum(line["times"] for line in passes),
        "seconds of work on the workers": float(sum(line["times"] * line["work"] for line in passes)),
        "seconds of work of client and scheduler": own,
        "largest worker, MB": max(memory),
        "largest worker before the fit, MB": empty,
        "client, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "client before the fit, MB": before,
        "by pass": passes,
    }


def plan(measured: dict[str, Any], count: int, workers: int, threads: int, sweeps: int) -> dict[str, float]:
    """What a measured run says of more ratings on other workers, each user having as many and the items the same.

    Work grows with the ratings and is shared by all threads; that of the client and the scheduler grows as well,
    and is not shared. What belongs to users goes once a pass through the client's network, what belongs to items
    once a pass and worker. Memory grows with the ratings, beyond that of an empty worker.
    """
    growth, moved, work, passes = count / measured["ratings"], 0.0, 0.0, 0.0
    for line in measured["by pass"]:
        in_a_sweep = line["pass"] in ("sweep", "residual")
        times = line["times"] * (sweeps / measured["sweeps"] if in_a_sweep else 1)
        of_users = growth * (line["to the blocks"] + line["rows back"])
        moved += times * (of_users + workers * (line["to each worker"] + line["sums back"]))
        work += times * growth * line["work"]
        passes += times
    own = growth * measured["seconds of work of client and scheduler"] * passes / measured["passes"]
    empty = measured["largest worker before the fit, MB"]
    held = empty + growth * WORKERS * (measured["largest worker, MB"] - empty) / workers
    before = measured["client before the fit, MB"]
    return {
        "workers": workers,
        "threads each": threads,
        "GB of memory each": held / 1024,
        "GB of memory of the client": (before + growth * (measured["client, MB"] - before)) / 1024,
        "GB through the client's network": moved / 2**30,
        "seconds of work a thread": work / (workers * threads),
        "seconds of client and scheduler": own,
        "seconds of the network": moved / NETWORK,
        "seconds in all": work / (workers * threads) + own + moved / NETWORK,
    }


def checked(tenth: dict[str, Any], whole: dict[str, Any]) -> dict[str, float]:
    """The work that the plan foresees from a tenth of the ratings, and what all took."""
    foreseen = plan(tenth, whole["ratings"], 1, 1, whole["sweeps"])["seconds of work a thread"]
    took = whole["seconds of work on the workers"]
    return {"from": tenth["ratings"], "ratings": whole["ratings"], "foreseen": foreseen, "took": took}


def small(folder: Path) -> dict[str, Any]:
    """The factors in memory and on workers."""
    count, users, items = 100_000, 500, 300
    paths = write(folder, count, users, items)
    table = pd.concat([pd.read_parquet(path) for path in paths]).astype({"value": np.float64})
    observed = ell12.Observed(
        table["user"].to_numpy(), table["item"].to_numpy(), table["value"].to_numpy(), (users, items)
    )
    options: dict[str, Any] = FIT | {"alpha": 20.0, "tol": 1e-5}
    near = ell12.complete_matrix(
        observed, solver=SOLVER, penalty=SpectralL12(l2_weight=0.5), scale=None, **options
    )
    doubles = folder / "small.parquet"
    table.to_parquet(doubles)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        far = complete_matrix(doubles, shape=(users, items), **options)
    return {
        "ratings": observed.n_observed,
        "largest difference of the factors": float(
            max(np.abs(np.abs(getattr(near.x, p)) - np.abs(getattr(far.x, p))).max() for p in ("U", "s", "V"))
        ),
        "sweeps in memory": near.n_iter,
        "sweeps on workers": far.n_iter,
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Rows of the same keys in Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "| --- |" + " ---: |" * (len(rows[0]) - 1)]
    for line in rows:
        cells = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in line.values())
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def render(result: dict[str, Any]) -> str:
    title, _, about = (__doc__ or "").partition("\n")
    lines = [
        f"# {title}",
        about,
        f"Measured {result['date']}, load {result['load']:.1f} on {result['cores']} cores.",
        "",
    ]
    for name in ("large", "small"):
        lines += [f"## {name.capitalize()}", "", "| what | value |", "| --- | ---: |"]
        for key, value in result[name].items():
            if key != "by pass":
                lines.append(f"| {key} | {f'{value:.4g}' if isinstance(value, float) else value} |")
        lines.append("")
    lines += [f"## Passes over {result['large']['ratings']:.0e} ratings", ""]
    lines += [
        "MB, seconds that the client waits, and processor seconds of both workers together, of one pass.",
        "",
    ]
    scale = {"to each worker", "to the blocks", "rows back", "sums back"}
    lines += table(
        [{k: v / 2**20 if k in scale else v for k, v in line.items()} for line in result["large"]["by pass"]]
    )
    lines += [f"## Plan for {PLANNED:.0e} ratings", "", " ".join((plan.__doc__ or "").split()), ""]
    lines += [
        f"Assumed: {SWEEPS} sweeps, a network of {NETWORK / 1e9:g} GB a second, {THREADS} threads a worker, each"
        " as fast as the one measured, and workers that keep what they have read. Seconds are added up as if"
        " nothing overlapped.",
        "",
        *table(result["plan"]),
    ]
    check = result["check"]
    lines += [
        f"For {check['ratings']:.0e} ratings the same plan, made of {check['from']:.0e}, foresees"
        f" {check['foreseen']:.3g} seconds of work; they took {check['took']:.3g}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--ratings", type=int, default=100_000_000)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0]}
    result["cores"] = os.cpu_count()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary)
        result["large"] = large(folder, options.ratings, options.sweeps)
        tenth = large(folder, options.ratings // 10, options.sweeps)
        result["small"] = small(Path(temporary))
    result["plan"] = [plan(result["large"], PLANNED, workers, THREADS, SWEEPS) for workers in CLUSTERS]
    result["check"] = checked(tenth, result["large"])
    (options.folder / "dask_completion.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.folder / "dask_completion.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()

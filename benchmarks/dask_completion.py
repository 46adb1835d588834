"""Completion of ratings in Parquet files on Dask workers.

`python benchmarks/dask_completion.py [--ratings N] [--sweeps K] [--data FOLDER] [FOLDER]` writes
dask_completion.json and dask_completion.md there, by default into benchmarks/results; `make bench` does not. The
ratings, by default 1e8, are written by seed into a temporary folder, or into that given, where they are kept: a
matrix of rank 8 with noise, a file for each range of users. Two workers of 3 GB complete it by alternating least
squares, and 20 more ratings of each of 1000 users say how well. A small matrix is completed in memory too, and the
factors are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import ell12
from ell12.distributed import complete_matrix

RANK, PER_USER, PER_FILE, NOISE = 8, 200, 2_000_000, 0.5
FIT = {"alpha": 50.0, "max_rank": 10}


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


def large(folder: Path, count: int, sweeps: int) -> dict[str, Any]:
    users, items = max(count // PER_USER, 1), min(20_000, max(count // 500, 10))
    # In another process, since what writing takes is not the client's.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        paths = other.submit(write, folder, count, users, items).result()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peaks: list[int] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="3GB", dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def note(_history: Any) -> bool:
            workers = client.scheduler_info()["workers"].values()
            peaks.append(max(worker["metrics"]["memory"] for worker in workers))
            return False

        begin = time.perf_counter()
        result = complete_matrix(paths, **FIT, shape=(users, items), tol=1e-3, max_iter=sweeps, stop=note)
        seconds = time.perf_counter() - begin
    W, H = factors(users, items)
    some = np.arange(0, users, max(users // 1000, 1))
    held = pd.concat([ratings(u, u + 1, W, H, 2, 20) for u in some])
    error = held["value"] - result.predict(held["user"].to_numpy(), held["item"].to_numpy())
    times = np.diff(result.history["seconds"])
    return {
        "ratings": count,
        "users": users,
        "items": items,
        "files": len(paths),
        "seconds": seconds,
        "seconds per sweep": float(np.median(times)),
        "sweeps": result.n_iter,
        "status": result.status.name,
        "rank": result.x.rank,
        "RMSE on new ratings": float(np.sqrt(np.mean(error**2))),
        "standard deviation of the noise": NOISE,
        "largest worker, MB": max(peaks) / 2**20,
        "client, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "client before the fit, MB": before,
    }


def small(folder: Path) -> dict[str, Any]:
    """The factors in memory and on workers."""
    count, users, items = 100_000, 500, 300
    paths = write(folder, count, users, items)
    table = pd.concat([pd.read_parquet(path) for path in paths]).astype({"value": np.float64})
    observed = ell12.Observed(
        table["user"].to_numpy(), table["item"].to_numpy(), table["value"].to_numpy(), (users, items)
    )
    options = {"alpha": 20.0, "max_rank": 10, "tol": 1e-5}
    near = ell12.complete_matrix(observed, engine="als", **options)
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


def render(result: dict[str, Any]) -> str:
    title, _, about = (__doc__ or "").partition("\n")
    lines = [f"# {title}", about, f"Measured {result['date']}, load {result['load']:.1f}.", ""]
    for name in ("large", "small"):
        lines += [f"## {name.capitalize()}", "", "| what | value |", "| --- | ---: |"]
        for key, value in result[name].items():
            lines.append(f"| {key} | {f'{value:.4g}' if isinstance(value, float) else value} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--ratings", type=int, default=100_000_000)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as temporary:
        result["large"] = large(options.data or Path(temporary), options.ratings, options.sweeps)
        result["small"] = small(Path(temporary))
    (options.folder / "dask_completion.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.folder / "dask_completion.md").write_text(render(result))
    print(render(result))


if __name__ == "__main__":
    main()

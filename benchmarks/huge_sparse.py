"""Fits to text-like data with more entries than memory has room for twice.

`python benchmarks/huge_sparse.py [--size S] [--peers-size P] [--limit SECONDS] [--folder FOLDER]`, run by itself.
At size 1 the matrix is 847,000 x 359,000 with 0.1 % entries, 3e8 numbers with indices of 64 bits: 4.8 GB, made by
seed and laid into a temporary folder, from which every measurement reads it in a process of its own. Fits end at a
stationarity of 1e-4. A look is a product with all of A or its adjoint. The peak is that of the whole process.

Beside other packages, at a tenth of the entries: the l1 problem at growing accuracies, the same list for all, each
from the start; the time is that of the first whose objective lies within 1e-4, or 1e-6, of the lowest found,
relatively. A run before the first is not timed, since it compiles and loads. With an intercept for the squared
loss, without for the logistic, since liblinear would penalise it. The other packages get indices of 32 bits:
scikit-learn and celer take no other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import huge_sparse_data
import study

TOLERANCE = 1e-4
STRENGTHS = (0.1, 0.01)
TARGETS = (1e-4, 1e-6)
PLANNED = 4e9  # entries
FITS = [
    {"loss": loss, "strength": strength, "l2_weight": weight, "form": form}
    for loss, strength, weight, form in (
        ("squared", 0.1, 1.0, "csc"),
        ("squared", 0.01, 0.0, "csc"),
        ("squared", 0.01, 1.0, "csc"),
        ("squared", 0.01, 1.0, "csr"),
        ("logistic", 0.1, 0.5, "csc"),
        ("logistic", 0.01, 0.0, "csc"),
        ("logistic", 0.01, 0.5, "csc"),
    )
]
PEERS = {
    "squared": ("ell12", "scikit-learn", "celer", "skglm"),
    "logistic": ("ell12", "scikit-learn, liblinear", "scikit-learn, saga", "celer", "skglm"),
}
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=float, default=1.0, help="fraction of the entries of the fits; 0 keeps theirs"
    )
    parser.add_argument("--peers-size", type=float, default=0.1, help="the same beside other packages")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds of processor time for a method beside others"
    )
    parser.add_argument("--folder", help="where to lay the data, 16 bytes an entry; a temporary folder by default")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        import huge_sparse_methods

        task = json.loads(options.child)
        for row in huge_sparse_methods.KINDS[task["kind"]](task):
            print(json.dumps(row), flush=True)
        return
    old = study.RESULTS / "huge_sparse.json"
    kept = json.loads(old.read_text()) if old.exists() else {"settings": {}, "rows": []}
    settings, rows = kept["settings"] | {"tol": TOLERANCE}, kept["rows"]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.size:
            settings["data"] = lay_down(options.size, folder)
            tasks = [{"kind": "passes", "form": "csc"}] + [
                {"kind": "fit", "tol": TOLERANCE} | task for task in FITS
            ]
            rows = [row for row in rows if row["kind"] == "side by side"]
            rows = [row for task in tasks for row in run(task, folder)] + rows
        if options.peers_size:
            settings["data beside other packages"] = lay_down(options.peers_size, folder)
            rows = [row for row in rows if row["kind"] != "side by side"] + beside_others(folder, options.limit)
    tables = pages(rows, settings["data"], settings.get("data beside other packages"))
    study.write("huge_sparse", __doc__, settings, rows, tables, ("celer", "skglm", "numba"))


def beside_others(folder: str, limit: float) -> list[Row]:
    """All methods at all strengths, one after the other."""
    tasks = [
        {"kind": "side by side", "loss": loss, "strength": strength, "method": method}
        for loss, methods in PEERS.items()
        for strength in STRENGTHS
        for method in methods
    ]
    return [row for task in tasks for row in run(task, folder, limit)]


def lay_down(size: float, folder: str) -> Row:
    """Write the data of a size into a folder, by a process of its own; what they are."""
    child = os.fork()
    if child == 0:
        X = huge_sparse_data.text_like(size)
        y, labels = huge_sparse_data.targets(X)
        for name, part in {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "y": y,
            "labels": labels,
        }.items():
            np.save(Path(folder) / f"{name}.npy", part)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the data could not be made")
    entries = int(np.load(Path(folder) / "data.npy", mmap_mode="r").size)
    m, n = huge_sparse_data.shape_of(size)
    return {"rows": m, "columns": n, "entries": entries, "bytes": 16 * entries + 8 * (n + 1)}


def run(task: Row, folder: str, limit: float = math.inf) -> list[Row]:
    """The rows that a process of its own makes of a task, within so many seconds of processor time."""
    command = [sys.executable, __file__, "--child", json.dumps(task | {"folder": folder})]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    seconds = resource.RLIM_INFINITY if math.isinf(limit) else math.ceil(limit)

    def obey() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))

    done = subprocess.run(
        command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=obey
    )
    rows = [task | json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        stopped = done.returncode == -signal.SIGXCPU
        note = f"stopped after {limit:.0f} s" if stopped else f"ended with status {done.returncode}"
        rows.append(task | {"note": note})
    for row in rows:
        print(row, flush=True)
    return rows


def pages(rows: list[Row], about: Row, beside: Row) -> list[str]:
    """The tables of the page."""
    fits = [row for row in rows if row["kind"] == "fit"]
    header = (
        "fit",
        "strength",
        "l2_weight",
        "time",
        "processor",
        "looks",
        "peak",
        "of the data",
        "features",
        "stationarity",
    )
    parts = [f"**{described(about)}.**", study.table(header, [fit_cells(row, about) for row in fits])]
    others = [row for row in rows if row["kind"] == "side by side"]
    if others:
        header = (
            "loss, strength",
            "method",
            *(f"to {target:g}" for target in TARGETS),
            "lowest objective",
            "peak",
        )
        parts += [
            f"**Beside other packages: {described(beside)}.** Processor time.",
            study.table(header, compared(others)),
        ]
    return [*parts, *plan(rows, about)]


def described(about: Row) -> str:
    size = f"{about['rows']:,} x {about['columns']:,}"
    return f"{size}, {about['entries']:.3g} entries, {about['bytes'] / 1e9:.3g} GB"


def fit_cells(row: Row, about: Row) -> list[str]:
    name = f"{row['loss']}, {row['form'].upper()}"
    if "note" in row:
        return [name, f"{row['strength']:g}", f"{row['l2_weight']:g}", row["note"], *[""] * 6]
    return [
        name,
        f"{row['strength']:g}",
        f"{row['l2_weight']:g}",
        f"{row['seconds']:.1f} s",
        f"{row['cpu_seconds']:.1f} s",
        str(row["looks"] + row["forward"]),
        f"{row['peak_bytes'] / 1e9:.2f} GB",
        f"{row['peak_bytes'] / about['bytes']:.2f}",
        str(row["features"]),
        f"{row['stationarity']:.1e}" + ("" if row["status"] == "CONVERGED" else f" ({row['status']})"),
    ]


def compared(rows: list[Row]) -> list[list[str]]:
    """A line for each method: the time of its first setting that is accurate enough."""
    lines = []
    for loss, methods in PEERS.items():
        for strength in STRENGTHS:
            of = [row for row in rows if (row["loss"], row["strength"]) == (loss, strength)]
            best = min((row["objective"] for row in of if "objective" in row), default=np.nan)
            for method in methods:
                own = [row for row in of if row["method"] == method]
                found = [row for row in own if "objective" in row]
                notes = "; ".join(row["note"] for row in own if "note" in row)
                line = [f"{loss}, {strength:g}", method]
                for target in TARGETS:
                    good = [row["cpu_seconds"] for row in found if row["objective"] <= best * (1 + target)]
                    line.append(f"{good[0]:.2g} s" if good else notes or "not reached")
                least = min((row["objective"] for row in found), default=np.nan)
                high = max((row["peak_bytes"] for row in found), default=np.nan)
                lines.append([*line, f"{least:.9f}", f"{high / 1e9:.2f} GB"])
    return lines


def plan(rows: list[Row], about: Row) -> list[str]:
    """What a fit to 4e9 entries would take, by what was measured."""
    cost = {row["form"]: row for row in rows if row["kind"] == "passes"}["csc"]
    fits = [row for row in rows if row["kind"] == "fit" and "seconds" in row]
    factor, data = PLANNED / about["entries"], 16 * PLANNED / 1e9
    look = cost["look"] * PLANNED
    lines = []
    for loss in PEERS:
        row = max((row for row in fits if row["loss"] == loss), key=lambda row: row["cpu_seconds"])
        inside = row["cpu_seconds"] - row["looks"] * cost["look"] * about["entries"]
        both = [f"{(row['looks'] * look + factor**power * inside) / 60:.0f} min" for power in (1, 1.5)]
        lines.append([loss, str(row["looks"]), f"{row['looks'] * look / 60:.1f} min", *both])
    looks = max(row["looks"] for row in fits)
    beyond = max(row["peak_bytes"] - row["before_bytes"] for row in fits) / about["bytes"]
    costs = {
        "a look, for each entry": "look",
        "gathering columns, for each of their entries": "gather",
        "turning these into rows, for each of their entries": "by_rows",
        "a Gram matrix, for each pair of entries of a row": "gram",
    }
    return [
        f"## A plan for {PLANNED:.0e} entries",
        "What the passes cost here, on one core, with the columns as CSC:",
        study.table(("pass", "nanoseconds"), [[what, f"{1e9 * cost[name]:.1f}"] for what, name in costs.items()]),
        f"The data take 16 bytes an entry, {data:.0f} GB. With as many looks, the slowest fit of each loss takes"
        " the following, on one core and all in memory: if the rest grows with the entries (more documents), or"
        " with their power 1.5 (longer documents too: more pairs meet in a row).",
        study.table(("loss", "looks", "of it in looks", "in all", "in all, longer documents"), lines),
        f"*In one memory:* the fits took at most {beyond:.2f} times the data beyond them,"
        f" {(1 + beyond) * data:.0f} GB in all.",
        "*Out of core, two cores:* the columns stay on disk (`ell12.Columns`), the fit takes"
        f" {beyond * data:.0f} GB. Each of {looks} looks reads {data:.0f} GB: {data / 60:.1f} minutes at 1 GB a"
        " second,"
        f" {looks * data / 60:.0f} minutes in all.",
        f"*On N workers of Dask,* each with {data:.0f}/N GB of columns: a look takes {look:.0f}/N s of computing."
        " The working set is solved in one process, whose time does not shrink.",
    ]


if __name__ == "__main__":
    main()

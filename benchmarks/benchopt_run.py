"""The paper's problem in benchopt: objective, data and solvers, run by ``benchopt run``.

Each solver starts at zero and ends when the first-order condition holds to 1e-3 of alpha (FISTA's: that of its
convex problem), or at the limits. Evaluations are benchopt's, after iterations that grow by half, so that the last
one may lie beyond what was needed. A row is one solver on one problem; times are wall times of benchopt. Excess is
by which fraction an objective lies above the lowest that any solver found: the problem is not convex, and methods
may end in different minima.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchopt_folder import SOLVERS, export_benchopt
from study import table, write

LIMITS = ("--max-runs", "60", "--timeout", "60")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100, help="rows of A; the paper has 500")
    parser.add_argument("--seeds", type=int, default=1, help="problems of each kind")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        export_benchopt(Path(name) / "l12")
        rows = run(Path(name) / "l12", wanted.samples, wanted.seeds)
    lacking = {solver.name for solver in SOLVERS} - {row["solver"] for row in rows}
    if lacking:
        sys.exit(f"benchopt ran without {', '.join(sorted(lacking))}")
    write("benchopt_run", __doc__, vars(wanted) | {"limits": LIMITS}, rows, tables(rows), packages=["benchopt"])


def run(folder: Path, n_samples: int, n_seeds: int) -> list[dict[str, Any]]:
    """Run the benchmark; the last line of every curve."""
    data = f"paper[n_samples={n_samples},seed={list(range(n_seeds))}]"
    command = [sys.executable, "-m", "benchopt", "run", str(folder), "-d", data, "--no-html", "--no-plot", *LIMITS]
    subprocess.run(command, check=True)
    import pandas as pd

    (file,) = (folder / "outputs").glob("*.parquet")
    problem = ["p_dataset_setup", "p_dataset_seed", "p_obj_i"]
    found = pd.read_parquet(file).groupby([*problem, "solver_name"]).last().reset_index()
    names = {"p_dataset_setup": "setup", "p_dataset_seed": "seed", "p_obj_i": "i", "solver_name": "solver"}
    names |= {"stop_val": "n_iter", "time": "seconds"}
    metrics = [name for name in found if name.startswith("objective_") and name != "objective_name"]
    names |= {name: name.removeprefix("objective_") for name in metrics}
    found = found[list(names)].rename(columns=names)
    found["excess"] = found["value"] / found.groupby(["setup", "seed", "i"])["value"].transform("min") - 1
    return found.to_dict("records")


def tables(rows: list[dict[str, Any]]) -> Iterable[str]:
    """Medians over setups and seeds, for each solver and strength."""
    for setup in dict.fromkeys(row["setup"] for row in rows):
        lines = []
        for solver in SOLVERS:
            mine = [row for row in rows if (row["setup"], row["solver"]) == (setup, solver.name)]
            for i in sorted({row["i"] for row in mine}):
                here = [row for row in mine if row["i"] == i]
                lines.append([solver.name, str(i), *cells(here, "" if solver.l2_weight else "_l1")])
        header = ["solver", "i", "seconds", "iterations", "excess", "stationarity", "relative error"]
        yield f"## {setup}\n\n" + table(header, lines)


def cells(rows: list[dict[str, Any]], problem: str) -> list[str]:
    """The medians; stationarity is that of the solver's own problem."""
    middle = {
        name: statistics.median(row[name] for row in rows) for name in rows[0] if name not in ("setup", "solver")
    }
    return [
        f"{middle['seconds']:.3g}",
        f"{middle['n_iter']:.0f}",
        "" if problem else f"{middle['excess']:.1e}",
        f"{middle['stationarity' + problem]:.1e}",
        f"{middle['relative_error']:.4f}",
    ]


if __name__ == "__main__":
    main()

"""Measure ell12 side by side with its peers: `python benchmarks/run.py [names...]`, by default all.

Builds the peers' environment if it is missing, runs each benchmark there in a process of its own with one
thread, and writes results/NAME.json and, rendered from it, results/NAME.md.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import page
import summary

HERE = Path(__file__).resolve().parent
PEERS, RESULTS, REQUIREMENTS = HERE / ".peers", HERE / "results", HERE / "peers.txt"
PYTHON = PEERS / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
# Those that are run side by side with peers by one command. Other studies are run by themselves: see README.md.
BENCHMARKS = (
    "completion",
    "groups",
    "growth",
    "newton",
    "nmapg",
    "prox",
    "race",
    "race_lasso",
    "ratings",
    "restoration_memory",
    "startup",
)
ONE_THREAD = {
    **dict.fromkeys(
        (
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "NUMBA_NUM_THREADS",
            "VECLIB_MAXIMUM_THREADS",
        ),
        "1",
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    prepare_peers()
    failed = [name for name in names or BENCHMARKS if not run(name)]
    print(f"the page: {page.write(RESULTS)}")
    summary.write()
    if failed:
        print(f"failed, results left as they were: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


def prepare_peers() -> None:
    """Build benchmarks/.peers; a peer that cannot be installed is left out, and tried again next time."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + (HERE.parent / "pyproject.toml").read_bytes()).hexdigest()
    stamp = PEERS / "installed"
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    print("preparing the peers' environment", flush=True)
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", PEERS], check=True)
    if not install("--editable", HERE.parent):
        sys.exit("ell12 itself could not be installed")
    missing = []
    for line in REQUIREMENTS.read_text().splitlines():
        name, _, about = (part.strip() for part in line.partition("#"))
        alone = ["--no-deps"] if about.startswith("alone") else []
        if name and not install(*alone, name):
            missing.append(name)
    if missing:
        print(f"could not be installed: {', '.join(missing)}", file=sys.stderr)
    else:
        stamp.write_text(wanted)


def install(*what: object) -> bool:
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--constraint", REQUIREMENTS, *what]
    return subprocess.run(command, check=False).returncode == 0


def run(name: str) -> bool:
    """Measure one benchmark and write its results; False if it failed."""
    print(name, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "result.json"
        command = [PYTHON, HERE / "child.py", name, output]
        if subprocess.run(command, env=os.environ | ONE_THREAD, check=False).returncode != 0:
            return False
        text = output.read_text()
    RESULTS.mkdir(exist_ok=True)
    write(RESULTS / f"{name}.json", text)
    write(RESULTS / f"{name}.md", renderer(name)(json.loads(text)))
    return True


def write(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees half of it."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text)
    part.replace(path)


def renderer(name: str) -> Callable[[dict], str]:
    """How a benchmark shows its rows, if it says so; else as the table below."""
    return getattr(importlib.import_module(name), "render", render)


def render(result: dict) -> str:
    """Return the Markdown page of a result."""
    title, _, about = result["about"].partition("\n")
    header = [
        "problem",
        "method",
        "version",
        "time",
        f"multiple of {result['baseline']}",
        "objective",
        "note",
    ]
    versions = result["versions"]
    where = f"Measured {result['date']} on {result['processor']}, one thread, Python {result['python']}, "
    where += ", ".join(f"{name} {versions[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    if result["load"] is not None:
        where += f"; load of the machine's {result['processors']} processors before: {result['load']:.1f}"
    where += ". Times are medians of processor time"
    lines = [f"# {title.rstrip('.')}", "", about.strip(), "", where + ".", "", table_line(header)]
    lines += [table_line(["---", "---", "---", "---:", "---:", "---:", "---"])]
    lines += [table_line(cells(row)) for row in result["rows"]]
    return "\n".join(lines) + "\n"


def cells(row: dict) -> list[str]:
    seconds, multiple, objective = row["seconds"], row["multiple"], row["objective"]
    return [
        row["problem"],
        row["method"],
        row["version"],
        "" if seconds is None else with_unit(seconds),
        "" if multiple is None else f"{multiple:.3g}",
        "" if objective is None else f"{objective:.9g}",
        row["note"],
    ]


def table_line(texts: list[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |"


def with_unit(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

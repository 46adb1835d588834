"""Measure ell12 side by side with its peers: `python benchmarks/run.py [names...]`, by default all.

Builds the peers' environment if it is missing and runs each benchmark there, in a process of its own, with one
thread on one processor. Each writes results/NAME.json and results/NAME.md.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import summary

HERE = Path(__file__).resolve().parent
PEERS, REQUIREMENTS = HERE / ".peers", HERE / "peers.txt"
PYTHON = PEERS / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
# Those that need neither a GPU nor hours, in the order in which they run.
BENCHMARKS = (
    "prox",
    "startup",
    "scaling",
    "race",
    "race_sparse",
    "real_data",
    "completion_search",
    "pictures_race",
)
THREADS = ("OPENBLAS", "OMP", "MKL", "NUMBA", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_THREADS" if "MAX" in name else f"{name}_NUM_THREADS": "1" for name in THREADS} | {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    prepare_peers()
    failed = [name for name in names or BENCHMARKS if not run(name)]
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
    """Measure one benchmark; False if it failed."""
    print(name, flush=True)
    pinned = ["taskset", "-c", "0"] if sys.platform == "linux" else []  # XLA sizes its threads by the processors
    command = [*pinned, PYTHON, HERE / f"{name}.py"]
    return subprocess.run(command, env=os.environ | ONE_THREAD, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

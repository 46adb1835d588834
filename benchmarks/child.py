"""Run one benchmark here: `python child.py NAME FILE` writes its rows and where they were measured."""

from __future__ import annotations

import os

if hasattr(os, "sched_setaffinity"):  # XLA sizes its threads by the processors it may use, so it may use one
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import importlib
import json
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def measure(name: str) -> dict:
    """Return the whole result of a benchmark as plain data."""
    module = importlib.import_module(name)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    rows = []
    for row in module.rows():
        print(f"  {row.problem}: {row.method}", flush=True)
        rows.append(asdict(row))
    return {
        "name": name,
        "about": module.__doc__,
        "baseline": module.BASELINE,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": load,  # how busy the machine was before: above a fraction of its processors, distrust the times
        "python": platform.python_version(),
        "versions": dict(sorted((d.name, d.version) for d in distributions())),
        "rows": rows,
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(sys.argv[1]), indent=1) + "\n")

"""Run one benchmark here: `python child.py NAME FILE` writes its rows and where they were measured."""

from __future__ import annotations

import os

if hasattr(os, "sched_setaffinity"):  # XLA sizes its threads by the processors it may use, so it may use one
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import importlib
import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any


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
    return describe(name, module.__doc__ or "", module.rows()) | {"baseline": module.BASELINE}


def describe(name: str, about: str, rows: Iterable[Any], limit: float | None = None) -> dict:
    """Rows, and where and when they were measured."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    found = []
    for row in rows:
        print(f"  {row.problem}: {row.method}", file=sys.stderr, flush=True)
        found.append(asdict(row))
    return {
        "name": name,
        "about": about,
        "limit": limit,  # seconds of a run, where it is not the benchmark's own
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": load,  # how busy the machine was before: above a fraction of its processors, distrust the times
        "python": platform.python_version(),
        "versions": dict(sorted((d.name, d.version) for d in distributions())),
        "rows": found,
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(sys.argv[1]), indent=1) + "\n")

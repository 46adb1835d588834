"""What all benchmarks share: fair timing, and results on disk with the command and the commit that made them."""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ell12

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn")
SHORTEST_SAMPLE = 1e-3  # seconds; shorter calls are repeated within a sample, or the clock would be measured
# The process's time on its one processor, all its threads together. On a quiet machine it is the wall time; on a
# busy one wall time doubles long calls and spares those that fit between two interruptions, such as a copy.
CLOCK = time.process_time
FEWEST_ROUNDS, MOST_ROUNDS = 5, 51
LONG_CALL = 0.1  # seconds; a longer call warms up by itself


@dataclass(frozen=True)
class Row:
    """One line of a table; None is what was not measured, and then the note says why."""

    problem: str
    method: str
    version: str
    seconds: float | None = None
    multiple: float | None = None  # of the time of the benchmark's BASELINE
    objective: float | None = None
    note: str = ""
    accuracy: float | None = None  # stationarity or duality gap, where a benchmark measures it
    measure: str = ""  # which of them


def median_seconds(calls: Mapping[str, Callable[[], Any]], budget: float = 3.0) -> dict[str, float]:
    """Return the median processor time of each call, in seconds.

    A round takes one sample of every call, so that slow moments of the machine fall on all alike. Calls that
    are not long follow one that is not timed, so that none pays for what its neighbour left in the cache. About
    `budget` seconds in all, if five rounds fit in.
    """
    first = {name: min(timeit.repeat(call, timer=CLOCK, number=1, repeat=3)) for name, call in calls.items()}
    number = {name: max(1, math.ceil(SHORTEST_SAMPLE / seconds)) for name, seconds in first.items()}
    one_round = sum((number[name] + (first[name] < LONG_CALL)) * first[name] for name in calls)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(min(max(round(budget / one_round), FEWEST_ROUNDS), MOST_ROUNDS)):
        for name, call in calls.items():
            if first[name] < LONG_CALL:
                call()
            samples[name].append(timeit.timeit(call, timer=CLOCK, number=number[name]) / number[name])
    return {name: statistics.median(times) for name, times in samples.items()}


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load(module: str) -> tuple[Any, str]:
    """Return a peer's module, or None and the reason why there is none."""
    try:
        return importlib.import_module(module), ""
    except Exception as error:  # a peer may fail in any way; the table says how, and the rest goes on
        return None, f"not measured: {type(error).__name__}: {error}"


def commit() -> str:
    """The commit of the sources that are measured, with a + where files have changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(RESULTS.parent), *words]
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", ".", ":!results")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(changed)


def medians(calls: Mapping[str, Callable[[], Any]], rounds: int = 7) -> dict[str, float]:
    """The median processor time of each call in seconds: the calls take turns, after one that is not timed."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            samples[name].append(time.process_time() - begin)
    return {name: statistics.median(times) for name, times in samples.items()}


def replace(path: Path, text: str) -> None:
    """Write a file, all of it or nothing."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def write(
    name: str,
    about: str,
    settings: dict[str, Any],
    rows: list[dict[str, Any]],
    tables: Iterable[str],
    packages: Sequence[str] = (),
) -> None:
    """Write results/NAME.json with everything, and results/NAME.md with the tables; ``packages`` are peers."""
    result = {
        "name": name,
        "about": about,
        "command": " ".join(["python", f"benchmarks/{name}.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {"ell12": ell12.__version__}
        | {package: version(package) for package in (*PACKAGES, *packages)},
        "settings": settings,
        "rows": rows,
    }
    RESULTS.mkdir(exist_ok=True)
    replace(RESULTS / f"{name}.json", as_text(result))
    replace(RESULTS / f"{name}.md", render(result, tables))
    print(f"wrote {RESULTS.name}/{name}.json and {name}.md")


def as_text(result: dict[str, Any]) -> str:
    """The result as JSON, each of its rows in one line."""
    head = json.dumps(result | {"rows": []}, indent=1)
    return head.replace('"rows": []', '"rows": [\n' + ",\n".join(map(json.dumps, result["rows"])) + "\n]") + "\n"


def render(result: dict[str, Any], tables: Iterable[str]) -> str:
    """The Markdown page of a result."""
    title, _, about = result["about"].partition("\n")
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    when = f"on {result['date'][:10]} at commit {result['commit']}"
    made = f"Made by `{result['command']}` {when}, Python {result['python']}, {versions}."
    return "\n\n".join([f"# {title.rstrip('.')}", about.strip(), made, *tables]) + "\n"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *lines))


def write_rows(name: str, about: str, rows: Iterable[Row], baseline: str) -> None:
    """Measure and write a benchmark whose lines are problems and methods."""
    load, found = os.getloadavg()[0], []
    for row in rows:
        print(f"{row.problem}: {row.method}", flush=True)
        found.append(row)
    header = ["problem", "method", "version", "time", f"multiple of {baseline}", "objective", "note"]
    settings = {"baseline": baseline, "load": load, "processor": processor()}
    where = f"{processor()}, one thread; load before: {load:.1f}. Times are medians of processor time."
    write(name, about, settings, [asdict(row) for row in found], [where, table(header, map(cells, found))])


def cells(row: Row) -> list[str]:
    """A row as the cells of a Markdown table."""
    return [
        row.problem,
        row.method,
        row.version,
        "" if row.seconds is None else with_unit(row.seconds),
        "" if row.multiple is None else f"{row.multiple:.3g}",
        "" if row.objective is None else f"{row.objective:.9g}",
        row.note.replace("|", "\\|").replace("\n", " "),
    ]


def with_unit(seconds: float) -> str:
    """A time with three digits in its usual unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

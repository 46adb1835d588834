"""What all benchmarks share: fair timing, and results on disk with the command and the commit that made them."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ell12

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn")


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

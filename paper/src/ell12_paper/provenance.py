"""Where rows come from: ``provenance.json`` beside them says what measured them, and holds a hash of every file.

It names no host, no user and no path, so that it can be published as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import ell12
from ell12 import __version__
from ell12.files import write_atomically

FILE, FORMAT = "provenance.json", 1
RUN_FILE = "run.json"
MEASURED = ("rows.jsonl", RUN_FILE)  # what a run writes
PAGE_FILES = ("index.html", "results.csv", "tables.md")  # what is made from the rows
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "scikit-image", "array-api-compat", "matplotlib", "jinja2")

Facts = dict[str, Any]


def command_line(
    names: Sequence[str], preset: str, seed: int, jobs: int, repeats: int | None, only: Sequence[str] = ()
) -> list[str]:
    """The words of a command that measures these trials, but for the folder that they go to.

    Examples
    --------
    >>> from ell12_paper.provenance import command_line
    >>> " ".join(command_line(["prox"], "quick", 0, 2, None))
    'ell12-paper run prox --preset quick --seed 0 --jobs 2'
    """
    options = ["--preset", preset, "--seed", str(seed), "--jobs", str(jobs)]
    options += [] if repeats is None else ["--repeats", str(repeats)]
    return ["ell12-paper", "run", *names, *options, *(word for wish in only for word in ("--only", wish))]


def is_wished(settings: Mapping[str, Any], wish: str) -> bool:
    """Whether settings have one of the values that a wish names.

    Examples
    --------
    >>> from ell12_paper.provenance import is_wished
    >>> is_wished({"i": 2, "image": "Sea"}, "i=1,2"), is_wished({"image": "Sea"}, "i=1,2")
    (True, False)
    """
    name, _, values = wish.partition("=")
    return name in settings and str(settings[name]) in values.split(",")


def is_asked(run: Mapping[str, Any], experiment: str, settings: Mapping[str, Any]) -> bool:
    """Whether a run was asked for a trial.

    Examples
    --------
    >>> from ell12_paper.provenance import is_asked
    >>> run = {"experiments": ["prox"], "repeats": 2, "only": ["d=10,100"]}
    >>> is_asked(run, "prox", {"d": 10, "repeat": 1}), is_asked(run, "prox", {"d": 10, "repeat": 2})
    (True, False)
    """
    names, repeats, only = (run.get(name) for name in ("experiments", "repeats", "only"))
    if (names and experiment not in names) or (isinstance(repeats, int) and settings.get("repeat", 0) >= repeats):
        return False
    wishes = only if isinstance(only, list) else []
    return all(isinstance(wish, str) and is_wished(settings, wish) for wish in wishes)


def run_of(row: Mapping[str, Any], runs: Iterable[Facts]) -> Facts | None:
    """The run that measured a row: the last one begun before it of those that were asked for its trial."""
    begun = [
        run
        for run in runs
        if run["started"] <= row["environment"]["date"] and is_asked(run, row["experiment"], row["settings"])
    ]
    return max(begun, key=lambda run: str(run["started"]), default=None)


def begin(
    folder: Path,
    names: Sequence[str],
    preset: str,
    seed: int,
    jobs: int,
    repeats: int | None,
    n_rows: int,
    only: Sequence[str] = (),
) -> None:
    """Write down that a run begins with so many rows. They will grow, and have no hash until it is sealed."""
    known = (read(folder) if n_rows else None) or {"format": FORMAT, "runs": [], "files": {}}
    run: Facts = {
        "command": shlex.join(command_line(names, preset, seed, jobs, repeats, only)),
        "experiments": list(names),
        "preset": preset,
        "seed": seed,
        "repeats": repeats,
        "only": list(only),
        "rows_before": n_rows,
        "started": now(),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
    }
    kept = {name: entry for name, entry in known["files"].items() if name not in MEASURED}
    write(folder, known | {"runs": [*known["runs"], run], "files": kept})


def seal(folder: Path, names: Iterable[str], **facts: Any) -> None:
    """Keep the hashes of these files, as far as they are there, and facts that belong to them.

    A folder without provenance stays without: nobody knows any more who measured its rows.
    """
    known = read(folder)
    if known is None:
        return
    files = {name: digest(folder / name) for name in names if (folder / name).is_file()}
    write(folder, known | facts | {"files": known["files"] | files})


def is_sealed(folder: Path) -> bool:
    """Whether the last run in a folder came to its end."""
    known = read(folder)
    return known is not None and set(MEASURED) <= set(known["files"])


def read(folder: Path) -> Facts | None:
    """The provenance of a folder; None where there is none, or none that can be read."""
    try:
        found = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_sound = isinstance(found, dict) and found.get("format") == FORMAT
    is_sound = is_sound and _is_list_of(found.get("runs"), dict) and isinstance(found.get("files"), dict)
    return found if is_sound and all(isinstance(entry, dict) for entry in found["files"].values()) else None


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(entry, kind) for entry in value)


def write(folder: Path, facts: Facts) -> None:
    """Replace the provenance of a folder: all of it, or nothing."""
    write_atomically(folder / FILE, (json.dumps(facts, indent=2) + "\n").encode())


def digest(path: Path) -> dict[str, Any]:
    """The SHA-256 and the size of a file."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


# What a measurement depends on besides its settings


def environment() -> dict[str, str | None]:
    """Versions, commit and machine, in short, as every row has them."""
    packages = {name: _version(name) for name in ("numpy", "scipy", "numba")}
    where = {"machine": platform.machine(), "system": platform.platform(), "cpu": _cpu()}
    return {"python": platform.python_version(), **packages, "ell12": __version__, "commit": commit(), **where}


def versions() -> dict[str, str | None]:
    """Python, this package, and what computes or draws."""
    found = {"python": platform.python_version(), "ell12": __version__}
    return found | {name: _version(name) for name in PACKAGES} | {"blas": _blas()}


def machine() -> Facts:
    """The processor, how many of its cores can be used, the memory and the operating system."""
    from ell12.operators.reading import processors  # only now, since it loads NumPy

    return {
        "processor": _cpu(),
        "architecture": platform.machine(),
        "cores": processors(),
        "memory_gb": _memory_gb(),
        "system": platform.platform(),
    }


@cache
def commit() -> str | None:
    """The commit of this source, with a plus where files of it have changed since; None outside its repository."""
    # Somebody's project may hold an environment with ell12 in it: its commit is not ours, as the first call tells.
    package = Path(ell12.__file__).parent
    if _git(package, "ls-files", "--error-unmatch", "--", "__init__.py") is None:
        return None
    name, changes = _git(package, "rev-parse", "HEAD"), _git(package, "status", "--porcelain", "--", ".")
    return name and name + "+" * bool(changes)


def _git(folder: Path, *words: str) -> str | None:
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10, env=settings)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _blas() -> str | None:
    """The library that multiplies matrices: its kernels decide how sums are rounded."""
    import numpy

    known = numpy.show_config(mode="dicts")
    found = known["Build Dependencies"]["blas"] if isinstance(known, dict) else {}
    return f"{found['name']} {found['version']}" if {"name", "version"} <= found.keys() else None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_gb() -> float | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    return round(size / 1e9, 1)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

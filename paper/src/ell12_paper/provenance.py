"""Where rows come from: ``provenance.json`` next to them says what measured them, and holds a hash of every file.

It names no host, no user and no path, so that it can be published as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import ell12
from ell12_paper.rows import FILE as ROWS
from ell12_paper.rows import Row, write
from ell12_paper.studies.images import STAND_INS

FILE = "provenance.json"


def begin(folder: Path, asked: Row, n_rows: int) -> None:
    """Write down that a run of these trials begins with so many rows; they have no hash until it is sealed."""
    known = (read(folder) if n_rows else None) or {"format": 1, "runs": []}
    asked = asked | {"rows_before": n_rows, "started": now(), "commit": commit()}
    _save(folder, {**known, "runs": [*known["runs"], asked], "files": {}})


def seal(folder: Path) -> None:
    """Keep the hash of the rows. A folder without provenance stays without: nobody knows who measured them."""
    known = read(folder)
    if known is not None:
        _save(folder, known | {"files": {ROWS: {"sha256": digest(folder / ROWS)}}})


def read(folder: Path) -> Row | None:
    """The provenance of a folder; None where there is none, or none that can be read."""
    try:
        found = json.loads((folder / FILE).read_bytes())
        runs, files = found["runs"], found["files"]
        is_sound = runs and all({"preset", "seed", "started"} <= set(run) for run in runs)
        return found if is_sound and isinstance(files, dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def images_of(run: Row) -> tuple[str, ...]:
    """The names of the photographs of a run."""
    return tuple(run.get("images") or STAND_INS)


def _save(folder: Path, facts: Row) -> None:
    write(folder / FILE, json.dumps(facts, indent=2) + "\n")


def digest(path: Path) -> str:
    """The SHA-256 of a file; nothing where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def is_asked(run: Row, experiment: str, settings: Row) -> bool:
    """Whether a run was asked for a trial.

    Examples
    --------
    >>> from ell12_paper.provenance import is_asked
    >>> run = {"experiments": ["prox"], "repeats": 2, "only": ["d=10,100"]}
    >>> is_asked(run, "prox", {"d": 10, "repeat": 1}), is_asked(run, "prox", {"d": 10, "repeat": 2})
    (True, False)
    """
    names, repeats, only = run.get("experiments"), run.get("repeats"), run.get("only") or ()
    if (names and experiment not in names) or (isinstance(repeats, int) and settings.get("repeat", 0) >= repeats):
        return False
    wishes = (wish.partition("=") for wish in only)
    return all(name in settings and str(settings[name]) in values.split(",") for name, _, values in wishes)


# What a measurement depends on besides its settings


def environment() -> Row:
    """Versions, commit and machine, in short, as every row has them."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    where = {"machine": platform.machine(), "system": platform.platform(), "cpu": _cpu()}
    return {"python": platform.python_version(), "ell12": ell12.__version__, "commit": commit()} | packages | where


@cache
def commit() -> str | None:
    """The commit of ell12's source, with a plus where files have changed since; None outside its repository."""
    package = Path(ell12.__file__).parent
    is_ours = _git(package, "ls-files", "--error-unmatch", "--", "__init__.py")
    name = is_ours and _git(package, "rev-parse", "HEAD")
    changes = _git(package, "status", "--porcelain", "--", package, Path(__file__).parent)
    return name and name + "+" * bool(changes)


def _git(folder: Path, *words: str | Path) -> str | None:
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *map(str, words)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, env=settings).stdout.strip()
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")

"""Rows: one line of JSON for each finished trial, with a check that a damaged line fails."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

FILE = "rows.jsonl"
FIELDS = ("key", "experiment", "settings", "results", "environment", "check")


def make_row(experiment: str, settings: Row, results: Row, environment: Row) -> Row:
    """A complete row; numbers that are not finite become null.

    Examples
    --------
    >>> from ell12_paper.rows import make_row
    >>> row = make_row("prox", {"d": 10}, {"value": float("nan")}, {})
    >>> row["key"], row["results"]
    ('prox {"d":10}', {'value': None})
    """
    key, found = key_of(experiment, settings), finite(results)
    row: Row = dict(zip(FIELDS[:-1], (key, experiment, settings, found, environment), strict=True))
    return row | {"check": _check(row)}


def key_of(experiment: str, settings: Row) -> str:
    """What names a trial: its experiment and its settings, whatever their order."""
    return f"{experiment} {_compact(settings)}"


def finite(value: Any) -> Any:
    """The same nest of dictionaries and lists with None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_rows(folder: Path) -> tuple[list[Row], list[str]]:
    """The sound rows of a folder, the last of each trial, and a sentence for each damaged line.

    A line is damaged when it has no end, is no JSON, lacks a field or fails its check: its trial is to be redone.
    """
    path = Path(folder) / FILE
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    found = [_parse(line) for line in lines]
    damaged = [f"line {number} of {path} is damaged" for number, row in enumerate(found, 1) if row is None]
    return list({row["key"]: row for row in found if row is not None}.values()), damaged


def append_row(folder: Path, row: Row) -> None:
    """Add a row at the end of the file by one write, and wait until it is on disk."""
    with open(folder / FILE, "ab", buffering=0) as file:
        file.write(_line(row))
        os.fsync(file.fileno())


def rewrite_rows(folder: Path, rows: Iterable[Row]) -> None:
    """Replace the file by one that holds these rows."""
    write(folder / FILE, b"".join(map(_line, rows)))


def write(path: Path, content: bytes | str) -> None:
    """Replace a file: all of it, or nothing."""
    new = path.with_name(f".{path.name}.part")
    new.write_bytes(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
        is_sound = line.endswith(b"\n") and isinstance(row, dict) and set(row) == set(FIELDS)
        is_sound = is_sound and row["check"] == _check({name: row[name] for name in FIELDS[:-1]})
        return row if is_sound and row["key"] == key_of(row["experiment"], row["settings"]) else None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, nested without end, or a number that is not finite
        return None


def _check(row: Row) -> str:
    return hashlib.sha1(_compact(row).encode(), usedforsecurity=False).hexdigest()[:12]


def _line(row: Row) -> bytes:
    return (json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))

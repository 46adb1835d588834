"""Rows on disk: one finished trial is one line of JSON in ``rows.jsonl``, written whole or noticed as damaged.

A row has ``key`` (which trial it is), ``experiment``, ``settings``, ``results``, ``environment`` and ``check``, a
short hash of all the rest.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ell12.files import write_atomically

Row = dict[str, Any]

FILE = "rows.jsonl"
DEEPEST_NEST = 20  # of lists and dictionaries inside each other; our rows have at most five
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
    row: Row = {
        "key": key_of(experiment, settings),
        "experiment": experiment,
        "settings": settings,
        "results": finite(results),
        "environment": environment,
    }
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


def read_rows(folder: str | os.PathLike[str]) -> tuple[list[Row], list[str]]:
    """The sound rows of a folder in the order of the file, and a sentence for each damaged line.

    A line is damaged when it has no end, is no JSON, lacks a field or fails its check: its trial is to be redone.
    A folder without the file has no rows.
    """
    path = Path(folder) / FILE
    rows, damaged = parse_rows(_lines(path), str(path))
    return list({row["key"]: row for row in rows}.values()), damaged


def parse_rows(lines: Iterable[bytes], name: str) -> tuple[list[Row], list[str]]:
    """The sound rows among lines of a file of this name, doubles included, and a sentence for each damaged one."""
    rows, damaged = [], []
    for number, line in enumerate(lines, start=1):
        fault = "is cut off" if not line.endswith(b"\n") else None
        row = None if fault else _parse(line)
        if row is None:
            damaged.append(f"line {number} of {name} {fault or 'is damaged'}")
        else:
            rows.append(row)
    return rows, damaged


def append_row(descriptor: int, row: Row) -> None:
    """Add a row at the end of an open file and wait until it is on disk.

    The line is written by one call, so that a killed process leaves a whole line or a damaged last one.
    """
    line = _line(row)
    if os.write(descriptor, line) != len(line):
        raise OSError("a row could be written in part only: is the disk full?")
    os.fsync(descriptor)


def rewrite_rows(folder: str | os.PathLike[str], rows: Iterable[Row]) -> None:
    """Replace the file by one that holds these rows: all of it, or nothing."""
    write_atomically(Path(folder) / FILE, b"".join(_line(row) for row in rows))


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines(keepends=True)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _parse(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
        if not isinstance(row, dict) or set(row) != set(FIELDS) or _is_deeper(row, DEEPEST_NEST):
            return None
        return row if row["check"] == _check({name: row[name] for name in FIELDS[:-1]}) else None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, nested without end, or a number that is not finite
        return None


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(entry, levels - 1) for entry in inner)


def _check(row: Row) -> str:
    return hashlib.sha1(_compact(row).encode(), usedforsecurity=False).hexdigest()[:12]


def _line(row: Row) -> bytes:
    return (json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))

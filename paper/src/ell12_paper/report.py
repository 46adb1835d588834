"""The report: rows become one HTML page, one table of all trials and the page's tables as Markdown.

Everything is computed from the rows on disk; the paper's printed figures come from ``paper.json``. What each
experiment shows is in the ``report`` of its folder, which offers ``verdicts(rows)`` and ``section(rows)``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ell12.files import write_atomically
from ell12.wording import duration
from ell12_paper import EXPERIMENTS, exports
from ell12_paper.findings import Section, Verdict, claims_of, counted, paper, tally
from ell12_paper.rows import Row, read_rows

PAGE, TABLE_OF_TRIALS, TABLES = "index.html", "results.csv", "tables.md"


def report(out: str | os.PathLike[str]) -> Path:
    """Write the page, the table of trials and the Markdown tables of a folder of rows; the page's path.

    Raises
    ------
    FileNotFoundError
        If the folder holds no rows.
    """
    folder = Path(out)
    rows, damaged = _read(folder)
    sections, rows = _with_lines(sections_of(rows), rows)
    entries = facts(rows, run_facts(folder))
    page = _page(sections, entries, damaged)
    write_atomically(folder / TABLE_OF_TRIALS, exports.table_of_trials(rows).encode())
    write_atomically(folder / TABLES, exports.markdown(sections, entries).encode())
    write_atomically(folder / PAGE, page.encode())
    return folder / PAGE


def sections_of(rows: Sequence[Row]) -> list[Section]:
    """What each experiment that has rows shows, in the order of the page."""
    return [_module(name).section(chosen) for name, chosen in _by_experiment(rows)]


def _with_lines(sections: Sequence[Section], rows: Sequence[Row]) -> tuple[list[Section], list[Row]]:
    """The sections with the lines of each part in the table of trials, and the rows in the order of that table.

    The trials of a part stand together. The first line of the table is its head.
    """
    choices = [(section.name, choice) for section in sections for part in section.parts for choice in part.where]

    def is_chosen(row: Row, name: str, choice: Mapping[str, Any]) -> bool:
        return row["experiment"] == name and choice.items() <= row["settings"].items()

    def place(row: Row) -> int:
        return next((k for k, choice in enumerate(choices) if is_chosen(row, *choice)), len(choices))

    ordered = sorted(rows, key=place)
    found = []
    for section in sections:
        parts = []
        for part in section.parts:
            chosen = [any(is_chosen(row, section.name, choice) for choice in part.where) for row in ordered]
            lines = [line for line, is_in in enumerate(chosen, start=2) if is_in]
            parts.append(replace(part, lines=(lines[0], lines[-1]) if lines else None))
        found.append(replace(section, parts=tuple(parts)))
    return found, ordered


def verdict_lines(out: str | os.PathLike[str]) -> list[str]:
    """What holds as lines of text, for the command line: the counts of each kind, then every claim."""
    groups = _by_experiment(_read(Path(out))[0])
    claims = claims_of(verdict for name, rows in groups for verdict in _module(name).verdicts(rows))
    lines = []
    for kind, counts in tally(claims).items():
        lines.append(f"{kind.value}: {', '.join(counted(counts).values())}.")
        for claim in (claim for claim in claims if claim.source.kind is kind):
            place = f" ({claim.source.place})" if claim.source.place else ""
            lines.append(f"  {claim.outcome.value.upper()}: {claim.text}{place}")
            lines += [f"    {line}" for verdict in claim.verdicts for line in _verdict_words(verdict)]
    return lines


def _verdict_words(verdict: Verdict) -> list[str]:
    setting = f"{verdict.setting}, {verdict.outcome.value}: " if verdict.setting else ""
    return [f"{setting}{verdict.reason}", *([verdict.numbers] if verdict.numbers else [])]


def facts(rows: Sequence[Row], run: dict[str, Any]) -> list[tuple[str, str]]:
    """What was run, where and for how long, as pairs of a name and a value."""
    environments = [row["environment"] for row in rows]
    versions = ("python", "numpy", "scipy", "ell12")
    dates = sorted({str(e["date"]) for e in environments if e.get("date")})
    seconds = sum(e.get("trial_seconds") or 0.0 for e in environments)
    entries = {
        "Run": ", ".join(f"{name} {run[name]}" for name in ("preset", "seed") if name in run),
        "Trials": f"{len(rows)}" + (f", {duration(seconds)} in all" if seconds else ""),
        "Date": " to ".join(dict.fromkeys((dates[0][:16], dates[-1][:16]))).replace("T", " ") if dates else "",
        "Machine": _different(environments, "cpu", "machine"),
        "Versions": ", ".join(f"{v} {_different(environments, v)}" for v in versions),
    }
    return [(name, value) for name, value in entries.items() if value]


def _page(sections: Sequence[Section], entries: list[tuple[str, str]], damaged: Sequence[str]) -> str:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader("ell12_paper"), PackageLoader("ell12.commands")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["anchor"] = _anchor
    claims = claims_of(verdict for section in sections for verdict in section.verdicts)
    return environment.get_template("report.html").render(
        sections=sections,
        facts=entries,
        damaged=damaged,
        paper=paper(),
        headlines=[figure for section in sections for figure in section.headlines][:3],
        claims={kind: [claim for claim in claims if claim.source.kind is kind] for kind in tally(claims)},
        counts={kind: counted(found) for kind, found in tally(claims).items()},
    )


def _anchor(title: str, section: str, number: str) -> str:
    """What a table or figure is linked by.

    Examples
    --------
    >>> from ell12_paper.report import _anchor
    >>> _anchor("CPU seconds (stated)", "compressed-sensing", "Table I")
    'compressed-sensing-table-i-cpu-seconds-stated'
    """
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in f"{number} {title}")
    return "-".join((section, *words.lower().split()))


def _read(folder: Path) -> tuple[list[Row], list[str]]:
    rows, damaged = read_rows(folder)
    if not rows:
        raise FileNotFoundError(f"{folder} holds no rows to report: run `ell12-paper run --out {folder}` first")
    return rows, damaged


def run_facts(folder: Path) -> dict[str, Any]:
    """The preset and the seed of a folder, as far as they can be read."""
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # the rows are enough
        return {}
    return run if isinstance(run, dict) else {}


def _by_experiment(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The rows of each known experiment that has any, in the order of the page."""
    groups = ((name, [row for row in rows if row["experiment"] == name]) for name in EXPERIMENTS)
    return [(name, chosen) for name, chosen in groups if chosen]


def _module(name: str) -> Any:
    return import_module(f"ell12_paper.{EXPERIMENTS[name]}.report")


def _different(environments: Iterable[dict[str, Any]], *names: str) -> str:
    """The different values of an environment's entries."""
    found = (", ".join(str(e[name]) for name in names if e.get(name)) for e in environments)
    return " and ".join(dict.fromkeys(text for text in found if text))

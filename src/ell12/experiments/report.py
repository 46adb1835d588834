"""The report: rows become one HTML page, one table of all trials and the page's tables as Markdown.

Everything is computed from the rows on disk; the paper's printed figures come from ``paper.json``. What each
experiment shows is in the ``report`` of its folder, which offers ``verdicts(rows)`` and ``section(rows)``.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ell12.experiments import EXPERIMENTS
from ell12.experiments.rows import Row, read_rows
from ell12.files import write_atomically
from ell12.wording import duration

PAGE, TABLE_OF_TRIALS, TABLES = "index.html", "results.csv", "tables.md"


class Outcome(Enum):
    """What the rows say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decidable"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what the rows say of it, the numbers, and one sentence why."""

    claim: str
    outcome: Outcome
    numbers: str
    reason: str
    setting: str = ""


@dataclass(frozen=True)
class Cell:
    """A number of a table with what stands below it in small letters; bold where it is best or comparable."""

    text: str
    lines: tuple[str, ...] = ()
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the heads of its columns, that of the row labels included, and labelled rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""


@dataclass(frozen=True)
class Key:
    """What a curve is, for the legend: the number of its colour (from 1) and how it is dashed."""

    label: str
    series: int
    dash: str = "solid"


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure, an element of the page, and the curves in it."""

    title: str
    drawing: str
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Panels that share a legend and a caption."""

    title: str
    panels: tuple[Panel, ...]
    caption: str
    small: bool = False

    @property
    def legend(self) -> list[Key]:
        """The curves of all panels, each once."""
        return list(dict.fromkeys(key for panel in self.panels for key in panel.keys))


@dataclass(frozen=True)
class Part:
    """Some words with the tables and figures that belong to them."""

    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Section:
    """What one experiment has to show: the question, what came out, why it differs from the paper, the details."""

    name: str
    title: str
    asked: tuple[str, ...]
    found: tuple[str, ...]
    reasons: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    parts: tuple[Part, ...]


@cache
def paper() -> dict[str, Any]:
    """The figures printed in the paper."""
    return json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))


def report(out: str | os.PathLike[str]) -> Path:
    """Write the page, the table of trials and the Markdown tables of a folder of rows; the page's path.

    Raises
    ------
    FileNotFoundError
        If the folder holds no rows.
    """
    folder = Path(out)
    rows, damaged = _read(folder)
    sections = [_module(name).section(chosen) for name, chosen in _by_experiment(rows)]
    page = _page(sections, facts(rows, _run_facts(folder)), damaged)
    write_atomically(folder / TABLE_OF_TRIALS, _csv(rows).encode())
    write_atomically(folder / TABLES, markdown(sections).encode())
    write_atomically(folder / PAGE, page.encode())
    return folder / PAGE


def verdict_lines(out: str | os.PathLike[str]) -> list[str]:
    """The verdicts on the paper's claims as lines of text, for the command line."""
    lines = []
    for name, rows in _by_experiment(_read(Path(out))[0]):
        for verdict in _module(name).verdicts(rows):
            place = f"{name}, {verdict.setting}" if verdict.setting else name
            lines.append(f"{verdict.outcome.value.upper()}: {verdict.claim} ({place})")
            lines += [f"  {words}" for words in (verdict.reason, verdict.numbers) if words]
    return lines


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
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ell12.experiments"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"by_claim": _by_claim, "by_outcome": _by_outcome}
    outcomes = [verdict.outcome for section in sections for verdict in section.verdicts]
    return environment.get_template("report.html").render(
        sections=sections,
        facts=entries,
        damaged=damaged,
        paper=paper(),
        outcomes=list(Outcome),
        counts=Counter(outcomes),
    )


def _by_claim(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """The verdicts on each claim, one per setting."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.claim, []).append(verdict)
    return groups


def _by_outcome(verdicts: Sequence[Verdict]) -> dict[Outcome, dict[str, list[Verdict]]]:
    """The claims that hold, those that do not and those that stay open, as far as there are any."""
    chosen = {outcome: _by_claim(v for v in verdicts if v.outcome is outcome) for outcome in Outcome}
    return {outcome: claims for outcome, claims in chosen.items() if claims}


def markdown(sections: Iterable[Section]) -> str:
    """Verdicts and tables as Markdown."""
    lines: list[str] = []
    for section in sections:
        lines += [f"# {section.title}", ""]
        for verdict in section.verdicts:
            place = f" ({verdict.setting})" if verdict.setting else ""
            lines.append(
                f"- **{verdict.outcome.value}**{place}: {verdict.claim}. {verdict.reason} {verdict.numbers}"
            )
        lines.append("")
        for table in (table for part in section.parts for table in part.tables):
            lines += _markdown_table(table)
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(table: Table) -> list[str]:
    lines = [f"## {table.title}", "", _markdown_row(table.columns), "|" + " --- |" * len(table.columns)]
    for label, cells in table.rows:
        lines.append(_markdown_row((label, *(_markdown_cell(cell) for cell in cells))))
    return [*lines, "", *([table.note, ""] if table.note else [])]


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return "<br>".join((text, *cell.lines))


def _csv(rows: Sequence[Row]) -> str:
    """One line per trial; lists (histories, grids) are left to the rows."""
    flat = [{"experiment": row["experiment"], **_scalars(row)} for row in rows]
    columns = list(dict.fromkeys(name for line in flat for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _scalars(row: Row) -> dict[str, Any]:
    """Settings and results by name, those of nested dictionaries with a dot; a result never hides a setting."""
    settings, results = _flatten(row["settings"]), _flatten(row["results"])
    clashes = {f"results.{name}" if name in settings else name: value for name, value in results.items()}
    environment = {f"environment.{name}": value for name, value in _flatten(row["environment"]).items()}
    return settings | clashes | environment


def _flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            flat[prefix + name] = value
    return flat


def _read(folder: Path) -> tuple[list[Row], list[str]]:
    rows, damaged = read_rows(folder)
    if not rows:
        raise FileNotFoundError(f"{folder} holds no rows to report: run `ell12 reproduce --out {folder}` first")
    return rows, damaged


def _run_facts(folder: Path) -> dict[str, Any]:
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
    return import_module(f"ell12.experiments.{EXPERIMENTS[name]}.report")


def _different(environments: Iterable[dict[str, Any]], *names: str) -> str:
    """The different values of an environment's entries."""
    found = (", ".join(str(e[name]) for name in names if e.get(name)) for e in environments)
    return " and ".join(dict.fromkeys(text for text in found if text))

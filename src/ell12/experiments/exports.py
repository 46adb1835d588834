"""What the report writes beside its page: verdicts and tables as Markdown, and every trial as a line of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from ell12.experiments.findings import Cell, Claim, Section, Table, claims_of
from ell12.experiments.rows import Row


def markdown(sections: Iterable[Section]) -> str:
    """Verdicts and tables as Markdown."""
    lines: list[str] = []
    for section in sections:
        lines += [f"# {section.title}", ""]
        for claim in claims_of(section.verdicts):
            lines += _markdown_claim(claim)
        lines.append("")
        for table in (table for part in section.parts for table in part.tables):
            lines += _markdown_table(table)
    return "\n".join(lines).rstrip() + "\n"


def _markdown_claim(claim: Claim) -> list[str]:
    lines = [f"- **{claim.outcome.value}** ({claim.source}): {claim.text}."]
    for verdict in claim.verdicts:
        place = f"{verdict.outcome.value}, {verdict.setting}: " if verdict.setting else ""
        lines.append(f"  - {place}{verdict.reason} {verdict.numbers}".rstrip())
    return lines


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


def table_of_trials(rows: Sequence[Row]) -> str:
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

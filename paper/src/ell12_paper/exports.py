"""What the report writes beside its page: verdicts and tables as Markdown, and every trial as a line of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from ell12_paper.findings import Cell, Claim, Section, Table, claims_of, counted, tally
from ell12_paper.rows import Row


def markdown(sections: Sequence[Section], facts: Sequence[tuple[str, str]] = ()) -> str:
    """What was run and what holds; then the verdicts and tables of each experiment."""
    lines = ["# The paper's experiments, reproduced", "", *_summary(sections, facts)]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for claim in claims_of(section.verdicts):
            lines += _markdown_claim(claim)
        lines.append("")
        for table in (table for part in section.parts for table in part.tables):
            lines += markdown_table(table)
    return "\n".join(lines).rstrip() + "\n"


def _summary(sections: Sequence[Section], facts: Sequence[tuple[str, str]]) -> list[str]:
    lines = [f"- {name}: {value}" for name, value in facts]
    lines += [f"- {section.title.split(':')[0]}: {section.scale}" for section in sections if section.scale]
    claims = claims_of(verdict for section in sections for verdict in section.verdicts)
    for kind, counts in tally(claims).items():
        chosen = [claim for claim in claims if claim.source.kind is kind]
        lines += ["", f"**{kind.value}**: {', '.join(counted(counts).values())}.", ""]
        lines += [markdown_row(("verdict", "claim", "where")), "| --- | --- | --- |"]
        lines += [markdown_row((c.outcome.value, c.text, c.source.place or "ours")) for c in chosen]
    return [*lines, ""]


def _markdown_claim(claim: Claim) -> list[str]:
    lines = [f"- **{claim.outcome.value}** ({claim.source}): {claim.text}."]
    for verdict in claim.verdicts:
        place = f"{verdict.outcome.value}, {verdict.setting}: " if verdict.setting else ""
        lines.append(f"  - {place}{verdict.reason} {verdict.numbers}".rstrip())
    return lines


def markdown_table(table: Table) -> list[str]:
    """The lines of a table with its title and its note."""
    number = f"{table.number}: " if table.number else ""
    lines = [f"### {number}{table.title}", "", markdown_row(table.columns), "|" + " --- |" * len(table.columns)]
    for label, cells in table.rows:
        lines.append(markdown_row((label, *(_markdown_cell(cell) for cell in cells))))
    return [*lines, "", *([table.note, ""] if table.note else [])]


def markdown_row(texts: Iterable[str]) -> str:
    """One line of a table."""
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

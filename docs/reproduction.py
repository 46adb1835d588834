"""Write `reproduction.md` from the rows that are stored in `results`.

`python docs/reproduction.py` writes the page; with folders or archives of runs behind it, their rows are stored
first, as `results/NAME.zip`, and their SHA-256 in `published.json`. Words come from `reproduction.md.j2` and the
studies, numbers from the rows.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from ell12_paper import STUDIES, provenance
from ell12_paper.claims import KINDS, by_study, claims_of
from ell12_paper.comparisons import MARKS, Claim, tally
from ell12_paper.page import facts_of, prose
from ell12_paper.rows import FILE, read_rows
from ell12_paper.studies.images import LIKELY
from ell12_paper.tables import Cell, Table, tables
from ell12_paper.trials import published
from ell12_paper.verify import opened
from ell12_paper.words import listed

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
# A stored run -> what it is called. "likely" has the pictures that are very likely the paper's.
RUNS = {"paper": "at the paper's size", "likely": "with the likely pictures", "quick": "at reduced size"}
# The tables of the page, of the run at the paper's size or, for completion, of that with the likely pictures.
SHOWN = (
    "Table II:",
    "Table III:",
    "Printed time / ours",
    "Log-sum",
    "CPU time / nmAPG's",
    "global minima",
    "Times faster",
)
HIDDEN = ("variance", "(stated)")
# The commits that measured denoising with differences whose direction was chosen by the picture.
OTHER_DIFFERENCES = ("2b8b6c2", "af924c3")


@dataclass(frozen=True)
class StoredRun:
    """A run whose rows are stored."""

    name: str

    @cached_property
    def content(self) -> tuple[list[Any], Any, str]:
        """Rows, provenance and SHA-256."""
        with opened(RESULTS / f"{self.name}.zip") as folder:
            rows, damaged = read_rows(folder)
            if damaged:
                raise SystemExit(f"{RESULTS / self.name}.zip is damaged: {damaged[0]}")
            return rows, provenance.read(folder), provenance.digest(folder / FILE)

    @cached_property
    def rows(self) -> Any:
        """The rows of each study."""
        return by_study(self.content[0])

    @cached_property
    def claims(self) -> list[Claim]:
        """Its claims, judged."""
        return claims_of(self.rows)

    @property
    def facts(self) -> dict[str, str]:
        """What was run, where and when."""
        return facts_of(*self.content[:2])

    def shown(self) -> dict[str, Any]:
        """What the page says of the run itself."""
        commits = dict.fromkeys(str(row["environment"].get("commit"))[:10] for row in self.content[0])
        found = {"name": self.name, "size": RUNS[self.name], "count": len(self.content[0])}
        found |= {"digest": self.content[2], "facts": self.facts, "commits": ", ".join(commits)}
        return found | {"tally": {KINDS[kind]: tally(c for c in self.claims if c.kind == kind) for kind in KINDS}}

    def cell(self, text: str) -> str:
        """The verdict on a claim, with its number."""
        claim = next((claim for claim in self.claims if claim.text == text), None)
        if claim is None:
            return ""
        brief = claim.brief.split("; the paper")[0]
        return f"{MARKS[claim.outcome]} {claim.outcome.value}{': ' * bool(brief)}{brief}"


def store(run: Path) -> None:
    """Keep the rows and the provenance of a finished run, and the hash of its rows in the package."""
    with opened(run) as folder:
        known = provenance.read(folder)
        if known is None:
            raise SystemExit(f"{run} has no provenance")
        first = known["runs"][0]
        stored = "likely" if set(provenance.images_of(first)) & set(LIKELY) else first["preset"]
        with zipfile.ZipFile(RESULTS / f"{stored}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (FILE, provenance.FILE):
                archive.writestr(
                    zipfile.ZipInfo(f"ell12-run/{name}"), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED
                )
        second = Path(provenance.__file__).with_name("published.json")
        hashes = published()["sha256"]
        text = second.read_text(encoding="utf-8").replace(hashes[stored], provenance.digest(folder / FILE))
        second.write_text(text, encoding="utf-8")


def page() -> str:
    """The text of the page."""
    runs = [StoredRun(name) for name in RUNS if (RESULTS / f"{name}.zip").exists()]
    first, by_name = runs[0], {run.name: run for run in runs}
    stated = {claim.text: claim for run in reversed(runs) for claim in run.claims}
    order = [claim.text for claim in first.claims]
    claims = {
        KINDS[kind]: [(_with_printed(stated[text]), stated[text].source, [run.cell(text) for run in runs])
                      for text in sorted(stated, key=order.index) if stated[text].kind == kind]
        for kind in KINDS
    }  # fmt: skip
    studies = []
    for name in STUDIES:
        rows = by_name.get("likely", first).rows if name == "completion" else first.rows
        found = [t for t in tables(rows) if t.study == name and _is_shown(f"{t.number}: {t.title}")]
        text, lines = prose(name, rows), ["\n".join(markdown_table(table)) for table in found]
        scales = {"scale": text["scale"], "small": prose(name, runs[-1].rows)["scale"]}
        studies.append({"title": text["title"], "text": "\n\n".join(text["text"]), "tables": lines} | scales)

    def brief(part: str, run: str = "paper", without: str = "no such reading") -> str:
        claim = next(claim for claim in by_name[run].claims if part in claim.text)
        chosen = tuple(reading for reading in claim.readings if without not in reading.name)
        return replace(claim, readings=chosen).brief.split("; the paper")[0]

    template = jinja2.Template(
        (HERE / "reproduction.md.j2").read_text(), undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    shown = [run.shown() for run in runs]
    likely, denoising = by_name["likely"].rows, first.rows["denoising"]
    measured = {
        "along": ", ".join(likely["completion"].where(study="path").seen("method")),
        "denoised": listed(likely["denoising"].seen("i", range(65))),
        "is_stale": any(row["environment"]["commit"].startswith(OTHER_DIFFERENCES) for row in denoising.rows),
    }
    return template.render(runs=shown, claims=claims, studies=studies, brief=brief, **measured).rstrip() + "\n"


def _with_printed(claim: Claim) -> str:
    printed = dict.fromkeys(reading.paper for reading in claim.readings if reading.paper)
    return "; ".join((claim.text, *(f"the paper: {text}" for text in printed))).replace("|", "\\|")


def _is_shown(title: str) -> bool:
    return any(part in title for part in SHOWN) and not any(part in title for part in HIDDEN)


def markdown_table(table: Table) -> list[str]:
    """The lines of a table with its title and its note."""
    heading = f"### {table.number}: {table.title}" if table.number else f"### {table.title}"
    body = [row_of((label, *map(_cell, cells))) for label, cells in table.rows]
    note = ["", table.note] if table.note else []
    return [heading, "", row_of(table.columns), "|" + " --- |" * len(table.columns), *body, *note]


def row_of(texts: Iterable[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _cell(cell: Cell) -> str:
    return "<br>".join((f"**{cell.text}**" if cell.best else cell.text, *cell.lines))


if __name__ == "__main__":
    for given in sys.argv[1:]:
        store(Path(given))
    (HERE / "reproduction.md").write_text(page())

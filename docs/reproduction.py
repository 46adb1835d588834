"""Write `reproduction.md`, and the tables in `results`, from the rows that are stored there.

`python docs/reproduction.py` writes the pages; with folders or archives of runs behind it, their rows are stored
first, as `results/PRESET.zip`. Words come from `reproduction.md.j2` and the studies, numbers from the rows.
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from ell12_paper import STUDIES, provenance
from ell12_paper.claims import KINDS, by_study, claims_of
from ell12_paper.comparisons import MARKS, Claim, tally
from ell12_paper.page import facts_of, markdown, markdown_table, prose
from ell12_paper.rows import FILE, read_rows
from ell12_paper.tables import tables
from ell12_paper.verify import opened

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
# What a stored run is -> the file of its tables, and what its size is called.
RUNS = {"paper": ("paper_size", "at the paper's size"), "quick": ("quick", "at reduced size")}
# The tables of the page, of the run at the paper's size; all others are in `results`.
SHOWN = (
    "Table I",
    "Table II",
    "Table III",
    "Printed time / ours",
    "Log-sum's θ",
    "Times faster",
    "CPU time of DCA",
)
HIDDEN = ("CPU seconds (", "As the paper prints it", "variance", "missing pixels")


@dataclass(frozen=True)
class StoredRun:
    """A run whose rows are stored."""

    preset: str

    @cached_property
    def content(self) -> tuple[list[Any], Any, str]:
        """Rows, provenance and SHA-256."""
        with opened(RESULTS / f"{self.preset}.zip") as folder:
            rows, damaged = read_rows(folder)
            if damaged:
                raise SystemExit(f"{RESULTS / self.preset}.zip is damaged: {damaged[0]}")
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
        page, size = RUNS[self.preset]
        found = {"preset": self.preset, "page": page, "size": size, "count": len(self.content[0])}
        found |= {"digest": self.content[2], "facts": self.facts, "commits": ", ".join(commits)}
        return found | {"tally": {KINDS[kind]: tally(c for c in self.claims if c.kind == kind) for kind in KINDS}}

    def cell(self, text: str) -> str:
        """The verdict on a claim, with its number."""
        claim = next((claim for claim in self.claims if claim.text == text), None)
        return f"{MARKS[claim.outcome]} {claim.outcome.value}" if claim else "not run"


def store(run: Path) -> None:
    """Keep the rows and the provenance of a finished run, without the page that can be made from them."""
    with opened(run) as folder:
        known = provenance.read(folder)
        if known is None:
            raise SystemExit(f"{run} has no provenance")
        with zipfile.ZipFile(RESULTS / f"{known['runs'][0]['preset']}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (FILE, provenance.FILE):
                archive.writestr(
                    zipfile.ZipInfo(f"ell12-run/{name}"), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED
                )


def pages() -> dict[Path, str]:
    """The text of every page, by its place."""
    runs = [StoredRun(preset) for preset in RUNS if (RESULTS / f"{preset}.zip").exists()]
    first = runs[0]
    stated = list({claim.text: claim for run in reversed(runs) for claim in run.claims}.values())
    claims = {
        KINDS[kind]: [(_with_number(runs, c.text), c.place, [run.cell(c.text) for run in runs]) for c in chosen]
        for kind in KINDS
        if (chosen := [claim for claim in stated if claim.kind == kind])
    }
    studies = []
    for name in STUDIES:
        if first.rows[name].rows:
            found = [t for t in tables(first.rows) if t.study == name and _is_shown(f"{t.number}: {t.title}")]
            text = "\n\n".join(prose(name, first.rows)["text"])
            lines = ["\n".join(markdown_table(table)) for table in found]
            studies.append({"title": prose(name, first.rows)["title"], "text": text, "tables": lines})

    def brief(part: str) -> str:
        claim = next(claim for claim in first.claims if part in claim.text)
        return claim.brief.split("; the paper")[0]

    template = jinja2.Template(
        (HERE / "reproduction.md.j2").read_text(), undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    shown = [run.shown() for run in runs]
    found = {
        HERE / "reproduction.md": template.render(runs=shown, claims=claims, studies=studies, brief=brief).rstrip()
        + "\n"
    }
    for run in runs:
        found[RESULTS / f"{RUNS[run.preset][0]}.md"] = markdown(run.rows, run.claims, run.facts)
    return found


def _with_number(runs: list[StoredRun], text: str) -> str:
    claim = next(claim for run in runs for claim in run.claims if claim.text == text)
    return f"{text}: {claim.brief}" if claim.brief else text


def _is_shown(title: str) -> bool:
    return any(part in title for part in SHOWN) and not any(part in title for part in HIDDEN)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        store(Path(given))
    for path, text in pages().items():
        path.write_text(text)

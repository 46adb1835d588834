"""Write `reproduction.md`, and the tables in `results`, from the rows that are stored there.

`python docs/reproduction.py` writes the pages; with folders or archives of runs behind it, their rows are stored
first, as `results/PRESET.zip`. Every sentence with a number in it comes from the rows; the words here have none,
and a test holds us to both.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ell12_paper import exports, provenance
from ell12_paper.archive import opened, pack
from ell12_paper.findings import Claim, Kind, Outcome, Section, Verdict, claims_of, counted, tally
from ell12_paper.report import facts, run_facts, sections_of
from ell12_paper.rows import Row, read_rows

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
# What a stored run is -> the file of its tables, and what its size is called.
RUNS = {"paper": ("paper_size", "the paper's size"), "quick": ("quick", "reduced size")}
VARIANTS = "dca-variants"
MARKS = {Outcome.HOLDS: "✓", Outcome.PARTLY: "~", Outcome.FAILS: "✗", Outcome.OPEN: "?"}

INTRODUCTION = """\
# Reproducing the paper

<!-- Written by `make results` from the rows in results/*.zip: change docs/reproduction.py, not this page. -->

```
make reproduce                                # everything at reduced size, in some minutes
ell12-paper run --preset paper --out paper    # the paper's own size and repeats: many hours, or --only a part
ell12-paper report paper                            # the page again, from the rows alone
ell12-paper join monday.zip tuesday.zip --out paper # one run of parts that were measured on several machines
ell12-paper verify docs/results/quick.zip     # check the run shown here, and measure some of its trials again
make results                                  # this page and its tables, from a fresh run at reduced size
```

`--jobs` runs several trials at a time, one thread each, measured by CPU time, as are all limits; times
compare best on a machine that does nothing else. Each finished trial is one line in `rows.jsonl`: its
settings and seed, the commit, the versions and the machine, times, iterations, objective, stationarity,
errors. A run that is stopped or killed loses at most the trials it was in; `--resume` repeats nothing that is
on disk. The page (`index.html`, one file, no network), `results.csv` and `tables.md` are made from the rows,
and so is every number in them and on this page, except the paper's own. The paper's photographs are not
published; others stand in for them, and are called by what they are, with the paper's name behind.

**Verdicts.** A claim is the paper's (with its place in the text), one that the paper cites from others, or
one that we add; the three are counted apart. Where the paper leaves a reading open (the scaling of the
dictionary, the noise, when a method stops) each reading has its verdict, and a claim that holds in some of
them only *holds in part*. A difference that the paired t-test does not tell from chance over the repeats is
*not decidable*; a single repeat decides nothing that needs a test. Times and errors are compared by their
ratio in each repeat. A method that ended at our limit says so beside its number.
"""

END = """\
How the penalties compare on real ratings is in the [benchmarks](benchmarks.md).

```{toctree}
:hidden:
:glob:

results/*
```
"""


@dataclass(frozen=True)
class StoredRun:
    """A run whose rows are stored: its sections, what is known of it, and where it came from."""

    preset: str
    rows: list[Row]
    sections: list[Section]
    facts: dict[str, Any]
    known: provenance.Facts

    @property
    def claims(self) -> dict[tuple[Kind, str], Claim]:
        """Its claims by kind and words."""
        found = claims_of(verdict for section in self.sections for verdict in section.verdicts)
        return {(claim.source.kind, claim.text): claim for claim in found}


def store(run: Path) -> None:
    """Keep the rows and the provenance of a finished run, without the page that can be made from them."""
    with opened(run) as folder, tempfile.TemporaryDirectory() as name:
        known = json.loads((folder / provenance.FILE).read_text())
        known["files"] = {file: known["files"][file] for file in provenance.MEASURED}
        known.pop("page", None)
        for file in provenance.MEASURED:
            shutil.copy(folder / file, name)
        (Path(name) / provenance.FILE).write_text(json.dumps(known, indent=2) + "\n")
        pack(Path(name), RESULTS / f"{run_facts(folder)['preset']}.zip")


def stored_runs() -> list[StoredRun]:
    """The runs in `results`, the paper's size first."""
    found = []
    for preset in RUNS:
        if (RESULTS / f"{preset}.zip").exists():
            with opened(RESULTS / f"{preset}.zip") as folder:
                rows, damaged = read_rows(folder)
                known = provenance.read(folder)
                if damaged or known is None:
                    raise SystemExit(f"{RESULTS / preset}.zip is damaged: {'; '.join(damaged) or 'no provenance'}")
                found.append(StoredRun(preset, rows, sections_of(rows), run_facts(folder), known))
    return found


def pages() -> dict[Path, str]:
    """The text of every page, by its place."""
    runs = stored_runs()
    found = {HERE / "reproduction.md": "\n".join(_lines(runs)).rstrip() + "\n"}
    for run in runs:
        text = exports.markdown(run.sections, facts(run.rows, run.facts))
        found[RESULTS / f"{RUNS[run.preset][0]}.md"] = text
    return found


def _lines(runs: Sequence[StoredRun]) -> Iterator[str]:
    yield from (INTRODUCTION, *_provenance(runs), *_claims(runs))
    yield from _variants(runs)
    yield "## What came out\n"
    for title in dict.fromkeys(s.title for run in runs for s in run.sections if s.name != VARIANTS):
        yield f"### {title}\n"
        for run in runs:
            yield from _found(run, next((s for s in run.sections if s.title == title), None))
    yield END


def _provenance(runs: Sequence[StoredRun]) -> Iterator[str]:
    yield "## What was run\n"
    yield exports.markdown_row(("command", "trials", "from", "to", "commit", "machine"))
    yield "|" + " --- |" * 6
    for run in runs:
        yield from _commands(run)
    links = [
        f"at [{RUNS[run.preset][1]}](results/{RUNS[run.preset][0]}.md) from [its rows](results/{run.preset}.zip)"
        for run in runs
    ]
    yield f"\nAll verdicts and tables: {' and '.join(links)}.\n"


def _commands(run: StoredRun) -> Iterator[str]:
    """A line for each command that wrote rows; one that was stopped and went on is one line."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    where: dict[tuple[str, str], str] = {}
    for row in run.rows:
        begun = provenance.run_of(row, run.known["runs"])
        if begun is None:
            raise SystemExit(f"no run of results/{run.preset}.zip was asked for {row['key']}")
        key, machine = (begun["command"], str(begun["commit"])[:10]), begun["machine"]
        grouped.setdefault(key, []).append(row)
        where[key] = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB"
    for (command, commit), rows in grouped.items():
        dates = sorted(row["environment"]["date"] for row in rows)
        when = (date[:16].replace("T", " ") for date in (dates[0], dates[-1]))
        yield exports.markdown_row((f"`{command}`", str(len(rows)), *when, commit, where[command, commit]))


def _claims(runs: Sequence[StoredRun]) -> Iterator[str]:
    """Every claim once, with its verdict in each run."""
    yield "## Which claims hold\n"
    keys = dict.fromkeys(key for run in reversed(runs) for key in run.claims)
    for kind in Kind:
        chosen = [key for key in keys if key[0] is kind]
        if not chosen:
            continue
        counts = "; ".join(
            f"at {RUNS[run.preset][1]} {', '.join(counted(found[kind]).values())}"
            for run in runs
            if kind in (found := tally(run.claims.values()))
        )
        yield f"**{kind.value}**: {counts}.\n"
        yield exports.markdown_row(("claim", "where", *(f"at {RUNS[run.preset][1]}" for run in runs)))
        yield "|" + " --- |" * (2 + len(runs))
        for key in chosen:
            claims = [run.claims.get(key) for run in runs]
            place = next(claim.source.place for claim in claims if claim) or "ours"
            yield exports.markdown_row((key[1], place, *map(_outcome, claims)))
        yield ""


def _outcome(claim: Claim | None) -> str:
    return f"{MARKS[claim.outcome]} {claim.outcome.value}" if claim else "not run"


def _variants(runs: Sequence[StoredRun]) -> Iterator[str]:
    """The answer to the first question of a reader whose ratios differ from the printed ones."""
    chosen = [(run, section) for run in runs for section in run.sections if section.name == VARIANTS]
    if not chosen:
        return
    yield f"## {chosen[0][1].title}\n"
    yield from (f"{text}\n" for text in chosen[0][1].asked)
    for run, section in chosen:
        yield f"At {RUNS[run.preset][1]} ({section.scale}):\n"
        yield from (f"- {text}" for text in section.found)
        yield ""
    for run, section in chosen:
        for table in (table for part in section.parts for table in part.tables):
            lines = exports.markdown_table(table)
            yield from (f"{lines[0]}, at {RUNS[run.preset][1]}", *lines[1:])


def _found(run: StoredRun, section: Section | None) -> Iterator[str]:
    """What an experiment says of itself at one size, and why it differs from the paper."""
    if section is None:
        return
    yield f"At {RUNS[run.preset][1]} ({section.scale}):\n"
    yield from (f"- {text}" for text in (*section.found, *section.reasons))
    for claim in claims_of(section.verdicts):
        if claim.source.kind is not Kind.OURS and claim.outcome in (Outcome.FAILS, Outcome.PARTLY):
            yield f"- *{claim.text}* {claim.outcome.value}."
            yield from (f"  - {_said(verdict)}" for verdict in claim.verdicts)
    yield ""


def _said(verdict: Verdict) -> str:
    return f"{f'{verdict.setting}: ' if verdict.setting else ''}{verdict.reason} {verdict.numbers}".rstrip()


if __name__ == "__main__":
    for given in sys.argv[1:]:
        store(Path(given))
    for path, text in pages().items():
        path.write_text(text)

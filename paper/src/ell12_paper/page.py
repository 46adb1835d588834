"""The report: rows become one HTML page, and one line of CSV for each trial."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from ell12_paper import STUDIES, provenance
from ell12_paper.claims import KINDS, by_study, claims_of, lines
from ell12_paper.comparisons import MARKS, tally
from ell12_paper.figures import figures
from ell12_paper.judges import Rows
from ell12_paper.rows import Row, read_rows, write
from ell12_paper.studies.images import LIKELY, STAND_INS
from ell12_paper.tables import tables
from ell12_paper.trial_runs import RunError
from ell12_paper.trials import Trials, published
from ell12_paper.verify import opened
from ell12_paper.words import duration

PAGE, TRIALS = "index.html", "results.csv"
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("ell12_paper"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
)


def report(source: Path, folder: Path) -> list[str]:
    """Write the page, the tables and the trials of a run into a folder; the claims as lines of text."""
    with opened(source) as folder_of_rows:
        kept, known = read_rows(folder_of_rows)[0], provenance.read(folder_of_rows)
    if not kept:
        raise RunError(f"{source} holds no rows to report: run `ell12-paper run --out {source}` first")
    rows = by_study(kept)
    claims, facts = claims_of(rows), facts_of(kept, known)
    folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, dict[str, list[Any]]] = {}
    things: list[Any] = [*tables(rows), *figures(rows)]
    for shown in things:
        parts.setdefault(shown.study, {}).setdefault(shown.part, []).append(shown)
    page = ENVIRONMENT.get_template("page.html").render(
        studies={name: prose(name, rows) for name in STUDIES if rows[name].rows},
        parts=parts,
        claims={KINDS[kind]: found for kind in KINDS if (found := [c for c in claims if c.kind == kind])},
        facts=facts,
        paper=published(),
        tally=tally,
        marks=MARKS,
    )
    write(folder / PAGE, page)
    flat = pd.json_normalize([{k: v for k, v in row.items() if k not in ("key", "check")} for row in kept])
    scalars = [name for name in flat.columns if not flat[name].map(lambda value: isinstance(value, list)).any()]
    write(folder / TRIALS, flat[scalars].to_csv(index=False))
    return lines(claims)


def prose(name: str, rows: Rows) -> dict[str, Any]:
    """The title, the size and the paragraphs of a study, their numbers filled in."""
    trials = rows[name]
    sizes = [row["settings"]["size"] for row in trials.rows if "size" in row["settings"]]
    numbers = {key: (trials.seen(key) or ("",))[0] for key in ("n_samples", "problems")}
    numbers |= {"size": min(sizes, default=""), "repeats": trials.n_repeats, "pictures": _pictures(trials)}
    numbers |= {"fewer": _fewer_repeats(trials), "along": ", ".join(trials.where(study="path").seen("method"))}
    text = tomllib.loads(Path(__file__).with_name("prose.toml").read_text(encoding="utf-8"))[name]
    found = {key: jinja2.Template(value).render(numbers) for key, value in text.items()}
    return found | {"text": found["text"].strip().split("\n\n")}


def _fewer_repeats(trials: Trials) -> str:
    """The methods that have fewer repeats at some strength, and how many."""
    columns = [trials.where(i=i, method=m) for i in trials.seen("i") for m in trials.seen("method")]
    found = {c.seen("method")[0]: c.n_repeats for c in columns if 0 < c.n_repeats < trials.n_repeats}
    return ", ".join(f"{method} {count}" for method, count in found.items())


def _pictures(trials: Trials) -> str:
    """Whose photographs the rows have: "stand-ins", "likely" to be the paper's, or a user's "own"."""
    seen = set(trials.seen("image"))
    return "likely" if seen & set(LIKELY) else "stand-ins" if seen & set(STAND_INS) else "own"


def facts_of(rows: Sequence[Row], known: Row | None) -> dict[str, str]:
    """What was run, where and for how long."""
    taken = [row["environment"] for row in rows]
    dates = sorted(str(t.get("date", ""))[:16].replace("T", " ") for t in taken)
    run = known["runs"][0] if known else {}
    versions = (f"{name} {_different(taken, name)}" for name in ("python", "numpy", "scipy", "ell12"))
    return {
        "Run": f"preset {run.get('preset', 'unknown')}, seed {run.get('seed', 'unknown')}",
        "Trials": f"{len(rows)}, {duration(sum(t.get('trial_seconds') or 0.0 for t in taken))} in all",
        "Date": " to ".join(dict.fromkeys((dates[0], dates[-1]))),
        "Machine": _different(taken, "cpu"),
        "Versions": ", ".join(versions),
    }


def _different(taken: Iterable[Row], name: str) -> str:
    return " and ".join(dict.fromkeys(str(t[name]) for t in taken if t.get(name)))

"""Every claim, as data in ``claims.toml``, judged on rows."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ell12_paper import STUDIES
from ell12_paper.comparisons import Claim
from ell12_paper.rows import Row
from ell12_paper.trials import Trials

KINDS = {"paper": "The paper claims", "cited": "The paper cites from others", "ours": "We add"}


@cache
def stated() -> list[dict[str, Any]]:
    """The claims before they are judged."""
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))["claim"]


def by_study(rows: Sequence[Row]) -> dict[str, Trials]:
    """The rows of each study; where a rule ends runs, their results say whether a limit ended them before."""
    cut = [{"is_limited": s != "CONVERGED"} if (s := row["results"].get("status")) else {} for row in rows]
    marked = [row | {"results": known | row["results"]} for row, known in zip(rows, cut, strict=True)]
    return {name: Trials(tuple(row for row in marked if row["experiment"] == name)) for name in STUDIES}


def claims_of(rows: dict[str, Trials]) -> list[Claim]:
    """The claims of the studies that have rows, judged."""
    found = []
    for claim in (claim for claim in stated() if rows[claim["study"]].rows):
        module, _, name = claim["judge"].partition(".")
        judge = getattr(import_module(f"ell12_paper.{module}"), name)
        readings = tuple(judge(*claim.get("given", ()), rows=rows))
        found.append(Claim(claim["study"], claim["kind"], claim["source"], claim["text"], readings))
    return [claim for claim in found if claim.readings]


def lines(claims: Sequence[Claim]) -> list[str]:
    """The claims as lines of text, for the command line."""
    found = []
    for kind, title in KINDS.items():
        chosen = [claim for claim in claims if claim.kind == kind]
        found += [f"{title}:"] * bool(chosen)
        found += [f"  {c.outcome.value.upper()}: {c.text}{f': {c.brief}' if c.brief else ''}" for c in chosen]
    return found

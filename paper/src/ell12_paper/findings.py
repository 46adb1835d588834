"""What an experiment has to show: claims with their verdicts, tables, figures, and the words around them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any


class Outcome(Enum):
    """What the rows say of a claim; in part is what several settings of one claim may come to, never one."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "not decidable"


class Kind(Enum):
    """Whose claim it is, as the counts name it."""

    PAPER = "The paper claims"
    CITED = "The paper cites from others"
    OURS = "We add"


@dataclass(frozen=True)
class Source:
    """Who makes a claim, and where in the paper's text; what we add has no place."""

    kind: Kind
    place: str = ""

    def __str__(self) -> str:
        whose = {Kind.PAPER: "the paper", Kind.CITED: "cited by the paper", Kind.OURS: "our addition"}[self.kind]
        return f"{whose}, {self.place}" if self.place else whose


@dataclass(frozen=True)
class Verdict:
    """A claim, what the rows say of it in one setting, the numbers, and one sentence why."""

    claim: str
    outcome: Outcome
    numbers: str
    reason: str
    setting: str = ""
    source: Source = Source(Kind.OURS)


@dataclass(frozen=True)
class Claim:
    """A claim with the verdicts on it, one for each setting."""

    text: str
    source: Source
    verdicts: tuple[Verdict, ...]

    @property
    def outcome(self) -> Outcome:
        """What the settings agree on; where one holds and another does not, it holds in part."""
        found = {verdict.outcome for verdict in self.verdicts}
        if len(found) == 1:
            return found.pop()
        return Outcome.PARTLY if Outcome.HOLDS in found else Outcome.FAILS


def claims_of(verdicts: Iterable[Verdict]) -> list[Claim]:
    """The claims that the verdicts are on, each once, in their order."""
    groups: dict[tuple[str, Source], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.claim, verdict.source), []).append(verdict)
    return [Claim(*key, tuple(group)) for key, group in groups.items()]


def tally(claims: Iterable[Claim]) -> dict[Kind, Counter[Outcome]]:
    """How many claims of each kind hold, hold in part, do not hold or stay open; kinds without claims left out."""
    counts = {kind: Counter[Outcome]() for kind in Kind}
    for claim in claims:
        counts[claim.source.kind][claim.outcome] += 1
    return {kind: found for kind, found in counts.items() if found}


def counted(counts: Counter[Outcome]) -> dict[Outcome, str]:
    """Counts in words.

    Examples
    --------
    >>> from collections import Counter
    >>> from ell12_paper.findings import Outcome, counted
    >>> list(counted(Counter({Outcome.FAILS: 1, Outcome.HOLDS: 2})).values())
    ['2 hold', '1 does not hold']
    """
    many = ("hold", "hold in part", "do not hold", "are not decidable")
    one = ("holds", "holds in part", "does not hold", "is not decidable")
    words = dict(zip(Outcome, zip(one, many, strict=True), strict=True))
    return {o: f"{counts[o]} {words[o][counts[o] > 1]}" for o in Outcome if counts[o]}


@dataclass(frozen=True)
class Cell:
    """A number of a table with what stands below it in small letters; bold where it is best or comparable."""

    text: str
    lines: tuple[str, ...] = ()
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the heads of its columns, that of the row labels included, and labelled rows.

    ``number`` is the paper's, such as "Table I"; what the paper does not show has none.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""
    number: str = ""


@dataclass(frozen=True)
class Key:
    """What a curve is, for the legend: the number of its colour (from 1) and how it is dashed."""

    label: str
    series: int
    dash: str = "solid"


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure, an element of the page, and the curves in it. It is drawn when it is asked for."""

    title: str
    draw: Callable[[], str]
    keys: tuple[Key, ...] = ()

    @cached_property
    def drawing(self) -> str:
        """The element."""
        return self.draw()


@dataclass(frozen=True)
class Figure:
    """Panels that share a legend and a caption; ``number`` is the paper's, as that of a table."""

    title: str
    panels: tuple[Panel, ...]
    caption: str
    small: bool = False
    number: str = ""

    @property
    def legend(self) -> list[Key]:
        """The curves of all panels, each once."""
        return list(dict.fromkeys(key for panel in self.panels for key in panel.keys))


@dataclass(frozen=True)
class Part:
    """Some words with the tables and figures that belong to them.

    ``where`` names the trials behind them: each entry is a choice of settings. ``lines`` are the first and the
    last line of these trials in the table of trials, as the report finds them.
    """

    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    where: tuple[Mapping[str, Any], ...] = ()
    lines: tuple[int, int] | None = None

    @property
    def numbers(self) -> list[str]:
        """The paper's numbers of its tables and figures, each once."""
        numbers = (*(table.number for table in self.tables), *(figure.number for figure in self.figures))
        return [number for number in dict.fromkeys(numbers) if number]


@dataclass(frozen=True)
class Section:
    """What one experiment has to show: the question, what came out, why it differs from the paper, the details.

    ``scale`` says in a few words how large the run was beside the paper's, ``headlines`` are for the first screen.
    """

    name: str
    title: str
    asked: tuple[str, ...]
    found: tuple[str, ...]
    reasons: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    parts: tuple[Part, ...]
    scale: str = ""
    headlines: tuple[Figure, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The paper's tables and figures that this section shows."""
        return sorted({n for part in self.parts for n in part.numbers}, key=lambda n: (n.startswith("Figure"), n))


@cache
def paper() -> dict[str, Any]:
    """The figures printed in the paper."""
    return json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))

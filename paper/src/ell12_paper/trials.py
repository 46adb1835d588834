"""The finished trials of an experiment: chosen by their settings, read repeat by repeat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ell12_paper.rows import Row
from ell12_paper.statistics import Summary, Values, summarize


@dataclass(frozen=True)
class Trials:
    """Rows with something in common, and what a table of them shows.

    Attributes
    ----------
    rows : tuple of Row
        Their results have ``is_limited``, whether a limit ended the run, where that is asked for.
    name : str
        What the rows have in common: a setup, a reading of the noise, or a method.
    methods : tuple of str
        The rows of a table.
    across : str
        The setting that differs from column to column.
    places : tuple
        The values of that setting.
    """

    rows: tuple[Row, ...]
    name: str = ""
    methods: tuple[str, ...] = ()
    across: str = "image"
    places: tuple[Any, ...] = ()

    def where(self, **settings: Any) -> Trials:
        """Those with these settings."""
        return replace(self, rows=tuple(r for r in self.rows if settings.items() <= r["settings"].items()))

    def at(self, method: str, place: Any, **settings: Any) -> Trials:
        """Those of a method in one column, under the method's name."""
        return replace(self.where(method=method, **{self.across: place}, **settings), name=method)

    def seen(self, setting: str, order: Iterable[Any] = ()) -> tuple[Any, ...]:
        """The values of a setting that have rows, in the given order; without one, as they come."""
        present = dict.fromkeys(row["settings"][setting] for row in self.rows)
        return tuple(value for value in order or present if value in present)

    def ended(self, end: Callable[[Row], Row | None]) -> Trials:
        """The same trials with other results: ``end`` makes new ones of the old, or None to drop a trial."""
        changed = ((row, end(row["results"])) for row in self.rows)
        return replace(self, rows=tuple(row | {"results": new} for row, new in changed if new is not None))

    @property
    def n_repeats(self) -> int:
        """The number of repeats."""
        return len(self.seen("repeat"))

    @property
    def n_limited(self) -> int:
        """How many runs ended at a limit before their rule was met."""
        return sum(row["results"]["is_limited"] for row in self.rows)

    def values(self, result: str) -> Values:
        """One result by repeat, where it was measured."""
        found = {row["settings"]["repeat"]: row["results"][result] for row in self.rows}
        return {repeat: found[repeat] for repeat in sorted(found) if found[repeat] is not None}

    def summary(self, result: str) -> Summary | None:
        """Mean and deviation of one result; None where it was not measured."""
        values = self.values(result)
        return summarize(values.values()) if values else None

    def mean(self, result: str) -> float:
        """The mean over the repeats; NaN where there is none."""
        summary = self.summary(result)
        return math.nan if summary is None else summary.mean

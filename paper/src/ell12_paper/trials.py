"""The finished trials of a study, compared repeat by repeat, and what the paper prints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ell12_paper.rows import Row
from ell12_paper.studies.images import LIKELY


@cache
def published() -> dict[str, Any]:
    """The printed numbers, by study; means come with their deviations."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def printed(name: str, method: str, column: int | str) -> list[float] | None:
    """Mean and deviation of "cpu_seconds" or "rmse_times_100" that Tables I to III print, for i or an image.

    None for our additions, and for pictures that neither are the paper's nor stand for them.
    """
    if isinstance(column, int):
        values = published()["compressed-sensing"][name].get(method)
        return values and values[column]
    return published()["completion"][name].get(LIKELY.get(column, column), {}).get(method)


Values = Mapping[int, float]  # one number per repeat
CONFIDENCE = 0.95


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
    across, columns : str, tuple
        The setting that differs from column to column, and its values.
    """

    rows: tuple[Row, ...]
    name: str = ""
    methods: tuple[str, ...] = ()
    across: str = "image"
    columns: tuple[Any, ...] = ()

    def where(self, **settings: Any) -> Trials:
        """Those with these settings."""
        return replace(self, rows=tuple(r for r in self.rows if settings.items() <= r["settings"].items()))

    def at(self, method: str, column: Any, **settings: Any) -> Trials:
        """Those of a method in one column, under the method's name."""
        return replace(self.where(method=method, **{self.across: column}, **settings), name=method)

    def seen(self, setting: str, order: Iterable[Any] = ()) -> tuple[Any, ...]:
        """The values of a setting that have rows, in the given order, others behind."""
        present = dict.fromkeys(row["settings"][setting] for row in self.rows if setting in row["settings"])
        return tuple(value for value in dict.fromkeys((*order, *present)) if value in present)

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

    def mean(self, result: str) -> float:
        """The mean over the repeats; NaN where there is none."""
        return mean_of(self.values(result))

    def deviation(self, result: str) -> float | None:
        """The standard deviation (n - 1) over the repeats; one repeat has none."""
        found = list(self.values(result).values())
        return float(np.std(found, ddof=1)) if len(found) > 1 else None


def mean_of(values: Values) -> float:
    """The mean; NaN of nothing."""
    return float(np.mean(list(values.values()))) if values else math.nan


def logarithms(values: Values) -> Values:
    """The logarithm of each value: by it two methods are compared by their ratio in each repeat.

    Examples
    --------
    >>> from ell12_paper.trials import logarithms
    >>> logarithms({0: 1.0})
    {0: 0.0}
    """
    return {repeat: math.log(value) for repeat, value in values.items() if value > 0}


def differs(first: Values, second: Values) -> bool | None:
    """Whether two methods differ by the paired t-test at 95 % over shared repeats; None with fewer than two.

    Examples
    --------
    >>> from ell12_paper.trials import differs
    >>> differs({0: 1.0, 1: 2.0, 2: 4.0}, {0: 2.0, 1: 3.0, 2: 5.0}), differs({0: 1.0}, {0: 2.0})
    (True, None)
    """
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return None
    ours, theirs = (np.array([values[repeat] for repeat in shared]) for values in (first, second))
    noise = 4 * np.finfo(float).eps * max(np.abs(ours).max(), np.abs(theirs).max())
    if np.std(ours - theirs, ddof=1) <= noise:  # rounding alone
        return bool(abs(np.mean(ours - theirs)) > noise)
    return bool(stats.ttest_rel(ours, theirs).pvalue < 1 - CONFIDENCE)


def comparable(values_by_method: Mapping[str, Values]) -> set[str]:
    """The best method by its mean, and those that do not differ from it significantly.

    Means are taken over the repeats that all methods have; with fewer than two of these nothing is best.

    Examples
    --------
    >>> from ell12_paper.trials import comparable
    >>> sorted(comparable({"a": {0: 1.0, 1: 2.0}, "b": {0: 1.1, 1: 1.8}, "c": {0: 9.0, 1: 9.9}}))
    ['a', 'b']
    """
    present = {name: values for name, values in values_by_method.items() if values}
    shared = set.intersection(*map(set, present.values())) if present else set()
    if len(shared) < 2:
        return set()
    means = {name: float(np.mean([values[r] for r in shared])) for name, values in present.items()}
    best = min(means, key=lambda name: means[name])
    return {n for n, v in present.items() if means[n] == means[best] or differs(v, present[best]) is False}


def geometric_ratio(ours: Trials, theirs: Trials, result: str = "cpu_seconds") -> float:
    """The geometric mean over shared repeats of theirs over ours; NaN without any."""
    logs = [logarithms(trials.values(result)) for trials in (ours, theirs)]
    shared = logs[0].keys() & logs[1].keys()
    return math.exp(float(np.mean([logs[1][r] - logs[0][r] for r in shared]))) if shared else math.nan

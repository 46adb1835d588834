"""Whether a trial that is measured again gives what its row says, and which trials to measure again."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from ell12.wording import number, percent
from ell12_paper.rows import Row
from ell12_paper.workers import Trial

TIME = "seconds"  # in the name of a result that a clock decided
# How far results may differ, as a fraction. Another processor rounds sums in another order. On 489 trials of the
# quick study, with kernels of OpenBLAS and NumPy for another processor, objectives differed by up to 2.6e-6 and
# errors of recovery by up to 1.7e-2; those of SketchyCGM, whose steps follow rounding, by up to 6.5e-2.
MOST_OF_OBJECTIVES, MOST, MOST_OF_FREE = 1e-4, 5e-2, 1e-1
OBJECTIVES = frozenset(("objective", "smoothed_objective", "value", "values"))
FREE_METHODS = frozenset(("SketchyCGM",))
# Results that tell the way to the end. In that comparison the iterations of nmAPG differed by up to 20 %. So these
# are judged only where the end is the same to the last digit.
WAY = frozenset(("alpha", "difference", "early", "history", "n_iter", "rules", "stationarity", "status", "tried"))
COUNTS = 5e-2  # of whole numbers, such as entries that are not zero, and one more


@dataclass(frozen=True)
class Agreement:
    """What a comparison found.

    Attributes
    ----------
    is_exact : bool
        Whether every result, but for times, is the same to the last digit.
    largest : float
        The largest difference of a number that is judged, as a fraction.
    differing : tuple of str
        The results that differ by more than rounding, each with both values.
    """

    is_exact: bool
    largest: float = 0.0
    differing: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether rounding explains it all."""
        return not self.differing


def compare(there: Row, here: Row, is_free: bool = False) -> Agreement:
    """Compare two results of one trial, but for times; ``is_free`` where its method's steps follow rounding.

    Examples
    --------
    >>> from ell12_paper.agreement import compare
    >>> compare({"rmse": 0.5, "n_iter": 7, "seconds": 1.0}, {"rmse": 0.5, "n_iter": 7, "seconds": 9.0})
    Agreement(is_exact=True, largest=0.0, differing=())
    >>> compare({"rmse": 0.5, "n_iter": 7}, {"rmse": 0.501, "n_iter": 8}).agrees
    True
    >>> compare({"objective": 0.5}, {"objective": 0.501}).differing
    ('objective is 0.5 there and 0.501 here (+0.20 %)',)
    """
    theirs, ours = dict(_leaves(there)), dict(_leaves(here))
    names = dict.fromkeys((*theirs, *ours))
    pairs = {name: (theirs.get(name, _gone), ours.get(name, _gone)) for name in names}
    unequal = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    judged = {name: pair for name, pair in unequal.items() if name.partition(".")[0] not in WAY} or unequal
    gaps = {name: _gap(*pair) for name, pair in judged.items()}
    wrong = [name for name, gap in gaps.items() if gap is None or gap > _most(name, pairs[name], is_free)]
    largest = max((gap for gap in gaps.values() if gap is not None), default=0.0)
    return Agreement(not unequal, largest, tuple(_words(name, *pairs[name]) for name in wrong))


def _most(name: str, pair: tuple[Any, Any], is_free: bool) -> float:
    """How far the two values of a result may differ."""
    if all(isinstance(value, int) for value in pair):
        return math.inf if is_free else COUNTS + 1 / max(map(abs, pair))
    return MOST_OF_FREE if is_free else MOST_OF_OBJECTIVES if name in OBJECTIVES else MOST


def time_ratio(there: Row, here: Row) -> float | None:
    """How many times as long a trial took here, by the clock of its method; None where it has none."""
    for name in ("cpu_seconds", TIME):
        times: list[Any] = [here.get(name), there.get(name)]
        if all(map(_is_number, times)) and times[1] > 0:
            return times[0] / times[1]
    return None


def is_free(trial: Trial) -> bool:
    """Whether rounding may lead the method of a trial elsewhere."""
    return trial.settings.get("method") in FREE_METHODS


_gone = object()


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The results by name, those of nested dictionaries with a dot, without times; lists are left whole."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, entry in value.items():
        if TIME not in key:
            yield from _leaves(entry, f"{name}.{key}" if name else key)


def _gap(a: Any, b: Any) -> float | None:
    """The difference of two numbers or lists, as a fraction of the largest entry; None where there is none."""
    ours, theirs = _numbers(a), _numbers(b)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    scale = max(map(abs, (*ours, *theirs)), default=0.0)
    return max(abs(x - y) for x, y in zip(ours, theirs, strict=True)) / scale if scale else 0.0


def _numbers(value: Any) -> list[float] | None:
    """The numbers in a nest of lists; None if it holds anything else."""
    if not isinstance(value, list):
        return [value] if _is_number(value) else None
    parts = [_numbers(entry) for entry in value]
    return None if None in parts else [x for part in parts if part for x in part]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(name: str, there: Any, here: Any) -> str:
    if _is_number(there) and _is_number(here):
        change = f" ({percent(here / there - 1)})" if there else ""
        return f"{name} is {number(there)} there and {number(here)} here{change}"
    if isinstance(there, str | None) and isinstance(here, str | None):
        return f"{name} is {there} there and {here} here"
    return (
        f"{name} is missing {'there' if there is _gone else 'here'}"
        if _gone in (there, here)
        else f"{name} differs"
    )


# Which trials to measure again, and what to make of them


def sample(
    trials: Sequence[Trial], rows: Mapping[str, Row], count: int | None, seconds: float, seed: int
) -> list[Trial]:
    """Some trials by chance, from each experiment in turn.

    Without a count they are as many as took so many seconds, by their rows. What a limit of time may have ended is
    left out: it ends elsewhere on every machine.
    """
    decks: dict[str, list[Trial]] = {}
    for trial in trials:
        if not is_clocked(trial, rows[trial.key]["results"]):
            decks.setdefault(trial.experiment, []).append(trial)
    chance = random.Random(seed)
    for deck in decks.values():
        chance.shuffle(deck)
    order = [trial for trial in chain.from_iterable(zip_longest(*decks.values())) if trial is not None]
    if count is not None:
        return order[:count]
    chosen, left = [], seconds
    for trial in order:
        if _seconds(rows[trial.key]) <= left:
            chosen.append(trial)
            left -= _seconds(rows[trial.key])
    return chosen or order[:1]


def is_clocked(trial: Trial, results: Row) -> bool:
    """Whether a limit of CPU time may have ended a trial."""
    taken = results.get("cpu_seconds")
    return taken is not None and _is_number(taken) and taken >= (trial.settings.get("max_cpu_seconds") or math.inf)


def _seconds(row: Row) -> float:
    found = row["environment"].get("trial_seconds")
    return max(found, 0.0) if _is_number(found) else 0.0


def merged(rows: Sequence[Row], new: Mapping[str, Row]) -> list[Row]:
    """The rows with results that were measured here.

    Times of two machines do not compare: those of the rows stay, unless every trial of an experiment was measured
    again.
    """
    whole = {row["experiment"] for row in rows} - {row["experiment"] for row in rows if row["key"] not in new}
    found = []
    for row in rows:
        results = new.get(row["key"], row["results"])
        if row["experiment"] not in whole:
            results = _with_times(results, row["results"])
        found.append(row | {"results": results})
    return found


def _with_times(here: Any, there: Any) -> Any:
    """The results from here with the times from there; a history of another length is kept as it was there."""
    if not isinstance(here, dict) or not isinstance(there, dict):
        return here
    lists = [(here[name], there[name]) for name in here.keys() & there.keys() if isinstance(there[name], list)]
    if any(not isinstance(ours, list) or len(ours) != len(theirs) for ours, theirs in lists):
        return there
    return {
        name: there[name] if TIME in name and name in there else _with_times(value, there.get(name))
        for name, value in here.items()
    }

"""How a claim is judged: an answer in each case, such as an image; the outcome of a reading; that of a claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ell12_paper.studies.images import short_name
from ell12_paper.trials import Trials, Values, differs, logarithms
from ell12_paper.words import RangeInWords, listed, number, percent


class Outcome(Enum):
    """What the rows say; in part is what several readings of one claim may come to, never one."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "not decidable"


MARKS = dict(zip(Outcome, "✓~✗?", strict=True))
COUNTED = dict(zip(Outcome, ("hold", "hold in part", "do not hold", "not decidable"), strict=True))


@dataclass(frozen=True)
class Reading:
    """What the rows say of a claim as it is read in one way: the outcome, why, the numbers."""

    name: str
    outcome: Outcome
    reason: str
    numbers: str = ""
    brief: str = ""  # one number, for the line of the claim
    paper: str = ""  # what the paper has for it


@dataclass(frozen=True)
class Claim:
    """A claim, whose it is ("paper", "cited" or "ours"), where the paper has it, and its readings."""

    study: str
    kind: str
    source: str
    text: str
    readings: tuple[Reading, ...]

    @property
    def outcome(self) -> Outcome:
        """What the readings agree on; where one holds and another does not, it holds in part."""
        found = {reading.outcome for reading in self.readings}
        mixed = Outcome.PARTLY if Outcome.HOLDS in found else Outcome.FAILS
        return found.pop() if len(found) == 1 else mixed

    @property
    def brief(self) -> str:
        """One number for each reading that has one, or one for all where these are many."""
        named: dict[str, list[str]] = {}
        briefs = [reading.brief for reading in self.readings if reading.brief]
        ranges = [brief for brief in briefs if isinstance(brief, RangeInWords)]
        is_one = len(ranges) == len(briefs) > 2 and len({found.unit for found in ranges}) == 1
        if is_one:
            together = [value for found in ranges for value in found.values]
            named = {RangeInWords(together, ranges[0].show, ranges[0].unit): []}
        for reading in self.readings:
            if reading.brief and not is_one:
                named.setdefault(reading.brief, []).append(reading.name)
        said = [f"{brief} ({', '.join(names)})" if any(names) else brief for brief, names in named.items()]
        paper = dict.fromkeys(f"the paper: {reading.paper}" for reading in self.readings if reading.paper)
        return "; ".join((*(said if len(named) > 1 else named), *paper))


def tally(claims: Iterable[Claim]) -> str:
    """How many claims hold, hold in part, do not hold or stay open."""
    counts = Counter(claim.outcome for claim in claims)
    return ", ".join(f"{counts[outcome]} {COUNTED[outcome]}" for outcome in Outcome if counts[outcome])


CUT = "was cut"  # ended by a limit of ours: behind the name of a method, why an answer is open


@dataclass(frozen=True)
class Answer:
    """What the rows say in one case, and why they leave it open where they do."""

    case: Any
    outcome: Outcome
    doubt: str = ""


def answer(case: Any, holds: bool) -> Answer:
    """An answer without doubt."""
    return Answer(case, Outcome.HOLDS if holds else Outcome.FAILS)


def lower(case: Any, ours: Values, theirs: Values) -> Answer:
    """Whether ours is lower by the paired t-test at 95 %.

    Examples
    --------
    >>> from ell12_paper.comparisons import lower
    >>> lower("here", {0: 1.0, 1: 1.2, 2: 1.1}, {0: 2.0, 1: 2.3, 2: 2.0}).outcome.value
    'holds'
    """
    shared = ours.keys() & theirs.keys()
    if not shared:
        return Answer(case, Outcome.OPEN, "there are no rows")
    different = differs(ours, theirs)
    if different is None:
        return Answer(case, Outcome.OPEN, "a single repeat allows no test")
    if not different:
        return Answer(case, Outcome.OPEN, "within the spread")
    return answer(case, sum(ours[repeat] - theirs[repeat] for repeat in shared) < 0)


def lower_at_end(case: Any, result: str, ours: Trials, theirs: Trials) -> Answer:
    """Whether an error of ours is lower by the ratio in each repeat; open where one ended at a limit of ours."""
    found = lower(case, *(logarithms(trials.values(result)) for trials in (ours, theirs)))
    limited = [trials.name for trials in (ours, theirs) if trials.n_limited]
    if limited and not found.doubt:
        return Answer(case, Outcome.OPEN, f"{' and '.join(limited)} {CUT}")
    return found


def faster(case: Any, ours: Trials, theirs: Trials, times: float = 1.0) -> Answer:
    """Whether ours is so many times faster by the paired t-test on the logarithms of the times.

    A run that hit the limit would have taken at least as long as it did, so that it may lose but not win.
    """
    mine, other = (logarithms(trials.values("cpu_seconds")) for trials in (ours, theirs))
    found = lower(case, {repeat: value + math.log(times) for repeat, value in mine.items()}, other)
    for outcome, limited in ((Outcome.HOLDS, ours), (Outcome.FAILS, theirs)):
        if found.outcome is outcome and limited.n_limited:
            return Answer(case, Outcome.OPEN, f"{limited.name} {CUT}")
    return found


def worst(case: Any, against: dict[str, Answer]) -> Answer:
    """One answer from those on several rivals: the worst of them, naming the rivals that leave it open."""
    for outcome in (Outcome.FAILS, Outcome.OPEN):
        chosen = {rival: found for rival, found in against.items() if found.outcome is outcome}
        if chosen:
            doubts: dict[str, list[str]] = {}
            for rival, found in chosen.items():
                doubts.setdefault(found.doubt, []).append(rival)
            names = {doubt: "" if doubt.endswith(CUT) else f"{', '.join(r)}: " for doubt, r in doubts.items()}
            said = "; ".join(f"{name}{doubt}" for doubt, name in names.items() if doubt)
            return Answer(case, outcome, said)
    return answer(case, True)


def ratio(ours: Trials, theirs: Trials, result: str = "cpu_seconds") -> float:
    """The mean of theirs divided by that of ours over the repeats of both; NaN without any."""
    times = [trials.values(result) for trials in (ours, theirs)]
    totals = [sum(found[r] for r in times[0].keys() & times[1].keys()) for found in times]
    return totals[1] / totals[0] if totals[0] > 0 else math.nan


def time_ratio(ours: Trials, theirs: Trials) -> str:
    """The ratio of mean times in words."""
    return bounded(ratio(ours, theirs), ours, theirs)


def bounded(value: float, ours: Trials, theirs: Trials) -> str:
    """A ratio of theirs to ours in words, as a bound where one ended at its limit."""
    if math.isnan(value):
        return "no rows"
    if ours.n_limited and theirs.n_limited:
        return "both at the limit"
    return ("≤ " if ours.n_limited else "≥ " if theirs.n_limited else "") + number(value)


def reading(
    name: str,
    answers: Sequence[Answer],
    words: tuple[str, str],
    at: Callable[[list[Any]], str],
    numbers: str = "",
    brief: str = "",
    paper: str = "",
) -> Reading:
    """A claim holds when it holds in every case, and does not when it fails at one.

    ``words`` say what holds and what fails, ``at`` the cases, such as "at i = 0 to 4".
    """
    outcomes = {found.outcome for found in answers}
    total = next((o for o in (Outcome.FAILS, Outcome.OPEN) if o in outcomes), Outcome.HOLDS)
    named = zip((Outcome.HOLDS, Outcome.FAILS), words, strict=True)
    groups = [(word, [a.case for a in answers if a.outcome is outcome]) for outcome, word in named]
    for doubt in dict.fromkeys(a.doubt for a in answers if a.outcome is Outcome.OPEN):
        groups.append((f"open ({doubt})", [a.case for a in answers if a.doubt == doubt]))
    groups = [(word, found) for word, found in groups if found]
    reason = "; ".join(f"{word} {at(found)}" if len(groups) > 1 else word for word, found in groups)
    return Reading(name, total, reason[:1].upper() + reason[1:] + ".", numbers, brief, paper)


def plain(name: str, holds: bool, reason: str, numbers: str = "", brief: str = "") -> Reading:
    """A reading without cases."""
    return Reading(name, Outcome.HOLDS if holds else Outcome.FAILS, reason, numbers, brief)


def contest(
    name: str,
    pairs: Mapping[Any, tuple[Trials, Trials]],
    at: Callable[[list[Any]], str],
    result: str = "cpu_seconds",
    paper: str = "",
) -> Reading:
    """Whether the first of each pair is faster, or has the lower error, in every case."""
    is_time = result == "cpu_seconds"
    answers = [faster(p, *pair) if is_time else lower_at_end(p, result, *pair) for p, pair in pairs.items()]
    known = [value for pair in pairs.values() if not math.isnan(value := ratio(*pair, result))]
    if is_time:
        shown, brief = [time_ratio(*pair) for pair in pairs.values()], RangeInWords(known, unit="{} times")
    else:
        changes = [1 / value - 1 for value in known]
        shown, brief = [*map(percent, changes)], RangeInWords(changes, percent)
    words = ("faster", "slower") if is_time else ("lower", "higher")
    numbers = f"{'Ratios' if is_time else 'Changes'}: {', '.join(shown)}."
    return reading(name, answers, words, at, numbers, brief, paper)


def on_each(images: list[Any]) -> str:
    """Images, as the cases of a claim."""
    return f"on {', '.join(map(short_name, images))}" if len(images) < 3 else "on all"


def at_i(grid: list[Any]) -> str:
    """Numbers i of a grid of strengths, as the cases of a claim."""
    return f"at i = {listed(grid)}"

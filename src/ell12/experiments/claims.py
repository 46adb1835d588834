"""A claim at several places (values of a parameter, images): what the rows say at each, and of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ell12.experiments.report import Outcome, Verdict
from ell12.experiments.statistics import Values, differs, logarithms, summarize
from ell12.wording import number


@dataclass(frozen=True)
class Answer:
    """What the rows say at one place, and why they leave it open where they do."""

    place: Any
    outcome: Outcome
    doubt: str = ""


def lower(place: Any, ours: Values, theirs: Values) -> Answer:
    """Whether ours is lower by the paired t-test at 95 %.

    Examples
    --------
    >>> lower("here", {0: 1.0, 1: 1.2, 2: 1.1}, {0: 2.0, 1: 2.3, 2: 2.0}).outcome.value
    'holds'
    """
    shared = ours.keys() & theirs.keys()
    if not shared:
        return Answer(place, Outcome.OPEN, "there are no rows")
    different = differs(ours, theirs)
    if different is None:
        return Answer(place, Outcome.OPEN, "a single repeat allows no test")
    if not different:
        return Answer(place, Outcome.OPEN, "the difference is within the spread of the repeats")
    is_lower = sum(ours[repeat] - theirs[repeat] for repeat in shared) < 0
    return Answer(place, Outcome.HOLDS if is_lower else Outcome.FAILS)


def verdict(
    claim: str,
    answers: Sequence[Answer],
    words: tuple[str, str],
    numbers: str,
    setting: str,
    at: Callable[[list[Any]], str],
) -> Verdict:
    """A claim holds when it holds at every place, and does not when it fails at one.

    ``words`` say what holds and what fails, ``at`` the places, such as "at i = 0 to 4".
    """
    outcomes = {answer.outcome for answer in answers}
    total = next((o for o in (Outcome.FAILS, Outcome.OPEN) if o in outcomes), Outcome.HOLDS)
    said = zip((Outcome.HOLDS, Outcome.FAILS), words, strict=True)
    groups = [(word, [a.place for a in answers if a.outcome is outcome]) for outcome, word in said]
    for doubt in dict.fromkeys(a.doubt for a in answers if a.outcome is Outcome.OPEN):
        groups.append((f"open ({doubt})", [a.place for a in answers if a.doubt == doubt]))
    reason = "; ".join(f"{word} {at(found)}" for word, found in groups if found)
    return Verdict(claim, total, numbers, reason[:1].upper() + reason[1:] + ".", setting)


@dataclass(frozen=True)
class Timed:
    """A method's times by repeat, and how many of its runs ended at a limit before their rule was met."""

    method: str
    seconds: Values
    n_limited: int


def faster(place: Any, ours: Timed, theirs: Timed) -> Answer:
    """Whether ours is faster by the paired t-test on the logarithms of the times.

    A run that hit the limit would have taken at least as long as it did, so that it may lose but not win.
    """
    answer = lower(place, logarithms(ours.seconds), logarithms(theirs.seconds))
    for outcome, limited in ((Outcome.HOLDS, ours), (Outcome.FAILS, theirs)):
        if answer.outcome is outcome and limited.n_limited:
            return Answer(place, Outcome.OPEN, f"{limited.method} ended at its limit")
    return answer


def time_ratio(ours: Timed, theirs: Timed) -> str:
    """How many times as long as ours theirs takes on average, as a bound where one ended at its limit."""
    if not ours.seconds or not theirs.seconds:
        return "no rows"
    means = [summarize(timed.seconds.values()).mean for timed in (ours, theirs)]
    if means[0] <= 0:
        return "no rows"
    signs = {(False, True): "≥ ", (True, False): "≤ "}
    limited = (ours.n_limited > 0, theirs.n_limited > 0)
    return "both at the limit" if all(limited) else signs.get(limited, "") + number(means[1] / means[0])

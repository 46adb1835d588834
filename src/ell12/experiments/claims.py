"""A claim at several places (values of a parameter, images): what the rows say at each, and of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ell12.experiments.report import Outcome, Verdict
from ell12.experiments.statistics import Values, differs


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

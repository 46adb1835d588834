"""Claims that are made at several places, such as images or strengths: an answer at each, a verdict on all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ell12.datasets import STAND_INS
from ell12.wording import listed, number
from ell12_paper.findings import Outcome, Source, Verdict
from ell12_paper.statistics import Values, differs, logarithms
from ell12_paper.trials import Trials


@dataclass(frozen=True)
class Answer:
    """What the rows say at one place, and why they leave it open where they do."""

    place: Any
    outcome: Outcome
    doubt: str = ""


def answer(place: Any, holds: bool) -> Answer:
    """An answer without doubt."""
    return Answer(place, Outcome.HOLDS if holds else Outcome.FAILS)


def lower(place: Any, ours: Values, theirs: Values) -> Answer:
    """Whether ours is lower by the paired t-test at 95 %.

    Examples
    --------
    >>> from ell12_paper.claims import lower
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
    return answer(place, sum(ours[repeat] - theirs[repeat] for repeat in shared) < 0)


def lower_at_end(place: Any, result: str, ours: Trials, theirs: Trials, excused: str = "") -> Answer:
    """Whether an error of ours is lower by the ratio in each repeat: a hard problem raises all errors by a factor.

    Open where one ended at a limit, unless it is the excused method.
    """
    found = lower(place, *(logarithms(trials.values(result)) for trials in (ours, theirs)))
    limited = [trials.name for trials in (ours, theirs) if trials.name != excused and trials.n_limited]
    if limited and not found.doubt:
        return Answer(place, Outcome.OPEN, f"{' and '.join(limited)} ended at the limit")
    return found


def faster(place: Any, ours: Trials, theirs: Trials) -> Answer:
    """Whether ours is faster by the paired t-test on the logarithms of the times.

    A run that hit the limit would have taken at least as long as it did, so that it may lose but not win.
    """
    found = lower(place, *(logarithms(trials.values("cpu_seconds")) for trials in (ours, theirs)))
    for outcome, limited in ((Outcome.HOLDS, ours), (Outcome.FAILS, theirs)):
        if found.outcome is outcome and limited.n_limited:
            return Answer(place, Outcome.OPEN, f"{limited.name} ended at its limit")
    return found


def worst(place: Any, against: dict[str, Answer]) -> Answer:
    """One answer from those on several rivals: the worst of them, naming the rivals that leave it open."""
    for outcome in (Outcome.FAILS, Outcome.OPEN):
        chosen = {rival: found for rival, found in against.items() if found.outcome is outcome}
        if chosen:
            doubts: dict[str, list[str]] = {}
            for rival, found in chosen.items():
                doubts.setdefault(found.doubt, []).append(rival)
            said = "; ".join(f"{', '.join(rivals)}: {doubt}" for doubt, rivals in doubts.items() if doubt)
            return Answer(place, outcome, said)
    return answer(place, True)


def time_ratio(ours: Trials, theirs: Trials) -> str:
    """The mean time of theirs divided by that of ours over the repeats of both, as `bounded` says it."""
    times = [trials.values("cpu_seconds") for trials in (ours, theirs)]
    totals = [sum(found[r] for r in times[0].keys() & times[1].keys()) for found in times]
    return bounded(totals[1] / totals[0] if totals[0] > 0 else math.nan, ours, theirs)


def bounded(ratio: float, ours: Trials, theirs: Trials) -> str:
    """A ratio of theirs to ours in words, as a bound where one ended at its limit."""
    if math.isnan(ratio):
        return "no rows"
    if ours.n_limited and theirs.n_limited:
        return "both at the limit"
    return ("≤ " if ours.n_limited else "≥ " if theirs.n_limited else "") + number(ratio)


def verdict(
    claim: str,
    answers: Sequence[Answer],
    words: tuple[str, str],
    numbers: str,
    setting: str,
    at: Callable[[list[Any]], str],
    source: Source,
) -> Verdict:
    """A claim holds when it holds at every place, and does not when it fails at one.

    ``words`` say what holds and what fails, ``at`` the places, such as "at i = 0 to 4", ``source`` who claims it.
    """
    outcomes = {answer.outcome for answer in answers}
    total = next((o for o in (Outcome.FAILS, Outcome.OPEN) if o in outcomes), Outcome.HOLDS)
    said = zip((Outcome.HOLDS, Outcome.FAILS), words, strict=True)
    groups = [(word, [a.place for a in answers if a.outcome is outcome]) for outcome, word in said]
    for doubt in dict.fromkeys(a.doubt for a in answers if a.outcome is Outcome.OPEN):
        groups.append((f"open ({doubt})", [a.place for a in answers if a.doubt == doubt]))
    reason = "; ".join(f"{word} {at(found)}" for word, found in groups if found)
    return Verdict(claim, total, numbers, reason[:1].upper() + reason[1:] + ".", setting, source)


def on_each(images: list[Any]) -> str:
    """Images, as the places of a claim."""
    return f"on {', '.join(map(image_name, images))}"


def image_name(image: str) -> str:
    """What an image is; behind a stand-in, the paper's name of the image it stands for.

    Examples
    --------
    >>> from ell12_paper.claims import image_name
    >>> image_name("Sea"), image_name("Discs")
    ('moon (Sea)', 'Discs')
    """
    return f"{STAND_INS[image]} ({image})" if image in STAND_INS else image


def at_i(grid: list[Any]) -> str:
    """Numbers i of a grid of strengths, as the places of a claim."""
    return f"at i = {listed(grid)}"

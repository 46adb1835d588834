"""The paper's claims on image completion, checked against the rows of its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ell12.experiments.claims import (
    Answer,
    answer,
    faster,
    lower_at_end,
    on_each,
    time_ratio,
    verdict,
)
from ell12.experiments.completion.study import IMAGES, METHODS, NAME, SKETCHY
from ell12.experiments.report import Outcome, Verdict, paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import Values, summarize
from ell12.experiments.tables import error_words
from ell12.experiments.trials import Trials
from ell12.wording import percent

OURS, NUCLEAR = "nmAPG", "AIS-Impute"
FACTORIZATIONS = ("ARSS-M3F", "LMaFit", "ER1MP")
RIVALS = (NUCLEAR, SKETCHY, *FACTORIZATIONS, "FaNCL")
# One engine, with and without the subtracted norm, and for log-sum.
BLOCK, CONVEX, LOG_SUM = "nmAPG(block)", "nuclear norm(block)", "log-sum(block)"
ERRORS = {"all pixels": "rmse", "missing pixels": "rmse_missing"}
AS_PRINTED = 0.5  # "about as much as printed" means at least this part of the printed gain


def of_study(rows: Sequence[Row], study: str) -> Trials:
    """The rows of one study: the table, the path, theta or centring; images in the order of the paper's table."""
    chosen = Trials(tuple(rows)).where(study=study)
    return Trials(chosen.rows, study, chosen.seen("method", METHODS), "image", chosen.seen("image", IMAGES))


def along_grid(trials: Trials, method: str, image: str, result: str) -> dict[float, float]:
    """The mean of one result at each value of a method's parameter."""
    setting = METHODS[method].setting
    chosen = trials.at(method, image)
    found = {value: chosen.where(**{setting: value}).summary(result) for value in sorted(chosen.seen(setting))}
    return {value: summary.mean for value, summary in found.items() if summary}


def verdicts_of(table: Trials) -> list[Verdict]:
    """Every claim of the paper."""
    return [
        *(_lowest(table, where) for where in ERRORS),
        *(_worse(table, FACTORIZATIONS, (NUCLEAR, "FaNCL", OURS), where) for where in ERRORS),
        *(_worse(table, (SKETCHY,), (NUCLEAR,), where) for where in ERRORS),
        _gain(table),
        *(_faster(table, rival, OURS) for rival in FACTORIZATIONS),
        *(_faster(table, OURS, rival) for rival in ("FaNCL", "nmAPG(full SVD)")),
        _faster(table, BLOCK, "DCA(block)"),
    ]


def _lowest(table: Trials, where: str) -> Verdict:
    """Whether nmAPG is ahead of every rival on every image."""
    answers, shown = [], []
    for image in table.places:
        answers.append(_worst(image, {rival: _lower_error(table, OURS, rival, image, where) for rival in RIVALS}))
        errors = {rival: table.at(rival, image).summary(ERRORS[where]) for rival in RIVALS}
        means = {rival: summary.mean for rival, summary in errors.items() if summary}
        best = min(means, key=lambda rival: means[rival], default="no rival")
        shown.append(
            f"{image} {_error(table, OURS, image, where)} (best rival: {best}"
            f"{f' {_error(table, best, image, where)}' if means else ''})"
        )
    claim = f"{OURS} achieves the lowest RMSE of all methods on every image"
    numbers = f"RMSE x 100: {'; '.join(shown)}."
    return verdict(claim, answers, ("lowest", "not lowest"), numbers, where, on_each)


def _worst(place: Any, against: dict[str, Answer]) -> Answer:
    """One answer from those on several rivals: the worst of them, naming the rivals that leave it open."""
    for outcome in (Outcome.FAILS, Outcome.OPEN):
        chosen = {rival: found for rival, found in against.items() if found.outcome is outcome}
        if chosen:
            doubts = "; ".join(f"{rival}: {found.doubt}" for rival, found in chosen.items() if found.doubt)
            return Answer(place, outcome, doubts)
    return answer(place, True)


def _worse(table: Trials, methods: Sequence[str], rivals: Sequence[str], where: str) -> Verdict:
    """Whether every one of the methods has a higher error than every one of the rivals."""
    answers, shown = [], []
    for image in table.places:
        for method in methods:
            against = {rival: _lower_error(table, rival, method, image, where) for rival in rivals}
            answers.append(_worst((method, image), against))
        errors = ", ".join(f"{method} {_error(table, method, image, where)}" for method in (*methods, *rivals))
        shown.append(f"{image}: {errors}")
    claim = f"{_and(methods)} recover{'' if len(methods) > 1 else 's'} worse than {_and(rivals)} on every image"
    return verdict(claim, answers, ("worse", "not worse"), f"RMSE x 100. {'; '.join(shown)}.", where, _method_on)


def _method_on(places: list[tuple[str, str]]) -> str:
    images: dict[str, list[str]] = {}
    for method, image in places:
        images.setdefault(method, []).append(image)
    return "for " + ", ".join(f"{method} ({', '.join(found)})" for method, found in images.items())


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _lower_error(table: Trials, method: str, rival: str, image: str, where: str) -> Answer:
    # SketchyCGM's slow convergence is what the paper blames, so what it reaches is what counts.
    return lower_at_end(image, ERRORS[where], table.at(method, image), table.at(rival, image), excused=SKETCHY)


def _error(table: Trials, method: str, image: str, where: str) -> str:
    return error_words(table.at(method, image), ERRORS[where], deviation=False)


def _gain(table: Trials) -> Verdict:
    """Whether subtracting the norm gains about what the table prints, one engine and one rule for both."""
    answers, shown = [], []
    for image in table.places:
        gain, printed = gains(table, image)
        mean = summarize(gain.values()).mean if gain else None
        shown.append(f"{image} {'no rows' if mean is None else percent(-mean)} (paper {percent(-printed)})")
        if mean is None:
            answers.append(Answer(image, Outcome.OPEN, "there are no rows"))
        else:
            answers.append(answer(image, mean >= AS_PRINTED * printed))
    words = ("at least half the printed gain", "less than half the printed gain")
    claim = "l1-2 lowers the RMSE of the nuclear norm by about as much as the table prints"
    return verdict(claim, answers, words, f"Change of RMSE: {'; '.join(shown)}.", "all pixels", on_each)


def gains(table: Trials, image: str) -> tuple[Values, float]:
    """By which fraction l1-2 lowers the nuclear norm's RMSE on an image in each repeat, and as printed."""
    printed = paper()[NAME]["rmse_times_100"][image]
    l12, nuclear = (table.at(method, image).values("rmse") for method in (BLOCK, CONVEX))
    found = {repeat: 1 - l12[repeat] / nuclear[repeat] for repeat in sorted(l12.keys() & nuclear.keys())}
    return found, 1 - printed[OURS][0] / printed[NUCLEAR][0]


def _faster(table: Trials, method: str, rival: str) -> Verdict:
    pairs = {image: (table.at(method, image), table.at(rival, image)) for image in table.places}
    answers = [faster(image, *pair) for image, pair in pairs.items()]
    ratios = "; ".join(f"{image} {time_ratio(*pair)}" for image, pair in pairs.items())
    claim = f"{method} is faster than {rival} on every image"
    numbers = f"CPU time of {rival} / {method}: {ratios}."
    return verdict(claim, answers, ("faster", "slower"), numbers, "CPU time", on_each)

"""Judges of claims on image completion and on total variation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ell12_paper.comparisons import (
    Answer,
    Outcome,
    Reading,
    answer,
    at_i,
    bounded,
    faster,
    lower_at_end,
    on_each,
    ratio,
    reading,
    time_ratio,
    worst,
)
from ell12_paper.judges import NEAR, Rows, is_near, variant_trials
from ell12_paper.published import published
from ell12_paper.rows import Row
from ell12_paper.studies import beyond, dca_variants, denoising, image_completion
from ell12_paper.studies.denoising import ACCURATE, ALTMIN, DCA
from ell12_paper.studies.image_completion import METHODS, SKETCHY
from ell12_paper.studies.images import STAND_INS, shown
from ell12_paper.trials import Trials, Values, geometric_ratio
from ell12_paper.words import percent, scientific, span

COMPLETION = image_completion.NAME
OURS, NUCLEAR, GROWING = "nmAPG", "AIS-Impute", "LMaFit(growing rank)"
# LMaFit at a fixed rank of 200 fits every known pixel, so that the printed errors are those of the growing rank.
FACTORIZATIONS = ("ARSS-M3F", GROWING, "ER1MP")
RIVALS = (NUCLEAR, SKETCHY, *FACTORIZATIONS, "FaNCL")
BLOCK, CONVEX, LOG_SUM = "nmAPG(block)", "nuclear norm(block)", "log-sum(block)"  # one engine, three penalties
IMAGES = ("Mountain", "Windows", "Sea")  # in the order of the paper's table
AS_PRINTED = 0.5  # "about as much as printed" means at least this part of the printed gain


def completion(rows: Rows, study: str) -> Trials:
    """The rows of one study: the table, the path, theta or centring; images in the order of the paper's table."""
    chosen = rows[COMPLETION].where(study=study)
    present = [method for method in METHODS if method in chosen.seen("method")]
    return Trials(chosen.rows, study, tuple(present), "image", chosen.seen("image", IMAGES))


def error(trials: Trials, result: str) -> str:
    """The mean of an error, times 100."""
    return f"{100 * trials.mean(result):.2f}" if trials.rows else "no rows"


def lowest(result: str, rows: Rows) -> Iterator[Reading]:
    """Whether nmAPG is ahead of every rival on every image."""
    table, answers, said, gains = completion(rows, "table"), [], [], []
    for image in table.columns:
        ours, rivals = table.at(OURS, image), [table.at(rival, image) for rival in RIVALS]
        answers.append(worst(image, {rival.name: lower_at_end(image, result, ours, rival) for rival in rivals}))
        best = min((rival for rival in rivals if rival.rows), key=lambda rival: rival.mean(result))
        said.append(f"{shown(image)} {error(ours, result)} (best rival: {best.name} {error(best, result)})")
        gains.append(ours.mean(result) / best.mean(result) - 1)
    numbers = f"RMSE x 100: {'; '.join(said)}."
    brief = f"{span(gains, percent)} against the best rival" if gains else ""
    if answers:
        yield reading("", answers, ("lowest", "not lowest"), on_each, numbers, brief)


def worse(methods: Sequence[str], rivals: Sequence[str], result: str, rows: Rows) -> Iterator[Reading]:
    """Whether each of the methods has a higher error than every one of the rivals."""
    table = completion(rows, "table")
    for method in methods:
        answers, said, gaps = [], [], []
        for image in table.columns:
            theirs, others = table.at(method, image), [table.at(rival, image) for rival in rivals]
            against = {other.name: lower_at_end(image, result, other, theirs) for other in others}
            answers.append(worst(image, against))
            errors = ", ".join(f"{other.name} {error(other, result)}" for other in (theirs, *others))
            said.append(f"{shown(image)}: {errors}")
            gaps.append(theirs.mean(result) / max(other.mean(result) for other in others) - 1)
        if answers:
            brief = f"{span(gaps, percent)} above the worst of them" if len(rivals) > 1 else span(gaps, percent)
            numbers = f"RMSE x 100. {'; '.join(said)}."
            yield reading(method, answers, ("worse", "not worse"), on_each, numbers, brief)


def quicker(methods: Sequence[str], rival: str, rows: Rows) -> Iterator[Reading]:
    """Whether each of the methods is faster than the rival on every image."""
    table = completion(rows, "table")
    for method in methods:
        pairs = {image: (table.at(method, image), table.at(rival, image)) for image in table.columns}
        answers = [faster(image, *pair) for image, pair in pairs.items()]
        ratios = "; ".join(f"{shown(image)} {time_ratio(*pair)}" for image, pair in pairs.items())
        known = [value for pair in pairs.values() if not math.isnan(value := ratio(*pair))]
        numbers = f"CPU time of {rival} / {method}: {ratios}."
        name = method if len(methods) > 1 else ""
        if known:
            yield reading(name, answers, ("faster", "slower"), on_each, numbers, f"{span(known)} times")


def gains(table: Trials, image: str) -> tuple[Values, float | None]:
    """By which fraction l1-2 lowers the nuclear norm's RMSE on an image in each repeat, and as printed."""
    pair = published()[COMPLETION]["rmse_times_100"].get(image)
    l12, nuclear = (table.at(method, image).values("rmse") for method in (BLOCK, CONVEX))
    found = {repeat: 1 - l12[repeat] / nuclear[repeat] for repeat in sorted(l12.keys() & nuclear.keys())}
    return found, pair and 1 - pair[OURS][0] / pair[NUCLEAR][0]


def gains_as_printed(rows: Rows) -> Iterator[Reading]:
    """Whether subtracting the norm gains about what the table prints, one engine and one rule for both."""
    table, answers, said, means = completion(rows, "table"), [], [], []
    goal = min(value for image in IMAGES if (value := gains(table, image)[1]))
    for image in table.columns:
        found, known = gains(table, image)
        if found:
            means.append(float(np.mean([*found.values()])))
            said.append(
                f"{shown(image)} {percent(-means[-1])}" + (f" (printed {percent(-known)})" if known else "")
            )
            answers.append(answer(image, means[-1] >= AS_PRINTED * (known or goal)))
    if answers:
        words = ("at least half the printed gain", "less than half the printed gain")
        brief = span([-mean for mean in means], percent)
        yield reading("", answers, words, on_each, f"Change of RMSE: {'; '.join(said)}.", brief, "-19 % to -16 %")


def best_penalty(rows: Rows) -> Iterator[Reading]:
    """Whether l1-2 is ahead of log-sum, at FaNCL's theta and at the theta that is best in hindsight."""
    table, theta, centring = (completion(rows, study) for study in ("table", "theta", "centring"))
    for name, at in (("θ = √α", {"theta": None}), ("θ best in hindsight", {})):  # noqa: RUF001
        answers, said, changes = [], [], []
        for image in theta.columns:
            chosen = theta.at(LOG_SUM, image, **at).rows
            errors = [row["results"]["rmse"] for row in chosen if row["results"]["rmse"] is not None]
            ours = table.at(BLOCK, image).values("rmse").get(0)
            if errors and ours is not None:
                repeats = centring.at(LOG_SUM, image, center=False)
                tested = at and repeats.n_repeats > 1
                one = answer(image, ours < min(errors))
                answers.append(lower_at_end(image, "rmse", table.at(BLOCK, image), repeats) if tested else one)
                changes.append(ours / min(errors) - 1)
                said.append(f"{shown(image)} {100 * ours:.2f} against {100 * min(errors):.2f}")
        if answers:
            numbers = f"RMSE x 100 of l1-2 and log-sum, first repeat: {'; '.join(said)}."
            yield reading(name, answers, ("lower", "not lower"), on_each, numbers, span(changes, percent))


# Total variation

STRENGTHS = denoising.STRENGTHS
# Two ways to compare AltMin with DCA, both under the same rule: stopped early with rough inner solutions, as the
# paper may have done, and run on with accurate ones.
PAIRS = ((ALTMIN, "loose"), (ACCURATE, "strict"))
COMPARABLE = 0.05  # "as well as DCA" means an error at most this fraction higher; the paper gives no bound
PAPERS, HALF = 1.0, 0.5  # the paper's l2_weight, and our default
# What is restored: the study, and whether its images are drawn.
KINDS = {
    "denoising photographs": (beyond.WEIGHTS, False),
    "denoising drawn images": (beyond.WEIGHTS, True),
    "deblurring photographs": (beyond.BLUR, False),
    "deblurring drawn images": (beyond.BLUR, True),
}
DRAWN = ("Rectangles", "Discs", "Phantom")
LEVEL = 0.1  # two PSNR (dB) closer than this count as level: no eye sees the difference


def strengths(rows: Rows) -> list[Trials]:
    """The paper's own study, for each reading of the noise that has rows; i stands for alpha = 0.02 i."""
    chosen = rows[denoising.NAME].where(study=STRENGTHS)
    studies = [(reading, chosen.where(setup=reading)) for reading in denoising.READINGS]
    return [
        Trials(study.rows, name, study.seen("method", denoising.METHODS), "i", tuple(sorted(study.seen("i"))))
        for name, study in studies
        if study.rows
    ]


def at_rule(study: Trials, rule: str) -> Trials:
    """The trials as a rule ended them, or a limit before that."""

    def end(results: Row) -> Row:
        met = results["rules"][rule]
        return (met or results) | {"is_limited": met is None}

    return study.ended(end)


def images_of(study: Trials) -> tuple[str, ...]:
    """The images that have rows, in the order of the paper."""
    return study.seen("image", STAND_INS)


def mean_ratio(ended: Trials, method: str, i: int) -> float:
    """DCA's time over that of a method: the geometric mean over images of that over repeats; NaN without any."""
    here = ended.where(i=i)
    pairs = [(here.at(method, i, image=image), here.at(DCA, i, image=image)) for image in images_of(here)]
    logs = [math.log(value) for pair in pairs if not math.isnan(value := geometric_ratio(*pair))]
    return math.exp(float(np.mean(logs))) if logs else math.nan


def bounded_ratio(ended: Trials, method: str, i: int) -> str:
    """The ratio in words, as a bound where one of the two ended at its limit."""
    return bounded(mean_ratio(ended, method, i), ended.at(method, i), ended.at(DCA, i))


def _pairs_of(rows: Rows) -> Iterator[tuple[str, Trials, str]]:
    """A name, the trials as they ended, and the method beside DCA: for each noise and each of the two ways."""
    for method, rule in PAIRS:
        for study in strengths(rows):
            own = set(study.where(method=method).seen("i"))
            ended = at_rule(replace(study, columns=tuple(i for i in study.columns if i in own)), rule)
            solves = "at most 5 CG steps" if method == ALTMIN else "accurate CG"
            yield f"noise of {study.name} 0.05, {solves}, to {scientific(denoising.RULES[rule])}", ended, method


def as_accurate(rows: Rows) -> Iterator[Reading]:
    """Whether AltMin's error is at most a little above that of DCA."""
    for name, ended, method in _pairs_of(rows):
        answers, known = [], []
        for i in ended.columns:
            here = ended.where(i=i)
            pairs = [[here.at(m, i, image=image) for m in (method, DCA)] for image in images_of(here)]
            excess = [ours.mean("rmse") / theirs.mean("rmse") - 1 for ours, theirs in pairs]
            known += excess
            limited = any(trials.n_limited for pair in pairs for trials in pair)
            cut = Answer(i, Outcome.OPEN, "a method ended at its limit")
            answers.append(cut if limited else answer(i, max(excess) <= COMPARABLE))
        bound = f"at most {100 * COMPARABLE:g} % higher"
        words = (bound, bound.replace("at most", "more than"))
        yield reading(name, answers, words, at_i, "", span(known, percent))


def twenty_times(rows: Rows) -> Iterator[Reading]:
    """Whether AltMin is 20 times faster at every strength, on each image by itself; and what DCA may have been."""
    least, most = published()[denoising.NAME]["times_faster"]
    words = (f"at least {least} times", f"less than {least} times")
    for name, ended, method in _pairs_of(rows):
        answers = []
        for i in ended.columns:
            here = ended.where(i=i)
            pairs = {shown(m): (here.at(method, i, image=m), here.at(DCA, i, image=m)) for m in images_of(here)}
            answers.append(worst(i, {image: _decided(i, *pair, least) for image, pair in pairs.items()}))
        ratios = [mean_ratio(ended, method, i) for i in ended.columns]
        yield reading(name, answers, words, at_i, "", f"{span(ratios)} times", f"{least} to {most}")
    trials = variant_trials(rows, dca_variants.DENOISING)
    for method in trials.methods:
        if method.endswith("from the start"):
            ended = at_rule(trials, "loose")
            pairs = [(ended.at(ALTMIN, i), ended.at(method, i)) for i in ended.columns]
            found = [geometric_ratio(*pair) for pair in pairs]
            mean = math.exp(float(np.mean(np.log(found))))
            near = is_near(mean, least, most)
            reason = f"On average {'within' if near else 'not within'} a factor of {NEAR:g} of {least} to {most}."
            name = f"DCA {method}"
            yield Reading(name, Outcome.HOLDS if near else Outcome.FAILS, reason, "", f"{span(found)} times")


def _decided(i: int, ours: Trials, theirs: Trials, least: float) -> Answer:
    """Whether ours is so many times faster; one repeat decides where it is off by a factor of two."""
    found, value = faster(i, ours, theirs, least), geometric_ratio(ours, theirs)
    if ours.n_repeats == 1 and value < least / 2 and not theirs.n_limited:
        return answer(i, False)
    return found


def psnr(rows: Rows, study: str, image: str, weight: float) -> float:
    """The mean of the best PSNR over the repeats; NaN without rows."""
    return rows[denoising.NAME].where(study=study, image=image, l2_weight=weight).mean("psnr")


def psnr_gains(rows: Rows, study: str, weight: float, drawn: bool) -> dict[str, float]:
    """By how many dB a weight is better than 0 on each image, each at its best strength."""
    images = [m for m in rows[denoising.NAME].where(study=study).seen("image") if (m in DRAWN) == drawn]
    found = {image: psnr(rows, study, image, weight) - psnr(rows, study, image, 0.0) for image in images}
    return {image: gain for image, gain in found.items() if not math.isnan(gain)}


def outperforms(weight: float, rows: Rows) -> Iterator[Reading]:
    """Whether a weight of the subtracted norm restores better than none, by what is restored."""
    for name, (study, drawn) in KINDS.items():
        found = psnr_gains(rows, study, weight, drawn)
        level = f"level within {LEVEL:g} dB"
        answers = [
            Answer(image, Outcome.OPEN, level) if abs(gain) <= LEVEL else answer(image, gain > 0)
            for image, gain in found.items()
        ]
        if found:
            brief = f"{span(found.values(), '{:+.2f}'.format)} dB"
            yield reading(name, answers, ("better", "worse"), on_each, "", brief)
    if rows[denoising.NAME].where(study=beyond.LINES, l2_weight=weight).rows:
        counts = {b: [fewest_lines(rows, w, b) for w in (weight, 0.0)] for b in beyond.BOUNDS}
        answers = [_fewer(bounds, *pair) for bounds, pair in counts.items()]
        said = [f"{ours or 'none'} against {convex or 'none'} ({b})" for b, (ours, convex) in counts.items()]
        words, name = ("fewer", "more"), "radial lines of the phantom"
        yield reading(
            name, answers, words, lambda found: f"with {' and '.join(found)} values", "", "; ".join(said)
        )


def _fewer(bounds: str, ours: int | None, convex: int | None) -> Answer:
    if ours == convex:
        return Answer(bounds, Outcome.OPEN, "both need as many")
    return answer(bounds, convex is None or (ours is not None and ours < convex))


def fewest_lines(rows: Rows, weight: float, bounds: str) -> int | None:
    """The smallest number of lines such that it and all larger ones recover the phantom; None if there is none."""
    chosen = rows[denoising.NAME].where(study=beyond.LINES, l2_weight=weight, bounds=bounds).rows
    errors: dict[int, Any] = {row["settings"]["lines"]: row["results"]["relative_error"] for row in chosen}
    fewest = None
    for count in sorted(errors, reverse=True):
        if errors[count] is None or errors[count] > beyond.RECOVERED:
            break
        fewest = count
    return fewest

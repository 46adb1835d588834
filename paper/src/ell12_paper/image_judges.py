"""Judges of claims on image completion and on total variation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ell12_paper import comparisons as by
from ell12_paper.judges import NEAR, Rows, is_near, variant_trials
from ell12_paper.rows import Row
from ell12_paper.studies import beyond, dca_variants, denoising, image_completion
from ell12_paper.studies.denoising import ACCURATE, ALTMIN, DCA
from ell12_paper.studies.image_completion import METHODS, SKETCHY
from ell12_paper.studies.images import STAND_INS, short_name, shown
from ell12_paper.trials import Trials, geometric_ratio, published
from ell12_paper.words import RangeInWords, percent, scientific, span

COMPLETION = image_completion.NAME
OURS, NUCLEAR, GROWING = "nmAPG", "AIS-Impute", "LMaFit(growing rank)"
# LMaFit at a fixed rank of 200 fits every known pixel, so that the printed errors are those of the growing rank.
FACTORIZATIONS = ("ARSS-M3F", GROWING, "ER1MP")
RIVALS = (NUCLEAR, SKETCHY, *FACTORIZATIONS, "FaNCL")
BLOCK, CONVEX, LOG_SUM = "nmAPG(block)", "nuclear norm(block)", "log-sum(block)"  # one engine, three penalties
IMAGES = ("Mountain", "Windows", "Sea")  # in the order of the paper's table
AS_PRINTED = 0.5  # "about as much as printed" means at least this part of the printed gain


def completion(rows: Rows, study: str) -> Trials:
    """The rows of one study: the table, the path or theta; images in the order of the paper's table."""
    chosen = rows[COMPLETION].where(study=study)
    present = [method for method in METHODS if method in chosen.seen("method")]
    return Trials(chosen.rows, study, tuple(present), "image", chosen.seen("image", IMAGES))


def error(trials: Trials, result: str) -> str:
    """The mean of an error, times 100."""
    return f"{100 * trials.mean(result):.2f}" if trials.rows else "no rows"


def lowest(rows: Rows) -> Iterator[by.Reading]:
    """Whether nmAPG is ahead of every rival on every image; the paper does not say over which pixels."""
    for name, result in (("all pixels", "rmse"), ("missing pixels", "rmse_missing")):
        yield from _against(name, completion(rows, "table"), OURS, RIVALS, result, 1)


def worse(methods: Sequence[str], rivals: Sequence[str], rows: Rows) -> Iterator[by.Reading]:
    """Whether each of the methods has a higher error than every one of the rivals."""
    for method in methods:
        name = method if len(methods) > 1 else ""
        yield from _against(name, completion(rows, "table"), method, rivals, "rmse", -1)


def _against(
    name: str, table: Trials, method: str, rivals: Sequence[str], result: str, sign: int
) -> Iterator[by.Reading]:
    """Whether a method has a lower (sign 1) or a higher error than all rivals on every image."""
    answers, said, gaps = [], [], []
    for image in table.columns:
        ours, others = table.at(method, image), [table.at(rival, image) for rival in rivals]
        against = {other.name: by.lower_at_end(image, result, *(ours, other)[::sign]) for other in others}
        answers.append(by.worst(image, against))
        nearest = min((other for other in others if other.rows), key=lambda other: sign * other.mean(result))
        said.append(f"{error(ours, result)} and {nearest.name} {error(nearest, result)}")
        gaps.append(ours.mean(result) / nearest.mean(result) - 1)
    words = ("lowest", "not lowest") if sign == 1 else ("worse", "not worse")
    brief = RangeInWords(gaps, percent, f"{{}} against the {'best' if sign == 1 else 'worst'} other")
    if answers:
        yield by.reading(name, answers, words, by.on_each, f"{', '.join(said)}.", brief)


def quicker(methods: Sequence[str], rival: str, rows: Rows) -> Iterator[by.Reading]:
    """Whether each of the methods is faster than the rival on every image."""
    table = completion(rows, "table")
    for method in methods if table.rows else ():
        pairs = {image: (table.at(method, image), table.at(rival, image)) for image in table.columns}
        yield by.contest(method if len(methods) > 1 else "", pairs, by.on_each)


def gains_as_printed(rows: Rows) -> Iterator[by.Reading]:
    """Whether subtracting the norm gains about what the table prints, one engine and one rule for both."""
    table, printed = completion(rows, "table"), published()[COMPLETION]["rmse_times_100"]
    goals = {image: 1 - found[OURS][0] / found[NUCLEAR][0] for image, found in printed.items()}
    pairs = {image: (table.at(BLOCK, image), table.at(CONVEX, image)) for image in table.columns}
    found = {image: 1 - 1 / by.ratio(*pair, "rmse") for image, pair in pairs.items() if all(t.rows for t in pair)}
    least = {image: AS_PRINTED * goals.get(image, min(goals.values())) for image in found}
    answers = [by.answer(image, gain >= least[image]) for image, gain in found.items()]
    said = "; ".join(f"{short_name(image)} {percent(-gain)}" for image, gain in found.items())
    words = ("at least half the printed gain", "less than half of it")
    if found:
        goal = span([-value for value in goals.values()], percent)
        brief = span([-gain for gain in found.values()], percent)
        yield by.reading("", answers, words, by.on_each, f"{said}.", brief, goal)


def best_penalty(rows: Rows) -> Iterator[by.Reading]:
    """Whether l1-2 is ahead of log-sum, at FaNCL's theta and at the theta that is best in hindsight."""
    table, theta = (completion(rows, study) for study in ("table", "theta"))
    for name, at in (("θ = √α", {"theta": None}), ("θ best in hindsight", {})):  # noqa: RUF001
        answers, said, changes = [], [], []
        for image in theta.columns:
            repeats = theta.at(LOG_SUM, image, **at)
            errors = [row["results"]["rmse"] for row in repeats.where(repeat=0).rows]
            ours = table.at(BLOCK, image).values("rmse").get(0)
            if errors and ours is not None:
                tested = at and repeats.n_repeats > 1
                one = by.answer(image, ours < min(errors))
                answers.append(by.lower_at_end(image, "rmse", table.at(BLOCK, image), repeats) if tested else one)
                changes.append(ours / min(errors) - 1)
                said.append(f"{100 * ours:.2f} and {100 * min(errors):.2f}")
        if answers:
            numbers = f"RMSE x 100, first repeat: {', '.join(said)}."
            yield by.reading(name, answers, ("lower", "not lower"), by.on_each, numbers, span(changes, percent))


# Total variation

STRENGTHS = denoising.STRENGTHS
# Two ways to compare AltMin with DCA, both under the same rule: stopped early with rough inner solutions, as the
# paper may have done, and run on with accurate ones.
PAIRS = ((ALTMIN, "loose"), (ACCURATE, "strict"))
COMPARABLE = 0.05  # "as well as DCA" means an error at most this fraction higher; the paper gives no bound
# What is restored: the study, and whether its images are drawn.
RESTORED = {"denoising": beyond.WEIGHTS, "deblurring": beyond.BLUR}
PICTURES = {"photographs": False, "drawn images": True}
KINDS = {f"{what} {kind}": (RESTORED[what], PICTURES[kind]) for what, kind in product(RESTORED, PICTURES)}
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


def mean_ratio(here: Trials, method: str) -> float:
    """DCA's time over that of a method: the geometric mean over images of that over repeats; NaN without any."""
    each = [here.where(image=image) for image in here.seen("image")]
    ratios = (geometric_ratio(one.where(method=method), one.where(method=DCA)) for one in each)
    logs = [math.log(value) for value in ratios if not math.isnan(value)]
    return math.exp(float(np.mean(logs))) if logs else math.nan


def _pairs_of(rows: Rows) -> Iterator[tuple[str, Trials, str]]:
    """A name, the trials as they ended, and the method next to DCA: for each noise and both ways."""
    for method, rule in PAIRS:
        for study in strengths(rows):
            own = set(study.where(method=method).seen("i"))
            ended = at_rule(replace(study, columns=tuple(i for i in study.columns if i in own)), rule)
            solves = "5 CG steps" if method == ALTMIN else "accurate CG"
            yield f"{study.name} 0.05, {solves}, to {scientific(denoising.RULES[rule])}", ended, method


def as_accurate(rows: Rows) -> Iterator[by.Reading]:
    """Whether AltMin's error is at most a little above that of DCA."""
    for name, ended, method in _pairs_of(rows):
        answers, known = [], []
        for i in ended.columns:
            here = ended.where(i=i)
            images = here.seen("image", STAND_INS)
            pairs = [[here.at(m, i, image=image) for m in (method, DCA)] for image in images]
            excess = [ours.mean("rmse") / theirs.mean("rmse") - 1 for ours, theirs in pairs]
            known += excess
            limited = any(trials.n_limited for pair in pairs for trials in pair)
            cut = by.Answer(i, by.Outcome.OPEN, f"a method {by.CUT}")
            answers.append(cut if limited else by.answer(i, max(excess) <= COMPARABLE))
        brief = RangeInWords(known, percent)
        yield by.reading(name, answers, ("as well", "worse"), by.at_i, f"{brief}.", brief)


def twenty_times(rows: Rows) -> Iterator[by.Reading]:
    """Whether AltMin is 20 times faster at every strength, on each image by itself; and what DCA may have been."""
    least, most = published()[denoising.NAME]["times_faster"]
    for name, ended, method in _pairs_of(rows):
        answers = []
        for i in ended.columns:
            here = ended.where(i=i)
            images = here.seen("image", STAND_INS)
            pairs = {shown(m): (here.at(method, i, image=m), here.at(DCA, i, image=m)) for m in images}
            answers.append(by.worst(i, {image: _decided(i, *pair, least) for image, pair in pairs.items()}))
        ratios = [mean_ratio(ended.where(i=i), method) for i in ended.columns]
        brief = RangeInWords(ratios, unit="{} times")
        words = (f"{least} times", "less")
        yield by.reading(name, answers, words, by.at_i, f"{brief}.", brief, f"{least} to {most}")
    trials = at_rule(variant_trials(rows, dca_variants.DENOISING), "loose")
    for method in (method for method in trials.methods if method.endswith("from the start")):
        found = [geometric_ratio(trials.at(ALTMIN, i), trials.at(method, i)) for i in trials.columns]
        near = is_near(math.exp(float(np.mean(np.log(found)))), least, most)
        reason = f"On average {'within' if near else 'not within'} a factor of {NEAR:g} of {least} to {most}."
        brief = RangeInWords(found, unit="{} times")
        yield by.plain(f"DCA {method}", near, reason, f"{brief}.", brief)


def _decided(i: int, ours: Trials, theirs: Trials, least: float) -> by.Answer:
    """Whether ours is so many times faster; one repeat decides where it is off by a factor of two."""
    found, value = by.faster(i, ours, theirs, least), geometric_ratio(ours, theirs)
    if ours.n_repeats == 1 and value < least / 2 and not theirs.n_limited:
        return by.answer(i, False)
    return found


def outperforms(weight: float, rows: Rows) -> Iterator[by.Reading]:
    """Whether a weight of the subtracted norm restores better than none, each at its best strength."""
    for name, (study, drawn) in KINDS.items():
        chosen = rows[denoising.NAME].where(study=study)
        images = [image for image in chosen.seen("image") if (image in DRAWN) == drawn]
        each = {m: [chosen.where(image=m, l2_weight=w).mean("psnr") for w in (weight, 0.0)] for m in images}
        found = {image: ours - convex for image, (ours, convex) in each.items() if not math.isnan(ours - convex)}
        level = [by.Answer(image, by.Outcome.OPEN, f"level within {LEVEL:g} dB") for image in found]
        answers = [a if abs(found[a.case]) <= LEVEL else by.answer(a.case, found[a.case] > 0) for a in level]
        if found:
            brief = RangeInWords(found.values(), "{:+.2f}".format, "{} dB")
            yield by.reading(name, answers, ("better", "worse"), by.on_each, f"{brief}.", brief)

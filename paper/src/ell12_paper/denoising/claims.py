"""The paper's claims on total variation, checked against the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ell12.datasets import STAND_INS
from ell12.wording import percent, scientific, span
from ell12_paper.claims import Answer, answer, at_i, bounded, image_name, lower, on_each, verdict
from ell12_paper.denoising.extras import BLUR, BOUNDS, LINES, RECOVERED, WEIGHTS
from ell12_paper.denoising.study import ACCURATE, ALTMIN, DCA, METHODS, NAME, READINGS, RULES, STRENGTHS
from ell12_paper.findings import Kind, Outcome, Source, Verdict, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import Values, logarithms, summarize
from ell12_paper.trials import Trials

# Two ways to compare AltMin with DCA, both under the same rule: stopped early with rough inner solutions, as the
# paper may have done, and run on with accurate ones.
PAIRS = ((ALTMIN, "loose"), (ACCURATE, "strict"))
PLACE = Source(Kind.PAPER, "Section V-C, Figures 5 and 6")
COMPARABLE = 0.05  # "as well as DCA" means an error at most this fraction higher; the paper gives no bound
PAPERS, HALF = 1.0, 0.5  # the paper's l2_weight, and our default
# What is restored: the study, and whether its images are drawn.
KINDS = {
    "denoising photographs": (WEIGHTS, False),
    "denoising drawn images": (WEIGHTS, True),
    "deblurring photographs": (BLUR, False),
    "deblurring drawn images": (BLUR, True),
}
LEVEL = 0.1  # two PSNR (dB) closer than this count as level: no eye sees the difference


def of_study(rows: Sequence[Row], study: str, **settings: Any) -> Trials:
    """The rows of a study that have these settings."""
    return Trials(tuple(rows), study).where(study=study, **settings)


def strengths(rows: Sequence[Row]) -> list[Trials]:
    """The paper's own study, for each reading of the noise that has rows; i stands for alpha = 0.02 i."""
    chosen = of_study(rows, STRENGTHS)
    studies = [(reading, chosen.where(setup=reading)) for reading in READINGS]
    return [
        Trials(study.rows, reading, study.seen("method", METHODS), "i", tuple(sorted(study.seen("i"))))
        for reading, study in studies
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


def time_ratios(ended: Trials, method: str, i: int) -> Values:
    """The time of DCA over that of a method at i, for each image and repeat."""
    found: list[float] = []
    here = ended.where(i=i)
    for image in images_of(here):
        ours, theirs = (here.at(m, i, image=image).values("cpu_seconds") for m in (method, DCA))
        found += [theirs[r] / ours[r] for r in sorted(ours.keys() & theirs.keys()) if ours[r] > 0]
    return dict(enumerate(found))


def mean_ratio(ended: Trials, method: str, i: int) -> float:
    """The geometric mean of the ratios; NaN without any."""
    logs = logarithms(time_ratios(ended, method, i))
    return math.exp(summarize(logs.values()).mean) if logs else math.nan


def bounded_ratio(ended: Trials, method: str, i: int) -> str:
    """The ratio in words, as a bound where one of the two ended at its limit."""
    return bounded(mean_ratio(ended, method, i), ended.at(method, i), ended.at(DCA, i))


def verdicts_of(rows: Sequence[Row]) -> list[Verdict]:
    """Every claim of the paper."""
    studies = strengths(rows)
    found = [_comparable(study, *pair) for pair in PAIRS for study in studies]
    found += [_faster(study, *pair) for pair in PAIRS for study in studies]
    return found + _outperforms(rows)


def _rule_words(method: str, rule: str) -> str:
    solves = "at most 5 steps of conjugate gradients" if method == ALTMIN else "accurate conjugate gradients"
    return f"{solves}, both stopped at a change of the objective of {scientific(RULES[rule])}"


def _setting(study: Trials, method: str, rule: str) -> str:
    return f"noise of {study.name} 0.05, {_rule_words(method, rule)}"


def _at_strengths_of(study: Trials, method: str) -> Trials:
    """The study at those strengths at which a method was run; all, where it has no rows at all."""
    own = set(study.where(method=method).seen("i"))
    return replace(study, places=tuple(i for i in study.places if not own or i in own))


def _comparable(study: Trials, method: str, rule: str) -> Verdict:
    ended = at_rule(_at_strengths_of(study, method), rule)
    answers, shown = [], []
    for i in ended.places:
        here = ended.where(i=i)
        pairs = [[here.at(m, i, image=image) for m in (method, DCA)] for image in images_of(here)]
        excess = [ours.mean("rmse") / theirs.mean("rmse") - 1 for ours, theirs in pairs]
        known = [value for value in excess if not math.isnan(value)]
        shown += known
        if len(known) < len(excess) or not known:
            answers.append(Answer(i, Outcome.OPEN, "a method has no rows"))
        elif any(trials.n_limited for pair in pairs for trials in pair):
            answers.append(Answer(i, Outcome.OPEN, "a method ended at its limit"))
        else:
            answers.append(answer(i, max(known) <= COMPARABLE))
    bound = f"at most {100 * COMPARABLE:g} % higher"
    numbers = f"RMSE of AltMin against that of DCA: {span(shown, percent)}." if shown else ""
    claim = f"AltMin recovers as well as DCA: RMSE {bound} at every alpha"
    said, setting = (bound, bound.replace("at most", "more than")), _setting(study, method, rule)
    return verdict(claim, answers, said, numbers, setting, at_i, PLACE)


def _faster(study: Trials, method: str, rule: str) -> Verdict:
    ended = at_rule(_at_strengths_of(study, method), rule)
    least, most = paper()[NAME]["times_faster"]
    answers = [_faster_at(ended, method, i, least) for i in ended.places]
    claim = f"AltMin is about {least} to {most} times faster than DCA: at least {least} times at every alpha"
    numbers = f"CPU time of DCA / AltMin: {_all_ratios(ended, method)} (paper: about {least} to {most})."
    said, setting = (f"at least {least} times", f"less than {least} times"), _setting(study, method, rule)
    return verdict(claim, answers, said, numbers, setting, at_i, PLACE)


def _faster_at(ended: Trials, method: str, i: int, least: int) -> Answer:
    logs = logarithms(time_ratios(ended, method, i))
    found = lower(i, dict.fromkeys(logs, math.log(least)), logs)
    # A run at its limit would have taken longer than it did, so that it may lose but not win.
    for outcome, name, label in ((Outcome.FAILS, method, "AltMin"), (Outcome.HOLDS, DCA, "DCA")):
        if found.outcome is not outcome and ended.at(name, i).n_limited:
            return Answer(i, Outcome.OPEN, f"{label} ended at its limit")
    return found


def _all_ratios(ended: Trials, method: str) -> str:
    """The ratios at every i where they are few, else their range and both ends."""
    grid = ended.places
    few = len(grid) <= 8
    shown = [f"{bounded_ratio(ended, method, i)} at i = {i}" for i in (grid if few else (grid[0], grid[-1]))]
    if few:
        return "; ".join(shown)
    ratios = [ratio for i in grid if not math.isnan(ratio := mean_ratio(ended, method, i))]
    return f"{span(ratios)}, {' and '.join(shown)}" if ratios else "no rows"


# The paper cites that l1-2 outperforms the l1 norm of differences; half the weight is our default but for blur.
CITED = Source(Kind.CITED, "Section IV-B, from Lou et al. 2015")


def _outperforms(rows: Sequence[Row]) -> list[Verdict]:
    whole = "l1-2 total variation (l2_weight 1) restores better than convex total variation (l2_weight 0)"
    half = whole.replace("(l2_weight 1)", "with half the weight, our default but for blur,")
    found = []
    for weight, claim, source in ((PAPERS, whole, CITED), (HALF, half, Source(Kind.OURS))):
        for setting, (study, drawn) in KINDS.items():
            gains = psnr_gains(rows, study, weight, drawn)
            found += [_gain_verdict(claim, gains, setting, source)] if gains else []
        if of_study(rows, LINES, l2_weight=weight).rows:
            found.append(_lines_verdict(claim, rows, weight, source))
    return found


def psnr_gains(rows: Sequence[Row], study: str, weight: float, drawn: bool) -> dict[str, float]:
    """By how many dB a weight is better than 0 on each image, each at its best strength."""
    found = {}
    for image in of_study(rows, study).seen("image"):
        gain = mean_psnr(rows, study, image, weight) - mean_psnr(rows, study, image, 0.0)
        if (image not in STAND_INS) == drawn and not math.isnan(gain):
            found[image] = gain
    return found


def mean_psnr(rows: Sequence[Row], study: str, image: str, weight: float) -> float:
    """The mean of the best PSNR over the repeats; NaN without rows."""
    return of_study(rows, study, image=image, l2_weight=weight).mean("psnr")


def _gain_verdict(claim: str, gains: dict[str, float], setting: str, source: Source) -> Verdict:
    level = f"level within {LEVEL:g} dB"
    answers = [
        Answer(image, Outcome.OPEN, level) if abs(gain) <= LEVEL else answer(image, gain > 0)
        for image, gain in gains.items()
    ]
    numbers = f"PSNR: {'; '.join(f'{image_name(image)} {gain:+.2f} dB' for image, gain in gains.items())}."
    return verdict(claim, answers, ("better", "worse"), numbers, setting, on_each, source)


def fewest_lines(rows: Sequence[Row], weight: float, bounds: str) -> int | None:
    """The smallest number of lines such that it and all larger ones recover the phantom; None if there is none."""
    chosen = of_study(rows, LINES, l2_weight=weight, bounds=bounds)
    errors = {row["settings"]["lines"]: row["results"]["relative_error"] for row in chosen.rows}
    fewest = None
    for count in sorted(errors, reverse=True):
        if errors[count] is None or errors[count] > RECOVERED:
            break
        fewest = count
    return fewest


def _lines_verdict(claim: str, rows: Sequence[Row], weight: float, source: Source) -> Verdict:
    answers, shown = [], []
    for bounds in BOUNDS:
        ours, convex = (fewest_lines(rows, w, bounds) for w in (weight, 0.0))
        shown.append(f"{_lines_words(ours)} against {_lines_words(convex)} ({bounds} values)")
        if ours == convex:
            doubt = "neither recovers it" if ours is None else "both need as many lines"
            answers.append(Answer(bounds, Outcome.OPEN, doubt))
        else:
            fewer = convex is None or (ours is not None and ours < convex)
            answers.append(answer(bounds, fewer))
    numbers = f"Radial lines for the phantom: {'; '.join(shown)}."
    words = ("fewer lines", "more lines")
    setting = "radial lines"
    return verdict(
        claim, answers, words, numbers, setting, lambda found: f"with {' and '.join(found)} values", source
    )


def _lines_words(count: int | None) -> str:
    return "more than were tried" if count is None else str(count)

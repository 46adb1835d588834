"""The paper's claims on total variation, checked against the rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ell12.datasets import STAND_INS
from ell12.experiments.claims import Answer, lower, verdict
from ell12.experiments.denoising.extras import BLUR, BOUNDS, EXACT, LINES, WEIGHTS
from ell12.experiments.denoising.study import ACCURATE, ALTMIN, DCA, METHODS, NAME, READINGS, RULES, STRENGTHS
from ell12.experiments.report import Outcome, Verdict, paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import Values, logarithms, summarize
from ell12.wording import listed, number, percent, scientific, span

# AltMin as the paper may have run it, stopped early, and as carefully as DCA; both methods obey the same rule.
PAIRS = ((ALTMIN, "loose"), (ACCURATE, "strict"))
COMPARABLE = 0.05  # an error that is higher by this fraction at most counts as comparable
PAPERS = 1.0  # the paper's l2_weight
# What is restored: the study, and whether its images are drawn.
KINDS = {
    "denoising photographs": (WEIGHTS, False),
    "denoising drawn images": (WEIGHTS, True),
    "deblurring photographs": (BLUR, False),
    "deblurring drawn images": (BLUR, True),
}
LEVEL = 0.1  # PSNR closer than this, in dB, counts as level


@dataclass(frozen=True)
class Strengths:
    """The rows of the paper's own study with one reading of the noise."""

    reading: str
    rows: tuple[Row, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that have rows."""
        return [method for method in METHODS if any(r["settings"]["method"] == method for r in self.rows)]

    @property
    def images(self) -> list[str]:
        """The images that have rows, in the order of the paper."""
        present = {row["settings"]["image"] for row in self.rows}
        return [image for image in STAND_INS if image in present]

    @property
    def grid(self) -> list[int]:
        """Every i that has rows; alpha is 0.02 i."""
        return sorted({row["settings"]["i"] for row in self.rows})

    def of(self, method: str, image: str, i: int) -> list[Row]:
        """The rows of a method on one image at i."""
        wanted = {"method": method, "image": image, "i": i}
        return [row for row in self.rows if wanted.items() <= row["settings"].items()]

    def values(self, method: str, image: str, i: int, rule: str, name: str) -> Values:
        """One result by repeat where a rule ended the run, or a limit before that."""
        rows = self.of(method, image, i)
        ends = {row["settings"]["repeat"]: row["results"]["rules"][rule] or row["results"] for row in rows}
        return {repeat: end[name] for repeat, end in ends.items() if end[name] is not None}

    def mean(self, method: str, image: str, i: int, rule: str, name: str) -> float:
        """The mean over the repeats; NaN without rows."""
        values = self.values(method, image, i, rule, name)
        return summarize(values.values()).mean if values else math.nan

    def n_limited(self, method: str, i: int, rule: str, image: str | None = None) -> int:
        """How many runs at i, on one image or all, ended at a limit before they met a rule."""
        rows = (row for name in self.images if image in (name, None) for row in self.of(method, name, i))
        return sum(row["results"]["rules"][rule] is None for row in rows)

    def ratios(self, method: str, i: int, rule: str, rival: str = DCA) -> Values:
        """The time of DCA over that of a method for each image and repeat."""
        found: list[float] = []
        for image in self.images:
            ours, theirs = (self.values(m, image, i, rule, "cpu_seconds") for m in (method, rival))
            found += [theirs[r] / ours[r] for r in sorted(ours.keys() & theirs.keys()) if ours[r] > 0]
        return dict(enumerate(found))

    def ratio_words(self, method: str, i: int, rule: str) -> str:
        """The ratio in words, as a bound where one of the two ended at its limit."""
        ratio = self.ratio(method, i, rule)
        if math.isnan(ratio):
            return "no rows"
        limited = (self.n_limited(method, i, rule) > 0, self.n_limited(DCA, i, rule) > 0)
        if all(limited):
            return "both at the limit"
        return {(False, True): "≥ ", (True, False): "≤ "}.get(limited, "") + number(ratio)

    def ratio(self, method: str, i: int, rule: str) -> float:
        """The geometric mean of the ratios; NaN without any."""
        logs = logarithms(self.ratios(method, i, rule))
        return math.exp(summarize(logs.values()).mean) if logs else math.nan


def strengths(rows: Sequence[Row]) -> list[Strengths]:
    """The paper's study, reading by reading."""
    chosen = of_study(rows, STRENGTHS)
    grouped = [
        Strengths(reading, tuple(row for row in chosen if row["settings"]["setup"] == reading))
        for reading in READINGS
    ]
    return [study for study in grouped if study.rows]


def of_study(rows: Iterable[Row], study: str, **settings: Any) -> list[Row]:
    """The rows of a study that have these settings."""
    wanted = {"study": study} | settings
    return [row for row in rows if wanted.items() <= row["settings"].items()]


def verdicts_of(rows: Sequence[Row]) -> list[Verdict]:
    """Every claim of the paper."""
    studies = strengths(rows)
    found = [_comparable(study, *pair) for pair in PAIRS for study in studies]
    found += [_faster(study, *pair) for pair in PAIRS for study in studies]
    return found + _outperforms(rows)


def _rule_words(method: str, rule: str) -> str:
    solves = "at most 5 steps of conjugate gradients" if method == ALTMIN else "accurate conjugate gradients"
    return f"AltMin with {solves}, both stopped at a change of the objective of {scientific(RULES[rule])}"


def _comparable(study: Strengths, method: str, rule: str) -> Verdict:
    answers, shown = [], []
    for i in study.grid:
        excess = [
            study.mean(method, image, i, rule, "rmse") / study.mean(DCA, image, i, rule, "rmse") - 1
            for image in study.images
        ]
        known = [value for value in excess if not math.isnan(value)]
        shown += known
        if len(known) < len(excess) or not known:
            answers.append(Answer(i, Outcome.OPEN, "a method has no rows"))
        elif study.n_limited(method, i, rule) + study.n_limited(DCA, i, rule):
            answers.append(Answer(i, Outcome.OPEN, "a method ended at its limit"))
        else:
            answers.append(Answer(i, Outcome.HOLDS if max(known) <= COMPARABLE else Outcome.FAILS))
    bound = f"at most {100 * COMPARABLE:g} % higher"
    numbers = f"RMSE of AltMin against that of DCA: {span(shown, percent)}." if shown else ""
    claim = f"AltMin recovers as well as DCA: RMSE {bound} at every alpha ({_rule_words(method, rule)})"
    words = (bound, bound.replace("at most", "more than"))
    return verdict(claim, answers, words, numbers, _setting(study), _at)


def _faster(study: Strengths, method: str, rule: str) -> Verdict:
    least, most = paper()[NAME]["times_faster"]
    answers = [_faster_at(study, method, rule, i, least) for i in study.grid]
    claim = f"AltMin is at least {least} times faster than DCA at every alpha ({_rule_words(method, rule)})"
    numbers = f"CPU time of DCA / AltMin: {_ratio_words(study, method, rule)} (paper: about {least} to {most})."
    words = (f"at least {least} times", f"less than {least} times")
    return verdict(claim, answers, words, numbers, _setting(study), _at)


def _faster_at(study: Strengths, method: str, rule: str, i: int, least: int) -> Answer:
    logs = logarithms(study.ratios(method, i, rule))
    answer = lower(i, dict.fromkeys(logs, math.log(least)), logs)
    # A run at its limit would have taken longer than it did, so that it may lose but not win.
    for outcome, name, label in ((Outcome.FAILS, method, "AltMin"), (Outcome.HOLDS, DCA, "DCA")):
        if answer.outcome is not outcome and study.n_limited(name, i, rule):
            return Answer(i, Outcome.OPEN, f"{label} ended at its limit")
    return answer


def _ratio_words(study: Strengths, method: str, rule: str) -> str:
    """The ratios at every i where they are few, else their range and both ends."""
    if len(study.grid) <= 8:
        return "; ".join(f"{study.ratio_words(method, i, rule)} at i = {i}" for i in study.grid)
    ratios = [study.ratio(method, i, rule) for i in study.grid]
    ratios = [ratio for ratio in ratios if not math.isnan(ratio)]
    ends = " and ".join(
        f"{study.ratio_words(method, i, rule)} at i = {i}" for i in (study.grid[0], study.grid[-1])
    )
    return f"{span(ratios)}, {ends}" if ratios else "no rows"


def _setting(study: Strengths) -> str:
    return f"{study.reading} 0.05"


def _at(found: list[Any]) -> str:
    return f"at i = {listed(found)}"


# What the paper says of the penalty itself: that it has outperformed the l1 norm of the differences.


def _outperforms(rows: Sequence[Row]) -> list[Verdict]:
    claim = "l1-2 total variation (l2_weight 1) restores better than convex total variation (l2_weight 0)"
    found = []
    for setting, (study, drawn) in KINDS.items():
        gains = psnr_gains(rows, study, PAPERS, drawn)
        if gains:
            found.append(_gain_verdict(claim, gains, setting))
    return [*found, _lines_verdict(claim, rows, PAPERS)] if of_study(rows, LINES) else found


def psnr_gains(rows: Sequence[Row], study: str, weight: float, drawn: bool) -> dict[str, float]:
    """By how many dB a weight is better than 0 on each image, each at its best strength."""
    images = dict.fromkeys(row["settings"]["image"] for row in of_study(rows, study))
    found = {}
    for image in (name for name in images if (name not in STAND_INS) == drawn):
        best, convex = (mean_psnr(rows, study, image, w) for w in (weight, 0.0))
        if not math.isnan(best - convex):
            found[image] = best - convex
    return found


def mean_psnr(rows: Sequence[Row], study: str, image: str, weight: float) -> float:
    """The mean of the best PSNR over the repeats; NaN without rows."""
    chosen = of_study(rows, study, image=image, l2_weight=weight)
    return summarize(row["results"]["psnr"] for row in chosen).mean if chosen else math.nan


def _gain_verdict(claim: str, gains: dict[str, float], setting: str) -> Verdict:
    answers = []
    for image, gain in gains.items():
        if abs(gain) <= LEVEL:
            answers.append(Answer(image, Outcome.OPEN, f"level within {LEVEL:g} dB"))
        else:
            answers.append(Answer(image, Outcome.HOLDS if gain > 0 else Outcome.FAILS))
    numbers = f"PSNR: {'; '.join(f'{image} {gain:+.2f} dB' for image, gain in gains.items())}."
    return verdict(claim, answers, ("better", "worse"), numbers, setting, lambda found: f"on {', '.join(found)}")


def fewest_lines(rows: Sequence[Row], weight: float, bounds: str) -> int | None:
    """The least number of lines from which on every phantom is recovered; None where the most are too few."""
    chosen = of_study(rows, LINES, l2_weight=weight, bounds=bounds)
    errors = {row["settings"]["lines"]: row["results"]["relative_error"] for row in chosen}
    fewest = None
    for count in sorted(errors, reverse=True):
        if errors[count] is None or errors[count] > EXACT:
            break
        fewest = count
    return fewest


def _lines_verdict(claim: str, rows: Sequence[Row], weight: float) -> Verdict:
    answers, shown = [], []
    for bounds in BOUNDS:
        ours, convex = (fewest_lines(rows, w, bounds) for w in (weight, 0.0))
        shown.append(f"{_lines_words(ours)} against {_lines_words(convex)} ({bounds} values)")
        if ours == convex:
            doubt = "neither recovers it" if ours is None else "both need as many lines"
            answers.append(Answer(bounds, Outcome.OPEN, doubt))
        else:
            fewer = convex is None or (ours is not None and ours < convex)
            answers.append(Answer(bounds, Outcome.HOLDS if fewer else Outcome.FAILS))
    numbers = f"Radial lines for the phantom: {'; '.join(shown)}."
    words = ("fewer lines", "more lines")
    return verdict(
        claim, answers, words, numbers, "radial lines", lambda found: f"with {' and '.join(found)} values"
    )


def _lines_words(count: int | None) -> str:
    return "more than were tried" if count is None else str(count)

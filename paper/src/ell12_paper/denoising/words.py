"""What the page says of total variation in words; every number of ours comes from the rows."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Sequence

from ell12.datasets import STAND_INS
from ell12.wording import listed, number, scientific, so_many, span
from ell12_paper.claims import image_name
from ell12_paper.denoising.claims import (
    KINDS,
    at_rule,
    fewest_lines,
    images_of,
    mean_psnr,
    mean_ratio,
    of_study,
    psnr_gains,
)
from ell12_paper.denoising.extras import BLUR, BLUR_WIDTH, BOUNDS, NOISE, RECOVERED, WEIGHTS
from ell12_paper.denoising.study import ACCURATE, ALTMIN, DCA, NAME, OURS, RULES
from ell12_paper.findings import paper
from ell12_paper.rows import Row
from ell12_paper.trials import Trials


def asked(studies: Sequence[Trials]) -> tuple[str, ...]:
    """The question, the images, the noise and the stopping rules."""
    if not studies:
        return ("Which image does l1-2 total variation restore better than convex total variation?",)
    settings, printed = studies[0].rows[0]["settings"], paper()[NAME]
    size, grid = settings["size"], studies[0].places
    whole = "the paper's size" if size == printed["size"] else f"the centre of one of {printed['size']}"
    repeats = Trials(tuple(row for study in studies for row in study.rows)).n_repeats
    stand_ins = ", ".join(f"{shipped} for {name}" for name, shipped in STAND_INS.items())
    return (
        "An image with Gaussian noise is restored by minimising ½‖x − y‖² + α TV(x), where TV is the sum over the "
        "pixels of |horizontal difference| + |vertical difference| − the length of both. DCA solves this problem "
        "by convex ones; AltMin, the paper's method, replaces the differences by free variables that a quadratic "
        "with weight 100 α keeps near them, and alternates between both. Is AltMin as good, and how much faster? "
        "RMSE is the root of the mean squared error of pixels in [0, 1].",
        "The paper's three photographs are not published. Photographs that ship with scikit-image stand in for "
        f"them, chosen for their subjects (an open landscape, a smooth surface, a regular pattern): {stand_ins}. "
        f"Size: {size} x {size}, {whole}. So values cannot be compared with the paper's curves, which are not "
        "printed as numbers either, but its statements can.",
        f"The paper's noise is {printed['noise']}, which may name the standard deviation or the variance, so both "
        f"are measured. α = 0.02 i with i = {listed(grid)} (paper: 1 to 64). Repeats: {repeats} (paper: "
        f"{printed['repeats']}).",
        "The paper gives neither a stopping rule nor the number of conjugate gradient steps inside AltMin, and "
        "the times hang on both. So every run of DCA and AltMin is judged at two points, where two iterations in "
        f"a row change the objective by less than a fraction of {scientific(RULES['loose'])}, and of "
        f"{scientific(RULES['strict'])}; “{ALTMIN}” takes at most 5 conjugate gradient steps an "
        f"iteration, “{ACCURATE}” as many as an accurate solution needs. “{OURS}” is the default of this library; "
        "it minimises the same objective as AltMin without linear systems, and ends by its own rule. DCA carries "
        "the variables of its convex problems over from one to the next and solves their linear systems by a "
        "cosine transform.",
    )


def scale(studies: Sequence[Trials]) -> str:
    """How large the run is beside the paper's."""
    if not studies:
        return "studies beyond the paper only"
    size, printed = studies[0].rows[0]["settings"]["size"], paper()[NAME]
    repeats = max(study.n_repeats for study in studies)
    return (
        f"images of {size} x {size} (paper {printed['size']} x {printed['size']}), {len(studies[0].places)} "
        f"strengths (paper 64), {so_many(repeats, 'repeat')} (paper {printed['repeats']})"
    )


def found(rows: Sequence[Row], studies: Sequence[Trials]) -> tuple[str, ...]:
    """What the rows say, in short."""
    words = [*(_best_alpha(study) for study in studies), *(_speed(study) for study in studies)]
    words += [_weights(rows), _half(rows)]
    return tuple(text for text in words if text)


def _best_alpha(study: Trials) -> str:
    """Where the lowest error of AltMin lies in the grid."""
    best: dict[str, int] = {}
    ended = at_rule(study, "strict")
    for image in images_of(study):
        errors = {i: ended.at(ACCURATE, i, image=image).mean("rmse") for i in study.places}
        errors = {i: error for i, error in errors.items() if not math.isnan(error)}
        if len(errors) > 1:  # a single strength is no grid
            best[image] = min(errors, key=lambda i: errors[i])
    if not best:
        return ""
    where = ", ".join(f"{0.02 * i:g} on {image_name(image)}" for image, i in best.items())
    ends = [image_name(image) for image, i in best.items() if i in (study.places[0], study.places[-1])]
    moral = "inside the grid" if not ends else f"at an end of the grid for {', '.join(ends)}"
    return f"Noise of {study.name} 0.05: the lowest error of {ACCURATE} is at α = {where}, {moral}."


def _speed(study: Trials) -> str:
    """How many times faster than DCA each method is, over the grid."""
    phrases = []
    for method, rule in ((ALTMIN, "loose"), (ACCURATE, "strict"), (OURS, "strict")):
        ratios = _ratios(study, method, rule)
        if ratios:
            phrases.append(f"{method} {span(ratios)} (rule {scientific(RULES[rule])})")
    if not phrases:
        return ""
    return f"Noise of {study.name} 0.05, times faster than DCA where both met the rule: {'; '.join(phrases)}."


def _ratios(study: Trials, method: str, rule: str) -> list[float]:
    """DCA's time over a method's at every i where both met the rule."""
    ended = at_rule(study, rule)
    met = [i for i in study.places if not ended.at(method, i).n_limited and not ended.at(DCA, i).n_limited]
    return [ratio for i in met if not math.isnan(ratio := mean_ratio(ended, method, i))]


def _weights(rows: Sequence[Row]) -> str:
    """The best weight of the subtracted norm on each kind of image."""
    chosen = of_study(rows, WEIGHTS)
    phrases = []
    for image in chosen.seen("image"):
        psnr = {w: mean_psnr(rows, WEIGHTS, image, w) for w in sorted(chosen.seen("l2_weight"))}
        phrases.append(f"{image_name(image)} {max(psnr, key=psnr.__getitem__):g}")
    if not phrases:
        return ""
    return f"The best l2_weight for denoising, each at its best strength: {', '.join(phrases)}."


def _half(rows: Sequence[Row]) -> str:
    """What half the weight, the default of this library but for blur, does against convex total variation."""
    phrases = []
    for kind, (study, drawn) in KINDS.items():
        gains = psnr_gains(rows, study, 0.5, drawn)
        if gains:
            phrases.append(f"{kind} {span(gains.values(), lambda gain: f'{gain:+.2f} dB')}")
    for bounds in BOUNDS:
        half, convex = (fewest_lines(rows, weight, bounds) for weight in (0.5, 0.0))
        if half and convex:
            phrases.append(f"phantom {half} radial lines against {convex} ({bounds} values)")
    return f"l2_weight 0.5 against convex total variation: {'; '.join(phrases)}." if phrases else ""


def reasons(studies: Sequence[Trials]) -> tuple[str, ...]:
    """Why the ratios differ from the printed ones: what ends a run, and the size."""
    words = []
    size = studies[0].rows[0]["settings"]["size"] if studies else paper()[NAME]["size"]
    if size < paper()[NAME]["size"]:
        words.append(
            f"With {size} pixels a side a good part of every time is the cost of calls rather than of pixels; the "
            "paper's size (--preset paper) is needed to judge its ratios."
        )
    for study in studies:
        loose, strict = _ratios(study, ALTMIN, "loose"), _ratios(study, ACCURATE, "strict")
        if loose and strict:
            words.append(
                f"Noise of {study.name} 0.05: the ratio of DCA's time to AltMin's is {span(loose)} when both "
                f"stop early and AltMin solves roughly, {span(strict)} when both are run to the stricter rule. "
                f"{_mixed(study)}"
            )
    return tuple(words)


def _mixed(study: Trials) -> str:
    """DCA run to the strict rule against AltMin stopped at the loose one."""
    strict, loose = (at_rule(study, rule) for rule in ("strict", "loose"))
    mixed = []
    for i in study.places:
        for image in images_of(study):
            slow = strict.at(DCA, i, image=image).mean("cpu_seconds")
            fast = loose.at(ALTMIN, i, image=image).mean("cpu_seconds")
            mixed += [slow / fast] if fast > 0 and slow >= 0 else []
    return f"Stopping AltMin alone early would make it {span(mixed)} on single images." if mixed else ""


def beyond() -> tuple[str, ...]:
    """What the extra studies measure."""
    return (
        "The weight of the subtracted norm is 1 in the paper; 0 is convex anisotropic total variation. Each point "
        f"is the best over the strengths. Denoising: Gaussian noise of standard deviation {NOISE[WEIGHTS]:g}. "
        f"Deblurring: a Gaussian of {BLUR_WIDTH:g} pixels, noise of {NOISE[BLUR]:g}. Radial lines: the head "
        "phantom from its Fourier coefficients on lines through the zero frequency, without noise; it counts as "
        f"recovered where the relative error is at most {scientific(RECOVERED)}.",
    )


def shown_alpha(i: int) -> str:
    """An alpha of the grid as a head of a column."""
    return f"α = {number(0.02 * i)}"

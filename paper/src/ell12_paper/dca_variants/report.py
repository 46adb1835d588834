"""Variants of DCA on the page: how many times as long as the paper's method each takes, and what is printed."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ell12.wording import listed, number, scientific, so_many, span
from ell12_paper.claims import bounded
from ell12_paper.compressed_sensing.study import NAME as SENSING_NAME
from ell12_paper.dca_variants.study import (
    ACCURATE,
    DENOISING,
    DENOISING_VARIANTS,
    NAME,
    REFERENCE,
    SENSING,
    SENSING_VARIANTS,
    SETUP,
    TITLE,
)
from ell12_paper.denoising.claims import at_rule
from ell12_paper.denoising.study import ACCURATE as ALTMIN_ACCURATE
from ell12_paper.denoising.study import ALTMIN, RULES
from ell12_paper.denoising.study import NAME as DENOISING_NAME
from ell12_paper.denoising.words import shown_alpha
from ell12_paper.findings import Cell, Kind, Outcome, Part, Section, Source, Verdict, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import logarithms, summarize
from ell12_paper.tables import grid_table, limit_words
from ell12_paper.trials import Trials

NEAR = 1.5  # a ratio within this factor of the printed one counts as the printed one
PRINTED = "as the paper prints it"
# What is compared in denoising: the method beside DCA, and the rules that end DCA and it.
PAIRS = ((ALTMIN, "loose", "loose"), (ALTMIN_ACCURATE, "strict", "strict"), (ALTMIN, "strict", "loose"))


def sensing_of(rows: Sequence[Row]) -> Trials | None:
    """The trials of compressed sensing; None without any of the method that all are compared with."""
    chosen = Trials(tuple(rows)).where(study=SENSING)
    found = chosen.ended(lambda results: results | {"is_limited": results["status"] != "CONVERGED"})
    names = found.seen("method", SENSING_VARIANTS)
    return Trials(found.rows, SENSING, names, "i", tuple(sorted(found.seen("i")))) if REFERENCE in names else None


def denoising_of(rows: Sequence[Row]) -> Trials | None:
    """The trials of denoising; None without any of AltMin."""
    found = Trials(tuple(rows)).where(study=DENOISING)
    names = found.seen("method", DENOISING_VARIANTS)
    return Trials(found.rows, DENOISING, names, "i", tuple(sorted(found.seen("i")))) if ALTMIN in names else None


def ratio(ours: Trials, theirs: Trials) -> float:
    """The time of theirs over that of ours, by the geometric mean over the repeats of both; NaN without any."""
    times = [logarithms(trials.values("cpu_seconds")) for trials in (ours, theirs)]
    shared = times[0].keys() & times[1].keys()
    return math.exp(summarize([times[1][r] - times[0][r] for r in shared]).mean) if shared else math.nan


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Whether one of the variants has the printed ratio, and which."""
    sensing, images = sensing_of(rows), denoising_of(rows)
    return [*([_sensing_verdict(sensing)] if sensing else []), *([_denoising_verdict(images)] if images else [])]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    sensing, images = sensing_of(rows), denoising_of(rows)
    parts = [*([_sensing_part(sensing)] if sensing else []), *([_denoising_part(images)] if images else [])]
    found = verdicts(rows)
    return Section(
        name=NAME,
        title=TITLE,
        asked=(
            "How much slower DCA is depends on choices that the paper leaves open: the penalty ρ of the ADMM "
            "inside it, how accurately it solves each convex problem, and whether the next one begins where the "
            "last one ended. Which choices give the ratios that the paper prints? All variants are options of the "
            "same solver, measured beside the paper's method on the same problem in the same run.",
        ),
        found=tuple(verdict.reason for verdict in found),
        reasons=(),
        verdicts=tuple(found),
        parts=tuple(parts),
        scale=_scale(sensing, images),
    )


def _scale(sensing: Trials | None, images: Trials | None) -> str:
    words = []
    if sensing:
        rows, printed = sensing.seen("n_samples")[0], paper()[SENSING_NAME]["n_samples"]
        words.append(f"{rows} rows (paper {printed}), {so_many(sensing.n_repeats, 'repeat')}")
    if images:
        size, printed = images.seen("size")[0], paper()[DENOISING_NAME]["size"]
        words.append(f"an image of {size} x {size} (paper {printed} x {printed})")
    return ", ".join(words)


# Compressed sensing


def _printed_ratios() -> list[float]:
    seconds = paper()[SENSING_NAME]["cpu_seconds"]
    return [dca[0] / ours[0] for dca, ours in zip(seconds["DCA"], seconds[REFERENCE], strict=True)]


def _variants(trials: Trials) -> list[str]:
    return [name for name in trials.methods if name not in (REFERENCE, ALTMIN, ALTMIN_ACCURATE)]


def _sensing_verdict(trials: Trials) -> Verdict:
    last = trials.places[-1]
    printed = _printed_ratios()[last]
    measured = {name: (trials.at(REFERENCE, last), trials.at(name, last)) for name in _variants(trials)}
    ratios = {name: ratio(*pair) for name, pair in measured.items()}
    shown = {name: bounded(ratios[name], *measured[name]) for name in ratios}
    near = [n for n, value in ratios.items() if _is_near(value, printed) and not measured[n][1].n_limited]
    claim = f"A choice that the paper leaves open gives its ratio of DCA's time to {REFERENCE}'s at i = {last}"
    numbers = f"DCA / {REFERENCE} at i = {last}: {'; '.join(f'{n}: {text}' for n, text in shown.items())}."
    start = f"Compressed sensing: the printed ratio of {number(printed)} at i = {last}"
    said = f"{' or if '.join(f'{name} ({shown[name]})' for name in near)}. {_shape(trials, near)}"
    outcome, reason = _judged(start, said, near, ratios, SENSING_VARIANTS)
    return Verdict(claim, outcome, numbers, reason.strip(), SENSING, Source(Kind.OURS))


def _judged(
    start: str, said: str, near: Sequence[str], ratios: Mapping[str, float], planned: Mapping[str, Any]
) -> tuple[Outcome, str]:
    """Whether a variant is near, said in a sentence; open while variants that were planned have no rows."""
    if near:
        return Outcome.HOLDS, f"{start} appears if {said}"
    known = [value for value in ratios.values() if not math.isnan(value)]
    if len(known) < sum(name not in (REFERENCE, ALTMIN, ALTMIN_ACCURATE) for name in planned):
        return Outcome.OPEN, f"{start} did not appear yet: some variants have no rows, or ended at a limit."
    return Outcome.FAILS, f"{start} does not appear; the variants range from {span(known)}."


def _shape(trials: Trials, near: Sequence[str]) -> str:
    """The ratios of the near variants over all strengths, beside the printed ones."""
    if len(trials.places) < 2:
        return ""
    printed = ", ".join(number(_printed_ratios()[i]) for i in trials.places)
    phrases = [f"{_words(trials, name)} ({name})" for name in near]
    return f"At i = {listed(trials.places)} the paper prints {printed}; here {' and '.join(phrases)}."


def _words(trials: Trials, name: str) -> str:
    pairs = [(trials.at(REFERENCE, i), trials.at(name, i)) for i in trials.places]
    return ", ".join(bounded(ratio(*pair), *pair) for pair in pairs)


def _is_near(value: float, low: float, high: float | None = None) -> bool:
    return low / NEAR <= value <= (high or low) * NEAR


def _sensing_part(trials: Trials) -> Part:
    printed = _printed_ratios()

    def cell(name: str, i: int) -> Cell:
        if name == PRINTED:
            return Cell(number(printed[i]))
        ours, theirs = trials.at(REFERENCE, i), trials.at(name, i)
        value = ratio(ours, theirs)
        seconds = (f"{number(theirs.mean('cpu_seconds'))} s",) if theirs.rows else ()
        near = _is_near(value, printed[i]) and not theirs.n_limited
        return Cell(bounded(value, ours, theirs), (*seconds, *limit_words(theirs)), near)

    names = {name: name for name in (PRINTED, *_variants(trials))}
    note = (
        f"CPU time of DCA as a multiple of {REFERENCE}'s (setup “{SETUP}”), below it in seconds; both end at the "
        f"same stationarity. Bold: within a factor of {NEAR:g} of the printed ratio. “accurate”: inner problems "
        f"are solved to {scientific(ACCURATE['inner_tol'])} of the last change, else to a tenth of it; “from "
        "zero”: each begins at zero; L is the Lipschitz constant of the loss. ρ = 100 α is the default of a "
        "MATLAB script for DCA that circulates."
    )
    columns = {f"i = {i}": i for i in trials.places}
    table = grid_table(f"CPU time of DCA / {REFERENCE}", "inside DCA", names, columns, cell, note)
    return Part("Compressed sensing", (), (replace(table, number="Table I"),), (), ({"study": SENSING},))


# Denoising


def _pairs(trials: Trials, name: str, i: int) -> list[tuple[Trials, Trials]]:
    """AltMin and DCA under each pair of rules."""
    return [(at_rule(trials, ours).at(m, i), at_rule(trials, theirs).at(name, i)) for m, theirs, ours in PAIRS]


def _denoising_verdict(trials: Trials) -> Verdict:
    least, most = paper()[DENOISING_NAME]["times_faster"]
    found: dict[str, list[float]] = {}
    for name in _variants(trials):
        pairs = [_pairs(trials, name, i)[0] for i in trials.places]
        found[name] = [ratio(*pair) for pair in pairs if pair[1].rows and not pair[1].n_limited]
    means = {name: _mean(values) for name, values in found.items() if values}
    near = [name for name, value in means.items() if _is_near(value, least, most)]
    shown = {name: f"{number(means[name])} ({span(found[name])})" for name in means}
    claim = f"A choice that the paper leaves open gives its ratio of DCA's time to AltMin's, {least} to {most}"
    numbers = f"DCA / AltMin, mean and range over α: {'; '.join(f'{n}: {text}' for n, text in shown.items())}."
    said = " or if DCA solves its problems ".join(f"{name} ({shown[name]})" for name in near)
    said = (
        f"DCA solves its problems {said}, and AltMin, with at most 5 steps of conjugate gradients an iteration, "
        "stops as early as it does."
    )
    start = f"Denoising: the printed ratio of {least} to {most}"
    outcome, reason = _judged(start, said, near, means, DENOISING_VARIANTS)
    return Verdict(claim, outcome, numbers, reason, DENOISING, Source(Kind.OURS))


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _denoising_part(trials: Trials) -> Part:
    least, most = paper()[DENOISING_NAME]["times_faster"]

    def cell(name: str, i: int) -> Cell:
        if name == PRINTED:
            return Cell(f"{least} to {most}")
        early, late, mixed = _pairs(trials, name, i)
        if not early[1].rows:
            return Cell("no rows")
        value = ratio(*early)
        said = (f"run on {bounded(ratio(*late), *late)}", f"DCA alone {bounded(ratio(*mixed), *mixed)}")
        near = _is_near(value, least, most) and not early[1].n_limited
        return Cell(bounded(value, *early), said, near)

    names = {name: name for name in (PRINTED, *_variants(trials))}
    note = (
        "CPU time of DCA as a multiple of AltMin's, both stopped at a change of "
        f"{scientific(RULES['loose'])}. Below it “run on”, to a change of {scientific(RULES['strict'])} with "
        "accurate systems in AltMin, and “DCA alone”, with DCA run on and AltMin stopped early. Bold: within a "
        f"factor of {NEAR:g} of the printed {least} to {most}. “to 1e-6”: a convex problem ends when x changes by "
        "less than that fraction; “from the start”: each begins at the noisy image."
    )
    columns = {shown_alpha(i): i for i in trials.places}
    table = grid_table("CPU time of DCA / AltMin", "DCA solves", names, columns, cell, note)
    return Part("Denoising", (), (replace(table, number="Figure 5"),), (), ({"study": DENOISING},))

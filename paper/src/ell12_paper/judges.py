"""Judges of claims on compressed sensing, on the proximal step, on level curves and on the theory."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from ell12.datasets import COMPRESSED_SENSING_SETUPS
from ell12_paper import comparisons as by
from ell12_paper.rows import Row
from ell12_paper.studies import compressed_sensing, convergence, dca_variants, level_curves, prox_race, theory
from ell12_paper.studies.compressed_sensing import EARLY_CHANGE, RHO_ONE
from ell12_paper.trials import Trials, Values, printed, published
from ell12_paper.words import RangeInWords, percent, scientific, span

Rows = Mapping[str, Trials]  # by study

SENSING = compressed_sensing.NAME
OURS, CONVEX, DEFAULT = "nmAPG(closed-form)", "FISTA", compressed_sensing.DEFAULT
METHODS = ("DCA", "SCP", "nmAPG(numerical)", OURS, CONVEX, RHO_ONE, DEFAULT)  # the paper's, then what we add
GRID = tuple(range(5))
# Two objectives closer than this fraction count as the same: solvers that stop at the same stationarity differ by
# rounding and by the last steps they did not take.
SAME_OBJECTIVE = 1e-3
NEAR = 1.5  # a ratio within this factor of the printed one counts as the printed one


def setups(rows: Rows) -> list[Trials]:
    """The rows of each setup, with every i of the paper as a column."""
    return _by_setup(rows[SENSING])


def earlier(rows: Rows) -> list[Trials]:
    """Those that were stopped as by the author's earlier code."""
    found = _by_setup(rows[dca_variants.NAME].where(study=dca_variants.EARLIER))
    return [replace(trials, name=f"{trials.name}, {dca_variants.EARLIER}") for trials in found]


def _by_setup(present: Trials) -> list[Trials]:
    chosen = [(name, present.where(setup=name)) for name in present.seen("setup", COMPRESSED_SENSING_SETUPS)]
    return [Trials(found.rows, name, found.seen("method", METHODS), "i", GRID) for name, found in chosen]


def is_papers(trials: Trials) -> bool:
    """Whether the data are the paper's: drawn as its text says, with its number of rows."""
    return trials.seen("n_samples") == (published()[SENSING]["n_samples"],)


def early(trials: Trials) -> Trials:
    """The trials as the early rule would have ended them; those that converged before count with their end.

    A rule that fires before a method has moved tells nothing of it: its trials are left out.
    """

    def end(results: Row) -> Row | None:
        found = results["early"]
        moved = found is None or found["objective"] < 0.99 * results["history"]["objective"][0]
        return (found or (None if results["is_limited"] else results)) if moved else None

    return trials.ended(end)


def _seconds(method: str, i: int) -> float:
    found = printed("cpu_seconds", method, i)
    return found[0] if found else math.nan


def faster_than(rival: str, *variants: str, rows: Rows) -> Iterator[by.Reading]:
    """Whether nmAPG(closed-form) is faster at every i at which the paper's own table has it so."""
    grid = [i for i in GRID if _seconds(OURS, i) < _seconds(rival, i)]
    paper = span([_seconds(rival, i) / _seconds(OURS, i) for i in grid])
    before = product((trials for trials in earlier(rows) if rival in trials.methods), (rival,))
    for trials, method in (*product(setups(rows), (rival, *variants)), *before):
        pairs = {i: (trials.at(OURS, i), trials.at(method, i)) for i in grid}
        yield by.contest(trials.name + ", ρ = 1" * (method != rival), pairs, by.at_i, paper=paper)


def default_is_faster(rows: Rows) -> Iterator[by.Reading]:
    """Whether the solver that this library takes by itself is faster, and what it reaches."""
    for trials in setups(rows):
        pairs = {i: (trials.at(DEFAULT, i), trials.at(OURS, i)) for i in GRID}
        excess = {i: excesses(*(t.values("objective") for t in pair)) for i, pair in pairs.items()}
        worse = [f"i = {i}, repeat {r}: {percent(e)}" for i in GRID for r, e in excess[i].items() if e > 1e-4]
        found = by.contest(trials.name, pairs, by.at_i)
        count = f"a higher objective in {len(worse) or 'none'} of {sum(map(len, excess.values()))} runs"
        numbers = f"{found.numbers} {count.capitalize()}{': ' * bool(worse)}{'; '.join(worse)}."
        yield replace(found, numbers=numbers, brief=f"{found.brief}, {count}" if worse else found.brief)


def slowest(rows: Rows) -> Iterator[by.Reading]:
    """Whether DCA takes the longest of the paper's methods, as its text says and its table does not."""
    rivals = [method for method in published()[SENSING]["cpu_seconds"] if method != "DCA"]
    for trials, dca in product(setups(rows), ("DCA", RHO_ONE)):
        pairs = {i: {r: (trials.at(r, i), trials.at(dca, i)) for r in rivals} for i in GRID}
        each = {i: {r: by.faster(i, *pair) for r, pair in found.items()} for i, found in pairs.items()}
        answers = [by.worst(i, found) for i, found in each.items()]
        known = [value for found in pairs.values() if not math.isnan(value := by.ratio(*found["SCP"][::-1]))]
        brief = RangeInWords(known, unit="SCP takes {} times as long")
        name = trials.name + ", ρ = 1" * (dca == RHO_ONE)
        yield by.reading(name, answers, ("slower than all others", "not the slowest"), by.at_i, f"{brief}.", brief)


def more_accurate(rows: Rows) -> Iterator[by.Reading]:
    """Whether l1-2 recovers better than l1."""
    for trials in setups(rows):
        pairs = {i: (trials.at(OURS, i), trials.at(CONVEX, i)) for i in GRID}
        yield by.contest(trials.name, pairs, by.at_i, "rmse")


def larger_objective(rows: Rows) -> Iterator[by.Reading]:
    """Whether SCP ends higher; the paper does not say when it stops, so that there are three rules."""
    change = scientific(EARLY_CHANGE)
    ended = [(f"{t.name}, to the same stationarity", t, True) for t in setups(rows)]
    ended += [(f"{t.name}, to a change of {change}", early(t), False) for t in setups(rows)]
    ended += [(t.name, t, True) for t in earlier(rows)]
    for name, trials, has_limits in ended:
        answers, means = [], []
        for i in trials.columns:
            scp, ours = trials.at("SCP", i), trials.at(OURS, i)
            found = excesses(scp.values("objective"), ours.values("objective"))
            means.append(float(np.mean([*found.values()])) if found else math.nan)
            answers.append(_excess_answer(i, found, has_limits and scp.n_limited + ours.n_limited > 0))
        shown = ", ".join("not known" if math.isnan(mean) else percent(mean) for mean in means)
        known = [mean for mean in means if not math.isnan(mean)]
        numbers = f"Mean excess: {shown}."
        brief = RangeInWords(known, percent)
        yield by.reading(name, answers, ("larger", "not larger"), by.at_i, numbers, brief)


def excesses(objectives: Values, reference: Values) -> Values:
    """By which fraction each objective exceeds that of the reference in the same repeat."""
    shared = objectives.keys() & reference.keys()
    return {r: (objectives[r] - reference[r]) / abs(reference[r]) for r in sorted(shared) if reference[r]}


def _excess_answer(i: int, excess: Values, limited: bool) -> by.Answer:
    if not excess:
        return by.Answer(i, by.Outcome.OPEN, "a method never met the rule, or has no rows")
    if np.mean([*excess.values()]) <= SAME_OBJECTIVE:
        return by.answer(i, False)
    if limited:  # further steps would have lowered the objective
        return by.Answer(i, by.Outcome.OPEN, f"a method {by.CUT}")
    return by.lower(i, dict.fromkeys(excess, 0.0), excess)


def variant_trials(rows: Rows, study: str) -> Trials:
    """The variants of DCA of one kind."""
    found = rows[dca_variants.NAME].where(study=study)
    order = dca_variants.SENSING_VARIANTS if study == dca_variants.SENSING else dca_variants.DENOISING_VARIANTS
    return Trials(found.rows, study, found.seen("method", order), "i", tuple(sorted(found.seen("i"))))


def printed_dca_ratio(i: int) -> float:
    """DCA's printed time over that of nmAPG(closed-form)."""
    return _seconds("DCA", i) / _seconds(OURS, i)


def is_near(value: float, low: float, high: float | None = None) -> bool:
    """Whether a ratio is about the printed one."""
    return low / NEAR <= value <= (high or low) * NEAR


# The proximal step and the level curves

CLOSED, NUMERICAL = "closed-form", "numerical"
# Below SMALLEST the call itself takes most of the time. An entry in memory costs several times one in a cache, for
# a copy too: so the time is taken over that of a copy. A power of d up to LINEAR counts as O(d).
SMALLEST, LINEAR = 10_000, 1.15


def median(trials: Trials, method: str, case: str, d: int, result: str) -> float:
    """The median of one result over the repeats."""
    return float(np.median(list(trials.where(method=method, case=case, d=d).values(result).values())))


def sizes(trials: Trials, case: str) -> list[int]:
    """Every d at which both methods have rows."""
    found = [set(trials.where(method=method, case=case).seen("d")) for method in (CLOSED, NUMERICAL)]
    return sorted(found[0] & found[1])


def linear_time(rows: Rows) -> Iterator[by.Reading]:
    """Whether the closed form's time, over that of a copy and times d, grows no faster than d."""
    trials, slopes = rows[prox_race.NAME].where(method=CLOSED), {}
    for case in trials.seen("case"):
        large = sorted(d for d in trials.where(case=case).seen("d") if d >= SMALLEST)
        times = [[median(trials, CLOSED, case, d, f"{what}seconds") for d in large] for what in ("", "copy_")]
        if len(large) > 2:
            slopes[case] = 1 + float(np.polyfit(np.log(large), np.log(times[0]) - np.log(times[1]), 1)[0])
    if slopes:
        brief = f"a power of {span(slopes.values(), '{:.2f}'.format)}"
        reason = f"In units of a copy of z the time grows as {brief} of d, from {SMALLEST:,} entries on."
        yield by.plain("", max(slopes.values()) <= LINEAR, reason, "", brief)


def prox_ratios(trials: Trials) -> dict[tuple[str, int], float]:
    """How many times as long the numerical method takes, by case and size."""
    time = partial(median, trials, result="seconds")
    cases = [(case, d) for case in trials.seen("case") for d in sizes(trials, case)]
    return {(case, d): time(NUMERICAL, case, d) / time(CLOSED, case, d) for case, d in cases}


def closed_is_faster(rows: Rows) -> Iterator[by.Reading]:
    """Whether the closed form's median time is the lower one at every size and threshold."""
    ratios = prox_ratios(rows[prox_race.NAME])
    slower = [f"d = {d:,} ({case})" for (case, d), value in ratios.items() if value <= 1]
    reason = f"It is not faster at {', '.join(slower)}." if slower else "Faster at every size and threshold."
    yield by.plain("", not slower, reason, "", f"{span(ratios.values())} times")


def axis_distances(row: Row) -> list[float]:
    """How far above the axis the curves of some falling values pass at the square's right edge."""
    axis, values = np.asarray(row["results"]["axis"]), np.asarray(row["results"]["values"])
    edge, heights = values[axis >= 0, -1], axis[axis >= 0]
    return [float(np.interp(part * edge[-1], edge, heights)) for part in (0.4, 0.2, 0.1, 0.05)]


def closer_to_axes(rows: Rows) -> Iterator[by.Reading]:
    """Whether the level curves of l1-2 approach the axes, and closer than those of the other penalties."""
    distances = {r["settings"]["penalty"]: axis_distances(r) for r in rows[level_curves.NAME].rows}
    ours, falls = distances["l1-2"][2], bool(np.all(np.diff(distances["l1-2"]) < 0))
    numbers = ", ".join(f"{name} {found[2]:.3f}" for name, found in distances.items())
    reason = f"The distance from the axis {'falls' if falls else 'does not fall'} with the value."
    numbers = f"At x₁ = 1 and a tenth of the corner's value: {numbers}."
    yield by.plain("alone", falls, reason, numbers, f"{ours:.3f}")
    closer = [name for name, found in distances.items() if found[2] < ours]
    yield by.plain("against the others", not closer, f"Closer: {', '.join(closer) or 'none of them'}.")


# Theory


def no_violation(study: str, rows: Rows) -> Iterator[by.Reading]:
    """Whether a search finds nothing below what the proposition says."""
    for row in rows[theory.NAME].where(study=study).rows:
        count, worst = row["results"]["violations"], row["results"]["worst"]
        brief = f"{count or 'no'} violation{'s' * (count > 1)} in {row['settings']['problems']} problems"
        yield by.plain("", not count, f"Largest excess: {worst:.1g} of ||z||².", "", brief)


def converges(rows: Rows) -> Iterator[by.Reading]:
    """Whether nmAPG ends at stationary points, and whether the running average of its objective falls."""
    found = [row["results"] for row in rows[theory.NAME].where(study=convergence.CONVERGENCE).rows]
    if found:
        largest, rise = max(f["stationarity"] for f in found), max(f["largest_rise"] for f in found)
        reason = f"Stationarity at most {largest:.1g}; the average rises by at most {rise:.1g} of it."
        yield by.plain("", largest <= 1e-8 and rise <= 1e-12, reason, "", f"stationarity {largest:.1g}")


def admm_moves_on(rows: Rows) -> Iterator[by.Reading]:
    """Whether ADMM with a weight that stays does not come to rest on the row-wise penalty."""
    chosen = rows[theory.NAME].where(study=convergence.ADMM).rows
    found = {row["settings"]["threshold"]: row["results"] for row in chosen}
    fixed = [100 * results["least_move"] for threshold, results in found.items() if threshold]
    if fixed:
        brief = f"{span(fixed)} % a step"
        rest = f"with a growing weight by {scientific(100 * found[None]['least_move'])} %"
        reason = f"After 400 steps the image moves by {brief}, {rest}."
        yield by.plain("", min(fixed) > 100 * found[None]["least_move"] * STILL, reason, "", brief)


STILL = 100  # times as far as with a growing weight: an image that moves so far is not at rest
SAME_MINIMUM = 1e-6  # the gap of the certificate


def counted_minima(trials: Trials) -> dict[str, tuple[int, int]]:
    """For each method, how many answers are proved to be global minima, and how many lie above a better point."""
    found = [row["results"] for row in trials.rows]
    methods = found[0]["excess"] if found else ()
    at = {method: [r["excess"][method] <= SAME_MINIMUM for r in found] for method in methods}
    return {m: (sum(r["proved"] and a for r, a in zip(found, at[m], strict=True)), at[m].count(False)) for m in at}


def global_minima(rows: Rows) -> Iterator[by.Reading]:
    """Which answers are global minima, by the certificate."""
    trials = rows[theory.NAME].where(study=convergence.GLOBAL)
    for draws in trials.seen("draws", convergence.DRAWS):
        chosen = trials.where(draws=draws)
        counts, total = counted_minima(chosen), len(chosen.rows)
        answers = []
        for method, (proved, above) in counts.items():
            unknown = by.Answer(method, by.Outcome.OPEN, "not all are proved, none is refuted")
            answers.append(unknown if not above and proved < total else by.answer(method, not above))
        shares = [span([pair[k] for pair in counts.values()]) for k in (0, 1)]
        said = "; ".join(f"{method} {pair[0]} and {pair[1]}" for method, pair in counts.items())
        numbers = f"Of {total} answers proved, and above a better one: {said}."
        brief = f"{shares[0]} of {total} proved, {shares[1]} above a better one"
        yield by.reading(draws, answers, ("global", "not always"), ", ".join, numbers, brief)


def grows_as_said(rows: Rows) -> Iterator[by.Reading]:
    """Whether the time of a matrix step grows no faster than k^2 (m + n) + k |known|."""
    trials = rows[theory.NAME].where(study=convergence.MATRIX)
    powers = {"rank": ("rank", 2), "side": ("sides", 1), "known": ("known entries", 1)}
    for varied, (words, most) in powers.items():
        here = trials.where(varied=varied)
        values = sorted(here.seen(varied))
        times = [float(np.median(list(here.where(**{varied: v}).values("seconds").values()))) for v in values]
        if len(values) > 1:
            slope = float(np.polyfit(np.log(values), np.log(times), 1)[0])
            reason = f"Slope of the logarithm of the time against that of the {words}, at most {most}."
            yield by.plain(words, slope <= most * LINEAR, reason, "", f"slope {slope:.2f}")

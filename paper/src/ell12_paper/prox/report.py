"""The prox study on the page: time and iterations of the closed form and the numerical method against d."""

# ruff: noqa: RUF001 (mathematical signs are meant)

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from ell12.wording import number, power_of_ten, short_time, span
from ell12_paper import figures
from ell12_paper.findings import Cell, Figure, Key, Kind, Outcome, Part, Section, Source, Table, Verdict
from ell12_paper.rows import Row
from ell12_paper.statistics import comparable, logarithms
from ell12_paper.tables import grid_table
from ell12_paper.trials import Trials

NAME, TITLE = "prox", "The proximal step: closed form against numerical method"
CLOSED, NUMERICAL = "closed-form", "numerical"
# Below the smallest size the call itself takes most of the time. An entry in a cache costs a fraction of one in
# memory, so that a slope is taken over at least three sizes whose copies cost within a factor of two per entry. Up
# to _LINEAR it counts as O(d), above _BEYOND not, in between the claim stays open.
_SMALLEST, _SAME_LEVEL, _FEWEST, _LINEAR, _BEYOND = 10_000, 2.0, 3, 1.15, 1.3
_verdict = partial(Verdict, source=Source(Kind.PAPER, "Section III-B, after Proposition III.5"))
_COPY = Key("copying the vector", 6, "dotted")


def _cases(trials: Trials) -> tuple[str, ...]:
    """The kinds of threshold that have rows: an easy one of 1, and one near the largest entry."""
    return trials.seen("case")


def _sizes(trials: Trials, case: str) -> list[int]:
    """Every d at which both methods have rows."""
    found = [set(trials.where(method=method, case=case).seen("d")) for method in (CLOSED, NUMERICAL)]
    return sorted(found[0] & found[1])


def _median(trials: Trials, method: str, case: str, d: int, result: str) -> float:
    """The median of one result over the repeats."""
    return float(np.median(list(trials.where(method=method, case=case, d=d).values(result).values())))


def _level(trials: Trials, case: str) -> list[int]:
    """The longest run of large sizes at which copying an entry costs about the same: one level of the memory."""
    sizes = sorted(d for d in trials.where(method=CLOSED, case=case).seen("d") if d >= _SMALLEST)
    copies = {d: _median(trials, CLOSED, case, d, "copy_seconds") / d for d in sizes}
    runs = [sizes[i:j] for i in range(len(sizes)) for j in range(i + 1, len(sizes) + 1)]
    flat = [run for run in runs if max(copies[d] for d in run) <= _SAME_LEVEL * min(copies[d] for d in run)]
    return max(flat, key=len, default=[])


def _slopes(trials: Trials, case: str) -> list[float]:
    """The slope of the closed form's time against d, both logarithmic, in each repeat; none with too few sizes."""
    sizes = _level(trials, case)
    times = [trials.where(method=CLOSED, case=case, d=d).values("seconds") for d in sizes]
    if len(sizes) < _FEWEST:
        return []
    shared = set.intersection(*(set(found) for found in times))
    return [
        float(np.polyfit(np.log(sizes), np.log([found[repeat] for found in times]), 1)[0])
        for repeat in sorted(shared)
    ]


def _time_ratios(trials: Trials) -> dict[tuple[str, int], float]:
    """How many times as long the numerical method takes, by case and size."""
    return {
        (case, d): _median(trials, NUMERICAL, case, d, "seconds") / _median(trials, CLOSED, case, d, "seconds")
        for case in _cases(trials)
        for d in _sizes(trials, case)
    }


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims on the proximal step."""
    trials = Trials(tuple(rows))
    return [_linear(trials), _faster(trials)]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    trials = Trials(tuple(rows))
    return Section(
        name=NAME,
        title=TITLE,
        asked=(
            "Every step of nmAPG solves argmin ½‖x − z‖² + t(‖x‖₁ − ‖x‖₂). The paper's closed form needs a few "
            "passes over the d entries of z; the numerical method repeats soft-thresholding until x no longer "
            "moves. How do time and iterations grow with d? z is drawn from N(0, 1), once with t = 1 and once "
            "with t close to the largest entry, so that few entries remain.",
        ),
        found=tuple(_found(trials)),
        reasons=(),
        verdicts=tuple(verdicts(rows)),
        parts=(Part("Time and iterations", (), (_table(trials),), (_figure(trials),), ({},)),),
        scale=f"d up to {power_of_ten(max(trials.seen('d')))} (the paper has no such study)",
    )


def _linear(trials: Trials) -> Verdict:
    claim = "The closed form takes O(d) time"
    slopes = {case: found for case in _cases(trials) if (found := _slopes(trials, case))}
    if not slopes:
        reason = f"There are fewer than {_FEWEST} sizes from {_SMALLEST:,} on at which the memory costs the same."
        return _verdict(claim, Outcome.OPEN, "", reason)
    every = [slope for found in slopes.values() for slope in found]
    outcome = Outcome.OPEN
    if max(every) <= _LINEAR:
        outcome = Outcome.HOLDS
    elif max(min(found) for found in slopes.values()) > _BEYOND:
        outcome = Outcome.FAILS
    words = {
        Outcome.HOLDS: f"Time grows no faster than d: the slope is at most {_LINEAR} in every repeat",
        Outcome.FAILS: f"Time grows faster than d: the slope is above {_BEYOND} in every repeat",
        Outcome.OPEN: f"The slope is above {_LINEAR} in some repeat, but not above {_BEYOND} in all",
    }
    reason = f"{words[outcome]}. Only sizes count at which copying an entry costs about the same."
    shown = "; ".join(
        f"{span(found, '{:.2f}'.format)} from d = {_level(trials, case)[0]:,} to "
        f"{_level(trials, case)[-1]:,} ({case})"
        for case, found in slopes.items()
    )
    return _verdict(claim, outcome, f"Slope of log time against log d over the repeats: {shown}.", reason)


def _faster(trials: Trials) -> Verdict:
    claim = "The closed form is faster than the numerical method at every d"
    ratios = _time_ratios(trials)
    if not ratios:
        return _verdict(claim, Outcome.OPEN, "", "There is no size at which both have rows.")
    slower = [f"d = {d:,} ({case})" for (case, d), ratio in ratios.items() if ratio <= 1]
    numbers = f"The numerical method takes {span(ratios.values())} times as long."
    if slower:
        return _verdict(claim, Outcome.FAILS, numbers, f"It is not faster at {', '.join(slower)}.")
    return _verdict(claim, Outcome.HOLDS, numbers, "Its median time is lower at every size and threshold.")


def _found(trials: Trials) -> list[str]:
    words = []
    for case in _cases(trials):
        sizes = _sizes(trials, case)
        large = [d for d in sizes if d >= _SMALLEST]
        steps = [_median(trials, NUMERICAL, case, d, "n_iter") for d in sizes]
        entries = _nanoseconds([_median(trials, CLOSED, case, d, "seconds") for d in large], large)
        flat = f", the closed form {span(entries)} ns per entry from d = {_SMALLEST:,} on" if large else ""
        words += [f"{case}: the numerical method needs {span(steps)} iterations{flat}."] if sizes else []
    gaps = _value_gaps(trials)
    words += [f"The values that the two reach differ by at most a fraction of {max(gaps):.1g}."] if gaps else []
    return words


def _value_gaps(trials: Trials) -> list[float]:
    """By which fraction the numerical method's value differs from the closed form's on the same problem."""
    gaps = []
    for case in _cases(trials):
        for d in _sizes(trials, case):
            chosen = trials.where(case=case, d=d)
            closed, numerical = (chosen.where(method=method).values("value") for method in (CLOSED, NUMERICAL))
            shared = [r for r in closed.keys() & numerical.keys() if closed[r]]
            gaps += [abs(numerical[r] - closed[r]) / abs(closed[r]) for r in shared]
    return gaps


def _table(trials: Trials) -> Table:
    ratios = _time_ratios(trials)

    def cell(d: int, column: tuple[str, str]) -> Cell:
        case, method = column
        if (case, d) not in ratios:
            return Cell("none")
        text, ratio = short_time(_median(trials, method, case, d, "seconds")), ratios[case, d]
        chosen = {m: trials.where(method=m, case=case, d=d).values("seconds") for m in (CLOSED, NUMERICAL)}
        best = comparable({m: logarithms(values) for m, values in chosen.items()})
        if method == CLOSED:
            return Cell(text, best=method in best)
        steps = f"{_median(trials, method, case, d, 'n_iter'):g} iterations"
        return Cell(text, (f"{number(ratio)} times", steps), method in best)

    sizes = {f"d = {power_of_ten(d)}": d for d in sorted({d for _, d in ratios})}
    columns = {f"{method}, {case}": (case, method) for case in _cases(trials) for method in (CLOSED, NUMERICAL)}
    note = "Median time of one call over the repeats; bold: the faster by the paired t-test at 95 %."
    return grid_table("Time of one proximal step", "size", sizes, columns, cell, note)


def _figure(trials: Trials) -> Figure:
    cases = _cases(trials)
    dashes = dict(zip(cases, ("solid", "dashed", "dotted"), strict=False))
    seconds, per_entry, steps = [], [], []
    for (series, method), (case, dash) in product(((1, CLOSED), (2, NUMERICAL)), dashes.items()):
        key, sizes = Key(f"{method}, {case}", series, dash), _sizes(trials, case)
        times, n_iter = (
            [_median(trials, method, case, d, result) for d in sizes] for result in ("seconds", "n_iter")
        )
        seconds.append(figures.Line(key, sizes, times, True))
        per_entry.append(figures.Line(key, sizes, _nanoseconds(times, sizes), True))
        steps += [figures.Line(key, sizes, n_iter, True)] if method == NUMERICAL else []
    sizes = _sizes(trials, cases[0])
    copies = [_median(trials, CLOSED, cases[0], d, "copy_seconds") for d in sizes]
    per_entry.append(figures.Line(_COPY, sizes, _nanoseconds(copies, sizes)))
    panels = (
        figures.line_panel(f"{NAME}-seconds", "Time of one step", seconds, "d", "seconds"),
        figures.line_panel(f"{NAME}-entry", "Time per entry: flat is O(d)", per_entry, "d", "nanoseconds / d"),
        figures.line_panel(f"{NAME}-steps", "Iterations of the numerical method", steps, "d", "iterations"),
    )
    caption = (
        "Medians over the repeats, all axes logarithmic. Copying the vector shows what the memory alone costs."
    )
    return Figure("The proximal step against the size of the vector", panels, caption)


def _nanoseconds(times: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Times per entry."""
    return [1e9 * seconds / d for seconds, d in zip(times, sizes, strict=True)]

"""Compressed sensing on the page: tables beside the paper's, objective against time, and what explains them."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ell12.datasets import COMPRESSED_SENSING_SETUPS
from ell12.experiments import figures
from ell12.experiments.compressed_sensing import words
from ell12.experiments.compressed_sensing.claims import (
    CONVEX,
    OURS,
    Trials,
    excesses,
    verdicts_of,
)
from ell12.experiments.compressed_sensing.study import EARLY_CHANGE, NAME, TITLE
from ell12.experiments.report import Cell, Figure, Key, Panel, Part, Section, Table, Verdict, paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import Summary, comparable, logarithms, summarize
from ell12.wording import number, percent, plus_minus, scientific

# Colour and dash of each method; the two variants of DCA share a colour.
_STYLES = {
    OURS: (1, "solid"),
    "DCA": (2, "solid"),
    "SCP": (3, "solid"),
    "nmAPG(numerical)": (4, "dashed"),
    CONVEX: (5, "dashed"),
    "DCA(rho=1)": (2, "dotted"),
    "PG(Barzilai-Borwein)": (6, "solid"),
}
_FLOOR = 1e-8  # gaps below this fraction of the objective are noise of the stopping rule


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims, setup by setup."""
    return [verdict for trials in _setups(rows) for verdict in verdicts_of(trials)]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    setups = _setups(rows)
    found = verdicts(rows)
    return Section(
        name=NAME,
        title=TITLE,
        asked=words.asked(rows, setups),
        found=(*(words.closeness(setups)), *(words.ratio_words(trials) for trials in setups)),
        reasons=(*words.dca_words(setups), *words.scp_words(setups)),
        verdicts=tuple(found),
        parts=tuple(_part(trials) for trials in setups),
    )


def _setups(rows: Sequence[Row]) -> list[Trials]:
    names = dict.fromkeys(row["settings"]["setup"] for row in rows)
    order = [*COMPRESSED_SENSING_SETUPS, *names]
    return [
        Trials(name, tuple(row for row in rows if row["settings"]["setup"] == name))
        for name in dict.fromkeys(order)
        if name in names
    ]


def _part(trials: Trials) -> Part:
    return Part(
        f"Setup “{trials.setup}”",
        tuple(text for text in words.readings() if text.startswith(f"“{trials.setup}”")),
        (
            _time_table(trials),
            _rmse_table(trials),
            _objective_table(trials),
            _ratio_table(trials),
            _early_table(trials),
        ),
        (_figure(trials),),
    )


def _table(
    trials: Trials, title: str, cell: Callable[[str, int], Cell], note: str, leave_out: str | None = None
) -> Table:
    columns = ("method", *(f"i = {i}" for i in trials.grid))
    methods = [method for method in trials.methods if method != leave_out]
    rows = tuple((method, tuple(cell(method, i) for i in trials.grid)) for method in methods)
    return Table(f"{title} ({trials.setup})", columns, rows, note)


def _time_table(trials: Trials) -> Table:
    def show(method: str, i: int, summary: Summary) -> str:
        return ("≥ " if trials.n_limited(method, i) else "") + plus_minus(summary.mean, summary.deviation)

    return _measured_table(trials, "CPU seconds", "cpu_seconds", ("cpu_seconds", 1), show)


def _rmse_table(trials: Trials) -> Table:
    def show(_method: str, _i: int, summary: Summary) -> str:
        return plus_minus(100 * summary.mean, None if summary.deviation is None else 100 * summary.deviation, 2)

    return _measured_table(trials, "RMSE x 100", "rmse", ("rmse_times_100", 2), show)


def _measured_table(
    trials: Trials,
    title: str,
    name: str,
    printed_as: tuple[str, int],
    show: Callable[[str, int, Summary], str],
) -> Table:
    """Mean and deviation, the printed value (its name, its decimals) below, the best in bold."""
    printed, decimals = paper()[NAME][printed_as[0]], printed_as[1]
    best = {i: _best(trials, i, name) for i in trials.grid}

    def cell(method: str, i: int) -> Cell:
        summary = trials.summary(method, i, name)
        if summary is None:
            return Cell("no rows")
        lines = []
        if method in printed:
            mean, deviation = printed[method][i]
            lines.append(f"paper {plus_minus(mean, deviation, decimals)}")
        return Cell(show(method, i, summary), (*lines, *_limit_words(trials, method, i)), method in best[i])

    note = (
        "Mean ± standard deviation; below it what the paper prints; methods without that are our additions. "
        "Bold: the best and those that the paired t-test at 95 % over the repeats does not tell apart from it, "
        "among those that met the rule. Times are tested by their logarithms, since a hard problem slows every "
        "method by a factor."
    )
    return _table(trials, title, cell, note)


def _best(trials: Trials, i: int, name: str) -> set[str]:
    methods = [method for method in trials.methods if not trials.n_limited(method, i)]
    scale = logarithms if name == "cpu_seconds" else dict
    return comparable({method: scale(trials.values(method, i, name)) for method in methods})


def _objective_table(trials: Trials) -> Table:
    def cell(method: str, i: int) -> Cell:
        summary = trials.summary(method, i, "objective")
        if summary is None:
            return Cell("no rows")
        reached = trials.values(method, i, "stationarity").values()
        worst = scientific(max(reached)) if reached else "unknown"
        return Cell(f"{summary.mean:.6g}", (worst, *_limit_words(trials, method, i)))

    note = (
        f"Mean objective; below it the largest stationarity over the repeats. {CONVEX} minimises another "
        "objective (l1), and its stationarity is that of its own problem."
    )
    return _table(trials, "Objective and stationarity reached", cell, note)


def _ratio_table(trials: Trials) -> Table:
    printed = paper()[NAME]["cpu_seconds"]

    def cell(method: str, i: int) -> Cell:
        theirs = (f"paper {printed[method][i][0] / printed[OURS][i][0]:.1f}",) if method in printed else ()
        return Cell(trials.ratio(method, i), theirs)

    note = "Ratios of the means above; ≥ and ≤ where one of the two ended at its limit."
    return _table(trials, f"CPU time as a multiple of {OURS}", cell, note, leave_out=OURS)


def _early_table(trials: Trials) -> Table:
    printed = paper()[NAME]["rmse_times_100"]

    def cell(method: str, i: int) -> Cell:
        errors = trials.early(method, i, "rmse")
        if not errors:
            return Cell("never met" if trials.of(method, i) else "no rows")
        lines = [f"paper {printed[method][i][0]:.2f}"] if method in printed else []
        lowest = {repeat: _lowest(trials, i, repeat) for repeat in errors}
        excess = excesses(trials.early(method, i, "objective"), lowest)
        if excess and method != CONVEX:
            lines.append(f"objective {percent(summarize(excess.values()).mean)}")
        seconds = summarize(trials.early(method, i, "cpu_seconds").values()).mean
        return Cell(f"{100 * summarize(errors.values()).mean:.2f}", (*lines, f"{number(seconds)} s"))

    note = (
        "RMSE x 100 at the first iteration that changes the objective by less than a fraction of "
        f"{scientific(EARLY_CHANGE)}, a rule of the kind the paper may have used; how far the objective still is "
        "above the lowest that any l1-2 method reached; and the CPU seconds until then. Runs that met our own "
        "rule before count with their end."
    )
    return _table(trials, "Had an early rule stopped them: RMSE x 100", cell, note)


def _lowest(trials: Trials, i: int, repeat: int) -> float:
    """The lowest objective that any l1-2 method reached on a problem, its path included."""
    rows = _rows_of_problem(trials, i, repeat)
    return min((_best_seen(row) for row in rows if row["settings"]["method"] != CONVEX), default=math.nan)


def _rows_of_problem(trials: Trials, i: int, repeat: int) -> list[Row]:
    rows = (row for method in trials.methods for row in trials.of(method, i))
    return [row for row in rows if row["settings"]["repeat"] == repeat]


def _best_seen(row: Row) -> float:
    """The lowest objective of a run; rows hold None where it was not finite."""
    seen = (row["results"]["objective"], *row["results"]["history"]["objective"])
    return min((value for value in seen if value is not None), default=math.nan)


def _figure(trials: Trials) -> Figure:
    repeat = min(row["settings"]["repeat"] for row in trials.rows)
    order = sorted(trials.grid, key=lambda i: (i % 2, i))  # the paper's three first, then those it leaves out
    shown = [(i, rows) for i in order if (rows := _rows_of_problem(trials, i, repeat))]
    panels = tuple(_panel(trials, i, rows, _lowest(trials, i, repeat)) for i, rows in shown)
    keys = tuple(Key(method, *_STYLES.get(method, (7, "solid"))) for method in trials.methods)
    caption = (
        "Objective minus the lowest objective that any l1-2 method reached on the same problem (repeat "
        f"{repeat}), against CPU seconds. {CONVEX} solves another problem and is drawn with the gap to its own "
        "lowest value. Both axes are logarithmic, so a curve ends where its gap is zero."
    )
    return Figure(f"Objective against CPU time ({trials.setup})", panels, caption, keys)


def _panel(trials: Trials, i: int, rows: Sequence[Row], lowest: float) -> Panel:
    lines = []
    for row in rows:
        method, history = row["settings"]["method"], row["results"]["history"]
        reference = _best_seen(row) if method == CONVEX else lowest
        series, dash = _STYLES.get(method, (7, "solid"))
        gaps = [math.nan if value is None else value - reference for value in history["objective"]]
        lines.append(figures.Line(method, history["cpu_seconds"], gaps, series, dash))
    name = f"{NAME}-{trials.setup}-{i}"
    floor = _FLOOR * abs(lowest) if math.isfinite(lowest) else None
    return figures.line_panel(name, f"i = {i}", lines, "CPU seconds", "objective − lowest", floor)


def _limit_words(trials: Trials, method: str, i: int) -> list[str]:
    limited, total = trials.n_limited(method, i), len(trials.of(method, i))
    if not limited:
        return []
    return ["limit" if limited == total else f"limit {limited} of {total}"]

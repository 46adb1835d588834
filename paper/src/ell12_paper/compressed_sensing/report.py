"""Compressed sensing on the page: tables beside the paper's, objective against time, and what explains them."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from ell12.wording import number, percent, scientific
from ell12_paper import figures
from ell12_paper.compressed_sensing import words
from ell12_paper.compressed_sensing.claims import (
    CONVEX,
    DEFAULT,
    OURS,
    early,
    excesses,
    is_papers,
    ratios,
    setups,
    verdicts_of,
)
from ell12_paper.compressed_sensing.study import EARLY_CHANGE, NAME, TITLE
from ell12_paper.findings import Cell, Figure, Key, Panel, Part, Section, Table, Verdict, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import summarize
from ell12_paper.tables import (
    error_words,
    limit_words,
    measured_cells,
    measured_note,
    method_table,
    printed_table,
)
from ell12_paper.trials import Trials

# What the legend says of a method, its colour and its dash; the two variants of DCA share a colour.
_STYLES = {
    OURS: (f"{OURS}, the paper's method", 1, "solid"),
    "DCA": ("DCA, its inner ADMM with our ρ", 2, "solid"),
    "SCP": ("SCP", 3, "solid"),
    "nmAPG(numerical)": ("nmAPG(numerical)", 4, "dashed"),
    CONVEX: (f"{CONVEX} on the convex l1 problem", 5, "dashed"),
    "DCA(rho=1)": ("DCA, its inner ADMM with ρ = 1", 2, "dotted"),
    DEFAULT: (f"{DEFAULT}, the default of this library", 6, "solid"),
}
_FLOOR = 1e-8  # gaps below this fraction of the objective are noise of the stopping rule


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims, setup by setup."""
    return [verdict for trials in setups(rows) for verdict in verdicts_of(trials)]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    chosen = setups(rows)
    return Section(
        name=NAME,
        title=TITLE,
        asked=words.asked(rows, chosen),
        found=(*words.closeness(chosen), *map(words.headline_ratios, chosen)),
        reasons=(*words.dca_words(chosen), *words.scp_words(chosen)),
        verdicts=tuple(verdicts(rows)),
        scale=words.scale(chosen),
        headlines=_headlines(chosen),
        parts=(*map(_part, chosen), *([] if all(map(is_papers, chosen)) else [_printed_part()])),
    )


def _part(trials: Trials) -> Part:
    text = tuple(text for text in words.readings() if text.startswith(f"“{trials.name}”"))
    tables = (
        replace(_measured_table(trials, "CPU seconds", "cpu_seconds", "cpu_seconds", 1), number="Table I"),
        replace(_measured_table(trials, "RMSE x 100", "rmse", "rmse_times_100", 2), number="Table II"),
        _objective_table(trials),
        _ratio_table(trials),
        _early_table(trials),
    )
    return Part(f"Setup “{trials.name}”", text, tables, (_figure(trials),), ({"setup": trials.name},))


def _table(trials: Trials, title: str, cell: Any, note: str, leave_out: str = "") -> Table:
    return method_table(trials, f"{title} ({trials.name})", cell, note, "i = {}".format, leave_out)


def _printed(name: str, method: str, i: int) -> list[float] | None:
    values = paper()[NAME][name].get(method)
    return values and values[i]


def _printed_part() -> Part:
    """The paper's two tables, for runs of another size."""
    tables = [
        printed_table(
            f"As the paper prints it: {title}",
            {m: {f"i = {i}": pair for i, pair in enumerate(found)} for m, found in paper()[NAME][name].items()},
            decimals,
            number,
        )
        for number, title, name, decimals in (
            ("Table I", "CPU seconds", "cpu_seconds", 1),
            ("Table II", "RMSE x 100", "rmse_times_100", 2),
        )
    ]
    return Part(
        "The paper's own numbers", ("They are of a larger problem: compare orders and ratios.",), tuple(tables)
    )


def _measured_table(trials: Trials, title: str, result: str, printed_as: str, decimals: int) -> Table:
    printed = partial(_printed, printed_as) if is_papers(trials) else None
    cells = measured_cells(trials, result, True, printed, decimals)
    return _table(trials, title, cells, measured_note(trials, printed is not None, True))


def _objective_table(trials: Trials) -> Table:
    def cell(method: str, i: int) -> Cell:
        chosen = trials.at(method, i)
        summary = chosen.summary("objective")
        if summary is None:
            return Cell("no rows")
        reached = chosen.values("stationarity").values()
        worst = scientific(max(reached)) if reached else "unknown"
        return Cell(f"{summary.mean:.6g}", (worst, *limit_words(chosen)))

    note = (
        f"Mean objective; below it the largest stationarity over the repeats. {CONVEX} minimises another "
        "objective (l1), and its stationarity is that of its own problem."
    )
    return _table(trials, "Objective and stationarity reached", cell, note)


def _ratio_table(trials: Trials) -> Table:
    found = {method: ratios(trials, method) for method in trials.methods}

    def cell(method: str, i: int) -> Cell:
        ours, theirs = (_printed("cpu_seconds", m, i) for m in (OURS, method))
        if not ours or not theirs or not is_papers(trials):
            return Cell(found[method][i])
        return Cell(found[method][i], (f"paper {theirs[0] / ours[0]:.1f}",))

    note = "Ratios of means over the repeats of both; ≥ and ≤ where one of the two ended at its limit."
    return _table(trials, f"CPU time as a multiple of {OURS}", cell, note, leave_out=OURS)


def _early_table(trials: Trials) -> Table:
    stopped = early(trials)

    def cell(method: str, i: int) -> Cell:
        chosen = stopped.at(method, i)
        if not chosen.values("rmse"):
            return Cell("never met" if trials.at(method, i).rows else "no rows")
        printed = _printed("rmse_times_100", method, i) if is_papers(trials) else None
        lines = [f"paper {printed[0]:.2f}"] if printed else []
        lowest = {repeat: _lowest(trials, i, repeat) for repeat in chosen.values("rmse")}
        excess = excesses(chosen.values("objective"), lowest)
        if excess and method != CONVEX:
            lines.append(f"objective {percent(summarize(excess.values()).mean)}")
        lines.append(f"{number(chosen.mean('cpu_seconds'))} s")
        return Cell(error_words(chosen, "rmse", deviation=False), tuple(lines))

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
    problem = trials.where(i=i, repeat=repeat)
    return [row for method in trials.methods for row in problem.where(method=method).rows]


def _best_seen(row: Row) -> float:
    """The lowest objective of a run; rows hold None where it was not finite."""
    seen = (row["results"]["objective"], *row["results"]["history"]["objective"])
    return min((value for value in seen if value is not None), default=math.nan)


def _figure(trials: Trials) -> Figure:
    repeat = min(trials.seen("repeat"))
    order = sorted(trials.places, key=lambda i: (i % 2, i))  # the paper's three first, then those it leaves out
    panels = tuple(panel for i in order if (panel := _panel(trials, i, repeat)))
    caption = (
        "Objective minus the lowest objective that any l1-2 method reached on the same problem (repeat "
        f"{repeat}), against CPU seconds. {CONVEX} solves another problem and is drawn with the gap to its own "
        "lowest value. Both axes are logarithmic, so a curve ends where its gap is zero."
    )
    return Figure(f"Objective against CPU time ({trials.name})", panels, caption, number="Figure 2")


def _headlines(chosen: Sequence[Trials]) -> tuple[Figure, ...]:
    """Objective against time at the smallest strength, and the errors of l1-2 and l1."""
    trials, repeat = chosen[-1], min(chosen[-1].seen("repeat"))
    last, found = trials.places[-1], []
    panel = _panel(trials, last, repeat, "first-", figures.FIRST_SIZE)
    if panel:
        title, caption = (
            f"Objective and CPU time, {trials.name}, i = {last}",
            "How far the objective is from the lowest.",
        )
        found.append(Figure(title, (panel,), caption, number="Figure 2"))
    lines = []
    dashes = dict(zip(("solid", "dashed", "dotted"), chosen, strict=False))
    for (series, method), (dash, shown) in product(((1, OURS), (5, CONVEX)), dashes.items()):
        errors = [100 * shown.at(method, i).mean("rmse") for i in shown.places]
        label = f"{'l1-2' if method == OURS else 'l1'}, {shown.name}"
        lines.append(figures.Line(Key(label, series, dash), shown.places, errors, marker=True))
    name, strength = f"{NAME}-first-rmse", "i (strength 0.01 · 0.25ⁱ)"
    panel = figures.line_panel(
        name, "Recovery", lines, strength, "RMSE x 100", logarithmic="y", size=figures.FIRST_SIZE
    )
    caption = "Mean error of the recovered vector over the repeats: l1-2 against l1."
    return (*found, Figure("Recovery by l1-2 and by l1", (panel,), caption, number="Table II"))


def _panel(
    trials: Trials, i: int, repeat: int, prefix: str = "", size: tuple[float, float] = figures.SIZE
) -> Panel | None:
    rows, lowest, lines = _rows_of_problem(trials, i, repeat), _lowest(trials, i, repeat), []
    if not rows:
        return None
    for row in rows:
        method, history = row["settings"]["method"], row["results"]["history"]
        reference = _best_seen(row) if method == CONVEX else lowest
        gaps = [math.nan if value is None else value - reference for value in history["objective"]]
        key = Key(*_STYLES.get(method, (method, 7, "solid")))
        lines.append(figures.Line(key, history["cpu_seconds"], gaps))
    name = f"{NAME}-{prefix}{trials.name}-{i}"
    floor = _FLOOR * abs(lowest) if math.isfinite(lowest) else None
    return figures.line_panel(name, f"i = {i}", lines, "CPU seconds", "objective − lowest", floor, size=size)

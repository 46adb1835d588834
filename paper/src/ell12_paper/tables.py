"""Tables that several experiments show: a row for each method, a column for each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ell12.wording import duration, plus_minus, span
from ell12_paper.claims import image_name
from ell12_paper.findings import Cell, Table
from ell12_paper.rows import Row
from ell12_paper.statistics import comparable, logarithms
from ell12_paper.trials import Trials

# What the paper prints of a method at a place, mean and deviation; None where it prints nothing.
Printed = Callable[[str, Any], Sequence[float] | None]


def measured_note(trials: Trials, beside_paper: bool, finished_only: bool) -> str:
    """What the cells of `measured_cells` hold; a single repeat has no deviation and allows no test."""
    counts: dict[str, list[str]] = {}
    for method in trials.methods:
        found = [n for place in trials.places if (n := trials.at(method, place).n_repeats)]
        counts.setdefault(span(found) if found else "0", []).append(method)
    most = trials.n_repeats
    fewer = "; ".join(f"{', '.join(methods)}: {n}" for n, methods in counts.items() if n != str(most))
    note = f"Mean ± standard deviation over {most} repeats{f' ({fewer})' if fewer else ''}."
    if most < 2:
        note = "One repeat: no deviation, no test, and nothing in bold."
    if beside_paper:
        note += " Below it what the paper prints; methods without that are our additions."
    if most < 2:
        return note
    among = ", among those that met the rule" if finished_only else ""
    return (
        f"{note} Bold: the lowest, and those that the paired t-test at 95 % does not tell from it{among}. Tested "
        "are the logarithms, since a hard problem slows every method and raises every error by a factor."
    )


def repeats_words(trials: Trials) -> str:
    """What a number over the repeats is: one value, or a mean."""
    return "One repeat" if trials.n_repeats < 2 else f"Means over {trials.n_repeats} repeats"


def printed_table(
    title: str, values: Mapping[str, Mapping[str, Sequence[float]]], decimals: int, number: str
) -> Table:
    """Means and deviations as the paper prints them, by method and column."""
    columns = list(dict.fromkeys(column for found in values.values() for column in found))

    def cell(found: Mapping[str, Sequence[float]], column: str) -> Cell:
        return Cell(plus_minus(found[column][0], found[column][1], decimals))

    table = grid_table(title, "method", values, {column: column for column in columns}, cell, "")
    return replace(table, number=number)


def grid_table(
    title: str,
    corner: str,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any],
    cell: Callable[[Any, Any], Cell],
    note: str,
) -> Table:
    """A table with a cell for every row and column; the keys of both are their labels."""
    body = tuple((label, tuple(cell(row, place) for place in columns.values())) for label, row in rows.items())
    return Table(title, (corner, *columns), body, note)


def method_table(
    trials: Trials,
    title: str,
    cell: Callable[[str, Any], Cell],
    note: str,
    head: Callable[[Any], str] = image_name,
    leave_out: str = "",
) -> Table:
    """A cell for every method and place; ``head`` names a place."""
    methods = {method: method for method in trials.methods if method != leave_out}
    return grid_table(title, "method", methods, {head(place): place for place in trials.places}, cell, note)


def measured_cells(
    trials: Trials, result: str, finished_only: bool, printed: Printed | None = None, decimals: int = 2
) -> Callable[[str, Any], Cell]:
    """Mean and deviation of a time or an error, the best in bold; below it what is printed of the same data."""
    is_time = result == "cpu_seconds"
    best = {place: _best(trials, place, result, finished_only) for place in trials.places}

    def cell(method: str, place: Any) -> Cell:
        chosen, theirs = trials.at(method, place), printed and printed(method, place)
        if chosen.summary(result) is None:
            return Cell("no rows")
        text = time_words(chosen) if is_time else error_words(chosen, result)
        lines = [f"paper {plus_minus(theirs[0], theirs[1], decimals)}"] if theirs else []
        return Cell(text, (*lines, *limit_words(chosen)), method in best[place])

    return cell


def _best(trials: Trials, place: Any, result: str, finished_only: bool) -> set[str]:
    """The methods that are best at a place or cannot be told from the best, by the ratio in each repeat."""
    chosen = {method: trials.at(method, place) for method in trials.methods}
    compared = {method: found for method, found in chosen.items() if not (finished_only and found.n_limited)}
    return comparable({method: logarithms(found.values(result)) for method, found in compared.items()})


def time_words(trials: Trials) -> str:
    """Mean and deviation of the CPU time, as a bound where a run ended at its limit."""
    summary = trials.summary("cpu_seconds")
    if summary is None:
        return "no rows"
    return ("≥ " if trials.n_limited else "") + plus_minus(summary.mean, summary.deviation)


def error_words(trials: Trials, result: str, deviation: bool = True) -> str:
    """Mean and deviation of an error times 100."""
    summary = trials.summary(result)
    if summary is None:
        return "no rows"
    spread = None if summary.deviation is None or not deviation else 100 * summary.deviation
    return plus_minus(100 * summary.mean, spread, 2)


def said_error(trials: Trials, result: str) -> str:
    """Mean of an error times 100 inside a sentence, with the limit behind it where one ended a run."""
    return " ".join((error_words(trials, result, deviation=False), *limit_words(trials)))


def limit_words(trials: Trials) -> tuple[str, ...]:
    """How many of the runs ended at which limit, if any did."""
    limited = [row for row in trials.rows if row["results"]["is_limited"]]
    if not limited:
        return ()
    count = "" if len(limited) == len(trials.rows) else f"{len(limited)} of {len(trials.rows)} "
    return (f"{count}{' and '.join(dict.fromkeys(map(_limit, limited)))}",)


def _limit(row: Row) -> str:
    """What ended a run before its rule was met."""
    settings, results = row["settings"], row["results"]
    if results["status"] == "NOT_FINITE":
        return "with values that are not finite"
    iterations, seconds = settings.get("max_iter"), settings.get("max_cpu_seconds")
    if iterations and (results["status"] == "MAX_ITER" or results["n_iter"] >= iterations):
        return f"at the limit of {iterations:,} iterations"
    return f"at the limit of {duration(seconds)} of CPU time" if seconds else "at a limit"

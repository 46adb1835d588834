"""Tables that several experiments show: a row for each method, a column for each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ell12.experiments.claims import image_name
from ell12.experiments.findings import Cell, Table
from ell12.experiments.rows import Row
from ell12.experiments.statistics import comparable, logarithms
from ell12.experiments.trials import Trials
from ell12.wording import duration, plus_minus

# What the paper prints of a method at a place, mean and deviation; None where it prints nothing.
Printed = Callable[[str, Any], Sequence[float] | None]

MEASURED = (
    "Mean ± standard deviation; below it what the paper prints; methods without that are our additions. Bold: "
    "the best and those that the paired t-test at 95 % over the repeats does not tell apart from it"
)


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
    trials: Trials, result: str, printed: Printed, decimals: int, finished_only: bool
) -> Callable[[str, Any], Cell]:
    """Mean and deviation of a time or an error, the printed value below, the best in bold."""
    is_time = result == "cpu_seconds"
    best = {place: _best(trials, place, result, finished_only) for place in trials.places}

    def cell(method: str, place: Any) -> Cell:
        chosen, theirs = trials.at(method, place), printed(method, place)
        if chosen.summary(result) is None:
            return Cell("no rows")
        text = time_words(chosen) if is_time else error_words(chosen, result)
        lines = [f"paper {plus_minus(theirs[0], theirs[1], decimals)}"] if theirs else []
        return Cell(text, (*lines, *limit_words(chosen)), method in best[place])

    return cell


def _best(trials: Trials, place: Any, result: str, finished_only: bool) -> set[str]:
    """The methods that are best at a place or cannot be told from the best; times are tested by logarithms."""
    chosen = {method: trials.at(method, place) for method in trials.methods}
    compared = {method: found for method, found in chosen.items() if not (finished_only and found.n_limited)}
    scale = logarithms if result == "cpu_seconds" else dict
    return comparable({method: scale(found.values(result)) for method, found in compared.items()})


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
    iterations, seconds = settings.get("max_iter"), settings.get("max_seconds")
    if iterations and (results["status"] == "MAX_ITER" or results["n_iter"] >= iterations):
        return f"at the limit of {iterations:,} iterations"
    return f"at the limit of {duration(seconds)}" if seconds else "at a limit"

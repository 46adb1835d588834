"""The tables of `rivals.py`, and the summary of them that the study of completion reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

import study
from rivals_methods import METHODS

BASELINE = "nuclear norm"
CENTERS = {None: "as they are", "biases": "less biases"}


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Errors by what is taken off, differences to the nuclear norm, then what was chosen and how long it took."""
    done = [row for row in rows if "RMSE" in row]
    seeds = len({row["seed"] for row in done})
    yield f"## RMSE on the unknown half, {seeds} split{'' if seeds == 1 else 's'}: mean ± standard deviation"
    header = [
        "method",
        *(f"ratings {words}" for words in CENTERS.values()),
        *(f"MAE, {w}" for w in CENTERS.values()),
    ]
    yield study.table(header, _by_group(done, _error_cells))
    yield "`L12Imputer()` chooses what to take off. cmfrec: without biases, and with its own."
    yield f"## RMSE less that of the {BASELINE} on the same split and with the same taken off"
    header = ["method", *(f"ratings {words}" for words in CENTERS.values())]
    yield study.table(header, _by_group(done, _difference_cells))
    yield "Mean ± standard deviation of the paired differences, how often it is lower, the paired t-test."
    yield "## What was chosen, and the time it took"
    yield study.table(
        ["method", "taken off", "rank of the answer", "chosen", "last fit, CPU s", "with the choice, CPU s"],
        [_choice_cells(done, *place) for place in _places(done)],
    )
    machines = sorted({row["processor"] for row in done})
    yield _times_words(done, machines)
    yield _edge_words(done)
    yield from sorted({f"{row['method']}: {row['note']}" for row in rows if "note" in row})


def _places(rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    seen = {(row["method"], row["center"]) for row in rows}
    return [(method.name, c) for method in METHODS.values() for c in method.centers if (method.name, c) in seen]


def _own(rows: list[dict[str, Any]], method: str, center: str | None) -> dict[int, dict[str, Any]]:
    """The rows of a method by seed; what chooses or is its offsets itself belongs to the column of biases."""
    centers = (center, "auto", "mean") if center == "biases" else (center,)
    return {row["seed"]: row for row in rows if row["method"] == method and row["center"] in centers}


def _by_group(rows: list[dict[str, Any]], cells: Callable[..., list[str]]) -> Iterator[list[str]]:
    names = list(dict.fromkeys(name for name, _ in _places(rows)))
    for group in dict.fromkeys(method.group for method in METHODS.values()):
        lines = [[name, *cells(rows, name)] for name in names if METHODS[name].group == group]
        if lines:
            yield [f"**{group}**", *[""] * (len(lines[0]) - 1)]
            yield from lines


def _error_cells(rows: list[dict[str, Any]], method: str) -> list[str]:
    cells = []
    for measured in ("RMSE", "MAE"):
        for center in CENTERS:
            values = [row[measured] for row in _own(rows, method, center).values()]
            cells.append(
                f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else _only(values)
            )
    return cells


def _only(values: list[float]) -> str:
    return f"{values[0]:.4f}" if values else ""


def _difference_cells(rows: list[dict[str, Any]], method: str) -> list[str]:
    cells = []
    for center in CENTERS:
        mine, base = (
            {seed: row["RMSE"] for seed, row in _own(rows, name, center).items()} for name in (method, BASELINE)
        )
        shared = sorted(mine.keys() & base.keys())
        if method == BASELINE or len(shared) < 2:
            cells.append("")
            continue
        gaps = [mine[seed] - base[seed] for seed in shared]
        lower = sum(gap < 0 for gap in gaps)
        p = ttest_rel(*([values[seed] for seed in shared] for values in (mine, base))).pvalue
        cells.append(
            f"{np.mean(gaps):+.4f} ± {np.std(gaps, ddof=1):.4f}, lower on {lower} of {len(gaps)}, p {p:.1g}"
        )
    return cells


def _choice_cells(rows: list[dict[str, Any]], method: str, center: str | None) -> list[str]:
    own = [row for row in rows if (row["method"], row["center"]) == (method, center)]
    ranks = sorted(row["rank"] for row in own)
    chosen = "; ".join(
        f"{key} {_span([row['chosen'][key] for row in own if key in row['chosen']])}"
        for key in dict.fromkeys(key for row in own for key in row["chosen"])
    )
    times = [f"{np.median([row[key] for row in own]):.2g}" for key in ("seconds", "all_seconds")]
    return [
        method,
        CENTERS.get(center, "chosen" if center == "auto" else str(center)),
        _span(ranks),
        chosen,
        *times,
    ]


def _span(values: list[Any]) -> str:
    if not values or any(isinstance(value, str | bool | None) for value in values):
        return ", ".join(dict.fromkeys(map(str, values)))
    low, high = min(values), max(values)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _times_words(rows: list[dict[str, Any]], machines: list[str]) -> str:
    words = (
        "Times are medians of processor time over the splits, one thread each. AIS-Impute and FaNCL choose by our "
        "engine of the same objective, so that only their last fit is their own."
    )
    for machine in machines if len(machines) > 1 else ():
        names = dict.fromkeys(row["method"] for row in rows if row["processor"] == machine)
        words += f" On {machine}: {'; '.join(names)}."
    return words + (" Times of different machines do not compare." if len(machines) > 1 else "")


def _edge_words(rows: list[dict[str, Any]]) -> str:
    found: dict[str, int] = {}
    for row in rows:
        for key in row["edges"]:
            place = f"{row['method']}, {CENTERS.get(row['center'], row['center'])}: {key}"
            found[place] = found.get(place, 0) + 1
    if not found:
        return "No choice lies at an end of its grid beyond which there may be something better."
    return "Choices at an end of their grid: " + "; ".join(f"{k} (splits: {v})" for k, v in found.items()) + "."


def summary(rows: list[dict[str, Any]], command: str) -> dict[str, Any]:
    """Mean RMSE of the penalties by one engine, and of a few to compare with, by what is taken off."""
    done = [row for row in rows if "RMSE" in row]
    found: dict[str, Any] = {}
    for center, words in CENTERS.items():
        found[words] = {}
        for name in METHODS:
            values = [row["RMSE"] for row in _own(done, name, center).values()]
            if values:
                found[words][name] = round(float(np.mean(values)), 4)
    splits = len({row["seed"] for row in done})
    return {"command": command, "date": f"{datetime.now(UTC):%Y-%m-%d}", "splits": splits, "RMSE": found}

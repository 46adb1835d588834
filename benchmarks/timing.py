"""What every benchmark shares: one row of a table, and fair timing of several calls in one process."""

from __future__ import annotations

import importlib
import math
import statistics
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

SHORTEST_SAMPLE = 1e-3  # seconds; shorter calls are repeated within a sample, or the clock would be measured
# The process's time on its one processor, all its threads together. On a quiet machine it is the wall time; on a
# busy one wall time doubles long calls and spares those that fit between two interruptions, such as a copy.
CLOCK = time.process_time
FEWEST_ROUNDS, MOST_ROUNDS = 5, 51
LONG_CALL = 0.1  # seconds; a longer call warms up by itself


@dataclass(frozen=True)
class Row:
    """One line of a table; None is what was not measured, and then the note says why."""

    problem: str
    method: str
    version: str
    seconds: float | None = None
    multiple: float | None = None  # of the time of the benchmark's BASELINE
    objective: float | None = None
    note: str = ""
    accuracy: float | None = None  # stationarity or duality gap, where a benchmark measures it
    measure: str = ""  # which of them


def median_seconds(calls: Mapping[str, Callable[[], Any]], budget: float = 3.0) -> dict[str, float]:
    """Return the median processor time of each call, in seconds.

    A round takes one sample of every call, so that slow moments of the machine fall on all alike. Calls that
    are not long follow one that is not timed, so that none pays for what its neighbour left in the cache. About
    `budget` seconds in all, if five rounds fit in.
    """
    first = {name: min(timeit.repeat(call, timer=CLOCK, number=1, repeat=3)) for name, call in calls.items()}
    number = {name: max(1, math.ceil(SHORTEST_SAMPLE / seconds)) for name, seconds in first.items()}
    one_round = sum((number[name] + (first[name] < LONG_CALL)) * first[name] for name in calls)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(min(max(round(budget / one_round), FEWEST_ROUNDS), MOST_ROUNDS)):
        for name, call in calls.items():
            if first[name] < LONG_CALL:
                call()
            samples[name].append(timeit.timeit(call, timer=CLOCK, number=number[name]) / number[name])
    return {name: statistics.median(times) for name, times in samples.items()}


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def load(module: str) -> tuple[Any, str]:
    """Return a peer's module, or None and the reason why there is none."""
    try:
        return importlib.import_module(module), ""
    except Exception as error:  # a peer may fail in any way; the table says how, and the rest goes on
        return None, f"not measured: {type(error).__name__}: {error}"

"""The proximal step alone: closed form against the numerical method, from a hundred entries to ten million."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ell12.penalties import L12
from ell12.prox import prox_l12, prox_l12_iterative

NAME = "prox"

LARGEST_POWER = 7
QUICK_POWER = {"t = 1": 7, "t near max|z|": 6}  # the numerical method takes long in the second case
N_REPEATS = {"closed-form": 5, "numerical": 3}
METHODS = tuple(N_REPEATS)
# The closed form is timed between the powers of ten too: how its time grows is read off where the memory costs the
# same, which may be a range of a decade.
BETWEEN = {"closed-form": (30_000, 300_000, 3_000_000), "numerical": ()}
CASES = ("t = 1", "t near max|z|")


def trials(preset: str, seed: int) -> list[dict[str, Any]]:
    """The settings of every trial."""
    largest = QUICK_POWER if preset == "quick" else dict.fromkeys(CASES, LARGEST_POWER)
    return [
        {"d": d, "method": method, "case": case, "threshold": threshold(case, d)}
        | {"repeat": repeat, "seed": seed + repeat}
        for case, method in product(CASES, METHODS)
        for d in sorted((*(10**power for power in range(2, largest[case] + 1)), *BETWEEN[method]))
        for repeat in range(N_REPEATS[method])
        if d <= 10 ** largest[case]
    ]


def threshold(case: str, d: int) -> float:
    """1, or a value that about ten of d normal entries exceed. With few left, the numerical method is slow."""
    return 1.0 if case == "t = 1" else round(statistics.NormalDist().inv_cdf(1 - 5 / d), 4)


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Time one method on one vector z of independent N(0, 1) entries, and a copy of z for comparison."""
    t = settings["threshold"]
    z = np.random.default_rng(settings["seed"]).standard_normal(settings["d"])
    solve: Callable[[], tuple[Any, int]] = {
        "closed-form": lambda: (prox_l12(z, t), 1),
        "numerical": lambda: prox_l12_iterative(z, t),
    }[settings["method"]]
    x, n_iter = solve()
    value = 0.5 * float(np.sum((x - z) ** 2)) + L12(t).value(x)
    found = {"n_iter": n_iter, "n_nonzero": int(np.count_nonzero(x)), "value": value}
    return found | {"seconds": _median_seconds(solve), "copy_seconds": _median_seconds(z.copy)}


def _median_seconds(call: Callable[[], Any], budget: float = 0.1, batches: int = 9) -> float:
    """The median over batches of calls of the time of one call; of one call alone where that takes the budget."""
    first = _seconds(call, 1)
    n_calls = max(1, int(1e-3 / first))
    times = [first] if first >= budget else []
    while len(times) < batches and sum(times) * n_calls < budget:
        times.append(_seconds(call, n_calls))
    return statistics.median(times)


def _seconds(call: Callable[[], Any], n_calls: int) -> float:
    """CPU seconds of one call: other work on the machine does not count."""
    return max(timeit.timeit(call, timer=time.process_time, number=n_calls), 1e-9) / n_calls

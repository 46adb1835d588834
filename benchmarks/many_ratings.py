"""Ratings by the million through the plain call: time, memory, what was chosen, and the error on others.

`complete_matrix(X)` with nothing said, of ratings by seed: 1e6 of 6,040 x 3,706 and 1e7 of 100,000 x 10,000. A
fiftieth of each is kept to judge by, beside biases alone. Seconds are of the processor, on one thread, in a
process of its own; its peak memory is what the operating system says, the data and Python included.
"""

from __future__ import annotations

import argparse
import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import study
from timing import CLOCK

SIZES = {"1e6": (6040, 3706, 1_000_000), "1e7": (100_000, 10_000, 10_000_000)}


def measure(name: str) -> dict[str, Any]:
    from ell12 import Observed, complete_matrix
    from ell12.completion.offsets import fit_offsets
    from ell12.datasets import synthetic_ratings

    users, items, count = SIZES[name]
    drawn = synthetic_ratings(1, users, items, count)
    every = Observed(drawn.rows, drawn.columns, drawn.values, drawn.shape)
    train, test = every.split(0.02, 7)
    begin = CLOCK()
    found = complete_matrix(train)
    seconds = CLOCK() - begin
    guesses = {
        "RMSE": found.predict(test.rows, test.columns),
        "RMSE, biases": fit_offsets(train, "biases").entries(test.rows, test.columns),
    }
    low, high = float(train.values.min()), float(train.values.max())
    errors = {
        key: float(np.sqrt(np.mean((np.clip(g, low, high) - test.values) ** 2))) for key, g in guesses.items()
    }
    return {
        "ratings": f"{name}: {users} x {items}",
        "seconds": seconds,
        "peak, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "status": found.status.name,
        "sweeps": found.n_iter,
        "rank": found.x.rank,
        "l2_weight": found.l2_weight,
        "taken off": found.center or "nothing",
        **errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="*", choices=list(SIZES), default=list(SIZES))
    names = parser.parse_args().sizes
    rows = []
    for name in names:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            rows.append(other.submit(measure, name).result())
        print(rows[-1], flush=True)
    study.write("many_ratings", __doc__ or "", {}, rows, [table(rows)])


def table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "| --- |" + " ---: |" * (len(names) - 1)]
    lines += ["| " + " | ".join(_text(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()

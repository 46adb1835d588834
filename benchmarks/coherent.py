"""Noiseless signals from coherent columns by the plain call, beside exact linear programs.

A_ij = cos(2 pi w_i j / F) / 10 with w_i uniform, 100 x 1000, or 100 x 1500 for F = 20; k = 10, 15, ..., 35
Gaussian entries at least 2 F apart (up to 25 for F = 20); three seeds, on which no option of a solver was chosen.
A cell is the number of signals whose relative error is below 1e-3. Seconds are medians of processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import study
from ell12 import L1, L12, SquaredLoss, minimize, recover_sparse
from recovery import STEPS, exact, program, tilted

ALPHA, TOLERANCE, SEEDS = 1e-6, 1e-3, range(3)
CASES = {5: (1000, range(10, 40, 5)), 10: (1000, range(10, 40, 5)), 20: (1500, range(10, 30, 5))}


def draw(F: int, size: int, k: int, seed: int) -> tuple[Any, Any]:
    """A matrix and a sparse vector."""
    random, gap = np.random.default_rng(seed), 2 * F
    A = np.cos(2 * np.pi * random.random((100, 1)) * np.arange(1, size + 1) / F) / 10
    x, room = np.zeros(size), size - (k - 1) * (gap - 1)
    places = np.sort(random.permutation(room)[:k]) + (gap - 1) * np.arange(k)
    x[places] = random.standard_normal(k)
    return A, x


def rows() -> list[dict[str, Any]]:
    """One for each problem and method."""
    found = []
    for F, (size, counts) in CASES.items():
        for k, seed in ((k, seed) for k in counts for seed in SEEDS):
            A, x = draw(F, size, k, seed)
            for method, (z, seconds, status) in solutions(A, A @ x).items():
                error = float(np.linalg.norm(z - x) / np.linalg.norm(x))
                row = {"F": F, "k": k, "seed": seed, "method": method, "error": error}
                found.append(row | {"seconds": seconds, "status": status})
            print(F, k, seed, flush=True)
    return found


def solutions(A: Any, b: Any) -> dict[str, tuple[Any, float, str]]:
    """What every method finds, how long it takes, and how it ended."""
    ones, found = np.ones(A.shape[1]), {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = run()
        x, status = (result.x, result.status.name) if hasattr(result, "status") else (result, "")
        found[name] = x, time.process_time() - begin, status
        return x

    l1 = timed("l1, one linear program", lambda: program(A, b, ones, ones))
    timed("DCA by linear programs, from there", lambda: exact(A, b, l1, tilted, STEPS))
    timed("minimize, L1(1e-6)", lambda: minimize(SquaredLoss(A, b), L1(ALPHA)))
    timed("minimize, L12(1e-6)", lambda: minimize(SquaredLoss(A, b), L12(ALPHA)))
    timed("recover_sparse", lambda: recover_sparse(A, b, return_result=True).x)
    return found


def table(found: list[dict[str, Any]]) -> str:
    lines = []
    for method in dict.fromkeys(row["method"] for row in found):
        cells = []
        for F in CASES:
            own = [row for row in found if (row["method"], row["F"]) == (method, F)]
            good = sum(row["error"] < TOLERANCE for row in own)
            cells += [f"{good}/{len(own)}", f"{np.median([row['seconds'] for row in own]):.2f}"]
        ends = {row["status"] for row in found if row["method"] == method} - {""}
        lines.append([method, *cells, ", ".join(sorted(ends))])
    header = [word for F in CASES for word in (f"F = {F}", "seconds")]
    return study.table(["method", *header, "ended"], lines)


if __name__ == "__main__":
    results = rows()
    study.write("coherent", __doc__ or "", {"alpha": ALPHA, "tolerance": TOLERANCE}, results, [table(results)])

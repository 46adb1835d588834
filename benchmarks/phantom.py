"""The head phantom from radial lines without noise: the plain call beside a careful one, for three weights.

256 x 256 pixels, Fourier coefficients on equally spaced lines, ``reconstruct_mri(data, mask, noise=0.0)`` with
``real=True`` or, where no value may be below zero, ``bounds=(0, None)``. The careful call gives the solver far
more steps: ``TotalVariationDCA(convex_start=True, inner_tol=1e-7, inner_max_iter=200)``, 8 convex problems, none
ended by tol. A row is one number of lines, weight, sign and call; errors are relative. Found is one below 1e-3.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from itertools import product
from multiprocessing import Pool
from typing import Any

import numpy as np

import ell12
from ell12 import datasets
from study import table, write

SIDE, LINES, WEIGHTS, FOUND = 256, range(9, 16), (0.0, 0.5, 1.0), 1e-3
SIGNS: dict[str, dict[str, Any]] = {"any sign": {"real": True}, "x >= 0": {"bounds": (0, None)}}
CAREFUL = ell12.restoration.TotalVariationDCA(convex_start=True, inner_tol=1e-7, inner_max_iter=200)
CALLS: dict[str, dict[str, Any]] = {"plain": {}, "careful": {"solver": CAREFUL, "tol": 0.0, "max_iter": 8}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    with Pool(parser.parse_args().jobs) as pool:
        rows = pool.map(row_of, tasks(), chunksize=1)
    write("phantom", __doc__, {"side": SIDE, "found": FOUND}, rows, tables(rows))


def tasks() -> list[tuple[int, float, str, str]]:
    """Lines, weight, sign and call, the long ones first."""
    return list(product(LINES, WEIGHTS, SIGNS, reversed(CALLS)))


def row_of(task: tuple[int, float, str, str]) -> dict[str, Any]:
    """What one call finds, and how long it takes."""
    lines, weight, sign, call = task
    clean, mask = datasets.phantom(SIDE), datasets.radial_lines(SIDE, lines)
    options = SIGNS[sign] | CALLS[call] | {"l2_weight": weight, "return_result": True}
    begin = time.perf_counter()
    found = ell12.reconstruct_mri(np.fft.fft2(clean, norm="ortho"), mask, sigma=0.0, **options)
    seconds = time.perf_counter() - begin
    error = float(np.linalg.norm(found.image - clean) / np.linalg.norm(clean))
    print(*task, f"{error:.1e} {seconds:.0f} s", flush=True)
    row = {"lines": lines, "l2_weight": weight, "sign": sign, "call": call, "error": error, "seconds": seconds}
    return row | {"status": found.runs[0].status.name}


def tables(rows: list[dict[str, Any]]) -> Iterable[str]:
    """The errors, and the fewest lines from which on the phantom is found."""
    header = ["call", "fewest lines", *(f"{lines} lines" for lines in LINES), "seconds"]
    lines = []
    for sign, weight, call in product(SIGNS, WEIGHTS, CALLS):
        key = {"sign": sign, "l2_weight": weight, "call": call}
        here = sorted((r for r in rows if key.items() <= r.items()), key=lambda r: r["lines"])
        missed = [row["lines"] for row in here if row["error"] >= FOUND]
        fewest = max(missed, default=min(LINES) - 1) + 1
        errors = [f"{row['error']:.0e}" for row in here]
        seconds = np.median([row["seconds"] for row in here])
        words = str(fewest) if fewest <= max(LINES) else f"more than {max(LINES)}"
        lines.append([f"{sign}, l2_weight {weight:g}, {call}", words, *errors, f"{seconds:.0f}"])
    yield "Relative errors, the fewest lines from which on all are below 1e-3, and the median of the seconds:"
    yield table(header, lines)


if __name__ == "__main__":
    main()

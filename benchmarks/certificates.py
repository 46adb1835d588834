"""Which solutions are proved to be global minima: `python benchmarks/certificates.py [--seconds 20] [--seeds 3]`.

Squared loss with l1-2 on random columns with k nonzero entries and 1 % of noise: Gaussian columns, the paper's
cosines (one draw per entry), and oversampled cosines (one draw per row, divided by F: neighbours are alike).
alpha is a part of the largest entry of A'b. Of each problem: whether `certify` proves a relative gap of 1e-6 in so
many seconds, the boxes it took, and whether the plain call and random restarts are within 1e-6 of the best value
known.

Writes results/certificates.json, a row per problem, and results/certificates.md, a row per kind. Time is processor
time. `--brute 5000` compares bounds with all stationary points of as many small problems instead.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ell12
from ell12.solvers import Restarts

RESULTS = Path(__file__).parent / "results"
SIZES = {"gaussian": (64, 256), "paper": (64, 256), "F = 5": (64, 256), "F = 10": (64, 256), "F = 20": (64, 256)}
LARGE = (
    ("gaussian", 200, 1000, 20),
    ("paper", 200, 1000, 20),
    ("F = 5", 200, 1000, 10),
    ("paper", 500, 2000, 100),
)


def columns(kind: str, m: int, n: int, random: np.random.Generator) -> np.ndarray:
    """Columns of length 1."""
    if kind == "gaussian":
        A = random.standard_normal((m, n))
    elif kind == "paper":
        A = np.cos(2 * np.pi / 20 * np.arange(1, n + 1) * random.random((m, n)))
    else:
        A = np.cos(2 * np.pi * random.random((m, 1)) * np.arange(1, n + 1) / float(kind.split("=")[1]))
    return A / np.linalg.norm(A, axis=0)


def problem(kind: str, m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    A, x = columns(kind, m, n, random), np.zeros(n)
    x[random.permutation(n)[:k]] = random.standard_normal(k)
    b = A @ x
    return A, b + 0.01 * np.linalg.norm(b) / np.sqrt(m) * random.standard_normal(m)


def measured(kind: str, m: int, n: int, k: int, part: float, weight: float, seed: int, seconds: float) -> dict:
    """One problem, solved by the plain call, by restarts, and with a certificate."""
    A, b = problem(kind, m, n, k, seed)
    loss, penalty = ell12.SquaredLoss(A, b), ell12.L12(part * np.abs(A.T @ b).max(), weight)
    plain = ell12.minimize(loss, penalty, tol=1e-7)
    begin = time.process_time()
    again = ell12.minimize(loss, penalty, solver=Restarts(), tol=1e-7)
    restarts = time.process_time() - begin
    begin = time.process_time()
    found = ell12.certify(loss, penalty, plain.x, max_seconds=seconds)
    spent, best = time.process_time() - begin, min(found.objective, plain.objective, again.objective)
    return {
        "kind": kind,
        "m": m,
        "n": n,
        "k": k,
        "part": part,
        "l2_weight": weight,
        "seed": seed,
        "proved": found.proved,
        "gap": found.gap,
        "nodes": found.nodes,
        "seconds": spent,
        "restart_seconds": restarts,
        "plain_above": plain.objective / best - 1,
        "restarts_above": again.objective / best - 1,
    }


def cases(seeds: int) -> Iterator[tuple]:
    for kind, k, part, weight in itertools.product(SIZES, (5, 10), (0.1, 0.03), (1.0, 0.5)):
        yield from ((kind, *SIZES[kind], k, part, weight, seed) for seed in range(seeds))
    for kind, m, n, k in LARGE:
        yield kind, m, n, k, 0.1, 1.0, 0


def page(rows: list[dict], head: str) -> str:
    """A row per kind of problem."""
    lines = [
        head,
        "",
        "| problem | proved | median, most boxes | median, most seconds | plain call global | restarts global |",
    ]
    lines.append("| --- | --- | --- | --- | --- | --- |")

    def key(row: dict) -> str:
        return f"{row['kind']}, {row['m']} x {row['n']}, {row['k']} nonzero, l2_weight {row['l2_weight']:g}"

    for name in dict.fromkeys(map(key, rows)):
        own = [row for row in rows if key(row) == name]
        numbers = [[row[field] for row in own] for field in ("nodes", "seconds")]
        counts = [
            f"{sum(row[field] <= 1e-6 for row in own)} of {len(own)}"
            for field in ("plain_above", "restarts_above")
        ]
        nodes, spent = numbers
        cells = [
            name,
            f"{sum(row['proved'] for row in own)} of {len(own)}",
            f"{statistics.median(nodes):g}, {max(nodes)}",
            f"{statistics.median(spent):.2f}, {max(spent):.1f}",
            *counts,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def stationary_values(A: np.ndarray, b: np.ndarray, alpha: float, weight: float) -> Iterator[float]:
    """The objective at every stationary point, support by support and sign by sign, by bisection on the norm."""
    G, q, norms = A.T @ A, A.T @ b, np.geomspace(1e-4, 1e3, 600)
    yield 0.5 * float(b @ b)
    for size in range(1, A.shape[1] + 1):
        for support in map(list, itertools.combinations(range(A.shape[1]), size)):
            values, vectors = np.linalg.eigh(G[np.ix_(support, support)])
            for signs in itertools.product([1.0, -1.0], repeat=size):
                h = vectors.T @ (q[support] - alpha * np.array(signs))
                gap = np.linalg.norm(h / (values - alpha * weight / norms[:, None]), axis=1) - norms
                for k in np.flatnonzero(np.sign(gap[1:]) != np.sign(gap[:-1])):
                    low, high = norms[k], norms[k + 1]
                    for _ in range(60):
                        middle = np.sqrt(low * high)
                        there = np.linalg.norm(h / (values - alpha * weight / middle)) - middle
                        low, high = (middle, high) if np.sign(there) == np.sign(gap[k]) else (low, middle)
                    x = np.zeros(A.shape[1])
                    x[support] = vectors @ (h / (values - alpha * weight / low))
                    yield 0.5 * float(np.sum((A @ x - b) ** 2)) + ell12.L12(alpha, weight).value(x)


def brute_force(count: int) -> str:
    """Bounds of small problems against all their stationary points."""
    random, proved, wrong = np.random.default_rng(0), 0, 0
    for _ in range(count):
        m, n = random.integers(1, 7), random.integers(1, 5)
        A, b = random.standard_normal((m, n)), random.standard_normal(m) * random.choice([0.3, 1, 5])
        if n > 1 and random.random() < 0.5:
            A[:, 1] = A[:, 0] + 0.1 * random.standard_normal(m)
        alpha, weight = random.uniform(0.02, 0.9) * np.abs(A.T @ b).max(), random.choice([0.3, 0.7, 1.0])
        least = min(stationary_values(A, b, alpha, weight))
        found = ell12.certify(ell12.SquaredLoss(A, b), ell12.L12(alpha, weight), np.zeros(n))
        proved += found.proved
        wrong += found.lower_bound > least * (1 + 1e-10) + 1e-12
    return f"{count} problems of up to 6 x 4: {proved} proved, {wrong} bounds above a value found"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--brute", type=int, default=0)
    options = parser.parse_args()
    if options.brute:
        print(brute_force(options.brute))
        return
    rows: list[dict[str, Any]] = []
    for case in cases(options.seeds):
        rows.append(measured(*case, options.seconds))
        print(rows[-1], flush=True)
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=RESULTS, check=True).stdout.strip()
    (RESULTS / "certificates.json").write_text(
        json.dumps({"commit": commit, "rows": rows}, indent=1, default=float) + "\n"
    )
    head = (
        "# Which solutions are proved to be global minima\n\n"
        + (__doc__ or "").split("\n\n")[1]
        + f"\n\nMeasured at commit {commit}, at most {options.seconds:g} s for a proof, {len(rows)} problems."
    )
    (RESULTS / "certificates.md").write_text(page(rows, head))


if __name__ == "__main__":
    main()

"""Which solutions are proved to be global minima.

Squared loss with l1-2 on random columns with k nonzero entries and 1 % of noise: Gaussian columns, the paper's
cosines (one draw per entry), and oversampled cosines (one draw per row, divided by F: neighbours are alike).
alpha is a fraction of the largest entry of A'b. The last problems are the paper's own, `compressed_sensing(0)` of
500 x 2000 at its five strengths. For each kind: how many are proved to a relative gap of 1e-6, the largest gap
left, the boxes and the processor seconds of `certify`, how many answers of the plain call and of 200 restarts are
within 1e-6 of the best value known, what `Restarts()` does by itself, and the seconds of 200 restarts. A row for
each problem is in the JSON file. "table" problems are real: data of scikit-learn, columns and y standardised.

The rule of `Restarts()` was chosen on the problems of part "rule", of seeds 200 to 205. Part "recovery" asks
whether restarts recover signals that `recover_sparse` does not: 64 of 256 oversampled cosines, ten of each kind.

`python benchmarks/certificates.py [small|large|paper|tables|brute|rule|recovery ...] [--jobs N]` adds what the
results lack.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import sklearn.datasets

import ell12
import study
from ell12.datasets import compressed_sensing
from ell12.solvers import Restarts
from ell12.solvers.restarts import ALIKE

LARGE = (
    ("gaussian", 200, 1000, 20),
    ("paper", 200, 1000, 20),
    ("F = 5", 200, 1000, 10),
    ("paper", 200, 1000, 50),
)
FIELDS = ("kind", "m", "n", "k", "part", "l2_weight", "seed")
BRUTE = 5000


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
    if kind == "the paper's own":
        own = compressed_sensing(seed, n_samples=m, n_features=n)
        return own.A, own.b
    if kind.startswith("table"):
        A, b = getattr(sklearn.datasets, f"load_{kind.split()[1]}")(return_X_y=True)
        A, b = A[:, A.std(axis=0) > 0], b if b.ndim == 1 else b[:, 0]
        return (A - A.mean(axis=0)) / A.std(axis=0) / np.sqrt(len(b)), (b - b.mean()) / b.std() / np.sqrt(len(b))
    random = np.random.default_rng(seed)
    A, x = columns(kind, m, n, random), np.zeros(n)
    x[random.permutation(n)[:k]] = random.standard_normal(k)
    b = A @ x
    return A, b + 0.01 * np.linalg.norm(b) / np.sqrt(m) * random.standard_normal(m)


def measured(case: tuple, seconds: float) -> dict[str, Any]:
    """One problem, solved by the plain call, by restarts, and with a certificate."""
    kind, m, n, k, part, weight, seed = case
    A, b = problem(kind, m, n, k, seed)
    alpha = 0.01 * part if kind == "the paper's own" else part * np.abs(A.T @ b).max()
    loss, penalty = ell12.SquaredLoss(A, b), ell12.L12(alpha, weight)
    plain = ell12.minimize(loss, penalty, tol=1e-7)
    ruled = ell12.minimize(loss, penalty, solver=Restarts(), tol=1e-7, run=ell12.Run(max_seconds=seconds))
    begin = time.process_time()
    again = ell12.minimize(loss, penalty, solver=Restarts(200), tol=1e-7, run=ell12.Run(max_seconds=seconds))
    restarts = time.process_time() - begin
    begin = time.process_time()
    found = ell12.certify(loss, penalty, plain.x, max_seconds=seconds)
    spent, best = (
        time.process_time() - begin,
        min(found.objective, plain.objective, ruled.objective, again.objective),
    )
    return dict(zip(FIELDS, case, strict=True)) | {
        "proved": found.proved,
        "gap": float(found.gap),
        "nodes": found.nodes,
        "reason": found.reason,
        "seconds": spent,
        "restart_seconds": restarts,
        "plain_above": float(plain.objective / best - 1),
        "switched_on": "(1 of 1 starts" not in (ruled.solver or ""),
        "rule_above": float(ruled.objective / best - 1),
        "restarts_above": float(again.objective / best - 1),
    }


def cases(parts: list[str]) -> Iterator[tuple]:
    if "small" in parts:
        for kind, seeds, fractions, weights in (
            ("paper", 9, (0.1, 0.03, 0.01), (1.0, 0.5)),
            ("gaussian", 2, (0.1, 0.03, 0.01), (1.0, 0.5)),
            ("F = 5", 2, (0.1, 0.03), (1.0, 0.5)),
            ("F = 10", 2, (0.1, 0.03), (1.0,)),
            ("F = 20", 2, (0.1, 0.03), (1.0,)),
        ):
            yield from itertools.product((kind,), (64,), (256,), (5, 10), fractions, weights, range(seeds))
    if "large" in parts:
        yield from ((*size, 0.1, 1.0, seed) for size in LARGE for seed in range(2))
    if "paper" in parts:
        yield from (("the paper's own", 500, 2000, 100, 0.25**i, 1.0, 0) for i in range(5))
    if "tables" in parts:
        for name in ("diabetes", "breast_cancer", "wine", "linnerud", "iris", "digits"):
            shape = problem(f"table {name}", 0, 0, 0, 0)[0].shape
            yield from ((f"table {name}", *shape, 0, part, 1.0, 0) for part in (0.3, 0.1, 0.03, 0.01, 0.003))


def chosen_on(seed: int) -> list[list[float]]:
    """Of problems that chose the rule: the largest correlation of a column in use; the excess over 30 restarts."""
    found = []
    for kind, k, part in itertools.product(
        ("gaussian", "paper", "F = 5", "F = 10", "F = 20"), (5, 10), (0.1, 0.03)
    ):
        A, b = problem(kind, 64, 256, k, 200 + seed)
        loss, penalty = ell12.SquaredLoss(A, b), ell12.L12(part * np.abs(A.T @ b).max())
        plain = ell12.minimize(loss, penalty, tol=1e-7)
        again = ell12.minimize(loss, penalty, solver=Restarts(30), tol=1e-7)
        used = np.flatnonzero(plain.x)
        others = np.abs(A[:, used].T @ A)
        others[np.arange(used.size), used] = 0.0
        found.append([float(others.max(initial=0.0)), float(plain.objective / again.objective - 1)])
    return found


def recovered(seed: int) -> list[list[bool]]:
    """For each kind of signal: whether `recover_sparse` finds it, and whether 100 restarts do if it does not."""
    found = []
    for factor, k in ((10, 5), (10, 8), (20, 5)):
        random = np.random.default_rng(1000 + seed)
        A, x = columns(f"F = {factor}", 64, 256, random), np.zeros(256)
        x[random.permutation(256)[:k]] = random.standard_normal(k)
        b = A @ x
        exact = [np.linalg.norm(ell12.recover_sparse(A, b) - x) <= 1e-3 * np.linalg.norm(x)]
        if not exact[0]:
            for part in (0.1, 0.01):
                penalty = ell12.L12(part * np.abs(A.T @ b).max())
                start = ell12.minimize(ell12.SquaredLoss(A, b), penalty, solver=Restarts(100), tol=1e-6).x
                used = np.flatnonzero(start)
                refit = np.zeros(256)
                refit[used] = np.linalg.lstsq(A[:, used], b, rcond=None)[0]
                exact.append(np.linalg.norm(refit - x) <= 1e-3 * np.linalg.norm(x))
        found.append([bool(exact[0]), bool(any(exact[1:]))])
    return found


def named(row: dict[str, Any]) -> str:
    name = f"{row['kind']}, {row['m']} x {row['n']}" + f", {row['k']} nonzero" * (row["k"] > 0)
    return f"{name}, alpha {0.01 * row['part']:.3g}" if row["m"] == 500 else name


def cells(rows: list[dict[str, Any]]) -> list[str]:
    """A line of the table."""
    seconds = [row["seconds"] for row in rows]
    share = [sum(row[field] <= 1e-6 for row in rows) for field in ("plain_above", "restarts_above", "rule_above")]
    return [
        named(rows[0]),
        f"{sum(row['proved'] for row in rows)} of {len(rows)}",
        f"{100 * max(row['gap'] for row in rows):.2g} %",
        f"{statistics.median(row['nodes'] for row in rows):g}, {max(row['nodes'] for row in rows)}",
        f"{statistics.median(seconds):.2f}, {max(seconds):.1f}",
        *(f"{count} of {len(rows)}" for count in share),
        f"{sum(row['switched_on'] for row in rows)} of {len(rows)}",
        f"{statistics.median(row['restart_seconds'] for row in rows):.1f}",
    ]


def stationary_values(A: np.ndarray, b: np.ndarray, penalty: Any, weights: np.ndarray) -> Iterator[float]:
    """The objective at every stationary point, support by support and sign by sign, by bisection on the norm."""
    G, q, norms, W = A.T @ A, A.T @ b, np.geomspace(1e-4, 1e3, 600), penalty.alpha * penalty.l2_weight
    yield 0.5 * float(b @ b)
    for size in range(1, A.shape[1] + 1):
        for support in map(list, itertools.combinations(range(A.shape[1]), size)):
            values, vectors = np.linalg.eigh(G[np.ix_(support, support)])
            for signs in itertools.product([1.0, -1.0], repeat=size):
                h = vectors.T @ (q[support] - penalty.alpha * np.array(signs) * weights[support])

                def excess(norm: Any, h: Any = h, values: Any = values) -> Any:
                    return (
                        np.sqrt(sum((hi / (vi - W / norm)) ** 2 for hi, vi in zip(h, values, strict=True))) - norm
                    )

                gap = excess(norms)
                for k in np.flatnonzero(np.sign(gap[1:]) != np.sign(gap[:-1])):
                    low, high = norms[k], norms[k + 1]
                    for _ in range(50):
                        middle = np.sqrt(low * high)
                        low, high = (middle, high) if excess(middle) * gap[k] > 0 else (low, middle)
                    x = np.zeros(A.shape[1])
                    x[support] = vectors @ (h / (values - W / low))
                    yield 0.5 * float(np.sum((A @ x - b) ** 2)) + penalty.value(x)


def brute_force(seed: int) -> list[int]:
    """Of 100 small problems: how many are proved, have a bound above a value found, and end at a local minimum."""
    random, counts = np.random.default_rng(seed), np.zeros(3, int)
    for _ in range(100):
        m, n = random.integers(1, 7), random.integers(1, 5)
        A, b = random.standard_normal((m, n)), random.standard_normal(m) * random.choice([0.3, 1, 5])
        if n > 1 and random.random() < 0.5:
            A[:, 1] = A[:, 0] + 0.1 * random.standard_normal(m)
        weights = random.uniform(1, 2, n) if random.random() < 0.5 else np.ones(n)
        alpha, l2_weight = random.uniform(0.02, 0.9) * np.abs(A.T @ b).max(), random.choice([0.3, 0.7, 1.0])
        loss, penalty = ell12.SquaredLoss(A, b), ell12.L12(alpha, l2_weight, weights=weights)
        least = min(stationary_values(A, b, penalty, weights))
        found = ell12.certify(loss, penalty, np.zeros(n))
        local = ell12.minimize(loss, penalty, tol=1e-8).objective > least * (1 + 1e-6) + 1e-12
        counts += [found.proved, found.lower_bound > least * (1 + 1e-10) + 1e-12, local]
    return counts.tolist()


def store(rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    rows.sort(key=lambda row: row["n"])
    groups = [[row for row in rows if named(row) == name] for name in dict.fromkeys(map(named, rows))]
    header = ["problem", "proved", "largest gap", "boxes: median, most", "seconds: median, most"]
    header += ["plain call global", "200 restarts global", "those of the rule"]
    header += ["rule switches on", "seconds of restarts"]
    small = [row["seconds"] for row in rows if row["kind"] == "paper" and row["n"] == 256]
    middle = statistics.median(small or [0.0])
    median = f"Median of the {len(small)} problems of the paper's kind, 64 x 256: {middle:.2f} s."
    tables = [study.table(header, map(cells, groups)), median]
    proved, wrong, local = np.sum(settings.get("brute") or [[0, 0, 0]], axis=0)
    count = 100 * len(settings.get("brute", []))
    brute = (
        f"{count} problems of up to 6 x 4 against all their stationary points: {proved} proved, {wrong} bounds "
        f"above a value found; the plain call ends at another local minimum in {local}."
    )
    study.write("certificates", __doc__ or "", settings, rows, [*tables, brute, *chosen(settings)])


def chosen(settings: dict[str, Any]) -> Iterator[str]:
    """What chose the rule of restarts, and what restarts do for signals."""
    pairs = np.array([pair for problems in settings.get("rule", []) for pair in problems]).reshape(-1, 2)
    worse, alike = pairs[:, 1] > 1e-6, pairs[:, 0] > ALIKE
    yield (
        f"Of {len(pairs)} problems of other seeds 30 restarts beat the plain call in {worse.sum()}: with a"
        f" column in use of a correlation above {ALIKE} in {(worse & alike).sum()} of {alike.sum()}, without in"
        f" {(worse & ~alike).sum()} of {(~alike).sum()}."
    )
    signals = np.array([pair for kinds in settings.get("recovery", []) for pair in kinds]).reshape(-1, 2)
    plain, restarted = (int(count) for count in signals.sum(axis=0))
    yield (
        f"Of {len(signals)} signals `recover_sparse` finds {plain}; 100 restarts, at 0.1 and 0.01 of the"
        f" largest strength, find {restarted} of the others."
    )


COUNTED = {"brute": (BRUTE // 100, brute_force), "rule": (6, chosen_on), "recovery": (10, recovered)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["small", "large", "paper", "tables", *COUNTED])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the clock, for one proof")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    options = parser.parse_args()
    path = study.RESULTS / "certificates.json"
    known = json.loads(path.read_text()) if path.exists() else {"rows": [], "settings": {}}
    rows, settings = known["rows"], known["settings"] | {"seconds": options.seconds}
    there = {tuple(row[field] for field in FIELDS) for row in rows}
    missing = [case for case in cases(options.parts) if case not in there]
    lists = {name: settings.setdefault(name, []) for name in COUNTED}
    missing.sort(key=lambda case: -case[2])  # the longest first
    with ProcessPoolExecutor(options.jobs) as pool:
        results = [(pool.map(measured, missing, itertools.repeat(options.seconds)), rows)]
        for name, (count, work) in COUNTED.items():
            seeds = range(len(lists[name]), count if name in options.parts else 0)
            results.append((pool.map(work, seeds), lists[name]))
        for found, stored in results:
            for result in found:
                stored.append(result)
                print(result, flush=True)
                store(rows, settings)
    store(rows, settings)


if __name__ == "__main__":
    main()

"""How many signals are recovered exactly: l1, l_1/2, MCP, log-sum and l1-2 against sparsity and coherence.

Noiseless measurements b = A x, 64 of them, of a vector x with k entries from N(0, 1). A is Gaussian with 256
columns, nearly orthogonal, or an oversampled cosine dictionary of 128 F columns, cos(2 pi w j / F) with one w
per row, uniform: the larger F, the finer the same 128 frequencies are divided and the more alike are
neighbouring columns; entries of x lie at least 2F apart, as is usual. A signal counts as recovered if the
relative error is at most 0.01.

Every method minimises 1/2 ||A x - b||^2 + penalty with a strength that falls to a millionth of its top, each
run warm-started from the last: either in 30 steps from zero and twice the top ("path"), or in 6 from the l1
solution ("l1"). Which of the two, and the penalty's own parameter, is chosen for each method and panel on other
seeds, at the middle of the panel; the choice is in the tables. "l1-2 from zero" is shown whatever was chosen,
because it is what a plain path does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import study
from ell12 import L1, L12, MCP, LogSum, Lp, NonmonotoneAPG, SquaredLoss, SupportNewton, minimize

N_SAMPLES, N_GAUSSIAN, N_CELLS = 64, 256, 128  # the cosines have N_CELLS F columns
TOLERANCE, LOWEST, MAX_ITER = 1e-2, 1e-6, 1000
PILOT_SEED = 10_000


@dataclass(frozen=True)
class Panel:
    """A curve's horizontal axis: what varies, and how a problem follows from it."""

    title: str
    axis: str
    values: tuple[int, ...]
    problem: Callable[[int], tuple[str, int, int]]  # value -> kind of matrix, F, number of nonzeros


PANELS = {
    "gaussian": Panel(
        "Gaussian matrix", "number of nonzeros", (8, 12, 16, 20, 24, 28, 32), lambda k: ("gaussian", 1, k)
    ),
    "coherent": Panel(
        "cosines, F = 10", "number of nonzeros", (5, 7, 9, 11, 13, 15, 17), lambda k: ("cosine", 10, k)
    ),
    "coherence": Panel("cosines, 12 nonzeros", "F", (1, 2, 4, 6, 8, 12, 16), lambda f: ("cosine", f, 12)),
}

# Method -> the penalty at a strength (its slope at zero) and a parameter, and the parameters to choose from.
METHODS: dict[str, tuple[Callable[[float, Any], Any], tuple[Any, ...]]] = {
    "l1": (lambda alpha, _: L1(alpha), (None,)),
    "l_1/2": (lambda alpha, _: Lp(alpha, p=0.5), (None,)),
    "MCP": (lambda alpha, knee: MCP(alpha, gamma=knee / alpha), (0.3, 1.0, 3.0)),
    "log-sum": (lambda alpha, theta: LogSum(alpha * theta, theta=theta), (0.1, 0.5, 2.0)),
    "l1-2": (lambda alpha, _: L12(alpha), (None,)),
}
ALWAYS = ("l1-2 from zero", {"parameter": None, "start": "path"})


def draw(kind: str, F: int, n_nonzero: int, seed: int) -> tuple[Any, Any]:
    """A matrix and a sparse vector."""
    random, size = np.random.default_rng(seed), N_GAUSSIAN if kind == "gaussian" else N_CELLS * F
    if kind == "gaussian":
        A, gap = random.standard_normal((N_SAMPLES, size)), 1
    else:
        A, gap = np.cos(2 * np.pi * random.random((N_SAMPLES, 1)) * np.arange(1, size + 1) / F), 2 * F
    room = size - (n_nonzero - 1) * (gap - 1)
    if room < n_nonzero:
        raise ValueError(f"{n_nonzero} entries do not fit {gap} apart into {size}")
    x = np.zeros(size)
    x[np.sort(random.permutation(room)[:n_nonzero]) + (gap - 1) * np.arange(n_nonzero)] = random.standard_normal(
        n_nonzero
    )
    return A / np.sqrt(N_SAMPLES), x


def recover(A: Any, b: Any, method: str, setting: dict[str, Any], l1_solution: Any) -> Any:
    """The last solution of a sequence of falling strengths."""
    make, loss = METHODS[method][0], SquaredLoss(A, b)
    top = float(np.abs(A.T @ b).max())
    from_zero = setting["start"] == "path"
    x = None if from_zero else l1_solution
    # The two solvers end at the same points; Newton's method on the support is faster, where a penalty offers it.
    solver = SupportNewton() if method.startswith("l1") else NonmonotoneAPG()
    alphas = top * (np.geomspace(2.0, LOWEST, 30) if from_zero else np.geomspace(1e-3, LOWEST, 6))
    for alpha in alphas:
        max_iter = MAX_ITER if alpha == alphas[-1] else MAX_ITER // 10
        x = minimize(loss, make(alpha, setting["parameter"]), x, solver=solver, tol=1e-4, max_iter=max_iter).x
    return x


def errors(panel: str, value: int, seed: int, runs: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The relative error of each run on one problem, and the coherence of its matrix."""
    A, x = draw(*PANELS[panel].problem(value), seed)
    b = A @ x
    l1_solution = recover(A, b, "l1", {"parameter": None, "start": "path"}, None)
    found = [
        recover(A, b, method, setting, l1_solution) if method != "l1" else l1_solution for method, setting in runs
    ]
    unit = A / np.linalg.norm(A, axis=0)
    coherence = np.abs(unit.T @ unit - np.eye(x.size)).max()
    return {
        "errors": [float(np.linalg.norm(z - x) / np.linalg.norm(x)) for z in found],
        "coherence": float(coherence),
    }


def settings_of(method: str) -> list[dict[str, Any]]:
    starts = ("path",) if method == "l1" else ("l1", "path")
    return [{"parameter": value, "start": start} for value in METHODS[method][1] for start in starts]


def choose(panel: str, n_pilots: int, parallel: Parallel) -> dict[str, dict[str, Any]]:
    """The setting of each method that recovers most at the middle of the panel, on seeds of their own."""
    values = PANELS[panel].values
    runs = [(method, setting) for method in METHODS for setting in settings_of(method)]
    middle = values[len(values) // 2]
    outcomes = parallel(delayed(errors)(panel, middle, PILOT_SEED + seed, runs) for seed in range(n_pilots))
    rates = (np.array([outcome["errors"] for outcome in outcomes]) <= TOLERANCE).mean(axis=0)
    chosen: dict[str, tuple[float, dict[str, Any]]] = {}
    for (method, setting), rate in zip(runs, rates, strict=True):
        if method not in chosen or rate > chosen[method][0]:
            chosen[method] = (rate, setting)
    return {method: setting for method, (_, setting) in chosen.items()}


def rows_of(panel: str, chosen: dict[str, dict[str, Any]], n_trials: int, parallel: Parallel) -> Iterator[dict]:
    """One row for each value and method."""
    labels = [*chosen, ALWAYS[0]]
    runs = [*chosen.items(), ("l1-2", ALWAYS[1])]
    for value in PANELS[panel].values:
        outcomes = parallel(delayed(errors)(panel, value, seed, runs) for seed in range(n_trials))
        found = np.array([outcome["errors"] for outcome in outcomes])
        coherence = float(np.mean([outcome["coherence"] for outcome in outcomes]))
        print(
            panel,
            value,
            dict(zip(labels, (found <= TOLERANCE).mean(axis=0).round(2).tolist(), strict=True)),
            flush=True,
        )
        for label, (_, setting), column in zip(labels, runs, found.T, strict=True):
            yield {
                "panel": panel,
                "value": value,
                "coherence": round(coherence, 4),
                "method": label,
                **setting,
                "recovered": int(np.sum(column <= TOLERANCE)),
                "trials": n_trials,
                "median_error": float(np.median(column)),
            }


def tables(rows: list[dict[str, Any]]) -> Iterator[str]:
    """One table for each panel: recovered signals in percent."""
    for name, panel in PANELS.items():
        own = [row for row in rows if row["panel"] == name]
        yield f"## {panel.title}"
        yield (
            f"Recovered, in percent of {own[0]['trials']} signals, by the {panel.axis} {_about(panel)}".rstrip()
            + "."
        )
        columns = [f"{v}<br>{_coherence(own, v)}" if panel.axis == "F" else str(v) for v in panel.values]
        lines = [_line(own, method) for method in dict.fromkeys(row["method"] for row in own)]
        yield study.table(["method", "setting", *columns], lines)


def _about(panel: Panel) -> str:
    return "and the mean coherence, the largest cosine between two columns" if panel.axis == "F" else ""


def _coherence(rows: list[dict[str, Any]], value: int) -> str:
    return next(f"{row['coherence']:.3f}" for row in rows if row["value"] == value)


def _line(rows: list[dict[str, Any]], method: str) -> list[str]:
    own = [row for row in rows if row["method"] == method]
    parameter = {"MCP": "flat from", "log-sum": "theta ="}.get(method)
    words = [] if parameter is None else [f"{parameter} {own[0]['parameter']:g}"]
    words.append("from the l1 solution" if own[0]["start"] == "l1" else "from zero")
    return [method, ", ".join(words), *(f"{100 * row['recovered'] / row['trials']:.0f}" for row in own)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    parallel = Parallel(n_jobs=options.jobs)
    rows: list[dict[str, Any]] = []
    for panel in PANELS:
        chosen = choose(panel, options.pilots, parallel)
        print(panel, chosen, flush=True)
        rows += rows_of(panel, chosen, options.trials, parallel)
    settings = {"trials": options.trials, "pilots": options.pilots, "tolerance": TOLERANCE, "max_iter": MAX_ITER}
    study.write("recovery", __doc__, settings, rows, tables(rows))


if __name__ == "__main__":
    main()

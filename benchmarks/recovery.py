"""How many signals are recovered exactly: l1-2 and its rivals against sparsity and coherence.

Noiseless measurements b = A x, 64 of them, of a vector x with k entries from N(0, 1). A is Gaussian with 256
columns, nearly orthogonal, or an oversampled cosine dictionary of 128 F columns, cos(2 pi w j / F) with one w
per row, uniform: the larger F, the finer the same 128 frequencies are divided and the more alike are
neighbouring columns; entries of x lie at least 2F apart, as is usual. A signal counts as recovered if the
relative error is at most 0.01.

Two references solve linear programs (scipy's HiGHS), exactly and without a strength: DCA for ||x||_1 - ||x||_2
subject to A x = b, from the l1 solution on; and iteratively reweighted l1, min sum_i |x_i| / (|z_i| + 0.1) with z
the solution before (Candes, Wakin & Boyd, doi:10.1007/s00041-008-9045-x). Both stop when x no longer changes, the
second after 10 programs at the latest. "l1" is the first of these programs.

"l1-2" is the plain call, `minimize(SquaredLoss(A, b), L12(alpha))` with alpha a millionth of the largest, from
zero; "recover_sparse" is the function of that name. MCP and log-sum minimise 1/2 ||A x - b||^2 + penalty with a
strength that falls to that millionth, each run warm-started from the last: in 30 steps from zero and twice the
top ("path"), or in 6 from the l1 solution ("l1"). Which of the two, and the penalty's own parameter, is chosen for
each method and panel on other seeds, at the middle of the panel; the choice is in the tables. No run was cut short
before 10,000 iterations. The l_1/2 norm is left out: with such limits it takes 40 s a signal.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linprog

import study
from ell12 import L12, MCP, SquaredLoss, minimize, recover_sparse
from ell12.penalties import LogSum

N_SAMPLES, N_GAUSSIAN, N_CELLS = 64, 256, 128  # the cosines have N_CELLS F columns
TOLERANCE, LOWEST = 1e-2, 1e-6
REWEIGHTED, STEPS, SMALLEST = (
    10,
    50,
    0.1,
)  # programs of reweighted l1 and of DCA at the most; what |z| is raised by
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

# Other penalties: at a strength (the slope at zero) and a parameter, and the parameters to choose from.
PENALTIES: dict[str, tuple[Callable[[float, Any], Any], tuple[Any, ...]]] = {
    "MCP": (lambda alpha, knee: MCP(alpha, gamma=knee / alpha), (0.3, 1.0, 3.0)),
    "log-sum": (lambda alpha, theta: LogSum(alpha * theta, theta=theta), (0.1, 0.5, 2.0)),
}
NO_SETTING = {"parameter": None, "start": None}


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


def program(A: Any, b: Any, below: Any, above: Any) -> Any:
    """The x with A x = b of the least cost, by entry ``above`` for what is positive and ``below`` for the rest."""
    found = linprog(np.concatenate([above, below]), A_eq=np.hstack([A, -A]), b_eq=b, method="highs").x
    return None if found is None else found[: A.shape[1]] - found[A.shape[1] :]


def exact(A: Any, b: Any, x: Any, costs: Callable[[Any], tuple[Any, Any]], most: int) -> Any:
    """Linear programs with costs that depend on the solution before, until it stays."""
    for _ in range(most):
        new = program(A, b, *costs(x))
        if new is None:  # the solver failed for rounding
            return x
        x, old = new, x
        if np.linalg.norm(x - old) <= 1e-7 * np.linalg.norm(x):
            break
    return x


def tilted(x: Any) -> tuple[Any, Any]:
    """The l1 norm less the tangent of the l2 norm."""
    tangent = x / np.linalg.norm(x)
    return 1 + tangent, 1 - tangent


def reweighted(x: Any) -> tuple[Any, Any]:
    return (1 / (np.abs(x) + SMALLEST),) * 2


def recover(A: Any, b: Any, method: str, setting: dict[str, Any], l1_solution: Any) -> Any:
    """What a method makes of the measurements."""
    if method == "DCA by linear programs":
        return exact(A, b, l1_solution, tilted, STEPS)
    if method == "reweighted l1":
        return exact(A, b, l1_solution, reweighted, REWEIGHTED)
    if method == "recover_sparse":
        return recover_sparse(A, b, return_result=True).x
    loss, top = SquaredLoss(A, b), float(np.abs(A.T @ b).max())
    if method == "l1-2":
        return minimize(loss, L12(LOWEST * top)).x
    make, from_zero = PENALTIES[method][0], setting["start"] == "path"
    x = None if from_zero else l1_solution
    for alpha in top * (np.geomspace(2.0, LOWEST, 30) if from_zero else np.geomspace(1e-3, LOWEST, 6)):
        x = minimize(loss, make(alpha, setting["parameter"]), x).x
    return x


def errors(panel: str, value: int, seed: int, runs: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The relative error of each run on one problem, and the coherence of its matrix."""
    A, x = draw(*PANELS[panel].problem(value), seed)
    b = A @ x
    l1_solution = program(A, b, np.ones(x.size), np.ones(x.size))
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
    return [{"parameter": value, "start": start} for value in PENALTIES[method][1] for start in ("l1", "path")]


def choose(panel: str, n_pilots: int, parallel: Parallel) -> dict[str, dict[str, Any]]:
    """The setting of each method that recovers most at the middle of the panel, on seeds of their own."""
    values = PANELS[panel].values
    runs = [(method, setting) for method in PENALTIES for setting in settings_of(method)]
    middle = values[len(values) // 2]
    outcomes = parallel(delayed(errors)(panel, middle, PILOT_SEED + seed, runs) for seed in range(n_pilots))
    rates = (np.array([outcome["errors"] for outcome in outcomes]) <= TOLERANCE).mean(axis=0)
    chosen: dict[str, tuple[float, dict[str, Any]]] = {}
    for (method, setting), rate in zip(runs, rates, strict=True):
        if method not in chosen or rate > chosen[method][0]:
            chosen[method] = (rate, setting)
    return {method: setting for method, (_, setting) in chosen.items()}


def rows_of(
    panel: str, chosen: dict[str, dict[str, Any]], seeds: range, parallel: Parallel
) -> Iterator[dict[str, Any]]:
    """One row for each value and method."""
    always = ("l1-2", "recover_sparse", "DCA by linear programs", "l1", "reweighted l1")
    runs = [*((method, NO_SETTING) for method in always), *chosen.items()]
    labels = [method for method, _ in runs]
    values = PANELS[panel].values
    jobs = [(value, seed) for value in reversed(values) for seed in seeds]  # the longest first
    every = dict(zip(jobs, parallel(delayed(errors)(panel, *job, runs) for job in jobs), strict=True))
    for value in values:
        outcomes = [every[value, seed] for seed in seeds]
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
                "trials": len(seeds),
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
    start = {"l1": ["from the l1 solution"], "path": ["from zero"], None: []}[own[0]["start"]]
    return [method, ", ".join(words + start), *(f"{100 * row['recovered'] / row['trials']:.0f}" for row in own)]


def added(rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the counts of an earlier run, of other seeds, added to theirs."""
    known = {(row["panel"], row["value"], row["method"]): row for row in before}
    for row in rows:
        same = known[row["panel"], row["value"], row["method"]]
        share = same["trials"] / (same["trials"] + row["trials"])
        row["coherence"] = round(share * same["coherence"] + (1 - share) * row["coherence"], 4)
        row["recovered"] += same["recovered"]
        row["trials"] += same["trials"]
    return rows


def settings_in(rows: list[dict[str, Any]], panel: str) -> dict[str, dict[str, Any]]:
    """What an earlier run chose for each method."""
    own = [row for row in rows if row["panel"] == panel and row["method"] in PENALTIES]
    return {row["method"]: {"parameter": row["parameter"], "start": row["start"]} for row in own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--add", action="store_true", help="add trials, with the settings chosen, to the results")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    parallel = Parallel(n_jobs=options.jobs)
    file = study.RESULTS / "recovery.json"
    before = json.loads(file.read_text()) if options.add else {"rows": [], "settings": {"trials": 0}}
    first = before["settings"]["trials"]
    rows: list[dict[str, Any]] = []
    for panel in PANELS:
        chosen = settings_in(before["rows"], panel) or choose(panel, options.pilots, parallel)
        print(panel, chosen, flush=True)
        rows += rows_of(panel, chosen, range(first, first + options.trials), parallel)
    settings = {"pilots": options.pilots, "tolerance": TOLERANCE} | before["settings"]
    settings["trials"] = first + options.trials
    rows = added(rows, before["rows"]) if options.add else rows
    study.write("recovery", __doc__, settings, rows, tables(rows))


if __name__ == "__main__":
    main()

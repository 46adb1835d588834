"""Paths over more columns than memory holds, and over as many as it does beside other packages.

The columns are like genotypes: 0, 1 or 2 as int8, made by a seed, each copying seven tenths of its neighbour.
Thirty of them explain four fifths of the variance of y; the logistic loss is told only whether y is above 0.
Columns are standardised, by us without a copy. A path has 100 strengths down to 0.05 of the first, which is the
default of biglasso for more columns than rows. Every run has a process of its own. "time" is that of the clock,
"processor" that of all processors: where other work goes on, the second one counts.

"reads" says how often all columns were read, those for means and deviations included. "memory" is the peak of what
is not file cache (RssAnon), beyond what the process held before it had data; "with files" adds the mapped pages of
the file (RssFile), which the operating system takes back where it needs them. Peers, and we "in memory", hold the
standardised columns in double precision; making them is not timed. "stationarity" is the worst along the path: the
largest violation of the first-order condition over the strength, computed afresh from the columns for peers and
for our paths in memory. "excess" is by how much an objective along the path lies above the lowest that any package
has found for that strength, at most and relatively; l1-2 has many minima, and no peer. A peer without tol=... has
its default tolerance. liblinear has no warm starts and copies the columns to 16 bytes an entry: it runs at the
smallest size alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

STRENGTHS, EPS, CAUSAL, SHARE, COPIED, BLOCK = 100, 0.05, 30, 0.8, 0.7, 4096
MOST_LIBLINEAR = 2 * 10**6  # entries
OURS = ["columns on disk", "columns in memory"]
PEERS = {
    "squared": ["scikit-learn", "scikit-learn, tol=1e-6", "celer", "skglm", "skglm, tol=1e-6"],
    "logistic": ["scikit-learn, liblinear", "celer", "skglm", "skglm, tol=1e-6"],
}
HEADER = (
    "loss",
    "l2_weight",
    "package",
    "time",
    "processor",
    "reads",
    "memory",
    "with files",
    "stationarity",
    "excess",
    "support",
    "measured",
)


def make_columns(path: Path, rows: int, columns: int, seed: int = 0) -> None:
    """Write the matrix, a block of columns at a time."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.int8, shape=(rows, columns), fortran_order=True)
    random = np.random.default_rng(seed)
    alleles = np.zeros((2, rows), dtype=bool)
    for first in range(0, columns, BLOCK):
        count = min(BLOCK, columns - first)
        frequency = random.integers(13, 128, count, dtype=np.uint8)  # of 256
        drawn = random.integers(0, 256, (count, 2, rows), dtype=np.uint8) < frequency[:, None, None]
        copied = random.integers(0, 256, (count, 2, rows), dtype=np.uint8) < round(256 * COPIED)
        for k in range(count):
            alleles = np.where(copied[k], alleles, drawn[k])
            drawn[k] = alleles
        out[:, first : first + count] = drawn.sum(axis=1, dtype=np.int8).T
        out.flush()


def response(X: np.ndarray, seed: int = 1) -> np.ndarray:
    """What some columns say, and noise."""
    random = np.random.default_rng(seed)
    some = X[:, np.sort(random.choice(X.shape[1], CAUSAL, replace=False))].astype(float)
    effects = random.uniform(0.5, 1.0, CAUSAL) * random.choice([-1.0, 1.0], CAUSAL)
    signal = ((some - some.mean(axis=0)) / some.std(axis=0)) @ effects
    y = np.sqrt(SHARE) * signal / signal.std() + np.sqrt(1 - SHARE) * random.standard_normal(X.shape[0])
    return y - y.mean()


class Peak:
    """The most memory that this process holds, in MB, by samples of a thread."""

    def __init__(self) -> None:
        self.start = memory()
        self.most = [0.0, 0.0]
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self._sample()
            time.sleep(0.01)

    def _sample(self) -> None:
        anon, mapped = memory()
        self.most = [max(self.most[0], anon - self.start[0]), max(self.most[1], anon + mapped - sum(self.start))]


def memory() -> tuple[float, float]:
    """What the process holds that is not of files, and what is, in MB."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) / 1024, int(lines["RssFile"].split()[0]) / 1024


def standardised(X: np.ndarray) -> np.ndarray:
    """The columns in double precision, of mean 0 and deviation 1."""
    A = np.empty(X.shape, order="F")
    for first in range(0, X.shape[1], BLOCK):
        part = X[:, first : first + BLOCK].astype(float)
        part -= part.mean(axis=0)
        A[:, first : first + BLOCK] = part / np.where(part.any(axis=0), part.std(axis=0), 1.0)
    return A


# One run


def our_path(method: str, loss: str, l2_weight: float, path: Path, y: np.ndarray) -> dict[str, Any]:
    from ell12 import L12, Columns, LogisticLoss
    from ell12.operators.centering import CenteredColumns
    from ell12.path import alpha_grid, alpha_max, l12_path, one_sparse_fit, path_results

    solution_path_of_nothing()
    peak = Peak()
    A: Any = standardised(np.load(path, mmap_mode="r")) if method.endswith("memory") else None
    start, cpu = time.perf_counter(), time.process_time()
    columns = Columns(path, scale=True) if A is None else None
    data = CenteredColumns(columns, columns.moments()[0]) if columns is not None else A
    if loss == "squared":
        alphas, _, results = l12_path(data, y, alphas=STRENGTHS, eps=EPS, penalty=L12(l2_weight=l2_weight))
    else:
        model = LogisticLoss(data, np.where(y > 0, 1.0, -1.0), scale=1 / y.size)
        alphas = alpha_grid(alpha_max(model, L12(l2_weight=l2_weight)), STRENGTHS, EPS)
        begin = one_sparse_fit(model, L12()) if l2_weight == 1 else None
        results = path_results(model, L12(1.0, l2_weight), alphas, begin, sparse=columns is not None)
    row = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "memory": peak.most[0],
        "with_files": peak.most[1],
        "reads": None if columns is None else columns.reads,
        "stationarity": max(result.stationarity for result in results),
        "converged": all(result.converged for result in results),
        "objectives": [result.objective for result in results],
        "support": int((results[-1].x != 0).sum()),
    }
    if A is not None:
        coefs = np.stack([result.x for result in results], axis=1)
        row |= judged(A, y, loss, l2_weight, alphas, coefs)
    return row


def solution_path_of_nothing() -> None:
    """Load what is compiled, as a process that is used for more than one path has done."""
    from ell12 import l12_path

    random = np.random.default_rng(0)
    l12_path(random.standard_normal((20, 30)), random.standard_normal(20))


def peers_path(method: str, loss: str, path: Path, y: np.ndarray) -> dict[str, Any]:
    call = PATHS[method.split(",", maxsplit=1)[0], loss]
    options = {"tol": 1e-6} if method.endswith("tol=1e-6") else {}
    random = np.random.default_rng(0)
    small = np.asfortranarray(random.standard_normal((20, 30)))
    call(small, np.sign(random.standard_normal(20)), np.array([0.1, 0.05]), **options)  # compiles
    peak = Peak()
    A = standardised(np.load(path, mmap_mode="r"))
    labels = np.where(y > 0, 1.0, -1.0)
    slope = A.T @ (y if loss == "squared" else 0.5 * labels) / y.size
    alphas = np.abs(slope).max() * np.geomspace(1, EPS, STRENGTHS)
    start, cpu = time.perf_counter(), time.process_time()
    coefs = call(A, y if loss == "squared" else labels, alphas, **options)
    row = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu, "reads": None}
    row |= {"memory": peak.most[0], "with_files": peak.most[1]}
    return row | judged(A, y, loss, 0.0, alphas, coefs)


def judged(
    A: np.ndarray, y: np.ndarray, loss: str, l2_weight: float, alphas: np.ndarray, coefs: np.ndarray
) -> dict[str, Any]:
    """The objectives of a path and its worst violation of the first-order condition, from the columns."""
    labels, objectives, worst = np.where(y > 0, 1.0, -1.0), [], 0.0
    for k, alpha in enumerate(alphas.tolist()):
        x = np.ascontiguousarray(coefs[:, k])
        support = np.flatnonzero(x)
        prediction, size = A[:, support] @ x[support], np.linalg.norm(x)
        if loss == "squared":
            slope, value = prediction - y, 0.5 * np.mean((prediction - y) ** 2)
        else:
            slope, value = (
                -labels / (1 + np.exp(labels * prediction)),
                np.mean(np.logaddexp(0, -labels * prediction)),
            )
        gradient = A.T @ slope / y.size
        tangent = gradient - alpha * l2_weight * x / (size or 1.0)
        away = np.where(x != 0, np.abs(tangent + alpha * np.sign(x)), np.maximum(np.abs(gradient) - alpha, 0))
        worst = max(worst, float(away.max()) / alpha)
        objectives.append(float(value + alpha * (np.abs(x).sum() - l2_weight * size)))
    return {"objectives": objectives, "stationarity": worst, "support": int(np.count_nonzero(coefs[:, -1]))}


def scikit_learn_squared(A: np.ndarray, y: np.ndarray, alphas: np.ndarray, tol: float = 1e-4) -> np.ndarray:
    from sklearn.linear_model import lasso_path

    return lasso_path(A, y, alphas=alphas, tol=tol, max_iter=10_000, precompute=False, copy_X=False)[1]


def scikit_learn_logistic(A: np.ndarray, y: np.ndarray, alphas: np.ndarray, tol: float = 1e-4) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    found = []
    for alpha in alphas:
        model = LogisticRegression(
            l1_ratio=1.0, C=1 / (y.size * alpha), solver="liblinear", fit_intercept=False, tol=tol, random_state=0
        )
        found.append(model.fit(A, y).coef_[0])
    return np.stack(found, axis=1)


def celer_any(A: np.ndarray, y: np.ndarray, alphas: np.ndarray, pb: str, factor: float) -> np.ndarray:
    from celer import celer_path

    return celer_path(A, y, pb, alphas=factor * alphas, max_iter=100)[1]


def skglm_any(A: np.ndarray, y: np.ndarray, alphas: np.ndarray, datafit: str, tol: float = 1e-4) -> np.ndarray:
    from skglm import datafits, penalties, solvers

    model = getattr(datafits, datafit)()
    if datafit == "Quadratic":
        solver = solvers.AndersonCD(tol=tol, fit_intercept=False, max_iter=200)
        return solver.path(A, y, model, penalties.L1(1.0), alphas=alphas)[1]
    solver, start, found = solvers.ProxNewton(tol=tol, fit_intercept=False, max_iter=200), None, []
    for alpha in alphas:
        product = None if start is None else A @ start
        start = solver.solve(A, y, model, penalties.L1(float(alpha)), w_init=start, Xw_init=product)[0]
        found.append(start.copy())
    return np.stack(found, axis=1)


PATHS: dict[tuple[str, str], Any] = {
    ("scikit-learn", "squared"): scikit_learn_squared,
    ("scikit-learn", "logistic"): scikit_learn_logistic,
    ("celer", "squared"): lambda A, y, alphas: celer_any(A, y, alphas, "lasso", 1.0),
    ("celer", "logistic"): lambda A, y, alphas: celer_any(A, y, alphas, "logreg", float(y.size)),
    ("skglm", "squared"): lambda A, y, alphas, **options: skglm_any(A, y, alphas, "Quadratic", **options),
    ("skglm", "logistic"): lambda A, y, alphas, **options: skglm_any(A, y, alphas, "Logistic", **options),
}


# All runs


def run(method: str, loss: str, l2_weight: float, path: Path, limit: float) -> dict[str, Any]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--run", method, loss, str(l2_weight), "--file", str(path)]
    row = {"loss": loss, "l2_weight": l2_weight, "package": method}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return row | {"failure": f"more than {limit:g} s"}
    if done.returncode != 0:
        return row | {"failure": done.stderr.strip().splitlines()[-1][:100] if done.stderr else "it ended"}
    return row | json.loads(done.stdout.splitlines()[-1])


def rows_of(size: list[int], options: argparse.Namespace, *, with_peers: bool) -> list[dict[str, Any]]:
    """All runs of one size; the columns are made and removed, unless they are there."""
    path = options.folder / f"many_columns_{size[0]}_{size[1]}.npy"
    made = not path.exists()
    if made:
        part = path.with_suffix(".part")
        make_columns(part, *size)
        part.rename(path)
    found = []
    for loss, l2_weight in [(loss, l2_weight) for loss in options.loss or PEERS for l2_weight in (0.0, 1.0)]:
        methods = OURS[: 1 + with_peers] + (PEERS[loss] if with_peers and l2_weight == 0 else [])
        for method in methods:
            if "liblinear" not in method or size[0] * size[1] <= MOST_LIBLINEAR:
                found.append(run(method, loss, l2_weight, path, options.limit))
                print({name: value for name, value in found[-1].items() if name != "objectives"}, flush=True)
    if made:
        path.unlink()
    add_excess(found)
    return found


def add_excess(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        same = [
            other["objectives"] for other in rows if "objectives" in other and _problem(other) == _problem(row)
        ]
        if "objectives" in row and len(same) > 1:
            best = np.min(same, axis=0)
            row["excess"] = float(np.max((np.array(row["objectives"]) - best) / best))
    for row in rows:
        row.pop("objectives", None)


def _problem(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["loss"], row["l2_weight"]


def line(row: dict[str, Any]) -> list[str]:
    name = f"ell12, {row['package']}" if row["package"] in OURS else row["package"]
    head = [row["loss"], f"{row['l2_weight']:g}", name]
    if "failure" in row:
        return [*head, row["failure"], *7 * ["-"], row["measured"]]
    reads, excess = row["reads"], row.get("excess")
    return [
        *head,
        f"{row['seconds']:.1f} s",
        f"{row['cpu_seconds']:.1f} s",
        "-" if reads is None else f"{reads:.1f}",
        f"{row['memory']:.0f} MB",
        f"{row['with_files']:.0f} MB",
        f"{row['stationarity']:.1e}",
        "-" if excess is None else f"{excess:.1e}",
        str(row["support"]),
        row["measured"],
    ]


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    pair = {"type": int, "nargs": 2, "metavar": ("ROWS", "COLUMNS")}
    parser.add_argument("--size", **pair, action="append", help="with peers; may be repeated")
    parser.add_argument("--large", **pair, help="a size for ours alone; other results are kept")
    parser.add_argument(
        "--loss", choices=list(PEERS), action="append", help="this one alone; others' rows are kept"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--limit", type=float, default=900, help="seconds for a run")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        method, loss, l2_weight = options.run
        y = response(np.load(options.file, mmap_mode="r"))
        ours = method in OURS
        found = our_path(method, loss, float(l2_weight), options.file, y) if ours else None
        print(json.dumps(found or peers_path(method, loss, options.file, y)))
        return
    import study

    sizes = options.size or ([] if options.large else [[200, 5000], [1000, 100_000]])
    old = study.RESULTS / "many_columns.json"
    rows = json.loads(old.read_text())["rows"] if old.exists() else []
    for size in [*sizes, *([options.large] if options.large else [])]:
        found, name = rows_of(size, options, with_peers=size != options.large), f"{size[0]} x {size[1]:,}"
        made = {_problem(row) for row in found}
        rows = [row for row in rows if row["size"] != name or _problem(row) not in made]
        rows += [{"size": name, "measured": date.today().isoformat()} | row for row in found]
    tables = [
        f"## {size}\n\n" + study.table(HEADER, [line(row) for row in rows if row["size"] == size])
        for size in dict.fromkeys(row["size"] for row in rows)
    ]
    settings = {"strengths": STRENGTHS, "eps": EPS, "causal": CAUSAL, "share": SHARE, "copied": COPIED}
    settings |= {"threads": os.environ["OPENBLAS_NUM_THREADS"], "processors": os.cpu_count()}
    study.write("many_columns", __doc__ or "", settings, rows, tables, ["celer", "skglm", "numba"])


if __name__ == "__main__":
    main()

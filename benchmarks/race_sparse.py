"""Paths of 100 strengths of the Lasso: processor seconds to the worst relative duality gap along them.

Columns and observations are standardised, SNR 5, 50 nonzeros (the sparse data as in race.py); strengths fall to a
hundredth of the largest. The gap is (primal - dual) over ``||y||^2 / 2n``. Each method climbs its own tolerances;
a time is that of the loosest that meets the gap, of one run after one that may compile, all in one process (but R
in its own, by its own clock). l1-2 at its default tolerance stands below, for comparison with l1 at the same (it
has no gap). Text is weighted counts of words (tf-idf) drawn by Zipf's law, with 500 nonzeros. Of single logistic
fits with l1, the accuracy is how far the objective lies above the lowest found, relative to it. What the
constants of our paths decide stands last: each at other values, all else as it is.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse
from scipy.signal import lfilter

import ell12
import study
from race import Problem, coherent, paper, table, text_like


@dataclass(frozen=True, eq=False)
class PathProblem:
    """Standardised columns and observations, and the strengths of a path down to a hundredth of the largest."""

    name: str
    X: Any
    y: Any

    @property
    def alphas(self) -> np.ndarray:
        return 0.999 * float(np.abs(self.X.T @ self.y).max()) / len(self.y) * np.geomspace(1, 0.01, 100)

    def gap(self, coefs: np.ndarray) -> float:
        """The largest duality gap of the Lasso along the path, over ``||y||^2 / 2n``."""
        n, R = len(self.y), self.y[:, None] - self.X @ coefs
        scale = np.minimum(1, n * self.alphas / np.maximum(np.abs(self.X.T @ R).max(axis=0), 1e-300))
        primal = (R * R).sum(axis=0) / 2 / n + self.alphas * np.abs(coefs).sum(axis=0)
        dual = (self.y @ self.y - ((self.y[:, None] - scale * R) ** 2).sum(axis=0)) / 2 / n
        return float((primal - dual).max() / (self.y @ self.y / 2 / n))


def correlated(n: int, p: int, rho: float, count: int = 50, seed: int = 0) -> PathProblem:
    random = np.random.default_rng(seed)
    X = lfilter([math.sqrt(1 - rho**2)], [1.0, -rho], random.standard_normal((n, p + 50)), axis=1)[:, 50:]
    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    return PathProblem(f"path, {n} x {p}, correlation {rho}", X, observed(X, count, p, random))


def observed(X: Any, count: int, p: int, random: np.random.Generator) -> np.ndarray:
    """Standardised observations of so many of the first p columns, with noise."""
    y = X[:, random.choice(p, count, replace=False)] @ random.standard_normal(count)
    y = y + np.linalg.norm(y) / math.sqrt(5 * len(y)) * random.standard_normal(len(y))
    return (y - y.mean()) / y.std()


def words(n: int, p: int) -> PathProblem:
    """Texts of 100 to 1000 words, of which the p that most texts hold are counted and weighted."""
    random, every = np.random.default_rng(0), 2 * p
    lengths = 20 + random.lognormal(5.3, 0.8, n).astype(int)
    often = 1 / (np.arange(every) + 2.7)
    drawn = np.searchsorted(np.cumsum(often) / often.sum(), random.random(lengths.sum()))
    positions = np.repeat(np.arange(n), lengths), drawn
    counts = scipy.sparse.csr_array((np.ones(drawn.size), positions), shape=(n, every))
    counts.sum_duplicates()
    texts = np.bincount(counts.indices, minlength=every)
    kept = np.argsort(-texts, kind="stable")[:p]
    X = counts[:, kept] * (np.log((1 + n) / (1 + texts[kept])) + 1)
    X = scipy.sparse.csc_array(scipy.sparse.diags_array(1 / np.sqrt((X * X).sum(axis=1))) @ X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # liblinear takes no others
    return PathProblem(f"path, text {n} x {p}", X, observed(X, 500, 3000, random))


def path_problems() -> Iterator[PathProblem]:
    for n, p, rho in (
        (10_000, 1000, 0.0),
        (2000, 300, 0.5),
        (300, 3000, 0.0),
        (1000, 10_000, 0.9),
        (200, 20_000, 0.5),
    ):
        yield correlated(n, p, rho)
    sparse = text_like()
    yield PathProblem("path, sparse 20000 x 100000", sparse.A, np.asarray(sparse.b) / np.std(sparse.b))
    yield words(5000, 30_000)


def of_sklearn(problem: PathProblem, tol: float) -> np.ndarray:
    from sklearn.linear_model import lasso_path

    tall = problem.X.shape[0] > problem.X.shape[1]
    return lasso_path(problem.X, problem.y, alphas=problem.alphas, tol=tol, max_iter=10_000, precompute=tall)[1]


def of_celer(problem: PathProblem, tol: float) -> np.ndarray:
    from celer import celer_path

    return celer_path(problem.X, problem.y, "lasso", alphas=problem.alphas, tol=tol, max_iter=100)[1]


def of_skein(problem: PathProblem, tol: float) -> np.ndarray:
    from skein_glm import ElasticNetPathRegressor

    model = ElasticNetPathRegressor(
        alpha=1.0, lambdas=problem.alphas, fit_intercept=False, tol=tol, max_iter=10_000
    )
    return model.fit(problem.X, problem.y).coefs_.T


def of_adelie(problem: PathProblem, tol: float) -> np.ndarray:
    import adelie

    options = {"lmda_path": problem.alphas, "intercept": False, "early_exit": False, "progress_bar": False}
    X = np.asfortranarray(problem.X)
    return adelie.grpnet(X, adelie.glm.gaussian(problem.y), tol=tol, **options).betas.toarray().T


def of_skglm(problem: PathProblem, tol: float) -> np.ndarray:
    from skglm import Lasso

    model = Lasso(fit_intercept=False, tol=tol, max_iter=100, warm_start=True)
    return model.path(problem.X, problem.y, problem.alphas)[1]


GLMNET = """
suppressMessages(library(glmnet)); setwd(commandArgs(TRUE)[1]); tol <- as.numeric(commandArgs(TRUE)[2])
n <- readBin("size", "integer", 3); y <- readBin("y", "double", n[1]); alphas <- readBin("alphas", "double", 1e6)
values <- readBin("values", "double", if (n[3] > 0) n[3] else n[1] * n[2])
X <- if (n[3] == 0) matrix(values, n[1]) else new("dgCMatrix", x=values, Dim=n[1:2],
  i=readBin("indices", "integer", n[3]), p=readBin("indptr", "integer", n[2] + 1))
glmnet.control(fdev=0, devmax=1)
given <- list(X, y, lambda=alphas, thresh=tol, standardize=FALSE, intercept=FALSE, maxit=1e6)
time <- system.time(found <- do.call(glmnet, given))
writeBin(as.vector(as.matrix(found$beta)), "beta"); cat(time[1] + time[2])
"""


def of_glmnet(problem: PathProblem, tol: float) -> tuple[np.ndarray, float]:
    """The coefficients, and the seconds that R says; its tolerance is one of squares."""
    X, sparse = problem.X, scipy.sparse.issparse(problem.X)
    parts = {"size": np.array([*X.shape, X.nnz if sparse else 0], np.int32), "y": problem.y}
    parts |= {"alphas": problem.alphas, "values": X.data if sparse else X.ravel(order="F")}
    if sparse:
        parts |= {"indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
    with tempfile.TemporaryDirectory() as folder:
        for name, part in parts.items():
            part.tofile(Path(folder) / name)
        (Path(folder) / "race.R").write_text(GLMNET)
        command = ["Rscript", f"{folder}/race.R", folder, str(tol**2 / 1000)]  # its default is 1e-7
        seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return np.fromfile(Path(folder) / "beta").reshape(-1, X.shape[1]).T, float(seconds)


def of_ours(problem: PathProblem, tol: float) -> np.ndarray:
    return ell12.l12_path(problem.X, problem.y, alphas=problem.alphas, penalty=ell12.L1(), tol=tol).x


PATH_METHODS: dict[str, tuple[str, Callable[[PathProblem, float], Any]]] = {
    "ell12, l1": ("ell12", of_ours),
    "scikit-learn": ("scikit-learn", of_sklearn),
    "celer": ("celer", of_celer),
    "skein-glm": ("skein-glm", of_skein),
    "adelie": ("adelie", of_adelie),
    "skglm": ("skglm", of_skglm),
    "glmnet, in R": ("R", of_glmnet),
}


def path_points(problem: PathProblem, solve: Any, limit: float) -> Iterator[tuple[float, float]]:
    """Seconds and gap of each run; the first, which may compile, counts only where it takes too long."""
    for k, tol in enumerate([1e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10]):
        begin = time.process_time()
        coefs = solve(problem, tol)
        seconds = time.process_time() - begin
        if isinstance(coefs, tuple):
            coefs, seconds = coefs
        gap = problem.gap(coefs)
        if k > 0 or seconds > limit:
            yield seconds, gap
        if (k > 0 and gap <= 1e-6) or seconds > limit:
            return


def path_rows(limit: float, start: str) -> Iterator[dict[str, Any]]:
    """Every method climbs its own tolerances until its gap is 1e-6 or it takes longer than the limit."""
    for problem in path_problems():
        if not problem.name.startswith(start):
            continue
        for method, (package, solve) in PATH_METHODS.items():
            version = glmnet_version() if package == "R" else study.version_of(package)
            line = {"problem": problem.name, "method": method, "version": version}
            try:
                for seconds, gap in path_points(problem, solve, limit):
                    yield line | {"seconds": seconds, "accuracy": gap}
            except Exception as error:  # as above
                yield line | {"note": f"failed: {type(error).__name__}: {str(error)[:100]}"}
        begin = time.process_time()
        found = ell12.l12_path(problem.X, problem.y, alphas=problem.alphas)
        line = {"problem": problem.name, "method": "ell12, l1-2 at tol 1e-4", "version": study.version_of("ell12")}
        if found.converged:  # which is no gap: for comparison with the l1 path at this tol
            yield line | {"seconds": time.process_time() - begin, "accuracy": 1e-4}


def glmnet_version() -> str:
    try:
        command = ["Rscript", "-e", "cat(as.character(packageVersion('glmnet')))"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "not installed"


def classifier_rows(start: str) -> Iterator[dict[str, Any]]:
    """Single logistic fits with l1 over texts in two classes, at three shares of the largest strength."""
    from sklearn.linear_model import LogisticRegression

    texts = words(1000, 9738)
    X, labels = scipy.sparse.csr_matrix(texts.X), np.where(texts.y > np.median(texts.y), 1.0, -1.0)
    for share in (0.3, 0.1, 0.03):
        name = f"logistic, text 1000 x 9738, {share} of the largest"
        if not name.startswith(start):
            continue
        alpha = share * float(np.abs(X.T @ labels).max()) / 2000
        plain: dict[str, Any] = {"fit_intercept": False}
        liblinear = plain | {"solver": "liblinear", "l1_ratio": 1, "C": 1 / (1000 * alpha), "max_iter": 1000}
        methods: dict[str, Callable[[float], Any]] = {
            "ell12": lambda tol, own=alpha, plain=plain: ell12.L12Classifier(
                own, penalty=ell12.L1(), tol=tol, **plain
            ),
            "scikit-learn": lambda tol, given=liblinear: LogisticRegression(tol=tol, **given),
        }
        found = []
        for package, make in methods.items():
            line = {"problem": name, "method": "liblinear" if package == "scikit-learn" else "ell12"}
            for tol in (1e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
                begin = time.process_time()
                coef = make(tol).fit(X, labels).coef_.ravel()
                seconds = time.process_time() - begin
                value = float(np.logaddexp(0, -labels * (X @ coef)).mean() + alpha * np.abs(coef).sum())
                found.append(line | {"version": study.version_of(package), "seconds": seconds, "objective": value})
        best = min(row["objective"] for row in found)
        yield from (row | {"accuracy": row["objective"] / best - 1} for row in found)


# Of paths and of single fits.
CONSTANTS = {
    "ell12.solvers.gram_descent.SWEEPS": (30, 100, 300, 1000),
    "ell12.path.screened.GATHERED": (3, 10, 30, 100),
    "ell12.path.screened.FEW": (0, 50, 100, 10**6),
}
OF_FITS = {
    "ell12.solvers.working_set.FEW": (30, 100, 300),
    "ell12.solvers.working_set.CLOSER": (0.01, 0.1, 0.5),
    "ell12.solvers.working_set.FAR": (1, 100, 10**4),
    "ell12.solvers.working_set.CURVED": (0.0, 0.05, 0.5),
}


def constant_rows(start: str) -> Iterator[dict[str, Any]]:
    """l1-2 with a constant at other values: the least of three times of paths, one of fits; mean objectives."""
    if not "constants".startswith(start):
        return
    groups = {
        "100 x 400, correlation 0.9, 20 nonzeros, five of them": [
            correlated(100, 400, 0.9, 20, seed) for seed in range(5)
        ],
        "300 x 3000, correlation 0.0": [correlated(300, 3000, 0.0)],
        "200 x 20000, correlation 0.5": [correlated(200, 20_000, 0.5)],
        "1000 x 10000, correlation 0.9": [correlated(1000, 10_000, 0.9)],
    }
    cases = [(group, problems, CONSTANTS, solved_paths, 3) for group, problems in groups.items()]
    fits = [*(paper(i) for i in range(5)), coherent()]
    cases.append(("six fits of race.py", fits, OF_FITS, solved_fits, 1))
    for group, problems, constants, solved, repeats in cases:
        for constant, value in ((name, value) for name, values in constants.items() for value in values):
            with mock.patch(constant, value):
                seconds, objective = min(timed(solved, problems) for _ in range(repeats))
            line = {"problem": f"constants, {group}", "method": f"{constant.rpartition('.')[2]} = {value}"}
            yield line | {"version": study.version_of("ell12"), "seconds": seconds, "objective": objective}


def solved_paths(problem: PathProblem) -> float:
    """The mean objective."""
    results = ell12.l12_path(problem.X, problem.y, alphas=problem.alphas).results
    return float(np.mean([result.objective for result in results]))


def solved_fits(problem: Problem) -> float:
    return ell12.minimize(problem.loss(), problem.penalty, tol=1e-6).objective


def timed(solve: Callable[[Any], float], problems: list[Any]) -> tuple[float, float]:
    begin = time.process_time()
    objectives = [solve(problem) for problem in problems]
    return time.process_time() - begin, float(np.mean(objectives))


def plain_table(rows: list[dict[str, Any]]) -> str:
    cells = [[row["method"], study.with_unit(row["seconds"]), f"{row['objective']:.9g}"] for row in rows]
    return f"## {rows[0]['problem']}\n\n" + study.table(["constant", "time", "mean objective"], cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds after which a method climbs no further")
    parser.add_argument("--problem", default="", help="only the problems whose name begins so")
    options = parser.parse_args()
    rows = []
    warnings.simplefilter("ignore")
    start = options.problem
    for row in chain(path_rows(options.limit, start), classifier_rows(start), constant_rows(start)):
        print(row, flush=True)
        rows.append(row)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["problem"], []).append(row)
    tables = [(plain_table if name.startswith("constants") else table)(some) for name, some in groups.items()]
    peers = [package for package, _ in PATH_METHODS.values() if package != "R"]
    about = [f"Measured on {study.processor()}, one thread.", *tables]
    study.write("race_sparse", __doc__ or "", vars(options), rows, about, peers)


if __name__ == "__main__":
    main()

"""Paths of 100 strengths of the Lasso: processor seconds to the worst relative duality gap along them.

Columns and observations are standardised, SNR 5, 50 nonzeros (the sparse data as in race.py); strengths fall to a
hundredth of the largest. The gap is (primal - dual) over ``||y||^2 / 2n``. Each method climbs its own tolerances;
a time is that of the loosest that meets the gap, of one run after one that may compile, all in one process. l1-2
at its default tolerance stands below, for comparison with l1 at the same (it has no gap).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

import ell12
import study
from race import table, text_like


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


def path_problems() -> Iterator[PathProblem]:
    for n, p, rho in (
        (10_000, 1000, 0.0),
        (2000, 300, 0.5),
        (300, 3000, 0.0),
        (1000, 10_000, 0.9),
        (200, 20_000, 0.5),
    ):
        random = np.random.default_rng(0)
        X = lfilter([math.sqrt(1 - rho**2)], [1.0, -rho], random.standard_normal((n, p + 50)), axis=1)[:, 50:]
        X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
        y = X[:, random.choice(p, 50, replace=False)] @ random.standard_normal(50)
        y = y + np.linalg.norm(y) / math.sqrt(5 * n) * random.standard_normal(n)
        yield PathProblem(f"path, {n} x {p}, correlation {rho}", X, (y - y.mean()) / y.std())
    sparse = text_like()
    yield PathProblem("path, sparse 20000 x 100000", sparse.A, np.asarray(sparse.b) / np.std(sparse.b))


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


def of_ours(problem: PathProblem, tol: float) -> np.ndarray:
    return ell12.l12_path(problem.X, problem.y, alphas=problem.alphas, penalty=ell12.L1(), tol=tol).x


PATH_METHODS: dict[str, tuple[str, Callable[[PathProblem, float], np.ndarray]]] = {
    "ell12, l1": (
        "ell12",
        lambda p, tol: ell12.l12_path(p.X, p.y, alphas=p.alphas, penalty=ell12.L1(), tol=tol).x,
    ),
    "scikit-learn": ("scikit-learn", of_sklearn),
    "celer": ("celer", of_celer),
    "skein-glm": ("skein-glm", of_skein),
    "adelie": ("adelie", of_adelie),
}


def path_points(problem: PathProblem, solve: Any, limit: float) -> Iterator[tuple[float, float]]:
    """Seconds and gap of each run; the first, which may compile, counts only where it takes too long."""
    for k, tol in enumerate([1e-2, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10]):
        begin = time.process_time()
        coefs = solve(problem, tol)
        seconds, gap = time.process_time() - begin, problem.gap(coefs)
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
            line = {"problem": problem.name, "method": method, "version": study.version_of(package)}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds after which a method climbs no further")
    parser.add_argument("--problem", default="", help="only the problems whose name begins so")
    options = parser.parse_args()
    rows = []
    for row in path_rows(options.limit, options.problem):
        print(row, flush=True)
        rows.append(row)
    names = dict.fromkeys(row["problem"] for row in rows)
    tables = [table([row for row in rows if row["problem"] == name]) for name in names]
    peers = [package for package, _ in PATH_METHODS.values()]
    about = [f"Measured on {study.processor()}, one thread.", *tables]
    study.write("race_sparse", __doc__ or "", vars(options), rows, about, peers)


if __name__ == "__main__":
    main()

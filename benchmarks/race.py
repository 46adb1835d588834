"""Time to a given stationarity on nonconvex problems, ell12 and its peers side by side.

The problems minimise ``1/2 ||A x - b||^2 + alpha (||x||_1 - ||x||_2)`` (one has the logistic loss);
stationarity is the largest violation of the first-order condition over alpha. Every method starts from zero.
Each point is a run of its own: the budget (steps or a tolerance) rises until the run reaches 1e-8 or takes
longer than the limit. Times are medians over rounds in which the methods take turns; a run of more than 0.3
seconds is timed once. The Lipschitz constant is given to the peers that ask for one; our solvers compute it
within their time.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from scipy.signal import lfilter

import ell12
import study
from ell12.prox import prox_l12

TARGETS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
LIMIT, ROUNDS, SHORT = 2.0, 3, 0.3  # seconds of one run; rounds of the runs that take less than so many seconds
STEPS = [int(2 ** (k / 2)) for k in range(4, 40)]
TOLERANCES = [10.0**-k for k in range(1, 9)]


@dataclass(frozen=True, eq=False)
class Problem:
    """``loss(A x, b) + alpha (||x||_1 - l2_weight ||x||_2)``, the squared loss being a sum, not a mean."""

    name: str
    A: Any
    b: Any
    alpha: float
    l2_weight: float = 1.0
    kind: type = ell12.SquaredLoss

    def loss(self) -> Any:
        """A fresh loss, which has computed nothing yet."""
        return self.kind(self.A, self.b)

    @property
    def penalty(self) -> Any:
        return ell12.L12(self.alpha, self.l2_weight)

    def objective(self, x: np.ndarray) -> float:
        loss = self.loss()
        return loss.value(loss.point(x)) + self.penalty.value(x)


def paper(i: int) -> Problem:
    """The paper's compressed sensing, 500 x 2000."""
    data = ell12.datasets.compressed_sensing(0)
    return Problem(f"paper, alpha = 0.01/4^{i}", data.A, data.b, 0.01 * 0.25**i)


def coherent() -> Problem:
    """Cosines with oversampling 10, one draw a row: neighbouring columns are nearly equal."""
    random = np.random.default_rng(0)
    n, p = 500, 2000
    A = np.cos(2 * np.pi * np.outer(random.random(n), np.arange(1, p + 1)) / 10) / math.sqrt(n)
    x = np.zeros(p)
    x[np.arange(20) * 100 + 50] = random.standard_normal(20)
    b = A @ x + 0.01 * random.standard_normal(n)
    return Problem("coherent cosines, 500 x 2000", A, b, 0.01 * float(np.max(np.abs(A.T @ b))))


def correlated(n: int, p: int, name: str, share: float, nonzero: int = 50) -> Problem:
    """Gaussian rows whose neighbouring columns have correlation 0.9; alpha is a share of max |A'b|."""
    random = np.random.default_rng(0)
    A = lfilter([math.sqrt(1 - 0.9**2)], [1.0, -0.9], random.standard_normal((n, p + 50)), axis=1)[:, 50:]
    A = np.ascontiguousarray(A) / math.sqrt(n)
    x = np.zeros(p)
    x[random.choice(p, nonzero, replace=False)] = random.standard_normal(nonzero)
    b = A @ x
    b += 0.2 * np.linalg.norm(b) / math.sqrt(n) * random.standard_normal(n)
    return Problem(f"{name}, {n} x {p}", A, b, share * float(np.max(np.abs(A.T @ b))))


def text_like() -> Problem:
    """Sparse, 20,000 x 100,000, one entry in a thousand, columns of falling frequency, rows of length 1."""
    random = np.random.default_rng(0)
    n, p, size = 20_000, 100_000, 2_000_000
    columns = np.minimum(p * random.random(size) ** 2, p - 1).astype(np.int32)
    rows = random.integers(0, n, size).astype(np.int32)
    A = scipy.sparse.csr_array((random.lognormal(size=size), (rows, columns)), shape=(n, p))
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
    A = scipy.sparse.csc_array(scipy.sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ A)
    x = np.zeros(p)
    x[random.choice(2000, 100, replace=False)] = random.standard_normal(100)
    b = A @ x + 0.05 * random.standard_normal(n)
    return Problem("sparse text-like, 20000 x 100000", A, b, 0.05 * float(np.max(np.abs(A.T @ b))))


def breast_cancer() -> Problem:
    """Logistic loss on scikit-learn's breast cancer data, standardised."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    A = (X - X.mean(axis=0)) / X.std(axis=0)
    return Problem("logistic, breast cancer, 569 x 30", A, 2.0 * y - 1, 2.0, 0.5, ell12.LogisticLoss)


PROBLEMS: list[Callable[[], Problem]] = [
    *(lambda i=i: paper(i) for i in range(5)),
    coherent,
    lambda: correlated(500, 20_000, "correlated wide", 0.05),
    lambda: correlated(50_000, 500, "correlated tall", 0.01),
    text_like,
    breast_cancer,
]


@dataclass(frozen=True)
class Method:
    """``solve(problem, budget)``; ``fits(problem)`` says whether it can."""

    name: str
    package: str
    budgets: list[Any]
    solve: Callable[[Problem, Any], np.ndarray]
    fits: Callable[[Problem], bool] = lambda _: True


def squared(problem: Problem) -> bool:
    return problem.kind is ell12.SquaredLoss


def dense_squared(problem: Problem) -> bool:
    return squared(problem) and not scipy.sparse.issparse(problem.A)


def ours(name: str, solver: Any, fits: Callable[[Problem], bool] = lambda _: True) -> Method:
    run = ell12.Run(max_seconds=LIMIT)

    def solve(problem: Problem, tol: float) -> np.ndarray:
        found = ell12.minimize(problem.loss(), problem.penalty, solver=solver, tol=tol, max_iter=10**6, run=run)
        return found.x

    return Method(name, "ell12", TOLERANCES, solve, fits)


@cache
def lipschitz(problem: Problem) -> float:
    """Computed once, in nobody's time."""
    return problem.loss().lipschitz()


def scico() -> Method:
    import jax

    jax.config.update("jax_enable_x64", True)
    import scico.numpy as snp
    from scico.functional import L1MinusL2Norm
    from scico.linop import MatrixOperator
    from scico.loss import SquaredL2Loss
    from scico.optimize.pgm import AcceleratedPGM

    def solve(problem: Problem, steps: int) -> np.ndarray:
        loss = SquaredL2Loss(y=snp.array(problem.b), A=MatrixOperator(snp.array(problem.A)))
        options = {"L0": lipschitz(problem), "x0": snp.zeros(problem.A.shape[1]), "maxiter": steps}
        penalty = problem.alpha * L1MinusL2Norm()
        return np.asarray(AcceleratedPGM(f=loss, g=penalty, itstat_options={"display": False}, **options).solve())

    return Method("SCICO, AcceleratedPGM", "scico", STEPS, solve, dense_squared)


def sporco() -> Method:
    from sporco.pgm import bpdn
    from sporco.prox import prox_dl1l2

    class L1MinusL2(bpdn.BPDN):
        """Its basis pursuit denoising with its prox of the difference of norms."""

        def prox_g(self, V: Any) -> Any:
            return np.asarray(prox_dl1l2(V, (self.lmbda / self.L) * self.wl1), dtype=self.dtype)

        def obfn_g(self, X: Any) -> Any:
            return self.lmbda * (np.sum(np.abs(X)) - np.linalg.norm(X))

    def solve(problem: Problem, steps: int) -> np.ndarray:
        options = {"Verbose": False, "MaxMainIter": steps, "RelStopTol": 0.0, "L": lipschitz(problem)}
        solver = L1MinusL2(problem.A, problem.b[:, None], problem.alpha, L1MinusL2.Options(options))
        return np.asarray(solver.solve())[:, 0]

    return Method("SPORCO, PGM", "sporco", STEPS, solve, dense_squared)


def pyproximal() -> Method:
    import pylops
    import pyproximal as package
    from pyproximal.optimization.primal import AcceleratedProximalGradient

    class L1MinusL2(package.ProxOperator):
        """Its abstract operator with the closed form: the package has no l1-2."""

        def __init__(self, alpha: float) -> None:
            super().__init__(None, False)
            self.alpha = alpha

        def __call__(self, x: Any) -> float:
            return self.alpha * float(np.sum(np.abs(x)) - np.linalg.norm(x))

        def prox(self, x: Any, tau: float) -> Any:
            return prox_l12(x, self.alpha * tau)

    def solve(problem: Problem, steps: int) -> np.ndarray:
        loss = package.L2(Op=pylops.MatrixMult(problem.A), b=problem.b)
        options = {"x0": np.zeros(problem.A.shape[1]), "tau": 1 / lipschitz(problem), "niter": steps}
        return AcceleratedProximalGradient(
            loss, L1MinusL2(problem.alpha), acceleration="fista", show=False, **options
        )

    return Method("PyProximal, FISTA", "pyproximal", STEPS, solve, squared)


def difference_of_norms() -> Any:
    """The l1-2 penalty as skglm's compiled code takes it."""
    from numba import float64
    from skglm.penalties import L1

    class L1MinusL2(L1):
        """The difference of norms as a penalty of its kind."""

        def get_spec(self) -> Any:
            return (("alpha", float64),)

        def params_to_dict(self) -> dict[str, Any]:
            return {"alpha": self.alpha}

        def __init__(self, alpha):
            self.alpha = alpha

        def value(self, w):
            return self.alpha * (np.sum(np.abs(w)) - np.sqrt(np.sum(w**2)))

        def prox_vec(self, w, stepsize):
            t = self.alpha * stepsize
            above = np.maximum(np.abs(w) - t, 0.0)
            square = np.sum(above**2)
            if square > 0:
                return np.sign(w) * above * (1 + t / np.sqrt(square))
            return w * (np.abs(w) == np.max(np.abs(w)))

        def subdiff_distance(self, w, grad, ws):  # noqa: ARG002
            return np.ones(ws.shape[0], dtype=w.dtype)  # its steps alone end a run

    return L1MinusL2


def skglm_fista() -> Method:
    from skglm.datafits import Quadratic
    from skglm.solvers import FISTA
    from skglm.utils.jit_compilation import compiled_clone

    L1MinusL2 = difference_of_norms()

    def solve(problem: Problem, steps: int) -> np.ndarray:
        penalty = compiled_clone(L1MinusL2(problem.alpha / problem.A.shape[0]))
        sparse = scipy.sparse.issparse(problem.A)
        A = scipy.sparse.csc_matrix(problem.A) if sparse else np.asfortranarray(problem.A)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FISTA(max_iter=steps, tol=1e-14).solve(A, problem.b, compiled_clone(Quadratic()), penalty)[0]

    return Method("skglm, FISTA", "skglm", STEPS, solve, squared)


METHODS: list[Callable[[], Method]] = [
    lambda: ours("ell12, default", None),
    lambda: ours("ell12, the paper's nmAPG", ell12.NonmonotoneAPG()),
    lambda: ours("ell12, the paper's SCP", ell12.SequentialConvex()),
    lambda: ours("ell12, the paper's DCA", ell12.DCA(), dense_squared),
    scico,
    sporco,
    pyproximal,
    skglm_fista,
]


@dataclass
class Point:
    """One budget of one method: its times, and where it ended."""

    budget: Any
    accuracy: float
    objective: float
    times: list[float] = field(default_factory=list)


def race(problem: Problem, methods: list[Method], limit: float) -> Iterator[dict[str, Any]]:
    """A row for every point of every method; a method that fails has one row that says why."""
    points: dict[str, list[Point]] = {}
    for method in methods:
        line = {"problem": problem.name, "method": method.name, "version": study.version_of(method.package)}
        try:
            points[method.name] = climb(problem, method, limit)
        except Exception as error:  # a peer may fail in any way, and the rest goes on
            yield line | {"note": f"failed: {type(error).__name__}: {str(error)[:100]}"}
    runs = [(method, point) for method in methods for point in points.get(method.name, [])]
    for _ in range(ROUNDS - 1):
        for method, point in runs:
            if point.times[0] < SHORT:
                point.times.append(timed(problem, method, point.budget)[0])
    for method, point in runs:
        line = {"problem": problem.name, "method": method.name, "version": study.version_of(method.package)}
        ended = {"accuracy": point.accuracy, "objective": point.objective}
        yield line | {"seconds": statistics.median(point.times)} | ended


def climb(problem: Problem, method: Method, limit: float) -> list[Point]:
    """Rising budgets until the last target or the limit; the first run, which may compile, is not counted."""
    method.solve(problem, method.budgets[0])
    points: list[Point] = []
    for budget in method.budgets:
        seconds, x = timed(problem, method, budget)
        accuracy = ell12.stationarity(problem.loss(), problem.penalty, x)
        points.append(Point(budget, accuracy, problem.objective(x), [seconds]))
        if accuracy <= TARGETS[-1] or seconds > limit:
            break
    return points


def timed(problem: Problem, method: Method, budget: Any) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    x = method.solve(problem, budget)
    return time.process_time() - begin, x


def table(rows: list[dict[str, Any]]) -> str:
    """One problem: a line a method, the fastest time to each stationarity in bold."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    times = {method: [time_to(target, points) for target in TARGETS] for method, points in groups.items()}
    best = [min((t[k] for t in times.values() if t[k] is not None), default=None) for k in range(len(TARGETS))]
    lines = []
    for method, points in groups.items():
        cells = [shown(t, b) for t, b in zip(times[method], best, strict=True)]
        values = [p["objective"] for p in points if "objective" in p]
        objective = f"{min(values):.9g}" if values else points[0].get("note", "")
        lines.append([method, points[0]["version"], *cells, objective])
    header = ["method", "version", *(f"to {target:.0e}" for target in TARGETS), "best objective"]
    return f"## {rows[0]['problem']}\n\n" + study.table(header, lines)


def time_to(target: float, points: list[dict[str, Any]]) -> float | None:
    """The least time of a run that reached the accuracy."""
    reached = [p["seconds"] for p in points if p.get("accuracy", math.inf) <= target]
    return min(reached, default=None)


def shown(seconds: float | None, best: float | None) -> str:
    text = "-" if seconds is None else study.with_unit(seconds)
    return f"**{text}**" if seconds is not None and seconds == best else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of one run")
    parser.add_argument("--problem", default="", help="only the problems whose name begins so")
    options = parser.parse_args()
    methods, rows = [], []
    for make in METHODS:
        try:
            methods.append(make())
        except ImportError as error:
            print(f"not measured: {error}", flush=True)
    for make_problem in PROBLEMS:
        problem = make_problem()
        if problem.name.startswith(options.problem):
            rows += list(race(problem, [method for method in methods if method.fits(problem)], options.limit))
            print(table([row for row in rows if row["problem"] == problem.name]), flush=True)
    tables = [
        table([row for row in rows if row["problem"] == name])
        for name in dict.fromkeys(r["problem"] for r in rows)
    ]
    study.write(
        "race", __doc__ or "", vars(options), rows, [f"Measured on {study.processor()}, one thread.", *tables]
    )


if __name__ == "__main__":
    main()

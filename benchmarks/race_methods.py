"""The solvers that race: each a function of a problem and a budget that returns x; budgets are tried in turn.

A peer that limits its steps gets rising numbers of them, one that has a tolerance falling ones. The Lipschitz
constant is given to the peers that ask for one; our own solvers compute it within their time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import ell12
from ell12.prox import prox_l12
from race_problems import Problem

LIMIT = 2.0  # seconds of one run
STEPS = [int(2 ** (k / 2)) for k in range(4, 40)]  # 4 to about 740,000, a factor of 1.4 apart
TOLERANCES = [10.0**-k for k in range(1, 9)]
LOOSE = [10.0 ** (k / 2) for k in range(8, -2, -1)]
FINE = [10.0 ** -(k / 2) for k in range(2, 29)]


@dataclass(frozen=True)
class Method:
    """``solve(problem, budget)``; ``fits(problem)`` says whether it can."""

    name: str
    package: str
    budgets: list[Any]
    solve: Callable[[Problem, Any], np.ndarray]
    fits: Callable[[Problem], bool] = lambda _: True


def ours(name: str, solver: Any, fits: Callable[[Problem], bool] = lambda _: True) -> Method:
    def solve(problem: Problem, tol: float) -> np.ndarray:
        options = {"tol": tol, "max_iter": 10**6, "max_seconds": LIMIT}
        return ell12.minimize(problem.loss(), problem.penalty, solver=solver, **options).x

    return Method(name, "ell12", TOLERANCES, solve, fits)


def ours_lasso() -> Method:
    """The default solver on the convex problem; looser and finer tolerances, since the gap is what is measured."""

    def solve(problem: Problem, tol: float) -> np.ndarray:
        return ell12.minimize(problem.loss(), problem.penalty, tol=tol, max_iter=10**6).x

    return Method("ell12", "ell12", [*LOOSE, *FINE], solve)


def dense_squared(problem: Problem) -> bool:
    return problem.kind is ell12.SquaredLoss and not scipy.sparse.issparse(problem.A)


def squared(problem: Problem) -> bool:
    return problem.kind is ell12.SquaredLoss


class Lipschitz:
    """Constants by problem, computed once and not in anyone's time."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def __call__(self, problem: Problem) -> float:
        if problem.name not in self.known:
            self.known[problem.name] = problem.loss().lipschitz()
        return self.known[problem.name]


lipschitz = Lipschitz()


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
        solver = AcceleratedPGM(
            f=loss,
            g=problem.alpha * L1MinusL2Norm(),
            L0=lipschitz(problem),
            x0=snp.zeros(problem.A.shape[1]),
            maxiter=steps,
            itstat_options={"display": False},
        )
        return np.asarray(solver.solve())

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
        options = L1MinusL2.Options(options)
        return np.asarray(L1MinusL2(problem.A, problem.b[:, None], problem.alpha, options).solve())[:, 0]

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
        return AcceleratedProximalGradient(
            loss,
            L1MinusL2(problem.alpha),
            x0=np.zeros(problem.A.shape[1]),
            tau=1 / lipschitz(problem),
            niter=steps,
            acceleration="fista",
            show=False,
        )

    return Method("PyProximal, FISTA", "pyproximal", STEPS, solve, squared)


def skglm_fista() -> Method:
    from skglm.datafits import Quadratic
    from skglm.solvers import FISTA
    from skglm.utils.jit_compilation import compiled_clone

    from race_skglm import L1MinusL2

    def solve(problem: Problem, steps: int) -> np.ndarray:
        n = problem.A.shape[0]
        datafit, penalty = compiled_clone(Quadratic()), compiled_clone(L1MinusL2(problem.alpha / n))
        A = (
            scipy.sparse.csc_matrix(problem.A)
            if scipy.sparse.issparse(problem.A)
            else np.asfortranarray(problem.A)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FISTA(max_iter=steps, tol=1e-14).solve(A, problem.b, datafit, penalty)[0]

    return Method("skglm, FISTA", "skglm", STEPS, solve, squared)


def skglm_lasso() -> Method:
    from skglm import Lasso

    return _lasso(
        "skglm, Lasso", "skglm", lambda alpha, tol: Lasso(alpha, tol=tol, max_iter=1000, fit_intercept=False)
    )


def celer_lasso() -> Method:
    from celer import Lasso

    return _lasso(
        "celer, Lasso", "celer", lambda alpha, tol: Lasso(alpha, tol=tol, max_iter=1000, fit_intercept=False)
    )


def sklearn_lasso() -> Method:
    from sklearn.linear_model import Lasso

    return _lasso(
        "scikit-learn, Lasso",
        "scikit-learn",
        lambda alpha, tol: Lasso(alpha, tol=tol, max_iter=10**6, fit_intercept=False),
    )


def _lasso(name: str, package: str, make: Callable[[float, float], Any]) -> Method:
    layouts: dict[str, Any] = {}

    def layout(problem: Problem) -> Any:
        """A in the order that coordinate descent wants, made before the race."""
        if problem.name not in layouts:
            layouts.clear()
            sparse = scipy.sparse.issparse(problem.A)
            layouts[problem.name] = scipy.sparse.csc_matrix(problem.A) if sparse else np.asfortranarray(problem.A)
        return layouts[problem.name]

    def solve(problem: Problem, tol: float) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(problem.alpha / problem.A.shape[0], tol).fit(layout(problem), problem.b).coef_

    return Method(name, package, FINE, solve)


def methods(makers: list[Callable[[], Method]]) -> Iterator[Method | tuple[str, str]]:
    """The methods, or name and reason where one cannot be imported."""
    for make in makers:
        try:
            yield make()
        except Exception as error:  # a peer may fail in any way; the table says how, and the rest goes on
            yield make.__name__, f"not measured: {type(error).__name__}: {error}"


L12_METHODS: list[Callable[[], Method]] = [
    lambda: ours("ell12, default", None),
    lambda: ours("ell12, the paper's nmAPG", ell12.NonmonotoneAPG()),
    lambda: ours("ell12, the paper's SCP", ell12.SequentialConvex()),
    lambda: ours("ell12, the paper's DCA", ell12.DCA(), dense_squared),
    scico,
    sporco,
    pyproximal,
    skglm_fista,
]
LASSO_METHODS: list[Callable[[], Method]] = [ours_lasso, celer_lasso, skglm_lasso, sklearn_lasso]

"""What solvers need is declared, and compared once with what they are given."""

import time

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from ell12 import (
    DCA,
    FISTA,
    L12,
    MCP,
    HuberLoss,
    NonmonotoneAPG,
    Run,
    SequentialConvex,
    SquaredLoss,
    Status,
    WorkingSet,
    minimize,
    stationarity,
)
from ell12.penalties import Lp
from ell12.protocols import (
    Batch,
    ColumnLoss,
    DifferencePenalty,
    Iterate,
    Loss,
    Penalty,
    PiecewisePenalty,
    Point,
    Solver,
    missing,
    offers,
)
from ell12.solvers import SAGA, ProximalGradient, ProxSVRG, SupportNewton


class Poisson(Loss):
    """``sum_i exp((A x)_i) - b_i (A x)_i``, by the protocol alone; its gradient has no Lipschitz constant."""

    def __init__(self, A, b, constant=np.inf):
        self.A, self.b, self.constant_ = A, b, constant

    def point(self, x):
        return Point(x, self.A @ x)

    def start(self):
        return np.zeros(self.A.shape[1])

    def value(self, point):
        with np.errstate(over="ignore"):
            return float(np.sum(np.exp(point.prediction) - self.b * point.prediction))

    def slope(self, point):
        with np.errstate(over="ignore"):
            return np.exp(point.prediction) - self.b

    def gradient_of(self, slope):
        return self.A.T @ slope

    def gradient(self, point):
        return self.gradient_of(self.slope(point))

    def divergence(self, point, base):
        move = point.prediction - base.prediction
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(np.exp(base.prediction) * (np.expm1(move) - move)))

    def lipschitz(self):
        return self.constant_

    def batches(self, size, random=None):
        count = -(-len(self.b) // size)
        for index in range(count) if random is None else random.permutation(count):
            rows = slice(int(index), None, count)
            yield Batch(Poisson(self.A[rows], self.b[rows]), int(index), count, rows)

    def proximal(self, weight):
        def solve(q, start):
            x = start
            for _ in range(50):
                rate = np.exp(self.A @ x)
                slope = self.A.T @ (rate - self.b) + weight * (x - q)
                x = x - np.linalg.solve(self.A.T @ (rate[:, None] * self.A) + weight * np.eye(len(x)), slope)
            return x

        return solve


def counts(seed=0, m=60, n=8):
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n)) / 2
    x = np.where(np.arange(n) < 3, [1.0, -1.0, 0.5] + [0.0] * (n - 3), 0.0)
    return A, random.poisson(np.exp(A @ x)).astype(float)


def lowest(A, b, alpha):
    """The lasso's minimum by a solver of smooth problems with bounds: x is the difference of two parts >= 0."""
    n = A.shape[1]

    def value(parts):
        z = A @ (parts[:n] - parts[n:])
        slope = A.T @ (np.exp(z) - b)
        return np.sum(np.exp(z) - b * z) + alpha * parts.sum(), np.concatenate([slope, -slope]) + alpha

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    bounds = [(0, None)] * (2 * n)
    return scipy_minimize(value, np.zeros(2 * n), jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


STOCHASTIC = ProxSVRG(batch_size=8), SAGA(batch_size=8)
SOLVERS = None, ProximalGradient(), FISTA(), NonmonotoneAPG(), SequentialConvex(), DCA(), *STOCHASTIC


@pytest.mark.parametrize("unknown", [np.inf, np.nan, None])
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_a_lipschitz_constant_that_is_infinite_or_unknown_leads_to_backtracking(solver, unknown):
    A, b = counts()
    result = minimize(Poisson(A, b, unknown), L12(2.0, 0.0), solver=solver, tol=1e-6, max_iter=20_000)
    assert result.converged
    assert result.objective == pytest.approx(lowest(A, b, 2.0), rel=1e-8)


def test_a_first_step_that_overflows_is_shortened():
    A, b = counts()
    result = minimize(Poisson(300 * A, b), L12(2.0, 0.0), tol=1e-4, max_iter=20_000)
    assert result.status in (Status.CONVERGED, Status.ROUNDING)
    assert result.objective == pytest.approx(lowest(300 * A, b, 2.0), rel=1e-6)


def test_stationarity_has_a_step_where_there_is_no_lipschitz_constant():
    A, b = counts()

    class Plain(Penalty):
        """L12 with what every penalty has."""

        alpha = 2.0
        value = staticmethod(L12(2.0, 0.0).value)
        prox = staticmethod(L12(2.0, 0.0).prox)

    result = minimize(Poisson(A, b), L12(2.0, 0.0), tol=1e-8)
    assert stationarity(Poisson(A, b), Plain(), result.x) < 1e-6
    assert stationarity(Poisson(A, b), Plain(), result.x + 0.1) > 1e-2


class Columns:
    """A loss with columns by most of the protocol: it does not say whether it is quadratic."""

    def __init__(self, loss):
        for name in (*missing(object(), ColumnLoss),):
            if name not in ("is_quadratic", "for_run"):
                setattr(self, name, getattr(loss, name))

    def for_run(self):
        return self


def test_a_loss_that_lacks_a_part_of_a_capability_is_solved_by_the_next_solver():
    A, b = counts()
    expected = minimize(SquaredLoss(A, b), L12(1.0))
    result = minimize(Columns(SquaredLoss(A, b)), L12(1.0))
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    with pytest.raises(TypeError, match=r"WorkingSet needs .*; the loss Columns lacks is_quadratic$"):
        minimize(Columns(SquaredLoss(A, b)), L12(1.0), solver=WorkingSet())


def test_the_error_names_the_solver_and_what_is_missing():
    A, b = counts()
    with pytest.raises(TypeError, match=r"SupportNewton needs a penalty .* the penalty Lp lacks .*least_slope"):
        minimize(SquaredLoss(A, b), Lp(1.0), solver=SupportNewton())
    with pytest.raises(TypeError, match=r"SequentialConvex needs .* Lp lacks convex, subtracted_gradient"):
        minimize(SquaredLoss(A, b), Lp(1.0), solver=SequentialConvex())
    with pytest.raises(TypeError, match=r"loss must be a Loss .* without .*divergence"):
        minimize(type("Few", (), dict.fromkeys(("point", "start", "value", "gradient", "lipschitz")))(), L12(1.0))


class Listed(Solver):
    """A solver whose iterates are a list."""

    def iterates(self, loss, penalty, start):
        return [Iterate(start, 0.0, 0.0)]


def test_iterates_must_be_an_iterator():
    A, b = counts()
    with pytest.raises(TypeError, match=r"Listed.iterates must be a generator .*, got list"):
        minimize(SquaredLoss(A, b), L12(1.0), solver=Listed())


class Silent(DifferencePenalty):
    """MCP as a difference of convex functions that does not know its violations."""

    def __init__(self, alpha, gamma):
        self.alpha, self._inside = alpha, MCP(alpha, gamma)

    def value(self, x):
        return self._inside.value(x)

    def prox(self, x, step):
        return self._inside.prox(x, step)

    @property
    def convex(self):
        return self._inside.convex

    def subtracted_gradient(self, x):
        return self._inside.subtracted_gradient(x)


@pytest.mark.parametrize("solver", [SequentialConvex(), DCA(), NonmonotoneAPG()], ids=lambda s: type(s).__name__)
def test_stationarity_is_the_same_number_whether_or_not_a_penalty_knows_its_violation(solver):
    random = np.random.default_rng(3)
    A = random.standard_normal((40, 80))
    b = A @ np.where(np.arange(80) < 5, 2.0, 0.0) + 0.1 * random.standard_normal(40)
    loss, silent, whole = SquaredLoss(A, b), Silent(5.0, 0.1), MCP(5.0, 0.1)
    assert offers(silent, DifferencePenalty)
    assert not offers(silent, PiecewisePenalty)
    for x in (minimize(loss, silent, solver=solver, tol=1e-4).x, random.standard_normal(80)):
        assert stationarity(loss, silent, x) == pytest.approx(stationarity(loss, whole, x), rel=1e-6, abs=1e-9)
    results = [minimize(loss, penalty, solver=solver, tol=1e-4) for penalty in (silent, whole)]
    assert results[0].status == results[1].status == Status.CONVERGED
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-9)


def test_max_seconds_ends_a_long_step_too():
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 300))
    loss = HuberLoss(A, A @ np.ones(300) + random.standard_cauchy(200), delta=0.1)
    begin = time.perf_counter()
    result = minimize(loss, L12(1.0), solver=DCA(inner_tol=1e-12), tol=0, run=Run(max_seconds=0.5))
    assert result.status is Status.MAX_SECONDS
    assert time.perf_counter() - begin < 5
    assert np.isfinite(result.objective)

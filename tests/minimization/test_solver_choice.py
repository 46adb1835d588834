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
    PoissonLoss,
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
    ColumnLoss,
    DifferencePenalty,
    Iterate,
    Loss,
    Penalty,
    PiecewisePenalty,
    Solver,
    missing,
    offers,
)
from ell12.solvers import SAGA, ProximalGradient, ProxSVRG, SupportNewton


class Part:
    """A loss that offers some parts of another alone, by the protocol."""

    def __init__(self, loss, names, **replaced):
        vars(self).update({name: getattr(loss, name) for name in names if name != "for_run"} | replaced)

    def for_run(self):
        return self


def poisson(A, b, constant=np.inf):
    """A loss whose gradient has no Lipschitz constant, or one that is not known."""
    names = (*missing(object(), Loss), "slope", "gradient_of", "batches", "proximal")
    return Part(PoissonLoss(A, b), names, lipschitz=lambda: constant)


def quadratic_unsaid(A, b):
    """A loss with columns that does not say whether it is quadratic."""
    return Part(SquaredLoss(A, b), [name for name in missing(object(), ColumnLoss) if name != "is_quadratic"])


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
    result = minimize(poisson(A, b, unknown), L12(2.0, 0.0), solver=solver, tol=1e-6, max_iter=20_000)
    assert result.converged
    assert result.objective == pytest.approx(lowest(A, b, 2.0), rel=1e-8)


def test_a_first_step_that_overflows_is_shortened():
    A, b = counts()
    result = minimize(poisson(300 * A, b), L12(2.0, 0.0), tol=1e-4, max_iter=20_000)
    assert result.status in (Status.CONVERGED, Status.ROUNDING)
    assert result.objective == pytest.approx(lowest(300 * A, b, 2.0), rel=1e-6)


def test_stationarity_has_a_step_where_there_is_no_lipschitz_constant():
    A, b = counts()

    class Plain(Penalty):
        """L12 with what every penalty has."""

        alpha = 2.0
        value = staticmethod(L12(2.0, 0.0).value)
        prox = staticmethod(L12(2.0, 0.0).prox)

    result = minimize(poisson(A, b), L12(2.0, 0.0), tol=1e-8)
    assert stationarity(poisson(A, b), Plain(), result.x) < 1e-6
    assert stationarity(poisson(A, b), Plain(), result.x + 0.1) > 1e-2


def test_a_loss_that_lacks_a_part_of_a_capability_is_solved_by_the_next_solver():
    A, b = counts()
    expected = minimize(SquaredLoss(A, b), L12(1.0))
    result = minimize(quadratic_unsaid(A, b), L12(1.0))
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    with pytest.raises(TypeError, match=r"WorkingSet needs .*; the loss Part lacks is_quadratic$"):
        minimize(quadratic_unsaid(A, b), L12(1.0), solver=WorkingSet())


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


def test_iterates_may_be_a_list():
    A, b = counts()
    assert minimize(SquaredLoss(A, b), L12(1.0), solver=Listed()).n_iter == 1


def silent(penalty):
    """The same as a difference of convex functions that does not know its violations."""
    names = ("alpha", "value", "prox", "convex", "subtracted_gradient")
    return type("Silent", (DifferencePenalty,), {name: getattr(penalty, name) for name in names})()


@pytest.mark.parametrize("solver", [SequentialConvex(), DCA(), NonmonotoneAPG()], ids=lambda s: type(s).__name__)
def test_stationarity_is_the_same_number_whether_or_not_a_penalty_knows_its_violation(solver):
    random = np.random.default_rng(3)
    A = random.standard_normal((40, 80))
    b = A @ np.where(np.arange(80) < 5, 2.0, 0.0) + 0.1 * random.standard_normal(40)
    loss, whole = SquaredLoss(A, b), MCP(5.0, 0.1)
    without = silent(whole)
    assert offers(without, DifferencePenalty)
    assert not offers(without, PiecewisePenalty)
    for x in (minimize(loss, without, solver=solver, tol=1e-4).x, random.standard_normal(80)):
        assert stationarity(loss, without, x) == pytest.approx(stationarity(loss, whole, x), rel=1e-6, abs=1e-9)
    results = [minimize(loss, penalty, solver=solver, tol=1e-4) for penalty in (without, whole)]
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

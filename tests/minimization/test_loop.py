"""The one loop: limits, history, certificates, Ctrl-C, inputs untouched."""

import math
import time
from dataclasses import dataclass

import numpy as np
import pytest
from tests.laws.case import Interrupted

import ell12
from ell12 import FISTA, L12, NonmonotoneAPG, Run, SquaredLoss, Status, minimize, stationarity
from ell12.protocols import Iterate, Penalty, Solver
from ell12.solvers import ProximalGradient


@pytest.fixture
def problem():
    return ell12.datasets.compressed_sensing(0, n_samples=50)


@pytest.fixture
def loss(problem):
    return SquaredLoss(problem.A, problem.b)


def test_history_has_one_row_per_iteration_and_the_start(loss):
    result = minimize(loss, L12(1e-3), tol=0, max_iter=25, run=Run(measure={"nonzero": np.count_nonzero}))
    assert result.n_iter == 25
    assert set(result.history) == {"seconds", "cpu_seconds", "objective", "optimality", "nonzero"}
    assert {len(column) for column in result.history.values()} == {26}
    assert result.history["objective"][0] == loss.value(loss.point(np.zeros(200)))
    assert result.history["nonzero"][0] == 0
    assert np.all(np.diff(result.history["seconds"]) > 0)


def test_converged_means_that_the_certificate_holds(loss):
    for tol in (1e-1, 1e-3, 1e-5):
        result = minimize(loss, L12(1e-3), tol=tol, max_iter=10**5)
        assert result.status is Status.CONVERGED
        assert result.converged
        # The prediction at hand was summed over the support alone, that made anew over all columns.
        assert result.stationarity == pytest.approx(stationarity(loss, L12(1e-3), result.x), rel=1e-9)
        assert result.stationarity <= tol


def test_an_optimistic_solver_is_not_believed(loss):
    @dataclass(frozen=True)
    class Optimistic(Solver):
        def iterates(self, loss, penalty, start):
            for iterate in NonmonotoneAPG().iterates(loss, penalty, start):
                yield Iterate(iterate.point, iterate.objective, 0.0)

    result = minimize(loss, L12(1e-3), solver=Optimistic(), tol=1e-4, max_iter=10**5)
    assert result.converged
    assert stationarity(loss, L12(1e-3), result.x) <= 1e-4
    assert result.n_iter > 100


def test_limits(loss):
    assert minimize(loss, L12(1e-3), tol=0, max_iter=3).status is Status.MAX_ITER
    result = minimize(loss, L12(1e-3), tol=0, max_iter=0)
    assert result.n_iter == 0
    assert not np.any(result.x)
    result = minimize(loss, L12(1e-3), tol=0, max_iter=10**9, run=Run(max_seconds=0.05))
    assert result.status is Status.MAX_SECONDS
    assert 0.05 <= result.history["seconds"][-1] < 1.0


def test_measures_are_not_timed(loss):
    measure = {"slow": lambda x: time.sleep(0.1) or 0.0}
    result = minimize(loss, L12(1e-3), solver=NonmonotoneAPG(), tol=0, max_iter=10, run=Run(measure=measure))
    assert result.history["seconds"][-1] < 0.9  # of 1.1 that passed


@pytest.mark.parametrize("where", ["solver", "measure"])
def test_ctrl_c_returns_the_best_iterate(loss, where):
    calls = []

    def measure(x):
        calls.append(x)
        if len(calls) == 40 and where == "measure":
            raise KeyboardInterrupt
        return 0.0

    solver = Interrupted(FISTA(), 41) if where == "solver" else FISTA()
    result = minimize(loss, L12(1e-3), solver=solver, tol=0, run=Run(measure={"m": measure}))
    assert result.status is Status.STOPPED
    assert result.objective == min(result.history["objective"])
    assert {len(column) for column in result.history.values()} == {result.n_iter + 1}
    assert result.objective == pytest.approx(loss.value(loss.point(result.x)) + L12(1e-3).value(result.x))


def test_an_objective_that_overflows_ends_the_run(loss):
    with np.errstate(all="ignore"):
        result = minimize(loss, L12(1e-3), solver=FISTA(step=1e8), tol=0)
    assert result.status is Status.NOT_FINITE
    assert math.isfinite(result.objective)
    assert np.all(np.isfinite(result.x))


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_huge_and_tiny_scales(problem, scale):
    expected = minimize(SquaredLoss(problem.A, problem.b), L12(1e-2), tol=1e-6)
    result = minimize(SquaredLoss(problem.A, scale * problem.b), L12(1e-2 * scale), tol=1e-6)
    assert result.converged
    np.testing.assert_allclose(result.x / scale, expected.x, atol=1e-6)


def test_a_start_is_taken_in_the_precision_of_the_loss_and_must_fit_it(loss):
    single = SquaredLoss(np.eye(3, dtype=np.float32), np.ones(3))
    assert minimize(single, L12(0.1), np.ones(3)).x.dtype == np.float32
    for x in (np.ones(4), 1.0, ["a", "b", "c"]):
        with pytest.raises((TypeError, ValueError), match=r"^x0 "):
            minimize(single, L12(0.1), x)
    with pytest.raises(ValueError, match="x0"):
        minimize(loss, L12(1e-3, positive=True), np.full(200, -1.0))


def test_stationarity_without_a_formula_is_the_prox_gradient_residual(loss, problem):
    whole = ell12.penalties.LogSum(1e-2, theta=0.1)

    class Plain(Penalty):
        alpha, value, prox = whole.alpha, staticmethod(whole.value), staticmethod(whole.prox)

    penalty = Plain()
    x = np.random.default_rng(0).standard_normal(200)
    step = 1 / loss.lipschitz()
    move = x - penalty.prox(x - step * (problem.A.T @ (problem.A @ x - problem.b)), step)
    assert stationarity(loss, penalty, x) == pytest.approx(np.max(np.abs(move)) / step / 1e-2)


def test_the_papers_problem_at_full_size():
    problem = ell12.datasets.compressed_sensing(0)
    result = minimize(SquaredLoss(problem.A, problem.b), L12(0.01), tol=1e-4)
    assert result.converged
    assert 0.5 < result.objective < 1.0
    assert problem.relative_error(result.x) < 0.1


class Steep(SquaredLoss):
    """A loss that rises above every tangent without bound, as that of survival times can far from its minimum."""

    def divergence(self, point, base):
        return math.inf


@pytest.mark.parametrize("solver", [NonmonotoneAPG(step="backtracking"), ProximalGradient(step="backtracking")])
def test_a_step_that_is_halved_to_zero_ends_no_run_in_an_error(solver):
    result = minimize(Steep(np.eye(3), np.ones(3)), ell12.penalties.CappedL1(0.1), solver=solver, max_iter=2)
    assert result.status is Status.MAX_ITER
    assert not result.x.any()

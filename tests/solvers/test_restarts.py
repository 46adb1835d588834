"""Random restarts find minima that one run misses, and never return a worse one."""

import numpy as np
import pytest

from ell12 import FISTA, L12, LogisticLoss, SquaredLoss, certify, minimize
from ell12.solvers import Restarts, WorkingSet


def coherent(seed, m=32, n=96, k=5, factor=15):
    random = np.random.default_rng(seed)
    A = np.cos(2 * np.pi * random.random((m, 1)) * np.arange(1, n + 1) / factor)
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(n)
    x[random.permutation(n)[:k]] = random.standard_normal(k)
    return A, A @ x + 0.01 * random.standard_normal(m)


def problem(seed):
    A, b = coherent(seed)
    return SquaredLoss(A, b), L12(0.1 * np.abs(A.T @ b).max())


def test_restarts_are_never_worse_and_sometimes_better():
    gains = []
    for seed in range(8):
        loss, penalty = problem(seed)
        plain, restarted = (minimize(loss, penalty, solver=solver, tol=1e-7) for solver in (None, Restarts(50)))
        assert restarted.converged
        gains.append(1 - restarted.objective / plain.objective)
    assert min(gains) >= -1e-6
    assert max(gains) > 1e-3


def test_the_best_start_is_proved_where_a_proof_is_found():
    loss, penalty = problem(1)
    restarted = minimize(loss, penalty, solver=Restarts(50), tol=1e-8)
    certificate = certify(loss, penalty, restarted.x)
    assert certificate.proved
    assert restarted.objective == pytest.approx(certificate.objective, rel=2e-6)


def test_the_result_says_how_many_starts_reached_the_best_value():
    loss, penalty = problem(0)
    assert "of 4 starts at the best value" in minimize(loss, penalty, solver=Restarts(3)).solver


def test_by_default_there_are_starts_where_a_column_in_use_is_nearly_that_of_another():
    loss, penalty = problem(0)
    alike = minimize(loss, penalty, solver=Restarts())
    A = np.random.default_rng(0).standard_normal((32, 96))
    others = minimize(SquaredLoss(A, A[:, :3].sum(axis=1)), L12(0.5), solver=Restarts())
    copied = np.hstack([A, A[:, :1] + 0.1 * A[:, 1:2]])
    one_alike = minimize(SquaredLoss(copied, A[:, :3].sum(axis=1)), L12(0.5), solver=Restarts())
    starts = [result.solver.split(" starts")[0].split()[-1] for result in (alike, others, one_alike)]
    assert starts == ["201", "1", "201"]


def test_the_same_seed_gives_the_same_bits_and_the_inner_solver_may_be_chosen():
    loss, penalty = problem(2)
    for solver in (Restarts(5, random_state=3), Restarts(5, solver=FISTA())):
        one, other = (minimize(loss, penalty, solver=solver).x for _ in range(2))
        np.testing.assert_array_equal(one, other)


def test_losses_that_are_not_squared_are_restarted_by_the_solver():
    A, b = coherent(4)
    loss, penalty = LogisticLoss(A, b > 0), L12(0.5, l2_weight=0.5)
    plain, restarted = (minimize(loss, penalty, solver=solver, tol=1e-6) for solver in (None, Restarts(5)))
    assert restarted.converged
    assert restarted.objective <= plain.objective * (1 + 1e-6)


class Interrupted:
    """The default solver, once; then Ctrl-C."""

    needs, calls = WorkingSet.needs, 0

    def iterates(self, loss, penalty, start):
        self.calls += 1
        if self.calls > 1:
            raise KeyboardInterrupt
        return WorkingSet().iterates(loss, penalty, start)


def test_what_the_runs_found_is_kept_when_they_are_interrupted():
    loss, penalty = problem(3)
    plain, part = (minimize(loss, penalty, solver=solver) for solver in (None, Restarts(3, solver=Interrupted())))
    assert not part.converged
    assert part.objective <= plain.objective * (1 + 1e-4)

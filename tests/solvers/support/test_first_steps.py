"""The first steps from a far start, against the exact line search along conjugate directions."""

import numpy as np

from ell12 import L12, SquaredLoss
from ell12.solvers.support.first_steps import STEPS, first_iterates
from ell12.solvers.support.place import PiecewiseProblem


def run(loss, penalty, x):
    problem = PiecewiseProblem(loss, penalty, loss.point(x))
    return list(first_iterates(problem, problem.place(loss.point(x))))


def test_each_step_minimises_the_loss_over_one_more_direction():
    random = np.random.default_rng(0)
    A, b, x = random.standard_normal((20, 30)), random.standard_normal(20), random.standard_normal(30)
    iterates = run(SquaredLoss(A, b), L12(1e-9), x)
    assert len(iterates) == STEPS
    space, power = [], A.T @ (A @ x - b)
    for iterate in iterates:
        space.append(power / np.linalg.norm(power))
        power = A.T @ (A @ space[-1])
        basis = np.stack(space, axis=1)  # of the Krylov space
        best = x + basis @ np.linalg.lstsq(A @ basis, b - A @ x, rcond=None)[0]
        np.testing.assert_allclose(iterate.point.x, best, atol=1e-7)
        np.testing.assert_allclose(iterate.point.prediction, A @ iterate.point.x, atol=1e-10)
        np.testing.assert_allclose(iterate.gradient, A.T @ (A @ best - b), atol=1e-6)


def test_they_end_where_the_penalty_counts():
    random = np.random.default_rng(1)
    A, b = random.standard_normal((20, 30)), random.standard_normal(20)
    loss = SquaredLoss(A, b)
    objectives = [iterate.objective for iterate in run(loss, L12(3.0, 0.0), np.zeros(30))]
    assert len(objectives) < STEPS
    assert np.all(np.diff([0.5 * b @ b, *objectives]) < 0)
    assert run(loss, L12(1e9, 0.0), np.zeros(30)) == []
    assert run(SquaredLoss(np.zeros((3, 2)), np.ones(3)), L12(1.0), np.zeros(2)) == []

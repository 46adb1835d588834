"""DCA and its ADMM, against the convex problems solved by another package."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from ell12 import DCA, FISTA, L1, L12, SquaredLoss, minimize
from ell12.losses import QuadraticLoss
from ell12.protocols import ProximalLoss, offers
from ell12.solvers.dc_algorithms import Admm


def problem(seed=0, m=20, n=8):
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n))
    return A, A[:, :3].sum(axis=1) + 0.1 * random.standard_normal(m)


def convex_minimum(A, b, alpha, slope):
    """``argmin 1/2 ||A x - b||^2 + alpha ||x||_1 - <x, slope>``; x is the difference of two parts >= 0."""
    n = A.shape[1]

    def value(parts):
        x = parts[:n] - parts[n:]
        residual = A @ x - b
        gradient = A.T @ residual - slope
        return (
            0.5 * residual @ residual - slope @ x + alpha * parts.sum(),
            np.concatenate([gradient, -gradient]) + alpha,
        )

    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000}
    found = scipy_minimize(value, np.zeros(2 * n), jac=True, bounds=[(0, None)] * (2 * n), options=options).x
    return found[:n] - found[n:]


@pytest.mark.parametrize("rho", [0.1, 1.0, 20.0])
def test_admm_solves_the_convex_problem_whatever_its_weight(rho):
    A, b = problem()
    slope, loss = np.linspace(-1, 1, 8), SquaredLoss(A, b)
    admm = Admm(loss.proximal(rho), L1(2.0), rho, loss.lipschitz(), np.zeros(8))
    residuals = [admm.step(slope) for _ in range(6000)]
    assert residuals[-1] < 1e-8
    np.testing.assert_allclose(admm.x, convex_minimum(A, b, 2.0, slope), atol=1e-5)
    np.testing.assert_allclose(admm.v, admm.x, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"warm_start": False}, {"inner": FISTA()}], ids=str)
@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_each_iterate_solves_the_problem_linearised_at_the_last(l2_weight, options):
    A, b = problem()
    loss, alpha = SquaredLoss(A, b), 2.0
    solver = DCA(penalty_weight=5.0, inner_tol=1e-10, inner_max_iter=5000, **options)
    iterates = (i for i in solver.iterates(loss, L12(alpha, l2_weight), loss.point(loss.start())) if i is not None)
    before = next(iterates)
    for _ in range(5):
        x, after = before.point.x, next(iterates)
        expected = convex_minimum(A, b, alpha, alpha * l2_weight * x / np.linalg.norm(x))
        np.testing.assert_allclose(after.point.x, expected, atol=1e-5)
        assert after.objective <= before.objective + 1e-9
        before = after


def test_a_solver_inside_does_without_the_losss_proximal_map():
    A, b = problem()
    loss = QuadraticLoss(A.T @ A, A.T @ b)
    assert not offers(loss, ProximalLoss)
    found = minimize(loss, L12(0.5), solver=DCA(inner=FISTA()), tol=1e-6)
    assert found.converged
    assert found.objective == pytest.approx(minimize(loss, L12(0.5), tol=1e-8).objective, rel=1e-9)

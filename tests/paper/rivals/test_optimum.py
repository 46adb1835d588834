"""The rivals with a convex problem reach its optimum, known from long dense runs and from duality."""

from itertools import pairwise

import numpy as np
import pytest

from ell12 import SpectralL12, minimize
from ell12.completion import CompletionLoss, Observed
from ell12.penalties import NoPenalty, SpectralLogSum
from ell12_paper.rivals import AISImpute, FaNCL, MatrixDCA, SketchyCGM, SoftImpute


def noisy(seed=0, m=40, n=30, rank=4, fraction=0.5, noise=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return truth + noise * rng.standard_normal((m, n)), rng.random((m, n)) < fraction


def on_singular_values(change, Z):
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    return (U * change(s)) @ Vt


def accelerated(values, known, project, steps):
    """FISTA with a dense full decomposition in each step; ``project`` acts on the singular values."""
    x = y = np.zeros_like(values)
    t = 1.0
    for _ in range(steps):
        new = on_singular_values(project, np.where(known, values, y))
        if np.vdot(y - new, new - x) > 0:  # restart
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, y, t = new, new + (t - 1) / t_new * (new - x), t_new
    return x


def half_square(x, values, known):
    return 0.5 * np.sum((x - values)[known] ** 2)


def onto_simplex_ball(s, radius):
    """The nearest vector to s >= 0 with entries >= 0 that sum to at most the radius."""
    if s.sum() <= radius:
        return s
    sums = np.cumsum(s) - radius
    count = np.arange(1, s.size + 1)
    last = np.flatnonzero(s > sums / count)[-1]
    return np.maximum(s - sums[last] / count[last], 0)


@pytest.fixture(scope="module")
def nuclear_problem():
    """A problem, and its optimal value between a long dense run and the dual bound."""
    values, known = noisy()
    alpha = 2.0
    x = accelerated(values, known, lambda s: np.maximum(s - alpha, 0), 600)
    primal = half_square(x, values, known) + alpha * np.linalg.svd(x)[1].sum()
    R = np.where(known, values - x, 0.0)
    R *= min(1.0, alpha / np.linalg.norm(R, 2))  # any R on the known entries with norm <= alpha is a dual point
    dual = np.vdot(R, np.where(known, values, 0)) - 0.5 * np.vdot(R, R)
    assert 0 <= primal - dual + 1e-12 * primal <= 1e-9 * primal
    return CompletionLoss(Observed.from_mask(values, known)), SpectralL12(alpha, l2_weight=0.0), primal, x


SOLVERS = [SoftImpute(passes=0), AISImpute(), AISImpute(decay=0.0, spare=1), MatrixDCA()]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_optimum_of_the_nuclear_norm_is_reached(nuclear_problem, solver):
    loss, penalty, optimum, x = nuclear_problem
    result = minimize(loss, penalty, solver=solver, tol=1e-6, max_iter=3000)
    assert result.converged
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert result.x.rank == np.linalg.matrix_rank(x, tol=1e-6)
    np.testing.assert_allclose(result.x.to_array(), x, atol=1e-4)


def test_fancl_reaches_a_stationary_point_and_descends():
    values, known = noisy(m=25, n=20, rank=2)
    loss, alpha = CompletionLoss(Observed.from_mask(values, known)), 3.0
    penalty = SpectralLogSum(alpha, theta=np.sqrt(alpha))
    result = minimize(loss, penalty, solver=FaNCL(), tol=1e-5, max_iter=4000)
    assert result.converged
    assert np.all(np.diff(result.history["objective"]) <= 1e-8 * result.objective)
    # The dense step from the solution, its prox found on a grid, does not leave it.
    x = result.x.to_array()
    grid = np.linspace(0, 1.1 * np.linalg.norm(x, 2), 200_001)
    penalties = alpha * np.log1p(grid / penalty.theta)
    step = on_singular_values(
        lambda s: np.array([grid[np.argmin(0.5 * (grid - value) ** 2 + penalties)] for value in s]),
        np.where(known, values, x),
    )
    np.testing.assert_allclose(step, x, atol=1e-3)


def test_dca_solves_a_convex_problem_between_two_iterates():
    values, known = noisy(m=20, n=15, rank=2, fraction=0.6, noise=0.1)
    loss, alpha = CompletionLoss(Observed.from_mask(values, known)), 1.5
    iterates = MatrixDCA(inner_tol=1e-7, inner_max_iter=5000).iterates(
        loss, SpectralL12(alpha), loss.point(loss.start())
    )
    found = [iterate for iterate, _ in zip((i for i in iterates if i is not None), range(6), strict=False)]
    for before, after in pairwise(found):
        X, Y = before.point.x.to_array(), after.point.x.to_array()
        step = Y - known * (Y - values) + alpha * X / np.linalg.norm(X)
        shrunk = on_singular_values(lambda s: np.maximum(s - alpha, 0), step)
        np.testing.assert_allclose(shrunk, Y, atol=1e-4)
        assert after.objective <= before.objective + 1e-9


@pytest.fixture(scope="module")
def ball_problem():
    """A problem over a ball of the nuclear norm, and its optimal value."""
    values, known = noisy(m=25, n=20, rank=2, fraction=0.6)
    radius = 0.6 * np.linalg.svd(values)[1][:2].sum()
    x = accelerated(values, known, lambda s: onto_simplex_ball(s, radius), 500)
    optimum = half_square(x, values, known)
    G = np.where(known, x - values, 0.0)
    gap = np.vdot(x, G) + radius * np.linalg.norm(G, 2)
    assert 0 <= gap + 1e-12 * optimum <= 1e-8 * optimum
    return CompletionLoss(Observed.from_mask(values, known)), radius, optimum, x


def test_sketchy_cgm_approaches_the_optimum_at_the_known_rate_and_its_gap_bounds_what_is_left(ball_problem):
    loss, radius, optimum, _ = ball_problem
    solver = SketchyCGM(radius, rank=20, steps_per_iterate=1)  # sketches as large as the matrix: nothing is lost
    result = minimize(loss, NoPenalty(), solver=solver, max_iter=400, tol=0.0)
    above = np.array(result.history["objective"]) - optimum
    assert np.all(above >= -1e-9 * optimum)
    assert np.all(above[1:] <= 2 * (2 * radius) ** 2 / np.arange(3, 403))
    gaps = radius * np.array(result.history["optimality"][1:])  # each measured before its step
    assert np.all(gaps >= above[:-1] - 1e-6 * optimum)


def test_a_small_sketch_gives_nearly_the_optimum_back(ball_problem):
    loss, radius, optimum, x = ball_problem
    rank = np.linalg.matrix_rank(x, tol=1e-6)
    result = minimize(loss, NoPenalty(), solver=SketchyCGM(radius, rank=rank), max_iter=200, tol=0.0)
    assert result.x.rank == rank
    assert result.objective < 1.05 * optimum
    assert result.x.nuclear_norm() < 1.02 * radius

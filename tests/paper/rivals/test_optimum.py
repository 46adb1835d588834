"""The rivals with a convex problem reach its optimum, known from long dense runs and from duality."""

import numpy as np
import pytest

from ell12 import Run, SpectralL12, Status, minimize
from ell12.completion import CompletionLoss, LowRank, Observed
from ell12.penalties import NoPenalty, SpectralLogSum
from ell12_paper.rivals import AISImpute, FaNCL, SketchyCGM, SoftImpute


def noisy(seed=0, m=40, n=30, rank=4, fraction=0.5, noise=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return truth + noise * rng.standard_normal((m, n)), rng.random((m, n)) < fraction


def accelerated(values, known, project, steps):
    """FISTA with a dense full decomposition in each step; ``project`` acts on the singular values."""
    x = y = np.zeros_like(values)
    t = 1.0
    for _ in range(steps):
        U, s, Vt = np.linalg.svd(np.where(known, values, y), full_matrices=False)
        new = (U * project(s)) @ Vt
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
    return values, known, alpha, primal, x


@pytest.mark.parametrize(
    "solver",
    [
        SoftImpute(),
        SoftImpute(passes=0),
        AISImpute(),
        AISImpute(decay=0.0),
        AISImpute(spare=1),
        AISImpute(random_state=7),
    ],
    ids=repr,
)
def test_nuclear_norm_rivals_reach_the_optimum(nuclear_problem, solver):
    values, known, alpha, optimum, x = nuclear_problem
    loss = CompletionLoss(Observed.from_mask(values, known))
    result = minimize(loss, SpectralL12(alpha, l2_weight=0.0), solver=solver, tol=1e-6, max_iter=3000)
    assert result.converged
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert result.x.rank == np.linalg.matrix_rank(x, tol=1e-6)
    np.testing.assert_allclose(result.x.to_array(), x, atol=1e-4)


def test_the_objective_is_that_of_the_iterate(nuclear_problem):
    values, known, alpha, _, _ = nuclear_problem
    loss = CompletionLoss(Observed.from_mask(values, known))

    def objective(x):
        dense = x.to_array()
        return half_square(dense, values, known) + alpha * np.linalg.svd(dense)[1].sum()

    result = minimize(
        loss,
        SpectralL12(alpha, l2_weight=0.0),
        solver=AISImpute(),
        max_iter=20,
        run=Run(measure={"again": objective}),
    )
    np.testing.assert_allclose(result.history["objective"], result.history["again"], rtol=1e-10)


def test_soft_impute_descends_and_ais_impute_needs_fewer_steps(nuclear_problem):
    values, known, _, _, _ = nuclear_problem
    loss, penalty = CompletionLoss(Observed.from_mask(values, known)), SpectralL12(0.5, l2_weight=0.0)
    plain = minimize(loss, penalty, solver=SoftImpute(), tol=1e-4)
    fast = minimize(loss, penalty, solver=AISImpute(), tol=1e-4)
    assert np.all(np.diff(plain.history["objective"]) <= 1e-9)
    assert fast.converged
    assert plain.converged
    assert fast.n_iter < 0.5 * plain.n_iter


def test_above_the_largest_strength_the_solution_is_zero(nuclear_problem):
    values, known, _, _, _ = nuclear_problem
    loss = CompletionLoss(Observed.from_mask(values, known))
    alpha = 1.01 * np.linalg.norm(np.where(known, values, 0), 2)
    for solver in (AISImpute(), SoftImpute()):
        result = minimize(loss, SpectralL12(alpha, l2_weight=0.0), solver=solver)
        assert result.converged
        assert result.x.rank == 0


@pytest.mark.parametrize("solver", [AISImpute(max_rank=2), SoftImpute(max_rank=2)], ids=repr)
def test_a_bound_on_the_rank_that_binds_is_said(nuclear_problem, solver):
    values, known, alpha, optimum, _ = nuclear_problem
    loss = CompletionLoss(Observed.from_mask(values, known))
    result = minimize(loss, SpectralL12(alpha, l2_weight=0.0), solver=solver, max_iter=3000)
    assert result.status is Status.RANK_CAPPED
    assert result.x.rank == 2
    assert result.objective > optimum


@pytest.mark.parametrize("theta", [0.3, 1.0, 5.0])
def test_the_prox_of_fancl_is_the_best_of_a_grid(theta):
    rng = np.random.default_rng(2)
    values, alpha = 2 * rng.standard_normal((8, 6)), 1.5
    U, s, Vt = np.linalg.svd(values, full_matrices=False)
    # With every entry known, one step from zero is the prox of the matrix itself.
    loss = CompletionLoss(values)
    x = minimize(loss, SpectralLogSum(alpha, theta), solver=FaNCL(spare=6), max_iter=1, tol=0.0).x
    grid = np.linspace(0, 1.1 * s[0], 200_001)
    best = [grid[np.argmin(0.5 * (grid - sigma) ** 2 + alpha * np.log1p(grid / theta))] for sigma in s]
    np.testing.assert_allclose(x.to_array(), (U * best) @ Vt, atol=1e-4)


def test_fancl_reaches_a_stationary_point_and_descends():
    values, known = noisy(m=25, n=20, rank=2)
    loss, alpha = CompletionLoss(Observed.from_mask(values, known)), 3.0
    penalty = SpectralLogSum(alpha, theta=np.sqrt(alpha))
    result = minimize(loss, penalty, solver=FaNCL(), tol=1e-5, max_iter=4000)
    assert result.converged
    assert np.all(np.diff(result.history["objective"]) <= 1e-8 * result.objective)
    # The dense step from the solution, its prox found on a grid, does not leave it.
    x = result.x.to_array()
    U, s, Vt = np.linalg.svd(np.where(known, values, x), full_matrices=False)
    grid = np.linspace(0, s[0], 200_001)
    best = [grid[np.argmin(0.5 * (grid - sigma) ** 2 + alpha * np.log1p(grid / penalty.theta))] for sigma in s]
    np.testing.assert_allclose((U * best) @ Vt, x, atol=1e-3)


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


def test_sketchy_cgm_approaches_the_optimum_at_the_known_rate(ball_problem):
    loss, radius, optimum, _ = ball_problem
    solver = SketchyCGM(radius, rank=20, steps_per_iterate=50)  # sketches as large as the matrix: nothing is lost
    result = minimize(loss, NoPenalty(), solver=solver, max_iter=40, tol=0.0)
    steps = 50 * np.arange(1, 41)
    above = np.array(result.history["objective"][1:]) - optimum
    assert np.all(above >= -1e-9 * optimum)
    assert np.all(above <= 2 * (2 * radius) ** 2 / (steps + 2))
    assert above[-1] < 1e-2 * optimum


def test_the_duality_gap_bounds_what_is_left(ball_problem):
    loss, radius, optimum, _ = ball_problem
    solver = SketchyCGM(radius, rank=20, steps_per_iterate=1)
    result = minimize(loss, NoPenalty(), solver=solver, max_iter=60, tol=0.0)
    above = np.array(result.history["objective"][:-1]) - optimum
    gaps = radius * np.array(result.history["optimality"][1:])  # each measured before its step
    assert np.all(gaps >= above - 1e-6 * optimum)
    assert gaps[-1] < 0.1 * gaps[0]


def test_a_small_sketch_gives_nearly_the_optimum_back(ball_problem):
    loss, radius, optimum, x = ball_problem
    rank = np.linalg.matrix_rank(x, tol=1e-6)
    result = minimize(loss, NoPenalty(), solver=SketchyCGM(radius, rank=rank), max_iter=200, tol=0.0)
    assert result.x.rank == rank
    assert result.objective < 1.05 * optimum
    assert result.x.nuclear_norm() < 1.02 * radius


def test_sketchy_cgm_ends_at_its_gap(ball_problem):
    loss, radius, optimum, _ = ball_problem
    result = minimize(loss, NoPenalty(), solver=SketchyCGM(radius, rank=20, gap=0.1), max_iter=1000, tol=0.0)
    assert result.status is Status.ENDED
    assert result.n_iter < 1000
    assert result.objective - optimum <= 0.1 * result.objective


def test_the_sketch_of_a_low_rank_start_gives_it_back():
    rng = np.random.default_rng(1)
    x0 = LowRank.from_factors(rng.standard_normal((20, 2)), rng.standard_normal((15, 2)))
    loss = CompletionLoss(Observed.from_mask(x0.to_array(), rng.random((20, 15)) < 0.5))
    # A gap so wide that no step is made.
    solver = SketchyCGM(radius=1.5 * x0.nuclear_norm(), rank=2, gap=1e300)
    moved = LowRank(x0.U, 1.01 * x0.s, x0.V)
    result = minimize(loss, NoPenalty(), x0=moved, solver=solver)
    np.testing.assert_allclose(result.x.to_array(), moved.to_array(), atol=1e-10)

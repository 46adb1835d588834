"""The rivals recover a low-rank matrix, keep dtype and inputs, survive the edges, and do what was published."""

from itertools import pairwise

import numpy as np
import pytest

from ell12 import L1, Run, SpectralL12, SquaredLoss, Status, minimize
from ell12.completion import CompletionLoss, LowRank, Observed
from ell12.penalties import NoPenalty, SpectralLogSum
from ell12_paper.rivals import ARSSM3F, ER1MP, AISImpute, FaNCL, LMaFit, MatrixDCA, SketchyCGM, SoftImpute

RANK = Run(measure={"rank": lambda x: x.rank})
NUCLEAR, LOG_SUM, NONE = SpectralL12(0.1, l2_weight=0.0), SpectralLogSum(0.1, theta=0.3), NoPenalty()
RIVALS = {
    "soft-impute": (NUCLEAR, SoftImpute()),
    "ais-impute": (NUCLEAR, AISImpute()),
    "fancl": (LOG_SUM, FaNCL()),
    "lmafit fixed": (NONE, LMaFit(rank=12)),
    "lmafit increasing": (NONE, LMaFit(rank=12, strategy="increasing")),
    "er1mp": (NONE, ER1MP(max_rank=12)),
    "sketchy-cgm": (NONE, SketchyCGM(radius=5.0, rank=12)),
    "arss-m3f": (NONE, ARSSM3F(max_rank=12)),
}
each_rival = pytest.mark.parametrize(("penalty", "solver"), RIVALS.values(), ids=RIVALS.keys())


def problem(seed=0, m=60, n=50, rank=3, fraction=0.5, noise=0.0):
    """A completion loss and the matrix behind it."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    known = rng.random((m, n)) < fraction
    return CompletionLoss(Observed.from_mask(truth + noise * rng.standard_normal((m, n)), known)), truth


@pytest.mark.parametrize(
    ("penalty", "solver", "bound"),
    [
        (SpectralL12(1e-3, l2_weight=0.0), AISImpute(), 1e-4),
        (SpectralLogSum(1.0, theta=1.0), FaNCL(), 2e-3),
        (NONE, LMaFit(rank=3), 1e-5),
        (NONE, LMaFit(rank=8, strategy="increasing"), 1e-5),
        (NONE, ARSSM3F(max_rank=3), 1e-5),
        (NONE, ARSSM3F(max_rank=20), 1e-5),
    ],
    ids=repr,
)
def test_a_low_rank_matrix_is_recovered_from_half_its_entries(penalty, solver, bound):
    loss, truth = problem()
    x = minimize(loss, penalty, solver=solver, max_iter=1000).x
    assert x.rank == 3
    assert np.linalg.norm(x.to_array() - truth) < bound * np.linalg.norm(truth)


@each_rival
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (6, 5), (5, 9)])
@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_small_matrices_and_ranks_beyond_them(penalty, solver, shape, fraction):
    rng = np.random.default_rng(sum(shape))
    truth, known = rng.standard_normal(shape), rng.random(shape) < fraction
    known[0, 0] = True
    loss = CompletionLoss(Observed.from_mask(truth, known))
    result = minimize(loss, penalty, solver=solver, max_iter=30)
    x = result.x
    assert (x.shape, x.rank <= min(shape), np.isfinite(x.to_array()).all()) == (shape, True, True)
    assert result.objective <= loss.value(loss.point(loss.start()))
    assert result.objective == pytest.approx(loss.value(loss.point(x)) + penalty.value(x), rel=1e-9, abs=1e-12)
    for vectors in (x.U, x.V):
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(x.rank), atol=1e-8)


@each_rival
def test_single_precision_stays_inputs_are_not_written_to_and_a_run_repeats(penalty, solver):
    truth = problem(m=15, n=12)[1].astype(np.float32)
    loss = CompletionLoss(Observed.from_mask(truth, np.random.default_rng(1).random(truth.shape) < 0.8))
    for array in (loss.observed.values, loss.observed.rows, loss.observed.columns):
        array.flags.writeable = False
    x0 = LowRank.from_factors(0.01 * truth[:, :1], truth[:1, :].T)
    before = x0.to_array().copy()
    runs = [minimize(loss, penalty, x0=x0, solver=solver, max_iter=10) for _ in range(2)]
    assert runs[0].history["objective"] == runs[1].history["objective"]
    assert {part.dtype for part in (runs[0].x.U, runs[0].x.s, runs[0].x.V)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(x0.to_array(), before)


@each_rival
def test_a_good_start_is_used_also_where_a_row_has_no_entries(penalty, solver):
    _, truth = problem(m=20, n=16)
    known = np.random.default_rng(1).random(truth.shape) < 0.8
    known[3], known[:, 4] = False, False
    loss = CompletionLoss(Observed.from_mask(truth, known))
    U, s, Vt = np.linalg.svd(truth, full_matrices=False)
    x0 = LowRank(U[:, :3], s[:3] * min(1.0, 4.9 / s[:3].sum()), Vt[:3].T)
    first = minimize(loss, penalty, x0=x0, solver=solver, max_iter=1)
    assert first.history["objective"][0] == pytest.approx(loss.value(loss.point(x0)) + penalty.value(x0))
    assert first.objective <= first.history["objective"][0]
    assert np.isfinite(first.x.to_array()).all()


@each_rival
def test_what_a_rival_cannot_do_is_refused(penalty, solver):
    with pytest.raises(TypeError, match=r"SquaredLoss.* lacks observed, residual"):
        minimize(SquaredLoss(np.eye(2), np.ones(2)), L1(1.0), solver=solver)
    if penalty is NONE:  # it would not be minimised
        with pytest.raises(TypeError, match="NoPenalty"):
            minimize(CompletionLoss(np.eye(3)), NUCLEAR, solver=solver)
    if isinstance(solver, SketchyCGM):
        with pytest.raises(ValueError, match="radius"):
            minimize(CompletionLoss(np.eye(9)), NONE, x0=LowRank.from_factors(np.eye(9), np.eye(9)), solver=solver)
    torch = pytest.importorskip("torch")
    values = torch.ones((3, 2), dtype=torch.float64)
    with pytest.raises(TypeError, match="NumPy arrays"):
        minimize(CompletionLoss(Observed.from_mask(values, values > 0)), penalty, solver=solver)


def best_of_rank(loss, rank, seed=0, sweeps=300):
    """Alternating least squares, row by row, from a random start: an independent fit of the same rank."""
    values, known = loss.observed.dense(), loss.observed.mask()
    H = np.random.default_rng(seed).standard_normal((values.shape[1], rank))
    for _ in range(sweeps):
        W = np.stack([np.linalg.lstsq(H[k], o[k], rcond=None)[0] for o, k in zip(values, known, strict=True)])
        H = np.stack([np.linalg.lstsq(W[k], o[k], rcond=None)[0] for o, k in zip(values.T, known.T, strict=True)])
    return 0.5 * np.sum((W @ H.T - values)[known] ** 2)


@pytest.mark.parametrize("solver", [LMaFit(rank=3), ARSSM3F(max_rank=3)], ids=repr)
def test_noisy_entries_are_fitted_as_well_as_by_alternating_least_squares(solver):
    loss, _ = problem(m=30, n=25, rank=3, fraction=0.7, noise=0.3)
    result = minimize(loss, NONE, solver=solver, tol=1e-5, max_iter=2000)
    assert result.status is Status.RANK_CAPPED
    assert result.objective == pytest.approx(best_of_rank(loss, 3), rel=1e-6)


def test_lmafit_keeps_a_fixed_rank_raises_one_that_is_too_small_and_never_lets_the_residual_grow():
    loss, _ = problem(noise=0.01)
    ranks = {}
    for strategy in ("fixed", "increasing"):
        solver = LMaFit(rank=9, strategy=strategy, first_rank=1)
        history = minimize(loss, NONE, solver=solver, max_iter=100, run=RANK).history
        ranks[strategy] = history["rank"]
        assert np.all(np.diff(history["objective"]) <= 0)
    assert set(ranks["fixed"][1:]) == {9}
    assert ranks["increasing"][1] == 1
    assert np.all(np.diff(ranks["increasing"]) >= 0)
    assert 3 <= ranks["increasing"][-1] <= 9


def test_lmafit_first_step_is_the_published_one():
    loss, _ = problem(m=12, n=10, fraction=0.8)
    values = loss.observed.dense()
    Q = np.linalg.qr(values[:, :2])[0]  # Z = S(O), Y = the first rows of the identity
    x = minimize(loss, NONE, solver=LMaFit(rank=2), max_iter=1).x
    np.testing.assert_allclose(x.to_array(), Q @ (Q.T @ values), atol=1e-10)


def test_er1mp_steps_are_two_dimensional_least_squares_and_the_rank_is_their_number():
    loss, _ = problem(m=15, n=12, fraction=0.7, noise=0.2)
    values, known = loss.observed.dense(), loss.observed.mask()
    W, expected = np.zeros_like(values), []
    for _ in range(4):  # the same, dense, with exact singular vectors
        U, _, Vt = np.linalg.svd(values - W)
        M = np.where(known, np.outer(U[:, 0], Vt[0]), 0)
        pair = np.stack([W[known], M[known]], axis=1)
        a, b = np.linalg.lstsq(pair, values[known], rcond=None)[0]
        W = a * W + b * M
        expected.append(0.5 * np.sum((W - values) ** 2))
    result = minimize(loss, NONE, solver=ER1MP(max_rank=4), run=RANK)
    np.testing.assert_allclose(result.history["objective"][1:], expected, rtol=0.02)
    assert (result.status, result.history["rank"]) == (Status.ENDED, list(range(5)))


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

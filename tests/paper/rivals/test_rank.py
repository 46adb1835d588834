"""The rivals that bound the rank: LMaFit's strategies, ER1MP's pursuit, ARSS-M3F's geometry."""

import numpy as np
import pytest

from ell12 import Run, Status, minimize
from ell12.completion import CompletionLoss, LowRank, Observed, complete_matrix
from ell12.penalties import NoPenalty
from ell12_paper.rivals import ARSSM3F, ER1MP, LMaFit, SketchyCGM
from ell12_paper.rivals.arss_m3f import ManifoldProblem, Tangent, _line_search, conjugate_descent

NONE = NoPenalty()


def problem(seed=0, m=60, n=50, rank=3, fraction=0.5, noise=0.0):
    """A completion loss and the matrix behind it."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    known = rng.random((m, n)) < fraction
    return CompletionLoss(Observed.from_mask(truth + noise * rng.standard_normal((m, n)), known)), truth


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


def test_lmafit_never_lets_the_residual_grow():
    loss, _ = problem(noise=0.1)
    for strategy in ("fixed", "increasing"):
        result = minimize(loss, NONE, solver=LMaFit(rank=5, strategy=strategy), max_iter=150, tol=0.0)
        assert np.all(np.diff(result.history["objective"]) <= 0)


def test_lmafit_keeps_a_fixed_rank_and_raises_one_that_is_too_small():
    loss, _ = problem(noise=0.01)
    ranks = {}
    for strategy in ("fixed", "increasing"):
        solver = LMaFit(rank=9, strategy=strategy, first_rank=1)
        result = minimize(loss, NONE, solver=solver, max_iter=100, run=Run(measure={"rank": lambda x: x.rank}))
        ranks[strategy] = result.history["rank"]
    assert set(ranks["fixed"][1:]) == {9}
    assert ranks["increasing"][1] == 1
    assert np.all(np.diff(ranks["increasing"]) >= 0)
    assert 3 <= ranks["increasing"][-1] <= 9


def test_overrelaxation_needs_fewer_steps_than_plain_alternation():
    loss, _ = problem()
    fast = minimize(loss, NONE, solver=LMaFit(rank=3), tol=1e-3, max_iter=2000)
    # Plain alternation written out, dense: Z filled in, Q = orth(Z Y'), Y = Q' Z.
    values, known = loss.observed.dense(), loss.observed.mask()
    Y, X = np.eye(3, values.shape[1]), np.zeros((values.shape[0], 3))
    steps = 0
    while steps < 2000:
        steps += 1
        Z = np.where(known, values, X @ Y)
        X = np.linalg.qr(Z @ Y.T)[0]
        Y = X.T @ Z
        if np.linalg.norm(np.where(known, values - X @ Y, 0), 2) <= 1e-3:
            break
    assert fast.converged
    assert fast.n_iter < 0.7 * steps


def test_lmafit_first_step_is_the_published_one():
    loss, _ = problem(m=12, n=10, fraction=0.8)
    values = loss.observed.dense()
    Q = np.linalg.qr(values[:, :2])[0]  # Z = S(O), Y = the first rows of the identity
    x = minimize(loss, NONE, solver=LMaFit(rank=2), max_iter=1).x
    np.testing.assert_allclose(x.to_array(), Q @ (Q.T @ values), atol=1e-10)


def test_er1mp_residual_never_grows_and_the_rank_is_its_steps():
    loss, _ = problem(noise=0.1)
    result = minimize(loss, NONE, solver=ER1MP(max_rank=25), run=Run(measure={"rank": lambda x: x.rank}))
    assert result.status is Status.ENDED
    assert result.n_iter == 25
    assert np.all(np.diff(result.history["objective"]) < 0)
    assert result.history["rank"] == list(range(26))


def test_er1mp_steps_are_two_dimensional_least_squares():
    loss, _ = problem(m=15, n=12, fraction=0.7, noise=0.2)
    values, known = loss.observed.dense(), loss.observed.mask()
    W = np.zeros_like(values)
    for _ in range(4):  # the same, dense, with exact singular vectors
        U, _, Vt = np.linalg.svd(values - W)
        M = np.where(known, np.outer(U[:, 0], Vt[0]), 0)
        pair = np.stack([W[known], M[known]], axis=1)
        a, b = np.linalg.lstsq(pair, values[known], rcond=None)[0]
        W = a * W + b * M
    result = minimize(loss, NONE, solver=ER1MP(max_rank=4))
    assert result.objective == pytest.approx(0.5 * np.sum((W - values) ** 2), rel=0.02)


def test_er1mp_ends_where_nothing_is_left():
    result = minimize(CompletionLoss(np.zeros((3, 3))), NONE, solver=ER1MP(max_rank=5), tol=0.0)
    assert result.status is Status.ENDED
    assert result.n_iter == 0


def test_the_riemannian_gradient_is_the_derivative_along_the_retraction():
    rng = np.random.default_rng(3)
    loss, truth = problem(m=14, n=11, rank=2, fraction=0.6)
    smooth = ManifoldProblem(loss)
    x = LowRank.from_factors(rng.standard_normal((14, 3)), rng.standard_normal((11, 3)))
    here = smooth.at(loss.point(x))
    direction = Tangent.project(rng.standard_normal(truth.shape), x)

    def value(t):
        return loss.value(loss.point(direction.retract(t)))

    assert here.value == pytest.approx(value(0.0))
    difference = (value(1e-5) - value(-1e-5)) / 2e-5
    assert here.slope.inner(direction) == pytest.approx(difference, rel=1e-5)


def test_conjugate_gradients_descend_and_keep_the_rank():
    loss, _ = problem(m=20, n=15, noise=0.2)
    smooth = ManifoldProblem(loss)
    rng = np.random.default_rng(0)
    here = smooth.at(loss.point(LowRank.from_factors(rng.standard_normal((20, 2)), rng.standard_normal((15, 2)))))
    values = [here.value]
    for _, place in zip(range(60), conjugate_descent(smooth, here), strict=False):
        values.append(place.value)
        assert place.point.x.rank == 2
    assert np.all(np.diff(values) <= 0)
    assert place.slope.norm() < 1e-3 * here.slope.norm()


def test_conjugate_gradients_need_fewer_steps_than_steepest_descent():
    loss, _ = problem(m=20, n=15, rank=4, fraction=0.6, noise=0.2)
    smooth = ManifoldProblem(loss)
    rng = np.random.default_rng(0)
    first = smooth.at(loss.point(LowRank.from_factors(rng.standard_normal((20, 3)), rng.standard_normal((15, 3)))))
    small = 1e-4 * first.slope.norm()
    steepest, steps = first, 0
    while steepest.slope.norm() > small and steps < 2000:
        steepest, steps = _line_search(smooth, steepest, -1.0 * steepest.slope), steps + 1
    conjugate = next(k for k, here in enumerate(conjugate_descent(smooth, first), 1) if here.slope.norm() <= small)
    assert conjugate < 0.5 * steps


def test_the_rank_grows_by_what_the_gradient_shows_and_stops_by_itself():
    loss, truth = problem(rank=4, noise=0.01)
    solver = ARSSM3F(max_rank=30, outer_tol=1e-2)
    result = minimize(loss, NONE, solver=solver, max_iter=300, run=Run(measure={"rank": lambda x: x.rank}))
    ranks = np.array(result.history["rank"])
    assert np.all(np.diff(ranks) >= 0)
    assert np.max(np.diff(ranks)) <= 5
    assert 4 <= result.x.rank < 10
    assert np.linalg.norm(result.x.to_array() - truth) < 0.05 * np.linalg.norm(truth)


def test_arss_m3f_ends_after_its_final_steps():
    loss, _ = problem(m=30, n=25, noise=0.3)
    solver = ARSSM3F(max_rank=6, final_steps=20)
    result = minimize(loss, NONE, solver=solver, tol=0.0, run=Run(measure={"rank": lambda x: x.rank}))
    assert result.status is Status.ENDED
    assert result.history["rank"][-21:] == [6] * 21


@pytest.mark.parametrize("solver", [LMaFit(2), ER1MP(2), SketchyCGM(1.0, 2), ARSSM3F()])
def test_a_penalty_that_would_be_ignored_is_refused(solver):
    X = np.outer(np.arange(1.0, 6), np.arange(1.0, 5))
    with pytest.raises(TypeError, match="NoPenalty"):
        complete_matrix(X, alpha=0.1, solver=solver)
    assert complete_matrix(X, penalty=NoPenalty(), solver=solver, max_iter=3).x.rank >= 1

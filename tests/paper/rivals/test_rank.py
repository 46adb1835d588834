"""The rivals that bound the rank: LMaFit's strategies, ER1MP's pursuit, ARSS-M3F's geometry."""

import numpy as np
import pytest

from ell12 import Run, Status, minimize
from ell12.completion import CompletionLoss, LowRank, Observed
from ell12.penalties import NoPenalty
from ell12_paper.rivals import ARSSM3F, ER1MP, LMaFit
from ell12_paper.rivals.arss_m3f import ManifoldProblem, Tangent

NONE = NoPenalty()
RANK = Run(measure={"rank": lambda x: x.rank})


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


def test_the_geometry_of_a_rank_is_the_textbook_one():
    rng = np.random.default_rng(5)
    x, other = (LowRank.from_factors(rng.standard_normal((12, 3)), rng.standard_normal((9, 3))) for _ in range(2))
    G, H = rng.standard_normal((2, 12, 9))

    def dense(tangent):
        left, right = tangent.factors()
        return left @ right.T

    def projected(Z, at):
        PU, PV = at.U @ at.U.T, at.V @ at.V.T
        return PU @ Z + Z @ PV - PU @ Z @ PV

    a, b = Tangent.project(G, x), Tangent.project(H, x)
    np.testing.assert_allclose(dense(a), projected(G, x), atol=1e-12)
    np.testing.assert_allclose(dense(a.transport(other)), projected(projected(G, x), other), atol=1e-12)
    np.testing.assert_allclose(dense(a + -2.0 * b), dense(a) - 2 * dense(b), atol=1e-12)
    np.testing.assert_allclose(a.entries(np.array([0, 11]), np.array([8, 0])), dense(a)[[0, 11], [8, 0]])
    assert (a.inner(b), a.norm()) == pytest.approx((np.vdot(dense(a), dense(b)), np.linalg.norm(dense(a))))
    U, s, Vt = np.linalg.svd(x.to_array() + 0.7 * dense(a))  # the nearest matrix of this rank
    np.testing.assert_allclose(a.retract(0.7).to_array(), (U[:, :3] * s[:3]) @ Vt[:3], atol=1e-11)


def test_the_riemannian_gradient_is_the_derivative_along_the_retraction():
    rng = np.random.default_rng(3)
    loss, truth = problem(m=14, n=11, rank=2, fraction=0.6)
    x = LowRank.from_factors(rng.standard_normal((14, 3)), rng.standard_normal((11, 3)))
    here = ManifoldProblem(loss).at(loss.point(x))
    direction = Tangent.project(rng.standard_normal(truth.shape), x)
    ahead, behind = (loss.value(loss.point(direction.retract(t))) for t in (1e-5, -1e-5))
    assert here.slope.inner(direction) == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)

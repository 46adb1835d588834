"""The rivals: all recover a low-rank matrix, keep dtype and inputs, and survive the edges."""

import numpy as np
import pytest

from ell12 import L1, SpectralL12, SquaredLoss, minimize
from ell12.completion import CompletionLoss, LowRank, Observed
from ell12.penalties import NoPenalty, SpectralLogSum
from ell12_paper.rivals import (
    ARSSM3F,
    ER1MP,
    AISImpute,
    FaNCL,
    LMaFit,
    SketchyCGM,
    SoftImpute,
)

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


def low_rank(seed=0, m=60, n=50, rank=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))


def completion(truth, fraction=0.5, seed=1):
    return CompletionLoss(Observed.from_mask(truth, np.random.default_rng(seed).random(truth.shape) < fraction))


def relative_error(x, truth):
    return np.linalg.norm(x.to_array() - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize(
    ("solver", "bound"),
    [
        (LMaFit(rank=3), 1e-5),
        (LMaFit(rank=8, strategy="increasing"), 1e-5),
        (ARSSM3F(max_rank=3), 1e-5),
        (ARSSM3F(max_rank=20), 1e-5),
    ],
    ids=repr,
)
def test_bounded_ranks_recover_a_low_rank_matrix_from_half_its_entries(solver, bound):
    truth = low_rank()
    result = minimize(completion(truth), NONE, solver=solver, max_iter=500)
    assert result.x.rank == 3
    assert relative_error(result.x, truth) < bound


def test_ais_impute_recovers_a_low_rank_matrix_from_half_its_entries():
    truth = low_rank()
    result = minimize(completion(truth), SpectralL12(1e-3, l2_weight=0.0), solver=AISImpute())
    assert result.converged
    assert result.x.rank == 3
    assert relative_error(result.x, truth) < 1e-4


def test_soft_impute_recovers_along_a_falling_strength_as_published():
    truth, x = low_rank(), None
    loss = completion(truth)
    for alpha in np.geomspace(30, 0.01, 8):
        result = minimize(loss, SpectralL12(alpha, l2_weight=0.0), x0=x, solver=SoftImpute(), max_iter=2000)
        x = result.x
    assert result.converged
    assert x.rank == 3
    assert relative_error(x, truth) < 1e-3


def test_fancl_recovers_with_less_bias_than_the_nuclear_norm():
    truth = low_rank()
    loss = completion(truth)
    log_sum = minimize(loss, SpectralLogSum(1.0, theta=1.0), solver=FaNCL(), max_iter=1000)
    nuclear = minimize(loss, SpectralL12(1.0, l2_weight=0.0), solver=AISImpute())
    assert log_sum.converged
    assert log_sum.x.rank == 3
    assert relative_error(log_sum.x, truth) < 2e-3
    assert relative_error(log_sum.x, truth) < 0.1 * relative_error(nuclear.x, truth)


def test_er1mp_is_the_truncated_svd_where_all_is_known_and_near_where_nearly_all_is():
    truth = low_rank()
    U, s, Vt = np.linalg.svd(truth)
    whole = CompletionLoss(Observed.from_mask(truth, np.ones(truth.shape, bool)))
    two = minimize(whole, NONE, solver=ER1MP(max_rank=2)).x
    np.testing.assert_allclose(two.to_array(), (U[:, :2] * s[:2]) @ Vt[:2], atol=0.02 * s[0])
    assert relative_error(minimize(whole, NONE, solver=ER1MP(max_rank=20)).x, truth) < 1e-6
    # A greedy fit of half the entries does not find the rank: that is the method.
    errors = [
        relative_error(minimize(completion(truth, fraction), NONE, solver=ER1MP(max_rank=40)).x, truth)
        for fraction in (0.5, 0.8, 0.95)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


@each_rival
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (6, 5), (5, 9)])
@pytest.mark.parametrize("fraction", [1.0, 0.6])
def test_small_matrices_and_ranks_beyond_them(penalty, solver, shape, fraction):
    rng = np.random.default_rng(sum(shape))
    truth, known = rng.standard_normal(shape), rng.random(shape) < fraction
    known[0, 0] = True
    loss = CompletionLoss(Observed.from_mask(truth, known))
    result = minimize(loss, penalty, solver=solver, max_iter=30)
    assert result.x.shape == shape
    assert result.x.rank <= min(shape)
    assert np.isfinite(result.x.to_array()).all()
    assert result.objective <= loss.value(loss.point(loss.start()))
    x = result.x
    assert result.objective == pytest.approx(loss.value(loss.point(x)) + penalty.value(x), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(x.U.T @ x.U, np.eye(x.rank), atol=1e-8)
    np.testing.assert_allclose(x.V.T @ x.V, np.eye(x.rank), atol=1e-8)


@each_rival
def test_rows_and_columns_without_entries_stay_finite(penalty, solver):
    truth = low_rank(m=12, n=10)
    known = np.ones(truth.shape, bool)
    known[3], known[:, 4] = False, False
    result = minimize(CompletionLoss(Observed.from_mask(truth, known)), penalty, solver=solver, max_iter=30)
    assert np.isfinite(result.x.to_array()).all()


@each_rival
def test_zeros_are_completed_by_zeros(penalty, solver):
    result = minimize(CompletionLoss(np.zeros((4, 3))), penalty, solver=solver, max_iter=5)
    np.testing.assert_allclose(result.x.to_array(), np.zeros((4, 3)), atol=1e-300)


@each_rival
def test_single_precision_stays_and_inputs_are_not_written_to(penalty, solver):
    truth = low_rank(m=15, n=12).astype(np.float32)
    loss = completion(truth, 0.8)
    for array in (loss.observed.values, loss.observed.rows, loss.observed.columns):
        array.flags.writeable = False
    x0 = LowRank.from_factors(0.01 * truth[:, :1], truth[:1, :].T)
    before = x0.to_array().copy()
    result = minimize(loss, penalty, x0=x0, solver=solver, max_iter=10)
    assert result.x.dtype == np.float32
    assert {part.dtype for part in (result.x.U, result.x.V)} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(x0.to_array(), before)


@each_rival
def test_a_run_repeats_exactly(penalty, solver):
    loss = completion(low_rank(m=15, n=12), 0.8)
    runs = [minimize(loss, penalty, solver=solver, max_iter=10) for _ in range(2)]
    assert runs[0].history["objective"] == runs[1].history["objective"]


@each_rival
def test_a_good_start_is_used(penalty, solver):
    truth = low_rank(m=20, n=16)
    loss = completion(truth, 0.8)
    U, s, Vt = np.linalg.svd(truth, full_matrices=False)
    x0 = LowRank(U[:, :3], s[:3] * min(1.0, 4.9 / s[:3].sum()), Vt[:3].T)
    first = minimize(loss, penalty, x0=x0, solver=solver, max_iter=1)
    assert first.history["objective"][0] == pytest.approx(loss.value(loss.point(x0)) + penalty.value(x0))
    assert first.objective <= first.history["objective"][0]


def test_a_start_outside_the_ball_and_a_penalty_that_does_not_fit_are_refused():
    loss = CompletionLoss(np.eye(3))
    with pytest.raises(ValueError, match="radius"):
        minimize(loss, NONE, x0=LowRank.from_factors(np.eye(3), np.eye(3)), solver=SketchyCGM(1.0, rank=1))
    with pytest.raises(TypeError, match="NoPenalty"):
        minimize(loss, NUCLEAR, solver=ARSSM3F())


@each_rival
def test_other_losses_and_other_arrays_are_refused(penalty, solver):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"SquaredLoss.* lacks observed, residual, after_step"):
        minimize(SquaredLoss(np.eye(2), np.ones(2)), L1(1.0), solver=solver)
    values = torch.ones((3, 2), dtype=torch.float64)
    loss = CompletionLoss(Observed.from_mask(values, values > 0))
    with pytest.raises(TypeError, match="NumPy arrays"):
        minimize(loss, penalty, solver=solver)

"""The rivals: all recover a low-rank matrix, keep dtype and inputs, and survive the edges."""

import numpy as np
import pytest

from ell12 import L1, SpectralL12, SquaredLoss, minimize
from ell12.completion import CompletionLoss, LowRank, Observed
from ell12.penalties import NoPenalty, SpectralLogSum
from ell12_paper.rivals import ARSSM3F, ER1MP, AISImpute, FaNCL, LMaFit, SketchyCGM, SoftImpute

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
    truth = low_rank()
    x = minimize(completion(truth), penalty, solver=solver, max_iter=1000).x
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
    truth = low_rank(m=15, n=12).astype(np.float32)
    loss = completion(truth, 0.8)
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
    truth = low_rank(m=20, n=16)
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
    with pytest.raises(TypeError, match=r"SquaredLoss.* lacks observed, residual, after_step"):
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

"""The solvers of total variation agree with each other, and with convex optimisation where that applies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse.linalg
from tests.restoration import short

import ell12
from ell12.losses import SquaredLoss
from ell12.operators.image_operators import (
    FiniteDifference,
    Identity,
)
from ell12.restoration import (
    AlternatingMinimization,
    GrowingADMM,
    SmoothedGradient,
    TotalVariationDCA,
    TotalVariationL12,
)

SMOOTH = [
    SmoothedGradient(),
    AlternatingMinimization(),
    AlternatingMinimization(cg_tol=1e-3, cg_max_iter=5),
    AlternatingMinimization("exact"),
    AlternatingMinimization("exact", accelerated=True),
]


def noisy(shape=(40, 40), sigma=0.05, seed=0):
    """A ramp, a rectangle and a disc, with noise."""
    rng = np.random.default_rng(seed)
    i, j = np.indices(shape)
    clean = 0.3 * i / shape[0] + 0.5 * ((i > 8) & (i < 25) & (j > 5) & (j < 20))
    clean = clean + 0.4 * ((i - 25) ** 2 + (j - 28) ** 2 < 60)
    return clean + sigma * rng.standard_normal(shape)


def huber_minimum(y, alpha, smoothing, steps=4000):
    """The least ``1/2 ||x - y||^2 + alpha huber(D x)``, by the primal-dual method of Chambolle and Pock."""
    D = FiniteDifference(y.shape)
    x, v = y.copy(), np.zeros((*y.shape, 2))
    ahead, tau, sigma = x, 0.25, 0.5
    for _ in range(steps):
        v = (v + sigma * (D @ ahead)) / (1 + sigma * smoothing / alpha)
        v = np.clip(v, -alpha, alpha)
        new = (x - tau * (D.H @ v) + tau * y) / (1 + tau)
        ahead, x = 2 * new - x, new
    size = np.abs(D @ x)
    huber = np.where(size <= smoothing, size**2 / (2 * smoothing), size - smoothing / 2) if smoothing else size
    return 0.5 * np.sum((x - y) ** 2) + alpha * np.sum(huber)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_without_the_l2_norm_it_is_convex_total_variation(alpha):
    y = noisy()
    expected = huber_minimum(y, alpha, 0.01)
    result = short.denoise_tv(y, alpha, l2_weight=0, smoothing=0.01, return_result=True).result
    assert result.converged
    assert expected * (1 - 1e-6) <= result.objective <= expected * (1 + 1e-4)


def test_growing_admm_and_dca_reach_the_least_true_total_variation():
    y = noisy((24, 24))
    expected = huber_minimum(y, 0.1, 0.0, 20_000)
    for solver, slack in ((GrowingADMM(growth=1.02), 1e-3), (TotalVariationDCA(inner_tol=1e-6), 1e-4)):
        found = short.denoise_tv(y, 0.1, l2_weight=0, solver=solver, max_iter=400, tol=1e-3, return_result=True)
        assert expected * (1 - 1e-6) <= found.result.objective <= expected * (1 + slack)


def test_dca_ends_when_only_flat_regions_turn():
    y = noisy((24, 24))
    found = short.denoise_tv(y, 0.1, solver=TotalVariationDCA(), max_iter=30, return_result=True).result
    assert found.converged
    longer = short.denoise_tv(y, 0.1, solver=TotalVariationDCA(), tol=0, max_iter=30, return_result=True).result
    assert found.objective <= min(longer.history["objective"]) * (1 + 5e-3)


@pytest.mark.parametrize("options", [{"inner": "cg", "cg_tol": 1e-12}, {"warm_start": False}], ids=str)
def test_options_of_dca_change_the_way_and_not_the_problems(options):
    y = np.random.default_rng(5).random((12, 10))
    accurate = {"inner_tol": 1e-9, "inner_max_iter": 5000}
    found, plain = (
        short.denoise_tv(
            y, 0.1, solver=TotalVariationDCA(**accurate, **given), tol=0, max_iter=3, return_result=True
        )
        for given in (options, {})
    )
    np.testing.assert_allclose(found.image, plain.image, atol=1e-6)


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_the_solvers_of_the_smoothed_objective_agree(l2_weight, boundary):
    y = noisy()
    values = [
        short.denoise_tv(
            y, 0.05, l2_weight=l2_weight, boundary=boundary, solver=solver, return_result=True
        ).result.objective
        for solver in SMOOTH
    ]
    assert max(values) <= min(values) * (1 + 1e-3)


@pytest.mark.parametrize("solver", SMOOTH[1:4], ids=str)
def test_alternating_minimization_never_raises_the_objective(solver):
    for l2_weight in (0.5, 1.0):
        options = {"l2_weight": l2_weight, "solver": solver, "tol": 0, "max_iter": 25, "return_result": True}
        values = short.denoise_tv(noisy(), 0.1, **options).result.history["objective"][1:]
        assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))


def test_alternating_minimization_takes_the_papers_steps():
    y, mu = noisy((12, 12)), 100 * 0.05
    D = FiniteDifference(y.shape)
    x, W = y, np.zeros((12, 12, 2))
    expected = []
    for _ in range(3):
        matrix = scipy.sparse.linalg.LinearOperator(
            (144, 144), lambda v: v + mu * (D.H @ (D @ v.reshape(12, 12))).reshape(-1)
        )
        right = (y + mu * (D.H @ W)).reshape(-1)
        x = scipy.sparse.linalg.cg(matrix, right, x.reshape(-1), rtol=1e-12)[0].reshape(12, 12)
        W = ell12.prox_l12(D @ x, 0.01, axis=-1)
        expected.append(x)
    loss, penalty = SquaredLoss(Identity(y.shape), y), TotalVariationL12(0.05, 1.0, smoothing=0.01)
    iterates = AlternatingMinimization(cg_tol=1e-12).iterates(loss, penalty, loss.point(y))
    for x in expected:
        np.testing.assert_allclose(next(iterates).point.x, x, atol=1e-8)


def test_the_true_objective_is_lowest_where_it_is_minimised():
    y, penalty = noisy(sigma=0.1), TotalVariationL12(0.15)
    measure = {"true": lambda x: 0.5 * np.sum((x - y) ** 2) + penalty.value(x)}
    runs = {
        name: short.denoise_tv(y, 0.15, solver=solver, measure=measure, max_iter=300, return_result=True).result
        for name, solver in (
            ("smooth", None),
            ("dca", TotalVariationDCA()),
            ("admm", GrowingADMM()),
        )
    }
    true = {name: min(run.history["true"]) for name, run in runs.items()}
    assert true["admm"] < true["smooth"]
    assert true["dca"] < true["smooth"]
    np.testing.assert_allclose(runs["admm"].history["true"], runs["admm"].history["objective"], rtol=1e-9)


def test_bounds_are_kept_and_the_result_is_stationary():
    y = noisy(sigma=0.3)
    result = short.denoise_tv(y, 0.1, bounds=(0.1, 0.7), smoothing=0.01, tol=1e-3, return_result=True).result
    x = result.x
    assert x.min() == 0.1
    assert x.max() == 0.7
    gradient = x - y + TotalVariationL12(0.1, smoothing=0.01).value_and_gradient(x)[1]
    inside = (x > 0.1) & (x < 0.7)
    assert np.sqrt(np.mean(gradient[inside] ** 2)) < 1e-4
    assert gradient[x == 0.1].min() > -1e-3
    assert gradient[x == 0.7].max() < 1e-3
    admm = short.denoise_tv(y, 0.1, bounds=(0.1, 0.7), solver=GrowingADMM(), max_iter=300, return_result=True)
    assert 0.1 <= admm.image.min() <= admm.image.max() <= 0.7
    assert np.std(admm.image - x) < 0.03


def test_wrong_solvers_say_so():
    y = noisy((8, 8))
    with pytest.raises(ValueError, match="inner must be"):
        AlternatingMinimization("lu")
    with pytest.raises(ValueError, match="growth"):
        GrowingADMM(growth=1.0)
    with pytest.raises(ValueError, match="first_threshold"):
        GrowingADMM(first_threshold=0.0)
    with pytest.raises(ValueError, match="penalty_weight"):
        TotalVariationDCA(penalty_weight=-1.0)
    with pytest.raises(ValueError, match="threads"):
        SmoothedGradient(threads=0)
    with pytest.raises(ValueError, match="takes no bounds"):
        short.denoise_tv(y, 0.1, bounds=(0, 1), solver=AlternatingMinimization())
    loss = SquaredLoss(Identity(y.shape), y)
    with pytest.raises(ValueError, match="smoothing > 0"):
        ell12.minimize(loss, TotalVariationL12(0.1, smoothing=0.0), solver=SmoothedGradient())
    with pytest.raises(ValueError, match="smoothing 0"):
        ell12.minimize(loss, TotalVariationL12(0.1, smoothing=0.01), solver=GrowingADMM())


@pytest.mark.parametrize("size", [40, 140])  # plainly, and where squared losses take the compiled sweep
def test_other_losses_are_minimised_and_not_taken_for_squared_ones(size):
    y = noisy((size, size))
    y[::7, ::5] += 3
    for loss in (
        ell12.HuberLoss(Identity(y.shape), y, delta=0.1),
        SquaredLoss(Identity(y.shape), y, scale=0.5),
        SquaredLoss(Identity(y.shape), y, sample_weight=np.where(y > 1, 0.1, 1.0)),
    ):
        penalty = TotalVariationL12(0.05, smoothing=0.01)
        found = ell12.minimize(loss, penalty, solver=SmoothedGradient(), tol=0.05)
        assert found.converged
        assert found.objective == pytest.approx(loss.value(loss.point(found.x)) + penalty.value(found.x), rel=1e-9)
        assert ell12.stationarity(loss, penalty, found.x) <= 0.05 * (1 + 1e-6)
        for solver in (GrowingADMM(), TotalVariationDCA()):
            with pytest.raises(ValueError, match="SquaredLoss of scale 1"):
                ell12.minimize(loss, TotalVariationL12(0.05, smoothing=0.0), solver=solver)
    twice = SquaredLoss(Identity(y.shape), y, scale=2.0)
    with pytest.raises(ValueError, match="scale <= 1"):
        ell12.minimize(twice, TotalVariationL12(0.05, smoothing=0.01), solver=AlternatingMinimization())


@pytest.mark.parametrize("bounds", [None, (0.1, 0.8)])
@pytest.mark.parametrize("size", [40, 140])  # plainly, and by the compiled sweep
def test_the_stationarity_of_a_sweep_is_the_one_that_is_computed_anew(bounds, size):
    y = noisy((size, size))
    run = short.denoise_tv(y, 0.1, bounds=bounds, smoothing=0.01, tol=0.01, return_result=True).result
    penalty = TotalVariationL12(0.1, 0.5, smoothing=0.01, ndim=2, bounds=bounds)
    assert run.converged
    assert run.stationarity == pytest.approx(
        ell12.stationarity(SquaredLoss(Identity((size, size)), y), penalty, run.x)
    )

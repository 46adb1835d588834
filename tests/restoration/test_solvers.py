"""The solvers of total variation agree with each other, and with convex optimisation where that applies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse.linalg
from tests.restoration import short
from tests.restoration.oracles import least_objective, noisy

import ell12
from ell12 import TotalVariationL12
from ell12.losses import SquaredLoss
from ell12.operators.image_operators import Convolution, FiniteDifference, FourierSampling, Identity
from ell12.protocols import missing, offers
from ell12.restoration import AlternatingMinimization, GrowingADMM, SmoothedGradient
from ell12.restoration.smoothed_gradient import ImageLoss, ImageSolver, SmoothImageLoss, VariationPenalty
from ell12.restoration.splitting_parts import difference_symbol, exact_solver, has_exact_solver, normal_product

SMOOTH = [
    SmoothedGradient(),
    AlternatingMinimization(),
    AlternatingMinimization(cg_tol=1e-3, cg_max_iter=5),
    AlternatingMinimization("exact"),
    AlternatingMinimization("exact", accelerated=True),
]


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_without_the_l2_norm_it_is_convex_total_variation(alpha, isotropic):
    y = noisy()
    expected = least_objective(y, alpha, 0.01, isotropic)
    options = {"l2_weight": 0, "isotropic": isotropic, "smoothing": 0.01, "return_result": True}
    for solver in (None, AlternatingMinimization("exact")):
        result = short.denoise_tv(y, alpha, solver=solver, tol=0.01, **options).result
        assert result.converged
        assert expected * (1 - 1e-6) <= result.objective <= expected * (1 + 1e-4)


@pytest.mark.parametrize("isotropic", [False, True])
def test_growing_admm_reaches_the_least_true_total_variation(isotropic):
    y = noisy((24, 24))
    expected = least_objective(y, 0.1, isotropic=isotropic)
    options = {"l2_weight": 0, "isotropic": isotropic, "max_iter": 400, "tol": 1e-3, "return_result": True}
    found = short.denoise_tv(y, 0.1, solver=GrowingADMM(growth=1.02), **options)
    assert expected * (1 - 1e-6) <= found.result.objective <= expected * (1 + 1e-3)


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_the_solvers_of_the_smoothed_objective_agree(l2_weight, boundary):
    y = noisy()
    options = {"l2_weight": l2_weight, "boundary": boundary, "return_result": True}
    values = [short.denoise_tv(y, 0.05, solver=solver, **options).result.objective for solver in SMOOTH]
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
    options = {"measure": measure, "max_iter": 300, "return_result": True}
    smooth, admm = (
        short.denoise_tv(y, 0.15, solver=solver, **options).result.history for solver in (None, GrowingADMM())
    )
    assert min(admm["true"]) < min(smooth["true"])
    np.testing.assert_allclose(admm["true"], admm["objective"], rtol=1e-9)


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


IMAGE = noisy((8, 8))
LOSS = SquaredLoss(Identity((8, 8)), IMAGE)
WRONG = {
    "growth": lambda: GrowingADMM(growth=1.0),
    "first_threshold": lambda: GrowingADMM(first_threshold=0.0),
    "threads": lambda: SmoothedGradient(threads=0),
    "no bounds": lambda: short.denoise_tv(IMAGE, 0.1, bounds=(0, 1), solver=AlternatingMinimization()),
    "smoothing > 0": lambda: ell12.minimize(LOSS, TotalVariationL12(0.1, smoothing=0), solver=SmoothedGradient()),
    "smoothing 0": lambda: ell12.minimize(LOSS, TotalVariationL12(0.1, smoothing=0.01), solver=GrowingADMM()),
    "scale <= 1": lambda: ell12.minimize(
        SquaredLoss(LOSS.A, IMAGE, scale=2.0), TotalVariationL12(0.1, smoothing=0.01), solver=SMOOTH[1]
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_solvers_say_so(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()


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
        with pytest.raises(ValueError, match="SquaredLoss of scale 1"):
            ell12.minimize(loss, TotalVariationL12(0.05, smoothing=0.0), solver=GrowingADMM())


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


SOLVERS = [SmoothedGradient(), AlternatingMinimization(), GrowingADMM()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_a_solver_of_images_says_what_another_penalty_lacks(solver):
    assert offers(solver, ImageSolver)
    assert not offers(ell12.FISTA(), ImageSolver)
    needed = SmoothImageLoss if solver.smooths else ImageLoss
    assert (solver.needs.loss, solver.needs.penalty) == (needed, VariationPenalty)
    assert offers(LOSS, SmoothImageLoss)
    assert missing(TotalVariationL12(1.0), VariationPenalty) == []
    with pytest.raises(TypeError, match=f"{type(solver).__name__} needs .* L12 lacks .*smoothing"):
        ell12.minimize(ell12.SquaredLoss(np.eye(3), np.ones(3)), ell12.L12(1.0), solver=solver)


# Linear systems, against dense matrices made column by column

SHAPE = (5, 6)
RANDOM = np.random.default_rng(0)
OPERATORS = [
    (Identity(SHAPE), "neumann"),
    (Identity(SHAPE), "periodic"),
    (Convolution(RANDOM.random((3, 3)), SHAPE), "periodic"),
    (FourierSampling(RANDOM.random(SHAPE) < 0.5), "periodic"),
]


def dense(times):
    """The matrix of a map of images, column by column."""
    return np.stack([times(e.reshape(SHAPE)).ravel() for e in np.eye(30)], axis=1)


def gram(boundary, spacing=(1.0, 1.0)):
    """D'D by its definition: each pixel against its right and its lower neighbour."""
    found, number = np.zeros((30, 30)), np.arange(30).reshape(SHAPE)
    for axis, distance in enumerate(spacing):
        ends = np.roll(number, -1, axis)
        for i in np.ndindex(SHAPE):
            if boundary == "periodic" or i[axis] < SHAPE[axis] - 1:
                row = np.zeros(30)
                row[number[i]] -= 1 / distance
                row[ends[i]] += 1 / distance
                found += np.outer(row, row)
    return found


@pytest.mark.parametrize("boundary", ["periodic", "neumann"])
@pytest.mark.parametrize("spacing", [(1.0, 1.0), (2.0, 0.5)])
def test_the_symbol_holds_the_eigenvalues_of_the_differences(boundary, spacing):
    expected = np.linalg.eigvalsh(gram(boundary, spacing))
    symbol = difference_symbol(SHAPE, boundary, spacing)
    np.testing.assert_allclose(np.sort(symbol.ravel()), expected, atol=1e-12)
    assert expected[-1] <= FiniteDifference(SHAPE, boundary, spacing=spacing).norm_squared


@pytest.mark.parametrize(("A", "boundary"), OPERATORS)
def test_exact_solutions_solve_the_system_written_out(A, boundary):
    penalty = TotalVariationL12(0.1, boundary=boundary)
    assert has_exact_solver(A, penalty, np.zeros(SHAPE))
    matrix = dense(lambda x: A @ x)
    system = (matrix.conj().T @ matrix).real + 0.7 * gram(boundary) + 0.2 * np.eye(30)
    np.testing.assert_allclose(dense(lambda x: normal_product(A, penalty, x, 0.7, 0.2)).real, system, atol=1e-12)
    right = np.random.default_rng(1).standard_normal(SHAPE)
    found = exact_solver(A, penalty, right)(right, right, 0.7, 0.2)
    np.testing.assert_allclose(found.ravel(), np.linalg.solve(system, right.ravel()), atol=1e-11)


def test_what_no_transform_makes_diagonal_is_refused_by_name():
    blur = Convolution(np.ones((3, 3)) / 9, SHAPE)
    with pytest.raises(ValueError, match="an exact step needs denoising"):
        exact_solver(blur, TotalVariationL12(0.1, boundary="neumann"), np.zeros(SHAPE))

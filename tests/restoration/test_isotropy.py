"""Isotropic total variation and the spacing of pixels, against their definitions and convex optimisation."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from tests.restoration import short

import ell12
from ell12.losses import SquaredLoss
from ell12.operators.image_operators import FiniteDifference, Identity
from ell12.restoration import AlternatingMinimization, GrowingADMM, TotalVariationDCA, TotalVariationL12
from ell12.restoration.splitting_parts import difference_symbol
from ell12.restoration.stencil import envelope_and_gradient

RNG = np.random.default_rng(0)


def drawing(shape=(24, 20), sigma=0.05, seed=0):
    """A disc and a slanted edge, with noise."""
    i, j = np.indices(shape)
    clean = 0.6 * ((i - 10) ** 2 + (j - 8) ** 2 < 36) + 0.4 * (i + 2 * j > 42)
    return clean + sigma * np.random.default_rng(seed).standard_normal(shape)


def lengths(x, spacing=(1.0, 1.0)):
    """The length of each pixel's differences, pixel by pixel as it is written."""
    found = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        steps = [
            (x[(*i[:k], i[k] + 1, *i[k + 1 :])] - x[i]) / spacing[k] if i[k] + 1 < x.shape[k] else 0.0
            for k in range(x.ndim)
        ]
        found[i] = np.sqrt(np.sum(np.square(steps)))
    return found


def isotropic_minimum(y, alpha, smoothing=0.0, steps=2000):
    """The least convex isotropic objective, by the accelerated primal-dual method of Chambolle and Pock."""
    D = FiniteDifference(y.shape)
    x, v = y.copy(), np.zeros((*y.shape, 2))
    ahead, tau, sigma = x, 0.25, 0.5
    for _ in range(steps):
        v = (v + sigma * (D @ ahead)) / (1 + sigma * smoothing / alpha)
        v = v / np.maximum(1, np.linalg.norm(v, axis=-1, keepdims=True) / alpha)
        new = (x - tau * (D.H @ v) + tau * y) / (1 + tau)
        theta = 1 / np.sqrt(1 + tau)
        ahead, x, tau, sigma = new + theta * (new - x), new, theta * tau, sigma / theta
    size = lengths(x)
    cost = np.where(size <= smoothing, size**2 / (2 * smoothing), size - smoothing / 2) if smoothing else size
    return 0.5 * np.sum((x - y) ** 2) + alpha * np.sum(cost)


def test_the_penalty_is_what_is_written():
    x = RNG.standard_normal((3, 5, 4))
    for l2_weight in (0.0, 0.5, 1.0):
        penalty = TotalVariationL12(0.3, l2_weight, smoothing=0.0, isotropic=True, spacing=(2.0, 6.0))
        sizes = [lengths(image, (1.0, 3.0)) for image in x]
        wanted = sum(np.sum(size) - l2_weight * np.linalg.norm(size) for size in sizes)
        assert penalty.value(x) == pytest.approx(0.3 * wanted, rel=1e-12)


@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
@pytest.mark.parametrize("t", [0.2, 3.0, 9.0])  # some steps exceed it, a few do, none does
def test_the_envelope_is_the_smallest_value_and_has_the_gradient_it_claims(l2_weight, t):
    x, D = RNG.standard_normal((4, 3)), FiniteDifference((4, 3), spacing=(1.0, 2.0))
    steps = D @ x

    def cost(w):
        w = w.reshape(steps.shape)
        size = np.linalg.norm(w, axis=-1)
        return 0.5 * np.sum((w - steps) ** 2) + t * (np.sum(size) - l2_weight * np.linalg.norm(size))

    value, _ = envelope_and_gradient(x, D, t, l2_weight, isotropic=True)
    largest = np.zeros_like(steps)  # of the many minima that none of the sums exceeds, one keeps one pixel
    place = np.unravel_index(np.argmax(np.linalg.norm(steps, axis=-1)), x.shape)
    largest[place] = steps[place]
    starts = [steps, largest, 0 * steps, *RNG.standard_normal((3, *steps.shape))]
    found = [minimize(cost, start.ravel(), method="Powell", options={"maxiter": 20000}).fun for start in starts]
    assert value <= min(found) * (1 + 1e-12)
    assert value >= min(found) * (1 - 1e-4)

    def f(v):
        return envelope_and_gradient(v.reshape(4, 3), D, t, l2_weight, isotropic=True)[0]

    def g(v):
        return envelope_and_gradient(v.reshape(4, 3), D, t, l2_weight, isotropic=True)[1].ravel()

    assert check_grad(f, g, x.ravel()) < 1e-5


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_without_the_l2_norm_it_is_convex_isotropic_total_variation(alpha):
    y = drawing()
    expected = isotropic_minimum(y, alpha, 0.01)
    options = {"l2_weight": 0, "isotropic": True, "return_result": True}
    for solver in (None, AlternatingMinimization("exact")):
        found = short.denoise_tv(y, alpha, smoothing=0.01, tol=0.01, solver=solver, **options).result
        assert found.converged
        assert expected * (1 - 1e-6) <= found.objective <= expected * (1 + 1e-4)
    expected = isotropic_minimum(y, alpha)
    for solver, slack in ((GrowingADMM(growth=1.02), 1e-3), (TotalVariationDCA(inner_tol=1e-6), 1e-4)):
        found = short.denoise_tv(y, alpha, solver=solver, max_iter=400, tol=0.01, **options).result
        assert expected * (1 - 1e-6) <= found.objective <= expected * (1 + slack)


def test_scikit_image_finds_the_same_picture():
    restoration = pytest.importorskip("skimage.restoration")
    y = drawing((28, 28))
    theirs = restoration.denoise_tv_chambolle(y, weight=0.1, eps=1e-8, max_num_iter=2000)
    ours = short.denoise_tv(y, 0.1, l2_weight=0, isotropic=True, smoothing=2e-4)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_the_solvers_of_the_l12_form_agree(l2_weight):
    y = drawing()
    options = {"l2_weight": l2_weight, "isotropic": True, "return_result": True}
    smooth = [
        short.denoise_tv(y, 0.1, smoothing=0.01, tol=0.01, solver=solver, **options).result
        for solver in (None, AlternatingMinimization("exact"))
    ]
    assert all(run.converged for run in smooth)
    assert smooth[0].objective == pytest.approx(smooth[1].objective, rel=1e-4)
    true = [
        short.denoise_tv(y, 0.1, solver=solver, max_iter=300, tol=0.01, **options).result.objective
        for solver in (GrowingADMM(growth=1.02), TotalVariationDCA(inner_tol=1e-6))
    ]
    assert true[0] == pytest.approx(true[1], rel=1e-3)
    assert min(true) < TotalVariationL12(0.1, l2_weight, smoothing=0.0, isotropic=True).value(
        smooth[0].x
    ) + 0.5 * np.sum((smooth[0].x - y) ** 2)


@pytest.mark.parametrize("isotropic", [False, True])
def test_a_certificate_is_small_where_the_objective_is_least(isotropic):
    y = drawing()
    found = short.denoise_tv(
        y, 0.1, l2_weight=0.5, isotropic=isotropic, solver=GrowingADMM(), tol=0, max_iter=400, return_result=True
    ).result
    loss, penalty = (
        SquaredLoss(Identity(y.shape), y),
        TotalVariationL12(0.1, 0.5, smoothing=0.0, isotropic=isotropic),
    )
    assert ell12.stationarity(loss, penalty, found.x) < 0.05
    assert ell12.stationarity(loss, penalty, y) > 0.3


def test_the_norm_is_that_of_one_channel():
    y = np.stack([drawing(seed=0), 3 * drawing(seed=1), 0.2 * drawing(seed=2)], axis=-1)
    options = {"l2_weight": 1.0, "isotropic": True, "smoothing": 0.01, "tol": 1e-4}
    together = short.denoise_tv(y, 0.1, channel_axis=-1, **options)
    for channel in range(3):
        np.testing.assert_allclose(
            together[..., channel], short.denoise_tv(y[..., channel], 0.1, **options), atol=1e-4
        )


def test_a_disc_with_missing_pixels_is_filled_in_better():
    i, j = np.indices((30, 30))
    clean = ((i - 15) ** 2 + (j - 14) ** 2 < 80).astype(float)
    mask = np.random.default_rng(1).random(clean.shape) < 0.5
    error = {
        isotropic: np.std(short.inpaint_tv(clean, mask, 1e-3, isotropic=isotropic) - clean)
        for isotropic in (False, True)
    }
    assert error[True] < 0.8 * error[False]


def test_complex_images_count_by_the_length_of_their_moduli():
    phase = np.exp(0.7j)
    plain, turned = (short.denoise_tv(f * drawing(), 0.1, isotropic=True, smoothing=0.01) for f in (1.0, phase))
    np.testing.assert_allclose(turned, phase * plain, atol=1e-9)
    mask = np.random.default_rng(0).random((24, 20)) < 0.6
    data = np.fft.fft2(drawing(sigma=0.0), norm="ortho")
    found = short.reconstruct_mri(data, mask, 1e-4, isotropic=True, tol=0.05)
    assert np.std(found - drawing(sigma=0.0)) < 0.03


@pytest.mark.parametrize("alpha", [5.0, 50.0])
def test_an_image_that_becomes_flat_is_certified_too(alpha):
    y = drawing((40, 40), sigma=0.1)
    loss = SquaredLoss(Identity(y.shape), y)
    for l2_weight in (0.5, 1.0):
        penalty = TotalVariationL12(alpha, l2_weight, smoothing=0.05, isotropic=True, spacing=(1.0, 2.0))
        found = ell12.minimize(loss, penalty, y, ell12.restoration.SmoothedGradient(), tol=0.05, max_iter=3000)
        assert found.converged
        assert found.stationarity == pytest.approx(ell12.stationarity(loss, penalty, found.x), rel=1e-6)


@pytest.mark.parametrize("isotropic", [False, True])
@pytest.mark.parametrize("distance", [1.0, 3, (2.0, 2.0), np.array([0.5, 0.5])])
def test_equal_spacing_changes_nothing(isotropic, distance):
    y = drawing()
    plain = short.denoise_tv(y, 0.1, isotropic=isotropic)
    np.testing.assert_array_equal(short.denoise_tv(y, 0.1, isotropic=isotropic, spacing=distance), plain)


@pytest.mark.parametrize("isotropic", [False, True])
def test_planes_that_lie_far_apart_are_restored_one_by_one(isotropic):
    y = np.stack([drawing((18, 16), seed=seed) for seed in range(3)])
    options = {"isotropic": isotropic, "smoothing": 0.01, "tol": 1e-4, "l2_weight": 0.0}
    apart = short.denoise_tv(y, 0.1, spacing=(1e9, 1.0, 1.0), **options)
    for plane, image in zip(apart, y, strict=True):
        np.testing.assert_allclose(plane, short.denoise_tv(image, 0.1, **options), atol=1e-4)
    along = short.denoise_tv(np.moveaxis(y, 0, 2), 0.1, spacing=(1.0, 1.0, 1e9), **options)
    np.testing.assert_allclose(np.moveaxis(along, 2, 0), apart, atol=1e-4)


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
def test_spacing_divides_the_differences(boundary):
    x, spacing = RNG.standard_normal((5, 4)), (2.0, 0.5)
    D, plain = FiniteDifference((5, 4), boundary, spacing=spacing), FiniteDifference((5, 4), boundary)
    np.testing.assert_allclose(D @ x, (plain @ x) / spacing, rtol=1e-12)
    y = RNG.standard_normal((5, 4, 2))
    np.testing.assert_allclose(np.vdot(D @ x, y), np.vdot(x, D.H @ y), rtol=1e-12)
    gram = np.stack([(D.H @ (D @ e.reshape(5, 4))).ravel() for e in np.eye(20)])
    values = np.linalg.eigvalsh(gram)
    assert values[-1] <= D.norm_squared
    np.testing.assert_allclose(np.sort(difference_symbol((5, 4), boundary, spacing).ravel()), values, atol=1e-12)


@pytest.mark.parametrize("spacing", [0.0, -1.0, np.nan, np.inf, (1.0, 2.0, 3.0), (1.0, 0.0), "12", (1.0, None)])
def test_a_wrong_spacing_is_named(spacing):
    for call in (
        lambda: short.denoise_tv(drawing(), 0.1, spacing=spacing),
        lambda: FiniteDifference((4, 4), spacing=spacing),
    ):
        with pytest.raises(ValueError, match="spacing must be"):
            call()
    with pytest.raises(ValueError, match="isotropic must be True or False"):
        short.denoise_tv(drawing(), 0.1, isotropic="yes")

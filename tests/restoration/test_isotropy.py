"""Isotropic total variation and the spacing of pixels, against their definitions and convex optimisation."""

import numpy as np
import pytest
from tests.restoration import short
from tests.restoration.oracles import noisy

import ell12
from ell12.losses import SquaredLoss
from ell12.operators.image_operators import FiniteDifference, Identity
from ell12.restoration import GrowingADMM, SmoothedGradient, TotalVariationL12

RNG = np.random.default_rng(0)
DRAWING = noisy((24, 20))


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


def test_the_penalty_is_what_is_written():
    x = RNG.standard_normal((3, 5, 4))
    penalty = TotalVariationL12(0.3, isotropic=True, spacing=(2.0, 6.0))
    wanted = sum(np.sum(lengths(image, (1.0, 3.0))) for image in x)
    assert penalty.value(x) == pytest.approx(0.3 * wanted, rel=1e-12)
    with pytest.raises(ValueError, match=r"isotropic=True needs l2_weight=0, got 0\.5"):
        TotalVariationL12(0.3, 0.5, isotropic=True)


def test_scikit_image_finds_the_same_picture():
    restoration = pytest.importorskip("skimage.restoration")
    y = noisy((28, 28))
    theirs = restoration.denoise_tv_chambolle(y, weight=0.1, eps=1e-10, max_num_iter=20_000)
    np.testing.assert_allclose(short.denoise_tv(y, 0.1, isotropic=True, smoothing=2e-4), theirs, atol=1e-3)


@pytest.mark.parametrize("isotropic", [False, True])
def test_a_certificate_is_small_where_the_objective_is_least(isotropic):
    options = {"isotropic": isotropic, "solver": GrowingADMM(), "tol": 0, "max_iter": 400, "return_result": True}
    found = short.denoise_tv(DRAWING, 0.1, **options).result
    loss = SquaredLoss(Identity(DRAWING.shape), DRAWING)
    penalty = TotalVariationL12(0.1, smoothing=0.0, isotropic=isotropic)
    assert ell12.stationarity(loss, penalty, found.x) < 0.05
    assert ell12.stationarity(loss, penalty, DRAWING) > 0.3


def test_a_disc_with_missing_pixels_is_filled_in_better():
    i, j = np.indices((30, 30))
    clean = ((i - 15) ** 2 + (j - 14) ** 2 < 80).astype(float)
    mask = np.random.default_rng(1).random(clean.shape) < 0.5
    along, round_ = (np.std(short.inpaint_tv(clean, mask, 1e-3, isotropic=k) - clean) for k in (False, True))
    assert round_ < 0.8 * along


def test_complex_images_count_by_the_length_of_their_magnitudes():
    phase = np.exp(0.7j)
    plain, turned = (short.denoise_tv(f * DRAWING, 0.1, isotropic=True, smoothing=0.01) for f in (1.0, phase))
    np.testing.assert_allclose(turned, phase * plain, atol=1e-9)
    clean, mask = noisy((24, 20), 0.0), np.random.default_rng(0).random((24, 20)) < 0.6
    found = short.reconstruct_mri(np.fft.fft2(clean, norm="ortho"), mask, 1e-4, isotropic=True, tol=0.05)
    assert np.std(found - clean) < 0.03


@pytest.mark.parametrize("alpha", [5.0, 50.0])
def test_an_image_that_becomes_flat_is_certified_too(alpha):
    y = noisy((28, 28), sigma=0.1)
    loss = SquaredLoss(Identity(y.shape), y)
    for options in ({"isotropic": True}, {"l2_weight": 1.0}):
        penalty = TotalVariationL12(alpha, smoothing=0.05, spacing=(1.0, 2.0), **options)
        found = ell12.minimize(loss, penalty, y, SmoothedGradient(), tol=0.05, max_iter=3000)
        assert found.converged
        assert found.stationarity == pytest.approx(ell12.stationarity(loss, penalty, found.x), rel=1e-6)


@pytest.mark.parametrize("isotropic", [False, True])
def test_equal_spacing_changes_nothing(isotropic):
    plain = short.denoise_tv(DRAWING, 0.1, isotropic=isotropic)
    for distance in (1.0, 3, (2.0, 2.0), np.array([0.5, 0.5])):
        found = short.denoise_tv(DRAWING, 0.1, isotropic=isotropic, spacing=distance)
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("isotropic", [False, True])
def test_planes_that_lie_far_apart_are_restored_one_by_one(isotropic):
    y = np.stack([noisy((18, 16), seed=seed) for seed in range(3)])
    options = {"isotropic": isotropic, "smoothing": 0.01, "tol": 1e-4, "l2_weight": 0.0}
    apart = short.denoise_tv(y, 0.1, spacing=(1e9, 1.0, 1.0), **options)
    for plane, image in zip(apart, y, strict=True):
        np.testing.assert_allclose(plane, short.denoise_tv(image, 0.1, **options), atol=1e-4)
    along = short.denoise_tv(np.moveaxis(y, 0, 2), 0.1, spacing=(1.0, 1.0, 1e9), **options)
    np.testing.assert_allclose(np.moveaxis(along, 2, 0), apart, atol=1e-4)


@pytest.mark.parametrize("spacing", [0.0, -1.0, np.nan, np.inf, (1.0, 2.0, 3.0), (1.0, 0.0), "12", (1.0, None)])
def test_a_wrong_spacing_is_named(spacing):
    for call in (short.denoise_tv, lambda y, _, spacing: FiniteDifference(y.shape, spacing=spacing)):
        with pytest.raises(ValueError, match="spacing must be"):
            call(DRAWING, 0.1, spacing=spacing)

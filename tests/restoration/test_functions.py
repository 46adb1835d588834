"""Denoising, deblurring, inpainting, MRI: what users call."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse.linalg
from tests.restoration import short

import ell12
from ell12 import datasets
from ell12.operators.image_operators import Convolution
from ell12.restoration import estimate_sigma
from ell12.restoration.pixels import as_image, filled


def squares(shape=(48, 48)):
    clean = np.full(shape, 0.2)
    clean[tuple(slice(n // 4, 3 * n // 4) for n in shape)] = 0.8
    return clean


def noisy(shape=(48, 48), sigma=0.05, seed=0):
    return squares(shape) + sigma * np.random.default_rng(seed).standard_normal(shape)


def error(x, shape=(48, 48)):
    return np.sqrt(np.mean(np.abs(x - squares(shape)) ** 2))


# Denoising


@pytest.mark.parametrize("shape", [(2000,), (48, 48), (16, 16, 16), (8, 8, 8, 8)])
def test_noise_is_removed_with_any_number_of_axes(shape):
    found = short.denoise_tv(noisy(shape), return_result=True)
    assert found.converged
    assert error(found.image, shape) < (0.65 if len(shape) == 1 else 0.5) * 0.05
    assert found.sigma == pytest.approx(0.05, rel=0.25)
    assert short.denoise_tv(noisy(shape), found.alpha, return_result=True).sigma is None


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1), (2, 2), (3, 1, 4)])
def test_images_of_few_pixels_keep_their_mean(shape):
    x = short.denoise_tv(noisy(shape), 0.1)
    assert x.shape == shape
    assert np.mean(x) == pytest.approx(np.mean(noisy(shape)))


@pytest.mark.parametrize("boundary", ["neumann", "periodic"])
def test_a_constant_image_stays(boundary):
    image = np.full((20, 30), 0.7)
    for l2_weight in (0.0, 0.5, 1.0):
        np.testing.assert_array_equal(short.denoise_tv(image, 0.3, l2_weight=l2_weight, boundary=boundary), image)
    assert short.denoise_tv(image, return_result=True).alpha == 0
    nearly = np.full((20, 20), 0.1) + 1e-17 * np.arange(20)  # constant but for rounding
    for alpha in (None, 1e-6, 0.3):
        np.testing.assert_allclose(short.denoise_tv(nearly, alpha), nearly, rtol=1e-12)


@pytest.mark.parametrize("smoothing", [None, 0.0])
def test_a_turned_image_gives_the_turned_result(smoothing):
    options = {"l2_weight": 0.0, "smoothing": smoothing, "max_iter": 100, "return_result": True}
    image = noisy((20, 32))  # with a weight of 0 no direction is preferred
    expected = short.denoise_tv(image, 0.05, **options).image
    for turn in (np.flipud, np.fliplr, np.rot90, np.transpose):
        np.testing.assert_allclose(short.denoise_tv(turn(image), 0.05, **options).image, turn(expected), atol=1e-8)


def test_the_strength_does_not_depend_on_the_size():
    image = noisy()
    once = short.denoise_tv(image, 0.05, boundary="periodic", tol=1e-3)
    four = short.denoise_tv(np.tile(image, (2, 2)), 0.05, boundary="periodic", tol=1e-3)
    np.testing.assert_allclose(four, np.tile(once, (2, 2)), atol=1e-12)


def test_channels_are_restored_side_by_side():
    planes = [noisy(seed=seed) for seed in range(3)]
    options = {"smoothing": 0.01, "tol": 1e-4, "colour": False}  # the automatic one follows all channels
    apart = [short.denoise_tv(plane, 0.05, **options) for plane in planes]
    for axis in (0, 1, -1):
        together = short.denoise_tv(np.stack(planes, axis=axis), 0.05, channel_axis=axis, **options)
        np.testing.assert_allclose(together, np.stack(apart, axis=axis), atol=2e-3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int8", "bool"])
def test_integers_are_converted_as_scikit_image_does(dtype):
    util = pytest.importorskip("skimage.util")
    rng = np.random.default_rng(0)
    image = rng.integers(0, 2, (6, 6)).astype(bool)
    if dtype != "bool":
        limits = np.iinfo(dtype)
        image = rng.integers(limits.min, limits.max, (6, 6), dtype, endpoint=True)
        image[0, 0], image[0, 1] = limits.min, limits.max
    np.testing.assert_allclose(as_image(image), util.img_as_float64(image), atol=1e-15)
    assert short.denoise_tv(image, 0.1).dtype == np.float64


def test_complex_images():
    phase = np.exp(0.7j)
    image = noisy()
    x = short.denoise_tv(image * phase, 0.05, tol=1e-3)
    np.testing.assert_allclose(x, short.denoise_tv(image, 0.05, tol=1e-3) * phase, atol=1e-6)
    with pytest.raises(TypeError, match="bounds need a real image"):
        short.denoise_tv(image * phase, 0.05, bounds=(0, 1))


def test_held_out_pixels_choose_a_strength_near_the_best():
    image = noisy(sigma=0.1)
    errors = {a: error(short.denoise_tv(image, a)) for a in np.geomspace(0.02, 1.0, 12)}
    found = short.denoise_tv(image, "held-out", return_result=True)
    assert found.sigma is None
    assert error(found.image) < 1.2 * min(errors.values())
    short.denoise_tv(image, sigma=np.longdouble(0.1))  # a number like another


def test_runs_can_be_watched_and_stopped():
    image, seen = noisy((3, 48, 48)), []
    stop = lambda history: len(seen) >= 3 or seen.append(len(history["objective"]))  # noqa: E731
    run = {"measure": {"channels": lambda x: x.shape[-1]}, "callback": stop, "return_result": True}
    found = short.denoise_tv(np.moveaxis(image, 0, -1), 0.05, channel_axis=-1, **run)
    assert seen == [2, 3, 4]
    assert found.result.status is ell12.Status.STOPPED
    assert set(found.result.history["channels"]) == {3.0}
    with pytest.warns(RuntimeWarning, match="max_iter"):
        short.denoise_tv(image, 0.05, max_iter=2)


def test_the_noise_is_estimated_under_structure():
    rng = np.random.default_rng(0)
    i, j = np.indices((128, 128))
    scene = 0.3 * np.sin(i / 9.0) + 0.01 * j + (i > 60)
    for noise in (0.01, 0.1):
        image = scene + noise * rng.standard_normal(scene.shape)
        assert estimate_sigma(image) == pytest.approx(noise, rel=0.06)
        stack = np.stack([image, scene + 3 * noise * rng.standard_normal(scene.shape)])
        assert estimate_sigma(stack, channel_axis=0) == pytest.approx(2 * noise, rel=0.06)
    with pytest.raises(ValueError, match="too few pixels"):
        short.denoise_tv(np.ones((2, 2)))


# Deblurring


@pytest.mark.parametrize(("boundary", "mode"), [("neumann", "reflect"), ("periodic", "wrap")])
def test_blurs_are_undone(boundary, mode):
    kernel = np.outer([1, 2, 4, 2, 1], [1, 3, 1]) / 50.0
    kernel[0, 0] += 0.1  # not symmetric
    blurred = scipy.ndimage.convolve(squares(), kernel, mode=mode)
    blurred += 0.005 * np.random.default_rng(0).standard_normal(blurred.shape)
    for alpha in (2e-3, None, "held-out"):
        found = short.deblur_tv(blurred, kernel, alpha, boundary=boundary, return_result=True)
        assert found.converged
        assert error(found.image) < 0.35 * error(blurred)
    colour = np.stack([blurred, 1 - blurred], axis=-1)
    both = short.deblur_tv(colour, kernel, 2e-3, boundary=boundary, channel_axis=-1, tol=1e-3)
    one = short.deblur_tv(blurred, kernel, 2e-3, boundary=boundary, tol=1e-3)
    np.testing.assert_allclose(both[..., 0], one, atol=5e-3)


# Inpainting


def test_missing_pixels_are_filled_in():
    rng = np.random.default_rng(0)
    mask = rng.random((48, 48)) < 0.5
    mask[20:28, 5:40] = False
    image = np.where(mask, noisy(sigma=0.02), np.nan)
    for alpha in (0.01, None, "held-out"):
        found = short.inpaint_tv(image, mask, alpha, return_result=True)
        assert found.converged
        assert error(found.image) < 0.03
    assert found.alpha < 0.2
    colour = np.stack([image, image], axis=-1)
    filled_in = short.inpaint_tv(colour, mask, 0.01, channel_axis=-1)
    np.testing.assert_allclose(filled_in[..., 1], short.inpaint_tv(image, mask, 0.01), atol=5e-3)


@pytest.mark.parametrize("unit", [1.0, 255.0])
def test_drawings_without_noise_are_filled_in_and_sharpened(unit):
    clean, kernel = unit * np.roll(squares(), 1, axis=(0, 1)), np.full((5, 5), 1 / 25)
    known = np.random.default_rng(0).random(clean.shape) < 0.5
    start = filled(np.where(known, clean, 0), known, 2)
    found = short.inpaint_tv(clean, known, return_result=True)
    assert found.sigma == 0
    assert found.alpha == pytest.approx(1e-4 * 0.6 * unit, rel=0.1)
    assert np.std(found.image - clean) < 0.8 * np.std(start - clean)
    np.testing.assert_allclose(found.image[known], clean[known], atol=0.01 * unit)
    blurred = scipy.ndimage.convolve(clean, kernel, mode="reflect")
    assert np.std(short.deblur_tv(blurred, kernel) - clean) < 0.05 * np.std(blurred - clean)


def test_filling_reaches_across_any_hole():
    image, known = np.zeros((37, 23)), np.zeros((37, 23), dtype=bool)
    known[0, 0] = True
    image[0, 0] = 5.0
    np.testing.assert_array_equal(filled(image, known, 2), 5.0)


# MRI and general operators


CLEAN, LINES = squares((32, 32)), datasets.radial_lines(32, 12)
DATA = np.fft.fftn(CLEAN, norm="ortho")


@pytest.mark.parametrize("real", [False, True])
def test_an_image_is_recovered_from_a_third_of_its_fourier_coefficients(real):
    x = short.reconstruct_mri(DATA, LINES, sigma=0.0, real=real, smoothing=1e-3)
    assert np.iscomplexobj(x) != real
    assert error(x, (32, 32)) < 2e-3
    np.testing.assert_allclose(np.fft.fftn(x, norm="ortho")[LINES], DATA[LINES], atol=1e-3)
    again = short.reconstruct_mri(DATA[LINES], LINES, sigma=0.0, real=real, smoothing=1e-3)
    np.testing.assert_array_equal(x, again)


@pytest.mark.parametrize(
    ("lines", "unit", "options"),
    [(14, 1.0, {}), (14, 1e-6, {"real": True}), (11, 4095.0, {"bounds": (0, None)})],
    ids=["complex", "real", "bounds"],
)
def test_a_phantom_without_noise_is_found_from_few_lines_by_the_plain_call(lines, unit, options):
    clean, mask = unit * datasets.phantom(64), datasets.radial_lines(64, lines)
    x = short.reconstruct_mri(np.fft.fft2(clean, norm="ortho"), mask, sigma=0.0, **options)
    assert np.linalg.norm(x - clean) < 1e-3 * np.linalg.norm(clean)


def test_coils_bounds_and_noise_in_mri():
    data = DATA + 0.02 * np.random.default_rng(0).standard_normal((2, 32, 32))
    x = short.reconstruct_mri(data, LINES, sigma=0.02, channel_axis=0, bounds=(0.2, 1.0))
    assert x.shape == (2, 32, 32)
    assert x.min() >= 0.2
    assert all(error(part, (32, 32)) < 0.05 for part in x)


def test_any_linear_operator():
    rng = np.random.default_rng(0)
    clean, options = squares((12, 12)), {"shape": (12, 12), "tol": 1e-3}
    matrix = rng.standard_normal((80, 144)) / np.sqrt(80)
    y = matrix @ clean.reshape(-1)
    expected = short.restore_tv(y, matrix, 1e-3, **options)
    assert error(expected, (12, 12)) < 0.02
    pylops = pytest.importorskip("pylops")
    for A in (scipy.sparse.linalg.aslinearoperator(matrix), pylops.MatrixMult(matrix)):
        np.testing.assert_allclose(short.restore_tv(y, A, 1e-3, **options), expected, atol=1e-8)
    assert error(short.restore_tv(y, matrix, "held-out", shape=(12, 12)), (12, 12)) < 0.05
    x = short.restore_tv(y, matrix, 1e-3, shape=(12, 12), bounds=(0.2, 0.8))
    assert 0.2 <= x.min() <= x.max() <= 0.8
    turned = short.restore_tv(1j * y, matrix * (1 + 0j), 1e-3, **options)
    np.testing.assert_allclose(turned, 1j * expected, atol=1e-4)
    blur = Convolution(np.ones((3, 3)) / 9, (48, 48))  # which tells the shape
    assert error(short.restore_tv(blur @ squares(), blur, 1e-4, boundary="periodic")) < 0.02
    assert short.restore_tv(np.ones(3), np.eye(3), 0.1, shape=3).shape == (3,)


def test_an_operator_without_an_adjoint_is_refused_with_words():
    forward = scipy.sparse.linalg.LinearOperator((3, 4), matvec=lambda x: x[:3], dtype=float)
    for call in (
        lambda: short.restore_tv(np.ones(3), forward, 0.1, shape=(2, 2)),
        lambda: ell12.SquaredLoss(forward, np.ones(3)),
        lambda: ell12.SquaredLoss(2 * forward, np.ones(3)),
    ):
        with pytest.raises(TypeError, match=r"A has no adjoint: .*rmatvec"):
            call()

"""Colours as one problem along opponent axes, and which channels are taken for colours."""

import numpy as np
import pytest
from tests.restoration import short

from ell12 import TotalVariationL12
from ell12.restoration import GrowingADMM
from ell12.restoration.colour import AXES, ColourVariation, are_colours, as_colours, as_opponents
from ell12.restoration.pixels import filled
from ell12.restoration.stencil_cuda import sweep_on_gpu

T = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
SHAPE = (40, 36)
# Without the subtracted norm the corner at which differences begin does not matter, and minimisers are global.
CONVEX = {"l2_weight": 0.0, "smoothing": 0.01, "tol": 1e-4, "max_iter": 20000}
RUN = {"channel_axis": -1, "colour": True, "return_result": True}
small_and_large = pytest.mark.parametrize("shape", [SHAPE, (160, 144)], ids=["small", "large"])


def picture(shape=SHAPE, sigma=0.08, seed=0):
    """Coloured rectangles under light that falls off, with noise; channels last."""
    i, j = np.indices(shape)
    clean = np.empty((*shape, 3))
    clean[:] = (0.5, 0.45, 0.4)
    for k, colour in enumerate(((0.9, 0.8, 0.7), (0.25, 0.2, 0.1), (0.6, 0.7, 0.75), (0.1, 0.15, 0.3))):
        inside = (abs(i - shape[0] * (k + 1) / 5) < shape[0] / 7) & (abs(j - shape[1] * ((3 * k) % 5) / 5) < 9)
        clean[inside] = colour
    clean *= (1 - 0.3 * i / shape[0])[..., None]
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


IMAGE = picture()


def penalty(x, alpha, smoothing):
    """The penalty written out, of an image with its channels last."""
    z = np.moveaxis(x @ T.T, -1, 0)
    weighted = (TotalVariationL12(w * alpha, l2_weight=0.0, smoothing=w * smoothing) for w in (1, 2, 2))
    return sum(p.value(part) for p, part in zip(weighted, z, strict=True))


def check_is_least(found, value, bounds=(-np.inf, np.inf)):
    """The objective is what the result says, and no direction that the bounds allow leads down."""
    x = found.image
    assert found.converged
    assert value(x) == pytest.approx(found.result.objective, rel=1e-9)
    for seed in range(5):
        move = np.clip(x + 0.01 * np.random.default_rng(seed).standard_normal(x.shape), *bounds) - x
        assert value(x + 1e-3 * move) >= value(x) - 1e-9 * value(x)


def test_the_axes_are_orthogonal_and_turn_back():
    np.testing.assert_allclose(AXES, T, atol=1e-15)
    x = np.random.default_rng(0).standard_normal((3, 5, 4))
    np.testing.assert_allclose(as_opponents(x), np.einsum("ij,jkl->ikl", T, x), atol=1e-14)
    np.testing.assert_allclose(as_colours(as_opponents(x)), x, atol=1e-14)


@small_and_large
def test_brightness_and_chroma_are_restored_with_their_own_strengths(shape):
    image = picture(shape)
    found = short.denoise_tv(image, 0.1, channel_axis=-1, colour=True, **CONVEX) @ T.T
    for k, w in enumerate(ColourVariation.weights):
        apart = short.denoise_tv((image @ T.T)[..., k], 0.1 * w, **CONVEX | {"smoothing": 0.01 * w})
        np.testing.assert_allclose(found[..., k], apart, atol=2e-4)


def test_colours_may_lie_along_any_axis_and_in_either_order():
    expected = short.denoise_tv(IMAGE, 0.1, channel_axis=-1)
    for axis in (0, 1):
        found = short.denoise_tv(np.moveaxis(IMAGE, -1, axis), 0.1, channel_axis=axis)
        np.testing.assert_allclose(np.moveaxis(found, axis, -1), expected, atol=1e-9)
    backwards = short.denoise_tv(IMAGE[..., ::-1], 0.1, channel_axis=-1)  # blue, green, red
    np.testing.assert_allclose(backwards[..., ::-1], expected, atol=1e-9)


def test_colours_come_out_better_than_channels_one_by_one():
    clean, apart = picture(sigma=0), {"channel_axis": -1, "colour": False}
    one_by_one = min(np.std(short.denoise_tv(IMAGE, a, **apart) - clean) for a in (0.05, 0.1, 0.15, 0.25))
    assert np.std(short.denoise_tv(IMAGE, channel_axis=-1) - clean) < 0.9 * one_by_one


@small_and_large
def test_bounds_hold_the_colours_and_the_result_is_stationary(shape):
    image, bounds = picture(shape), (0.2, 0.6)

    def value(x):
        return 0.5 * np.sum((x - image) ** 2) + penalty(x, 0.1, 0.01)

    found = short.denoise_tv(image, 0.1, bounds=bounds, **RUN, **CONVEX)
    assert bounds[0] == found.image.min() < found.image.max() == bounds[1]
    check_is_least(found, value, bounds)
    assert value(found.image) < value(np.clip(short.denoise_tv(image, 0.1, **RUN, **CONVEX).image, *bounds))


@small_and_large
def test_masks_that_differ_between_channels_give_a_minimiser(shape):
    image = picture(shape)
    known = np.random.default_rng(1).random(image.shape) < 0.5
    found = short.inpaint_tv(np.where(known, image, np.nan), known, 0.1, **RUN, **CONVEX)
    check_is_least(found, lambda x: 0.5 * np.sum((x - image)[known] ** 2) + penalty(x, 0.1, 0.01))
    same = np.broadcast_to(known[..., :1], image.shape)
    one, all_three = (short.inpaint_tv(image, m, 0.1, **RUN, **CONVEX).image for m in (known[..., 0], same))
    np.testing.assert_array_equal(one, all_three)


def test_general_operators_and_fourier_coefficients_of_colours():
    first = np.moveaxis(picture((12, 10), sigma=0), -1, 0)
    A = np.random.default_rng(0).standard_normal((300, 360)) / np.sqrt(300)
    y = A @ first.reshape(-1)
    options = RUN | CONVEX | {"shape": (3, 12, 10), "channel_axis": 0}
    found = short.restore_tv(y, A, 1e-3, **options)
    value = 0.5 * np.sum((A @ found.image.reshape(-1) - y) ** 2)
    value += penalty(np.moveaxis(found.image, 0, -1), 1e-3, 0.01)
    assert value == pytest.approx(found.result.objective, rel=1e-9)
    assert np.std(found.image - first) < 0.02
    mask = np.random.default_rng(0).random((12, 10)) < 0.8
    samples = np.fft.fftn(first, axes=(1, 2), norm="ortho")
    x = short.reconstruct_mri(samples, mask, sigma=0.0, real=True, channel_axis=0, colour=True)
    np.testing.assert_allclose(x, first, atol=0.15)
    np.testing.assert_allclose(np.fft.fftn(x, axes=(1, 2), norm="ortho")[:, mask], samples[:, mask], atol=1e-2)


def test_the_solver_of_the_true_objective_takes_colours():
    image = picture((20, 18))

    def value(x):
        return 0.5 * np.sum((x - image) ** 2) + penalty(x, 0.1, 0.0)

    found = short.denoise_tv(image, 0.1, solver=GrowingADMM(), max_iter=60, l2_weight=0.0, **RUN)
    assert value(found.image) == pytest.approx(found.result.objective, rel=1e-6)
    assert value(found.image) < 1.02 * value(
        short.denoise_tv(image, 0.1, **RUN | CONVEX | {"smoothing": 1e-3}).image
    )


@pytest.mark.usefixtures("kernels_on_cpu")
def test_the_kernel_of_gpus_takes_steps_of_colours():
    pytest.importorskip("numba")
    z, y, x = 0.3 * np.random.default_rng(0).standard_normal((3, 3, 40, 36))
    penalty, steps = ColourVariation(0.05, 0.5, smoothing=0.2), [(0.3, 0.2, 0.1), (0.3, 0.4, 0.3)]
    expected, wanted = penalty.sweep(z).advance((z, x), y, None, steps, (np.empty_like(z), np.empty_like(z)))
    kernels = sweep_on_gpu(z, penalty)
    for new in ((np.empty_like(z), np.empty_like(z)), (z, x)):
        pair, sums = kernels.advance((z, x), y, None, steps, new)
        np.testing.assert_allclose(pair, expected, atol=1e-14)
        np.testing.assert_allclose(sums, wanted, rtol=1e-12)


# Which channels are colours


def unrelated(shape, sigma=0.05, seed=0):
    """Blobs at positions of their own in each channel, as of three stains; channels first."""
    rng = np.random.default_rng(seed)
    i, j = np.indices(shape)
    image = sigma * rng.standard_normal((3, *shape))
    for k, row, column in np.c_[np.repeat(range(3), 12), rng.random((36, 2)) * shape]:
        image[int(k)] += np.exp(-((i - row) ** 2 + (j - column) ** 2) / 30)
    return image


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("shape", [(64, 64), (96, 130)])
def test_colours_are_distinguished_from_channels_that_have_nothing_in_common(shape, noise):
    for seed in range(3):
        image = np.moveaxis(picture(shape, noise, seed), -1, 0)
        for y in (image, 1e-6 * image + 3e-6, 1e6 * image - 5e6, image[::-1], image.astype(np.float32)):
            assert are_colours(y, 2)
        assert not are_colours(unrelated(shape, noise, seed), 2)
        assert not are_colours(image * np.array([1, -1, 1])[:, None, None], 2)


def test_channels_without_structure_in_common_are_no_colours():
    clean, noise = picture((64, 64), 0.0)[..., 0], np.random.default_rng(0).standard_normal((3, 64, 64))
    shifted = np.stack([np.roll(clean, shift, axis=(0, 1)) for shift in ((0, 0), (5, 0), (0, 5))])
    for y in (shifted + 0.05 * noise, noise, np.ones((3, 20, 20)), np.ones((3, 1, 1))):
        assert not are_colours(y, 2)
    volume = np.stack([clean[:20, :20]] * 5)
    assert are_colours(np.stack([volume, 0.9 * volume, 0.8 * volume]), 3)


def test_colours_are_recognised_where_few_pixels_are_known():
    image, blobs = np.moveaxis(picture((64, 64)), -1, 0), unrelated((64, 64))
    i, j = np.indices((64, 64))
    one_each = np.stack([(i % 2 == 0) & (j % 2 == 0), (i + j) % 2 == 1, (i % 2 == 1) & (j % 2 == 1)])
    for known in (one_each, np.random.default_rng(0).random(image.shape) < 0.5):
        assert are_colours(filled(np.where(known, image, 0), known, 2), 2)
        assert not are_colours(filled(np.where(known, blobs, 0), known, 2), 2)
        options = {"alpha": 0.05, "channel_axis": 0, "max_iter": 3, "return_result": True}
        found, expected = (short.inpaint_tv(image, known, colour=c, **options).image for c in (None, True))
        np.testing.assert_array_equal(found, expected)


def test_unrelated_channels_are_restored_one_by_one():
    image = unrelated((48, 48))
    found, expected, colours = (
        short.denoise_tv(image, 0.1, channel_axis=0, colour=c) for c in (None, False, True)
    )
    np.testing.assert_array_equal(found, expected)
    assert np.abs(colours - expected).max() > 0.01


def test_what_cannot_be_colours_is_an_error_only_where_it_is_asked_for():
    two = np.moveaxis(IMAGE, -1, 0)[:2]
    assert short.denoise_tv(two, 0.1, channel_axis=0).shape == two.shape
    for y, axis in ((two, 0), (IMAGE * 1j, -1), (IMAGE, None)):
        with pytest.raises(ValueError, match="colour=True needs three real channels along channel_axis"):
            short.denoise_tv(y, 0.1, channel_axis=axis, colour=True)
    with pytest.raises(ValueError, match="colour must be True"):
        TotalVariationL12(colour="yes")

"""The strength and the penalty that one score chooses, on the pictures on which other rules failed."""

import numpy as np
import pytest
import scipy.ndimage

import ell12

SIDE = 96
ROW, COLUMN = np.indices((SIDE, SIDE)) / SIDE


def page():
    """Strokes of ink on saturated paper."""
    ink = np.kron(np.random.default_rng(0).random((SIDE // 8, SIDE // 2)) < 0.35, np.ones((3, 2)))
    paper = np.ones((SIDE, SIDE))
    for row in range(SIDE // 8):
        paper[8 * row + 2 : 8 * row + 5] -= ink[3 * row : 3 * row + 3]
    return paper


def discs():
    """Bright objects on black."""
    found = ((0.3, 0.3, 0.2, 0.9), (0.6, 0.7, 0.15, 0.5), (0.75, 0.3, 0.1, 0.7))
    return sum(value * ((ROW - i) ** 2 + (COLUMN - j) ** 2 < radius**2) for i, j, radius, value in found)


def waves():
    """A smooth surface with fine texture on a part of it."""
    return 0.5 + 0.3 * np.sin(6 * ROW) * np.cos(5 * COLUMN) + 0.1 * np.sin(90 * COLUMN) * (ROW > 0.6)


every_picture = pytest.mark.parametrize("image", [page(), discs(), waves()], ids=["page", "discs", "waves"])


def as_8_bit(image):
    return np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)


def noisy(image, sigma, seed=1):
    return image + sigma * np.random.default_rng(seed).standard_normal(image.shape)


def decibels(found, clean):
    return -10 * np.log10(max(np.mean((found - clean) ** 2), 1e-20))


@pytest.mark.parametrize("sigma", [0.05, 0.1])
def test_a_page_of_text_of_eight_bits_gets_better(sigma):
    given = as_8_bit(noisy(page(), sigma))
    assert decibels(ell12.denoise_tv(given), page()) > decibels(given / 255, page()) + 0.5


@pytest.mark.parametrize("photons", [30, 200])
def test_bright_objects_on_black_lose_the_noise_of_photons(photons):
    given = np.random.default_rng(0).poisson(photons * discs()) / photons
    assert decibels(ell12.denoise_tv(given), discs()) > decibels(given, discs()) + 6


@every_picture
def test_pictures_without_noise_come_back_as_they_were(image):
    given = as_8_bit(image)
    assert decibels(ell12.denoise_tv(given), given / 255) > 50


@pytest.mark.parametrize("sigma", [0.02, 0.1])
@every_picture
def test_white_noise_is_removed_nearly_as_well_as_by_the_best_strength(image, sigma):
    given = noisy(image, sigma)
    best = max(decibels(ell12.denoise_tv(given, sigma * factor), image) for factor in (0.25, 0.5, 1.0, 2.0))
    assert decibels(ell12.denoise_tv(given), image) > best - 0.9


def test_a_part_without_noise_does_not_decide_for_the_rest():
    image = np.kron(np.random.default_rng(0).random((8, 8)), np.ones((16, 16)))
    given = noisy(image, 0.1)
    given[:32] = image[:32] = 0.5  # pixels of equal brightness, which would leave groups empty
    assert decibels(ell12.denoise_tv(given), image) > decibels(given, image) + 11.5


def test_an_image_of_which_more_than_half_is_flat_counts_as_free_of_noise_unless_its_noise_is_given():
    image = np.kron(np.random.default_rng(0).random((8, 8)), np.ones((12, 12)))
    given = noisy(image, 0.1)
    given[:64] = image[:64] = 0.5
    np.testing.assert_array_equal(ell12.denoise_tv(given), given)
    assert decibels(ell12.denoise_tv(given, sigma=0.1), image) > decibels(given, image) + 5


def test_the_penalty_is_chosen_with_the_strength():
    boxes = np.kron(np.random.default_rng(2).random((6, 6)), np.ones((16, 16)))
    assert not ell12.denoise_tv(noisy(boxes, 0.1), return_result=True).penalty.isotropic
    smooth = 0.5 + 0.4 * np.sin(7 * ROW + 5 * COLUMN)
    assert ell12.denoise_tv(noisy(smooth, 0.1), return_result=True).penalty.isotropic


@pytest.mark.parametrize("sigma", [0.005, 0.02])
def test_a_blurred_drawing_gets_sharper(sigma):
    psf = np.outer(*[np.exp(-(np.arange(-3.0, 4) ** 2) / 3)] * 2)
    given = noisy(scipy.ndimage.convolve(discs(), psf / psf.sum()), sigma)
    found = ell12.deblur_tv(given, psf / psf.sum(), return_result=True)
    assert decibels(found.image, discs()) > decibels(given, discs()) + 2
    assert found.alpha < 0.1


@pytest.mark.parametrize(("clean", "sigma", "least"), [(page, 0.02, 40), (discs, 0.05, 37)])  # 34 and 33 before
def test_held_out_pixels_choose_no_weaker_strength_at_low_noise(clean, sigma, least):
    found = ell12.denoise_tv(noisy(clean(), sigma), "held-out", return_result=True)
    assert decibels(found.image, clean()) > least


def test_a_restoration_says_what_it_is_in_one_line():
    found = ell12.denoise_tv(noisy(discs(), 0.1), return_result=True)
    assert repr(found).startswith(f"Restoration(96 x 96, alpha {found.alpha:.3g} by GCV, sigma 0.")
    assert len(repr(found)) <= 130
    assert "\n" not in repr(found)

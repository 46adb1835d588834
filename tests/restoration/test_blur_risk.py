"""The strength that is chosen for blurred images."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import ell12
from ell12.restoration import estimate_noise
from ell12.restoration.strength import strength_for_deblurring, value_range

AT = np.arange(-4, 5)
KERNEL = np.exp(-(AT[:, None] ** 2 + AT**2) / 2)
KERNEL /= KERNEL.sum()


def drawing(side):
    image = np.full((side, side), 0.3)
    image[side // 8 : side // 2, side // 4 : side // 2] = 0.8
    rows, columns = np.mgrid[:side, :side]
    image[(rows - 0.7 * side) ** 2 + (columns - 0.6 * side) ** 2 < (0.2 * side) ** 2] = 0.1
    return image


def blurred(clean, noise):
    far = gaussian_filter(clean, 1.0, mode="reflect", truncate=4)
    return far + noise * np.random.default_rng(0).standard_normal(clean.shape)


def ratio(image, clean):
    return -10 * np.log10(np.mean((image - clean) ** 2))


def deblurred(image, alpha=None, **options):
    return ell12.deblur_tv(image, KERNEL, alpha, tol=0.02, **options)


def test_a_drawing_gets_nearly_its_best_strength():
    clean = drawing(64)
    image = blurred(clean, 0.01)
    found = deblurred(image, return_result=True)
    rule = strength_for_deblurring(estimate_noise(image, 2), value_range(image, 2))
    best = max(ratio(deblurred(image, factor * rule), clean) for factor in (2, 4, 8))
    assert ratio(found.image, clean) > best - 0.7
    assert ratio(found.image, clean) > ratio(deblurred(image, rule), clean) + 0.5
    assert found.noise == pytest.approx(0.01, rel=0.05)


def test_the_middle_of_an_image_chooses_as_the_whole(monkeypatch):
    image = blurred(drawing(72), 0.02)
    found = [deblurred(image, return_result=True).alpha]
    monkeypatch.setattr("ell12.restoration.blur_risk.LEAST_SIDE", 52)
    found.append(deblurred(np.stack([image] * 2), channel_axis=0, noise=0.02, return_result=True).alpha)
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], rel=0.6)


def test_a_small_image_keeps_the_strength_that_follows_from_the_noise():
    image = blurred(drawing(56), 0.02)
    found = deblurred(image, noise=0.02, return_result=True)
    assert found.noise == 0.02
    assert found.alpha == pytest.approx(0.6 * 0.02**1.5 / value_range(image, 2) ** 0.5, rel=0.05)

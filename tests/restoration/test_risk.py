"""The strength that is chosen: near the best, for drawings and texture, little noise and much."""

import math

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import ell12
from ell12.restoration import estimate_noise
from ell12.restoration.risk import lowest, random_numbers, sample_places

LADDER = np.geomspace(1e-4, 4, 40)


def drawing(side=128):
    image = np.full((side, side), 0.3)
    image[side // 8 : side // 2, side // 4 : side // 2] = 0.8
    rows, columns = np.mgrid[:side, :side]
    image[(rows - 0.7 * side) ** 2 + (columns - 0.6 * side) ** 2 < (0.2 * side) ** 2] = 0.1
    return image


def texture(side=256):
    """Blobs of a few pixels over all of the image: no block is quiet."""
    blobs = gaussian_filter(np.random.default_rng(9).standard_normal((side, side)), 1.2, mode="wrap")
    return 0.5 + 0.15 * blobs / blobs.std()


SCENES = {"drawing": drawing, "texture": texture}


def noisy(clean, noise, seed=0):
    return clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def ratio(image, clean):
    return -10 * math.log10(np.mean((image - clean) ** 2))


def best_ratio(image, clean, **options):
    return max(ratio(ell12.denoise_tv(image, alpha, **options), clean) for alpha in LADDER)


@pytest.mark.parametrize("level", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("scene", SCENES)
def test_the_strength_chosen_is_near_the_best_and_never_harms(scene, level):
    clean = SCENES[scene]()
    image = noisy(clean, level)
    reached = ratio(ell12.denoise_tv(image), clean)
    assert reached > best_ratio(image, clean) - 0.6
    assert reached > ratio(image, clean)


@pytest.mark.parametrize("l2_weight", [0.0, 0.9])
def test_other_weights_have_other_best_strengths(l2_weight):
    clean = drawing()
    image = noisy(clean, 0.1)
    reached = ratio(ell12.denoise_tv(image, l2_weight=l2_weight), clean)
    assert reached > best_ratio(image, clean, l2_weight=l2_weight) - 0.4


def test_a_known_noise_is_believed():
    clean = texture()
    image = noisy(clean, 0.02)
    found = ell12.denoise_tv(image, noise=0.02, return_result=True)
    assert found.noise == 0.02
    assert ratio(found.image, clean) > best_ratio(image, clean) - 0.05


def test_the_noise_is_found_with_the_strength():
    found = ell12.denoise_tv(noisy(drawing(), 0.05), return_result=True)
    assert found.noise == pytest.approx(0.05, rel=0.05)


def test_a_clean_drawing_comes_back_nearly_unchanged():
    clean = drawing()
    assert np.abs(ell12.denoise_tv(clean) - clean).max() < 1e-6


def test_known_pixels_choose_as_all_do():
    clean = drawing()
    image, mask = noisy(clean, 0.1), np.random.default_rng(1).random(clean.shape) < 0.6
    reached = ratio(ell12.inpaint_tv(image, mask), clean)
    best = max(ratio(ell12.inpaint_tv(image, mask, alpha), clean) for alpha in LADDER[::3])
    assert reached > best - 0.5


@pytest.mark.parametrize("turn", [np.transpose, np.flipud, np.fliplr, np.rot90])
def test_a_turned_image_is_restored_alike(turn):
    image = noisy(drawing()[:, :100], 0.1)
    here = ell12.denoise_tv(image, l2_weight=0.0, tol=1e-3, return_result=True)
    there = ell12.denoise_tv(np.ascontiguousarray(turn(image)), l2_weight=0.0, tol=1e-3, return_result=True)
    # The noise, from which the search begins, is estimated by wavelets that are not symmetric.
    assert there.alpha == pytest.approx(here.alpha, rel=0.1)
    assert np.sqrt(np.mean((there.image - turn(here.image)) ** 2)) < 0.03 * 0.1  # of the noise


def test_the_random_numbers_follow_a_turned_image():
    shape, place = (40, 30), (slice(5, 20), slice(3, 12))
    whole = random_numbers(shape, (slice(None), slice(None)))
    np.testing.assert_array_equal(random_numbers(shape, place), whole[place])
    np.testing.assert_array_equal(random_numbers(shape[::-1], (slice(None), slice(None))), whole.T)
    np.testing.assert_array_equal(whole[::-1, ::-1], whole)
    assert 0.4 < (whole >> np.uint64(63)).mean() < 0.6


@pytest.mark.parametrize("scene", ["drawing", "photons"])
def test_photon_noise_is_not_taken_for_detail(scene):
    clean = drawing(256)
    if scene == "photons":
        clean = clean * np.linspace(0.2, 1.2, 256)
    image = np.random.default_rng(0).poisson(60 * clean) / 60
    assert ratio(ell12.denoise_tv(image), clean) > best_ratio(image, clean) - 1.5


def with_values(*values):
    """The drawing with other values for its background, rectangle and disc."""
    image = drawing(160)
    return np.select([image == 0.3, image == 0.8], values[:2], values[2])


@pytest.mark.parametrize("values", [(0.3, 0.8, 0.02), (0.9, 0.02, 0.4), (0.01, 0.8, 0.1)])
def test_photons_on_dark_and_bright_parts_are_noise_of_both(values):
    clean = with_values(*values)
    image = np.random.default_rng(0).poisson(100 * clean) / 100
    assert ratio(ell12.denoise_tv(image), clean) > best_ratio(image, clean) - 0.5


def test_noise_that_is_cut_off_in_most_of_an_image_is_noise():
    clean = with_values(0.0, 1.0, 0.97)
    image = np.clip(noisy(clean, 0.1), 0, 1)
    assert ratio(ell12.denoise_tv(image), clean) > best_ratio(image, clean) - 0.5


@pytest.mark.parametrize("shape", [(100,), (10**6,), (64, 64), (1000, 60), (700, 900), (60, 70, 80), (3, 5000, 4)])
def test_the_sample_is_a_fifth_or_all_that_is_needed(shape):
    places = sample_places(shape)
    count = sum(math.prod(part.stop - part.start for part in place) for place in places)
    assert 0.8 * min(math.prod(shape), 2**14) <= count <= max(2**15, 0.2 * math.prod(shape))
    mirrored = {
        tuple((n - part.stop, n - part.start) for n, part in zip(shape, place, strict=True)) for place in places
    }
    assert mirrored == {tuple((part.start, part.stop) for part in place) for place in places}


def test_the_search_steps_over_one_rise():
    errors = {1 / 1.5: 3.0, 1.0: 2.0, 1.5: 2.1, 1.5**2: 1.0, 1.5**3: 2.0, 1.5**4: 3.0}
    found = lowest(lambda alpha: errors[min(errors, key=lambda known: abs(known - alpha))], 1.0)
    assert found == pytest.approx(1.5**2, rel=0.15)


def test_texture_in_a_part_of_an_image_is_not_taken_for_noise():
    image = np.concatenate([drawing(256), texture()], axis=1)
    assert estimate_noise(noisy(image, 0.02), 2) == pytest.approx(0.02, rel=0.1)

"""Turning or mirroring an image, its precision and its library change nothing but how the result is laid out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ell12
from ell12.restoration.corners import corner_of, toggled

RNG = np.random.default_rng(0)
CLEAN = np.full((21, 34), 0.2)
CLEAN[4:15, 5:23] = 0.8
CLEAN[2:9, 20:30] += 0.15
IMAGE = CLEAN + 0.05 * RNG.standard_normal(CLEAN.shape)
MASK = RNG.random(CLEAN.shape) < 0.7
KERNEL = np.outer([1, 3, 1], [2, 3, 1]) / 30.0


def fourier(image, mask, turn, **options):
    # The image whose coefficients are measured is turned, and so is the set of those: about the zero frequency.
    frequencies = np.fft.ifftshift(turn(np.fft.fftshift(mask)))
    return ell12.reconstruct_mri(np.fft.fft2(turn(image), norm="ortho"), frequencies, real=True, **options)


def projections(image, turn, **options):
    places = turn(np.arange(image.size).reshape(image.shape)).reshape(-1)
    matrix = np.eye(image.size)[:, places][::2] + 0.5 * np.eye(image.size)[:, places][1::2]
    return ell12.restore_tv(matrix @ turn(image).reshape(-1), matrix, shape=turn(image).shape, **options)


ODD = RNG.random((21, 33)) < 0.6  # an odd number of frequencies, so that zero is in the middle
ODD |= ODD[::-1, ::-1]
CALLS = {
    "denoise": lambda turn, **options: ell12.denoise_tv(turn(IMAGE), **options),
    "denoise truly": lambda turn, **options: ell12.denoise_tv(
        turn(IMAGE), 0.05, smoothing=0, max_iter=60, **options
    ),
    "deblur": lambda turn, **options: ell12.deblur_tv(turn(IMAGE), turn(KERNEL), **options),
    "inpaint": lambda turn, **options: ell12.inpaint_tv(turn(IMAGE), turn(MASK), **options),
    "mri": lambda turn, **options: fourier(IMAGE[:, :33], ODD, turn, noise=0.05, **options),
    "restore": lambda turn, **options: projections(IMAGE[:8, :12], turn, noise=0.05, **options),
}
TURNS = {
    "upside down": lambda x: x[::-1],
    "left to right": lambda x: x[:, ::-1],
    "by a half": lambda x: x[::-1, ::-1],
    "by a quarter": np.rot90,
    "transposed": np.transpose,
}


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", CALLS)
def test_a_turned_image_gives_the_turned_result(name, turn):
    expected = CALLS[name](lambda x: x, return_result=True)
    found = CALLS[name](TURNS[turn], return_result=True)
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-9)
    np.testing.assert_allclose(found.image, TURNS[turn](expected.image), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), axes=st.sets(st.sampled_from([-3, -2, -1])), shift=st.floats(-5, 5))
def test_the_corner_is_mirrored_with_the_image_in_any_unit(seed, axes, shift):
    random = np.random.default_rng(seed)
    image, known = random.standard_normal((2, 4, 5, 7)), random.random((2, 4, 5, 7)) < 0.8
    mirrored, flip = np.flip(image, tuple(axes)), tuple(axes)
    assert corner_of(-3 * mirrored + shift, 3) == toggled(corner_of(image, 3), flip)
    assert corner_of(mirrored, 3, np.flip(known, flip)) == toggled(corner_of(image, 3, known), flip)


def test_a_large_image_is_summed_in_parts(monkeypatch):
    image = RNG.standard_normal((9, 10, 11))
    expected = corner_of(image, 3)
    monkeypatch.setattr("ell12.restoration.corners.PIXELS_AT_ONCE", 120)
    assert corner_of(image, 3) == expected

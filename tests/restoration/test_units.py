"""Units do not matter: ``f(c y + d) = c f(y) + d``, in the same number of iterations."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.restoration import short

from ell12.operators import Reshaped
from ell12.restoration.pixels import value_range

RNG = np.random.default_rng(0)
CLEAN = np.full((24, 24), 0.2)
CLEAN[6:18, 6:18] = 0.8
IMAGE = CLEAN + 0.05 * RNG.standard_normal(CLEAN.shape)
KERNEL = np.outer([1, 2, 1], [1, 2, 1]) / 16.0
MASK = RNG.random(CLEAN.shape) < 0.7
MASK[0, 0] = True
MATRIX = RNG.standard_normal((40, 64)) / 8
EIGHT = Reshaped(MATRIX, (8, 8))
CALLS = {
    "denoise": lambda y, c, **options: short.denoise_tv(y, **options),
    "denoise truly": lambda y, c, **options: short.denoise_tv(y, smoothing=0, max_iter=50, **options),
    "isotropic": lambda y, c, **options: short.denoise_tv(y, isotropic=True, spacing=(1.0, 2.0), **options),
    "deblur": lambda y, c, **options: short.deblur_tv(y, KERNEL, **options),
    "deblur periodic": lambda y, c, **options: short.deblur_tv(y, KERNEL, boundary="periodic", **options),
    "inpaint": lambda y, c, **options: short.inpaint_tv(y, MASK, **options),
    "mri": lambda y, c, **o: short.reconstruct_mri(np.fft.fft2(y, norm="ortho"), MASK, sigma=0.05 * c, **o),
    "restore": lambda y, c, **o: short.restore_tv(MATRIX @ y[:8, :8].ravel(), EIGHT, sigma=0.05 * c, **o),
}


@cache
def plain(name):
    return CALLS[name](IMAGE, 1.0, return_result=True)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=6, deadline=None)
@given(exponent=st.floats(-6, 6), shift=st.floats(-3, 3))
def test_an_image_in_other_units_is_restored_alike(name, exponent, shift):
    c, expected = 10.0**exponent, plain(name)
    found = CALLS[name](c * (IMAGE + shift), c, return_result=True)
    np.testing.assert_allclose(found.image / c - shift, expected.image, atol=1e-6)
    assert found.alpha == pytest.approx(c * expected.alpha, rel=1e-9)
    assert found.result.n_iter == expected.result.n_iter
    assert found.converged == expected.converged


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_the_range_is_that_of_the_clean_image_nearly_and_ignores_shifts_and_phases(noise):
    clean = np.kron(CLEAN, np.ones((4, 4)))
    noisy = clean + noise * RNG.standard_normal(clean.shape)
    assert 0.599 <= value_range(noisy, 2) <= 0.601 + 2 * noise
    assert value_range(np.stack([noisy, noisy + 1]), 2) == pytest.approx(value_range(noisy, 2) + 1)
    assert value_range(np.exp(0.3j) * noisy - 2e-6j, 2) == pytest.approx(value_range(noisy, 2), rel=1e-6)
    assert value_range(np.indices((20, 20)).sum(axis=0) % 2, 2) == 0.25  # means of a chessboard are all equal
    assert value_range(np.full((9, 9), 7.0), 2) == 1.0


def test_float32_far_from_zero_is_restored_as_near_it():
    expected = short.denoise_tv(IMAGE.astype(np.float32), 0.05)
    found = short.denoise_tv((IMAGE + 100).astype(np.float32), 0.05) - 100
    assert np.sqrt(np.mean((found - expected) ** 2)) < 2e-3

"""Restoration of arrays of every library, and errors that name what is wrong."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from tests.restoration import short

import ell12
from ell12.restoration import AlternatingMinimization, GrowingADMM, TotalVariationL12

KERNEL = np.outer([1, 2, 1], [1, 2, 1]) / 16.0
MASK = np.random.default_rng(0).random((20, 18)) < 0.7
WHOLE = np.tile(MASK, (3, 3))
FEW = {"tol": 0, "max_iter": 4, "return_result": True}  # enough to see whether the arithmetic is the same


def picture(dtype="float64"):
    clean = np.full((20, 18), 0.2)
    clean[5:15, 4:14] = 0.8
    return (clean + 0.05 * np.random.default_rng(1).standard_normal(clean.shape)).astype(dtype)


TRUE = {"boundary": "periodic", "solver": GrowingADMM()} | FEW | {"tol": 1e9}
CALLS = {
    "denoise": lambda y, send: short.denoise_tv(y, 0.05, **FEW),
    "estimated": lambda y, send: short.denoise_tv(y, **FEW),
    "periodic": lambda y, send: short.denoise_tv(y, 0.05, boundary="periodic", bounds=(0.2, 0.8), **FEW),
    "held-out": lambda y, send: short.denoise_tv(y, "held-out", sigma=0.05, **FEW),
    "channels": lambda y, send: short.denoise_tv(y, 0.05, channel_axis=-1, **FEW),
    "admm": lambda y, send: short.denoise_tv(y, 0.05, **TRUE),
    "cg": lambda y, send: short.denoise_tv(y, 0.05, solver=AlternatingMinimization("cg", False, 0, 3), **FEW),
    "deblur": lambda y, send: short.deblur_tv(y, send(KERNEL), 0.01, **FEW),
    "deblur periodic": lambda y, send: short.deblur_tv(y, send(KERNEL), 0.01, boundary="periodic", **FEW),
    "inpaint": lambda y, send: short.inpaint_tv(y, send(MASK), **FEW),
    "mask of NumPy": lambda y, send: short.inpaint_tv(y, MASK, **FEW),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_every_library(backend, name):
    dtype = "float64" if backend.float64 else "float32"
    image = picture(dtype)

    def send(value):
        return backend.make_array(value if value.dtype == bool else value.astype(dtype))

    y = send(image)
    x = CALLS[name](y, send).image
    assert type(x) is type(y)
    assert x.device == y.device
    assert str(x.dtype).endswith(dtype)
    expected = CALLS[name](image, lambda value: value if value.dtype == bool else value.astype(dtype)).image
    np.testing.assert_allclose(backend.to_numpy(x), expected, atol=1e-9 if dtype == "float64" else 1e-4)
    np.testing.assert_array_equal(backend.to_numpy(y), image)


@pytest.mark.parametrize("call", [short.denoise_tv, lambda y, **options: short.inpaint_tv(y, WHOLE, **options)])
def test_tensors_on_a_processor_take_the_compiled_sweep(call):
    torch = pytest.importorskip("torch")
    image, kinds = np.tile(picture(), (3, 3)), []
    options = {"measure": {"mean": lambda x: kinds.append(type(x)) or float(x.mean())}, "return_result": True}
    found = call(torch.from_numpy(image), **options)
    assert set(kinds) == {type(found.image)} == {type(found.result.x)} == {torch.Tensor}
    np.testing.assert_array_equal(found.image.numpy(), call(image))  # to the last bit


def test_mri_on_arrays_of_every_library(backend):
    if backend.name == "array_api_strict":
        pytest.skip("no complex arithmetic with Python numbers in the bare standard")
    dtype = "complex128" if backend.float64 else "complex64"
    data = np.fft.fftn(picture(), norm="ortho").astype(dtype)
    for real in (False, True):
        x = short.reconstruct_mri(backend.make_array(data), backend.make_array(MASK), 0.01, real=real, **FEW).image
        expected = short.reconstruct_mri(data, MASK, 0.01, real=real, **FEW).image
        np.testing.assert_allclose(backend.to_numpy(x), expected, atol=1e-9 if backend.float64 else 1e-4)


EYE = np.eye(4)
BAD = [
    (ValueError, "image is empty", lambda: short.denoise_tv(np.zeros((0, 4)))),
    (ValueError, "image is empty", lambda: short.denoise_tv(3.0)),
    (TypeError, "image must hold numbers", lambda: short.denoise_tv(scipy.sparse.eye(4))),
    (ValueError, "image has values up to", lambda: short.denoise_tv(1e-20 * picture("float32"), 1e-21)),
    (ValueError, "image has values up to", lambda: short.denoise_tv(1e200 * picture())),
    (ValueError, "besides channel_axis", lambda: short.denoise_tv(np.ones(4), 0.1, channel_axis=0)),
    (ValueError, "bounds must be ordered", lambda: short.denoise_tv(picture(), 0.1, bounds=(1, 0))),
    (ValueError, "psf must have 2 axes", lambda: short.deblur_tv(picture(), [1, 2])),
    (ValueError, "kernel of shape", lambda: short.deblur_tv(picture(), np.ones((21, 3)))),
    (ValueError, "mask of shape", lambda: short.inpaint_tv(picture(), MASK[:-1])),
    (ValueError, "keeps no entry", lambda: short.inpaint_tv(picture(), MASK & False)),
    (ValueError, "data must have the mask's shape", lambda: short.reconstruct_mri(np.ones(3), MASK, 0.1)),
    (ValueError, "give alpha, sigma", lambda: short.reconstruct_mri(np.ones(MASK.shape), MASK)),
    (ValueError, "give Reshaped", lambda: short.restore_tv(np.ones(3), np.ones((3, 4)), 0.1)),
    (ValueError, "hold the 4 entries", lambda: short.restore_tv(EYE[0], EYE, 0.1, shape=(3, 3))),
    (ValueError, "y must have shape", lambda: short.restore_tv(np.ones(2), EYE, 0.1, shape=(2, 2))),
    (TypeError, "penalty must be", lambda: ell12.denoise_tv(picture(), 0.1, penalty=ell12.L12())),
    (ValueError, "alpha is given twice", lambda: ell12.denoise_tv(EYE, 0.1, penalty=TotalVariationL12(0.2))),
]


@pytest.mark.parametrize(("kind", "message", "call"), BAD)
def test_bad_input_is_named(kind, message, call):
    with pytest.raises(kind, match=message):
        call()


def test_long_double_is_taken_for_double():
    image, expected = picture("longdouble"), short.denoise_tv(picture())
    np.testing.assert_allclose(short.denoise_tv(image), expected, rtol=1e-12)
    assert short.inpaint_tv(image, MASK).dtype == np.float64


def test_noise_beyond_the_range_of_the_values_leaves_a_flat_image():
    data = np.fft.fft2(picture(), norm="ortho")
    for sigma in (1e10, 1e300):
        found = short.reconstruct_mri(data, MASK, sigma=sigma, real=True)
        assert np.ptp(found) < 1e-3
        assert np.mean(found) == pytest.approx(np.mean(picture()))
        assert np.ptp(short.denoise_tv(picture(), sigma=sigma)) < np.ptp(picture())


def test_a_series_is_a_signal():
    pandas = pytest.importorskip("pandas")
    signal = picture()[0]
    np.testing.assert_array_equal(short.denoise_tv(pandas.Series(signal), 0.05), short.denoise_tv(signal, 0.05))


def test_unknown_pixels_may_hold_anything():
    image = np.where(MASK, picture(), np.nan)
    assert np.isfinite(short.inpaint_tv(image, MASK, 0.05)).all()
    image[np.nonzero(MASK)[0][0], np.nonzero(MASK)[1][0]] = np.inf
    with pytest.raises(ValueError, match="image holds NaN"):
        short.inpaint_tv(image, MASK, 0.05)


def test_coefficients_outside_the_mask_may_hold_anything():
    data = np.fft.fftn(picture(), norm="ortho")
    marked = np.where(MASK, data, np.nan)
    expected = short.reconstruct_mri(data, MASK, 0.05)
    np.testing.assert_array_equal(short.reconstruct_mri(marked, MASK, 0.05), expected)
    coils = short.reconstruct_mri(np.stack([marked, marked], axis=-1), MASK, 0.05, channel_axis=-1)
    assert np.isfinite(coils).all()
    with pytest.raises(ValueError, match="data holds NaN"):
        short.reconstruct_mri(np.where(MASK, np.nan, data), MASK, 0.05)


def test_no_strength_leaves_the_image_as_it_is():
    np.testing.assert_array_equal(short.denoise_tv(picture(), 0.0), picture())


def test_the_penalty_outside_its_bounds_is_infinite():
    assert TotalVariationL12(1.0, bounds=(0.0, None)).value(-picture()) == np.inf
    assert TotalVariationL12(1.0, bounds=(None, None)).bounds is None


def test_a_small_image_loads_no_compiler():
    code = "import sys, ell12, numpy as np; ell12.denoise_tv(np.eye(20), 0.1); print('numba' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "False"

"""Turning or mirroring an image, its precision and its library change nothing but how the result is laid out."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.restoration import short

KERNEL = np.outer([1, 3, 1], [2, 3, 1]) / 30.0
NOISE = 0.05


@functools.cache
def picture(seed, rows, columns):
    random = np.random.default_rng(seed)
    clean = np.full((rows, columns), 0.2)
    clean[rows // 5 : 2 * rows // 3, columns // 6 : 2 * columns // 3] = 0.8
    clean[rows // 8 : rows // 2, columns // 2 :] += 0.15
    return clean + NOISE * random.standard_normal(clean.shape), random.random(clean.shape) < 0.7


def denoise(image, mask, turn, kind, **options):
    return short.denoise_tv(kind(turn(image)), **options)


def denoise_truly(image, mask, turn, kind, **options):
    return short.denoise_tv(kind(turn(image)), smoothing=0, max_iter=60, **options)


def deblur(image, mask, turn, kind, **options):
    return short.deblur_tv(kind(turn(image)), kind(turn(KERNEL)), **options)


def inpaint(image, mask, turn, kind, **options):
    return short.inpaint_tv(kind(turn(image)), turn(mask), **options)


def reconstruct(image, mask, turn, kind, **options):
    # What is measured of the turned image is turned about the zero frequency, which an odd size has in the middle.
    image, mask = (x[: len(x) - 1 + len(x) % 2, : len(x[0]) - 1 + len(x[0]) % 2] for x in (image, mask))
    frequencies = np.fft.ifftshift(turn(mask | mask[::-1, ::-1]))
    data = kind(np.fft.fft2(turn(image), norm="ortho"))
    return short.reconstruct_mri(data, frequencies, real=True, sigma=NOISE, **options)


def restore(image, mask, turn, kind, **options):
    image = image[:8, :12]
    places = turn(np.arange(image.size).reshape(image.shape)).reshape(-1)
    every = np.eye(image.size)[:, places]
    matrix = kind(every[::2] + 0.5 * every[1::2])
    data = matrix @ kind(turn(image).reshape(-1).copy())
    return short.restore_tv(data, matrix, shape=turn(image).shape, sigma=NOISE, **options)


CALLS = {f.__name__: f for f in (denoise, denoise_truly, deblur, inpaint, reconstruct, restore)}
TURNS = {
    "not at all": lambda x: x,
    "upside down": lambda x: x[::-1],
    "left to right": lambda x: x[:, ::-1],
    "by a half": lambda x: x[::-1, ::-1],
    "by a quarter": np.rot90,
    "transposed": np.transpose,
}


def same(x):
    return x


def single(x):
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


pictures = st.builds(picture, st.integers(0, 2**32), st.integers(16, 26), st.integers(16, 34))
each_function = pytest.mark.parametrize("name", CALLS)
few_examples = settings(max_examples=3, deadline=None, derandomize=True)


@pytest.mark.parametrize("name", ["denoise", "denoise_truly"])
@few_examples
@given(pictures, st.sampled_from([turn for turn in TURNS if turn != "not at all"]))
def test_a_turned_image_gives_the_turned_result(name, drawn, turn):
    options = {"alpha": 0.05, "l2_weight": 0.0, "return_result": True}  # under which no direction is preferred
    expected = CALLS[name](*drawn, same, same, **options)
    found = CALLS[name](*drawn, TURNS[turn], same, **options)
    np.testing.assert_allclose(found.image, TURNS[turn](expected.image), atol=1e-8)


@each_function
@few_examples
@given(pictures)
def test_single_precision_gives_what_double_gives_to_single_precision(name, drawn):
    expected = CALLS[name](*drawn, same, same, return_result=True)
    found = CALLS[name](*drawn, same, single, return_result=True)
    assert found.image.dtype == np.float32
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-4)
    # Rounding may end a run one iteration sooner.
    assert np.sqrt(np.mean((found.image - expected.image) ** 2)) < 1e-4


@each_function
@few_examples
@given(pictures)
def test_a_tensor_gives_what_an_array_gives(name, drawn):
    torch = pytest.importorskip("torch")
    expected = CALLS[name](*drawn, same, same, return_result=True)
    found = CALLS[name](*drawn, same, lambda x: torch.from_numpy(np.ascontiguousarray(x)), return_result=True)
    assert isinstance(found.image, torch.Tensor)
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-12)
    np.testing.assert_allclose(found.image.numpy(), expected.image, atol=1e-10)

import numpy as np
import pytest

from ell12.prox import prox_l12
from ell12.vector_prox import FUSED_FROM, MOST_BLOCKS, THREADS, _shrink, _square_above

TURN = MOST_BLOCKS * THREADS  # entries that all threads of a kernel read in one turn of their loop


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_kernels_compute_the_prox(l2_weight):
    torch = pytest.importorskip("torch")
    z = np.random.default_rng(0).standard_normal(1000)
    t = 0.7
    tensor, threshold = torch.as_tensor(z), torch.as_tensor(t, dtype=torch.float64)
    square = _square_above(tensor, threshold)
    x = _shrink(tensor, threshold, 1 + l2_weight * t / square**0.5)
    np.testing.assert_allclose(x.numpy(), prox_l12(z, t, l2_weight=l2_weight), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("top", [1e3, 0.5])  # some entries above the threshold, or none
def test_a_long_vector_is_the_same_on_every_device(backend, dtype, top):
    if dtype == "float64" and not backend.float64:
        pytest.skip("no double precision here")
    if backend.name == "array_api_strict":
        pytest.skip("the bare standard has no GPU")
    z = np.random.default_rng(0).uniform(-top, top, FUSED_FROM + 5).astype(dtype)
    x = prox_l12(backend.make_array(z), 1.0)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(backend.to_numpy(x), prox_l12(z, 1.0), rtol=rounding, atol=top * rounding / 10)
    assert backend.to_numpy(x).dtype == dtype


def test_a_long_vector_with_nan_says_so(backend):
    z = np.ones(FUSED_FROM, dtype=np.float32)
    z[3] = np.nan
    if backend.name == "array_api_strict":
        pytest.skip("the bare standard has no GPU")
    assert np.isnan(backend.to_numpy(prox_l12(backend.make_array(z), 0.5))).any()


@pytest.mark.parametrize("size", [1, 5, THREADS + 1, TURN + 3, 5 * TURN + 1])
def test_vectors_of_many_lengths(gpu, size):
    z = np.random.default_rng(1).uniform(-2, 2, size).astype(np.float32)
    z[0] = 3.0
    for l2_weight in (0.0, 0.5, 1.0):
        x = gpu.to_numpy(prox_l12(gpu.make_array(z), 1.0, l2_weight=l2_weight))
        np.testing.assert_allclose(x, prox_l12(z.astype(float), 1.0, l2_weight=l2_weight), rtol=1e-5, atol=1e-6)


def test_arrays_that_are_not_one_piece(gpu):
    z = np.random.default_rng(1).uniform(-2, 2, (60, 70)).astype(np.float32)
    make = gpu.make_array
    for array, expected in ((make(z)[:, ::3], z[:, ::3]), (make(z).T, z.T), (make(z)[5:, 7:], z[5:, 7:])):
        before = gpu.to_numpy(array).copy()
        np.testing.assert_allclose(gpu.to_numpy(prox_l12(array, 1.0)), prox_l12(expected, 1.0), rtol=1e-5)
        np.testing.assert_array_equal(gpu.to_numpy(array), before)

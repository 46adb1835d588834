import numpy as np
import pytest

from ell12.backend.compiled_code import THREADS
from ell12.prox import prox_l12
from ell12.prox.cuda_rows import SHARED

LONG = 2**20
TURN = SHARED * THREADS  # entries that all threads of a kernel read in one turn of their loop


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("top", [1e3, 0.5])  # some entries above the threshold, or none
def test_a_long_vector_is_the_same_on_every_device(backend, dtype, top):
    if dtype == "float64" and not backend.float64:
        pytest.skip("no double precision here")
    if backend.name == "array_api_strict":
        pytest.skip("the bare standard has no GPU")
    z = np.random.default_rng(0).uniform(-top, top, LONG + 5).astype(dtype)
    x = prox_l12(backend.make_array(z), 1.0)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(backend.to_numpy(x), prox_l12(z, 1.0), rtol=rounding, atol=top * rounding / 10)
    assert backend.to_numpy(x).dtype == dtype


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


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # PyTorch calls it itself
def test_the_prox_in_functions_that_are_transformed():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    Z = torch.randn(5, 40, device="cuda", dtype=torch.float64)
    batched = torch.func.vmap(lambda z: prox_l12(z, 0.5))(Z)
    torch.testing.assert_close(batched, prox_l12(Z, 0.5, axis=-1))
    slope = torch.func.grad(lambda z: prox_l12(z, 0.5).sum())(Z[0])
    assert torch.isfinite(slope).all()
    ones = torch.ones_like(Z[0])
    _, change = torch.func.jvp(lambda z: prox_l12(z, 0.5), (Z[0],), (ones,))
    with torch.autograd.forward_ad.dual_level():  # a tensor with an address, and a derivative that a kernel loses
        dual = prox_l12(torch.autograd.forward_ad.make_dual(Z[0], ones), 0.5)
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(dual).tangent, change)
    negated = torch.conj(torch.complex(Z, Z)).imag  # a view that says: read it negated
    torch.testing.assert_close(prox_l12(negated, 0.5), prox_l12(-Z, 0.5))

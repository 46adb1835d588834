"""The kernels of GPUs for rows: which are chosen, and what they compute, against the plain operations."""

import itertools
import threading

import numpy as np
import pytest

from ell12.backend import compiled_code as cuda
from ell12.penalties import RowsL12
from ell12.prox import cuda_rows as rows
from ell12.prox import prox_l12, prox_l12_groups
from ell12.prox.batching import plain_row_norms
from ell12.prox.closed_form import plain_prox_rows
from ell12.prox.cuda_rows import Arrangement, norms_on_gpu, plan, prox_on_gpu


def test_every_entry_belongs_to_a_thread():
    lengths = (*range(1, 70), 1000, 1024, 1025, 10**5)
    for outer, length, inner in itertools.product((1, 7, 3000), lengths, (1, 2, 33)):
        found = plan(Arrangement(outer, length, inner))
        if "GROUP" in found.macros:
            group, entries = found.macros["GROUP"], found.macros["ENTRIES"]
            assert group * entries >= length
            assert entries <= 32  # the signs of a thread's entries are bits of one number
            assert cuda.WARP % group == 0
        else:
            across = found.macros["ACROSS"]
            assert found.blocks == outer * -(-inner // across) * found.parts
            assert cuda.THREADS % across == 0


def agrees(x, z, t, l2_weight=1.0, weights=None, positive=False, expected=None):
    """Whether x is what the plain operations give, within a few roundings of the row's largest number or of t."""
    if expected is None:
        expected = plain_prox_rows(z, t, l2_weight, weights, positive)
    size = np.max(np.where(np.isfinite(z), np.abs(z), 0), axis=-1, keepdims=True) + (1 + l2_weight) * t
    assert x.dtype == z.dtype
    assert x.shape == z.shape
    np.testing.assert_array_equal(np.isnan(x), np.isnan(expected))
    np.testing.assert_array_equal(x == 0, expected == 0)
    with np.errstate(invalid="ignore", over="ignore"):
        assert np.all(np.isnan(x) | (np.abs(x - expected) <= 8 * np.finfo(z.dtype).eps * size))


@np.errstate(invalid="ignore", over="ignore")
def lengths(z):
    return plain_row_norms(z)


def problems(shape, dtype, seed=0):
    """Rows of every kind: around the threshold, all below it, zeros, ties, infinite, not a number, extreme."""
    z = np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)
    tiny, huge = np.finfo(dtype).tiny, np.finfo(dtype).max / 4
    kinds = [z, z * 0.3, 0 * z, np.full_like(z, 0.5), np.sign(z), -np.abs(z), z * tiny, z * huge]
    for value in (np.nan, np.inf, -np.inf):
        kinds += [z.copy(), -np.abs(z)]
        kinds[-2][..., -1] = kinds[-1][..., 0] = value
    return np.concatenate(kinds)


@pytest.mark.usefixtures("kernels_on_cpu")
@pytest.mark.parametrize(
    ("dtype", "length", "parts"),
    [(np.float32, 3, 1), (np.float32, 7, 1), (np.float64, 7, 1), (np.float32, 20, 1), (np.float64, 20, 2)],
)
def test_kernels_agree_with_plain_operations(monkeypatch, length, parts, dtype):
    for name, value in (("MOST", 4), ("LEAST_READS", 4), ("MOST_BLOCKS", 14 * parts)):
        monkeypatch.setattr(rows, name, value)
    for name in ("THREADS", "WARP"):
        monkeypatch.setattr(cuda, name, 2)
    z = problems((1, length), dtype)
    assert plan(Arrangement(len(z), length, 1)).parts == parts
    weights = np.random.default_rng(2).uniform(0, 2, z.shape).astype(dtype)
    weights[..., -1] = np.inf
    t = np.random.default_rng(3).uniform(0, 1.5, (len(z), 1)).astype(dtype)
    for threshold, l2_weight in ((1.0, 1.0), (0.9, 0.0), (0.7, 1.7), (0.0, 1.0)):
        agrees(prox_on_gpu(z, threshold, l2_weight, None, False), z, threshold, l2_weight)
    if parts == 1:
        np.testing.assert_allclose(norms_on_gpu(z), lengths(z), rtol=8 * np.finfo(dtype).eps)
    agrees(prox_on_gpu(z, t, 0.8, None, True), z, t, 0.8, None, True)
    agrees(prox_on_gpu(z, 0.6, 1.3, weights, True), z, 0.6, 1.3, weights, True)
    agrees(prox_on_gpu(z, t, 1.3, weights[0], False), z, t, 1.3, weights[0])


@pytest.mark.usefixtures("kernels_on_cpu")
def test_kernels_read_problems_where_they_lie(monkeypatch):
    monkeypatch.setattr(cuda, "THREADS", 4)
    monkeypatch.setattr(cuda, "WARP", 2)
    monkeypatch.setattr(cuda, "one_piece", lambda x: copies.append(x.shape) or np.ascontiguousarray(x))
    copies: list[tuple[int, ...]] = []
    monkeypatch.setattr(rows, "MOST", 16)
    z = np.random.default_rng(0).uniform(-2, 2, (18, 3, 2))
    for axis in range(3):
        apart, weights = np.moveaxis(z, axis, -1), np.random.default_rng(1).uniform(0, 2, z.shape[axis])
        x = prox_on_gpu(apart, 0.5, 1.0, weights, False)
        agrees(x, apart, 0.5, 1.0, weights)
        norms = norms_on_gpu(apart)
        assert (norms is None) == (axis == 0)  # those that several blocks share
        if norms is not None:
            np.testing.assert_allclose(norms, np.linalg.norm(apart, axis=-1, keepdims=True), rtol=1e-14)
        assert np.moveaxis(x, -1, axis).flags.c_contiguous
    assert not copies
    # Batch axes that do not lie side by side are copied; weights without one stride for them, by reshape.
    agrees(prox_on_gpu(z[:, ::2], 0.5, 1.0, None, False), z[:, ::2], 0.5)
    weights = np.random.default_rng(1).uniform(0, 2, (18, 1, 1))
    agrees(prox_on_gpu(z, 0.5, 1.0, weights, False), z, 0.5, 1.0, weights)
    assert copies == [z[:, ::2].shape]


def test_no_kernel_where_there_is_no_gpu_or_something_is_differentiated():
    torch = pytest.importorskip("torch")
    z = torch.ones(3, 4)
    assert prox_on_gpu(z, 0.5, 1.0, None, False) is None
    assert not cuda.takes(z)
    assert cuda.is_bare(z)
    assert cuda.is_bare(torch.empty(0))
    assert not cuda.is_bare(torch.ones(3, requires_grad=True))
    seen = []

    def note(x):
        seen.append(cuda.is_bare(x))
        return x.sum()

    torch.func.vmap(note)(z)
    assert seen == [False]


def on_gpu(gpu, z, t=1.0, l2_weight=1.0, weights=None, positive=False):
    """Compare the kernel with plain operations of NumPy, and with those of the library itself."""
    make = gpu.make_array
    given = (make(z), t if np.isscalar(t) else make(t), l2_weight, weights if weights is None else make(weights))
    x = gpu.to_numpy(prox_on_gpu(*given, positive))
    agrees(x, z, t, l2_weight, weights, positive)
    return x, gpu.to_numpy(plain_prox_rows(*given, positive))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 3, 16, 129, 1000, 5000, 100_000])
def test_rows_of_all_lengths_on_a_gpu(gpu, length, dtype):
    z = problems((max(1, 500 // length), length), dtype, length)
    weights = np.random.default_rng(2).uniform(0, 2, z.shape).astype(dtype)
    weights[..., -1] = np.inf
    t = np.random.default_rng(3).uniform(0, 1.5, (len(z), 1)).astype(dtype)
    usual = z[: len(z) // 14]  # CuPy's own operations take numbers below the normal range for zero
    for l2_weight in (0.0, 0.5, 1.0, 1.7):
        on_gpu(gpu, z, 1.0, l2_weight)
        x, plain = on_gpu(gpu, usual, 1.0, l2_weight)
        agrees(x, usual, 1.0, l2_weight, expected=plain)
    norms = norms_on_gpu(gpu.make_array(z))
    if norms is not None:
        np.testing.assert_allclose(gpu.to_numpy(norms), lengths(z), rtol=8 * np.finfo(dtype).eps)
    for given in (None, weights, weights[0]):
        on_gpu(gpu, z, t, 0.8, given, True)
        on_gpu(gpu, z, 0.6, 1.3, given)
    if length > 1000:  # one problem for many blocks
        on_gpu(gpu, z[0], 0.7, 1.0, weights[0])
        on_gpu(gpu, 0.2 * z[0], 0.7)


def test_problems_along_any_axis_of_arrays_of_any_order_on_a_gpu(gpu):
    for shape in ((2, 3, 40), (40, 3, 2), (3, 2000, 2), (5, 17, 33), (1500, 7)):
        z = np.random.default_rng(0).uniform(-2, 2, shape)
        weights = np.random.default_rng(1).uniform(0, 2, shape[-1])
        for axis in [*range(len(shape)), (0, 1), (1, 0)]:
            for options in ({}, {"weights": weights}, {"positive": True}):
                expected = prox_l12(z, 0.5, axis=axis, **options)
                kind = {name: gpu.make_array(v) if name == "weights" else v for name, v in options.items()}
                x = prox_l12(gpu.make_array(z), 0.5, axis=axis, **kind)
                np.testing.assert_allclose(gpu.to_numpy(x), expected, rtol=1e-13, atol=1e-15)
        view = gpu.make_array(z)[::2, 1:]
        expected = prox_l12(z[::2, 1:], 0.5, axis=0)
        np.testing.assert_allclose(gpu.to_numpy(prox_l12(view, 0.5, axis=0)), expected, rtol=1e-13)
        half = prox_l12(gpu.make_array(z.astype(np.float16)), 0.5, axis=0)
        expected = prox_l12(z.astype(np.float16), 0.5, axis=0)
        np.testing.assert_allclose(gpu.to_numpy(half), expected, rtol=2e-3)


def test_penalties_of_rows_and_groups_on_a_gpu(gpu):
    x = np.random.default_rng(0).uniform(-2, 2, (300, 7))
    weights = np.random.default_rng(1).uniform(0, 2, 300)
    weights[5] = 0
    for penalty in (RowsL12(0.7, 1.0, weights=weights), RowsL12(0.7, positive=True)):
        found = gpu.to_numpy(penalty.prox(gpu.make_array(x), 0.9))
        np.testing.assert_allclose(found, penalty.prox(x, 0.9), rtol=1e-12, atol=1e-14)
    labels = np.random.default_rng(2).permutation(np.arange(2100) % 300)
    found = prox_l12_groups(gpu.make_array(x.ravel()), 0.9, labels, weights=weights)
    expected = prox_l12_groups(x.ravel(), 0.9, labels, weights=weights)
    np.testing.assert_allclose(gpu.to_numpy(found), expected, rtol=1e-12, atol=1e-14)


def test_a_thread_of_its_own_starts_kernels(gpu):
    z = gpu.make_array(np.random.default_rng(0).uniform(-2, 2, (50, 3)))
    found = []
    thread = threading.Thread(target=lambda: found.append(prox_on_gpu(z, 0.5, 1.0, None, False)))
    thread.start()
    thread.join()
    agrees(gpu.to_numpy(found[0]), gpu.to_numpy(z), 0.5)


LONG = 2**20


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

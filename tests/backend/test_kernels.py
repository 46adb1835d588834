"""The source of kernels, the compiler that is found for them, and the norms that one of them sums."""

from pathlib import Path

import numpy as np
import pytest

import ell12
from ell12.backend import compiled_code as cuda
from ell12.backend import number_types
from ell12.backend.number_types import difference, l1_and_l2

SHARED = Path(cuda.__file__)
MODULES = [path.with_suffix(".py") for path in sorted(Path(ell12.__file__).parent.rglob("*.cu"))]
MODULES.remove(SHARED)


def test_arrays_in_main_memory_and_sources_that_do_not_compile_have_no_kernel():
    assert cuda.kernel(np.zeros(3), str(MODULES[0]), "any") is None
    assert cuda._compiled(str(MODULES[0]), "no_such_kernel", False, 0, REAL="float", THREADS=256) is None
    torch = pytest.importorskip("torch")
    assert cuda.kernel(torch.zeros(3), str(MODULES[0]), "any") is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_every_library_are_those_of_numpy(backend, dtype):
    if dtype == np.float64 and not backend.float64:
        pytest.skip("no double precision here")
    x, y = np.random.default_rng(0).standard_normal((2, 300, 7)).astype(dtype)
    rounding = 20 * float(np.finfo(dtype).eps)
    found = l1_and_l2(backend.make_array(x))
    assert found == pytest.approx((np.abs(x).sum(), np.linalg.norm(x)), rel=rounding)
    found = difference(backend.make_array(x), backend.make_array(y))
    assert found == pytest.approx((np.abs(x - y).max(), ((x - y) ** 2).sum()), rel=rounding)
    unit = 1e30 if dtype == np.float32 else 1e200
    for scale in (unit, 1 / unit):  # squares out of range
        x = (scale * np.array([3.0, -4.0])).astype(dtype)
        assert l1_and_l2(backend.make_array(x)) == pytest.approx((7 * scale, 5 * scale), rel=1e-6)


@pytest.mark.usefixtures("kernels_on_cpu")
def test_the_kernel_of_norms_sums_what_plain_operations_sum(monkeypatch):
    monkeypatch.setattr("ell12.backend.number_types.MOST_BLOCKS", 8)
    for size in (1, 7, 8, 9, 100):
        for dtype in (np.float32, np.float64):
            x, y = np.random.default_rng(size).standard_normal((2, size)).astype(dtype)
            rounding = 20 * float(np.finfo(dtype).eps)
            l1, square, largest = number_types._on_gpu(x, x, of_difference=False)
            assert (l1, square, largest) == pytest.approx((np.abs(x).sum(), x @ x, np.abs(x).max()), rel=rounding)
            _, square, largest = number_types._on_gpu(x, y, of_difference=True)
            assert (largest, square) == pytest.approx((np.abs(x - y).max(), ((x - y) ** 2).sum()), rel=rounding)
    x[3] = np.nan
    assert np.isnan(number_types._on_gpu(x, y, of_difference=True)[1:]).all()

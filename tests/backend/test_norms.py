import numpy as np
import pytest

from ell12.backend.number_types import difference, l1_and_l2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_every_library(backend, dtype):
    if dtype == np.float64 and not backend.float64:
        pytest.skip("no double precision here")
    x, y = np.random.default_rng(0).standard_normal((2, 300, 7)).astype(dtype)
    rounding = 20 * float(np.finfo(dtype).eps)
    found = l1_and_l2(backend.make_array(x))
    assert found == pytest.approx((np.abs(x).sum(), np.linalg.norm(x)), rel=rounding)
    found = difference(backend.make_array(x), backend.make_array(y))
    assert found == pytest.approx((np.abs(x - y).max(), ((x - y) ** 2).sum()), rel=rounding)


def test_squares_out_of_range(backend):
    unit = 1e30 if not backend.float64 else 1e200
    dtype = np.float32 if not backend.float64 else np.float64
    for scale in (unit, 1 / unit):
        x = (scale * np.array([3.0, -4.0])).astype(dtype)
        assert l1_and_l2(backend.make_array(x)) == pytest.approx((7 * scale, 5 * scale), rel=1e-6)


@pytest.mark.usefixtures("kernels_on_cpu")
def test_the_kernel_of_gpus(monkeypatch):
    monkeypatch.setattr("ell12.backend.arrays.MOST_BLOCKS", 8)
    monkeypatch.setattr("ell12.backend.arrays.is_numpy", lambda _: False)  # the arrays stand in for those of a GPU
    for name in ("norm", "inner", "max_abs"):  # plain operations are not called
        monkeypatch.setattr(f"ell12.backend.arrays.{name}", None)
    for size in (1, 7, 8, 9, 100):
        for dtype in (np.float32, np.float64):
            x, y = np.random.default_rng(size).standard_normal((2, size)).astype(dtype)
            rounding = 20 * float(np.finfo(dtype).eps)
            assert l1_and_l2(x) == pytest.approx((np.abs(x).sum(), np.linalg.norm(x)), rel=rounding)
            expected = (np.abs(x - y).max(), ((x - y) ** 2).sum())
            assert difference(x, y) == pytest.approx(expected, rel=rounding)
    x[3] = np.nan
    assert np.isnan(difference(x, y)).all()

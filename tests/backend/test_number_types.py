"""Rounding, against sums in a higher precision."""

import numpy as np
import pytest

from ell12.backend import precision, rise_above_tangent, rounding


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_a_sum_is_off_by_less_than_its_rounding(dtype, size):
    for seed in range(10):
        x = np.random.default_rng(seed).random(size).astype(dtype)
        exact = float(np.sum(x.astype(np.longdouble)))
        assert abs(float(x.sum(dtype=dtype)) - exact) <= rounding(exact, x)
        square = float(np.sum(x.astype(np.longdouble) ** 2))
        assert abs(float(np.vdot(x, x)) - square) <= rounding(square, x)


def test_a_rise_that_rounding_can_make_is_none():
    single, double = np.zeros(1, dtype=np.float32), np.zeros(1)
    assert rise_above_tangent(1.0 + 1e-7, 1.0, 0.0, single) == 0
    assert rise_above_tangent(1.0 + 1e-7, 1.0, 0.0, double) == pytest.approx(1e-7, rel=1e-6)
    assert rise_above_tangent(1.0, 2.0, 0.0, double) == 0
    assert precision(single) > 1e8 * precision(double)

"""Inputs on which published proximal operators fail, and errors that name the argument."""

from __future__ import annotations

import numpy as np
import pytest

from ell12.prox import moreau_l12, prox_l12, prox_l12_groups, prox_l12_iterative, prox_l12_spectral

SEVERAL, SINGLE, ZERO = [3.0, -4.0, 0.5], [0.2, -0.7, 0.1], [0.0, 0.1, -0.05]  # the three branches at t = 1
BRANCHES = [(SEVERAL, 1.0), (SINGLE, 1.0), (ZERO, 0.8)]  # with the l2_weight that leads there


def test_nan_stays_in_its_row():
    z = np.array([[np.nan, 1.0], [3.0, 4.0], [0.2, 0.1]])
    x = prox_l12(z, 1.0, axis=1)
    assert np.isnan(x[0]).all()
    np.testing.assert_allclose(x[1:], [prox_l12(z[1], 1.0), [0.2, 0]], rtol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 1e200), (np.float64, 1e-170), (np.float64, 1e307), (np.float64, 1e-300),
        (np.float32, 3e20), (np.float32, 1e-25), (np.float32, 1e37), (np.float16, 300), (np.float16, 1e-2),
        (np.complex128, 1e200), (np.complex128, 1e-170), (np.complex64, 3e20), (np.complex64, 1e-25),
    ],
)  # fmt: skip
@pytest.mark.parametrize("l2_weight", [0.0, 1.0, 1.5])
def test_the_operator_scales_without_overflow_or_underflow(dtype, scale, l2_weight):
    z = np.array([1.5, -1.25, 0.5, 0.0])
    rtol = 8 * max(np.finfo(dtype).eps, np.finfo(np.float64).eps)
    for t in (1.0, 2.0, 0.0):
        expected = prox_l12(z, t, l2_weight=l2_weight)
        scaled = (z * scale).astype(dtype)
        for axis in (None, 0):
            x = prox_l12(scaled, t * scale, l2_weight=l2_weight, axis=axis)
            assert x.dtype == dtype
            np.testing.assert_allclose(np.asarray(x, complex) / scale, expected, rtol=rtol, atol=0)
        grouped = prox_l12_groups(scaled, t * scale, [0, 1, 2, 3], l2_weight=l2_weight)
        np.testing.assert_allclose(np.asarray(grouped, complex) / scale, expected, rtol=rtol, atol=0)


def test_published_failures_have_the_right_values():
    np.testing.assert_allclose(prox_l12([1e200, 1.0], 1.0), [1e200, 0], rtol=1e-15)
    np.testing.assert_allclose(prox_l12(np.float32([3e20, 1]), 1.0), np.float32([3e20, 0]), rtol=1e-7)
    np.testing.assert_array_equal(prox_l12(np.float16([300, 1]), 1.0), np.float16([300, 0]))
    np.testing.assert_allclose(prox_l12([1.5e-170], 1e-170), [1.5e-170], rtol=1e-15)
    np.testing.assert_allclose(prox_l12_spectral(np.float32([[3e20, 0], [0, 1]]), 1.0)[0, 0], 3e20, rtol=1e-6)
    np.testing.assert_allclose(prox_l12_spectral(np.float16([[300.0, 0], [0, 1]]), 1.0)[0, 0], 300, rtol=1e-3)
    np.testing.assert_allclose(prox_l12_iterative([1e200, 1.0], 1.0)[0], [1e200, 0], rtol=1e-15)


def test_only_a_result_that_overflows_overflows():
    largest = np.finfo(float).max
    np.testing.assert_array_equal(prox_l12([largest, 1.0], 1.0), [largest, 0])
    np.testing.assert_allclose(prox_l12([0.0, 0.0], 1e308, l2_weight=1.5), [5e307, 0], rtol=1e-15)
    np.testing.assert_allclose(prox_l12([1.7e308] * 4, 1e308, l2_weight=2.0), [1.7e308] * 4, rtol=1e-15)
    np.testing.assert_array_equal(prox_l12(np.float32([1, 2]), 1e39), np.float32([0, 2]))
    assert prox_l12([1.7e308], 1e307, l2_weight=2.0) == np.inf


@pytest.mark.parametrize("weights", [None, 1.0, [1.0, 1.0, 1.0]])
def test_a_threshold_far_above_z_keeps_the_largest_entry_exactly(weights):
    z = [0.3, -1.1, 1.0]
    np.testing.assert_array_equal(prox_l12(z, 1e17, weights=weights), [0, -1.1, 0])
    np.testing.assert_array_equal(prox_l12([z], 1e17, weights=weights, axis=1), [[0, -1.1, 0]])
    np.testing.assert_array_equal(prox_l12(np.maximum(z, 0), 1e17, weights=weights, positive=True), [0, 0, 1])
    assert float(moreau_l12(z, 1e17, weights=weights)) == pytest.approx(0.5 * (0.09 + 1), rel=1e-15)


def test_ties_keep_the_first():
    np.testing.assert_array_equal(prox_l12([0.1, -0.5, 0.5, 0.5], 1.0), [0, -0.5, 0, 0])
    np.testing.assert_array_equal(prox_l12([[0.5, 0.2], [0.2, -0.5]], 1.0), [[0.5, 0], [0, 0]])
    fortran = np.asfortranarray([[0.2, 0.5], [-0.5, 0.2]])
    np.testing.assert_array_equal(prox_l12(fortran, 1.0), [[0, 0.5], [0, 0]])
    np.testing.assert_array_equal(prox_l12([0.5, 0.9], 1.0, weights=[0.6, 1.0]), [0.9, 0])


def test_the_largest_entry_may_equal_the_threshold():
    np.testing.assert_array_equal(prox_l12([1.0, -1.0, 0.5], 1.0), [1, 0, 0])
    np.testing.assert_array_equal(prox_l12([1.0, -1.0, 0.5], 1.0, l2_weight=0.0), [0, 0, 0])
    np.testing.assert_array_equal(prox_l12([1j, -1.0], 1.0), [1j, 0])
    np.testing.assert_array_equal(prox_l12([3.0, 1.0], 1.0), [3, 0])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.longdouble])
@pytest.mark.parametrize(("z", "l2_weight"), BRANCHES)
def test_the_dtype_is_kept_on_every_branch(dtype, z, l2_weight):
    z = np.array(z, dtype=dtype)
    wide = {"t": np.float64(1), "l2_weight": np.float64(l2_weight)}  # NumPy scalars, which widen if they can
    array = {"t": np.array(1.0), "l2_weight": np.array(l2_weight)}
    for options in ({"t": 1, "l2_weight": l2_weight}, wide, array):
        assert prox_l12(z, **options).dtype == dtype
        assert prox_l12(z, weights=np.ones(3), **options).dtype == dtype
        assert prox_l12(np.stack([z, z]), axis=0, **options).dtype == dtype
        assert prox_l12_groups(z, groups=[0, 0, 1], **options).dtype == dtype
        if dtype != np.longdouble:
            assert prox_l12_spectral(z[None], **options).dtype == dtype
        assert prox_l12_iterative(z, max_iter=3, **options)[0].dtype == dtype
        single = {np.float16: np.float32}.get(dtype, dtype)
        assert moreau_l12(z, **options).dtype == np.real(np.zeros((), single)).dtype


def test_weights_broadcast_against_z():
    z = np.random.default_rng(0).standard_normal((3, 4))
    weights = np.array([0.0, 0.5, 1.0, 2.0])
    full = np.broadcast_to(weights, (3, 4)).copy()
    for axis in (None, 0, 1):
        found, expected = (prox_l12(z, 0.7, weights=w, axis=axis) for w in (weights, full))
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(prox_l12(z, 0.7, weights=2.0), prox_l12(z, 1.4, l2_weight=0.5), rtol=1e-14)


def test_complex_numbers_are_not_ordered():
    with pytest.raises(TypeError, match="positive"):
        prox_l12([1j, 2.0], 1.0, positive=True)


def test_errors_about_groups_name_the_argument():
    wrong = {"groups": ([0, 0], [[0, 1, 1]]), "weights": ([1.0] * 3, [1.0, -1.0]), "t": (-1.0, [1.0, 1.0])}
    for name, value in [(name, value) for name, values in wrong.items() for value in values]:
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            prox_l12_groups(np.ones(3), **{"t": 1.0, "groups": [0, 1, 1], name: value})

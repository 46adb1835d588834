"""Inputs on which published proximal operators fail, and errors that name the argument."""

from __future__ import annotations

import numpy as np
import pytest

from ell12.prox import (
    moreau_l12,
    prox_l12,
    prox_l12_groups,
    prox_l12_iterative,
    prox_l12_spectral,
    soft_threshold,
)

SEVERAL, SINGLE, ZERO = [3.0, -4.0, 0.5], [0.2, -0.7, 0.1], [0.0, 0.1, -0.05]  # the three branches at t = 1
BRANCHES = [(SEVERAL, 1.0), (SINGLE, 1.0), (ZERO, 0.8)]  # with the l2_weight that leads there


def every_function(z):
    """Each public function applied to the vector z, by name."""
    groups = np.arange(len(z)) // 2
    return {
        "prox_l12": prox_l12(z, 1.0),
        "weights": prox_l12(z, 1.0, weights=np.ones(len(z))),
        "axis": prox_l12(z[None, :], 1.0, axis=1)[0],
        "soft_threshold": soft_threshold(z, 1.0),
        "groups": prox_l12_groups(z, 1.0, groups),
        "spectral": prox_l12_spectral(z[None, :], 1.0)[0],
        "iterative": prox_l12_iterative(z, 1.0)[0],
    }


# Values.


def test_complex_entries_below_the_threshold_keep_the_largest():
    z = np.array([0.3 + 0.4j, 0.6j, -0.1])
    np.testing.assert_allclose(prox_l12(z, 1.0), [0, 0.6j, 0], rtol=1e-15)
    np.testing.assert_allclose(prox_l12(z, 1.0, l2_weight=1.5), [0, 1.1j, 0], rtol=1e-15)
    np.testing.assert_array_equal(prox_l12(z, 1.0, l2_weight=0.2), [0, 0, 0])


@pytest.mark.parametrize("position", [0, 1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_nan_comes_out_as_nan(dtype, position):
    z = np.array([3.0, -1.0, 0.2, 0.0], dtype=dtype)
    z[position] = np.nan
    for name, x in every_function(z).items():
        assert np.isnan(x).all(), name
    assert np.isnan(moreau_l12(z, 1.0))
    if dtype != np.complex128:
        assert np.isnan(prox_l12(z, 1.0, positive=True)).all()


def test_nan_stays_in_its_row():
    z = np.array([[np.nan, 1.0], [3.0, 4.0], [0.2, 0.1]])
    x = prox_l12(z, 1.0, axis=1)
    assert np.isnan(x[0]).all()
    np.testing.assert_allclose(x[1:], [prox_l12(z[1], 1.0), [0.2, 0]], rtol=1e-15)


def test_nan_under_an_infinite_weight_is_not_hidden():
    assert np.isnan(prox_l12([np.nan, 1.0], 1.0, weights=[np.inf, 1.0])).all()


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


def test_zero_stays_zero_until_the_subtracted_norm_prevails():
    for l2_weight in (0.0, 0.5, 1.0):
        np.testing.assert_array_equal(prox_l12(np.zeros(3), 1.0, l2_weight=l2_weight), np.zeros(3))
    np.testing.assert_array_equal(prox_l12(np.zeros(3), 2.0, l2_weight=1.5), [1, 0, 0])
    np.testing.assert_array_equal(prox_l12(np.zeros((2, 3)), 2.0, l2_weight=1.5, axis=0), [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(prox_l12(np.zeros(3, complex), 2.0, l2_weight=1.5), [1, 0, 0])
    np.testing.assert_array_equal(prox_l12(np.zeros(3), 2.0, l2_weight=1.5, weights=[2, 0, 1]), [0, 3, 0])
    np.testing.assert_array_equal(prox_l12(-np.ones(2), 2.0, l2_weight=2.0, positive=True), [1, 0])
    np.testing.assert_array_equal(prox_l12_groups(np.zeros(4), 2.0, [1, 0, 0, 1], l2_weight=1.5), [0, 1, 0, 0])
    assert np.linalg.norm(prox_l12_spectral(np.zeros((2, 3)), 2.0, l2_weight=1.5)) == pytest.approx(1)


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


def test_weights_may_be_zero():
    free = prox_l12([0.5, -0.2, 0.0], 10.0, weights=0.0, l2_weight=0.0)
    np.testing.assert_array_equal(free, [0.5, -0.2, 0])
    x = prox_l12([0.3, -0.4], 1.0, weights=0.0)  # along z, longer by t
    np.testing.assert_allclose(x, [0.9, -1.2], rtol=1e-15)


# Kinds of input.


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


@pytest.mark.parametrize("dtype", [int, np.uint8, bool])
def test_integers_count_as_floats(dtype):
    z = np.array([3, 0, 1], dtype=dtype)
    for name, x in every_function(z).items():
        assert x.dtype == float, name
        np.testing.assert_array_equal(x, every_function(z.astype(float))[name])


def test_lists_and_numbers_are_accepted():
    np.testing.assert_array_equal(prox_l12([3, -4, 0.5], 1), prox_l12(np.array(SEVERAL), 1.0))
    np.testing.assert_array_equal(prox_l12([[3, 4], [1, 0]], [1, 2], axis=1), prox_l12(
        np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([1.0, 2.0]), axis=1
    ))  # fmt: skip
    for number in (3.0, np.float64(3.0), np.array(3.0)):
        assert prox_l12(number, 1.0) == 3.0
        assert prox_l12(number, 1.0).shape == ()
        assert moreau_l12(number, 1.0) == 0.0
    assert prox_l12(np.float32(3), 1.0).dtype == np.float32


@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), None), ((0, 3), 1), ((3, 0), 1), ((3, 0), 0), ((2, 0, 3), (0, 1))]
)
def test_nothing_in_nothing_out(shape, axis):
    z = np.zeros(shape, dtype=np.float32)
    x = prox_l12(z, 1.0, axis=axis)
    assert x.shape == shape
    assert x.dtype == np.float32
    value = moreau_l12(z, 1.0, axis=axis)
    np.testing.assert_array_equal(value, np.zeros_like(z).sum(axis=axis))


def test_nothing_in_nothing_out_for_the_other_functions():
    assert prox_l12_groups([], 1.0, []).shape == (0,)
    assert prox_l12_spectral(np.zeros((2, 0, 3)), 1.0).shape == (2, 0, 3)
    assert prox_l12_iterative([], 1.0)[0].shape == (0,)
    assert soft_threshold([], 1.0).shape == (0,)


@pytest.mark.parametrize("axis", [(0, 2), (2, 0), (-1, 0), (1,), np.int64(1), -2, (0, 1, 2), None])
def test_one_problem_may_span_several_axes(axis):
    z = np.random.default_rng(0).standard_normal((2, 3, 4))
    x = prox_l12(z, 0.8, axis=axis)
    axes = tuple(range(3)) if axis is None else tuple(a % 3 for a in np.atleast_1d(axis))
    batch = tuple(a for a in range(3) if a not in axes)
    for index in np.ndindex(*(z.shape[a] for a in batch)):
        where = [slice(None)] * 3
        for a, i in zip(batch, index, strict=True):
            where[a] = i
        np.testing.assert_allclose(x[tuple(where)], prox_l12(z[tuple(where)].copy(), 0.8), rtol=1e-14)


def test_each_row_may_have_its_threshold():
    z = np.random.default_rng(1).standard_normal((5, 4))
    t = np.array([0.0, 0.3, 1.0, 2.0, 5.0])
    expected = [prox_l12(row, float(t_row)) for row, t_row in zip(z, t, strict=True)]
    np.testing.assert_allclose(prox_l12(z, t, axis=1), expected, rtol=1e-14)
    np.testing.assert_allclose(prox_l12(z, t[:, None], axis=1), expected, rtol=1e-14)
    np.testing.assert_allclose(prox_l12(z.T, t[None], axis=0).T, expected, rtol=1e-14)
    matrices = np.random.default_rng(2).standard_normal((5, 2, 3))
    stacked = [prox_l12_spectral(Z, float(t_row)) for Z, t_row in zip(matrices, t, strict=True)]
    np.testing.assert_allclose(prox_l12_spectral(matrices, t), stacked, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("z", [SEVERAL, SINGLE, ZERO])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_inputs_are_never_written_to(z, dtype):
    z = np.array(z, dtype=dtype)
    before = z.copy()
    z.setflags(write=False)
    for name, x in every_function(z).items():
        assert x.flags.writeable, name
        assert not np.shares_memory(x, z), name
    for t in (0.0, 1.0, np.array(1.0)):
        assert not np.shares_memory(prox_l12(z, t), z)
        assert not np.shares_memory(prox_l12(z[None], t, axis=1), z)
    np.testing.assert_array_equal(z, before)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("t", [0.5, 9.0])
def test_memory_layout_does_not_matter(axis, t):
    z = np.random.default_rng(0).standard_normal((6, 8))
    weights = np.random.default_rng(1).random((6, 8))
    wide = np.full((12, 24), 7.0)
    wide[1::2, 2::3] = z
    layouts = [np.asfortranarray(z), wide[1::2, 2::3], z[::-1, ::-1][::-1, ::-1], z.T.copy().T, z.view(np.ndarray)]
    for options in ({}, {"weights": weights}, {"positive": True}):
        expected = prox_l12(z, t, axis=axis, **options)
        for other in layouts:
            np.testing.assert_allclose(prox_l12(other, t, axis=axis, **options), expected, rtol=1e-15)


def test_weights_broadcast_against_z():
    z = np.random.default_rng(0).standard_normal((3, 4))
    weights = np.array([0.0, 0.5, 1.0, 2.0])
    full = np.broadcast_to(weights, (3, 4)).copy()
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(
            prox_l12(z, 0.7, weights=weights, axis=axis), prox_l12(z, 0.7, weights=full, axis=axis)
        )
    np.testing.assert_allclose(prox_l12(z, 0.7, weights=2.0), prox_l12(z, 1.4, l2_weight=0.5), rtol=1e-14)


# Errors.


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"t": -1.0}, ValueError, "t must"),
        ({"t": np.nan}, ValueError, "t must"),
        ({"t": np.inf}, ValueError, "t must"),
        ({"t": "1"}, TypeError, "t must"),
        ({"t": 1j}, TypeError, "t must"),
        ({"t": None}, TypeError, "t must"),
        ({"t": [1.0, -1.0], "axis": 1}, ValueError, "t must"),
        ({"t": [1.0, np.nan], "axis": 1}, ValueError, "t must"),
        ({"t": [1.0, np.inf], "axis": 1}, ValueError, "t must"),
        ({"t": [1.0, 1.0, 1.0], "axis": 1}, ValueError, "t must"),
        ({"t": [1.0, 1.0]}, ValueError, "t must"),
        ({"t": np.ones((2, 3)), "axis": 1}, ValueError, "t must"),
        ({"l2_weight": -0.5}, ValueError, "l2_weight must"),
        ({"l2_weight": np.nan}, ValueError, "l2_weight must"),
        ({"l2_weight": np.inf}, ValueError, "l2_weight must"),
        ({"l2_weight": [1.0, 2.0]}, ValueError, "l2_weight must"),
        ({"l2_weight": "1"}, TypeError, "l2_weight must"),
        ({"l2_weight": None}, TypeError, "l2_weight must"),
        ({"weights": -1.0}, ValueError, "weights must"),
        ({"weights": [1.0, -1.0, 1.0]}, ValueError, "weights must"),
        ({"weights": [1.0, np.nan, 1.0]}, ValueError, "weights must"),
        ({"weights": ["a", "b", "c"]}, TypeError, "weights must"),
        ({"weights": [1.0, 1.0]}, ValueError, "weights of shape"),
        ({"weights": np.ones((4, 2, 3))}, ValueError, "weights of shape"),
        ({"weights": np.ones((2, 2)), "axis": 0}, ValueError, "weights of shape"),
        ({"axis": 2}, ValueError, "axis 2"),
        ({"axis": (0, 0)}, ValueError, "axis"),
        ({"axis": (0, -2)}, ValueError, "axis"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", [prox_l12, moreau_l12])
def test_errors_name_the_argument(function, options, error, named):
    with pytest.raises(error, match=named):
        function(np.ones((2, 3)), **{"t": 1.0, **options})


@pytest.mark.parametrize("z", ["abc", ["a", "b"], None, [None, 1.0], [object()]])
@pytest.mark.parametrize(
    "function",
    [prox_l12, soft_threshold, moreau_l12, prox_l12_iterative, lambda z, t: prox_l12_groups(z, t, [0, 0])],
)
def test_only_numbers_are_accepted(function, z):
    with pytest.raises(TypeError, match="z must hold numbers"):
        function(z, 1.0)


def test_complex_numbers_are_not_ordered():
    with pytest.raises(TypeError, match="positive"):
        prox_l12([1j, 2.0], 1.0, positive=True)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"groups": [0, 0]}, "groups"),
        ({"groups": [[0, 1, 1]]}, "groups"),
        ({"groups": [0, 1, 1], "weights": [1.0, 1.0, 1.0]}, "weights must"),
        ({"groups": [0, 1, 1], "weights": [1.0, -1.0]}, "weights must"),
        ({"groups": [0, 1, 1], "t": -1.0}, "t must"),
        ({"groups": [0, 1, 1], "t": [1.0, 1.0]}, "t must"),
        ({"groups": [0, 1, 1], "l2_weight": -1.0}, "l2_weight must"),
    ],
)
def test_errors_about_groups_name_the_argument(options, named):
    with pytest.raises(ValueError, match=named):
        prox_l12_groups(np.ones(3), **{"t": 1.0, **options})


def test_other_errors_name_the_argument():
    with pytest.raises(ValueError, match="Z must be a matrix"):
        prox_l12_spectral([1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="t must"):
        prox_l12_spectral(np.eye(2), -1.0)
    with pytest.raises(ValueError, match="t must"):
        prox_l12_spectral(np.ones((3, 2, 2)), [1.0, 1.0])
    with pytest.raises(ValueError, match="start must"):
        prox_l12_iterative([1.0, 2.0], 1.0, start=[1.0])
    with pytest.raises(ValueError, match="t must"):
        prox_l12_iterative([1.0, 2.0], -1.0)

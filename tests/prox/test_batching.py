"""Rows and groups, against loops over every problem."""

import itertools

import numpy as np
import pytest

from ell12.prox.batching import as_groups, lay_out, row_norms, thresholds

SHAPE = (2, 3, 4)
AXES = [None, 0, 1, -1, (0,), (0, 2), (2, 0), (-1, 1), (1, 2, 0)]


def problems(z, axes):
    """Each problem as a vector, the axes in the order that they are named in, by indices written out."""
    axes = tuple(range(z.ndim)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    axes = [a % z.ndim for a in axes]
    batch = [a for a in range(z.ndim) if a not in axes]
    for outer in itertools.product(*(range(z.shape[a]) for a in batch)):
        vector = []
        for inner in itertools.product(*(range(z.shape[a]) for a in axes)):
            place = dict(zip(batch, outer, strict=True)) | dict(zip(axes, inner, strict=True))
            vector.append(z[tuple(place[a] for a in range(z.ndim))])
        yield outer, vector


@pytest.mark.parametrize("axis", AXES)
def test_every_problem_is_a_row_and_comes_back_to_its_place(axis):
    z = np.arange(24.0).reshape(SHAPE)
    rows, t, weights, restore = lay_out(z, 0.5, None, axis)
    for place, vector in problems(z, axis):
        assert rows[place].tolist() == vector
    assert (t, weights) == (0.5, None)
    np.testing.assert_array_equal(restore(rows), z)
    np.testing.assert_array_equal(restore(10 * rows), 10 * z)


@pytest.mark.parametrize(("axis", "batch"), [(0, (3, 4)), (1, (2, 4)), (-1, (2, 3)), ((0, 2), (3,)), (None, ())])
def test_a_threshold_for_each_problem_has_a_last_axis_of_length_one(axis, batch):
    t = np.random.default_rng(0).random(batch)
    laid_out = lay_out(np.zeros(SHAPE), t, None, axis)[1]
    np.testing.assert_array_equal(laid_out, t[..., None] if batch else t)
    axes = tuple(range(3)) if axis is None else axis
    kept = lay_out(np.zeros(SHAPE), np.expand_dims(t, axes), None, axis)[1]
    np.testing.assert_array_equal(np.ravel(kept), np.ravel(t))


def test_thresholds_that_fit_no_problem_are_named():
    with pytest.raises(ValueError, match=r"t must be a number or of shape \(2, 4\), one per problem; got shape"):
        thresholds(np.ones(3), np.zeros(1), SHAPE, (1,))


@pytest.mark.parametrize("axis", [3, -4, (0, 0), (0, -3), 1.0, (0, "1")])
def test_axes_that_are_none_of_z_are_named(axis):
    with pytest.raises(ValueError, match="does not name different axes of z of shape"):
        lay_out(np.zeros(SHAPE), 1.0, None, axis)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_norms_neither_overflow_nor_underflow(dtype):
    top = {np.float32: 1e38, np.float64: 1e308}[dtype]
    rows = np.array([[0.3, 0.4], [0.6 * top, 0.8 * top], [3 / top, 4 / top], [0, 0]], dtype=dtype)
    expected = [[np.longdouble(a) * np.hypot(1, np.longdouble(b) / a)] if a else [0] for a, b in rows]
    np.testing.assert_allclose(row_norms(rows), np.array(expected, dtype=dtype), rtol=4 * np.finfo(dtype).eps)


LABELS = {
    "of one size": [0, 1, 0, 1, 2, 2],
    "of many sizes": [3, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 1, 2],
    "single entries": [2, 0, 1],
    "one group": [0] * 5,
    "random": np.random.default_rng(1).permutation(np.concatenate([np.arange(30), np.arange(200) ** 2 // 1400])),
}


@pytest.mark.parametrize("name", LABELS)
def test_group_norms_are_those_of_the_entries_with_each_label(name):
    labels = np.asarray(LABELS[name])
    z = np.random.default_rng(0).standard_normal(labels.size)
    groups = as_groups(labels)
    assert groups.count == len(set(labels.tolist()))
    expected = [np.linalg.norm(z[labels == k]) for k in range(groups.count)]
    np.testing.assert_allclose(groups.norms(z), expected, rtol=1e-14)
    values = np.random.default_rng(2).standard_normal(groups.count)
    np.testing.assert_array_equal(groups.spread(values), [values[k] for k in labels])


@pytest.mark.parametrize("name", LABELS)
def test_rebuilt_groups_have_the_new_norms_and_the_old_directions(name):
    labels = np.asarray(LABELS[name])
    z = np.random.default_rng(0).standard_normal(labels.size)
    z[labels == 0] = 0
    groups = as_groups(labels)
    norms, new = groups.norms(z), np.arange(1.0, groups.count + 1)
    x = groups.rebuild(z, norms, new)
    for k in range(1, groups.count):
        here = labels == k
        np.testing.assert_allclose(x[here], new[k] * z[here] / np.linalg.norm(z[here]), rtol=1e-13)
    grown = x[labels == 0]  # a group without a direction grows along its first entry
    assert grown[0] == new[0]
    assert not grown[1:].any()

"""Rows and groups, against loops over every problem."""

import numpy as np
import pytest

from ell12.prox import moreau_l12, prox_l12
from ell12.prox.batching import as_groups, row_norms

SHAPE = (2, 3, 4)


def problems(z, axes):
    """Each problem as a vector, the axes in the order that they are named in."""
    axes = tuple(range(z.ndim)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    last = np.moveaxis(z, axes, range(-len(axes), 0)) if axes else z[..., None]
    for index in np.ndindex(last.shape[: z.ndim - len(axes)]):
        yield index, last[index].ravel()


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0,), (0, 2), (2, 0), (-1, 1), (1, 2, 0), ()])
def test_every_problem_of_a_batch_is_solved_alone(axis):
    z = 2 * np.random.default_rng(0).standard_normal(SHAPE)
    z[:, :, 1] = z[0, 0, 0]  # ties, so that the order of the axes counts
    axes = tuple(range(3)) if axis is None else axis
    t = np.random.default_rng(1).uniform(0.2, 3, z.sum(axis=axes).shape)
    for given in (t, t if axis == () else np.expand_dims(t, axes)):
        x, value = prox_l12(z, given, l2_weight=0.8, axis=axis), moreau_l12(z, given, l2_weight=0.8, axis=axis)
        assert value.shape == t.shape
        for (index, vector), (_, found) in zip(problems(z, axis), problems(x, axis), strict=True):
            np.testing.assert_allclose(found, prox_l12(vector, t[index], l2_weight=0.8), rtol=1e-13)
            assert value[index] == pytest.approx(float(moreau_l12(vector, t[index], l2_weight=0.8)), rel=1e-13)


def test_thresholds_and_axes_that_fit_no_problem_are_named():
    with pytest.raises(ValueError, match=r"t must be a number or of shape \(2, 4\), one per problem; got shape"):
        prox_l12(np.zeros(SHAPE), np.ones(3), axis=1)
    for axis in (3, -4, (0, 0), (0, -3), 1.0, (0, "1")):
        with pytest.raises((ValueError, TypeError), match="axis"):
            prox_l12(np.zeros(SHAPE), 1.0, axis=axis)


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

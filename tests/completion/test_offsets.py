"""Means and biases of known entries, against loops over rows and columns and a linear system."""

import numpy as np
import pytest

from ell12 import Observed
from ell12.completion import Offsets
from ell12.completion.offsets import SHRINKAGE, fit_offsets


def ratings(seed=0, m=9, n=7):
    random = np.random.default_rng(seed)
    X = 3 + random.standard_normal((m, 1)) + random.standard_normal(n) + 0.3 * random.standard_normal((m, n))
    known = random.random((m, n)) < 0.6
    known[:, 3] = False  # a column that nobody has seen
    return X, known, Observed.from_mask(X, known)


def test_means_are_those_of_the_known_entries():
    X, known, observed = ratings()
    offsets = fit_offsets(observed, "mean")
    assert (offsets.mean, offsets.rows, offsets.columns) == (pytest.approx(X[known].mean()), None, None)
    assert fit_offsets(observed, None).mean == 0
    added = fit_offsets(observed, "columns").add_to(np.zeros(X.shape))
    for j in range(7):
        expected = X[known[:, j], j].mean() if known[:, j].any() else X[known].mean()
        np.testing.assert_allclose(added[:, j], expected, rtol=1e-12)


def test_biases_solve_a_ridge_regression_on_rows_and_columns():
    X, known, observed = ratings()
    offsets = fit_offsets(observed, "biases")
    rows, columns = np.nonzero(known)
    design = np.hstack([np.eye(9)[rows], np.eye(7)[columns]])
    target = X[known] - X[known].mean()
    expected = np.linalg.solve(design.T @ design + SHRINKAGE * np.eye(16), design.T @ target)
    np.testing.assert_allclose(offsets.rows, expected[:9], atol=1e-4)
    np.testing.assert_allclose(offsets.columns, expected[9:], atol=1e-4)
    assert offsets.columns[3] == 0


@pytest.mark.parametrize("center", [None, "mean", "columns", "biases"])
def test_what_is_taken_off_is_what_is_added(center):
    X, known, observed = ratings()
    offsets = fit_offsets(observed, center)
    left = offsets.subtracted_from(observed)
    matrix = np.zeros(X.shape)
    matrix[left.rows, left.columns] = left.values
    np.testing.assert_allclose(offsets.add_to(matrix)[known], X[known], rtol=1e-12)
    pairs = (np.array([0, 8]), np.array([6, 3]))
    np.testing.assert_allclose(offsets.entries(*pairs) + np.zeros(2), offsets.add_to(np.zeros(X.shape))[pairs])


def test_other_rows_have_biases_of_their_own_next_to_the_columns():
    _, _, observed = ratings()
    offsets = fit_offsets(observed, "biases")
    X, known, others = ratings(1, m=4)
    found = offsets.for_rows(others)
    assert found.mean == offsets.mean
    np.testing.assert_array_equal(found.columns, offsets.columns)
    for i in range(4):
        left = (X - offsets.mean - offsets.columns)[i, known[i]]
        assert found.rows[i] == pytest.approx(left.sum() / (left.size + SHRINKAGE), rel=1e-12)
    plain = Offsets(2.0)
    assert plain.for_rows(others) is plain

"""Columns less their means, implicitly, against a copy; and Gram matrices with weights."""

import numpy as np
import pytest
import scipy.sparse

from ell12.operators import has_columns, select_columns
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.operators.gram import weighted_gram


def matrix(seed=0, m=30, n=20):
    random = np.random.default_rng(seed)
    return np.where(random.random((m, n)) < 0.5, random.standard_normal((m, n)), 0), random.uniform(0, 2, m)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_gram_matrices_of_centred_columns(form, constant):
    A, weight = matrix()
    means = np.linspace(-1, 1, 20)
    centred = CenteredColumns(form(A), means, constant)
    copy = np.column_stack([A - means, np.full(30, constant)]) if constant else A - means
    columns = np.array([2, 7, 20]) if constant else np.array([2, 7])
    some = select_columns(centred, columns)
    assert has_columns(centred)
    x = np.arange(1.0, len(columns) + 1)
    np.testing.assert_allclose(some @ x, copy[:, columns] @ x, atol=1e-13)
    expected = copy.T @ (weight[:, None] * copy)
    np.testing.assert_allclose(weighted_gram(some, weight), expected[np.ix_(columns, columns)], atol=1e-12)
    cross = weighted_gram(select_columns(centred, np.array([0, 3])), weight, some)
    np.testing.assert_allclose(cross, expected[np.ix_([0, 3], columns)], atol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.25])
def test_columns_that_are_their_means_are_exactly_zero(constant):
    A, weight = matrix()
    A[:, [3, 7]] = [0.1, 1e9]
    means, empty = A.mean(axis=0), np.isin(np.arange(20), [3, 7])
    centred = CenteredColumns(scipy.sparse.csr_array(A), means, constant, empty)
    copy = np.where(empty, 0, A - means)
    copy = np.column_stack([copy, np.full(30, constant)]) if constant else copy
    x, y = np.arange(1.0, copy.shape[1] + 1), np.linspace(-1, 2, 30)
    for product, expected in (
        (centred @ x, copy @ x),
        (centred.T @ y, copy.T @ y),
        (centred[5:9] @ x, copy[5:9] @ x),
        (column_squares(centred, weight), weight @ copy**2),
        (weighted_gram(centred, weight), copy.T @ (weight[:, None] * copy)),
        (select_columns(centred, np.array([3, 4])) @ x[:2], copy[:, 3:5] @ x[:2]),
    ):
        np.testing.assert_allclose(product, expected, atol=1e-11)
    assert not (centred.T @ y)[[3, 7]].any()
    assert not weighted_gram(centred, weight)[[3, 7]].any()


@pytest.mark.parametrize("weights", ["equal", "positive", "of both signs"])
def test_dense_gram_matrices(weights):
    A, weight = matrix()
    weight = {"equal": np.full(30, 0.7), "positive": weight, "of both signs": weight - 1}[weights]
    np.testing.assert_allclose(weighted_gram(A, weight), A.T @ np.diag(weight) @ A, atol=1e-13)
    np.testing.assert_allclose(weighted_gram(A, weight, A[:, :3]), A.T @ np.diag(weight) @ A[:, :3], atol=1e-13)

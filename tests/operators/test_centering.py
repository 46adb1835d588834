"""Columns less their means, implicitly, against a centred copy."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from ell12 import SquaredLoss
from ell12.operators import has_columns, select_columns
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.operators.gram import column_sums, weighted_gram


def matrix(seed=0, m=30, n=20):
    random = np.random.default_rng(seed)
    return np.where(random.random((m, n)) < 0.5, random.standard_normal((m, n)), 0), random.uniform(0, 2, m)


def centred_copy(A, means, constant, empty=False):
    copy = np.where(empty, 0, A - means)
    return np.column_stack([copy, np.full(len(A), constant)]) if constant else copy


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.25])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("has_empty", [False, True])
def test_centred_columns_agree_with_a_centred_copy(form, constant, has_empty):
    A, weight = matrix()
    means, empty = np.linspace(-1, 1, 20), None
    if has_empty:  # columns that are their means: exactly zero, where products would leave rounding
        A[:, [3, 7]] = [0.1, 1e9]
        means, empty = A.mean(axis=0), np.isin(np.arange(20), [3, 7])
    centred = CenteredColumns(form(A), means, constant, empty)
    copy = centred_copy(A, means, constant, has_empty and empty)
    assert has_columns(centred)
    x, y = np.random.default_rng(0).standard_normal(copy.shape[1]), np.linspace(-1, 2, 30)
    gram, some = copy.T @ (weight[:, None] * copy), np.array([2, 7, 20] if constant else [2, 7])
    few, others = select_columns(centred, some), select_columns(centred, np.array([0, 3]))
    for product, expected in (
        (centred @ x, copy @ x),
        (centred.T @ y, copy.T @ y),
        (centred.H @ y, copy.T @ y),
        (centred[5:9] @ x, copy[5:9] @ x),
        (column_squares(centred, weight), weight @ copy**2),
        (weighted_gram(centred, weight), gram),
        (few @ x[: some.size], copy[:, some] @ x[: some.size]),
        (weighted_gram(few, weight), gram[np.ix_(some, some)]),
        (weighted_gram(others, weight, few), gram[np.ix_([0, 3], some)]),
    ):
        np.testing.assert_allclose(product, expected, atol=1e-11)
    if has_empty:
        assert not (centred.T @ y)[[3, 7]].any()
        assert not weighted_gram(centred, weight)[[3, 7]].any()
    assert SquaredLoss(centred, y).lipschitz() == pytest.approx(SquaredLoss(copy, y).lipschitz(), rel=2e-2)


@pytest.mark.parametrize("constant", [0.0, 0.25])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array, aslinearoperator])
def test_several_vectors_are_multiplied_as_by_a_copy_whatever_is_centred(form, constant):
    A, _ = matrix()
    copy, random = centred_copy(A, A.mean(axis=0), constant), np.random.default_rng(1)
    centred = CenteredColumns(form(A), A.mean(axis=0), constant)
    for columns in ((), (3,)):
        x, y = random.standard_normal((copy.shape[1], *columns)), random.standard_normal((30, *columns))
        np.testing.assert_allclose(centred @ x, copy @ x, atol=1e-12)
        np.testing.assert_allclose(centred.T @ y, copy.T @ y, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_sums_over_columns_are_the_same_in_blocks_and_copy_no_more_than_a_block(form, dtype, monkeypatch):
    A, weight = matrix(m=400, n=90)
    A[:, 7] = 0
    sparse = form(A.astype(dtype))
    A, weight = A.astype(dtype).astype(np.float64), weight.astype(dtype)
    expected = weight.astype(np.float64) @ A, weight.astype(np.float64) @ A**2
    for block in (1, 250, 2**20):
        monkeypatch.setattr("ell12.operators.gram.PIECE", block)
        np.testing.assert_allclose(column_sums(sparse, weight), expected[0], rtol=1e-12, atol=1e-12)
        squares = column_squares(sparse, weight)
        assert squares.dtype == dtype
        np.testing.assert_allclose(squares, expected[1], rtol=1e-12 if dtype == np.float64 else 1e-6)
    monkeypatch.setattr("ell12.operators.gram.PIECE", 1000)
    tracemalloc.start()
    column_squares(sparse, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * (sparse.data.nbytes + sparse.indices.nbytes)

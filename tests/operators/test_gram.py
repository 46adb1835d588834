"""Gram matrices with weights, systems with them, and the columns that a run works with, against dense copies."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from ell12.operators.gram import ColumnStore, ridge_solver, weighted_gram

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
    "coo matrix": scipy.sparse.coo_matrix,
    "operator": aslinearoperator,
}


def matrix(m, n, seed=0):
    random = np.random.default_rng(seed)
    return np.where(random.random((m, n)) < 0.5, random.standard_normal((m, n)), 0), random.uniform(0.1, 2, m)


@pytest.mark.parametrize("weights", ["equal", "positive", "of both signs", "zero"])
@pytest.mark.parametrize("form", FORMS)
def test_a_weighted_gram_is_the_sum_of_outer_products_of_rows(form, weights):
    A, weight = matrix(12, 7)
    weight = {"equal": 0 * weight + 0.7, "positive": weight, "of both signs": weight - 1, "zero": 0 * weight}[
        weights
    ]
    gram = weighted_gram(FORMS[form](A), weight)
    assert isinstance(gram, np.ndarray)
    np.testing.assert_allclose(gram, sum(w * np.outer(a, a) for w, a in zip(weight, A, strict=True)), atol=1e-13)
    B, _ = matrix(12, 3, seed=1)
    cross = weighted_gram(FORMS[form](A), weight, FORMS[form](B))
    expected = sum(w * np.outer(a, b) for w, a, b in zip(weight, A, B, strict=True))
    np.testing.assert_allclose(cross, expected, atol=1e-13)


def test_complex_matrices_are_conjugated():
    random = np.random.default_rng(0)
    for shape in ((9, 4), (4, 9)):
        A = random.standard_normal(shape) + 1j * random.standard_normal(shape)
        weight, right = random.uniform(0.5, 2, shape[0]), random.standard_normal(shape[1]) + 0j
        gram = A.conj().T @ np.diag(weight) @ A
        np.testing.assert_allclose(weighted_gram(A, weight), gram, atol=1e-12)
        expected = np.linalg.solve(gram + 0.3 * np.eye(shape[1]), right)
        np.testing.assert_allclose(ridge_solver(A, weight, 0.3)(right), expected, atol=1e-11)


def tangled(A, form, index):
    """A sparse matrix with indices of this kind, not in order, and each entry given as two halves."""
    whole = scipy.sparse.coo_array(A)
    order = np.random.default_rng(2).permutation(2 * whole.nnz)
    row, column, value = (np.tile(part, 2)[order] for part in (*whole.coords, whole.data / 2))
    major, minor = (row, column) if form == "csr" else (column, row)
    order = np.argsort(major, kind="stable")
    size = A.shape[0] if form == "csr" else A.shape[1]
    ends = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=size))]).astype(index)
    kind = scipy.sparse.csr_array if form == "csr" else scipy.sparse.csc_array
    return kind((value[order], minor[order].astype(index), ends), shape=A.shape)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_the_compiled_gram_of_tangled_sparse_columns_is_that_of_dense_ones(form, index, monkeypatch):
    monkeypatch.setattr("ell12.operators.gram.SMALL", 0)
    (A, weight), (B, _) = matrix(40, 9), matrix(40, 5, seed=1)
    one, other = tangled(A, form, index), tangled(B, form, index)
    assert one.indices.dtype == index
    np.testing.assert_allclose(weighted_gram(one, weight - 1), A.T @ np.diag(weight - 1) @ A, atol=1e-12)
    np.testing.assert_allclose(weighted_gram(one, weight, other), A.T @ np.diag(weight) @ B, atol=1e-12)
    if (form, index) != ("csr", np.int64):  # compiling for every kind would take long
        return
    single = weighted_gram(one.astype(np.float32), weight.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, A.T @ np.diag(weight) @ A, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, complex])
@pytest.mark.parametrize("form", ["C", "F", "csr", "csc"])
def test_a_store_has_the_products_of_columns_that_come_and_go(form, dtype):
    random, size = np.random.default_rng(0), {"rtol": 0, "atol": 1e-4 if dtype == np.float32 else 1e-12}
    A = np.where(random.random((30, 90)) < 0.5, random.standard_normal((30, 90)), 0).astype(dtype)
    weight, store = random.uniform(0.1, 2, 30).astype(A.real.dtype), ColumnStore(FORMS[form](A))
    columns = np.array([3, 5])
    for k in range(150):  # columns come, go and change their order; now and then another set, another curvature
        columns = np.unique(np.append(columns[random.random(columns.size) < 0.9], random.integers(90, size=2)))
        columns = random.permutation(90)[: random.integers(60)] if k % 30 == 29 else random.permutation(columns)
        weight = [weight, weight.copy(), weight + 1][k % 20 - 17] if k % 20 > 17 else weight
        if k % 3 == 0 and columns.size:
            expected = A[:, columns].conj().T @ (weight[:, None] * A[:, columns])
            np.testing.assert_allclose(store.gram(weight, columns), expected, **size)
        x = np.zeros(90, dtype)
        x[columns] = random.standard_normal(columns.size)
        for product in (store.product(x), store.product_within(x[columns], columns)):
            assert product.dtype == dtype
            np.testing.assert_allclose(product, A @ x, **size)

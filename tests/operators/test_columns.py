"""The columns that a run works with, against plain products, whatever came before."""

import numpy as np
import pytest
import scipy.sparse

from ell12.operators.gram import ColumnStore


def matrix(seed=0, m=30, n=20):
    random = np.random.default_rng(seed)
    return np.where(random.random((m, n)) < 0.5, random.standard_normal((m, n)), 0), random.uniform(0, 2, m)


FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
}


@pytest.mark.parametrize("form", FORMS)
def test_sets_that_change_slowly(form):
    A, weight = matrix()
    store = ColumnStore(FORMS[form](A))
    random = np.random.default_rng(1)
    for columns in map(np.array, ([3, 5], [5, 3, 7], [0, 5, 19], [3], range(20))):
        x = random.standard_normal(columns.size)
        expected = A[:, columns].T @ (weight[:, None] * A[:, columns])
        np.testing.assert_allclose(store.gram(weight, columns), expected, atol=1e-13)
        np.testing.assert_allclose(store.product_within(x, columns), A[:, columns] @ x, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_a_gram_matrix_follows_the_curvature(form):
    A, weight = matrix()
    store = ColumnStore(FORMS[form](A))
    columns = np.array([1, 4, 6])
    for curvature in (weight, weight.copy(), weight + 1, weight):
        expected = A[:, columns].T @ (curvature[:, None] * A[:, columns])
        np.testing.assert_allclose(store.gram(curvature, columns), expected, atol=1e-13)


def sparse_vector(random, size, count):
    x = np.zeros(size)
    x[random.permutation(size)[:count]] = random.standard_normal(count)
    return x


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, complex])
def test_products_are_those_of_the_matrix(order, dtype):
    random = np.random.default_rng(0)
    A = np.asarray(random.standard_normal((30, 90)), dtype=dtype, order=order)
    weight = np.ones(30, dtype=A.real.dtype)
    store = ColumnStore(A)
    x = sparse_vector(random, 90, 20).astype(dtype)
    for k in range(200):  # drop, change and add entries, now and then jump, now and then ask for a Gram matrix
        x = x.copy()
        x[random.integers(90)] = random.choice([0.0, 1.5])
        if k % 50 == 0:
            x = sparse_vector(random, 90, int(random.integers(90))).astype(dtype)
        if k % 20 == 7:
            columns = np.sort(random.permutation(90)[: 10 + k // 20])
            expected = A[:, columns].conj().T @ A[:, columns]
            np.testing.assert_allclose(store.gram(weight, columns), expected, rtol=0, atol=1e-4)
        product = store.product(x)
        assert product.dtype == dtype
        np.testing.assert_allclose(product, A @ x, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)

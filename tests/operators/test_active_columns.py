"""Products that keep the columns in use: always those of the matrix, whatever came before."""

import numpy as np
import pytest

from ell12.operators.active_columns import PATIENCE, ActiveColumns


def sparse_vector(random, size, count):
    x = np.zeros(size)
    x[random.permutation(size)[:count]] = random.standard_normal(count)
    return x


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, complex])
def test_products_are_those_of_the_matrix(order, dtype):
    random = np.random.default_rng(0)
    A = np.asarray(random.standard_normal((30, 90)), dtype=dtype, order=order)
    active = ActiveColumns(A)
    x = sparse_vector(random, 90, 20).astype(dtype)
    for k in range(200):  # drop, change and add entries, now and then jump
        x = x.copy()
        x[random.integers(90)] = random.choice([0.0, 1.5])
        if k % 50 == 0:
            x = sparse_vector(random, 90, int(random.integers(90))).astype(dtype)
        product = active @ x
        assert product.dtype == dtype
        np.testing.assert_allclose(product, A @ x, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)


class Spy(np.ndarray):
    """A matrix that counts the products with all of it."""

    products = 0

    def __matmul__(self, x):
        Spy.products += self.shape == (30, 90)
        return np.asarray(self) @ x


def test_the_matrix_is_read_only_when_many_new_columns_come():
    random = np.random.default_rng(1)
    Spy.products = 0
    active = ActiveColumns(random.standard_normal((30, 90)).view(Spy))
    x = sparse_vector(random, 90, 20)
    used, unused = np.flatnonzero(x), np.flatnonzero(x == 0)
    for _ in range(50):
        active @ (2.0 * x)
        smaller, larger = x.copy(), x.copy()
        smaller[used[0]] = 0
        active @ smaller
        larger[unused[0]] = 1.0
        active @ larger
    assert Spy.products == 0
    other = x.copy()
    other[unused[5:7]] = 1.0
    for _ in range(PATIENCE + 10):
        active @ other
    assert 0 < Spy.products <= PATIENCE


def test_dense_and_zero_vectors():
    A = np.random.default_rng(2).standard_normal((4, 9))
    active = ActiveColumns(A)
    np.testing.assert_array_equal(active @ np.zeros(9), np.zeros(4))
    np.testing.assert_array_equal(active @ np.ones(9), A @ np.ones(9))

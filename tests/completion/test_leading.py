"""Leading singular vectors of sparse plus low-rank matrices, against the dense matrix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
from ell12.completion.singular_vectors import leading_svd, random_block


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def example(rng, m=30, n=20, dtype=np.float64):
    """Z and its dense twin; both parts matter for the leading singular values."""
    sparse = np.where(rng.random((m, n)) < 0.3, 4 * rng.standard_normal((m, n)), 0.0).astype(dtype)
    terms = [
        (factor, LowRank.from_factors(*(rng.standard_normal((size, 2)).astype(dtype) for size in (m, n))))
        for factor in (1.5, -0.5)
    ]
    dense = sparse + sum(factor * x.to_array() for factor, x in terms)
    return SparsePlusLowRank(scipy.sparse.csr_array(sparse), terms), dense


@dataclass
class WithoutSparseBack:
    """The published mistake: the transpose forgets the sparse part."""

    whole: Any
    shape: tuple

    def __matmul__(self, block):
        return self.whole @ block

    @property
    def T(self):
        transposed = self.whole.T
        return SparsePlusLowRank(0 * transposed.sparse, transposed.terms)


def test_products_are_those_of_the_dense_matrix(rng):
    Z, dense = example(rng)
    B, C = rng.standard_normal((20, 3)), rng.standard_normal((30, 2))
    np.testing.assert_allclose(Z @ B, dense @ B, atol=1e-12)
    np.testing.assert_allclose(Z.T @ C, dense.T @ C, atol=1e-12)
    np.testing.assert_allclose(Z.T.T @ B, dense @ B, atol=1e-12)
    assert Z.shape == (30, 20)
    assert Z.T.shape == (20, 30)


def test_leading_svd_finds_the_leading_singular_values(rng):
    Z, dense = example(rng)
    exact = np.linalg.svd(dense)[1]
    U, s, V = leading_svd(Z, random_block(rng, 20, 8, float), passes=200)
    np.testing.assert_allclose(s[:4], exact[:4], rtol=1e-6)
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(V.T @ V, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(dense @ V[:, :2], U[:, :2] * s[:2], atol=1e-4)


def test_a_block_as_wide_as_the_matrix_is_exact_without_passes(rng):
    Z, dense = example(rng, m=9, n=6)
    s = leading_svd(Z, random_block(rng, 6, 6, float), passes=0)[1]
    np.testing.assert_allclose(s, np.linalg.svd(dense)[1], rtol=1e-10)
    assert leading_svd(Z.T, random_block(rng, 9, 9, float), passes=0)[1].shape == (6,)


def test_a_warm_start_needs_no_pass(rng):
    Z, dense = example(rng)
    V = np.linalg.svd(dense)[2][:3].T
    np.testing.assert_allclose(leading_svd(Z, V, passes=0)[1], np.linalg.svd(dense)[1][:3], rtol=1e-10)


def test_one_column_finds_the_leading_singular_triplet(rng):
    _, dense = example(rng)
    U, s, V = leading_svd(scipy.sparse.csr_array(dense), random_block(rng, 20, 1, float), passes=2000, tol=1e-14)
    assert s[0] == pytest.approx(np.linalg.norm(dense, 2), rel=1e-10)
    assert U[:, 0] @ dense @ V[:, 0] == pytest.approx(s[0], rel=1e-10)
    assert np.linalg.norm(U) == pytest.approx(1)
    assert np.linalg.norm(V) == pytest.approx(1)


def test_the_leading_singular_value_of_zero_is_zero():
    U, s, V = leading_svd(scipy.sparse.csr_array((4, 3)), np.ones((3, 1)), passes=3)
    assert s[0] == 0
    assert U.shape == (4, 1)
    assert V.shape == (3, 1)

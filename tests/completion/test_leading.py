"""Leading singular vectors of sparse plus low-rank matrices, against the dense matrix."""

import numpy as np
import pytest
import scipy.sparse

from ell12.completion.low_rank import LowRank
from ell12.completion.matrix_apg import SparsePlusLowRank
from ell12.completion.singular_vectors import WarmBlock, leading_svd, random_block


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def example(rng, m=30, n=20):
    """Z and the dense matrix; both parts matter for the leading singular values."""
    sparse = np.where(rng.random((m, n)) < 0.3, 4 * rng.standard_normal((m, n)), 0.0)
    factors = [[rng.standard_normal((size, 2)) for size in (m, n)] for _ in range(2)]
    terms = [(c, LowRank.from_factors(W, H)) for c, (W, H) in zip((1.5, -0.5), factors, strict=True)]
    dense = sparse + sum(c * x.to_array() for c, x in terms)
    return SparsePlusLowRank(scipy.sparse.csr_array(sparse), terms), dense


def test_products_are_those_of_the_dense_matrix(rng):
    Z, dense = example(rng)
    B, C = rng.standard_normal((20, 3)), rng.standard_normal((30, 2))
    np.testing.assert_allclose(Z @ B, dense @ B, atol=1e-12)
    np.testing.assert_allclose(Z.T @ C, dense.T @ C, atol=1e-12)  # the sparse part belongs in it too
    np.testing.assert_allclose(Z.T.T @ B, dense @ B, atol=1e-12)
    assert (Z.shape, Z.T.shape) == ((30, 20), (20, 30))


def test_leading_svd_finds_the_leading_singular_triplets(rng):
    Z, dense = example(rng)
    exact = np.linalg.svd(dense)
    U, s, V = leading_svd(Z, random_block(rng, 20, 8, float), passes=200)
    np.testing.assert_allclose(s[:4], exact[1][:4], rtol=1e-6)
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(V.T @ V, np.eye(8), atol=1e-12)
    np.testing.assert_allclose(dense @ V[:, :2], U[:, :2] * s[:2], atol=1e-4)
    warm = leading_svd(Z, exact[2][:3].T, passes=0)[1]
    np.testing.assert_allclose(warm, exact[1][:3], rtol=1e-10)
    u, top, v = leading_svd(scipy.sparse.csr_array(dense), random_block(rng, 20, 1, float), passes=2000, tol=1e-14)
    assert u[:, 0] @ dense @ v[:, 0] == pytest.approx(exact[1][0], rel=1e-10)
    assert top[0] == pytest.approx(exact[1][0], rel=1e-10)


def test_a_block_as_wide_as_the_matrix_is_exact_without_passes(rng):
    Z, dense = example(rng, m=9, n=6)
    s = leading_svd(Z, random_block(rng, 6, 6, float), passes=0)[1]
    np.testing.assert_allclose(s, np.linalg.svd(dense)[1], rtol=1e-10)
    assert leading_svd(Z.T, random_block(rng, 9, 9, float), passes=0)[1].shape == (6,)
    U, s, V = leading_svd(scipy.sparse.csr_array((4, 3)), np.ones((3, 1)), passes=3)
    assert (s[0], U.shape, V.shape) == (0, (4, 1), (3, 1))


def test_a_warm_block_converges_to_the_leading_triplets(rng):
    Z = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 45)) + 0.3 * rng.standard_normal((60, 45))
    block = WarmBlock(LowRank.zeros(Z.shape))
    for _ in range(60):
        U, s, V = block(Z)
        block.keep(5)
    np.testing.assert_allclose(s[:5], np.linalg.svd(Z)[1][:5], rtol=1e-6)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-8)
    np.testing.assert_allclose(Z @ V[:, 0], s[0] * U[:, 0], atol=1e-6)

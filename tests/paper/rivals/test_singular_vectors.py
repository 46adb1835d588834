"""What the rivals make of singular vectors: one triplet by alternation, merged bases."""

import numpy as np
import pytest
import scipy.sparse

from ell12.completion.singular_vectors import orthonormal
from ell12_paper.rivals.impute import merged_basis
from ell12_paper.rivals.rank_one import leading_pair


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_leading_pair_is_the_leading_singular_triplet(rng):
    dense = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 20)) + 0.1 * rng.standard_normal((30, 20))
    sparse = scipy.sparse.csr_array(dense)
    u, s, v = leading_pair(sparse, rng.standard_normal(30), tol=1e-14, max_iter=2000)
    assert s == pytest.approx(np.linalg.norm(dense, 2), rel=1e-10)
    assert u @ dense @ v == pytest.approx(s, rel=1e-10)
    assert np.linalg.norm(u) == pytest.approx(1)
    assert np.linalg.norm(v) == pytest.approx(1)


def test_leading_pair_of_zero_is_zero():
    u, s, v = leading_pair(scipy.sparse.csr_array((4, 3)), np.ones(4))
    assert s == 0
    assert u.shape == (4,)
    assert np.array_equal(v, np.zeros(3))


def test_merged_basis_takes_what_is_new_only(rng):
    Q = orthonormal(rng.standard_normal((12, 5)))
    more = np.stack([Q[:, 0], Q[:, 4], (Q[:, 1] + Q[:, 2]) / np.sqrt(2)], axis=1)
    merged = merged_basis(Q[:, :3], more)
    assert merged.shape == (12, 4)
    np.testing.assert_allclose(merged.T @ merged, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(merged @ (merged.T @ Q[:, 4]), Q[:, 4], atol=1e-12)


def test_merged_basis_with_an_empty_one(rng):
    Q = orthonormal(rng.standard_normal((5, 2)))
    assert merged_basis(Q, Q[:, :0]) is Q
    assert merged_basis(Q[:, :0], Q) is Q
    whole = orthonormal(rng.standard_normal((3, 3)))
    assert merged_basis(whole, rng.standard_normal((3, 2)), tol=0.0).shape == (3, 3)

"""Tangent vectors and the retraction of matrices of one rank, against dense projections."""

import numpy as np
import pytest

from ell12.completion.low_rank import LowRank
from ell12_paper.rivals.arss_m3f import Tangent


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def matrix(rng, m=12, n=9, r=3):
    return LowRank.from_factors(rng.standard_normal((m, r)), rng.standard_normal((n, r)))


def dense(tangent):
    left, right = tangent.factors()
    return left @ right.T


def projected(G, x):
    """The textbook projection, dense."""
    PU, PV = x.U @ x.U.T, x.V @ x.V.T
    return PU @ G + G @ PV - PU @ G @ PV


def test_projection_and_transport_are_the_textbook_ones(rng):
    x, other, G = matrix(rng), matrix(rng), rng.standard_normal((12, 9))
    tangent = Tangent.project(G, x)
    np.testing.assert_allclose(dense(tangent), projected(G, x), atol=1e-12)
    np.testing.assert_allclose(dense(tangent.transport(other)), projected(projected(G, x), other), atol=1e-12)


def test_tangent_vectors_have_the_geometry_of_their_matrices(rng):
    x = matrix(rng)
    a, b = (Tangent.project(rng.standard_normal((12, 9)), x) for _ in range(2))
    assert a.inner(b) == pytest.approx(np.vdot(dense(a), dense(b)))
    assert a.norm() == pytest.approx(np.linalg.norm(dense(a)))
    np.testing.assert_allclose(dense(a + -2.0 * b), dense(a) - 2 * dense(b), atol=1e-12)
    rows, columns = np.array([0, 3, 11]), np.array([8, 2, 0])
    np.testing.assert_allclose(a.entries(rows, columns), dense(a)[rows, columns], atol=1e-12)


def test_retraction_is_the_nearest_matrix_of_the_rank(rng):
    x = matrix(rng)
    tangent = Tangent.project(rng.standard_normal((12, 9)), x)
    U, s, Vt = np.linalg.svd(x.to_array() + 0.7 * dense(tangent))
    best = (U[:, :3] * s[:3]) @ Vt[:3]
    np.testing.assert_allclose(tangent.retract(0.7).to_array(), best, atol=1e-11)
    assert tangent.retract(0.7).rank == 3


@pytest.mark.parametrize("shape", [(4, 5, 4), (1, 6, 1), (6, 1, 1), (3, 3, 2)])
def test_a_rank_as_large_as_it_can_be(rng, shape):
    m, n, r = shape
    x, G = matrix(rng, m, n, r), rng.standard_normal((m, n))
    tangent = Tangent.project(G, x)
    np.testing.assert_allclose(dense(tangent), projected(G, x), atol=1e-12)
    moved = tangent.retract(0.5)
    assert moved.rank <= r
    np.testing.assert_allclose(moved.U.T @ moved.U, np.eye(moved.rank), atol=1e-12)

"""Penalties of singular values: against brute force, and on factors as on dense matrices."""

import numpy as np
import pytest
import scipy.sparse

import ell12
from ell12 import LowRank, SpectralL12
from ell12.penalties import NoPenalty, SpectralLogSum, TruncatedNuclear, spectral
from ell12.penalties.spectral import norm_beyond, spectral_norm

PENALTIES = [SpectralL12(0.8), SpectralL12(0.8, 0.3), SpectralLogSum(0.8, 0.5), TruncatedNuclear(0.8, 2)]


@pytest.fixture
def matrix():
    return np.random.default_rng(0).standard_normal((5, 4))


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_prox_beats_other_matrices(penalty, matrix):
    def cost(X):
        return 0.5 * np.sum((X - matrix) ** 2) + 0.7 * penalty.value(X)

    best = penalty.prox(matrix, 0.7)
    random = np.random.default_rng(1)
    U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
    others = [best + size * random.standard_normal(best.shape) for size in (1e-4, 1e-2, 1.0) for _ in range(200)]
    others += [(U * (s * random.uniform(0, 1.2, 4) * (random.random(4) < 0.7))) @ Vt for _ in range(2000)]
    assert cost(best) <= min(map(cost, [*others, np.zeros_like(matrix), matrix])) + 1e-12


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_factored_matrix_is_as_a_dense_one(penalty, matrix):
    x = LowRank.from_factors(matrix, np.eye(4))
    assert penalty.value(x) == pytest.approx(penalty.value(matrix))
    subtracted = penalty.subtracted_gradient(x)
    assert isinstance(subtracted, LowRank)
    np.testing.assert_allclose(subtracted.to_array(), penalty.subtracted_gradient(matrix), atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_slopes_are_derivatives(penalty):
    s = np.array([3.0, 1.5, 0.4])
    for i, slope in enumerate(penalty.slopes_of(s)):
        step = 1e-6 * np.eye(3)[i]
        change = penalty.value_of(s + step) - penalty.value_of(s - step)
        assert slope == pytest.approx(change / 2e-6, abs=1e-6)
    more = penalty.value_of(np.append(s, 1e-7)) - penalty.value_of(s)
    assert penalty.slope_at_zero(3) == pytest.approx(more / 1e-7, rel=1e-3)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_it_is_a_difference_of_convex_parts(penalty, matrix):
    x, D = LowRank.from_factors(matrix, np.eye(4)), np.random.default_rng(2).standard_normal((5, 4))

    def subtracted(X):
        return penalty.convex.value(X) - penalty.value(X)

    slope = np.sum(penalty.subtracted_gradient(x).to_array() * D)
    change = (subtracted(matrix + 1e-6 * D) - subtracted(matrix - 1e-6 * D)) / 2e-6
    assert slope == pytest.approx(change, rel=1e-5)


def test_truncation_is_free_up_to_its_rank():
    assert TruncatedNuclear(1.0, 3).slope_at_zero(2) == 0
    assert TruncatedNuclear(1.0, 3).value(np.diag([5.0, 4.0, 3.0])) == 0
    with pytest.raises(ValueError, match="rank"):
        TruncatedNuclear(1.0, -1)


def test_at_zero_the_violation_is_what_a_step_brings():
    G, zero = np.diag([3.0, 1.0]), LowRank.zeros((2, 2))
    assert SpectralL12(1.0).violation(zero, G) == pytest.approx(3.0)
    assert SpectralL12(4.0).violation(zero, G) == pytest.approx(3.0)  # rank one costs nothing
    assert SpectralL12(4.0, 0.0).violation(zero, G) == 0
    assert SpectralL12(1.0, 0.0).violation(zero, G) == pytest.approx(2.0)


@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
def test_the_norm_of_a_large_sparse_matrix(monkeypatch, shape):
    random = np.random.default_rng(0)
    G = scipy.sparse.random_array(shape, density=0.3, rng=random, format="csr")
    U = np.linalg.qr(random.standard_normal((shape[0], 3)))[0]
    V = np.linalg.qr(random.standard_normal((shape[1], 3)))[0]
    exact = norm_beyond(G, U, V), spectral_norm(G)
    assert exact[1] == pytest.approx(np.linalg.norm(G.toarray(), 2))
    monkeypatch.setattr(spectral, "DENSE_NORM", 0)
    assert norm_beyond(G, U, V) == pytest.approx(exact[0], rel=1e-3)
    assert spectral_norm(G) == pytest.approx(exact[1], rel=1e-3)
    assert spectral_norm(0 * G) == 0


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("shape", [(3, 2), (300, 200)])
@pytest.mark.parametrize("penalty", [SpectralL12(1.0), SpectralLogSum(1.0), NoPenalty()])
def test_the_violation_is_infinite_where_an_entry_is_not_finite(penalty, shape, bad):
    matrix, eye = np.random.default_rng(0).standard_normal(shape), np.eye(*shape)
    matrix[1, 0] = bad
    assert penalty.violation(eye, matrix) == np.inf
    assert penalty.violation(0 * eye, scipy.sparse.csr_array(matrix)) == np.inf
    if not isinstance(penalty, NoPenalty):  # which does not use x
        assert penalty.violation(matrix, eye) == np.inf


@pytest.mark.parametrize("solver", [None, ell12.FISTA()])
def test_no_penalty_leaves_a_vector_to_the_loss(solver):
    A = np.random.default_rng(0).standard_normal((20, 5))
    b = np.random.default_rng(1).standard_normal(20)
    result = ell12.minimize(ell12.SquaredLoss(A, b), ell12.penalties.NoPenalty(), solver=solver, tol=1e-8)
    assert result.converged
    np.testing.assert_allclose(result.x, np.linalg.lstsq(A, b)[0], atol=1e-7)

"""The squared Frobenius norm against its formula and its own first-order condition."""

import numpy as np
import pytest

from ell12 import minimize
from ell12.completion import CompletionLoss, FactoredAPG, LowRank, Observed
from ell12_paper.rivals import SquaredFrobenius


def test_value_and_prox():
    Z, penalty = np.random.default_rng(0).standard_normal((5, 4)), SquaredFrobenius(0.7)
    assert penalty.value(Z) == pytest.approx(0.35 * np.sum(Z**2))
    x = penalty.prox(Z, 2.0)
    np.testing.assert_allclose(x - Z + 2.0 * 0.7 * x, 0, atol=1e-12)
    factored = LowRank.from_factors(Z, np.eye(4))
    assert penalty.value(factored) == pytest.approx(penalty.value(Z))


def test_a_fully_known_matrix_is_shrunk_to_the_ridge_solution():
    Z = np.random.default_rng(1).standard_normal((6, 5))
    result = minimize(CompletionLoss(Z), SquaredFrobenius(0.5), solver=FactoredAPG(), tol=1e-8)
    assert result.converged
    np.testing.assert_allclose(result.x.to_array(), Z / 1.5, atol=1e-7)


def test_unknown_entries_become_zero():
    Z, known = np.ones((3, 3)), np.eye(3) > 0
    result = minimize(CompletionLoss(Observed.from_mask(Z, known)), SquaredFrobenius(1.0), solver=FactoredAPG())
    np.testing.assert_allclose(result.x.to_array(), 0.5 * np.eye(3), atol=1e-3)

"""The ridge of the l1-2 penalties: half the squared norm of what is penalised."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from tests.penalties.formulas import formula

from ell12 import L12, GroupL12


def search(cost, z, seed):
    """The lowest value that searches from many starts find, sparse ones among them."""
    random = np.random.default_rng(seed)
    starts = [z * (random.random(z.size) < 0.6) * random.uniform(0, 1.2, z.size) for _ in range(12)]
    return min(scipy_minimize(cost, start, method="Powell", options={"ftol": 1e-13}).fun for start in starts)


@pytest.mark.parametrize("l2_weight", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("groups", [None, [0, 1, 0, 2, 1]])
def test_the_prox_with_a_ridge_is_as_good_as_a_search(groups, l2_weight):
    for seed, ridge in enumerate((0.3, 4.0)):
        z, step = 2 * np.random.default_rng(seed).standard_normal(5), 0.7
        if groups is None:
            penalty = L12(0.8, l2_weight, weights=[1.0, 2.0, 0.0, 0.5, 1.0], ridge=ridge)
        else:
            penalty = GroupL12(groups, 0.8, l2_weight, weights=[1.0, 0.0, 0.5], ridge=ridge)

        def cost(x, z=z, penalty=penalty, step=step):
            return float(0.5 * ((x - z) ** 2).sum() + step * formula(penalty, x))

        assert penalty.value(z) == pytest.approx(float(formula(penalty, z)), rel=1e-13)
        assert cost(penalty.prox(z, step)) <= search(cost, z, seed) + 1e-9


def test_at_zero_the_violation_is_in_the_units_of_the_gradient_however_large_the_ridge():
    gradient = np.array([3.0, -1.0, 0.5])
    for alpha in (1.0, 1e6):
        plain, ridged = (L12(alpha, ridge=ridge).violation(np.zeros(3), gradient) for ridge in (0.0, 100.0))
        assert ridged == plain > 1


def test_a_ridge_scales_with_the_strength_and_belongs_to_the_convex_part():
    x, penalty = np.array([1.0, -2.0, 0.0]), L12(0.8, 0.9, ridge=0.7)
    assert replace(penalty, alpha=2.4).value(x) == pytest.approx(3 * penalty.value(x))
    subtracted = 0.8 * 0.9 * np.linalg.norm(x)
    assert penalty.convex.value(x) - subtracted == pytest.approx(penalty.value(x))
    np.testing.assert_allclose(penalty.convex.curvature(x).matrix(np.arange(3)), 0.56 * np.eye(3))

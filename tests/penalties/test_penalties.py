"""Penalties: values against formulas, convex parts, stationarity by numerical derivatives, and errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.penalties.formulas import formula

from ell12 import L1, L12, MCP, GroupL12, RowsL12, SpectralL12, SquaredLoss, minimize
from ell12.penalties import CappedL1, LogSum, Lp, SpectralLogSum, TruncatedNuclear, with_strength

SEEDS = st.integers(0, 2**32 - 1)
GROUPS = np.array([0, 1, 0, 2, 1, 2])
WEIGHTS = np.array([1.0, 0.5, 0.0, 2.0, 1.5, 0.0])
GROUP_WEIGHTS = np.array([0.5, 1.0, 2.0])
X = np.array([1.5, -0.2, 3.0, 0.0, -2.5, 0.7])
PENALTIES = {
    "l12": L12(0.7),
    "l12 of weight 0.4": L12(0.7, 0.4),
    "l12 with weights": L12(0.7, 1.2, weights=WEIGHTS),
    "l1": L1(0.7),
    "l1 with weights": L1(0.7, weights=WEIGHTS),
    "groups": GroupL12(GROUPS, 0.7),
    "groups with weights": GroupL12(GROUPS, 0.7, 0.6, weights=GROUP_WEIGHTS),
    "spectral": SpectralL12(0.7, 0.8),
    "log-sum": LogSum(0.7, theta=0.3),
    "capped": CappedL1(0.7, theta=0.8),
    "mcp": MCP(0.7, gamma=1.5),
    "lp": Lp(0.7, p=0.3),
}
DIFFERENCES = [name for name in PENALTIES if name != "lp"]


def entries(name, x):
    """X in the shape that the penalty of this name takes."""
    return x.reshape(2, 3) if name == "spectral" else x


def random_vector(seed, kind=float, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * (rng.standard_normal(6) + (1j * rng.standard_normal(6) if kind is complex else 0))


def expected_value(name, x):
    """The penalty of this name, written down once more."""
    if name == "spectral":
        return 0.7 * (np.sqrt(np.linalg.eigvalsh(x @ x.conj().T).clip(0)).sum() - 0.8 * np.linalg.norm(x))
    return float(formula(PENALTIES[name], x))


@pytest.mark.parametrize("name", PENALTIES)
@given(seed=SEEDS, kind=st.sampled_from([float, complex]), scale=st.floats(0.1, 10))
def test_value(name, seed, kind, scale):
    x = entries(name, random_vector(seed, kind, scale))
    assert PENALTIES[name].value(x) == pytest.approx(expected_value(name, x), rel=1e-10, abs=1e-12)
    assert isinstance(PENALTIES[name].value(x), float)


def test_negative_entries_are_not_allowed_where_so_said():
    penalty = L12(1.0, positive=True, weights=[1.0, 0.0])
    assert penalty.value(np.array([1.0, -1e-300])) == math.inf
    assert penalty.value(np.array([1.0, 2.0])) == 0


def test_infinite_weight_holds_its_entry_at_zero():
    penalty = L12(1.0, weights=[math.inf, 1.0, 1.0])
    assert penalty.value(np.array([0.0, 3.0, 4.0])) == 2
    assert penalty.value(np.array([1e-9, 3.0, 4.0])) == math.inf
    assert penalty.prox(np.array([9.0, 3.0, 4.0]), 1.0)[0] == 0
    assert penalty.violation(np.array([0.0, 3.0, 4.0]), np.array([5.0, -0.4, -0.2])) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("name", DIFFERENCES)
@settings(deadline=None)
@given(seed=SEEDS, kind=st.sampled_from([float, complex]), scale=st.floats(0.1, 10), zeros=st.integers(0, 6))
def test_subtracted_gradient_is_a_subgradient(name, seed, kind, scale, zeros):
    penalty = PENALTIES[name]

    def subtracted(x):
        return penalty.convex.value(x) - penalty.value(x)

    x, y = (entries(name, random_vector(seed + i, kind, scale)) for i in (0, 1))
    x.ravel()[:zeros] = 0
    slope = penalty.subtracted_gradient(x)
    for other in (y, x + 1e-4 * y, x - 1e-4 * y, 0 * x, -x):  # also the gradient, where there is one
        line = subtracted(x) + np.vdot(slope, other - x).real
        assert subtracted(other) >= line - 1e-12 * scale


@pytest.mark.parametrize("name", DIFFERENCES)
def test_subtracted_gradient_at_and_near_zero(name):
    penalty = PENALTIES[name]
    np.testing.assert_array_equal(penalty.subtracted_gradient(entries(name, np.zeros(6))), 0)
    near = penalty.subtracted_gradient(entries(name, np.r_[5e-324, np.zeros(5)]))
    assert np.all(np.isfinite(near))


@pytest.mark.parametrize("name", DIFFERENCES)
@given(seed=SEEDS)
def test_the_convex_part_is_convex(name, seed):
    convex = PENALTIES[name].convex
    x, y = (entries(name, random_vector(seed + i)) for i in (0, 1))
    assert convex.value((x + y) / 2) <= (convex.value(x) + convex.value(y)) / 2 + 1e-12


OPTIONS = [{}, {"l2_weight": 0.5}, {"l2_weight": 0.0}, {"weights": [1.0, 0.5, 0.0, 2.0, 0.0]}, {"positive": True}]
OPTIONS.append({"positive": True, "weights": [1.0, 0.5, 0.0, 2.0, 0.0], "l2_weight": 0.7})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [float, complex])
def test_violation_is_the_steepest_descent_along_an_entry(options, kind):
    """Written out where the norm is smooth; `test_contract.py` searches for descent at zero too."""
    positive = options.get("positive", False)
    if positive and kind is complex:
        return
    weights = np.array(options.get("weights", np.ones(5)))
    for seed in range(20):
        random, alpha = np.random.default_rng(seed), 1 + 0.1 * seed
        x = random.standard_normal(5) + (1j * random.standard_normal(5) if kind is complex else 0)
        x = (np.abs(x) if positive else x) * (random.random(5) < 0.6)
        x[0] = 1.0
        gradient = 3 * np.array([*random.standard_normal(4), 1.0]) * (1 + 1j if kind is complex else 1)
        kept = np.where(weights > 0, x, 0)
        slope = gradient - alpha * options.get("l2_weight", 1.0) * kept / np.linalg.norm(kept)
        beyond = np.maximum((-slope if positive else np.abs(slope)) - alpha * weights, 0)
        moving = np.abs(slope + alpha * weights * x / np.where(x == 0, 1, np.abs(x)))
        expected = np.where(x != 0, moving, beyond).max()
        assert L12(alpha, **options).violation(x, gradient) == pytest.approx(expected, rel=1e-12)


def test_violation_at_zero_under_l12():
    assert L12(2.0).violation(np.zeros(3), np.zeros(3)) == 0
    assert L12(2.0).violation(np.zeros(3), np.array([0.0, 1e-9, 0.0])) > 0
    assert L12(2.0, 0.5).violation(np.zeros(3), np.array([1.0, -1.0, 0.5])) == 0
    assert L12(2.0, 0.5).violation(np.zeros(3), np.array([1.0, -1.1, 0.5])) == pytest.approx(0.1)
    assert L12(2.0, positive=True).violation(np.zeros(3), np.array([3.0, 0.0, 5.0])) == 0
    part = L12(2.0, weights=[0.0, 1.0, 1.0])
    assert part.violation(np.array([5.0, 0.0, 0.0]), np.array([0.0, 0.3, 0.0])) > 0  # zero where penalised
    assert part.violation(np.array([5.0, 0.0, 0.0]), np.array([0.2, 0.0, 0.0])) == pytest.approx(0.2)
    assert part.violation(np.array([5.0, 0.0, 0.0]), np.zeros(3)) == 0


ALL = [L12, L1, RowsL12, LogSum, CappedL1, Lp, MCP, SpectralL12, SpectralLogSum, TruncatedNuclear]


@pytest.mark.parametrize("kind", ALL)
def test_a_strength_may_be_left_out_and_is_asked_for_where_it_counts(kind):
    penalty = kind()
    assert repr(penalty) == f"{kind.__name__}()"
    assert penalty == "l1"  # so that scikit-learn knows that zeros are exact
    assert penalty not in ("l2", kind())
    x = np.eye(2) if kind in ALL[7:] or kind is RowsL12 else np.ones(2)
    with pytest.raises(ValueError, match=rf"{kind.__name__}\(\) has no strength: give {kind.__name__}\(alpha"):
        penalty.value(x)
    with pytest.raises(ValueError, match="has no strength"):
        minimize(SquaredLoss(np.eye(2), np.ones(2)), penalty)
    assert with_strength(penalty, 0.5)(x) == kind(0.5).value(x)
    assert with_strength(penalty, None) is penalty
    assert with_strength(penalty, None, 2.0).alpha == 2.0
    with pytest.raises(ValueError, match=rf"alpha is given twice: 0.1 and {kind.__name__}\(alpha=0.2\)"):
        with_strength(kind(0.2), 0.1)


def test_a_repr_leaves_out_defaults_and_shows_arrays_by_their_shape():
    assert repr(GroupL12(["b", "a", "b"], l2_weight=0.5)) == "GroupL12(2 groups, l2_weight=0.5)"
    assert repr(L12(0.1, weights=np.ones(3))) == "L12(alpha=0.1, weights=array(3,))"


def test_groups_have_labels_of_any_kind_in_the_order_of_the_sorted_ones():
    named, numbered = (GroupL12(labels, 1.0, weights=[1.0, 2.0]) for labels in (["b", "a", "b"], [1, 0, 1]))
    x = np.array([3.0, 0.5, -2.0])
    np.testing.assert_array_equal(named.prox(x, 0.3), numbered.prox(x, 0.3))
    np.testing.assert_array_equal(named.units(3), [1, 0, 1])
    np.testing.assert_array_equal(L12(1.0).units(3), [0, 1, 2])
    assert RowsL12().joint
    assert not named.joint


def test_signs_of_all_entries_are_those_of_positive():
    x, z = np.array([0.3, 0.0, 1.0]), np.array([3.0, -1.0, 0.2])
    all_, each = L12(0.8, positive=True), L12(0.8, positive=np.ones(3, dtype=bool))
    np.testing.assert_array_equal(each.prox(z, 1.0), all_.prox(z, 1.0))
    np.testing.assert_array_equal(each.least_slope(x, z), all_.least_slope(x, z))
    assert each.value(z) == all_.value(z) == math.inf
    with pytest.raises(ValueError, match="positive"):
        L12(0.8, positive=[True, False]).value(x)
    with pytest.raises(ValueError, match="positive must be"):
        L12(0.8, positive="yes")


def test_the_violation_of_lp_is_exact():
    penalty, x, gradient = Lp(0.5), np.array([1.5, 0.0, -0.2]), np.array([0.1, 7.0, 0.3])
    slopes = gradient[[0, 2]] + 0.5 * 0.5 * np.abs(x[[0, 2]]) ** -0.5 * np.sign(x[[0, 2]])
    assert penalty.violation(x, gradient) == pytest.approx(np.abs(slopes).max())
    loss = SquaredLoss(np.eye(3), [3.0, 0.1, -2.0])
    result = minimize(loss, penalty, tol=1e-8)
    assert result.converged

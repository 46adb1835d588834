"""Bounds of single entries: the prox against a search that knows no formula, certificates, solvers, scipy."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.optimize import minimize as scipy_minimize

from ell12 import (
    DCA,
    L12,
    BoundedL12,
    NonmonotoneAPG,
    SequentialConvex,
    SquaredLoss,
    SupportNewton,
    WorkingSet,
    minimize,
    stationarity,
)
from ell12.minimization.needs import unmet
from ell12.penalties import WithIntercept

INF = math.inf


def objective(x, z, t, l2_weight, w):
    """The function whose minimiser the prox is, for each row of x."""
    penalty = np.sum(w * np.abs(x), -1) - l2_weight * np.sqrt(np.sum(x * x, -1))
    return 0.5 * np.sum((x - z) ** 2, -1) + t * penalty


def searched(z, t, l2_weight, w, lower, upper):
    """The least value found by enumerating bounds and signs, and descending from the best of a grid."""
    far = np.abs(z).sum() + t * (1 + l2_weight)
    low, high = np.maximum(lower, -far), np.minimum(upper, far)
    corners = np.array(list(itertools.product(*zip(low, high, 0 * low, np.clip(z, low, high), strict=True))))
    grid = np.array(list(itertools.product(*(np.linspace(a, b, 9) for a, b in zip(low, high, strict=True)))))
    starts = np.concatenate([corners, grid])
    values = objective(starts, z, t, l2_weight, w)
    best = values.min()
    for start in starts[np.argsort(values, kind="stable")[:8]]:
        signs = np.where(start != 0, np.sign(start), np.where(z < 0, -1.0, 1.0))
        sides = [(0.0, b) if s > 0 else (a, 0.0) for s, a, b in zip(signs, low, high, strict=True)]

        def slope(x, *_, signs=signs):
            return x - z + t * w * signs - t * l2_weight * x / (np.linalg.norm(x) or 1.0)

        run = scipy_minimize(objective, start, (z, t, l2_weight, w), jac=slope, bounds=sides, tol=1e-14)
        best = min(best, run.fun)
    return best


def problem_of(kind, random):
    """A random prox whose bounds are of this kind."""
    n = random.integers(1, 5)
    t, l2_weight = random.choice([0.1, 1.0, 3.0]), random.choice([0.0, 0.5, 1.0, 2.0])
    z, w = random.standard_normal(n) * random.choice([0.3, 1, 3]), np.ones(n)
    if random.random() < 0.4:
        w = random.uniform(0.2, 2, n)
    if kind == "signs":
        sides = [random.choice([0.0, INF], n) for _ in range(2)]
    elif kind == "equal":
        sides = [np.full(n, random.choice([0.01, 0.3, 1, 3]))] * 2
    else:  # none of them both small and other than 0
        sides = [random.choice([0.0, 1.0, INF], n) for _ in range(2)]
        sides = [np.where(side == 1, t * l2_weight + random.exponential(1, n), side) for side in sides]
    return z, t, l2_weight, w, -sides[0], sides[1]


@pytest.mark.parametrize("kind", ["signs", "equal", "large"])
def test_the_prox_with_bounds_is_a_global_minimiser(kind):
    random = np.random.default_rng(5)
    for _ in range(60):
        z, t, l2_weight, w, lower, upper = problem_of(kind, random)
        penalties = [BoundedL12(1.0, (lower, upper), l2_weight, w)]
        if kind == "signs":
            penalties.append(L12(1.0, l2_weight, w, bounds=(lower, upper)))
        best = searched(z, t, l2_weight, w, lower, upper)
        for penalty in penalties:
            x = penalty.prox(z, t)
            assert np.all(x >= lower)
            assert np.all(x <= upper)
            assert objective(x, z, t, l2_weight, w) <= best + 1e-7 * (1 + abs(best))


def test_small_bounds_that_differ_still_lead_close_to_the_minimum():
    random = np.random.default_rng(8)
    missed = 0
    for _ in range(60):
        n = random.integers(1, 5)
        z, t, w = random.standard_normal(n), random.choice([0.3, 1.0, 3.0]), np.ones(n)
        lower, upper = (random.choice([0, 0.01, 0.2, 1, INF], n) for _ in range(2))
        x = BoundedL12(1.0, (-lower, upper)).prox(z, t)
        assert np.all((x >= -lower) & (x <= upper))
        value = objective(x, z, t, 1.0, w)
        assert value <= objective(np.zeros(n), z, t, 1.0, w)
        missed += value > searched(z, t, 1.0, w, -lower, upper) + 1e-6
    assert missed <= 2


def test_without_bounds_and_with_one_sign_the_prox_is_that_of_l12():
    random = np.random.default_rng(0)
    for scale in (1e-150, 1.0, 1e150):
        for z in scale * random.standard_normal((20, 6)):
            free, positive = BoundedL12(scale, (-INF, INF)), BoundedL12(scale, (0, INF))
            np.testing.assert_allclose(free.prox(z, 0.7), L12(scale).prox(z, 0.7), rtol=1e-12)
            one_sided = L12(scale, nonnegative=True).prox(z, 0.7)
            np.testing.assert_allclose(positive.prox(z, 0.7), one_sided, rtol=1e-12)
            np.testing.assert_array_equal(L12(scale, bounds=(0, INF)).prox(z, 0.7), one_sided)


def test_entries_close_to_the_threshold_keep_their_digits():
    """Stretched 1e8 times and more, where the remaining bound does not bind."""
    z = np.array([1.0 + 3e-9, 1.0 + 4e-9, -0.5])
    found = BoundedL12(1.0, (-INF, [0.6, INF, 1.0])).prox(z, 1.0)
    np.testing.assert_allclose(found, [0.6, 0.8, 0.0], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found), 1 + 5e-9, rtol=1e-8)


A = np.random.default_rng(1).standard_normal((40, 12))
TRUTH = np.array([2.0, -3.0, 0, 0, 1.0, 0, -1.0, 0, 0, 4.0, 0, 0.5])
B = A @ TRUTH + 0.1 * np.random.default_rng(2).standard_normal(40)
LOWER = np.array([-1.0, -1, -INF, -1, 0, -0.2, -0.5, 0, 0, 0, -INF, 0])
UPPER = np.array([1.0, 1, INF, 0, 0.3, 0, INF, 0, 2, INF, INF, 0.2])


def test_a_bounded_least_squares_fit_is_scipys():
    found = minimize(SquaredLoss(A, B), BoundedL12(0.0, (LOWER, UPPER)), tol=1e-9)
    inside = UPPER > LOWER
    expected = np.zeros(12)
    expected[inside] = lsq_linear(A[:, inside], B, (LOWER[inside], UPPER[inside]), tol=1e-14).x
    assert found.converged
    np.testing.assert_allclose(found.x, expected, atol=1e-6)


def test_a_bounded_lasso_is_scipys_with_positive_and_negative_parts():
    alpha = 5.0
    found = minimize(SquaredLoss(A, B), BoundedL12(alpha, (LOWER, UPPER), 0.0), tol=1e-8)

    def value(parts):
        x = parts[:12] - parts[12:]
        gradient = A.T @ (A @ x - B)
        return 0.5 * np.sum((A @ x - B) ** 2) + alpha * parts.sum(), np.r_[gradient + alpha, alpha - gradient]

    sides = [(0, u) for u in UPPER] + [(0, -u) for u in LOWER]
    expected = scipy_minimize(value, np.zeros(24), jac=True, bounds=sides, options={"ftol": 1e-15, "gtol": 1e-9})
    assert found.objective <= expected.fun + 1e-9
    np.testing.assert_allclose(found.x, expected.x[:12] - expected.x[12:], atol=1e-4)


@pytest.mark.parametrize("solver", [NonmonotoneAPG(), SequentialConvex(), DCA()])
@pytest.mark.parametrize("l2_weight", [0.5, 1.0])
def test_a_solution_within_bounds_violates_no_condition_written_out(solver, l2_weight):
    penalty = BoundedL12(8.0, (LOWER, UPPER), l2_weight)
    found = minimize(SquaredLoss(A, B), penalty, solver=solver, tol=1e-6, max_iter=50_000)
    assert found.converged
    x, gradient = found.x, A.T @ (A @ found.x - B)
    for j in range(12):
        for side, bound in ((1.0, UPPER[j]), (-1.0, -LOWER[j])):
            if side * x[j] < bound:  # the derivative of the objective in this direction
                turn = 1.0 if x[j] == 0 else side * np.sign(x[j])
                rise = side * gradient[j] + 8.0 * turn - 8.0 * l2_weight * side * x[j] / np.linalg.norm(x)
                assert rise >= -1e-4


def test_finite_bounds_take_nmapg_by_default_and_signs_the_working_set():
    loss, x = SquaredLoss(A, B), np.zeros(12)
    assert unmet(WorkingSet(), loss, BoundedL12(1.0, (-1, 1)), x)
    assert not unmet(NonmonotoneAPG(), loss, BoundedL12(1.0, (-1, 1)), x)
    assert not unmet(WorkingSet(), loss, L12(1.0, bounds=(0, INF)), x)


@pytest.mark.parametrize("solver", [WorkingSet(), SupportNewton(), NonmonotoneAPG()])
@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_solvers_of_signs_find_what_a_box_without_end_has(solver, l2_weight):
    lower, upper = np.where(LOWER < 0, -INF, 0), np.where(UPPER > 0, INF, 0)
    w = np.ones(12)
    w[[0, 6, 11]] = 0  # not penalised, of any sign, of any sign, and >= 0
    signs, box = L12(3.0, l2_weight, w, bounds=(lower, upper)), BoundedL12(3.0, (lower, upper), l2_weight, w)
    found = minimize(SquaredLoss(A, B), signs, solver=solver, tol=1e-9)
    other = minimize(SquaredLoss(A, B), box, tol=1e-9, max_iter=50_000)
    assert found.converged
    assert np.all((found.x >= lower) & (found.x <= upper))
    np.testing.assert_allclose(found.objective, other.objective, rtol=1e-9)
    np.testing.assert_allclose(stationarity(SquaredLoss(A, B), box, found.x), 0, atol=1e-8)


def test_an_unpenalised_negative_entry_is_looked_past_at_zero():
    """Where only entries of weight 0 are used, zero may be no solution for the others."""
    penalty = L12(1.0, weights=[0.0, 1.0], bounds=([-INF, -INF], [0.0, INF]))
    found = minimize(SquaredLoss(np.eye(2), [-2.0, 0.5]), penalty)
    np.testing.assert_allclose(found.x, [-2.0, 0.5])


def test_a_small_bound_does_not_make_zero_look_stationary():
    """A step into a box of 1e-9 is short; the slope that leads there is not."""
    penalty = BoundedL12(1.0, (0, 1e-9))
    assert penalty.violation(np.zeros(3), np.array([-5.0, 0.0, 0.0])) >= 4
    assert penalty.violation(np.array([1e-9, 0, 0]), np.array([-5.0, 0.9, 0.0])) == 0


def test_an_entry_at_its_bound_is_there_to_the_last_digit():
    """Else the slope that presses it against the bound would look like a violation."""
    random = np.random.default_rng(0)
    for _ in range(200):
        z, upper = 10 * random.standard_normal(5), random.uniform(0.1, 3, 5)
        x = BoundedL12(1.0, (-upper, upper)).prox(z, random.uniform(0.1, 3))
        near = np.abs(x) > 0.999999 * upper
        assert np.all(np.abs(x)[near] == upper[near])


def test_an_intercept_has_no_bounds():
    penalty = WithIntercept(BoundedL12(1.0, (-1, 1)))
    np.testing.assert_array_equal(penalty.prox(np.array([0.5, 9.0]), 1.0)[-1], 9.0)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (1.0, "pair"),
        ((1.0, 2.0), "lower bounds <= 0"),
        ((-1.0, math.nan), "so that 0 is allowed"),
        ((-1.0, "a"), "bounds"),
        ((-1.0, 1j), "bounds"),
        ((np.zeros(3), 1.0), "bounds"),
    ],
)
def test_bounds_of_a_wrong_kind_are_refused_by_name(bounds, message):
    with pytest.raises((ValueError, TypeError), match=message):
        BoundedL12(1.0, bounds).value(np.zeros(2))


def test_l12_refuses_bounds_that_are_no_signs():
    with pytest.raises(ValueError, match="BoundedL12"):
        L12(1.0, bounds=(0, 1))

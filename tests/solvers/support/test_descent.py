"""Descent on a quadratic: the compiled loop against its plain twin, leaps, and all against what they promise."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from ell12 import FISTA, L12, HuberLoss, Status, minimize
from ell12.solvers.support.descent import Descent, Model, leap, sweep

compiled_descent = pytest.importorskip("ell12.solvers.support.compiled_descent")


def quadratic(seed, n=12, rank=None):
    random = np.random.default_rng(seed)
    A = random.standard_normal((rank or 2 * n, n))
    return A.T @ A, 3 * random.standard_normal(n)


def value(hessian, gradient, penalty, x):
    """Of the model, which begins at zero."""
    return 0.5 * x @ hessian @ x + gradient @ x + penalty.value(x)


@pytest.mark.parametrize("sweeps", [1, 7])
@pytest.mark.parametrize("seed", range(5))
def test_the_compiled_loop_is_its_plain_twin(seed, sweeps):
    hessian, gradient = quadratic(seed, rank=6 if seed % 2 else None)
    hessian[:, 3] = hessian[3] = 0.0  # a column of zeros
    gradient[3] = 0.0
    random = np.random.default_rng(seed)
    x = random.standard_normal(12)
    above = random.choice([0.0, 0.5, 2.0, np.inf], 12)
    below = np.where(random.random(12) < 0.3, -np.inf, -above)
    states = []
    for loop in (sweep, compiled_descent.sweep):
        state = x.copy(), gradient.copy()
        loop(hessian, state[1], state[0], below, above, sweeps, 1e-9)
        states.append(state)
    np.testing.assert_allclose(states[0][0], states[1][0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(states[0][1], states[1][1], rtol=1e-11, atol=1e-12)
    assert not np.array_equal(states[0][0], x)


def test_a_sweep_keeps_the_gradient_of_the_quadratic():
    hessian, gradient = quadratic(1)
    x, slope = np.zeros(12), gradient.copy()
    sweep(hessian, slope, x, np.full(12, -0.5), np.full(12, 0.5), 4, 0.0)
    np.testing.assert_allclose(slope, gradient + hessian @ x, rtol=1e-12)


def bounds(random, size):
    """Slopes below and above zero: some entries have no kink, some a bound at zero, one is held there."""
    above = random.uniform(0.2, 3.0, size)
    below = np.where(random.random(size) < 0.3, -np.inf, -above)
    above[0] = below[0] = 0.0
    above[1], below[1] = np.inf, -np.inf
    return below, above


@pytest.mark.parametrize("seed", range(6))
def test_leaps_find_the_minimiser_that_sweeps_find(seed):
    hessian, gradient = quadratic(seed, n=30, rank=45)
    random = np.random.default_rng(seed)
    below, above = bounds(random, 30)
    start = np.where(random.random(30) < 0.5, 0.0, random.standard_normal(30))
    start[(start < 0) & np.isinf(below)] = 0.0
    start[1] = 0.0
    states = []
    for loop, count in ((sweep, 5000), (leap, 50)):
        x = start.copy()
        slope = gradient + hessian @ x
        for _ in range(count // 10):
            loop(hessian, slope, x, below, above, 10, 0.0 if loop is sweep else 1e-12)
        np.testing.assert_allclose(slope, gradient + hessian @ x, atol=1e-8)
        states.append(x)
    np.testing.assert_allclose(states[1], states[0], atol=1e-8)
    assert 0 < np.count_nonzero(states[1]) < 30


@pytest.mark.parametrize("seed", range(4))
def test_no_leap_rises(seed):
    hessian, gradient = quadratic(seed, n=40, rank=42)  # ill-conditioned: full steps would rise
    penalty = L12(0.2, 0.0)
    below, above = penalty.slopes_at_zero(np.zeros(40))
    x = np.random.default_rng(seed).standard_normal(40)
    slope, values = gradient + hessian @ x, []
    for _ in range(30):
        values.append(value(hessian, gradient, penalty, x))
        leap(hessian, slope, x, below, above, 1, 0.0)
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[0]))
    assert values[-1] < values[0]


def test_dependent_columns_are_left_to_sweeps():
    hessian, gradient = quadratic(0, n=12, rank=6)
    x, slope = np.zeros(12), gradient.copy()
    assert not leap(hessian, slope, x, np.full(12, -0.1), np.full(12, 0.1), 10, 0.0)
    Descent(0)(hessian, slope, x, np.full(12, -0.1), np.full(12, 0.1), 10, 0.0)
    assert np.any(x)
    np.testing.assert_allclose(slope, gradient + hessian @ x, atol=1e-9)


def test_without_a_penalty_but_bounds_it_is_nonnegative_least_squares():
    random = np.random.default_rng(0)
    A, b = random.standard_normal((20, 8)), random.standard_normal(20)
    expected = lsq_linear(A, b, (0, np.inf), tol=1e-12).x
    model = Model(A.T @ A, L12(0.0, positive=True), np.zeros(8), -A.T @ b, sweep)
    model.minimise(1e-10, 50)
    assert model.solved
    np.testing.assert_allclose(model.x, expected, atol=1e-7)


@pytest.mark.parametrize("descend", [sweep, Descent(0)])
@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_model_is_solved_to_rounding(seed, positive, l2_weight, descend):
    hessian, gradient = quadratic(seed)
    penalty = L12(1.5, l2_weight, weights=np.r_[0.0, np.linspace(0.5, 1.5, 11)], positive=positive)
    model = Model(hessian, penalty, np.zeros(12), gradient, descend)
    model.minimise(1e-9, 30)
    assert model.solved
    assert model.violation <= 1e-9
    np.testing.assert_allclose(model.gradient, gradient + hessian @ model.x, atol=1e-9)
    assert penalty.violation(model.x, gradient + hessian @ model.x) < 1e-8
    assert value(hessian, gradient, penalty, model.x) < 0


def test_the_model_falls_round_by_round():
    hessian, gradient = quadratic(4, n=30, rank=15)  # not strictly convex
    penalty = L12(0.3)
    model = Model(hessian, penalty, np.ones(30), gradient + hessian.sum(axis=1), sweep)
    values = [value(hessian, gradient, penalty, model.x)]
    for _ in range(10):
        model.minimise(0.0, 1)
        values.append(value(hessian, gradient, penalty, model.x))
    assert np.all(np.diff(values) <= 1e-12 * abs(values[0]))
    assert values[-1] < values[0]


def test_the_bend_is_the_curvature_of_the_subtracted_norm():
    model = Model(2 * np.eye(3), L12(0.6, l2_weight=0.5), np.array([3.0, 4.0, 0.0]), np.zeros(3), sweep)
    assert model.bend == pytest.approx(0.6 * 0.5 / 5 / 2)
    assert Model(np.eye(2), L12(1.0), np.zeros(2), np.zeros(2), sweep).bend == 0
    assert Model(np.eye(2), L12(1.0, l2_weight=0.0), np.ones(2), np.zeros(2), sweep).bend == 0


def test_a_quadratic_without_curvature_is_bent_without_end():
    penalty, x = L12(1.0), np.array([1.0, 0.0, 2.0])
    assert Model(np.zeros((3, 3)), penalty, x, np.ones(3), sweep).bend == np.inf
    assert Model(np.zeros((3, 3)), L12(1.0, 0.0), x, np.ones(3), sweep).bend == 0
    assert Model(np.diag([0.0, 2.0, 4.0]), penalty, x, np.ones(3), sweep).bend == pytest.approx(0.5 / 5**0.5)


def test_a_huber_loss_that_is_linear_at_the_start_is_minimised():
    random = np.random.default_rng(0)
    A = random.standard_normal((40, 8))
    b = A @ np.r_[3.0, -2.0, np.zeros(6)] + 0.01 * random.standard_normal(40)
    loss = HuberLoss(A, b, delta=1e-3)  # no residual lies within delta at zero: the Hessian is zero
    result = minimize(loss, L12(0.001, 0.0), tol=1e-6)
    assert result.status in (Status.CONVERGED, Status.ROUNDING)
    reference = minimize(loss, L12(0.001, 0.0), solver=FISTA(), tol=1e-6, max_iter=100_000)
    assert result.objective <= reference.objective * (1 + 1e-6)

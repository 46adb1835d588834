"""Proximal gradient, FISTA and SCP, against their steps written out."""

import math
from itertools import pairwise

import numpy as np
import pytest

from ell12 import FISTA, L1, L12, LogisticLoss, SequentialConvex, SquaredLoss
from ell12.protocols import Point
from ell12.solvers import ProximalGradient


def problem(seed=0, m=20, n=12):
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n))
    return A, A[:, :3].sum(axis=1) + 0.1 * random.standard_normal(m)


def soft(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0)


def iterates_of(solver, loss, penalty):
    return solver.iterates(loss, penalty, Point(loss.start(), loss.point(loss.start()).prediction))


def test_proximal_gradient_is_soft_thresholding_in_turn():
    A, b = problem()
    step, alpha, x = 0.9 / np.linalg.norm(A, 2) ** 2, 0.5, np.zeros(12)
    iterates = iterates_of(ProximalGradient(step), SquaredLoss(A, b), L1(alpha))
    for _ in range(50):
        x, before = soft(x - step * A.T @ (A @ x - b), step * alpha), x
        iterate = next(iterates)
        np.testing.assert_allclose(iterate.point.x, x, rtol=1e-9, atol=1e-12)
        assert iterate.objective == pytest.approx(0.5 * np.sum((A @ x - b) ** 2) + alpha * np.abs(x).sum())
        assert iterate.optimality == pytest.approx(np.abs(x - before).max() / step, rel=1e-6, abs=1e-12)


def test_fista_is_the_printed_algorithm():
    A, b = problem()
    step, alpha = 0.9 / np.linalg.norm(A, 2) ** 2, 0.5
    iterates = iterates_of(FISTA(step), SquaredLoss(A, b), L1(alpha))
    x = y = np.zeros(12)
    t = 1.0
    for _ in range(80):  # Beck & Teboulle 2009, (4.1) to (4.3)
        x, before = soft(y - step * A.T @ (A @ y - b), step * alpha), x
        t, t_before = (1 + math.sqrt(1 + 4 * t**2)) / 2, t
        y = x + (t_before - 1) / t * (x - before)
        np.testing.assert_allclose(next(iterates).point.x, x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_steps_are_soft_thresholding_after_the_subtracted_gradient(l2_weight):
    random = np.random.default_rng(0)
    A, alpha = random.standard_normal((15, 25)), 0.8
    b = A[:, :3].sum(axis=1) + 0.1 * random.standard_normal(15)
    loss, penalty = SquaredLoss(A, b), L12(alpha, l2_weight)
    step = 1 / loss.lipschitz()
    iterates = SequentialConvex().iterates(loss, penalty, loss.point(loss.start()))
    x = next(iterates).point.x
    first = -step * A.T @ (A @ np.zeros(25) - b)  # the first step is a proximal one
    shrunk = np.sign(first) * np.maximum(np.abs(first) - step * alpha, 0)
    np.testing.assert_allclose(x, shrunk * (1 + step * alpha * l2_weight / np.linalg.norm(shrunk)), rtol=1e-12)
    for _ in range(50):
        v = x - step * (A.T @ (A @ x - b) - alpha * l2_weight * x / np.linalg.norm(x))
        expected = np.sign(v) * np.maximum(np.abs(v) - step * alpha, 0)
        iterate = next(iterates)
        np.testing.assert_allclose(iterate.point.x, expected, rtol=1e-9, atol=1e-12)
        value = 0.5 * np.sum((A @ expected - b) ** 2)
        value += alpha * (np.abs(expected).sum() - l2_weight * np.linalg.norm(expected))
        assert iterate.objective == pytest.approx(value, rel=1e-10)
        x = iterate.point.x


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss])
def test_spectral_steps_stay_below_the_largest_of_the_last_ten(kind, l2_weight):
    A, b = problem()
    loss, penalty = kind(A, np.sign(b) if kind is LogisticLoss else b), L12(0.3, l2_weight)
    zero = loss.point(loss.start())
    values = [loss.value(zero) + penalty.value(zero.x)]
    iterates = iterates_of(ProximalGradient("barzilai-borwein"), loss, penalty)
    for _ in range(60):
        values.append(next(iterates).objective)
        assert values[-1] <= max(values[-11:-1])


def test_the_spectral_step_of_a_quadratic_lies_between_the_inverse_curvatures():
    A, b = problem()
    curvatures = np.linalg.eigvalsh(A.T @ A)
    iterates = iterates_of(ProximalGradient("barzilai-borwein"), SquaredLoss(A, b), L1(0.5))
    points = [next(iterates) for _ in range(15)]
    for before, after in pairwise(points):
        size = np.abs(after.point.x - before.point.x).max()
        if size > 1e-9:  # optimality is the move over the step; halving may only shorten it
            assert size / after.optimality <= 1.001 / curvatures[0]

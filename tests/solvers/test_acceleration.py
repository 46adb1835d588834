"""nmAPG, against the algorithm of Li & Lin (NIPS 2015) as it is printed."""

import math

import numpy as np
import pytest

import ell12
from ell12 import L1, L12, NonmonotoneAPG, SquaredLoss, minimize
from ell12.losses import QuadraticLoss
from ell12.solvers.proximal_step import Nonmonotone, Step


def quadratic(seed, alpha, n=12):
    """``1/2 x'G x - c'x + alpha ||x||_1`` with its prox step of length 1/L, by their definitions."""
    random = np.random.default_rng(seed)
    B = random.standard_normal((n, n)) * np.logspace(0, -1, n)  # so that momentum goes too far and turns
    G, c = B.T @ B, random.standard_normal(n)
    step = 1 / np.linalg.eigvalsh(G)[-1]

    def F(x):
        return 0.5 * x @ G @ x - c @ x + alpha * np.sum(np.abs(x))

    def prox_step(x):
        v = x - step * (G @ x - c)
        return np.sign(v) * np.maximum(np.abs(v) - step * alpha, 0)

    return F, prox_step, np.zeros(n), QuadraticLoss(G, c)


def printed_nmapg(F, prox_step, start, eta, delta=1e-4):
    """Yield x and whether the plain step was needed: every line of the printed algorithm, in its order."""
    x = x_before = z = start
    t_before, t, c, q = 0.0, 1.0, F(x), 1.0
    while True:
        y = x + t_before / t * (z - x) + (t_before - 1) / t * (x - x_before)
        z = prox_step(y)
        x_before, refused = x, F(z) > c - delta * np.sum((z - y) ** 2)
        if refused:
            v = prox_step(x)
            x = z if F(z) <= F(v) else v
        else:
            x = z
        t_before, t = t, (math.sqrt(4 * t**2 + 1) + 1) / 2
        q_before, q = q, eta * q + 1
        c = (eta * q_before * c + F(x)) / q
        yield x, refused


def steps_of(F, prox_step):
    """A step as `Nonmonotone` asks for it."""

    def take_step(y, tell):
        z = prox_step(y)
        tell(z)
        return Step(z, F(z), np.sum((z - y) ** 2), 0.0)

    return take_step


@pytest.mark.parametrize("eta", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("delta", [1e-4, 5.0])
def test_the_objectives_on_a_quadratic_are_those_of_the_printed_algorithm(eta, delta):
    refusals = 0
    for seed in range(5):
        F, prox_step, start, loss = quadratic(seed, 1.0)
        printed = printed_nmapg(F, prox_step, start, eta, delta)
        expected, refused = zip(*(next(printed) for _ in range(100)), strict=True)
        solver = NonmonotoneAPG(step=1 / loss.lipschitz(), eta=eta, delta=delta)
        result = minimize(loss, L1(1.0), solver=solver, tol=0, max_iter=100)
        values = list(map(F, expected))[: result.n_iter]  # zero may be the solution
        np.testing.assert_allclose(result.history["objective"][1:], values, rtol=1e-9, atol=1e-12)
        refusals += sum(refused)
    assert refusals > 0  # so that z and x part, and every term of y counts
    assert (NonmonotoneAPG().eta, NonmonotoneAPG().delta) == (0.8, 1e-4)


def test_momentum_begins_anew_from_where_the_run_is():
    F, prox_step, start, _ = quadratic(0, 0.1)
    state, began = Nonmonotone(start, F(start)), []

    def take_step(y, tell):
        began.append((y, state.x))
        return steps_of(F, prox_step)(y, tell)

    points = [state.advance(take_step, turns_back=lambda *_, k=k: k == 3).point for k in range(6)]
    assert [np.array_equal(y, x) for y, x in began] == [True, True, False, False, True, True]
    np.testing.assert_array_equal(began[4][0], points[3])
    for point, (y, _) in zip(points, began, strict=True):
        np.testing.assert_array_equal(point, prox_step(y))


def test_one_of_the_points_announced_is_where_the_next_step_begins():
    F, prox_step, start, _ = quadratic(1, 1.0)
    state, announced, began = Nonmonotone(start, F(start), eta=0.0), [[start]], []

    def take_step(y, tell):
        began[-1].append(y)
        return steps_of(F, prox_step)(y, tell)

    for _ in range(100):
        announced.append([])
        began.append([])
        state.advance(take_step, lambda extrapolate, *args: announced[-1].append(extrapolate(*args)))
    assert {len(steps) for steps in began} == {1, 2}  # with refused steps among them
    for (y, *_), points in zip(began, announced, strict=False):
        assert any(np.array_equal(y, point) for point in points)


@pytest.mark.parametrize("eta", [0.0, 0.8])
def test_nmapg_is_the_printed_algorithm(eta):
    problem = ell12.datasets.compressed_sensing(0, n_samples=60)
    A, b, alpha = problem.A, problem.b, 1e-3
    loss = SquaredLoss(A, b)
    step = 1 / loss.lipschitz()

    def F(x):
        return 0.5 * np.sum((A @ x - b) ** 2) + alpha * (np.sum(np.abs(x)) - np.linalg.norm(x))

    def prox_step(x):
        v = x - step * A.T @ (A @ x - b)
        w = np.sign(v) * np.maximum(np.abs(v) - step * alpha, 0)
        return (1 + step * alpha / np.linalg.norm(w)) * w

    printed = printed_nmapg(F, prox_step, np.zeros(A.shape[1]), eta)
    expected, refused = zip(*(next(printed) for _ in range(400)), strict=True)
    result = minimize(loss, L12(alpha), solver=NonmonotoneAPG(eta=eta), tol=0, max_iter=400)
    np.testing.assert_allclose(result.history["objective"][1:], list(map(F, expected)), rtol=1e-9)
    assert eta > 0 or any(refused)  # so that z and x part, and every term of y counts

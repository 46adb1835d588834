"""Proximal steps, against their definition and the inequality that backtracking promises."""

import math

import numpy as np
import pytest

from ell12 import L1, L12, HuberLoss, LogisticLoss, NonmonotoneAPG, PoissonLoss, SquaredLoss, minimize
from ell12.losses import QuadraticLoss
from ell12.solvers.proximal_step import (
    DOUBLE_AFTER,
    ProximalStep,
    first_step,
    known_lipschitz,
    objective,
)


def data(seed=0, m=30, n=10):
    random = np.random.default_rng(seed)
    return random.standard_normal((m, n)), random.standard_normal(m)


def losses(seed=0):
    A, b = data(seed)
    return [SquaredLoss(A, b, scale=0.3), LogisticLoss(A, np.sign(b)), HuberLoss(A, b, delta=0.5)]


class Unknown:
    """A loss whose Lipschitz constant is what it is set to."""

    def __init__(self, loss, lipschitz):
        self.loss, self.known = loss, lipschitz

    def lipschitz(self):
        return self.known

    def __getattr__(self, name):
        return getattr(self.loss, name)


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("penalty", [L1(0.2), L12(0.2)])
def test_a_step_is_the_prox_of_a_gradient_step(kind, penalty):
    loss = losses()[kind]
    x = np.linspace(-1, 1, 10)
    point = loss.point(x)
    for step, size in ((0.01, 0.01), ("lipschitz", 1 / loss.lipschitz())):
        take_step = ProximalStep(loss, penalty, step, point)
        new = take_step(point)
        np.testing.assert_allclose(new.x, penalty.prox(x - size * loss.gradient(point), size), rtol=1e-14)
        np.testing.assert_allclose(new.prediction, loss.A @ new.x, atol=1e-12)
        iterate = take_step.iterate(new, point)
        assert iterate.objective == loss.value(new) + penalty.value(new.x) == objective(loss, penalty, new)
        assert iterate.optimality == pytest.approx(np.abs(new.x - x).max() / size, rel=1e-12)
        measured = take_step.measured(point, lambda _: None)
        assert measured.square == pytest.approx(np.sum((new.x - x) ** 2), rel=1e-12)
        assert measured.iterate().optimality == pytest.approx(iterate.optimality, rel=1e-12)


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("unknown", [False, True])
def test_backtracking_never_leaves_the_loss_above_its_model(kind, unknown):
    for seed in range(5):
        loss, penalty = losses(seed)[kind], L12(0.1)
        loss = Unknown(loss, math.inf) if unknown else loss
        point = loss.point(3 * np.random.default_rng(seed).standard_normal(10))
        take_step = ProximalStep(loss, penalty, "lipschitz" if unknown else "backtracking", point)
        take_step.step *= 64  # far too long
        for _ in range(40):
            new = take_step(point)
            move, gradient = new.x - point.x, loss.gradient(point)
            model = loss.value(point) + gradient @ move + move @ move / (2 * take_step.step)
            assert loss.value(new) <= model + 1e-12 * abs(model)
            point = new
        assert take_step.step >= 0.5 / losses(seed)[kind].lipschitz()  # shorter would be in vain


@pytest.mark.parametrize("unknown", [math.inf, math.nan, None])
def test_without_a_lipschitz_constant_steps_are_backtracked_and_grow_again(unknown):
    loss = Unknown(losses()[0], unknown)
    point = loss.point(np.ones(10))
    take_step = ProximalStep(loss, L1(0.1), "lipschitz", point)
    assert known_lipschitz(loss) == math.inf
    assert take_step.backtracking
    take_step.step = short = 1e-6
    for k in range(1, 2 * DOUBLE_AFTER + 2):
        point = take_step(point)
        assert take_step.step == short * 2 ** ((k - 1) // DOUBLE_AFTER)
    asked = ProximalStep(losses()[0], L1(0.1), "backtracking", point)  # which does not grow
    asked.step = short
    for _ in range(30):
        point = asked(point)
    assert asked.step == short


def test_a_lipschitz_constant_of_zero_counts_as_one():
    assert known_lipschitz(Unknown(losses()[0], 0.0)) == 1.0
    assert known_lipschitz(Unknown(losses()[0], 7)) == 7.0


def test_the_first_step_is_exact_along_the_gradient():
    A, b = data()
    loss, x = SquaredLoss(A, b), np.linspace(-1, 1, 10)
    step, gradient = first_step(loss, loss.point(x)), A.T @ (A @ x - b)
    lengths = step * np.array([0.999, 1.0, 1.001])
    values = [np.sum((A @ (x - length * gradient) - b) ** 2) for length in lengths]
    assert values[1] == min(values)
    assert step >= 1 / np.linalg.eigvalsh(A.T @ A)[-1]
    vanishing = SquaredLoss(np.eye(3), np.ones(3))
    assert first_step(vanishing, vanishing.point(np.ones(3))) == 1.0


def test_a_tilt_is_a_linear_term_that_is_taken_off():
    loss, tilt = losses()[0], np.linspace(0, 1, 10)
    point = loss.point(np.ones(10))
    new = ProximalStep(loss, L1(0.2), 0.01, point, tilt=lambda _: tilt)(point)
    expected = L1(0.2).prox(np.ones(10) - 0.01 * (loss.gradient(point) - tilt), 0.01)
    np.testing.assert_allclose(new.x, expected, rtol=1e-14)


def test_only_losses_whose_terms_cancel_sum_more_than_their_value():
    assert QuadraticLoss(np.eye(2), np.ones(2), constant=-3.0).value_scale == 3.0
    assert losses()[0].value_scale == 0.0


def test_the_first_step_of_an_exponential_is_not_that_of_its_far_curvature():
    """Over a way of 1 it was so large that hundreds of steps went by until doubling had made them long enough."""
    random = np.random.default_rng(0)
    A = random.standard_normal((100, 500))
    b = random.poisson(20 * np.exp(A[:, 0] / 2))
    loss = PoissonLoss(A, b, offset=np.full(100, np.log(20.0)), scale=0.01)
    assert loss.value(loss.point(loss.start())) < 0
    result = minimize(loss, L12(1.0, 0.5), solver=NonmonotoneAPG())
    assert result.converged
    assert result.n_iter < 100

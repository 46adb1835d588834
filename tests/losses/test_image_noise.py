"""The losses of counts and of impulses: values, slopes and proximal maps against searches and scipy."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import ell12
from ell12.protocols import Loss, SplitLoss, missing, offers

KINDS = {"counts": ell12.losses.KullbackLeiblerLoss, "impulses": ell12.losses.AbsoluteLoss}


def data(kind, seed=0, m=7, n=4):
    rng = np.random.default_rng(seed)
    A = rng.random((m, n)) if kind == "counts" else rng.standard_normal((m, n))
    b = rng.poisson(3, m) * 1.0 if kind == "counts" else rng.standard_normal(m)
    return A, b, rng.random(m) + 0.1, rng.random(n)


def written_out(kind, u, b, weight):
    terms = scipy.special.kl_div(b, u) + b - scipy.special.xlogy(b, b) if kind == "counts" else np.abs(u - b)
    return float(np.sum(weight * terms))


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_the_definition(kind):
    A, b, weight, x = data(kind)
    loss = KINDS[kind](A, b, sample_weight=weight, scale=0.3)
    assert loss.value(loss.point(x)) == pytest.approx(0.3 * written_out(kind, A @ x, b, weight))
    assert loss.start().shape == x.shape
    slopes = [loss.value(loss.point(x + e)) - loss.value(loss.point(x - e)) for e in 1e-6 * np.eye(len(x))]
    np.testing.assert_allclose(loss.gradient(loss.point(x)), np.array(slopes) / 2e-6, rtol=1e-6)
    if kind == "counts":
        np.testing.assert_allclose(loss.curvature(loss.point(x)), 0.3 * weight * b / (A @ x) ** 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [1e-3, 0.7, 1e4])
def test_the_proximal_map_of_the_prediction_beats_a_search(kind, weight):
    rng = np.random.default_rng(1)
    b = np.array([0.0, 0.0, 1.0, 7.0, 3.0])
    own = rng.random(5) + 0.5
    loss = KINDS[kind](np.eye(5), b, sample_weight=own, scale=0.4)
    for q in (5 * rng.standard_normal(5), b, -100 * np.ones(5), np.zeros(5)):
        found = loss.prediction_prox(q, weight)
        near = np.linspace(-1, 1, 4001)
        for k in range(5):

            def value(u, k=k, q=q):
                with np.errstate(divide="ignore", invalid="ignore"):
                    own_loss = u - (b[k] * np.log(u) if b[k] else 0.0) if kind == "counts" else np.abs(u - b[k])
                return 0.4 * own[k] * own_loss + weight / 2 * (u - q[k]) ** 2

            reach = 1.0 + np.abs(q[k]) + 1 / weight
            wide = found[k] + np.concatenate([reach * near**3, 1e-3 * reach * near])
            wide = wide[wide >= 0] if kind == "counts" else wide
            assert value(found[k]) <= np.min(value(wide)) + 1e-12 * abs(value(found[k]))


def test_the_proximal_map_of_counts_keeps_all_digits_far_below_zero():
    loss = ell12.losses.KullbackLeiblerLoss(np.eye(1), [3.0])
    v = float(loss.prediction_prox(np.array([-1e9]), 1.0)[0])
    assert 1 - 3 / v + (v + 1e9) == pytest.approx(0, abs=1e-6)  # the derivative there
    assert v == pytest.approx(3e-9, rel=1e-6)


def test_complex_data_may_have_impulses():
    loss = ell12.losses.AbsoluteLoss(np.eye(2) * 1j, np.array([1 + 1j, 2.0]))
    assert loss.value(loss.point(np.zeros(2) + 0j)) == pytest.approx(np.sqrt(2) + 2)
    v = loss.prediction_prox(np.array([1 + 1j, 5.0]), 0.5)
    np.testing.assert_allclose(v, [1 + 1j, 3.0])


def test_what_is_no_expectation_of_counts_costs_infinitely_much():
    loss = ell12.losses.KullbackLeiblerLoss(np.eye(3), [0.0, 2.0, 1.0])
    assert loss.value(loss.point(np.array([0.0, 1.0, 1.0]))) == pytest.approx(2.0)
    assert loss.value(loss.point(np.array([-1.0, 1.0, 1.0]))) == np.inf
    assert loss.value(loss.point(np.array([0.0, 0.0, 1.0]))) == np.inf
    assert np.isfinite(loss.value(loss.point(np.array([-1e-17, 1.0, 1.0]))))  # rounding
    with pytest.raises(ValueError, match="counts"):
        ell12.losses.KullbackLeiblerLoss(np.eye(1), [-1.0])


def test_slopes_are_finite_where_nothing_is_expected():
    loss = ell12.losses.KullbackLeiblerLoss(np.eye(3), [2.0, 1.0, 0.0])
    slope = loss.gradient(loss.point(np.array([0.0, 1.0, 0.0])))
    assert -np.inf < slope[0] < -1e12
    np.testing.assert_allclose(slope[1:], [0.0, 1.0])


def test_counts_are_fitted_by_any_solver_that_backtracks():
    A, b, _, _ = data("counts", m=30, n=3)
    loss = ell12.losses.KullbackLeiblerLoss(A, b)
    solver, start = ell12.solvers.ProximalGradient(), np.ones(3)
    found = ell12.minimize(loss, ell12.penalties.NoPenalty(), start, solver, tol=1e-8)
    value, bounds = (lambda x: written_out("counts", A @ x, b, 1.0)), [(1e-9, None)] * 3
    best = scipy.optimize.minimize(value, start, bounds=bounds, tol=1e-14)
    assert found.converged
    np.testing.assert_allclose(found.x, best.x, atol=1e-4)


def test_a_loss_with_kinks_is_refused_by_solvers_of_smooth_ones():
    loss = ell12.losses.AbsoluteLoss(np.eye(2), np.ones(2))
    assert offers(loss, SplitLoss)
    assert {"divergence", "lipschitz"} <= set(missing(loss, Loss))
    for solver in (None, ell12.FISTA(), ell12.restoration.SmoothedGradient()):
        with pytest.raises(TypeError, match=r"AbsoluteLoss lacks .*divergence"):
            ell12.minimize(loss, ell12.L12(1.0), solver=solver)

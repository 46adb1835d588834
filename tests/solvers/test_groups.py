"""GroupNewton: nmAPG finds groups, Newton's method finishes in them."""

import numpy as np
import pytest
from tests.laws import certificates

from ell12 import L12, GroupL12, L12Classifier, L12Regressor, LogisticLoss, NonmonotoneAPG, SquaredLoss, minimize
from ell12.minimization.loop import DEFAULTS
from ell12.penalties import WithIntercept
from ell12.solvers import GroupNewton
from ell12.solvers import newton as module

GROUPS = np.arange(60) // 3


def coherent(seed, units=0.0):
    random = np.random.default_rng(seed)
    A = random.standard_normal((80, 60))
    A += 2 * np.sqrt(60) * A.mean(axis=1, keepdims=True)
    A *= 10.0 ** random.uniform(-units, units, 60)
    return A, A[:, :9] @ (random.standard_normal(9) / A[:, :9].std(axis=0)) + random.standard_normal(80)


def losses(seed, units=0.0):
    A, b = coherent(seed, units)
    return SquaredLoss(A, b, scale=1 / 80), LogisticLoss(A, np.where(b > 0, 1, -1), scale=1 / 80)


@pytest.mark.parametrize("kind", [0, 1])
def test_it_finds_the_convex_minimum_that_nmapg_finds(kind):
    loss = losses(0)[kind]
    penalty = GroupL12(GROUPS, 0.02, l2_weight=0.0)
    fast = minimize(loss, penalty, solver=GroupNewton(), tol=1e-9)
    slow = minimize(loss, penalty, solver=NonmonotoneAPG(), tol=1e-5, max_iter=50_000)
    assert fast.converged
    assert slow.converged
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-3 * np.abs(slow.x).max())
    assert fast.objective <= slow.objective * (1 + 1e-12)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", [0, 1])
def test_its_end_is_stationary_by_a_certificate_of_its_own(l2_weight, kind):
    A, b = coherent(7, units=2.0)
    loss = losses(7, units=2.0)[kind]
    penalty = GroupL12(GROUPS, 0.05, l2_weight)
    result = minimize(loss, penalty, tol=1e-6, max_iter=1000)
    assert result.converged
    name, observed = ("squared", b) if kind == 0 else ("logistic", np.where(b > 0, 1, -1))
    gradient = certificates.gradient_of(name, A, observed, result.x) / 80
    x, alpha = result.x, penalty.alpha
    for g in range(20):
        own = g == GROUPS
        rest = gradient[own] - alpha * l2_weight * x[own] / np.linalg.norm(x)
        size = np.linalg.norm(x[own])
        left = np.linalg.norm(rest + alpha * x[own] / size) if size else max(np.linalg.norm(rest) - alpha, 0)
        assert left <= 2e-6 * alpha


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [L12Regressor, L12Classifier])
def test_estimators_with_groups_end_on_coherent_columns_in_units_of_their_own(seed, kind):
    A, b = coherent(seed, units=3.0)
    penalty = GroupL12(GROUPS, l2_weight=1.0 if kind is L12Regressor else 0.5)
    model = kind(penalty=penalty).fit(A, b if kind is L12Regressor else b > 0)
    result = model.results_[0]
    assert result.converged
    assert result.n_iter < 150


def test_a_run_that_nmapg_ends_soon_is_nmapgs_to_the_last_bit():
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 60))
    loss = SquaredLoss(A, A[:, :6].sum(axis=1), scale=1 / 200)
    penalty = GroupL12(GROUPS, 0.1)
    fast, plain = (minimize(loss, penalty, solver=solver) for solver in (GroupNewton(), NonmonotoneAPG()))
    assert fast.n_iter < module.FIRST_STEPS
    assert np.array_equal(fast.x, plain.x)


def test_a_group_that_is_not_penalised_and_an_intercept_turn_freely():
    penalty = WithIntercept(GroupL12([0, 0, 1], 1.0, weights=[0.0, 1.0]))
    x, new = np.array([1.0, 1.0, 1.0, 1.0]), np.array([-1.0, -1.0, -1.0, -1.0])
    assert penalty.sign_changes(x, new).tolist() == [False, False, True, False]
    assert not penalty.sign_changes(x, x).any()


def test_too_many_columns_in_use_are_left_to_nmapg(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 0)
    monkeypatch.setattr(module.SmoothProblem, "newton_step", None)  # would fail
    result = minimize(losses(0)[0], GroupL12(GROUPS, 0.02), solver=GroupNewton(), max_iter=200)
    assert result.n_iter == 200


def test_it_is_the_default_for_groups_alone():
    assert isinstance(DEFAULTS[1], GroupNewton)
    A, b = coherent(0)
    with pytest.raises(TypeError, match=r"GroupNewton needs a penalty .* lacks sign_changes"):
        minimize(SquaredLoss(A, b), L12(0.1), solver=GroupNewton())

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import MultiTaskLasso

from ell12 import L12, NonmonotoneAPG, RowsL12, SquaredLoss, minimize


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 2.0], [0.0, np.inf, 1.0]])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2_weight", [0.0, 0.6, 1.0])
def test_one_column_is_l12(l2_weight, positive, weights):
    x = np.array([[1.0], [0.0], [-2.0]])
    gradient = np.array([[0.3], [-1.4], [0.2]])
    options = {"weights": weights, "positive": positive}
    rows, vector = RowsL12(0.7, l2_weight, **options), L12(0.7, l2_weight, **options)
    for z in (x, -np.abs(x), 0.1 * x, gradient):
        np.testing.assert_allclose(rows.prox(z, 0.5)[:, 0], vector.prox(z[:, 0], 0.5), atol=1e-15)
        assert rows.value(z) == pytest.approx(vector.value(z[:, 0]))
    for state in (np.abs(x) if positive else x, 0 * x):
        assert rows.violation(state, gradient) == pytest.approx(vector.violation(state[:, 0], gradient[:, 0]))


@given(st.integers(0, 10**6), st.floats(0.01, 3.0), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_no_point_near_or_far_is_better_than_the_prox(seed, t, l2_weight, positive):
    random = np.random.default_rng(seed)
    z, penalty = random.standard_normal((4, 3)), RowsL12(t, l2_weight, positive=positive)

    def objective(x):
        return 0.5 * np.sum((x - z) ** 2) + penalty.value(x)

    best = objective(penalty.prox(z, 1.0))
    directions = z / np.linalg.norm(z, axis=1, keepdims=True)
    for _ in range(60):  # rows along z, as a minimiser has them, and any others
        sizes = random.exponential(size=4) * (random.random(4) < 0.5) * np.linalg.norm(z, axis=1)
        assert best <= objective(sizes[:, None] * directions) + 1e-12
        assert best <= objective(sizes[:, None] * np.maximum(directions, 0)) + 1e-12
        assert best <= objective(random.standard_normal((4, 3)) * (random.random((4, 1)) < 0.5)) + 1e-12


def test_without_the_subtracted_norm_it_is_the_multi_task_lasso():
    random = np.random.default_rng(0)
    A, X = random.standard_normal((40, 15)), np.zeros((15, 3))
    X[[2, 7]] = random.standard_normal((2, 3))
    B = A @ X + 0.1 * random.standard_normal((40, 3))
    theirs = MultiTaskLasso(alpha=0.1, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, B)
    loss = SquaredLoss(A, B, scale=1 / 40)
    ours = minimize(loss, RowsL12(0.1, l2_weight=0.0), solver=NonmonotoneAPG(), tol=1e-9)
    np.testing.assert_allclose(ours.x, theirs.coef_.T, atol=1e-7)

import numpy as np
import pytest

import ell12
from ell12 import L12, ColumnsL12, ColumnwiseAPG, NonmonotoneAPG, SquaredLoss, minimize, stationarity

ALPHAS = np.array([1.0, 0.3, 0.05])


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    return random.standard_normal((20, 40)), random.standard_normal((20, 3))


@pytest.mark.parametrize("l2_weight", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_penalty_is_one_l12_for_each_column(l2_weight, nonnegative):
    random = np.random.default_rng(1)
    x = random.standard_normal((6, 3)) * (random.random((6, 3)) < 0.6)
    gradient = random.standard_normal((6, 3))
    if nonnegative:
        x = np.abs(x)
    columns = ColumnsL12(ALPHAS, l2_weight, nonnegative=nonnegative)
    alone = [L12(alpha, l2_weight, nonnegative=nonnegative) for alpha in ALPHAS]
    np.testing.assert_allclose(
        columns.values(x), [p.value(c) for p, c in zip(alone, x.T, strict=True)], atol=1e-14
    )
    assert columns.value(x) == pytest.approx(sum(p.value(c) for p, c in zip(alone, x.T, strict=True)))
    z = random.standard_normal((6, 3))
    expected = np.stack([p.prox(c, 0.4) for p, c in zip(alone, z.T, strict=True)], axis=1)
    np.testing.assert_allclose(columns.prox(z, 0.4), expected, rtol=1e-12)
    for state in (x, 0 * x):
        worst = max(p.violation(c, g) / p.alpha for p, c, g in zip(alone, state.T, gradient.T, strict=True))
        assert columns.violation(state, gradient) / columns.alpha == pytest.approx(worst, rel=1e-12)


def test_each_column_takes_the_steps_it_would_take_alone(problem):
    A, B = problem
    together = minimize(SquaredLoss(A, B), ColumnsL12(ALPHAS), solver=ColumnwiseAPG(), tol=0, max_iter=60)
    steps = iter(ColumnwiseAPG().iterates(*_joint(A, B)))
    joint = [next(steps).point.x for _ in range(60)]
    for k, alpha in enumerate(ALPHAS):
        loss = SquaredLoss(A, B[:, k])
        alone = iter(
            NonmonotoneAPG(step=1 / SquaredLoss(A, B).lipschitz()).iterates(
                loss, L12(alpha), loss.point(loss.start())
            )
        )
        for x in joint:
            np.testing.assert_allclose(x[:, k], next(alone).point.x, rtol=1e-7, atol=1e-9)
    assert together.n_iter == 60


def _joint(A, B):
    loss = SquaredLoss(A, B)
    return loss, ColumnsL12(ALPHAS), loss.point(loss.start())


def test_convergence_means_every_column(problem):
    A, B = problem
    result = minimize(SquaredLoss(A, B), ColumnsL12(ALPHAS), solver=ColumnwiseAPG(), tol=1e-6)
    assert result.converged
    for k, alpha in enumerate(ALPHAS):
        assert stationarity(SquaredLoss(A, B[:, k]), L12(alpha), result.x[:, k]) <= 1e-6


def test_folds_are_columns_of_weights(problem):
    A, B = problem
    y, folds = B[:, 0], np.arange(20) % 3
    weights = (folds[:, None] != np.arange(3)).astype(float)
    loss = SquaredLoss(A, np.stack([y] * 3, axis=1), sample_weight=weights)
    result = minimize(loss, ColumnsL12([0.3] * 3), solver=ColumnwiseAPG(), tol=1e-7)
    assert result.converged
    for k in range(3):
        train = folds != k
        assert stationarity(SquaredLoss(A[train], y[train]), L12(0.3), result.x[:, k]) <= 1e-7


def test_other_arrays(backend):
    random = np.random.default_rng(0)
    A, B = random.standard_normal((12, 20)), random.standard_normal((12, 2))
    expected = minimize(SquaredLoss(A, B), ColumnsL12([0.5, 0.2]), solver=ColumnwiseAPG(), tol=0, max_iter=20)
    loss = SquaredLoss(backend.make_array(A), backend.make_array(B))
    result = minimize(loss, ColumnsL12([0.5, 0.2]), solver=ColumnwiseAPG(), tol=0, max_iter=20)
    assert type(result.x) is type(backend.make_array(A))
    tolerance = {"rtol": 1e-9, "atol": 1e-12} if backend.float64 else {"rtol": 2e-3, "atol": 1e-4}
    np.testing.assert_allclose(backend.to_numpy(result.x), expected.x, **tolerance)


@pytest.mark.parametrize("alphas", [[], [[1.0]], [0.0, 1.0], [np.nan], [-1.0]])
def test_bad_strengths_are_named(alphas):
    with pytest.raises(ValueError, match="alphas"):
        ColumnsL12(alphas)


def test_wrong_shapes_and_partners_are_named(problem):
    A, B = problem
    with pytest.raises(ValueError, match="one column for each of 2 alphas"):
        minimize(SquaredLoss(A, B), ColumnsL12([1.0, 2.0]), solver=ColumnwiseAPG())
    with pytest.raises(TypeError, match="L12 lacks"):
        minimize(SquaredLoss(A, B), ell12.L12(1.0), solver=ColumnwiseAPG())
    with pytest.raises(ValueError, match="sample_weight"):
        SquaredLoss(A, B, sample_weight=np.ones((20, 2)))

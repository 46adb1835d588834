import numpy as np
import pytest

import ell12
from ell12 import L12, NonmonotoneAPG, SquaredLoss, Status, minimize, stationarity
from ell12.path.columnwise import ColumnsL12, ColumnsWithIntercept, ColumnwiseAPG, InterceptSquaredLoss

ALPHAS = np.array([1.0, 0.3, 0.05])


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    return random.standard_normal((20, 40)), random.standard_normal((20, 3))


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 2.0, 0.5, 1.0, 0.0], [1.0, 2.0, np.inf, 0.5, 1.0, 1.0]])
@pytest.mark.parametrize("l2_weight", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("positive", [False, True])
def test_the_penalty_is_one_l12_for_each_column(l2_weight, positive, weights):
    random = np.random.default_rng(1)
    x = random.standard_normal((6, 3)) * (random.random((6, 3)) < 0.6)
    gradient = random.standard_normal((6, 3))
    if positive:
        x = np.abs(x)
    if weights is not None:
        x[np.isinf(weights)] = 0
    columns = ColumnsL12(ALPHAS, l2_weight, weights=weights, positive=positive)
    alone = [L12(alpha, l2_weight, weights=weights, positive=positive) for alpha in ALPHAS]
    np.testing.assert_allclose(
        columns.values(x), [p.value(c) for p, c in zip(alone, x.T, strict=True)], atol=1e-14
    )
    assert columns.value(x) == pytest.approx(sum(p.value(c) for p, c in zip(alone, x.T, strict=True)))
    z = random.standard_normal((6, 3))
    expected = np.stack([p.prox(c, 0.4) for p, c in zip(alone, z.T, strict=True)], axis=1)
    np.testing.assert_allclose(columns.prox(z, 0.4), expected, rtol=1e-12)
    for state in (x, 0 * x):
        each = [p.violation(c, g) / p.alpha for p, c, g in zip(alone, state.T, gradient.T, strict=True)]
        np.testing.assert_allclose(columns.stationarities(state, gradient), each, rtol=1e-12)
        assert columns.violation(state, gradient) / columns.alpha == pytest.approx(max(each), rel=1e-12)
        slopes = [p.subtracted_gradient(c) for p, c in zip(alone, state.T, strict=True)]
        np.testing.assert_allclose(columns.subtracted_gradient(state), np.stack(slopes, axis=1), rtol=1e-12)


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


def test_columns_that_have_arrived_leave_the_products(problem, monkeypatch):
    A, B = problem
    loss, penalty = SquaredLoss(A, B), ColumnsL12(ALPHAS)
    expected = minimize(loss, penalty, solver=ColumnwiseAPG(), tol=1e-6)
    widths, plain = [], SquaredLoss.gradient_of
    monkeypatch.setattr(SquaredLoss, "gradient_of", lambda self, s: widths.append(s.shape[1]) or plain(self, s))
    result = minimize(loss, penalty, solver=ColumnwiseAPG(rest=1e-6), tol=1e-6)
    assert result.converged
    assert result.n_iter <= expected.n_iter
    assert widths[0] == 3
    assert set(widths[-20:]) == {1}  # the last steps move the slowest column alone
    stationarities = penalty.stationarities(result.x, loss.gradient(loss.point(result.x)))
    assert result.stationarity == pytest.approx(stationarities.max(), rel=1e-6)
    assert result.objective == pytest.approx(loss.value(loss.point(result.x)) + penalty.value(result.x))
    np.testing.assert_allclose(result.x, expected.x, atol=1e-5)


def test_a_run_that_asks_for_more_than_the_columns_do_ends(problem):
    A, B = problem
    result = minimize(SquaredLoss(A, B), ColumnsL12(ALPHAS), solver=ColumnwiseAPG(rest=1e-3), tol=1e-6)
    assert result.status is Status.ENDED
    assert 1e-6 < result.stationarity <= 1e-3


def test_units_are_what_violations_are_measured_by():
    gradient = np.array([[3.0, 3.0], [0.0, 0.5]])
    penalty = ColumnsL12([1.0, 1.0], 0.0, units=[1.0, 10.0])
    np.testing.assert_allclose(penalty.stationarities(np.zeros((2, 2)), gradient), [2.0, 0.2])
    assert penalty.violation(np.zeros((2, 2)), gradient) / penalty.alpha == pytest.approx(2.0)
    alone = ColumnsWithIntercept(ColumnsL12([1.0, 1.0], 0.0, units=[1.0, 10.0]))
    x, gradient = np.zeros((3, 2)), np.vstack([gradient, [[-5.0, 5.0]]])
    np.testing.assert_allclose(alone.stationarities(x, gradient), [5.0, 0.5])
    assert alone.violation(x, gradient) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="units must have the shape"):
        ColumnsL12([1.0, 1.0], units=[1.0])


def test_an_intercept_of_each_column_is_found_and_not_iterated(problem):
    A, B = problem
    random = np.random.default_rng(2)
    weights = random.uniform(0, 1, B.shape) * (random.random(B.shape) < 0.7)
    loss = InterceptSquaredLoss(A, B + 7, sample_weight=weights)
    point, other = (loss.point(random.standard_normal((40, 3))) for _ in range(2))
    for k in range(3):
        w = weights[:, k] / weights[:, k].sum()
        centred = SquaredLoss(A - w @ A, B[:, k] - w @ B[:, k], sample_weight=weights[:, k])
        alone = centred.point(point.x[:, k])
        assert loss.values(point)[k] == pytest.approx(centred.value(alone))
        np.testing.assert_allclose(loss.gradient(point)[:, k], centred.gradient(alone), rtol=1e-9)
        level = 7 + w @ B[:, k] - w @ A @ point.x[:, k]
        assert loss.intercepts(point)[k] == pytest.approx(level)
        assert centred.lipschitz() <= loss.lipschitz()
    small = loss.select_problems(np.array([2, 0]))
    some = small.point(point.x[:, [2, 0]])
    np.testing.assert_allclose(small.values(some), loss.values(point)[[2, 0]])
    np.testing.assert_allclose(small.intercepts(some), loss.intercepts(point)[[2, 0]])
    linear = np.sum(loss.gradient(other) * (point.x - other.x))
    assert loss.divergence(point, other) == pytest.approx(loss.value(point) - loss.value(other) - linear)
    for refused in (lambda: loss.hessian(point), lambda: loss.batches(3)):
        with pytest.raises(TypeError, match="join them"):
            refused()


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


def test_other_arrays(each_library):
    random = np.random.default_rng(0)
    A, B = random.standard_normal((12, 20)), random.standard_normal((12, 2))
    expected = minimize(SquaredLoss(A, B), ColumnsL12([0.5, 0.2]), solver=ColumnwiseAPG(), tol=0, max_iter=20)
    loss = SquaredLoss(each_library.make_array(A), each_library.make_array(B))
    result = minimize(loss, ColumnsL12([0.5, 0.2]), solver=ColumnwiseAPG(), tol=0, max_iter=20)
    assert type(result.x) is type(each_library.make_array(A))
    tolerance = {"rtol": 1e-9, "atol": 1e-12} if each_library.float64 else {"rtol": 2e-3, "atol": 1e-4}
    np.testing.assert_allclose(each_library.to_numpy(result.x), expected.x, **tolerance)


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

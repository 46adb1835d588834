"""The ordinal hinge loss: thresholds by a scalar search, gradients by differences, predictions by counting."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ell12 import SpectralL12, minimize
from ell12.completion import (
    AlternatingLeastSquares,
    BlockAPG,
    CompletionLoss,
    FactoredAPG,
    LowRank,
    Observed,
)
from ell12.completion.ordinal import OrdinalHingeLoss
from ell12.penalties import NoPenalty
from ell12.protocols import Point
from ell12_paper.rivals import ARSSM3F, SquaredFrobenius


def hinge(z):
    return np.where(z < 0, 0.5 - z, np.where(z < 1, 0.5 * (1 - z) ** 2, 0.0))


def ratings(seed=0, m=40, n=30, rank=2, levels=5, fraction=0.6):
    """A matrix of levels 1, 2, ..., cut from one of low rank, and which entries are known."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    edges = np.quantile(X, np.arange(1, levels) / levels)
    return np.searchsorted(edges, X) + 1.0, rng.random((m, n)) < fraction


@pytest.fixture
def loss():
    return OrdinalHingeLoss(Observed.from_mask(*ratings()))


def some_point(loss, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    m, n = loss.observed.shape
    return loss.point(LowRank.from_factors(scale * rng.standard_normal((m, 2)), rng.standard_normal((n, 2))))


def threshold_cost(t, r, loss, prediction):
    below = loss.levels <= r
    return hinge(t - prediction[below]).sum() + hinge(prediction[~below] - t).sum()


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
def test_each_threshold_is_the_best_one(loss, scale):
    point = some_point(loss, scale=scale)
    thresholds = loss.thresholds(point)
    assert np.all(np.diff(thresholds) >= -1e-9)
    total = 0.0
    for r, threshold in enumerate(thresholds):
        bounds = (point.prediction.min() - 2, point.prediction.max() + 2)
        cost_of = partial(threshold_cost, r=r, loss=loss, prediction=point.prediction)
        searched = minimize_scalar(cost_of, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        cost = threshold_cost(threshold, r, loss, point.prediction)
        assert cost <= searched.fun * (1 + 1e-9)
        total += cost
    assert loss.value(point) == pytest.approx(total, rel=1e-12)


def test_gradient_by_differences(loss):
    point = some_point(loss)
    direction = np.random.default_rng(2).standard_normal(point.prediction.size)

    def value(t):
        return loss.value(Point(None, point.prediction + t * direction))

    difference = (value(1e-5) - value(-1e-5)) / 2e-5
    assert difference == pytest.approx(float(loss.residual(point) @ direction), rel=1e-5)
    np.testing.assert_array_equal(loss.gradient(point).data, loss.residual(point))


def test_divergence_is_not_negative_and_within_the_lipschitz_bound(loss):
    a, b = some_point(loss, 1), some_point(loss, 2)
    square = float(np.sum((a.prediction - b.prediction) ** 2))
    assert 0 <= loss.divergence(a, b) <= 0.5 * loss.lipschitz() * square
    assert loss.lipschitz() == 4


def test_quantisation_into_levels():
    values = np.array([[0.0, 0.1, 0.26], [0.5, 0.99, 1.0]])
    loss = OrdinalHingeLoss(values, n_levels=4)
    np.testing.assert_allclose(loss.level_values, [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_array_equal(loss.levels, [0, 0, 1, 2, 3, 3])
    few = OrdinalHingeLoss(np.array([[0.0, 1.0]]), n_levels=10)
    np.testing.assert_allclose(few.level_values, [0.05, 0.95])


def test_levels_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="two different levels"):
        OrdinalHingeLoss(np.ones((3, 2)))
    with pytest.raises(ValueError, match="n_levels"):
        OrdinalHingeLoss(np.random.default_rng(0).random((20, 20)))
    with pytest.raises(ValueError, match="n_levels"):
        OrdinalHingeLoss(np.eye(3), n_levels=-1)


@pytest.mark.parametrize("penalty", [NoPenalty(), SquaredFrobenius(0.02)])
def test_ordinal_ratings_are_predicted_better_than_by_a_constant_or_least_squares(penalty):
    levels, known = ratings()
    rows, columns = np.nonzero(~known)
    truth = levels[~known]
    loss = OrdinalHingeLoss(Observed.from_mask(levels, known))
    result = minimize(loss, penalty, solver=ARSSM3F(max_rank=2), max_iter=60)
    error = np.abs(loss.predict(result.x, rows, columns) - truth).mean()
    constant = min(np.abs(level - truth).mean() for level in range(1, 6))
    least_squares = minimize(
        CompletionLoss(loss.observed), NoPenalty(), solver=ARSSM3F(max_rank=2), max_iter=60
    ).x.entries(rows, columns)
    assert error < 0.3 * constant
    assert error < np.abs(np.clip(np.round(least_squares), 1, 5) - truth).mean()
    assert np.all(np.diff(result.history["objective"]) <= 1e-9)


def test_quantised_pixels():
    rng = np.random.default_rng(4)
    image = rng.random((30, 1)) @ rng.random((1, 25))
    known = rng.random(image.shape) < 0.6
    loss = OrdinalHingeLoss(Observed.from_mask(image, known), n_levels=8)
    result = minimize(loss, NoPenalty(), solver=ARSSM3F(max_rank=2), max_iter=60)
    predicted = loss.predict(result.x, *np.nonzero(~known))
    error = np.sqrt(np.mean((predicted - image[~known]) ** 2))
    assert error < 0.5 * image[~known].std()


@pytest.mark.parametrize("solver", [BlockAPG(), FactoredAPG()])
def test_proximal_solvers_take_the_step_that_the_loss_allows(solver):
    loss = OrdinalHingeLoss(Observed.from_mask(*ratings(m=15, n=12, levels=4)))
    penalty = SpectralL12(1.0, l2_weight=0.0)  # convex: there is one minimum
    x = np.zeros((15, 12))
    for _ in range(600):  # plain proximal gradient on dense matrices
        gradient = loss.gradient(Point(None, x[loss.observed.rows, loss.observed.columns])).toarray()
        U, s, Vt = np.linalg.svd(x - gradient / 3)
        x = U[:, :12] * np.maximum(s - 1 / 3, 0) @ Vt
    expected = loss.value(Point(None, x[loss.observed.rows, loss.observed.columns])) + penalty.value(x)
    result = minimize(loss, penalty, solver=solver, tol=1e-3)
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=1e-6)


def test_alternating_least_squares_refuses_a_loss_that_is_not_squared(loss):
    with pytest.raises(TypeError, match=r"AlternatingLeastSquares .*OrdinalHingeLoss.* lacks make_sweep"):
        minimize(loss, SpectralL12(1.0), solver=AlternatingLeastSquares(3))

"""Huber, Poisson and multinomial estimators: against R's glmnet, scikit-learn and definitions."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import log_loss, mean_poisson_deviance
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from ell12 import L1, L12, L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV
from ell12.linear_model import Huber
from ell12.linear_model.families import median, robust_scale

R = json.loads((Path(__file__).parents[1] / "data" / "glmnet.json").read_text())
X, WEIGHTS, OFFSET = np.array(R["X"]), np.array(R["weights"], dtype=float), np.array(R["offset"])
COUNTS, CLASSES = np.array(R["counts"]), np.array(R["classes"])
N = len(X)


def objective(kind, coef, intercept, alpha, weight, offset=0.0):
    """The objective of glmnet, written out."""
    weight = np.ones(N) if weight is None else weight
    eta = X @ np.transpose(coef) + np.asarray(intercept)
    if kind == "poisson":
        eta = eta + offset
        losses = np.exp(eta) - COUNTS * eta
    elif kind == "binomial":
        losses = np.logaddexp(0, -(2 * np.array(R["labels"]) - 1) * np.ravel(eta))
    else:
        losses = logsumexp(eta, axis=1) - eta[np.arange(N), CLASSES]
    return weight @ losses / weight.sum() + alpha * np.abs(coef).sum()


def assert_as_good_as_glmnet(model, kind, found, weight=None, offset=0.0):
    ours = objective(kind, model.coef_, model.intercept_, found["alpha"], weight, offset)
    theirs = objective(kind, np.array(found["coef"]), found["intercept"], found["alpha"], weight, offset)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs + 1e-12  # both are minima of one convex function
    np.testing.assert_allclose(np.ravel(model.coef_), np.ravel(found["coef"]), atol=1e-5)
    np.testing.assert_allclose(np.ravel(model.intercept_), np.ravel(found["intercept"]), atol=1e-5)


# R's glmnet at l2_weight = 0


GLMNET = {
    "poisson": ("poisson", L12Regressor(loss="poisson"), COUNTS, {}),
    "poisson_offset": (
        "poisson",
        L12Regressor(loss="poisson"),
        COUNTS,
        {"sample_weight": WEIGHTS, "offset": OFFSET},
    ),
    "binomial": ("binomial", L12Classifier(), R["labels"], {"sample_weight": WEIGHTS}),
    "multinomial": ("multinomial", L12Classifier(loss="multinomial"), CLASSES, {}),
    "multinomial_weights": ("multinomial", L12Classifier(loss="multinomial"), CLASSES, {"sample_weight": WEIGHTS}),
}


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", GLMNET)
def test_counts_and_classes_are_fitted_as_by_glmnet(name, form):
    (kind, model, y, given), found = GLMNET[name], R[name]
    model = clone(model).set_params(alpha=found["alpha"], penalty=L1(), tol=1e-8).fit(form(X), y, **given)
    assert_as_good_as_glmnet(model, kind, found, *given.values())


# Poisson


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weights"])
def test_without_a_penalty_counts_are_fitted_as_by_scikit_learn(weight):
    ours = L12Regressor(0.0, loss="poisson", penalty=L1(), tol=1e-9).fit(X, COUNTS, sample_weight=weight)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(X, COUNTS, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    assert ours.score(X, COUNTS, weight) == pytest.approx(theirs.score(X, COUNTS, weight), abs=1e-8)


def test_an_offset_is_a_known_part_of_the_logarithm_of_the_mean():
    """Counting twice as long doubles the counts and leaves the coefficients."""
    model = L12Regressor(0.05, loss="poisson", tol=1e-9).fit(X, COUNTS)
    longer = L12Regressor(0.05, loss="poisson", tol=1e-9).fit(X, COUNTS, offset=np.full(N, np.log(2.0)))
    np.testing.assert_allclose(longer.coef_, model.coef_, atol=1e-8)
    assert longer.intercept_ == pytest.approx(model.intercept_ - np.log(2.0), abs=1e-8)
    np.testing.assert_allclose(longer.predict(X, offset=np.full(N, np.log(2.0))), model.predict(X), rtol=1e-7)
    shifted = longer.score(X, COUNTS, offset=np.full(N, np.log(2.0)))
    assert shifted == pytest.approx(model.score(X, COUNTS), abs=1e-8)


def test_large_counts_and_small_ones_converge_from_the_rate_of_all():
    for size in (1e-6, 1e6, 1e12):
        model = L12Regressor(0.01 * size, loss="poisson", tol=1e-6).fit(X, size * COUNTS)
        assert model.results_[0].converged
        assert model.results_[0].n_iter < 50
        assert np.sum(model.predict(X)) == pytest.approx(
            size * COUNTS.sum(), rel=1e-5
        )  # the intercept's condition


def test_cross_validation_of_counts_is_judged_by_the_deviance():
    alphas, cv = [0.5, 0.1, 0.02], KFold(4)
    options = {"loss": "poisson", "alphas": alphas, "cv": cv, "relax": False}
    model = L12RegressorCV(penalty=L12(l2_weight=0.5), tol=1e-8, **options)
    model.fit(X, COUNTS, sample_weight=WEIGHTS, offset=OFFSET)
    for k, (train, test) in enumerate(cv.split(X)):
        part = L12Regressor(0.1, loss="poisson", penalty=L12(l2_weight=0.5), tol=1e-8)
        part.fit(X[train], COUNTS[train], sample_weight=WEIGHTS[train], offset=OFFSET[train])
        found = part.predict(X[test], offset=OFFSET[test])
        expected = mean_poisson_deviance(COUNTS[test], found, sample_weight=WEIGHTS[test])
        assert model.mse_path_[1, k] == pytest.approx(expected, rel=1e-4)
    assert model.alpha_ == alphas[int(np.argmin(model.mse_path_.mean(axis=1)))]
    scored, plain = L12RegressorCV(scoring="neg_mean_poisson_deviance", **options), L12RegressorCV(**options)
    np.testing.assert_allclose(-scored.fit(X, COUNTS).scores_, plain.fit(X, COUNTS).mse_path_, rtol=1e-10)


# Huber


def test_outliers_count_little_with_hubers_loss():
    random = np.random.default_rng(0)
    truth = np.array([2.0, -1.0, 0, 0, 0, 0, 0, 0])
    y = X @ truth + 0.1 * random.standard_normal(N)
    y[:6] += 1000
    robust = L12Regressor(0.01, loss=Huber(0.2)).fit(X, y)
    np.testing.assert_allclose(robust.coef_, truth, atol=0.3)
    assert np.abs(L12Regressor(0.01).fit(X, y).coef_ - truth).max() > 5


def test_hubers_loss_is_minimised_at_the_threshold_that_is_documented():
    random = np.random.default_rng(1)
    y = 5 + X[:, 0] - X[:, 3] + random.standard_t(1.5, N)
    model = L12Regressor(0.05, loss=Huber(1.0), penalty=L1(), tol=1e-9).fit(X, y, sample_weight=WEIGHTS)
    repeated = np.sort(np.repeat(y, WEIGHTS.astype(int)))
    middle = (repeated.size - 1) // 2
    scale = np.sort(np.abs(repeated - repeated[middle]))[middle] / norm.ppf(0.75)
    assert model.scale_ == pytest.approx(scale, rel=1e-12)

    def smooth(parts):
        """Positive and negative parts of the coefficients, and the intercept."""
        residual = np.abs(X @ (parts[:8] - parts[8:16]) + parts[16] - y)
        huber = np.where(residual <= model.scale_, 0.5 * residual**2, model.scale_ * (residual - model.scale_ / 2))
        return WEIGHTS @ huber / WEIGHTS.sum() + 0.05 * parts[:16].sum()

    start = np.append(np.zeros(16), np.median(y))
    bounds = [(0, None)] * 16 + [(None, None)]
    found = scipy_minimize(
        smooth, start, bounds=bounds, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15}
    )
    ours = np.concatenate([np.maximum(model.coef_, 0), np.maximum(-model.coef_, 0), [model.intercept_]])
    assert smooth(ours) <= found.fun + 1e-10


def test_scales_are_those_of_normal_numbers_and_never_zero():
    values = np.random.default_rng(0).normal(7, 3, 100_001)
    assert robust_scale(values, None, True) == pytest.approx(3, rel=0.02)
    assert robust_scale(values - 7, None, False) == pytest.approx(3, rel=0.02)
    assert robust_scale(np.array([1.0, 1.0, 1.0, 5.0]), None, True) == 1.0  # the mean distance
    assert robust_scale(np.ones(4), None, True) == 1.0
    weight = np.array([0, 3, 1, 2])
    assert median(np.array([9.0, 2.0, 5.0, 3.0]), weight) == median(np.repeat([9.0, 2.0, 5.0, 3.0], weight))


# Multinomial


def test_probabilities_of_several_classes_are_a_softmax():
    model = L12Classifier(0.02, loss="multinomial").fit(X, CLASSES)
    scores = model.decision_function(X)
    expected = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), np.argmax(scores, axis=1))
    assert model.coef_.shape == (3, 8)
    assert model.intercept_.mean() == pytest.approx(0, abs=1e-12)


def test_of_two_classes_the_softmax_is_the_logistic_function():
    labels = np.array(R["labels"])
    plain, joint = (
        L12Classifier(0.02, loss="multinomial" if joint else "logistic").fit(X, labels) for joint in (False, True)
    )
    np.testing.assert_array_equal(joint.coef_, plain.coef_)
    np.testing.assert_array_equal(joint.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_order_of_classes_and_their_names_do_not_matter(l2_weight):
    options = {"loss": "multinomial", "penalty": L12(l2_weight=l2_weight), "tol": 1e-8}
    plain = L12Classifier(0.05, **options).fit(X, CLASSES)
    named = L12Classifier(0.05, **options).fit(X, np.array(["c", "a", "b"])[CLASSES])
    np.testing.assert_allclose(named.coef_[[2, 0, 1]], plain.coef_, atol=1e-5)


def test_features_without_a_penalty_and_signs_hold_for_all_classes():
    factors = np.r_[0.0, np.ones(7)]
    model = L12Classifier(10.0, loss="multinomial", penalty=L12(l2_weight=0.5, weights=factors)).fit(X, CLASSES)
    assert (model.coef_[:, 0] != 0).sum() >= 2
    assert not model.coef_[:, 1:].any()
    positive = L12Classifier(0.01, loss="multinomial", penalty=L12(l2_weight=0.5, positive=True)).fit(X, CLASSES)
    assert (positive.coef_ >= 0).all()
    assert (positive.intercept_ < 0).any()


def test_cross_validation_of_classes_is_judged_by_the_probabilities():
    alphas, cv = [0.2, 0.05], [(np.arange(N) % 3 != k, np.arange(N) % 3 == k) for k in range(3)]
    cv = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in cv]
    model = L12ClassifierCV(loss="multinomial", alphas=alphas, cv=cv, tol=1e-8).fit(X, CLASSES)
    for k, (train, test) in enumerate(cv):
        part = L12Classifier(0.05, loss="multinomial", tol=1e-8).fit(X[train], CLASSES[train])
        expected = -log_loss(CLASSES[test], part.predict_proba(X[test]))
        assert model.scores_[1, k] == pytest.approx(expected, rel=1e-5)


BOTH = np.column_stack([COUNTS, COUNTS])


@pytest.mark.parametrize(
    ("options", "y", "offset", "message"),
    [
        ({"loss": "poisson"}, COUNTS - 5, None, "y must hold counts"),
        ({"loss": "poisson"}, 0 * COUNTS, None, "no count above 0"),
        ({"loss": "poisson"}, COUNTS, OFFSET[:3], "offset must have shape"),
        ({}, COUNTS.astype(np.float32), 10**30, "offset must have shape"),
        ({"loss": "poisson"}, COUNTS, np.full(N, np.nan), "offset"),
        ({}, BOTH, OFFSET, "offset needs one target"),
        ({"loss": "gamma"}, COUNTS, None, "loss"),
        ({"loss": Huber}, COUNTS, None, "loss must be"),
    ],
)
def test_wrong_calls_are_refused_by_name(options, y, offset, message):
    with pytest.raises((TypeError, ValueError), match=message):
        L12Regressor(0.1, **options).fit(X, y, offset=offset)


def test_what_takes_one_loss_alone_says_so():
    dask = pytest.importorskip("dask.array")
    chunks, counts = dask.from_array(X, chunks=(20, 8)), dask.from_array(COUNTS, chunks=20)
    for model, word in (
        (L12Regressor(0.1, loss="huber"), "squared"),
        (L12Regressor(0.1, loss="poisson"), "squared"),
        (L12Classifier(0.1, loss="multinomial"), "logistic"),
    ):
        with pytest.raises(AttributeError) as raised:
            _ = model.partial_fit
        assert f"partial_fit needs loss='{word}'" in str(raised.value.__cause__)
        with pytest.raises(ValueError, match=f"data in chunks needs loss='{word}'"):
            model.fit(chunks, counts)
    fitted = L12Regressor(0.1, loss="poisson").fit(X, COUNTS)
    np.testing.assert_allclose(fitted.predict(chunks).compute(), fitted.predict(X), rtol=1e-12)
    with pytest.raises(TypeError, match="offset"):
        L12Regressor(0.1).fit(chunks, counts, offset=OFFSET)
    with pytest.raises(ValueError, match="scoring knows no offset"):
        L12RegressorCV(loss="poisson", scoring="r2").fit(X, COUNTS, offset=OFFSET)


def test_a_long_path_of_softmax_on_nearly_separated_classes_converges():
    features, species = load_iris(return_X_y=True)
    model = L12ClassifierCV(loss="multinomial", alphas=20).fit(StandardScaler().fit_transform(features), species)
    assert model.results_[0].converged  # in the folds too, for a warning would be an error
    assert np.abs(model.intercept_).max() < 100  # along a constant for all, steps once had no bound

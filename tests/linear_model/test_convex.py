"""At l2_weight 0 the estimators are scikit-learn's convex ones, with and without a ridge."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    LogisticRegression,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
)
from sklearn.model_selection import KFold

from ell12 import L1, L12, L12Classifier, L12Regressor, L12RegressorCV, RowsL12, l12_path

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 12)) + RANDOM.uniform(-1, 1, 12)
X[RANDOM.random((60, 12)) < 0.4] = 0
Y = 3 + X[:, [1, 4]] @ [[1.0, 2.0, -1.0], [-2.0, 1.0, 0.5]] + 0.5 * RANDOM.standard_normal((60, 3))
COUNTS = np.arange(60) % 3  # weights, as MultiTaskElasticNet takes none
FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
EXACT = {"tol": 1e-12, "max_iter": 100_000}
cases = [
    pytest.mark.parametrize("ridge", [0.0, 0.7]),
    pytest.mark.parametrize("weighted", [False, True]),
    pytest.mark.parametrize("fit_intercept", [False, True]),
    pytest.mark.parametrize("form", FORMS),
]


def in_all_cases(function):
    for case in cases:
        function = case(function)
    return function


def elastic(kind, ridge, alpha=None, **options):
    strength = {} if alpha is None else {"alpha": alpha * (1 + ridge)}
    return kind(l1_ratio=1 / (1 + ridge), **strength, **EXACT, **options)


def assert_same(ours, theirs, atol=1e-6):
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_ + 0 * ours.intercept_, atol=atol)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=atol)
    np.testing.assert_array_equal(ours.coef_ != 0, theirs.coef_ != 0)


@in_all_cases
@pytest.mark.parametrize("positive", [False, True])
def test_a_regression_is_the_elastic_net(positive, form, fit_intercept, weighted, ridge):
    weight, options = COUNTS if weighted else None, {"fit_intercept": fit_intercept}
    penalty = L1(ridge=ridge, positive=positive)
    ours = L12Regressor(0.05, penalty=penalty, tol=1e-9, **options).fit(FORMS[form](X), Y[:, 0], weight)
    theirs = elastic(ElasticNet, ridge, 0.05, positive=positive, **options).fit(X, Y[:, 0], weight)
    assert_same(ours, theirs)


@in_all_cases
def test_joint_targets_are_the_multi_task_elastic_net(form, fit_intercept, weighted, ridge):
    options, rows = {"fit_intercept": fit_intercept}, np.repeat(np.arange(60), COUNTS if weighted else 1)
    ours = L12Regressor(0.1, penalty=RowsL12(l2_weight=0.0, ridge=ridge), tol=1e-9, **options)
    ours.fit(FORMS[form](X), Y, COUNTS if weighted else None)
    assert_same(ours, elastic(MultiTaskElasticNet, ridge, 0.1, **options).fit(X[rows], Y[rows]))
    assert isinstance(ours.n_iter_, int)


@in_all_cases
def test_cross_validation_is_that_of_the_elastic_net(form, fit_intercept, weighted, ridge):
    weight, options = COUNTS if weighted else None, {"fit_intercept": fit_intercept, "cv": KFold(3), "alphas": 8}
    ours = L12RegressorCV(penalty=L1(ridge=ridge), tol=1e-8, relax=False, **options)
    theirs = elastic(ElasticNetCV, ridge, **options).fit(X, Y[:, 0], weight)
    compare_searches(ours.fit(FORMS[form](X), Y[:, 0], weight), theirs, ridge)


def test_cross_validation_of_joint_targets_is_that_of_the_multi_task_elastic_net():
    ours = L12RegressorCV(penalty=RowsL12(l2_weight=0.0), alphas=8, cv=KFold(3), tol=1e-8, relax=False).fit(X, Y)
    compare_searches(ours, elastic(MultiTaskElasticNetCV, 0.0, alphas=8, cv=KFold(3)).fit(X, Y), 0.0)


def compare_searches(ours, theirs, ridge):
    np.testing.assert_allclose(ours.alphas_ * (1 + ridge), theirs.alphas_, rtol=1e-8)
    np.testing.assert_allclose(ours.mse_path_, np.squeeze(theirs.mse_path_), rtol=1e-6)
    assert ours.alpha_ * (1 + ridge) == pytest.approx(theirs.alpha_, rel=1e-8)
    assert_same(ours, theirs)


def test_a_path_is_that_of_the_elastic_net():
    alphas, coefs, _ = l12_path(X, Y[:, 0], alphas=8, tol=1e-9, penalty=L12(l2_weight=0, ridge=0.7))
    _, theirs, _ = ElasticNet.path(X, Y[:, 0], alphas=alphas * 1.7, l1_ratio=1 / 1.7, **EXACT)
    np.testing.assert_allclose(coefs, theirs, atol=1e-7)


@in_all_cases
def test_two_classes_are_logistic_regression(form, fit_intercept, weighted, ridge):
    y, weight = Y[:, 0] > 3, COUNTS if weighted else None
    ours = L12Classifier(0.03, penalty=L1(ridge=ridge), fit_intercept=fit_intercept, tol=1e-9)
    ours.fit(FORMS[form](X), y, weight)
    C = 1 / (0.03 * (1 + ridge) * (60 if weight is None else weight.sum()))
    theirs = LogisticRegression(
        C=C, l1_ratio=1 / (1 + ridge), solver="saga", fit_intercept=fit_intercept, tol=1e-10, max_iter=100_000
    ).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-5)


def test_chunks_and_rows_on_workers_have_the_ridge_too():
    whole = L12Regressor(0.1, penalty=L12(l2_weight=0.5, ridge=0.7), tol=1e-10).fit(X, Y[:, 0])
    parts = clone(whole)
    for rows in np.array_split(np.arange(60), 3):
        parts.partial_fit(X[rows], Y[rows, 0])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)
    da = pytest.importorskip("dask.array")
    far = clone(whole).fit(da.from_array(X, chunks=(20, 12)), da.from_array(Y[:, 0], chunks=20))
    np.testing.assert_allclose(far.coef_, whole.coef_, atol=1e-6)

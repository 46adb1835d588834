"""The ridge of the estimators: with scikit-learn's elastic net as the oracle where nothing is subtracted."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, ElasticNetCV, LogisticRegression, MultiTaskElasticNet
from sklearn.model_selection import KFold

from ell12 import L1, L12, L12Classifier, L12Regressor, L12RegressorCV, RowsL12, l12_path

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((50, 80)) @ (np.eye(80) + 0.3 * np.eye(80, k=1))
Y = np.stack([X[:, 0] - X[:, 5], X[:, 2] + X[:, 3]], axis=1) + 0.5 * RANDOM.standard_normal((50, 2)) + 2
WEIGHT = RANDOM.uniform(0.5, 2, 50)
RIDGE = 0.7
ELASTIC = {"l1_ratio": 1 / (1 + RIDGE), "tol": 1e-12, "max_iter": 100_000}


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("positive", [False, True])
def test_without_the_l2_norm_it_is_the_elastic_net(form, positive):
    ours = L12Regressor(0.1, penalty=L1(ridge=RIDGE, positive=positive), tol=1e-9).fit(form(X), Y[:, 0], WEIGHT)
    theirs = ElasticNet(0.1 * (1 + RIDGE), **ELASTIC, positive=positive).fit(X, Y[:, 0], WEIGHT)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)


def test_without_the_l2_norm_the_path_is_that_of_the_elastic_net():
    alphas, coefs, _ = l12_path(X, Y[:, 0], alphas=8, tol=1e-9, penalty=L12(l2_weight=0, ridge=RIDGE))
    _, theirs, _ = ElasticNet.path(X, Y[:, 0], alphas=alphas * (1 + RIDGE), **ELASTIC)
    np.testing.assert_allclose(coefs, theirs, atol=1e-7)


def test_without_the_l2_norm_it_is_the_elastic_net_in_cross_validation():
    ours = L12RegressorCV(penalty=L1(ridge=RIDGE), alphas=10, cv=KFold(3), tol=1e-8).fit(X, Y[:, 0], WEIGHT)
    theirs = ElasticNetCV(alphas=10, cv=KFold(3), **ELASTIC).fit(X, Y[:, 0], WEIGHT)
    np.testing.assert_allclose(ours.alphas_ * (1 + RIDGE), theirs.alphas_, rtol=1e-8)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_targets_that_share_a_support_have_the_ridge_too():
    ours = L12Regressor(0.1, penalty=RowsL12(l2_weight=0, ridge=RIDGE), tol=1e-9).fit(X, Y)
    theirs = MultiTaskElasticNet(0.1 * (1 + RIDGE), **ELASTIC).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_without_the_l2_norm_it_is_logistic_regression_with_both_norms():
    y = Y[:, 0] > 2
    ours = L12Classifier(0.05, penalty=L1(ridge=RIDGE), tol=1e-9).fit(X, y)
    strength = 0.05 * (1 + RIDGE) * len(y)
    theirs = LogisticRegression(
        C=1 / strength, l1_ratio=1 / (1 + RIDGE), solver="saga", tol=1e-9, max_iter=100_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_rows_in_chunks_have_the_ridge_too():
    whole = L12Regressor(0.1, penalty=L12(l2_weight=0.5, ridge=RIDGE), tol=1e-10).fit(X, Y[:, 0])
    parts = clone(whole)
    for rows in np.array_split(np.arange(50), 3):
        parts.partial_fit(X[rows], Y[rows, 0])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)


def test_rows_on_workers_have_the_ridge_too():
    da = pytest.importorskip("dask.array")
    parts = da.from_array(X, chunks=(20, 80)), da.from_array(Y[:, 0], chunks=20)
    ours = L12Regressor(0.1, penalty=L12(l2_weight=0.5, ridge=RIDGE), tol=1e-8).fit(*parts)
    np.testing.assert_allclose(
        ours.coef_,
        L12Regressor(0.1, penalty=L12(l2_weight=0.5, ridge=RIDGE), tol=1e-8).fit(X, Y[:, 0]).coef_,
        atol=1e-6,
    )


def test_with_a_ridge_classes_that_one_feature_separates_have_a_finite_solution():
    x = np.linspace(-1, 1, 20)[:, None]
    found = [L12Classifier(0.1, penalty=L12(ridge=0.5), tol=tol).fit(x, x[:, 0] > 0) for tol in (1e-6, 1e-10)]
    assert all(model.results_[0].converged for model in found)
    # The slope of the mean loss and of alpha ridge/2 c^2 cancel.
    margin = np.abs(x[:, 0])
    slope = [np.mean(-margin / (1 + np.exp(margin * c))) + 0.05 * c for c in (m.coef_[0, 0] for m in found)]
    assert abs(slope[1]) < 1e-9
    assert abs(found[0].coef_[0, 0] - found[1].coef_[0, 0]) < 1e-4

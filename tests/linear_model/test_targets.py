"""Several targets with one support, against scikit-learn's MultiTaskLasso."""

import numpy as np
import pytest
import scipy.sparse

from ell12 import L12Regressor, RowsL12, SquaredLoss, minimize, stationarity
from ell12.path import alpha_max, one_sparse_fit

FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array}


def data(n=60, p=12, k=3):
    random = np.random.default_rng(0)
    X = random.standard_normal((n, p)) + random.uniform(-1, 1, p)
    X[random.random((n, p)) < 0.4] = 0
    C = np.zeros((p, k))
    C[[1, 4]] = random.standard_normal((2, k))
    return X, 3 + X @ C + 0.5 * random.standard_normal((n, k)), random.uniform(0.2, 2, n)


def test_l1_2_shares_the_support_and_shrinks_less_than_the_lasso():
    X, Y, weight = data()
    model = L12Regressor(0.3, penalty=RowsL12(), tol=1e-8).fit(X, Y, weight)
    assert np.flatnonzero(model.coef_.any(axis=0)).tolist() == [1, 4]
    assert (model.coef_[:, [1, 4]] != 0).all()
    lasso = L12Regressor(0.3, penalty=RowsL12(l2_weight=0.0)).fit(X, Y, weight)
    assert np.linalg.norm(lasso.coef_) < np.linalg.norm(model.coef_)
    centred = X - np.average(X, axis=0, weights=weight)
    loss = SquaredLoss(
        centred, Y - np.average(Y, axis=0, weights=weight), sample_weight=weight, scale=1 / weight.sum()
    )
    assert stationarity(loss, RowsL12(0.3), model.coef_.T) < 1e-6
    separate = L12Regressor(0.3, tol=1e-8).fit(X, Y, weight)
    assert len(separate.results_) == 3


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_path_begins_where_the_sparsest_solution_ceases_to_be_one(l2_weight):
    X, Y, _ = data()
    loss = SquaredLoss(X, Y, scale=1 / 60)
    top = alpha_max(loss, RowsL12(l2_weight=l2_weight))
    sparsest = one_sparse_fit(loss, RowsL12()) if l2_weight == 1 else loss.start()
    assert stationarity(loss, RowsL12(1.001 * top, l2_weight), sparsest) < 1e-8
    assert stationarity(loss, RowsL12(0.999 * top, l2_weight), sparsest) > 1e-4
    found = minimize(loss, RowsL12(0.5 * top, l2_weight), sparsest)
    assert np.count_nonzero(found.x.any(axis=1)) > np.count_nonzero(sparsest.any(axis=1))


def test_one_target_is_the_ordinary_problem():
    X, Y, _ = data()
    shared = L12Regressor(0.1, penalty=RowsL12()).fit(X, Y[:, 0])
    plain = L12Regressor(0.1).fit(X, Y[:, 0])
    np.testing.assert_allclose(shared.coef_, plain.coef_, atol=1e-3)
    assert shared.coef_.shape == (12,)
    column = L12Regressor(0.1, penalty=RowsL12(), tol=1e-8).fit(X, Y[:, :1])
    np.testing.assert_allclose(column.coef_[0], L12Regressor(0.1, tol=1e-8).fit(X, Y[:, 0]).coef_, atol=1e-6)


def test_options_hold_for_the_matrix():
    X, Y, _ = data()
    factors = np.ones(12)
    factors[8] = 0
    model = L12Regressor(0.3, penalty=RowsL12(weights=factors), tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(X[:, 8] @ (Y - model.predict(X)) / 60, 0, atol=1e-6)
    assert (model.coef_[:, 8] != 0).all()
    positive = L12Regressor(0.05, penalty=RowsL12(positive=True)).fit(X, Y)
    assert (positive.coef_ >= 0).all()
    assert positive.coef_.any()

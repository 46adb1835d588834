"""Data of extreme scales: what the scaled problem would give, or an error that names the argument."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.model_selection import KFold

from ell12 import (
    L12,
    HuberLoss,
    L12Classifier,
    L12ClassifierCV,
    L12Regressor,
    L12RegressorCV,
    LogisticLoss,
    NonmonotoneAPG,
    RowsL12,
    SquaredLoss,
    l12_path,
    minimize,
)
from ell12.losses import RowsLoss
from ell12.path import alpha_max

FAR = [1e-308, 1e-200, 1e-155, 1e155, 1e200, 1e307]
# Coefficients up to 1e140 and down to 1e-140: descent on a Gram matrix sums their squares.
WITHIN = [(1e148, 1e148), (1e70, 1e-70), (1e-70, 1e70), (1e-148, 1e-148), (1.0, 1e100), (1e-100, 1.0)]


def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 20))
    return X, X[:, :3] @ [1.0, -2.0, 3.0] + 0.1 * random.standard_normal(60)


def users(X, y, alpha=1.0):
    """Every way to a solution from X and y, with the names that each gives to them."""
    sparse, l2_weights = scipy.sparse.csr_array(X), (0.0, 1.0)
    for l2_weight in l2_weights:
        penalty = L12(alpha, l2_weight)
        yield "A", "b", lambda p=penalty: minimize(SquaredLoss(X, y, scale=1 / 60), p)
        yield "A", "b", lambda p=penalty: minimize(SquaredLoss(X, y), p, solver=NonmonotoneAPG())
        yield "A", "b", lambda p=penalty: minimize(SquaredLoss(aslinearoperator(X), y), p)
        yield "block 0: A", "block 0: b", lambda p=penalty: minimize(RowsLoss([(X, y)]), p)
        yield "A", "b", lambda p=penalty: alpha_max(SquaredLoss(X, y), p)
        yield "X", "y", lambda p=penalty: l12_path(X, y, alphas=3, penalty=p)
        for matrix in (X, sparse):
            yield "X", "y", lambda p=penalty, A=matrix: L12Regressor(penalty=p).fit(A, y)
            search = L12RegressorCV(alphas=3, cv=2, penalty=L12(None, l2_weight))
            yield "X", "y", lambda search=search, A=matrix: clone(search).fit(A, y)
        yield "X", "y", lambda p=penalty: L12Regressor(penalty=p).partial_fit(X, y)
    yield "A", "b", lambda: minimize(HuberLoss(X, y), penalty)
    yield "X", "y", lambda: L12Regressor(alpha, penalty=RowsL12()).fit(X, np.stack([y, y], axis=1))


@pytest.mark.parametrize("scale", FAR)
def test_numbers_whose_squares_cannot_be_held_are_named(scale):
    X, y = data()
    size = "large" if scale > 1 else "small"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls = [(name, use) for name, _, use in users(scale * X, y)]
        for name, use in (*calls, *((name, use) for _, name, use in users(X, scale * y))):
            message = rf"^{name} holds numbers up to .*, too {size} .*: rescale it first$"
            with pytest.raises(ValueError, match=message):
                use()


@pytest.mark.parametrize("scale", FAR)
def test_so_are_the_features_of_a_classifier(scale):
    X, y = data()
    for model in (L12Classifier(), L12ClassifierCV(alphas=3), L12Classifier(fit_intercept=False)):
        for matrix in (scale * X, scipy.sparse.csr_array(scale * X)):
            with pytest.raises(ValueError, match=r"^X holds numbers up to .*: rescale it first$"):
                model.fit(matrix, y > 0)
    with pytest.raises(ValueError, match=r"^A holds numbers"):
        minimize(LogisticLoss(scale * X, y > 0), L12(1.0))


@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
@pytest.mark.parametrize(("of_X", "of_y"), WITHIN)
def test_within_the_range_solutions_scale_with_the_data(of_X, of_y, l2_weight):
    X, y = data()
    penalty = L12(l2_weight=l2_weight)
    A, b, alpha = of_X * X, of_y * y, 0.1 * of_X * of_y
    for matrix, other in ((X, A), (scipy.sparse.csr_array(X), scipy.sparse.csr_array(A))):
        plain = L12Regressor(0.1, tol=1e-8, penalty=penalty).fit(matrix, y)
        scaled = L12Regressor(alpha, tol=1e-8, penalty=penalty).fit(other, b)
        assert np.allclose(scaled.coef_ * (of_X / of_y), plain.coef_, rtol=1e-7, atol=1e-9)
    given = {"alphas": 4, "tol": 1e-8, "penalty": penalty}
    top, coefs, _ = l12_path(X, y, **given)
    scaled_top, scaled_coefs, results = l12_path(A, b, **given)
    assert np.allclose(scaled_top, of_X * of_y * top, rtol=1e-9)
    assert np.allclose(scaled_coefs * (of_X / of_y), coefs, rtol=1e-6, atol=1e-8)
    assert all(result.converged for result in results)
    search = L12RegressorCV(cv=KFold(3), alphas=4, tol=1e-8, penalty=penalty)
    chosen, scaled = clone(search).fit(X, y), search.fit(A, b)
    assert np.isclose(scaled.alpha_, of_X * of_y * chosen.alpha_)
    assert np.allclose(scaled.mse_path_ / of_y**2, chosen.mse_path_, rtol=1e-6)


def test_what_single_precision_cannot_hold_is_named():
    X, y = data()
    X = X.astype(np.float32)
    for scale in (1e-30, 1e30, 1e60):
        with pytest.raises(ValueError, match=r"^b holds numbers up to .* in float32: rescale it first"):
            SquaredLoss(X, scale * y)
        with pytest.raises(ValueError, match=r"^y holds numbers up to .* in float32: rescale it first"):
            L12Regressor().fit(X, scale * y)
    result = minimize(SquaredLoss(X, 1e10 * y), L12(1e11))
    assert np.allclose(1e-10 * result.x, minimize(SquaredLoss(X, y), L12(10.0)).x, atol=1e-3)

"""The units of X: a fit takes about as many steps in all of them, and finds the same predictions."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from ell12 import L12Classifier, L12ClassifierCV, L12CoxRegressor, L12CoxRegressorCV, L12Regressor, L12RegressorCV


def data(seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((60, 40))
    return X, np.sign(X[:, 0] + 0.5 * random.standard_normal(60) + 0.3)


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e6])
def test_a_model_of_one_column_has_the_units_of_its_target(factor):
    X = np.random.default_rng(0).standard_normal((50, 1))
    y = 3 * X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(50)
    least_squares = np.polyfit(X[:, 0], y, 1)[0]  # the penalty of one entry is 0
    model = L12RegressorCV(alphas=10).fit(X, factor * y)
    np.testing.assert_allclose(model.coef_ / factor, least_squares, rtol=1e-4)
    assert model.alphas_[0] == pytest.approx(factor * abs(X[:, 0] @ (y - y.mean())) / 50, rel=1e-6)


X, SIGNS = data()
X = X[:, :12] + 0.5
Y, TIMES = X[:, 0] - 2 * X[:, 3] + 0.3 * SIGNS, np.exp(X[:, 0] - 0.3 * X[:, 1])
CASES = [
    (L12Regressor(0.05), Y),
    (L12Regressor(0.05, relax=True), Y),
    (L12Regressor(0.05, fit_intercept=False), Y),
    (L12Regressor(0.05, loss="huber"), Y),
    (L12Classifier(0.02), SIGNS),
    (L12Classifier(0.02, loss="multinomial"), np.digitize(X[:, 0], [0.0, 1.5])),
    (L12CoxRegressor(0.02), TIMES),
    (L12RegressorCV(alphas=8, cv=3), Y),
    (L12ClassifierCV(alphas=8, cv=3), SIGNS),
    (L12CoxRegressorCV(alphas=8, cv=3, eps=0.1), TIMES),
]


@pytest.mark.parametrize(("model", "y"), CASES, ids=lambda value: repr(value) if hasattr(value, "fit") else "")
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_standardised_fit_is_that_of_scaled_columns_in_any_units(model, y, form):
    weight, units = np.random.default_rng(5).integers(0, 3, 60).astype(float), np.geomspace(1e-8, 1e8, 12)

    def fit(columns, standardize=True):
        return (
            clone(model).set_params(standardize=standardize, tol=1e-9).fit(form(columns), y, sample_weight=weight)
        )

    plain, found = fit(X), fit(X * units)
    np.testing.assert_allclose(found.coef_ * units, plain.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.predict(form(X * units)), plain.predict(form(X)), atol=1e-4)
    if not hasattr(model, "cv"):
        shift = np.average(X, axis=0, weights=weight) if model.fit_intercept or "Cox" in repr(model) else 0
        scale = np.sqrt(np.average((X - shift) ** 2, axis=0, weights=weight))
        np.testing.assert_allclose(plain.coef_ * scale, fit(X / scale, False).coef_, rtol=1e-4, atol=1e-5)


def test_standardised_columns_that_are_constant_have_no_coefficient():
    X, y = data()
    X[:, 3], X[:, 4] = 1e8 / 3, 0.0
    assert not L12Regressor(0.01, standardize=True).fit(X, y).coef_[3:5].any()

"""The units of X: a fit takes about as many steps in all of them, and finds the same predictions."""

import numpy as np
import pytest
import scipy.sparse

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


MODELS = {
    "regressor": lambda: L12Regressor(0.05),
    "relaxed": lambda: L12Regressor(0.05, relax=True),
    "without an intercept": lambda: L12Regressor(0.05, fit_intercept=False),
    "huber": lambda: L12Regressor(0.05, loss="huber"),
    "classifier": lambda: L12Classifier(0.02),
    "multinomial": lambda: L12Classifier(0.02, loss="multinomial"),
    "survival": lambda: L12CoxRegressor(0.02),
    "search": lambda: L12RegressorCV(alphas=8, cv=3),
    "search of a classifier": lambda: L12ClassifierCV(alphas=8, cv=3),
    "search of survival times": lambda: L12CoxRegressorCV(alphas=8, cv=3, eps=0.1),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_standardised_fit_is_that_of_scaled_columns_in_any_units(name, form):
    X, y = data()
    X, weight = X[:, :12] + 0.5, np.random.default_rng(5).integers(0, 3, 60).astype(float)
    y = {"classifier": y, "search of a classifier": y, "multinomial": np.digitize(X[:, 0], [-0.5, 1.0])}.get(
        name, np.exp(X[:, 0] - 0.3 * X[:, 1]) if "survival" in name else X[:, 0] - 2 * X[:, 3] + 0.3 * y
    )
    units = np.geomspace(1e-8, 1e8, 12)
    model = MODELS[name]().set_params(standardize=True, tol=1e-9).fit(form(X), y, sample_weight=weight)
    found = MODELS[name]().set_params(standardize=True, tol=1e-9).fit(form(X * units), y, sample_weight=weight)
    np.testing.assert_allclose(found.coef_ * units, model.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.predict(form(X * units)), model.predict(form(X)), atol=1e-4)
    if "search" not in name:
        scale = np.sqrt(np.average(X**2, axis=0, weights=weight))
        if name != "without an intercept":
            scale = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
        plain = MODELS[name]().set_params(tol=1e-9).fit(form(X / scale), y, sample_weight=weight)
        np.testing.assert_allclose(model.coef_ * scale, plain.coef_, rtol=1e-4, atol=1e-5)


def test_standardised_columns_that_are_constant_have_no_coefficient():
    X, y = data()
    X[:, 3], X[:, 4] = 1e8 / 3, 0.0
    assert not L12Regressor(0.01, standardize=True).fit(X, y).coef_[3:5].any()

"""The estimators on arguments and data at the edge of what makes sense."""

import numpy as np
import pytest

from ell12 import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV, NonmonotoneAPG, l12_path


def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 8))
    return X, 3 * X[:, 0] - 2 * X[:, 3] + 0.1 * random.standard_normal(60)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_a_positive_classifier_may_be_left_with_its_intercept_alone(l2_weight):
    X, y = data()
    options = {"alpha": 10.0, "l2_weight": l2_weight, "positive": True}
    model = L12Classifier(**options).fit(X, y > 1)
    assert not model.coef_.any()
    other = L12Classifier(**options, solver=NonmonotoneAPG()).fit(X, y > 1)
    assert np.allclose(model.intercept_, other.intercept_, atol=1e-2)


@pytest.mark.parametrize("wrong", ["0.1", None, [0.1, 0.2], 1j, -1.0, np.nan])
@pytest.mark.parametrize("name", ["alpha", "l2_weight", "tol", "max_iter"])
def test_wrong_numbers_are_named(name, wrong):
    X, y = data()
    for model in (L12Regressor(), L12Classifier(), L12RegressorCV(n_alphas=3), L12ClassifierCV(n_alphas=3)):
        if hasattr(model, name):
            with pytest.raises(ValueError, match=f"^{name} must be"):
                model.set_params(**{name: wrong}).fit(X, y if "Regressor" in repr(model) else y > 0)
    if name != "alpha":
        with pytest.raises(ValueError, match=f"^{name} must be"):
            l12_path(X, y, **{name: wrong})


def test_max_iter_is_a_whole_number():
    with pytest.raises(ValueError, match=r"max_iter must be a whole number, got 10\.5"):
        L12Regressor(max_iter=10.5).fit(*data())


@pytest.mark.parametrize("wrong", [-1.0, np.nan, "a"])
def test_wrong_penalty_factors_are_named(wrong):
    X, y = data()
    for model in (L12Regressor(), L12RegressorCV(n_alphas=3)):
        with pytest.raises(ValueError, match="penalty_factors must hold numbers >= 0 only"):
            model.set_params(penalty_factors=[wrong] + [1] * 7).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_are_all_constant_are_not_fitted_by_their_rounding(weighted):
    _, y = data()
    weight = np.linspace(0.5, 2, 60) if weighted else None
    for model in (L12RegressorCV(n_alphas=3), L12ClassifierCV(n_alphas=3, max_iter=50)):
        model.fit(np.full((60, 4), 7.3), y if "Regressor" in repr(model) else y > 0, weight)
        assert not model.coef_.any()


def test_scores_that_are_no_numbers_choose_no_alpha():
    X, y = data()
    with pytest.raises(ValueError, match="scoring must give numbers"):
        L12ClassifierCV(n_alphas=3, scoring=lambda model, X, y: np.nan).fit(X, y > 0)

    def dense_only(model, X, y):
        return 1.0 if model.coef_.any() else np.nan

    model = L12ClassifierCV(n_alphas=3, eps=0.1, scoring=dense_only).fit(X, y > 0)
    assert model.alpha_ < model.alphas_[0]

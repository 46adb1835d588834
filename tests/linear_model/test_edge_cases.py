"""The estimators on arguments and data at the edge of what makes sense."""

import numpy as np
import pytest
import scipy.sparse

from ell12 import (
    L12,
    L12Classifier,
    L12ClassifierCV,
    L12CoxRegressorCV,
    L12Regressor,
    L12RegressorCV,
    NonmonotoneAPG,
)


def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 8))
    return X, 3 * X[:, 0] - 2 * X[:, 3] + 0.1 * random.standard_normal(60)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_a_positive_classifier_may_be_left_with_its_intercept_alone(l2_weight):
    X, y = data()
    penalty = L12(10.0, l2_weight, positive=True)
    model = L12Classifier(penalty=penalty).fit(X, y > 1)
    assert not model.coef_.any()
    other = L12Classifier(penalty=penalty, solver=NonmonotoneAPG()).fit(X, y > 1)
    assert np.allclose(model.intercept_, other.intercept_, atol=1e-2)


@pytest.mark.parametrize("wrong", ["0.1", [0.1, 0.2], -1.0, np.nan])
@pytest.mark.parametrize("name", ["alpha", "tol", "max_iter"])
def test_wrong_numbers_are_named(name, wrong):
    X, y = data()
    with pytest.raises(ValueError, match=f"^{name} must be"):
        L12Regressor().set_params(**{name: wrong}).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("values", [7.3, [7.3, -0.1, 0.0, 1e9], 0.0])
def test_columns_that_are_all_constant_are_not_fitted_by_their_rounding(values, kind, weighted):
    _, y = data()
    weight = np.linspace(0.5, 2, 60) if weighted else None
    X = kind(np.tile(values, (60, 4)) if np.ndim(values) == 0 else np.tile(values, (60, 1)))
    for model in (L12RegressorCV(alphas=3), L12ClassifierCV(alphas=3)):
        model.fit(X, y if "Regressor" in repr(model) else y > 0, weight)
        assert not model.coef_.any()
        assert model.alphas_[0] == 1  # which says that every alpha gives the same


def test_constant_columns_of_a_sparse_matrix_leave_the_others_as_they_are():
    X, y = data()
    wide = np.insert(X, [0, 3, 8], [7.3, -0.1, 1e3], axis=1)
    wide[0, 5] = wide[:, 5].mean()  # the first entry says nothing of the rest
    varying = np.ptp(wide, axis=0) > 0
    for kind in (L12Regressor, L12Classifier):
        target = y if kind is L12Regressor else y > 0
        model = kind(0.01, tol=1e-8).fit(scipy.sparse.csr_array(wide), target)
        plain = kind(0.01, tol=1e-8).fit(wide[:, varying], target)
        assert not np.ravel(model.coef_)[~varying].any()
        assert np.allclose(np.ravel(model.coef_)[varying], np.ravel(plain.coef_), atol=1e-7)


@pytest.mark.parametrize("score", [np.nan, None, "word", np.ones(3), [1.0, 2.0], 1j, {"a": 1.0}, ValueError("?")])
def test_a_scoring_that_gives_no_number_is_refused_by_name(score):
    X, y = data()

    def scoring(model, X, y):
        if isinstance(score, Exception):
            raise score
        return score

    for model in (L12RegressorCV(alphas=3, scoring=scoring), L12CoxRegressorCV(alphas=3, scoring=scoring)):
        with pytest.raises(ValueError, match="scoring must give numbers"):
            model.fit(X, np.exp(y))


def test_an_alpha_whose_score_is_nan_is_not_chosen():
    X, y = data()

    def dense_only(model, X, y):
        return 1.0 if model.coef_.any() else np.nan

    model = L12ClassifierCV(alphas=3, eps=0.1, scoring=dense_only).fit(X, y > 0)
    assert model.alpha_ < model.alphas_[0]

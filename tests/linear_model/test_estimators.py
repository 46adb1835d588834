"""The estimators with scikit-learn's tools, several targets and classes, and warm starts."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ell12 import L12, L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV, stationarity
from ell12.path import squared_loss

FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_matrix}


def data(n=60, p=12, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, p)) + random.uniform(-1, 1, p)
    X[random.random((n, p)) < 0.4] = 0
    return X, 3 + X[:, 1] - 2 * X[:, 4] + 0.5 * random.standard_normal(n), random.uniform(0.2, 2, n)


def target(model, y):
    return y > 3 if "Classifier" in type(model).__name__ else y


# The l1-2 model itself


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_is_a_stationary_point_of_the_objective_that_the_docstring_states(form):
    X, y, weight = data()
    model = L12Regressor(0.1, tol=1e-8).fit(FORMS[form](X), y, weight)
    loss = squared_loss(np.column_stack([X, np.ones(len(y))]), y, weight)
    penalty = L12(0.1, weights=np.append(np.ones(12), 0.0))
    assert stationarity(loss, penalty, np.append(model.coef_, model.intercept_)) < 1e-6


@pytest.mark.parametrize("model", [L12Regressor(0.3), L12Classifier(0.1)], ids=repr)
def test_a_feature_of_factor_zero_is_not_penalised(model):
    X, y, _ = data()
    factors = np.ones(12)
    factors[[4, 8]] = 0
    model = clone(model).set_params(penalty__weights=factors, tol=1e-8).fit(X, target(model, y))
    row = np.atleast_2d(model.coef_)[0]
    assert row[8] != 0
    residual = (model.predict_proba(X)[:, 1] if hasattr(model, "classes_") else model.predict(X)) - target(
        model, y
    )
    np.testing.assert_allclose(X[:, [4, 8]].T @ residual / len(y), 0, atol=1e-7)
    with pytest.raises(ValueError, match=r"^penalty: weights"):
        model.set_params(penalty__weights=[1.0, 2.0]).fit(X, target(model, y))


def test_several_targets_are_separate_problems():
    X, y, weight = data()
    both = L12Regressor(0.05).fit(X, np.column_stack([y, -(y**2)]), weight)
    alone = L12Regressor(0.05).fit(X, -(y**2), weight)
    np.testing.assert_array_equal(both.coef_[1], alone.coef_)
    assert both.intercept_[1] == alone.intercept_
    assert both.n_iter_[1] == alone.n_iter_
    assert both.predict(X).shape == (60, 2)
    search = L12RegressorCV(alphas=5, cv=3).fit(X, np.column_stack([y, -y]))
    assert search.coef_.shape == (2, 12)
    assert isinstance(search.alpha_, float)


def test_several_classes_are_one_against_the_rest():
    X, y, _ = data(120)
    names = np.array(["low", "mid", "top"])[np.digitize(y, [2, 4])]
    model = L12Classifier(0.01).fit(X, names)
    top = L12Classifier(0.01).fit(X, names == "top")
    np.testing.assert_allclose(model.coef_[2], top.coef_[0], atol=1e-12)
    assert model.coef_.shape == (3, 12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.decision_function(X).argmax(axis=1))
    assert model.score(X, names) > 0.7
    search = L12ClassifierCV(alphas=5, eps=0.05, cv=3).fit(X, names)
    assert search.scores_.shape == (5, 3)
    far = model.predict_proba(1e6 * X)
    assert np.isfinite(far).all()


@pytest.mark.parametrize(
    "model",
    [L12Regressor(), L12Classifier(), L12Regressor(loss="huber"), L12Classifier(loss="multinomial")],
    ids=repr,
)
def test_a_warm_start_begins_where_the_last_fit_ended(model):
    X, y, _ = data()
    y = np.digitize(y, [2, 4]) if "multinomial" in repr(model) else target(model, y)
    model = clone(model).set_params(alpha=0.05, warm_start=True).fit(X, y)
    first = np.max(model.n_iter_)
    assert np.max(model.fit(X, y).n_iter_) < first / 2
    assert np.atleast_2d(model.fit(X[:, :5], y).coef_).shape[1] == 5  # another number of features: from zero


@pytest.mark.parametrize("model", [L12Regressor(0.05), L12RegressorCV(alphas=5, eps=0.1, cv=3)], ids=repr)
def test_a_constant_target_does_no_harm(model):
    X, _, _ = data()
    model = clone(model).fit(X, np.full(60, 0.1))
    assert not model.coef_.any()
    assert np.isclose(model.intercept_, 0.1)


@pytest.mark.parametrize("model", [L12RegressorCV(alphas=5), L12ClassifierCV(alphas=5)], ids=repr)
def test_folds_in_parallel_give_the_same(model):
    X, y, weight = data()
    one, two = (clone(model).set_params(n_jobs=n_jobs).fit(X, target(model, y), weight) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_not_converged_is_a_warning_that_says_what_to_do():
    X, y, _ = data()
    with pytest.warns(
        ConvergenceWarning, match=r"stationarity .* in 2 iterations, tol=1e-12.* Raise max_iter or tol"
    ):
        model = L12Regressor(0.05, max_iter=2, tol=1e-12).fit(X, y)
    assert not model.results_[0].converged
    search = L12RegressorCV(alphas=4, cv=3, tol=1e-12)
    search.max_iter = 1
    with pytest.warns(ConvergenceWarning) as caught:
        search.fit(X, y)
    assert "in 12 of 12 problems" in str(caught[0].message)


def test_a_single_class_and_negative_weights_are_errors():
    X, y, weight = data()
    with pytest.raises(ValueError, match="it holds one class"):
        L12Classifier().fit(X, np.ones(60))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        L12Regressor().fit(X, y, -weight)

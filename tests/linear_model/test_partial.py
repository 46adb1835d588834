"""Fits a chunk at a time, and fits that are followed by checkpoints."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from ell12 import L12, L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV, RowsL12, Run
from ell12.linear_model import regressor

FORMS = {"dense": np.asarray, "csr": scipy.sparse.csr_array}


def data(n=400, p=20, offset=3.0):
    random = np.random.default_rng(0)
    X = random.standard_normal((n, p)) + offset * random.uniform(-1, 1, p)
    X[random.random((n, p)) < 0.3] = 0
    y = 5 + X[:, 1] - 2 * X[:, 4] + 0.5 * X[:, 7] + 0.3 * random.standard_normal(n)
    return X, y, random.uniform(0.2, 2, n)


def chunks(cuts, *arrays):
    for first, last in zip([0, *cuts], [*cuts, len(arrays[1])], strict=True):
        yield [None if values is None else values[first:last] for values in arrays]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l2_weight", [0.0, 1.0])
def test_after_any_chunks_the_model_is_that_of_a_fit_to_all_rows(l2_weight, fit_intercept, weighted, form):
    X, y, weight = data()
    X, weight = FORMS[form](X), weight if weighted else None
    model = L12Regressor(0.05, penalty=L12(l2_weight=l2_weight), fit_intercept=fit_intercept, tol=1e-11)
    whole = clone(model).fit(X, y, weight)
    for part in chunks([1, 7, 200, 201], X, y, weight):
        model.partial_fit(*part)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-8)
    assert model.results_[0].objective == pytest.approx(whole.results_[0].objective, abs=1e-10)
    assert not fit_intercept or 0 < np.count_nonzero(model.coef_) < 20


def test_means_far_larger_than_deviations_do_no_harm():
    X, y, _ = data()
    X, y = X + 1e6, y + 1e6
    model = L12Regressor(0.05, tol=1e-8)
    for part in chunks([50, 300], X, y):
        model.partial_fit(*part)
    whole = L12Regressor(0.05, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-4)


@pytest.mark.parametrize("penalty", [L12(), RowsL12()], ids=repr)
def test_several_targets(penalty):
    X, y, weight = data()
    Y = np.column_stack([y, X[:, 2] - y])
    model = L12Regressor(0.05, penalty=penalty, tol=1e-10)
    for part in chunks([30, 200], X, Y, weight):
        model.partial_fit(*part)
    whole = clone(model).fit(X, Y, weight)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-8)
    with pytest.raises(ValueError, match="as many columns"):
        model.partial_fit(X, Y[:, :1])


def test_a_fit_begins_anew_and_so_does_what_follows_it():
    X, y, _ = data()
    model = L12Regressor(0.05).partial_fit(X[:100], y[:100])
    copy = pickle.loads(pickle.dumps(model)).partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(copy.coef_, model.partial_fit(X[100:], y[100:]).coef_)
    model.fit(X[:50, :5], y[:50])
    assert model.partial_fit(X[:, :3].astype(np.float32), y).coef_.dtype == np.float32
    for wrong, weight, message in ((X, None, "features"), (X[:, :3], 0 * y, "zero")):
        with pytest.raises(ValueError, match=message):
            (model if weight is None else L12Regressor()).partial_fit(wrong, y, weight)


def objective(model, X, signs):
    """The classifier's objective, written out."""
    row, margin = model.coef_[0], signs * model.decision_function(X)
    penalty = model.penalty_
    return np.mean(np.logaddexp(0, -margin)) + penalty.value(row)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_a_classifier_comes_near_its_fit_as_chunks_go_round(l2_weight, form):
    X, y, _ = data(offset=0.2)
    labels = np.where(y + np.random.default_rng(1).standard_normal(400) > 5, "b", "a")
    whole = L12Classifier(0.02, penalty=L12(l2_weight=l2_weight), tol=1e-9).fit(X, labels)
    model, gaps = L12Classifier(0.02, penalty=L12(l2_weight=l2_weight)), []
    signs, best = np.where(labels == "b", 1, -1), whole.results_[0].objective
    for _ in range(60):
        for part in chunks([128, 256], FORMS[form](X), labels):
            model.partial_fit(*part, classes=["b", "a"])
        gaps.append(objective(model, X, signs) - best)
    assert gaps[0] < 0.5 * (np.log(2) - best)  # of what there is to gain from zero
    assert gaps[-1] < 1e-4 * (np.log(2) - best)
    assert gaps[-1] < 1e-2 * gaps[0]
    np.testing.assert_array_equal(model.coef_ != 0, whole.coef_ != 0)
    assert model.score(X, labels) == pytest.approx(whole.score(X, labels), abs=0.01)


def test_samples_are_weighted():
    X, y, weight = data(offset=0.2)
    labels, model = y + np.random.default_rng(1).standard_normal(400) > 5, L12Classifier(0.02)
    for _ in range(200):
        for X_part, y_part, weight_part in chunks([128, 256], X, labels, weight**3):
            model.partial_fit(X_part, y_part, classes=[False, True], sample_weight=weight_part)
    whole, plain = L12Classifier(0.02).fit(X, labels, weight**3), L12Classifier(0.02).fit(X, labels)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.05)
    assert np.abs(plain.coef_ - whole.coef_).max() > 0.3


def test_several_classes_and_chunks_that_lack_some():
    X, y, _ = data(offset=0.2)
    names = np.array(["low", "mid", "top"])[np.digitize(y, [4, 6])]
    order = np.argsort(names, kind="stable")
    model = L12Classifier(0.005)
    for _ in range(40):
        for part in chunks([100, 200], X[order], names[order]):
            model.partial_fit(*part, classes=["top", "low", "mid"])
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert model.coef_.shape == (3, 20)
    assert model.score(X, names) > L12Classifier(0.005).fit(X, names).score(X, names) - 0.05


def test_a_regressor_with_many_columns_takes_steps(monkeypatch):
    monkeypatch.setattr(regressor, "LARGEST", 10)
    X, y, weight = data(offset=0.2)
    Y = np.column_stack([y, X[:, 2] - y])
    for target, penalty in ((y, L12()), (Y, L12()), (Y, RowsL12())):
        model = L12Regressor(0.05, penalty=penalty)
        for _ in range(150):
            for part in chunks([128, 256], X, target, weight):
                model.partial_fit(*part)
        whole = L12Regressor(0.05, penalty=penalty).fit(X, target, weight)
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.02)
        np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=0.02)
        np.testing.assert_array_equal(model.coef_ != 0, whole.coef_ != 0)
        assert model.results_ == ()


def test_errors_of_partial_fit_are_clear():
    X, y, _ = data()
    model = L12Classifier().partial_fit(X, y > 5, classes=[False, True])
    for fitted, labels, classes, message in (
        (L12Classifier(), y > 5, None, "classes must be passed on the first call"),
        (L12Classifier(), y > 5, [True], "at least 2 classes"),
        (model, y > 5, [False, True, 2], "not those of the first call"),
        (model, np.digitize(y, [4, 6]), None, "not among classes"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(X, labels, classes=classes)
    for search in (L12RegressorCV(), L12ClassifierCV()):
        assert not hasattr(search, "partial_fit")


@pytest.mark.parametrize("wrong", [{"alpha": -1}, {"penalty": L12(weights=[1, 2])}])
def test_a_call_that_fails_leaves_no_trace(wrong):
    X, y, _ = data()
    model = L12Regressor(0.1, tol=1e-10).partial_fit(X[:10], y[:10])
    right = {name: getattr(model, name) for name in wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        model.set_params(**wrong).partial_fit(X[10:], y[10:])
    with pytest.raises(ValueError, match=r"^X holds numbers up to .*, too large"):
        model.set_params(**right).partial_fit(1e200 * X, y)
    model.partial_fit(X[10:], y[10:])
    whole = L12Regressor(0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-8)
    classifier = L12Classifier(**wrong)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        classifier.partial_fit(X, y > 5, classes=[False, True])
    assert classifier.set_params(**right).partial_fit(X[:, :2], y > 5, classes=[False, True]).coef_.shape == (1, 2)


def test_each_problem_has_a_checkpoint_of_its_own(tmp_path):
    X, y, _ = data(offset=0.2)
    names = np.array(["low", "mid", "top"])[np.digitize(y, [4, 6])]
    L12Classifier(0.02, run=Run(checkpoint=tmp_path / "fit.npz")).fit(X, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"fit-{k}.npz" for k in range(3)]

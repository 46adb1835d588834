"""The estimators on dask arrays, against the same in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ell12 import L12, L12Classifier, L12Regressor, RowsL12

ROWS, COLUMNS, CHUNKS = 200, 5, (70, 80, 50)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, COLUMNS)) + np.array([0, 1, -1, 0, 0.5])
    y = X @ [2.0, -1.0, 0.0, 0.0, 0.5] + 0.3 * random.standard_normal(ROWS) + 4
    return X, y, random.random(ROWS)


def chunked(values, rows=CHUNKS):
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


def assert_same(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"penalty__positive": True}, {"penalty__weights": [1, 0, 1, 2, 1]}]
)
def test_regression(data, options, weighted):
    X, y, weight = data
    weight = weight if weighted else None
    model = L12Regressor(0.1, penalty=L12(l2_weight=0.5), tol=1e-10).set_params(**options)
    near = model.fit(X, y, weight)
    far = clone(model).fit(chunked(X), chunked(y), weight)
    assert_same(far, near)
    assert far.results_[0].objective == pytest.approx(near.results_[0].objective, rel=1e-9)
    assert far.score(chunked(X), chunked(y), weight) == pytest.approx(near.score(X, y, weight), abs=1e-12)
    prediction = far.predict(chunked(X))
    assert isinstance(prediction, da.Array)
    np.testing.assert_allclose(prediction.compute(), near.predict(X), atol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_regression_on_several_targets_with_one_support(data, fit_intercept):
    X, y, weight = data
    Y = np.column_stack([y, X[:, 2] - 2 * y])
    model = L12Regressor(0.2, penalty=RowsL12(), fit_intercept=fit_intercept, tol=1e-10)
    near = model.fit(X, Y, weight)
    far = clone(model).fit(chunked(X), chunked(Y), weight)
    assert_same(far, near)
    assert isinstance(far.n_iter_, int)
    with pytest.raises(ValueError, match="up to 1000 columns, and more rows"):
        far.fit(da.from_array(X[:4], chunks=(2, COLUMNS)), Y[:4])


@pytest.mark.parametrize("rows", [ROWS, 4])
def test_regression_on_several_targets(data, rows):
    """With fewer rows than columns the losses stay on the workers, each a column of its own."""
    X, y, _ = data
    X, Y = X[:rows], np.column_stack([y, -2 * y])[:rows]
    near = L12Regressor(0.2, penalty=L12(l2_weight=0.5), tol=1e-10).fit(X, Y)
    far = L12Regressor(0.2, penalty=L12(l2_weight=0.5), tol=1e-10)
    far.fit(da.from_array(X, chunks=(3, COLUMNS)), da.from_array(Y, chunks=(3, 1)))
    assert_same(far, near)
    assert far.score(da.from_array(X, chunks=(3, COLUMNS)), Y) == pytest.approx(near.score(X, Y), abs=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]])
def test_classification(data, classes, fit_intercept):
    X, y, weight = data
    cuts = np.quantile(y, np.linspace(0, 1, len(classes) + 1)[1:-1])
    labels = np.array(classes)[np.digitize(y, cuts)]
    near = L12Classifier(0.1, tol=1e-8, fit_intercept=fit_intercept).fit(X, labels, weight)
    far = L12Classifier(0.1, tol=1e-8, fit_intercept=fit_intercept).fit(chunked(X), chunked(labels), weight)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    np.testing.assert_allclose(far.intercept_, near.intercept_, atol=1e-6)
    assert list(far.classes_) == classes
    assert far.score(chunked(X), chunked(labels), weight) == pytest.approx(near.score(X, labels, weight))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        ours = getattr(far, method)(chunked(X)).compute()
        np.testing.assert_allclose(ours, getattr(near, method)(X), atol=1e-6)
    assert (far.predict(chunked(X)).compute() == near.predict(X)).all()


def test_names_are_compared_as_in_memory(data):
    X, y, _ = data
    table = pd.DataFrame(X, columns=list("pqrst")).assign(y=y, label=np.where(y > 4, "b", "a"))
    frame, names = dd.from_pandas(table, npartitions=3), list("pqrst")
    near = L12Regressor(0.1).fit(table[names], y)
    far = L12Regressor(0.1).fit(frame[names], frame["y"])
    np.testing.assert_allclose(far.predict(frame[names]).compute(), near.predict(table[names]), atol=1e-4)
    with pytest.raises(ValueError, match="feature names should match"):  # or each would be taken for another
        far.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        far.predict(chunked(X)).compute()
    assert len(caught) == 1
    classifier = L12Classifier(0.1).fit(frame[names], frame["label"])
    assert classifier.predict_proba(frame[names]).compute().shape == (ROWS, 2)
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.score(frame[names[::-1]], frame["label"])
    with pytest.raises(NotFittedError):
        L12Regressor().predict(chunked(X))


def test_warm_start_begins_at_the_last_fit(data):
    X, y, _ = data
    for model, target in ((L12Regressor(0.1), y), (L12Classifier(0.05), y > 4)):
        model.set_params(warm_start=True).fit(chunked(X), target)
        again = model.fit(chunked(X), target)
        assert np.max(again.n_iter_) <= 2


def test_errors(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="at least 2 classes of positive weight"):
        L12Classifier().fit(chunked(X), np.zeros(ROWS, dtype=int))
    with pytest.raises(ValueError, match="at least 2 classes of positive weight"):
        L12Classifier().fit(chunked(X), y > 4, sample_weight=(y > 4).astype(float))
    with pytest.raises(ValueError, match="sums to zero"):
        L12Regressor().fit(chunked(X), y, sample_weight=np.zeros(ROWS))
    with pytest.raises(ValueError, match="block 1: y holds NaN"):
        L12Regressor().fit(chunked(X), np.where(np.arange(ROWS) == 100, np.nan, y))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        L12Regressor().fit(chunked(X)[:, 0], y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        L12Regressor().fit(chunked(X), y).predict(chunked(X)[0])
    with pytest.raises(ValueError, match="label type"):
        L12Classifier().fit(chunked(X), y)

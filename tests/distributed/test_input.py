"""What people hand to the estimators and losses on Dask: filtered frames, nullable numbers, wrong shapes."""

import subprocess
import sys

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from ell12 import L12, HuberLoss, L12Classifier, L12Regressor, SquaredLoss, minimize
from ell12.distributed import rows_loss

ROWS, NAMES = 90, list("abcde")


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, 5)) + np.array([0, 1, -1, 0, 0.5])
    y = X @ [2.0, -1.0, 0.0, 0.0, 0.5] + 0.3 * random.standard_normal(ROWS) + 4
    return X, y


def chunked(values, rows=30):
    return da.from_array(values, chunks=(rows, *values.shape[1:]))


def assert_same(one, other, atol=1e-8):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=10 * atol)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_partitions_that_a_filter_has_emptied_add_nothing(data, form):
    X, y = data
    labels = np.where(y > 4, "high", "low")
    kept = np.arange(ROWS) >= 35
    mask = chunked(kept)
    rows = chunked(X)[mask].map_blocks(form)
    model = L12Regressor(0.1, tol=1e-10).fit(rows, chunked(y)[mask])
    assert_same(model, L12Regressor(0.1, tol=1e-10).fit(X[kept], y[kept]))
    np.testing.assert_allclose(model.predict(rows).compute(), model.predict(X[kept]))
    assert model.score(rows, chunked(y)[mask]) == pytest.approx(model.score(X[kept], y[kept]))
    model = L12Classifier(0.05, tol=1e-7).fit(rows, chunked(labels)[mask])
    assert_same(model, L12Classifier(0.05, tol=1e-7).fit(X[kept], labels[kept]), atol=1e-6)
    assert model.score(rows, chunked(labels)[mask]) == model.score(X[kept], labels[kept])
    assert model.predict_proba(rows).compute().shape == (kept.sum(), 2)
    result = minimize(rows_loss(HuberLoss, rows, chunked(y)[mask]), L12(1.0), tol=1e-8)
    np.testing.assert_allclose(result.x, minimize(HuberLoss(X[kept], y[kept]), L12(1.0), tol=1e-8).x, atol=1e-7)


def test_where_nothing_is_left_it_is_said(data):
    X, y = data
    none = chunked(np.zeros(ROWS, dtype=bool))
    with pytest.raises(ValueError, match="X has no rows"):
        L12Regressor().fit(chunked(X)[none], chunked(y)[none])
    with pytest.raises(ValueError, match="X has no rows"):
        rows_loss(SquaredLoss, chunked(X)[none], chunked(y)[none])
    with pytest.raises(ValueError, match="no row of positive weight"):
        L12Regressor().fit(X, y).score(chunked(X), y, sample_weight=np.zeros(ROWS))
    with pytest.raises(ValueError, match="no row of positive weight"):
        L12Classifier().fit(X, y > 4).score(chunked(X), y > 4, sample_weight=np.zeros(ROWS))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_nullable_numbers_and_truth_values_beside_floats(data, backend):
    X, y = data
    table = pd.DataFrame(X, columns=NAMES).assign(flag=X[:, 0] > 0)
    expected = L12Regressor(0.1).fit(table, y)
    target = dd.from_pandas(pd.Series(y), npartitions=3)
    assert_same(L12Regressor(0.1).fit(dd.from_pandas(table, npartitions=3), target), expected)
    table = table.convert_dtypes(dtype_backend=backend)
    frame = dd.from_pandas(table, npartitions=3)
    target = dd.from_pandas(pd.Series(y).convert_dtypes(dtype_backend=backend), npartitions=3)
    model = L12Regressor(0.1).fit(frame, target)
    assert_same(model, expected)
    assert model.score(frame, target) == pytest.approx(expected.score(table, y))
    labels = dd.from_pandas(pd.Series(y > 4).astype("Int64"), npartitions=3)
    assert L12Classifier(0.1).fit(frame, labels).classes_.dtype == np.int64
    table.loc[40, "b"] = pd.NA
    with pytest.raises(ValueError, match="block 1: X holds NaN"):
        L12Regressor().fit(dd.from_pandas(table, npartitions=3), target)


def test_wrong_targets_and_weights_are_named(data):
    X, y = data
    names = np.where(y > 4, "high", "low").astype(object)
    with pytest.raises(ValueError, match="block 1: y holds NaN"):
        L12Regressor().fit(X, y).score(chunked(X), np.where(np.arange(ROWS) == 40, np.nan, y.tolist()))
    with pytest.raises(TypeError, match="block 0: y must hold real numbers, got complex"):
        L12Regressor().fit(chunked(X)[:30], y[:30] * 1j)
    with pytest.raises(ValueError, match="block 0: y must hold numbers"):
        L12Regressor().fit(chunked(X)[:30], names[:30])
    with pytest.raises(ValueError, match="y must have one or two dimensions"):
        L12Regressor().fit(chunked(X), np.ones((ROWS, 2, 2)))
    for weight in (np.ones((ROWS, 1)), da.ones((ROWS, 2))):
        with pytest.raises(ValueError, match="sample_weight must have one dimension"):
            L12Regressor().fit(chunked(X), y, sample_weight=weight)
    with pytest.raises(TypeError, match="block 1: y must hold labels of one kind"):
        L12Classifier().fit(chunked(X), np.where(np.arange(ROWS) == 40, None, names))
    with pytest.raises(TypeError, match="y must hold labels of one kind"):
        L12Classifier().fit(chunked(X), np.where(np.arange(ROWS) < 30, 1, names))


def test_without_dask_it_is_said_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import ell12.distributed"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ell12's extra dask" in found.stderr


@pytest.mark.parametrize("other", [dask.bag.from_sequence([1, 2]), dask.delayed([[1.0], [2.0]])])
def test_other_collections_are_refused(other):
    with pytest.raises(TypeError, match="X must be a dask array or DataFrame"):
        L12Regressor().fit(other, [1.0, 2.0])

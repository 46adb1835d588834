"""Sparse data that fill the memory: fits copy little of them, look at them rarely, and take any kind of index."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
import scipy.sparse

import ell12.losses.of_prediction
from ell12 import L12Classifier, L12Regressor
from ell12.operators import centering, gram

MODELS = {"squared": (L12Regressor, 8), "logistic": (L12Classifier, 20)}  # and the most looks that they may take


def problem(form="csc", dtype=np.float64, index=np.int64):
    random = np.random.default_rng(0)
    X = scipy.sparse.random_array((3000, 2000), density=0.02, format=form, dtype=dtype, rng=random)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    score = X[:, list(range(10))] @ np.linspace(3, 6, 10)
    return X, (score - score.mean() + 0.3 * random.standard_normal(3000)).astype(dtype)


def model_of(loss, X, y, strength):
    target = y if loss == "squared" else (y > 0) - 0.5
    top = np.abs(X.T @ (target - target.mean())).max() / y.size
    return MODELS[loss][0](alpha=strength * top, tol=1e-4, penalty=ell12.L12(l2_weight=0.5))


def target_of(loss, y):
    return y if loss == "squared" else np.sign(y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["csc", "csr"])
@pytest.mark.parametrize("loss", MODELS)
def test_a_fit_takes_less_than_half_of_the_data_beyond_them(loss, form, dtype, monkeypatch):
    monkeypatch.setattr(centering, "BLOCK", 2**13)
    X, y = problem(form, dtype)
    model, target = model_of(loss, X, y, 0.5), target_of(loss, y)
    model.fit(X, target)  # loads what is loaded once
    tracemalloc.start()
    model.fit(X, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < np.count_nonzero(model.coef_) < 100
    assert peak < 0.5 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


@pytest.mark.parametrize("form", ["csc", "csr"])
@pytest.mark.parametrize("loss", MODELS)
def test_a_fit_looks_rarely_and_the_width_of_indices_changes_no_bit(loss, form, monkeypatch):
    monkeypatch.setattr(gram, "COMPILED_FROM", 0)
    counts, product = Counter(), ell12.losses.of_prediction.product

    def counting(A, x):
        result = product(A, x)
        counts["looks"] += len(result) in (2000, 2001)
        return result

    monkeypatch.setattr(ell12.losses.of_prediction, "product", counting)
    X, y = problem(form)
    model = model_of(loss, X, y, 0.05).fit(X, target_of(loss, y))
    assert 0 < counts["looks"] <= MODELS[loss][1]
    narrow, _ = problem(form, index=np.int32)
    again = model_of(loss, narrow, y, 0.05).fit(narrow, target_of(loss, y))
    assert narrow.indices.dtype == np.int32
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)

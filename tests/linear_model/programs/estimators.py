"""Estimators keep arrays what and where they are, and fit them as NumPy's."""

import numpy as np
import pytest
import sklearn
from library import array

from ell12 import L1, L12, MCP, GroupL12, L12Classifier, L12Regressor, L12RegressorCV, RowsL12
from ell12.backend import as_numpy

random = np.random.default_rng(0)
X = random.standard_normal((80, 20))
Y = np.stack([X[:, 1] - 2 * X[:, 4], X[:, 2] + X[:, 1]], axis=1) + 0.1 * random.standard_normal((80, 2)) + 5
weight, labels = random.uniform(0.5, 2, 80), np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [4, 6])]
factors = np.where(np.arange(20) == 7, 0.0, 1.0)
sklearn.set_config(array_api_dispatch=True)


def compare(model, y):
    dense = sklearn.clone(model).fit(X, y, weight)
    other = sklearn.clone(model).fit(array(X), y if y.dtype.kind == "U" else array(y), array(weight))
    assert type(other.coef_) is type(array(X)), type(other.coef_)
    assert other.coef_.dtype == array(X).dtype
    assert other.coef_.device == array(X).device
    np.testing.assert_allclose(as_numpy(other.coef_), dense.coef_, atol=1e-6)
    np.testing.assert_allclose(as_numpy(other.intercept_), dense.intercept_, atol=1e-6)
    return dense, other


for model, y in [
    (L12Regressor(0.1, tol=1e-8), Y[:, 0]),
    (L12Regressor(0.1, penalty=L12(l2_weight=0.5, weights=factors, positive=True), tol=1e-8), Y),
    (L12Regressor(0.1, penalty=RowsL12(), tol=1e-8), Y),
    (L12Regressor(0.1, fit_intercept=False, penalty=L1(), tol=1e-8), Y[:, 1]),
    (L12Regressor(0.1, tol=1e-8), Y[:, 0]),
    (L12Regressor(0.1, penalty=GroupL12(np.arange(20) // 4, weights=np.arange(5) + 1.0), tol=1e-8), Y[:, 0]),
]:
    dense, other = compare(model, y)
    assert type(other.predict(array(X))) is type(array(X))
    np.testing.assert_allclose(as_numpy(other.predict(array(X))), dense.predict(X), atol=1e-5)
    assert other.sparse_coef_.shape == np.atleast_2d(dense.coef_).shape
    again = other.set_params(warm_start=True).fit(array(X), array(y), array(weight))
    assert np.max(as_numpy(again.n_iter_)) <= 3, again.n_iter_

for penalty in (L12(l2_weight=0.5), GroupL12(np.arange(20) // 4), L12(positive=np.arange(20) > 3), MCP()):
    compare(L12Regressor(0.1, penalty=penalty, relax=True, tol=1e-8), Y[:, 0])
dense = L12RegressorCV(selection="bic", alphas=5).fit(X, Y[:, 0])
other = L12RegressorCV(selection="bic", alphas=5).fit(array(X), array(Y[:, 0]))
np.testing.assert_allclose(as_numpy(other.df_path_), dense.df_path_, rtol=1e-2)
np.testing.assert_allclose(as_numpy(other.coef_), dense.coef_, atol=1e-3)

for y in (labels, (labels == "b").astype(int), np.unique(labels, return_inverse=True)[1]):
    dense, other = compare(L12Classifier(0.02, penalty=L1(), tol=1e-8), y)
    np.testing.assert_array_equal(as_numpy(other.predict(array(X))), dense.predict(X))
    np.testing.assert_allclose(as_numpy(other.predict_proba(array(X))), dense.predict_proba(X), atol=1e-6)

short, targets = array(X.astype("float32")), array(Y.astype("float32"))
single = L12Regressor(0.1).fit(short, targets)
assert single.coef_.dtype == single.intercept_.dtype == single.predict(short).dtype == short.dtype

sklearn.set_config(array_api_dispatch=False)
for rows in (X, array(X)):
    with pytest.raises(ValueError, match="array_api_dispatch=True"):
        single.predict(rows)

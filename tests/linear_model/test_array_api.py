"""Arrays other than NumPy's through scikit-learn's array API dispatch."""

import os
import subprocess
import sys

import numpy as np
import pytest

ON_GPU = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("torch cuda", "cupy")]
# SciPy reads the variable when it is first imported, so that all of this runs in a process of its own.
CODE = """
import unittest, warnings
from sklearn.utils import estimator_checks
from ell12 import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV

warnings.simplefilter("error")
done = []
grid = {"n_alphas": 3, "eps": 0.3, "cv": 2}
for model in (L12Regressor(), L12Classifier(), L12RegressorCV(**grid), L12ClassifierCV(**grid, together=True)):
    for check in estimator_checks._yield_array_api_checks(model, only_numpy=False):
        try:
            check(type(model).__name__, model)
        except unittest.SkipTest:
            continue
        done.append(check.keywords.get("array_namespace") or "mixed")
print(" ".join(sorted(set(done))))
"""


def run(code, *arguments):
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def installed(*names):
    from importlib.util import find_spec

    return [name for name in names if find_spec(name)]


def test_the_checks_of_scikit_learn_on_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    kinds = installed("array_api_strict", "torch")
    done = run(CODE).split()
    assert set(done) >= {"numpy", *kinds}


# What turns NumPy's arrays into those of the library and device that the arguments name.
ARRAYS = """
import sys
import numpy as np, sklearn
from ell12.backend import as_numpy

if sys.argv[1] == "torch":
    import torch
    array = lambda values: torch.asarray(values, device=sys.argv[2])
elif sys.argv[1] == "cupy":
    from cupy import asarray as array
elif sys.argv[1] == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
    array = jax.numpy.asarray
else:
    from array_api_strict import asarray as array
"""

TENSORS = (
    ARRAYS
    + """
from ell12 import L12Classifier, L12Regressor

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
    assert other.coef_.dtype == array(X).dtype and other.coef_.device == array(X).device
    np.testing.assert_allclose(as_numpy(other.coef_), dense.coef_, atol=1e-6)
    np.testing.assert_allclose(as_numpy(other.intercept_), dense.intercept_, atol=1e-6)
    return dense, other


for model, y in [
    (L12Regressor(0.1, tol=1e-8), Y[:, 0]),
    (L12Regressor(0.1, l2_weight=0.5, tol=1e-8, penalty_factors=factors, positive=True), Y),
    (L12Regressor(0.1, shared_support=True, tol=1e-8), Y),
    (L12Regressor(0.1, fit_intercept=False, l2_weight=0.0, tol=1e-8), Y[:, 1]),
]:
    dense, other = compare(model, y)
    assert type(other.predict(array(X))) is type(array(X))
    np.testing.assert_allclose(as_numpy(other.predict(array(X))), dense.predict(X), atol=1e-5)
    assert other.sparse_coef_.shape == np.atleast_2d(dense.coef_).shape
    again = other.set_params(warm_start=True).fit(array(X), array(y), array(weight))
    assert np.max(as_numpy(again.n_iter_)) <= 3, again.n_iter_

for y in (labels, (labels == "b").astype(int), np.unique(labels, return_inverse=True)[1]):
    dense, other = compare(L12Classifier(0.02, l2_weight=0.0, tol=1e-8), y)
    np.testing.assert_array_equal(as_numpy(other.predict(array(X))), dense.predict(X))
    np.testing.assert_allclose(as_numpy(other.predict_proba(array(X))), dense.predict_proba(X), atol=1e-6)

short, targets = array(X.astype("float32")), array(Y.astype("float32"))
single = L12Regressor(0.1).fit(short, targets)
assert single.coef_.dtype == single.intercept_.dtype == single.predict(short).dtype == short.dtype

sklearn.set_config(array_api_dispatch=False)
for rows in (X, array(X)):
    try:
        single.predict(rows)
        raise AssertionError("tensors were mixed with arrays")
    except ValueError as error:
        assert "array_api_dispatch=True" in str(error), error
"""
)


def load(name, device="cpu"):
    """The library, or a skip where it or its device is not there."""
    library = pytest.importorskip(name)
    if device == "cuda" and not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    if name == "cupy" and not library.is_available():
        pytest.skip("CuPy finds no device")


def run_on(kind, code):
    """Run the code with the library, and on the device, that a kind such as "torch cpu" names."""
    load(*kind.split())
    run(code, *kind.split())


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU])
def test_arrays_stay_what_and_where_they_are_and_fit_the_same(kind):
    run_on(kind, TENSORS)


FOLDS = (
    ARRAYS
    + """
from ell12 import L12ClassifierCV, L12RegressorCV, NonmonotoneAPG
from ell12.linear_model.cross_validation import _fold
from ell12.plots import _curve

random = np.random.default_rng(0)
X = random.standard_normal((60, 12))
Y = np.stack([X[:, 1] - 2 * X[:, 4], X[:, 2] + X[:, 1]], axis=1) + 0.3 * random.standard_normal((60, 2)) + 5
labels, weight = np.array([7, 3, 5])[np.digitize(Y[:, 0], [4, 6])], random.uniform(0.5, 2, 60)
grid = {"n_alphas": 2, "eps": 0.2, "cv": 3, "tol": 1e-8}
if sys.argv[1] == "jax":  # which compiles every operation for every number of columns
    grid |= {"n_alphas": 1, "alphas": [0.1], "cv": 2}
factors = np.where(np.arange(12) == 7, 0.0, 1.0)
sklearn.set_config(array_api_dispatch=True)
for model, y in [
    (L12RegressorCV(**grid, l2_weight=0.0), Y[:, 0]),
    (L12RegressorCV(**grid, l2_weight=0.0, penalty_factors=factors, positive=True, fit_intercept=False), Y),
    (L12ClassifierCV(**grid, l2_weight=0.0), labels),
    (L12ClassifierCV(**grid, l2_weight=0.0, scoring="accuracy"), labels == 3),
    (L12RegressorCV(**grid, l2_weight=0.0, shared_support=True), Y),
][: None if sys.argv[1] in ("torch", "cupy") else 1]:
    expected = sklearn.clone(model).fit(X, y, weight)
    for together in (None, True):
        if together and getattr(model, "shared_support", False):
            continue
        model.set_params(together=together).fit(array(X), array(y), array(weight))
        name = "mse_path_" if hasattr(model, "mse_path_") else "scores_"
        scores = getattr(model, name)
        for values in (model.coef_, model.intercept_, model.alphas_, scores):
            assert type(values) is type(array(X)), (type(values), together)
        assert abs(model.alpha_ / expected.alpha_ - 1) < 1e-9
        np.testing.assert_allclose(as_numpy(scores), getattr(expected, name), rtol=1e-6)
        np.testing.assert_allclose(as_numpy(model.coef_), expected.coef_, atol=1e-6)
        assert isinstance(_curve(model)[0], np.ndarray)

# The path of a fold on arrays as they are: what is done on a GPU where the folds cannot be columns.
train, test = np.arange(60) >= 20, np.arange(60) < 20
grid["cv"] = [(train, test)]
model = L12RegressorCV(**grid, l2_weight=0.0, solver=NonmonotoneAPG()).fit(array(X), array(Y[:, 0]))
scores, _ = _fold(model, array(X), array(Y[:, 0]), None, as_numpy(model.alphas_), train, test)
np.testing.assert_allclose(scores, -as_numpy(model.mse_path_)[:, 0], rtol=1e-6)
"""
)


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax", "array_api_strict"])
def test_cross_validation_on_arrays_of_other_libraries(kind):
    run_on(kind, FOLDS)


IMPUTER = (
    ARRAYS
    + """
from ell12 import L12Imputer

sklearn.set_config(array_api_dispatch=True)
random = np.random.default_rng(0)
X = random.standard_normal((30, 2)) @ random.standard_normal((2, 12))
X = np.where(random.random(X.shape) < 0.3, np.nan, X).astype("float32")
expected = L12Imputer(random_state=0).fit(X)
model = L12Imputer(random_state=0).fit(array(X))
for found, wanted in (
    (model.transform(array(X)), expected.transform(X)),
    (model.predict(array(X)), expected.predict(X)),
    (model.fit_transform(array(X)), expected.transform(X)),
):
    assert type(found) is type(array(X)) and found.dtype == array(X).dtype and found.device == array(X).device
    np.testing.assert_array_equal(as_numpy(found), wanted)
assert isinstance(model.transform(X), np.ndarray)
"""
)


@pytest.mark.parametrize("kind", ["torch cpu", *ON_GPU, "jax"])
def test_the_imputer_gives_arrays_back_as_they_came(kind):
    run_on(kind, IMPUTER)


def test_without_dispatch_tensors_become_numpy_arrays():
    torch = pytest.importorskip("torch")
    from ell12 import L12Regressor

    X = np.random.default_rng(0).standard_normal((20, 3))
    model = L12Regressor(0.1).fit(torch.asarray(X), torch.asarray(X[:, 0]))
    assert isinstance(model.coef_, np.ndarray)

"""Cross-validation on arrays of other libraries finds what it finds on NumPy's."""

import sys
from functools import partial

import numpy as np
import sklearn
from library import array

from ell12 import L1, L12ClassifierCV, L12RegressorCV, NonmonotoneAPG, RowsL12
from ell12.backend import as_numpy
from ell12.linear_model.alpha_search import _fold
from ell12.linear_model.fit_problem import Data
from ell12.plots import _curve

random = np.random.default_rng(0)
X = random.standard_normal((60, 12))
Y = np.stack([X[:, 1] - 2 * X[:, 4], X[:, 2] + X[:, 1]], axis=1) + 0.3 * random.standard_normal((60, 2)) + 5
labels, weight = np.array([7, 3, 5])[np.digitize(Y[:, 0], [4, 6])], random.uniform(0.5, 2, 60)
grid = {"alphas": 2, "eps": 0.2, "cv": 3, "tol": 1e-8}
RegressorCV = partial(L12RegressorCV, relax=False)  # as on a GPU
if sys.argv[1] == "jax":  # which compiles every operation for every number of columns
    grid |= {"alphas": [0.1], "cv": 2}
factors = np.where(np.arange(12) == 7, 0.0, 1.0)
sklearn.set_config(array_api_dispatch=True)
for model, y in [
    (RegressorCV(**grid, penalty=L1()), Y[:, 0]),
    (RegressorCV(**grid, penalty=L1(weights=factors, positive=True), fit_intercept=False), Y),
    (L12ClassifierCV(**grid, penalty=L1(), class_weight="balanced"), labels),
    (L12ClassifierCV(**grid, penalty=L1(), scoring="accuracy"), labels == 3),
    (RegressorCV(**grid, penalty=RowsL12(l2_weight=0.0)), Y),
][: None if sys.argv[1] in ("torch", "cupy") else 1]:
    expected = sklearn.clone(model).fit(X, y, weight)
    model.fit(array(X), array(y), array(weight))
    name = "mse_path_" if hasattr(model, "mse_path_") else "scores_"
    scores = getattr(model, name)
    for values in (model.coef_, model.intercept_, model.alphas_, scores):
        assert type(values) is type(array(X)), type(values)
    assert abs(model.alpha_ / expected.alpha_ - 1) < 1e-9
    np.testing.assert_allclose(as_numpy(scores), getattr(expected, name), rtol=1e-6)
    np.testing.assert_allclose(as_numpy(model.coef_), expected.coef_, atol=1e-6)
    assert isinstance(_curve(model)[0], np.ndarray)

# The path of a fold on arrays as they are, with a first-order solver.
train, test = np.arange(60) >= 20, np.arange(60) < 20
grid["cv"] = [(train, test)]
model = RegressorCV(**grid, penalty=L1())
model.solver = NonmonotoneAPG()
model.fit(array(X), array(Y[:, 0]))
data = Data(array(X), array(Y[:, 0]))
scores, _ = _fold(model, (model.penalty_, as_numpy(model.alphas_), (0.0,)), data, train, test)
np.testing.assert_allclose(scores[0], -as_numpy(model.mse_path_)[:, 0], rtol=1e-6)

"""The checks of scikit-learn on arrays of other libraries; prints the libraries that were there."""

import unittest
import warnings

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

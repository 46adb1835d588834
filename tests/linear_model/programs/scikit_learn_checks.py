"""The checks of scikit-learn on arrays of other libraries; prints the libraries that were there."""

import inspect
import unittest
import warnings
from functools import partial

from sklearn.utils import estimator_checks

from ell12 import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "the chosen alpha")
every = estimator_checks._yield_array_api_checks
if "only_numpy" in inspect.signature(every).parameters:  # from scikit-learn 1.8 on
    every = partial(every, only_numpy=False)
done = []
grid = {"alphas": 3, "eps": 0.3, "cv": 2}
for model in (L12Regressor(), L12Classifier(), L12RegressorCV(**grid), L12ClassifierCV(**grid)):
    for check in every(model):
        try:
            check(type(model).__name__, model)
        except unittest.SkipTest:
            continue
        done.append(check.keywords.get("array_namespace") or "mixed")
print(" ".join(sorted(set(done))))

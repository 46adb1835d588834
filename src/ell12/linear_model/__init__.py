"""Estimators in the manner of scikit-learn: sparse linear regression, classification and survival.

The only part of the package that imports scikit-learn.
"""

from ell12.linear_model.classifier import L12Classifier
from ell12.linear_model.cross_validation import L12ClassifierCV, L12RegressorCV
from ell12.linear_model.regressor import L12Regressor
from ell12.linear_model.survival import L12CoxRegressor, L12CoxRegressorCV

__all__ = [
    "L12Classifier",
    "L12ClassifierCV",
    "L12CoxRegressor",
    "L12CoxRegressorCV",
    "L12Regressor",
    "L12RegressorCV",
]

"""scikit-learn's own checks of the estimators: none is skipped by us or expected to fail.

Cox regression is checked with Breslow's ties: with Efron's a weight of 2 is no sample that is there twice.
"""

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import L12Classifier, L12ClassifierCV, L12CoxRegressor, L12CoxRegressorCV, L12Regressor, L12RegressorCV

SHORT = {"alphas": 3, "eps": 0.2, "cv": 3}  # so that the checks are fast
ESTIMATORS = [
    L12Regressor(),
    L12Classifier(),
    L12RegressorCV(**SHORT),
    L12ClassifierCV(**SHORT),
    L12Regressor(loss="huber"),
    L12Regressor(0.1, loss="poisson"),
    L12Classifier(loss="multinomial"),
    L12CoxRegressor(ties="breslow"),
    L12CoxRegressorCV(ties="breslow", **SHORT),
]


@pytest.mark.filterwarnings("default:1 of 3 folds are left out")  # 16 samples, two times in all
@parametrize_with_checks(ESTIMATORS)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    if "sample_weight_equivalence" in str(check):
        tol = 1e-10 if "multinomial" in str(estimator) else 1e-9
        estimator = clone(estimator).set_params(tol=tol)  # weights and copies of samples are compared to 1e-7
    check(estimator)

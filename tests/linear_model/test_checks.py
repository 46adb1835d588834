"""scikit-learn's own checks of the estimators: none is skipped by us or expected to fail."""

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV

SHORT = {"n_alphas": 3, "eps": 0.2, "cv": 3}  # so that the checks are fast
ESTIMATORS = [L12Regressor(), L12Classifier(), L12RegressorCV(**SHORT), L12ClassifierCV(**SHORT)]


@parametrize_with_checks(ESTIMATORS)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    if "sample_weight_equivalence" in str(check):
        estimator = clone(estimator).set_params(tol=1e-9)  # weights and copies of samples are compared to 1e-7
    check(estimator)

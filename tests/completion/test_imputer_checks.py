"""scikit-learn's own checks of the imputer: none is skipped by us or expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from ell12 import L12Imputer

SHORT = {"n_alphas": 4, "eps": 0.2}  # so that the checks are fast


@parametrize_with_checks([L12Imputer(**SHORT), L12Imputer(alpha=0.5)])
def test_the_imputer_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)

"""Checks at the border: the data are checked once."""

from collections import Counter

import numpy as np
import pytest
import sklearn.utils.validation

import ell12.checks
import ell12.linear_model.sparse_model
from ell12 import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV


@pytest.fixture
def checks(monkeypatch):
    """How often entries were checked for NaN, infinity or too large ones, by the size of the array."""
    counts = Counter()

    def counting(function):
        def check(x, *arguments, **options):
            counts[np.size(x)] += 1
            return function(x, *arguments, **options)

        return check

    for module in (ell12.checks, ell12.linear_model.sparse_model):
        monkeypatch.setattr(module, "square_fits", counting(module.square_fits))
    name = "_assert_all_finite"
    monkeypatch.setattr(sklearn.utils.validation, name, counting(getattr(sklearn.utils.validation, name)))
    return counts


@pytest.mark.parametrize("kind", [L12Regressor, L12Classifier, L12RegressorCV, L12ClassifierCV])
def test_a_fit_checks_x_once_and_twice_at_y(checks, kind):
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 5))
    y = X[:, 0] + 0.1 * random.standard_normal(60)
    options = {"alphas": 3, "cv": 3} if kind.__name__.endswith("CV") else {"alpha": 0.1}
    kind(**options).fit(X, y if issubclass(kind, L12Regressor) else np.sign(y))
    assert checks[X.size] == 1
    assert checks[y.size] <= 2
    assert sum(checks.values()) <= 3  # nor at parts of them, such as folds

"""The estimators on arguments and data at the edge of what makes sense."""

import numpy as np
import pytest

from ell12 import L12Classifier, NonmonotoneAPG


def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 8))
    return X, 3 * X[:, 0] - 2 * X[:, 3] + 0.1 * random.standard_normal(60)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5])
def test_a_positive_classifier_may_be_left_with_its_intercept_alone(l2_weight):
    X, y = data()
    options = {"alpha": 10.0, "l2_weight": l2_weight, "positive": True}
    model = L12Classifier(**options).fit(X, y > 1)
    assert not model.coef_.any()
    other = L12Classifier(**options, solver=NonmonotoneAPG()).fit(X, y > 1)
    assert np.allclose(model.intercept_, other.intercept_, atol=1e-2)

"""Parameters of frozen dataclasses inside an estimator."""

import pytest
from sklearn.base import BaseEstimator

from ell12 import L12, MCP, Run
from ell12.nested_parameters import NestedParameters


class Model(NestedParameters, BaseEstimator):
    def __init__(self, alpha=None, penalty=L12(), run=None):  # noqa: B008
        self.alpha, self.penalty, self.run = alpha, penalty, run


def test_fields_are_parameters():
    model = Model(penalty=L12(0.1, l2_weight=0.5))
    found = model.get_params()
    assert (found["penalty__alpha"], found["penalty__l2_weight"], found["alpha"]) == (0.1, 0.5, None)
    assert set(model.get_params(deep=False)) == {"alpha", "penalty", "run"}


def test_fields_are_set_in_copies():
    penalty = L12()
    model = Model(penalty=penalty).set_params(penalty__alpha=0.3, alpha=2.0)
    assert (model.penalty.alpha, model.alpha, penalty.alpha) == (0.3, 2.0, None)
    model.set_params(penalty__gamma=2.0, penalty=MCP())
    assert repr(model.penalty) == "MCP(gamma=2.0)"
    assert model.set_params(run=Run()).set_params(run__max_seconds=60).run.max_seconds == 60


def test_wrong_fields_are_named():
    with pytest.raises(TypeError, match="gamma"):
        Model().set_params(penalty__gamma=2.0)

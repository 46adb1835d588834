"""Parameters of frozen dataclasses inside an estimator."""

import pytest

from ell12 import L12, MCP, L12Regressor, Run


def test_fields_are_parameters_that_are_set_in_copies():
    penalty = L12(0.1, l2_weight=0.5)
    model = L12Regressor(penalty=penalty)
    found = model.get_params()
    assert (found["penalty__alpha"], found["penalty__l2_weight"]) == (0.1, 0.5)
    assert "penalty__alpha" not in model.get_params(deep=False)
    model.set_params(penalty__alpha=0.3, alpha=2.0)
    assert (model.penalty.alpha, model.alpha, penalty.alpha) == (0.3, 2.0, 0.1)
    with pytest.raises(TypeError, match="gamma"):
        model.set_params(penalty__gamma=2.0)
    model.set_params(penalty__gamma=2.0, penalty=MCP())
    assert repr(model.penalty) == "MCP(gamma=2.0)"
    assert model.set_params(run=Run()).set_params(run__max_seconds=60).run.max_seconds == 60

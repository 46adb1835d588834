"""What a run found, and how it says so."""

import numpy as np
import pytest

from ell12 import Result, Status


def test_every_status_has_a_sentence():
    for status in Status:
        assert status.value.endswith(".")
        assert len(status.value.split()) > 4


@pytest.mark.parametrize("status", Status)
def test_a_result_has_converged_with_one_status_alone(status):
    result = Result(np.zeros(2), 1.0, 0.5, status, 3, {"objective": [2.0, 1.0]})
    assert result.converged is (status is Status.CONVERGED)
    assert "history" not in repr(result)  # which would fill the screen
    with pytest.raises(AttributeError):
        result.objective = 0.0

"""What a run may begin at: checked against the loss, in its shape, kind and precision."""

import numpy as np
import pytest

from ell12 import SquaredLoss
from ell12.minimization.rounding_stop import as_unknown, starting_point

A = np.random.default_rng(0).standard_normal((6, 3))


def test_a_run_begins_at_zero_or_at_x0_in_the_precision_of_the_loss():
    loss = SquaredLoss(A.astype(np.float32), np.ones(6))
    np.testing.assert_array_equal(starting_point(loss, None), np.zeros(3))
    assert starting_point(loss, np.ones(3)).dtype == np.float32


def test_the_stationarity_is_measured_in_the_precision_of_x():
    loss = SquaredLoss(A.astype(np.float32), np.ones(6))
    assert as_unknown(loss, np.ones(3), "x").dtype == np.float64


@pytest.mark.parametrize("x", [np.ones(4), 1.0, np.array([np.nan, 0, 0]), 1j * np.ones(3), ["a", "b", "c"]])
def test_what_does_not_fit_the_loss_is_refused_by_name(x):
    with pytest.raises((TypeError, ValueError), match=r"^x0 "):
        starting_point(SquaredLoss(A, np.ones(6)), x)

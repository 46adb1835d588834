"""What solvers of images ask of a problem before they begin."""

import numpy as np
import pytest

from ell12 import HuberLoss, SquaredLoss, TotalVariationL12
from ell12.restoration.smoothed_gradient import check_smoothing, is_plain_square


def test_a_plain_square_has_neither_scale_nor_weights():
    A, b = np.eye(4), np.ones(4)
    assert is_plain_square(SquaredLoss(A, b))
    assert not is_plain_square(SquaredLoss(A, b, scale=0.5))
    assert not is_plain_square(SquaredLoss(A, b, sample_weight=np.ones(4)))
    assert not is_plain_square(HuberLoss(A, b))


@pytest.mark.parametrize("smooths", [False, True])
def test_a_solver_takes_the_smoothed_or_the_true_objective_alone(smooths):
    fits, other = (TotalVariationL12(0.1, smoothing=0.01 if s else 0.0) for s in (smooths, not smooths))
    check_smoothing(fits, smooths)
    with pytest.raises(
        ValueError, match="needs a TotalVariationL12 with smoothing " + ("> 0" if smooths else "0")
    ):
        check_smoothing(other, smooths)


def test_bounds_are_refused_by_a_solver_without_them():
    penalty = TotalVariationL12(0.1, smoothing=0.01, bounds=(0.0, 1.0))
    check_smoothing(penalty, True)
    with pytest.raises(ValueError, match="takes no bounds"):
        check_smoothing(penalty, True, bounded=False)
    check_smoothing(TotalVariationL12(0.1, smoothing=0.01), True, bounded=False)

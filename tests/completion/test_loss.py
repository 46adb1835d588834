"""The loss on the known entries of a matrix, against dense sums."""

import numpy as np
import pytest

from ell12 import LowRank, Observed
from ell12.completion import CompletionLoss


def problem():
    random = np.random.default_rng(0)
    X, mask = random.standard_normal((6, 5)), random.random((6, 5)) < 0.5
    x, y = (LowRank.from_factors(random.standard_normal((6, 2)), random.standard_normal((5, 2))) for _ in range(2))
    return X, mask, CompletionLoss(Observed.from_mask(X, mask)), x, y


def test_values_and_gradients_are_those_of_the_known_errors():
    X, mask, loss, x, y = problem()
    errors = np.where(mask, x.to_array() - X, 0)
    point, other = loss.point(x), loss.point(y)
    assert loss.value(point) == pytest.approx(0.5 * np.sum(errors**2), rel=1e-13)
    np.testing.assert_allclose(loss.gradient(point).toarray(), errors, atol=1e-13)
    above = loss.value(other) - loss.value(point) - np.sum(errors * (y.to_array() - x.to_array()))
    assert loss.divergence(other, point) == pytest.approx(above, rel=1e-10)
    assert above <= loss.lipschitz() / 2 * np.sum((y.to_array() - x.to_array()) ** 2)


@pytest.mark.parametrize("length", [0.3, 1.0, 1.7])
def test_a_gradient_step_moves_the_known_entries_towards_their_values(length):
    X, mask, loss, x, _ = problem()
    prediction = loss.point(x).prediction
    expected = prediction + length * (X[mask] - prediction)
    np.testing.assert_allclose(loss.after_step(prediction, length), expected, atol=1e-13)


def test_the_start_is_the_zero_matrix():
    loss = problem()[2]
    assert (loss.start().rank, loss.start().shape) == (0, (6, 5))
    assert not loss.start().to_array().any()


def test_a_start_that_does_not_fit_is_named():
    loss, x = problem()[2:4]
    np.testing.assert_array_equal(loss.check_start(x).to_array(), x.to_array())
    with pytest.raises(TypeError, match="x0 must be a LowRank matrix, got ndarray"):
        loss.check_start(x.to_array())
    with pytest.raises(ValueError, match=r"x0 must have shape \(6, 5\), got \(5, 6\)"):
        loss.check_start(x.T)
    with pytest.raises(ValueError, match="x0 holds NaN or infinity"):
        loss.check_start(LowRank(x.U, np.full(2, np.nan), x.V))

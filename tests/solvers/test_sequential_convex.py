"""Sequential convex programming, against its steps written out."""

import numpy as np
import pytest

from ell12 import L12, SequentialConvex, SquaredLoss


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
def test_the_steps_are_soft_thresholding_after_the_subtracted_gradient(l2_weight):
    random = np.random.default_rng(0)
    A, alpha = random.standard_normal((15, 25)), 0.8
    b = A[:, :3].sum(axis=1) + 0.1 * random.standard_normal(15)
    loss, penalty = SquaredLoss(A, b), L12(alpha, l2_weight)
    step = 1 / loss.lipschitz()
    iterates = SequentialConvex().iterates(loss, penalty, loss.point(loss.start()))
    x = next(iterates).point.x
    first = -step * A.T @ (A @ np.zeros(25) - b)  # the first step is a proximal one
    shrunk = np.sign(first) * np.maximum(np.abs(first) - step * alpha, 0)
    np.testing.assert_allclose(x, shrunk * (1 + step * alpha * l2_weight / np.linalg.norm(shrunk)), rtol=1e-12)
    for _ in range(50):
        v = x - step * (A.T @ (A @ x - b) - alpha * l2_weight * x / np.linalg.norm(x))
        expected = np.sign(v) * np.maximum(np.abs(v) - step * alpha, 0)
        iterate = next(iterates)
        np.testing.assert_allclose(iterate.point.x, expected, rtol=1e-9, atol=1e-12)
        value = 0.5 * np.sum((A @ expected - b) ** 2)
        value += alpha * (np.abs(expected).sum() - l2_weight * np.linalg.norm(expected))
        assert iterate.objective == pytest.approx(value, rel=1e-10)
        x = iterate.point.x

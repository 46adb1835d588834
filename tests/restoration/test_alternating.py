"""Alternating minimization, against both of its steps written out with dense matrices."""

import numpy as np
import pytest

from ell12 import SquaredLoss, TotalVariationL12, prox_l12
from ell12.operators.image_operators import Identity
from ell12.restoration.splitting import AlternatingMinimization

SHAPE = (6, 5)


def differences():
    """The matrix of differences down and to the right, zero at the border: two for each pixel."""
    number = np.arange(30).reshape(SHAPE)
    D = np.zeros((2, *SHAPE, 30))
    for i, j in np.ndindex(SHAPE):
        for axis, (k, m) in enumerate(((i + 1, j), (i, j + 1))):
            if k < SHAPE[0] and m < SHAPE[1]:
                D[axis, i, j, number[k, m]] += 1
                D[axis, i, j, number[i, j]] -= 1
    return D.reshape(60, 30)


@pytest.mark.parametrize("l2_weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("inner", ["exact", "cg"])
def test_each_round_is_a_prox_of_the_differences_and_a_linear_system(inner, l2_weight):
    y = np.random.default_rng(0).random(SHAPE)
    alpha, smoothing = 0.2, 0.05
    mu, D = alpha / smoothing, differences()
    loss = SquaredLoss(Identity(SHAPE), y)
    penalty = TotalVariationL12(alpha, l2_weight, smoothing=smoothing)
    solver = AlternatingMinimization(inner=inner, cg_tol=1e-13, cg_max_iter=1000)
    iterates = solver.iterates(loss, penalty, loss.point(np.zeros(SHAPE)))
    W = np.zeros(60)
    for _ in range(15):
        x = np.linalg.solve(np.eye(30) + mu * D.T @ D, y.ravel() + mu * D.T @ W)
        iterate = next(iterates)
        np.testing.assert_allclose(iterate.point.x.ravel(), x, atol=1e-9)
        W = prox_l12((D @ x).reshape(2, 30), smoothing, l2_weight=l2_weight, axis=0).ravel()
        pairs = W.reshape(2, 30)
        size = np.abs(pairs).sum() - l2_weight * np.linalg.norm(pairs, axis=0).sum()
        value = 0.5 * np.sum((x - y.ravel()) ** 2) + mu / 2 * np.sum((D @ x - W) ** 2) + alpha * size
        assert iterate.objective == pytest.approx(value, rel=1e-9)

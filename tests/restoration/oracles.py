"""What tests compare with: a convex solver written out, and pictures."""

import numpy as np

from ell12.operators.image_operators import FiniteDifference


def least_objective(y, alpha, smoothing=0.0, isotropic=False, steps=3000):
    """The least convex objective, by the accelerated primal-dual method of Chambolle and Pock."""
    D = FiniteDifference(y.shape)
    x, v = y.copy(), np.zeros((*y.shape, y.ndim))
    ahead, tau, sigma = x, 0.25, 0.5

    def sizes(steps):
        return np.linalg.norm(steps, axis=-1, keepdims=True) if isotropic else np.abs(steps)

    for _ in range(steps):
        v = (v + sigma * (D @ ahead)) / (1 + sigma * smoothing / alpha)
        v = v / np.maximum(1, sizes(v) / alpha)
        new = (x - tau * (D.H @ v) + tau * y) / (1 + tau)
        theta = 1 / np.sqrt(1 + tau)
        ahead, x, tau, sigma = new + theta * (new - x), new, theta * tau, sigma / theta
    size = sizes(D @ x)
    cost = np.where(size <= smoothing, size**2 / (2 * smoothing), size - smoothing / 2) if smoothing else size
    return 0.5 * np.sum((x - y) ** 2) + alpha * np.sum(cost)


def noisy(shape=(40, 40), sigma=0.05, seed=0):
    """A ramp, a rectangle, a disc and a slanted edge, with noise."""
    i, j = np.indices(shape) * 40 / np.reshape(shape, (2, 1, 1))
    clean = 0.3 * i / 40 + 0.5 * ((i > 8) & (i < 25) & (j > 5) & (j < 20)) + 0.2 * (i + 2 * j > 95)
    clean = clean + 0.4 * ((i - 25) ** 2 + (j - 28) ** 2 < 60)
    return clean + sigma * np.random.default_rng(seed).standard_normal(shape)

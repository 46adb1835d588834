"""Problems that several tests of solvers share."""

import math

import numpy as np

from ell12 import HuberLoss, LogisticLoss, SquaredLoss


def well_conditioned(seed=0, m=80, n=30):
    """A design near an isometry and a sparse signal strong enough that all solvers see the same minimum."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((m, n)) / math.sqrt(m)
    return A, A[:, :6] @ [4.0, -3.0, 2.5, -2.0, 3.5, 2.0] + 0.02 * random.standard_normal(m)


def design(seed=0, shape=(60, 200), nonzero=8, zeros=0.3):
    """Columns some entries of which are zero, and a response that some of them explain."""
    random = np.random.default_rng(seed)
    A = random.standard_normal(shape)
    A[random.random(shape) < zeros] = 0
    x = np.zeros(shape[1])
    x[:nonzero] = 3 * random.standard_normal(nonzero)
    return A, A @ x + 0.3 * random.standard_normal(shape[0])


def cosines(seed, F, n_nonzero, shape):
    """Oversampled cosines, one frequency a row, and a vector whose entries lie at least 2F apart."""
    random, (m, n) = np.random.default_rng(seed), shape
    A = np.cos(2 * np.pi * random.random((m, 1)) * np.arange(1, n + 1) / F) / np.sqrt(m)
    columns = np.sort(random.permutation(n - (n_nonzero - 1) * (2 * F - 1))[:n_nonzero])
    x = np.zeros(n)
    x[columns + (2 * F - 1) * np.arange(n_nonzero)] = random.standard_normal(n_nonzero)
    return A, x


def make_loss(name, A, b, **options):
    """A loss by its name, of labels where it is logistic."""
    if name == "logistic":
        return LogisticLoss(A, np.where(b > 0, 1.0, -1.0), **options)
    return HuberLoss(A, b, delta=0.5, **options) if name == "huber" else SquaredLoss(A, b, **options)

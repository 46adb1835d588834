"""Losses over chunks, against the same loss in memory."""

import numpy as np
import pytest

from ell12 import L12, HuberLoss, LogisticLoss, NonmonotoneAPG, ProximalGradient, SquaredLoss, minimize
from ell12.losses import StreamedLoss


@pytest.mark.parametrize("kind", [SquaredLoss, LogisticLoss, HuberLoss])
@pytest.mark.parametrize("solver", [ProximalGradient, NonmonotoneAPG])
def test_backtracking_in_single_precision_takes_about_the_steps_that_it_takes_in_memory(kind, solver):
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 50)).astype(np.float32)
    b = A[:, :5].sum(axis=1) + 0.1 * random.standard_normal(200).astype(np.float32)
    b = np.sign(b) if kind is LogisticLoss else b
    streamed = StreamedLoss([(A[k : k + 50], b[k : k + 50]) for k in range(0, 200, 50)], kind)
    options = {"solver": solver(step="backtracking"), "max_iter": 2000}
    near = minimize(kind(A, b, scale=1 / 200), L12(0.02, 0.5), **options)
    far = minimize(streamed, L12(0.02, 0.5), **options)
    assert near.converged
    assert far.converged
    assert far.n_iter <= 2 * near.n_iter + 10

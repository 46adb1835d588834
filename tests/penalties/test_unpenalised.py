"""A penalty beside a free last entry."""

import numpy as np

from ell12.penalties import L12, WithIntercept


def test_an_intercept_is_free_of_penalty_and_sign():
    penalty = WithIntercept(L12(0.5, positive=True))
    x = np.array([2.0, -1.0, -5.0])
    shrunk = penalty.prox(x, 1.0)
    np.testing.assert_array_equal(shrunk[:-1], L12(0.5, positive=True).prox(x[:-1], 1.0))
    assert shrunk[-1] == -5.0
    assert penalty.subtracted_gradient(np.abs(x))[-1] == 0
    assert penalty.convex.value(np.abs(x)) == 1.5
    assert penalty.violation(shrunk, np.array([0.0, 0.0, -0.7])) >= 0.7

"""The kernel, against a search over all directions and against its parts put together by hand."""

import numpy as np
import pytest

from ell12.prox.closed_form import (
    plain_prox_rows,
    prox_rows,
    prox_vector,
)

CASES = [(0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (0.9, 0.6), (3.0, 1.0), (0.8, 1.7)]


def objective(x, z, t, l2_weight, weights=1.0):
    return 0.5 * np.sum(np.abs(x - z) ** 2) + t * (np.sum(weights * np.abs(x)) - l2_weight * np.linalg.norm(x))


def lowest(z, t, l2_weight, weights=1.0, positive=False):
    """The least objective over the plane: for each of many directions u the best length is a formula."""
    angles = np.linspace(0, (0.5 if positive else 2) * np.pi, 20_001)
    u = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    slope = u @ z - t * ((weights * np.abs(u)).sum(axis=1) - l2_weight)
    return 0.5 * z @ z - 0.5 * np.max(np.maximum(slope, 0)) ** 2


@pytest.mark.parametrize(("t", "l2_weight"), CASES)
@pytest.mark.parametrize("weights", [None, np.array([0.3, 1.4])])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("prox", [prox_vector, prox_rows, plain_prox_rows])
def test_no_point_of_the_plane_is_lower(prox, t, l2_weight, weights, positive):
    for z in np.random.default_rng(0).uniform(-2, 2, (20, 2)):
        x = prox(z, t, l2_weight, weights, positive)
        found = objective(x, z, t, l2_weight, 1.0 if weights is None else weights)
        least = lowest(z, t, l2_weight, 1.0 if weights is None else weights, positive)
        assert not positive or x.min() >= 0
        assert least - 1e-6 <= found <= least + 1e-10

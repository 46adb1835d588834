"""Corrections for many tests against their definitions."""

import numpy as np
import pytest

from ell12.selection.confidence import adjusted_p_values


def rejected_by_holm(p, level):
    """Step down by the definition: the smallest against level/m, the next against level/(m - 1), ..."""
    found = set()
    for k, j in enumerate(np.argsort(p, kind="stable")):
        if p[j] > level / (len(p) - k):
            break
        found.add(int(j))
    return found


def rejected_by_bh(p, level):
    """Step up by the definition: all up to the last rank k with p_(k) <= k level/m."""
    order = np.argsort(p, kind="stable")
    good = [k for k, j in enumerate(order, start=1) if p[j] <= k * level / len(p)]
    return {int(j) for j in order[: max(good, default=0)]}


@pytest.mark.parametrize(("method", "rejected"), [("holm", rejected_by_holm), ("bh", rejected_by_bh)])
def test_adjusted_values_reject_what_the_definition_rejects_at_every_level(method, rejected):
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p = random.uniform(size=size) ** 3
        adjusted = adjusted_p_values(p, method)
        for level in (0.01, 0.05, 0.2, 0.9):
            assert set(np.flatnonzero(adjusted <= level).tolist()) == rejected(p, level)


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_a_missing_p_value_stays_missing_and_does_not_count(method):
    found = adjusted_p_values(np.array([0.01, np.nan, 0.04]), method)
    assert np.isnan(found[1])
    assert np.array_equal(found[[0, 2]], adjusted_p_values(np.array([0.01, 0.04]), method))

"""Pictures of intervals show the surest features first and never more than asked for."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from ell12.plots import plot_intervals
from ell12.selection import Intervals


def intervals(size=50):
    random = np.random.default_rng(0)
    estimate = random.standard_normal(size)
    error = np.full(size, 0.5)
    estimate[3] = np.nan
    p_values = np.exp(-np.abs(estimate))
    names = [f"feature with a rather long name {k}" for k in range(size)]
    ends = estimate - 1, estimate + 1
    return Intervals(np.arange(size), names, 0 * error, estimate, error, *ends, p_values, 0.95, "nodewise", 1.0)


def test_the_smallest_p_values_come_first_with_names_that_fit():
    found = intervals()
    axes = plot_intervals(found)
    order = np.argsort(np.where(np.isnan(found.p_values), 2, found.p_values))[:30]
    drawn = np.concatenate([line.get_xdata() for line in axes.lines if line.get_marker() == "o"])
    np.testing.assert_array_equal(np.sort(drawn), np.sort(found.estimate[order]))
    assert all(len(label.get_text()) <= 24 for label in axes.get_yticklabels())
    axes.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(above.y0 >= below.y1 for above, below in itertools.pairwise(boxes))


def test_fewer_features_and_none_at_all_can_be_drawn():
    assert len(plot_intervals(intervals(), n_features=3).get_yticks()) == 3
    assert len(intervals(4).plot().get_yticks()) == 3
    with pytest.raises(ValueError, match="n_features"):
        plot_intervals(intervals(), n_features=0)

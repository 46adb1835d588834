"""Pictures of confidence intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.plots.axes import new_axes

# Names of features are cut to this length.
LONGEST = 24


def plot_intervals(intervals: Any, *, n_features: int = 30, axes: Any = None) -> Any:
    """Draw confidence intervals below each other, those of the smallest p values first.

    Parameters
    ----------
    intervals : Intervals
        As from `ell12.confidence_intervals`.
    n_features : int, default 30
        How many to draw at the most.
    axes : matplotlib Axes, optional
        Where to draw; a new figure, as high as the features need, by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines. A circle marks the debiased estimate, a cross the coefficient of the model
        where it is not zero. Intervals that do not hold zero are in colour, others in grey.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import confidence_intervals, plot_intervals
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((60, 5))
    >>> found = confidence_intervals(X, X[:, 2] + random.standard_normal(60))
    >>> [label.get_text() for label in plot_intervals(found, n_features=2).get_yticklabels()][0]
    '2'
    """
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    known = np.flatnonzero(~np.isnan(intervals.estimate))
    # Of equal p values, as of many that are 0, the larger estimate in units of its error comes first.
    steepness = np.abs(intervals.estimate[known]) / intervals.standard_error[known]
    order = known[np.lexsort((-steepness, intervals.p_values[known]))][:n_features]
    if axes is None:
        axes = new_axes()
        axes.figure.set_figheight(1.2 + 0.25 * max(order.size, 4))
    places = np.arange(order.size)
    away = (intervals.lower[order] > 0) | (intervals.upper[order] < 0)
    axes.axvline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for which, color in ((away, "C0"), (~away, "0.6")):
        rows = order[which]
        axes.hlines(
            places[which], intervals.lower[rows], intervals.upper[rows], color=color, linewidth=1.6, zorder=2
        )
        axes.plot(intervals.estimate[rows], places[which], "o", color=color, markersize=4, zorder=3)
    selected = intervals.coef[order] != 0
    axes.plot(intervals.coef[order][selected], places[selected], "x", color="C1", markersize=5, zorder=4)
    axes.set_yticks(places, [_short(intervals.names[k]) for k in order], fontsize="small")
    axes.set_ylim(max(order.size, 1) - 0.5, -0.5)
    axes.set_xlabel(f"coefficient, {100 * intervals.level:g} % interval; cross: in the model")
    return axes


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."

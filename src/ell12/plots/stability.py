"""Pictures of stability selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.plots.axes import alpha_axis, new_axes


def plot_stability(selection: Any, *, n_labels: int = 12, axes: Any = None) -> Any:
    """Draw the share of the halves that have selected each feature, along the path, and the threshold.

    Parameters
    ----------
    selection : StabilitySelection
        Fitted.
    n_labels : int, default 12
        How many of the selected features get a label, the most frequent ones. Those that are not selected are
        drawn in grey.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines. Where the estimator has no path, a point stands for each feature, the most
        frequent one first.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import StabilitySelection, plot_stability
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((60, 20))
    >>> selection = StabilitySelection(n_subsamples=10, random_state=0).fit(X, X[:, 3] + X[:, 5])
    >>> plot_stability(selection).get_legend_handles_labels()[1]
    ['x3', 'x5', 'threshold, 0.7']
    """
    axes = new_axes() if axes is None else axes
    names = np.asarray(getattr(selection, "feature_names_in_", [f"x{j}" for j in range(selection.n_features_in_)]))
    order = np.argsort(-selection.frequencies_, kind="stable")
    chosen = [int(j) for j in order if selection.get_support()[j]]
    if hasattr(selection, "path_frequencies_"):
        _draw_paths(axes, selection, order, chosen, names, n_labels)
    else:
        _draw_points(axes, selection, order, chosen, names, n_labels)
    axes.axhline(
        selection.threshold_, color="0.4", linestyle="--", label=f"threshold, {selection.threshold_:.3g}", zorder=1
    )
    axes.set_ylabel("share of the halves")
    axes.set_ylim(-0.02, 1.02)
    axes.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def _draw_paths(axes: Any, selection: Any, order: Any, chosen: list[int], names: Any, n_labels: int) -> None:
    """A line for each feature that some half has selected."""
    shares = selection.path_frequencies_
    for j in order[len(chosen) :]:
        if selection.frequencies_[j] > 0:
            axes.plot(selection.alphas_, shares[:, j], color="0.8", linewidth=0.8, zorder=1)
    for k, j in enumerate(chosen):
        label = str(names[j]) if k < n_labels else None
        axes.plot(selection.alphas_, shares[:, j], linewidth=1.6, label=label, zorder=2)
    alpha_axis(axes, selection.alphas_)


def _draw_points(axes: Any, selection: Any, order: Any, chosen: list[int], names: Any, n_labels: int) -> None:
    """A point for each feature."""
    ranks, shares = np.arange(1, order.size + 1), selection.frequencies_[order]
    axes.plot(ranks[len(chosen) :], shares[len(chosen) :], "o", color="0.8", markersize=3)
    for k, j in enumerate(chosen):
        axes.plot(ranks[k], shares[k], "o", markersize=5, label=str(names[j]) if k < n_labels else None)
    axes.set_xlabel("rank of the feature")

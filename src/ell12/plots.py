"""Figures for users; the only module, beside the experiments, that imports matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw_completion_path(alphas: Any, errors: Any, ranks: Any, axes: Any = None) -> Any:
    """Draw the error on hidden entries, and beside it the rank, over alpha; the least error is marked.

    Parameters
    ----------
    alphas, errors, ranks : arrays
        As in `ell12.CompletionPath`.
    axes : matplotlib Axes, optional
        Where to draw; on a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes of the error.
    """
    import matplotlib.pyplot as plt

    if axes is None:
        axes = plt.subplots(layout="constrained")[1]
    axes.set_xscale("log")
    axes.invert_xaxis()  # a path goes from large alpha to small
    axes.set_xlabel("alpha")
    axes.set_ylabel("RMSE on hidden entries")
    if not np.all(np.isnan(errors)):
        axes.plot(alphas, errors, marker="o", markersize=3, color="C0")
        best = int(np.nanargmin(errors))
        axes.plot(alphas[best], errors[best], marker="o", color="C3")
        axes.annotate(
            f"{errors[best]:.4g}", (alphas[best], errors[best]), textcoords="offset points", xytext=(4, 6)
        )
    beside = axes.twinx()
    beside.step(alphas, ranks, where="mid", color="0.6")
    beside.set_ylabel("rank", color="0.4")
    return axes

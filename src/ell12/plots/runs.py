"""A picture of one run."""

from __future__ import annotations

from typing import Any

from ell12.plots.axes import new_axes


def plot_run(optimality: list[float], tol: float, axes: Any = None) -> Any:
    """The stationarity of each iterate, as the solver estimated it, and the one that was asked for."""
    axes = new_axes() if axes is None else axes
    axes.semilogy(optimality)
    if tol > 0:
        axes.axhline(tol, linestyle=":", color="gray")
    axes.set_xlabel("iteration")
    axes.set_ylabel("stationarity")
    return axes

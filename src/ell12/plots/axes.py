"""Axes: where a picture is drawn, and an axis of strengths."""

from __future__ import annotations

from typing import Any


def alpha_axis(axes: Any, alphas: Any) -> None:
    """Let the strengths fall from left to right, by logarithms where none is 0."""
    axes.set_xlabel("alpha")
    if alphas.min() > 0:
        axes.set_xscale("log")
    if not axes.xaxis_inverted():
        axes.invert_xaxis()


def new_axes() -> Any:
    """The axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ell12[plots]'") from error
    return plt.subplots(layout="constrained")[1]

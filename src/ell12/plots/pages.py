"""Pictures inside pages: SVG whose colours are those of the page, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ell12.plots.paths import plot_cross_validation

# Matplotlib's colours -> what the style sheet of a page calls them.
COLOURS = {
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
    "#1f77b4": "var(--series-1)",
    "#ff7f0e": "var(--series-2)",
    "#2ca02c": "var(--series-3)",
    "#d62728": "var(--series-4)",
    "#666666": "var(--soft)",
    "#999999": "var(--soft)",
}
SIZE = (5.2, 3.6)  # inches
MOST_POINTS = 3000  # of a picture: more make the page heavy and show nothing more


def cross_validation_svg(model: Any) -> str:
    """The cross-validation of a model, as `ell12.plot_cross_validation` draws it, for a page."""
    canvas, axes = _page_axes()
    plot_cross_validation(model, axes=axes)
    words = f"The {axes.get_ylabel()} of rows left out against alpha; a line marks the alpha that was chosen."
    return page_svg(canvas, "folds", "Cross-validation", words, COLOURS)


def predictions_svg(truth: Any, predicted: Any, label: str) -> str:
    """Predictions against the truth, for a page; many points are thinned out evenly."""
    canvas, axes = _page_axes()
    which = np.unique(np.linspace(0, len(truth) - 1, MOST_POINTS).astype(int)) if len(truth) > MOST_POINTS else ...
    axes.scatter(truth[which], predicted[which], s=9, color="C0", alpha=0.5, linewidths=0)
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    axes.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
    axes.set_xlabel(f"{label} in the file")
    axes.set_ylabel("predicted, the row left out")
    words = f"Predictions of {label} by fits without the row, against its value; on the line they are equal."
    return page_svg(canvas, "predictions", "Predictions against the truth", words, COLOURS)


def _page_axes() -> tuple[Any, Any]:
    """A figure that no window shows, and its axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ell12[report]'") from error
    canvas = Figure(figsize=SIZE, layout="constrained")
    axes = canvas.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return canvas, axes


def page_svg(canvas: Any, name: str, title: str, description: str, colours: Mapping[str, str]) -> str:
    """A matplotlib figure as an element of a page; ``colours`` says what the page calls some of its colours.

    ``name`` must be unique on the page: it prefixes the ids inside the SVG.
    """
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _embed(text.getvalue(), name, title, description, colours)


def _embed(svg: str, name: str, title: str, description: str, colours: Mapping[str, str]) -> str:
    """Matplotlib's file as an element of the page: own ids, the page's colours and font, short numbers."""
    svg = svg[svg.index("<svg") :]
    view_box = re.search(r'viewBox="[^"]*"', svg)
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = body.replace('xlink:href="#', f'href="#{name}-')
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    body = re.sub(r'\bd="[^"]*"', lambda path: _shorten(path[0]), body)
    for colour, variable in colours.items():
        body = body.replace(colour, variable)
    head = f'<svg {view_box[0] if view_box else ""} role="img" aria-labelledby="{name}-title {name}-desc">'
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    return re.sub(r"\s*\n\s*", "\n", head + words + body).strip()


def _shorten(path: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path)

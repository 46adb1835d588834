"""Drawings inside the page: curves as SVG, whose colours follow light and dark, and images as PNG."""

from __future__ import annotations

import base64
import io
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, NullFormatter

# What matplotlib draws with -> what the page's style sheet calls it.
INK, GRID, ACCENT = "#222222", "#d0d0d0", "#2166ac"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#aa3e98", "#8a6d00", "#4d4d66", "#c4314b")
COLOURS = {INK: "currentColor", GRID: "var(--grid)", ACCENT: "var(--accent)"}
COLOURS |= {colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)}
DASHES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1.2, 1.6))}
SIZE = (3.7, 2.75)  # inches
MOST_MARKERS = 20  # points of a curve; more would hide it


@dataclass(frozen=True)
class Key:
    """What a curve is, for the legend: the number of its colour (from 1) and how it is dashed."""

    label: str
    series: int
    dash: str = "solid"


@dataclass(frozen=True)
class Line:
    """A curve: what it is, and its points."""

    key: Key
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One drawing of a figure, an element of the page, and the curves in it."""

    title: str
    drawing: str
    keys: tuple[Key, ...] = ()


def line_panel(
    title: str, lines: Sequence[Line], x_label: str, y_label: str, floor: float = 0.0, logarithmic: str = "xy"
) -> Panel:
    """Curves; points that an axis cannot show, that are below the floor, or that are NaN, are left out."""
    keys = tuple(dict.fromkeys(line.key for line in lines))
    words = f"{y_label} against {x_label}, for {', '.join(key.label for key in keys)}."

    canvas, axes = _axes(x_label, y_label)
    for line in lines:
        _draw(axes, line, floor, logarithmic)
    whole = all(float(x).is_integer() for line in lines for x in line.x)
    for letter in "xy":
        axis = getattr(axes, f"{letter}axis")
        if letter in logarithmic:
            axes.set(**{f"{letter}scale": "log"})
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(5, integer=letter == "x" and whole, min_n_ticks=3))
    axes.grid(True, color=GRID, linewidth=0.6)
    return Panel(title, page_svg(canvas, title, words), keys)


def _draw(axes: Any, line: Line, floor: float, logarithmic: str) -> None:
    least = [floor if letter in logarithmic else -math.inf for letter in "xy"]
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x > min(least[0], 0) and y > least[1]]
    if points:
        x, y = zip(*points, strict=True)
        colour, width = SERIES[line.key.series - 1], 2.0 if line.key.dash == "solid" else 1.6
        axes.plot(x, y, color=colour, linestyle=DASHES[line.key.dash], linewidth=width)
        if 2 < len(points) <= MOST_MARKERS or len(points) == 1:
            axes.plot(x, y, "o", color=colour, markersize=3.2)


def contour_panel(title: str, axis: Sequence[float], values: Sequence[Sequence[float]]) -> Panel:
    """Level curves of a function on a square grid, eight levels from its lowest to its highest value."""
    heights = np.asarray(values)
    levels = np.linspace(heights.min(), heights.max(), 10)
    shades = [(*matplotlib.colors.to_rgb(ACCENT), 0.04 + 0.05 * k) for k in range(len(levels) - 1)]

    canvas, axes = _axes("x₁", "x₂", size=(2.2, 2.15))
    axes.contourf(axis, axis, heights, levels=levels, colors=shades)
    axes.contour(axis, axis, heights, levels=levels[1:-1], colors=[ACCENT], linewidths=0.9)
    axes.set_aspect("equal")
    axes.set(xticks=[axis[0], 0, axis[-1]], yticks=[axis[0], 0, axis[-1]])
    return Panel(title, page_svg(canvas, title, f"Level curves of {title} in two dimensions."))


def image_panel(title: str, values: Any, is_difference: bool = False) -> Panel:
    """A grey image; 0 is black and 1 white. On a dark page a difference is shown in negative."""
    from PIL import Image

    pixels = np.rint(np.clip(np.asarray(values, dtype=float), 0, 1) * 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "png")
    source = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    kind = ' class="difference"' if is_difference else ""
    size = f'width="{len(pixels[0])}" height="{len(pixels)}"'
    return Panel(title, f'<img{kind} alt="{escape(title)}" {size} src="{source}"/>')


def _axes(x_label: str, y_label: str, size: tuple[float, float] = SIZE) -> tuple[Canvas, Any]:
    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.add_subplot()
    axes.set_xlabel(x_label, fontsize=8.5, color=INK)
    axes.set_ylabel(y_label, fontsize=8.5, color=INK)
    axes.tick_params(labelsize=8, color=GRID, labelcolor=INK, length=3)
    for side, spine in axes.spines.items():
        spine.set_color(GRID)
        spine.set_visible(side in ("left", "bottom"))
    return canvas, axes


def page_svg(canvas: Any, title: str, description: str) -> str:
    """A matplotlib figure as an element of the page: own ids, the page's colours and font, short numbers."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{title} {description}"}):
        canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<g") :], flags=re.DOTALL)
    mark, used = f"d{zlib.crc32((title + svg).encode())}", set(re.findall(r"#(\w+)", body))  # ids of this drawing
    body = re.sub(r' id="([^"]*)"', lambda found: f' id="{mark}-{found[1]}"' * (found[1] in used), body)
    body = body.replace('href="#', f'href="#{mark}-').replace("url(#", f"url(#{mark}-")
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    body = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"-?\d+\.\d+", _shortened, path[0]), body)
    for colour, variable in COLOURS.items():
        body = body.replace(colour, variable)
    box = " ".join(f"{72 * side:g}" for side in canvas.get_size_inches())
    head = f'<svg viewBox="0 0 {box}" role="img"><title>{escape(title)}</title><desc>{escape(description)}</desc>'
    return re.sub(r"\s*\n\s*", "\n", head + body).strip()


def _shortened(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")

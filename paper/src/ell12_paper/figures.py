"""Figures inside the page: curves as SVG, whose colours follow light and dark, and images as PNG."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ell12.commands.png import encode_png
from ell12.plots.pages import page_svg
from ell12.wording import number, power_of_ten
from ell12_paper.findings import Key, Panel

# What matplotlib draws with -> what the page's style sheet calls it.
INK, GRID, ACCENT = "#222222", "#d0d0d0", "#2166ac"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#aa3e98", "#8a6d00", "#4d4d66", "#c4314b")
_PAGE_COLOURS = {INK: "currentColor", GRID: "var(--grid)", ACCENT: "var(--accent)"} | {
    colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)
}
DASHES: dict[str, Any] = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1.2, 1.6))}
SIZE, FIRST_SIZE = (3.7, 2.75), (3.0, 1.85)  # inches; the second is that of the first screen
FEWEST_POINTS = 4  # fewer points are drawn as points: a curve through three shows nothing that they do not
MOST_MARKERS = 20  # points of a curve; more would hide it


@dataclass(frozen=True)
class Line:
    """A curve: what it is, its points, and whether they are marked where they are few."""

    key: Key
    x: Sequence[float]
    y: Sequence[float]
    marker: bool = False


def line_panel(
    name: str,
    title: str,
    lines: Sequence[Line],
    x_label: str,
    y_label: str,
    floor: float | None = None,
    logarithmic: str = "xy",
    size: tuple[float, float] = SIZE,
) -> Panel:
    """Curves on axes that are logarithmic (those named) or linear.

    On a logarithmic axis points that are not positive are left out, as are those below the floor and NaN.
    ``name`` must be unique on the page: it prefixes the ids inside the SVG.
    """
    keys = tuple(dict.fromkeys(line.key for line in lines))
    words = f"{title}: {y_label} against {x_label}, for {', '.join(key.label for key in keys)}."

    def draw() -> str:
        canvas, axes = _axes(x_label, y_label, size)
        _draw_lines(axes, lines, floor, logarithmic)
        return page_svg(canvas, name, title, words, _PAGE_COLOURS)

    return Panel(title, draw, keys)


def _draw_lines(axes: Any, lines: Sequence[Line], floor: float | None, logarithmic: str) -> None:
    least_x = 0.0 if "x" in logarithmic else -math.inf
    least_y = (floor or 0.0) if "y" in logarithmic else -math.inf
    for line in lines:
        points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if x > least_x and y > least_y]
        if points:
            x, y = zip(*points, strict=True)
            colour, width = SERIES[line.key.series - 1], 2.0 if line.key.dash == "solid" else 1.6
            is_curve = len(points) >= FEWEST_POINTS or min(y) == max(y)
            if is_curve:
                axes.plot(x, y, color=colour, linestyle=DASHES[line.key.dash], linewidth=width)
            if (line.marker and len(points) <= MOST_MARKERS) or not is_curve:
                axes.plot(x, y, "o", color=colour, markersize=3.2)
    whole = all(float(x).is_integer() for line in lines for x in line.x)
    for letter in "xy":
        if letter in logarithmic:
            axes.set(**{f"{letter}scale": "log"})
            _mark_ticks(getattr(axes, f"{letter}axis"), getattr(axes, f"get_{letter}lim")())
        else:
            locator = MaxNLocator(5, integer=letter == "x" and whole, min_n_ticks=3)
            getattr(axes, f"{letter}axis").set_major_locator(locator)
    axes.grid(True, color=GRID, linewidth=0.6)


def contour_panel(name: str, title: str, axis: Sequence[float], values: Sequence[Sequence[float]]) -> Panel:
    """Level curves of a function on a square grid, eight levels from its lowest to its highest value."""
    heights = np.asarray(values)
    levels = np.linspace(heights.min(), heights.max(), 10)
    description = f"Level curves of {title} in two dimensions, at {len(levels) - 2} equally spaced values."

    def draw() -> str:
        canvas, axes = _axes("x₁", "x₂", size=(2.2, 2.15))
        _draw_levels(axes, axis, heights, levels)
        return page_svg(canvas, name, title, description, _PAGE_COLOURS)

    return Panel(title, draw)


def _draw_levels(axes: Any, axis: Sequence[float], heights: Any, levels: Any) -> None:
    shades = [(*matplotlib.colors.to_rgb(ACCENT), 0.04 + 0.05 * k) for k in range(len(levels) - 1)]
    axes.contourf(axis, axis, heights, levels=levels, colors=shades)
    axes.contour(axis, axis, heights, levels=levels[1:-1], colors=[ACCENT], linewidths=0.9)
    axes.axhline(0, color=INK, linewidth=0.5)
    axes.axvline(0, color=INK, linewidth=0.5)
    axes.set_aspect("equal")
    axes.set_xticks([axis[0], 0, axis[-1]])
    axes.set_yticks([axis[0], 0, axis[-1]])


def image_panel(
    title: str, values: Sequence[Sequence[float]] | np.ndarray, description: str, is_difference: bool = False
) -> Panel:
    """A grey image inside the page; 0 is black and 1 white. On a dark page a difference is shown in negative."""

    def draw() -> str:
        pixels = np.rint(np.clip(np.asarray(values, dtype=float), 0, 1) * 255).astype(np.uint8)
        content = base64.b64encode(encode_png(pixels)).decode()
        rows, columns = pixels.shape
        source = f"data:image/png;base64,{content}"
        kind = ' class="difference"' if is_difference else ""
        return f'<img{kind} alt="{escape(description)}" width="{columns}" height="{rows}" src="{source}"/>'

    return Panel(title, draw)


def log_ticks(low: float, high: float) -> list[float]:
    """Three to seven places to mark on a logarithmic axis: powers of ten, multiples of them, or round steps.

    Examples
    --------
    >>> from ell12_paper.figures import log_ticks
    >>> log_ticks(0.5, 2000.0), log_ticks(4.0, 40.0), [round(tick, 3) for tick in log_ticks(4.1, 4.9)]
    ([1.0, 10.0, 100.0, 1000.0], [5.0, 10.0, 20.0], [4.2, 4.4, 4.6, 4.8])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [factor * 10.0**power for power in powers for factor in factors]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= 3:
            return inside[:: -(-len(inside) // 7)]
    steps = MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=3).tick_values(low, high)
    return [float(tick) for tick in steps if low <= tick <= high]


def _mark_ticks(axis: Any, limits: tuple[float, float]) -> None:
    ticks = log_ticks(*limits)
    powers = all(math.isclose(tick, 10.0 ** round(math.log10(tick))) for tick in ticks)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value) if powers else number(value)))


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

"""Level curves on the page: five panels, and what they show of the axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ell12_paper import figures
from ell12_paper.findings import Figure, Kind, Outcome, Panel, Part, Section, Source, Verdict
from ell12_paper.level_curves.study import NAME, TITLE
from ell12_paper.rows import Row

OURS = "l1-2"
_SOURCE = Source(Kind.PAPER, "Section I, Figure 1")
_LEVELS = (0.4, 0.2, 0.1, 0.05)  # as fractions of the value in the square's corner
_NOTHING = 1e-6  # rows are rounded to six digits


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's reading of its first figure."""
    claim = "The level curves of l1-2 come closer to the axes as the values get smaller"
    row = next((row for row in rows if row["settings"]["penalty"] == OURS), None)
    if row is None:
        return [Verdict(claim, Outcome.OPEN, "", "There is no row of l1-2.", source=_SOURCE)]
    levels, distances = _distances(row)
    falls = bool(np.all(np.diff(distances) < 0))
    shown = "; ".join(
        f"{distance:.3f} at value {level:.3f}" for level, distance in zip(levels, distances, strict=True)
    )
    numbers = f"Distance of the curve from the axis at x₁ = {row['results']['axis'][-1]:g}: {shown}."
    reason = f"The distance {'falls' if falls else 'does not fall'} with the value."
    return [Verdict(claim, Outcome.HOLDS if falls else Outcome.FAILS, numbers, reason, source=_SOURCE)]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    found = verdicts(rows)
    panels = tuple(_panel(row) for row in rows)
    caption = (
        "Each penalty with strength 1 on the same square, at equally spaced values; stronger colour is larger."
    )
    figure = Figure("Level curves", panels, caption, True, "Figure 1")
    return Section(
        name=NAME,
        title=TITLE,
        asked=(
            "How do the penalties look in two dimensions? The closer the level curves run along the axes, the "
            "more a penalty prefers vectors with few nonzero entries.",
        ),
        found=_axis_words(rows),
        reasons=(),
        verdicts=tuple(found),
        parts=(Part("The paper's first figure", figures=(figure,), where=({},)),),
        scale="as in the paper",
    )


def _axis_words(rows: Sequence[Row]) -> tuple[str, ...]:
    """What a vector with a single nonzero entry costs."""
    cost = {row["settings"]["penalty"]: _cost_on_axis(row) for row in rows}
    edge = rows[0]["results"]["axis"][-1]
    values = "; ".join(f"{name} {value:.3g}" for name, value in cost.items())
    free = [name for name, value in cost.items() if abs(value) <= _NOTHING]
    moral = f" Where it costs nothing ({', '.join(free)}) no level curve crosses an axis." if free else ""
    return (f"The vector ({edge:g}, 0), with a single nonzero entry, costs: {values}.{moral}",)


def _panel(row: Row) -> Panel:
    penalty, parameters = row["settings"]["penalty"], row["settings"].get("parameters") or {}
    title = ", ".join((penalty, *(f"{name} = {value:g}" for name, value in parameters.items())))
    name = f"{NAME}-{''.join(letter if letter.isalnum() else '-' for letter in penalty)}"
    return figures.contour_panel(name, title, row["results"]["axis"], row["results"]["values"])


def _grid(row: Row) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(row["results"]["axis"]), np.asarray(row["results"]["values"])


def _cost_on_axis(row: Row) -> float:
    axis, values = _grid(row)
    return float(values[int(np.argmin(np.abs(axis))), -1])


def _distances(row: Row) -> tuple[list[float], list[float]]:
    """Some values, and how far above the axis the curve of each passes at the square's right edge."""
    axis, values = _grid(row)
    edge, heights = values[axis >= 0, -1], axis[axis >= 0]
    levels = [float(fraction * edge[-1]) for fraction in _LEVELS]
    return levels, [float(np.interp(level, edge, heights)) for level in levels]

"""The figures of the page: the paper's, and those of what we add."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12_paper import image_judges, judges
from ell12_paper.drawing import Key, Line, Panel, contour_panel, image_panel, line_panel
from ell12_paper.image_judges import at_rule, completion, strengths
from ell12_paper.judges import GRID, Rows, setups
from ell12_paper.studies import denoising, level_curves
from ell12_paper.studies.image_completion import unpack_picture
from ell12_paper.studies.images import STAND_INS, short_name
from ell12_paper.trials import Trials


@dataclass(frozen=True)
class Figure:
    """Panels that share a legend and a caption; ``number`` is the paper's."""

    study: str
    part: str
    title: str
    panels: tuple[Panel, ...]
    caption: str = ""
    number: str = ""
    small: bool = False

    @property
    def legend(self) -> list[Key]:
        """The curves of all panels, each once."""
        return list(dict.fromkeys(key for panel in self.panels for key in panel.keys))


def figures(rows: Rows) -> Iterator[Figure]:
    """Every figure, in the order of the page."""
    makers = {judges.SENSING: _sensing, image_judges.COMPLETION: _completion}
    makers |= {denoising.NAME: _denoising, level_curves.NAME: _level_curves}
    for study, make in makers.items():
        if rows[study].rows:
            yield from (figure for figure in make(rows) if figure.panels)


def _key(name: str, names: Sequence[str]) -> Key:
    """Seven colours, then the same again dashed."""
    number = list(names).index(name)
    return Key(name, number % 7 + 1, ("solid", "dashed")[number // 7])


def _sensing(rows: Rows) -> Iterator[Figure]:
    for trials in setups(rows):
        panels = tuple(_race(trials, i) for i in GRID)
        caption = "First repeat. Lowest: of any l1-2 method; of FISTA its own."
        part, title = trials.name.capitalize(), f"Objective less the lowest against CPU time ({trials.name})"
        yield Figure(judges.SENSING, part, title, panels, caption, "Figure 2")


def _race(trials: Trials, i: int) -> Panel:
    found = trials.where(i=i, repeat=0).rows
    histories = {row["settings"]["method"]: row["results"]["history"] for row in found}
    lowest = {m: min(v for v in history["objective"] if v is not None) for m, history in histories.items()}
    ours = min((value for method, value in lowest.items() if method != "FISTA"), default=math.nan)
    lines = []
    for method in (method for method in trials.methods if method in histories):
        base, history = lowest[method] if method == "FISTA" else ours, histories[method]
        gaps = [math.nan if value is None else value - base for value in history["objective"]]
        lines.append(Line(_key(method, trials.methods), history["cpu_seconds"], gaps))
    return line_panel(f"i = {i}", lines, "CPU seconds", "objective − lowest", floor=1e-8 * abs(ours))


def _completion(rows: Rows) -> Iterator[Figure]:
    table = completion(rows, "table")
    name, part = image_judges.COMPLETION, "Clean and difference images"
    clean = {row["settings"]["image"]: packed for row in table.rows if (packed := row["results"].get("clean"))}
    panels = tuple(image_panel(short_name(image), unpack_picture(packed)) for image, packed in clean.items())
    yield Figure(name, part, "Clean images", panels, "What was to be found.", "Figure 4", True)
    for image in table.columns:
        found = [row for row in table.where(image=image).rows if row["results"]["difference"]]
        drawn = ((row["settings"]["method"], 1 - unpack_picture(row["results"]["difference"])) for row in found)
        panels = tuple(image_panel(method, values, True) for method, values in drawn)
        caption = "Differences to the clean image, first repeat; white is none."
        yield Figure(name, part, f"Differences on {short_name(image)}", panels, caption, "Figure 3", True)


CAPTION = "Loose: a change of 1e-3; strict: 1e-4."
# The curves of denoising: method, rule, colour and dash.
CURVES = (
    (denoising.DCA, "strict", 2, "solid"),
    (denoising.DCA, "loose", 2, "dotted"),
    (denoising.ACCURATE, "strict", 1, "solid"),
    (denoising.ALTMIN, "loose", 1, "dotted"),
    (denoising.OURS, "strict", 3, "dashed"),
)


def _denoising(rows: Rows) -> Iterator[Figure]:
    for study in strengths(rows):
        part, ended = study.name.capitalize(), {rule: at_rule(study, rule) for rule in denoising.RULES}
        curves = [(m, r, Key(f"{m}, {r}", c, dash)) for m, r, c, dash in CURVES if m in study.methods]
        alphas = [0.02 * i for i in study.columns]
        for result, words, scales in (("rmse", "RMSE", "x"), ("cpu_seconds", "CPU seconds", "xy")):
            panels = []
            for image in study.seen("image", STAND_INS):
                here = {rule: found.where(image=image) for rule, found in ended.items()}
                means = {c: [here[c[1]].at(c[0], i).mean(result) for i in study.columns] for c in curves}
                lines = [Line(curve[2], alphas, found) for curve, found in means.items()]
                panels.append(line_panel(short_name(image), lines, "α", words, logarithmic=scales))
            title = f"{words} against α ({part.lower()})"
            yield Figure(denoising.NAME, part, title, tuple(panels), CAPTION, "Figure 5")
        yield from _differences(study, part)


def _differences(study: Trials, part: str) -> Iterator[Figure]:
    for method in (denoising.DCA, denoising.ALTMIN):
        found = [row for i in denoising.SHOWN for row in study.at(method, i).rows if row["results"]["difference"]]
        titles = ["α = " * (not k) + f"{row['settings']['alpha']:.2f}" for k, row in enumerate(found)]
        drawn = zip(titles, (1 - _levels(row) for row in found), strict=True)
        panels = tuple(image_panel(title, values, True) for title, values in drawn)
        caption = f"Differences to the clean image; {denoising.DARKEST:g} or more is black."
        yield Figure(denoising.NAME, part, f"{method} ({part.lower()})", panels, caption, "Figure 6", True)


def _levels(row: Any) -> Any:
    return np.array([list(bytes.fromhex(text)) for text in row["results"]["difference"]]) / 255


def _level_curves(rows: Rows) -> Iterator[Figure]:
    panels = []
    for row in rows[level_curves.NAME].rows:
        parameters = row["settings"].get("parameters") or {}
        title = ", ".join((row["settings"]["penalty"], *(f"{name} = {v:g}" for name, v in parameters.items())))
        panels.append(contour_panel(title, row["results"]["axis"], row["results"]["values"]))
    caption = "Each penalty with strength 1 on the same square, at equally spaced values."
    part, title = "The paper's first figure", "Level curves"
    yield Figure(level_curves.NAME, part, title, tuple(panels), caption, "Figure 1", True)

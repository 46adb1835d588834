"""The figures of the page: the paper's, and those of what we add."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12_paper import image_judges, judges
from ell12_paper.drawing import Key, Line, Panel, contour_panel, image_panel, line_panel
from ell12_paper.image_judges import BLOCK, CONVEX, LOG_SUM, at_rule, completion, images_of, mean_ratio, strengths
from ell12_paper.judges import GRID, OURS, Rows, setups
from ell12_paper.published import published
from ell12_paper.studies import beyond, denoising, level_curves, prox_race
from ell12_paper.studies.compressed_sensing import DEFAULT, RHO_ONE
from ell12_paper.studies.image_completion import METHODS, unpack_picture
from ell12_paper.studies.images import shown
from ell12_paper.tables import CURVES, along_grid, label, shown_alpha
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
    makers = {
        judges.SENSING: _sensing,
        image_judges.COMPLETION: _completion,
        denoising.NAME: _denoising,
        level_curves.NAME: _level_curves,
        prox_race.NAME: _prox,
    }
    for study, make in makers.items():
        if rows[study].rows:
            yield from (figure for figure in make(rows) if figure.panels)


# Colour and dash of the methods; the two variants of DCA share a colour.
SENSING_KEYS = {
    OURS: Key(OURS, 1),
    "DCA": Key("DCA", 2),
    "SCP": Key("SCP", 3),
    "nmAPG(numerical)": Key("nmAPG(numerical)", 4, "dashed"),
    "FISTA": Key("FISTA on the convex l1 problem", 5, "dashed"),
    RHO_ONE: Key("DCA, its inner ADMM with ρ = 1", 2, "dotted"),
    DEFAULT: Key(f"{DEFAULT}, the default of ell12", 6),
}


def _sensing(rows: Rows) -> Iterator[Figure]:
    for trials in setups(rows):
        panels = tuple(_race(trials, i) for i in GRID)
        caption = (
            "Objective minus the lowest that any l1-2 method reached on the same problem, first repeat; FISTA "
            "solves another problem and is drawn with the gap to its own lowest value."
        )
        place = (judges.SENSING, f"Setup “{trials.name}”")
        yield Figure(*place, f"Objective against CPU time ({trials.name})", panels, caption, "Figure 2")


def _race(trials: Trials, i: int) -> Panel:
    found = trials.where(i=i, repeat=0).rows
    histories = {row["settings"]["method"]: row["results"]["history"] for row in found}
    lowest = {method: min(_known(history["objective"])) for method, history in histories.items()}
    ours = min((value for method, value in lowest.items() if method != "FISTA"), default=math.nan)
    lines = []
    for method in (method for method in trials.methods if method in histories):
        base, history = lowest[method] if method == "FISTA" else ours, histories[method]
        gaps = [math.nan if value is None else value - base for value in history["objective"]]
        lines.append(Line(SENSING_KEYS[method], history["cpu_seconds"], gaps))
    return line_panel(f"i = {i}", lines, "CPU seconds", "objective − lowest", floor=1e-8 * abs(ours))


def _known(values: Any) -> list[float]:
    return [value for value in values if value is not None]


COMPLETION_KEYS = {
    BLOCK: Key("l1-2, our block engine", 1),
    CONVEX: Key("nuclear norm, our block engine", 2),
    LOG_SUM: Key("log-sum, our block engine", 3),
    "AIS-Impute": Key("nuclear norm, AIS-Impute", 2, "dotted"),
    "SketchyCGM": Key("nuclear norm, SketchyCGM", 4, "dashed"),
    "ARSS-M3F": Key("ARSS-M3F", 5),
    "LMaFit": Key("LMaFit, rank fixed", 6),
    "LMaFit(growing rank)": Key("LMaFit, rank growing", 6, "dashed"),
    "ER1MP": Key("ER1MP", 7),
}


def _completion(rows: Rows) -> Iterator[Figure]:
    table, path, theta = (completion(rows, study) for study in ("table", "path", "theta"))
    name, part = image_judges.COMPLETION, "Clean and difference images"
    clean = {row["settings"]["image"]: packed for row in table.rows if (packed := row["results"].get("clean"))}
    panels = tuple(
        image_panel(shown(image), unpack_picture(clean[image])) for image in table.columns if image in clean
    )
    yield Figure(name, part, "Clean images", panels, "What was to be found.", "Figure 4", True)
    for image in table.columns:
        found = [
            row for method in table.methods for row in table.at(method, image).rows if row["results"]["difference"]
        ]
        panels = tuple(
            image_panel(
                f"{row['settings']['method']}: {100 * row['results']['rmse']:.2f}",
                1 - unpack_picture(row["results"]["difference"]),
                True,
            )
            for row in found
        )
        caption = "Differences to the clean image, white being none, with RMSE x 100; first repeat."
        yield Figure(name, part, f"Differences on {shown(image)}", panels, caption, "Figure 3", True)
    by_alpha = [method for method in path.methods if METHODS[method].parameter == "alpha"]
    for title, methods, x, y in (
        ("RMSE against α", by_alpha, "alpha_factor", "rmse_missing"),
        ("Rank along the path", by_alpha, "alpha_factor", "rank"),
        ("RMSE against the rank of the answer", path.methods, "rank", "rmse_missing"),
    ):
        panels = tuple(
            line_panel(
                shown(image),
                [_path_line(path, method, image, x, y) for method in methods],
                {"alpha_factor": "α / largest known pixel", "rank": "rank"}[x],
                {"rmse_missing": "RMSE x 100, missing pixels", "rank": "rank"}[y],
            )
            for image in path.columns
        )
        yield Figure(name, "The strength, which the paper fixes", title, panels)
    panels = tuple(_theta_panel(theta, table, image) for image in theta.columns)
    yield Figure(name, "Log-sum's θ", "RMSE against log-sum's θ", panels, "Missing pixels, first repeat.")


def _path_line(path: Trials, method: str, image: str, x: str, y: str) -> Line:
    heights = along_grid(path, method, image, y)
    places = {value: value for value in heights} if x == "alpha_factor" else along_grid(path, method, image, x)
    points = sorted((places[value], (100 if y != "rank" else 1) * height) for value, height in heights.items())
    return Line(COMPLETION_KEYS[method], [p[0] for p in points], [p[1] for p in points])


def _theta_panel(theta: Trials, table: Trials, image: str) -> Panel:
    results = [row["results"] for row in theta.at(LOG_SUM, image).rows]
    points = sorted((found["theta"], 100 * found["rmse_missing"]) for found in results)
    at = [point[0] for point in points]
    lines = [Line(COMPLETION_KEYS[LOG_SUM], at, [point[1] for point in points])]
    for method in (BLOCK, CONVEX):
        first = table.at(method, image).values("rmse_missing").get(0, math.nan)
        lines.append(Line(COMPLETION_KEYS[method], [at[0], at[-1]], [100 * first] * 2))
    return line_panel(shown(image), lines, "θ", "RMSE x 100")


def _denoising(rows: Rows) -> Iterator[Figure]:
    for study in strengths(rows):
        part, ended = f"Noise of {study.name} 0.05", {rule: at_rule(study, rule) for rule in denoising.RULES}
        curves = [(m, rule, Key(label(m, rule), colour, dash)) for m, rule, colour, dash in CURVES]
        curves = [curve for curve in curves if curve[0] in study.methods]
        alphas = [0.02 * i for i in study.columns]
        for result, words, scales in (("rmse", "RMSE", "x"), ("cpu_seconds", "CPU seconds", "xy")):
            panels = []
            for image in images_of(study):
                here = {rule: found.where(image=image) for rule, found in ended.items()}
                means = {c: [here[c[1]].at(c[0], i).mean(result) for i in study.columns] for c in curves}
                lines = [Line(curve[2], alphas, found) for curve, found in means.items()]
                panels.append(line_panel(shown(image), lines, "α", words, logarithmic=scales))
            yield Figure(
                denoising.NAME, part, f"{words} against α ({part.lower()})", tuple(panels), "", "Figure 5"
            )
        lines = []
        for method, rule, key in curves:
            if method != denoising.DCA:
                lines.append(Line(key, alphas, [mean_ratio(ended[rule], method, i) for i in study.columns]))
        key = Key("the paper says 20 to 30", 2, "dotted")
        lines += [Line(key, [alphas[0], alphas[-1]], [t] * 2) for t in published()[denoising.NAME]["times_faster"]]
        panels = [line_panel("All images", lines, "α", "DCA's time / the method's")]
        yield Figure(
            denoising.NAME, part, f"Times faster than DCA ({part.lower()})", tuple(panels), "", "Figure 5"
        )
        yield from _differences(study, part)
    yield from _beyond(rows)


def _differences(study: Trials, part: str) -> Iterator[Figure]:
    for method in study.methods:
        found = [row for i in denoising.SHOWN for row in study.at(method, i).rows if row["results"]["difference"]]
        panels = tuple(image_panel(shown_alpha(row["settings"]["i"]), 1 - _levels(row), True) for row in found)
        number = "Figure 6" if method in (denoising.DCA, denoising.ALTMIN) else ""
        caption = f"Differences of {method} to the clean image; {denoising.DARKEST:g} or more is black."
        yield Figure(denoising.NAME, part, f"{method} ({part.lower()})", panels, caption, number, True)


def _levels(row: Any) -> Any:
    return np.array([list(bytes.fromhex(text)) for text in row["results"]["difference"]]) / 255


def _beyond(rows: Rows) -> Iterator[Figure]:
    trials, place = rows[denoising.NAME], (denoising.NAME, "Beyond the paper")
    weights = trials.where(study=beyond.WEIGHTS)
    grid = sorted(weights.seen("l2_weight"))
    lines = []
    for k, image in enumerate(weights.seen("image")):
        key = Key(shown(image), k % 7 + 1, "dashed" if image in image_judges.DRAWN else "solid")
        lines.append(Line(key, grid, [image_judges.psnr(rows, beyond.WEIGHTS, image, w) for w in grid]))
    if lines:
        panel = line_panel("Denoising", lines, "l2_weight", "PSNR (dB)", logarithmic="")
        yield Figure(*place, "PSNR against l2_weight", (panel,), "Each point at its best strength.")
    panels = []
    for bounds in beyond.BOUNDS:
        chosen = trials.where(study=beyond.LINES, bounds=bounds)
        lines = []
        for k, weight in enumerate(sorted(chosen.seen("l2_weight"))):
            found = {r["settings"]["lines"]: r["results"] for r in chosen.where(l2_weight=weight).rows}
            errors = [found[count]["relative_error"] or math.nan for count in sorted(found)]
            lines.append(Line(Key(f"l2_weight {weight:g}", k + 1), sorted(found), errors))
        if lines:
            panels.append(line_panel(f"{bounds} values", lines, "radial lines", "relative error", logarithmic="y"))
    yield Figure(*place, "Phantom against radial lines", tuple(panels))


def _level_curves(rows: Rows) -> Iterator[Figure]:
    panels = []
    for row in rows[level_curves.NAME].rows:
        parameters = row["settings"].get("parameters") or {}
        title = ", ".join((row["settings"]["penalty"], *(f"{name} = {v:g}" for name, v in parameters.items())))
        panels.append(contour_panel(title, row["results"]["axis"], row["results"]["values"]))
    caption = "Each penalty with strength 1 on the same square, at equally spaced values."
    yield Figure(
        level_curves.NAME, "The paper's first figure", "Level curves", tuple(panels), caption, "Figure 1", True
    )


def _prox(rows: Rows) -> Iterator[Figure]:
    trials, lines = rows[prox_race.NAME], []
    for (series, method), (case, dash) in (
        (one, other)
        for one in ((1, judges.CLOSED), (2, judges.NUMERICAL))
        for other in zip(trials.seen("case"), ("solid", "dashed"), strict=False)
    ):
        sizes = judges.sizes(trials, case)
        times = [1e9 * judges.median(trials, method, case, d, "seconds") / d for d in sizes]
        lines.append(Line(Key(f"{method}, {case}", series, dash), sizes, times))
    panel = line_panel("Time per entry: flat is O(d)", lines, "d", "nanoseconds / d")
    yield Figure(
        prox_race.NAME, "Time and iterations", "The proximal step against the size of the vector", (panel,)
    )

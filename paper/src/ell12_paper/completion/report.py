"""Image completion on the page: the paper's table beside ours, difference images, and what it leaves out."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ell12.wording import duration, number, percent, scientific, span
from ell12_paper import figures
from ell12_paper.claims import image_name
from ell12_paper.completion import words
from ell12_paper.completion.claims import BLOCK, CONVEX, ERRORS, LOG_SUM, along_grid, of_study, verdicts_of
from ell12_paper.completion.study import (
    ALPHA_FACTOR,
    IMAGES,
    METHODS,
    NAME,
    PICTURE_SCALE,
    TITLE,
    unpack_picture,
)
from ell12_paper.findings import Cell, Figure, Key, Panel, Part, Section, Table, Verdict, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import Values, comparable, logarithms
from ell12_paper.tables import (
    grid_table,
    limit_words,
    measured_cells,
    measured_note,
    method_table,
    printed_table,
    repeats_words,
)
from ell12_paper.trials import Trials

_TABLE = ({"study": "table"},)
# What the legend says of a method, its colour and its dash.
_STYLES = {
    BLOCK: ("l1-2, our block engine", 1, "solid"),
    CONVEX: ("nuclear norm, our block engine", 2, "solid"),
    LOG_SUM: ("log-sum, our block engine", 3, "solid"),
    "AIS-Impute": ("nuclear norm, AIS-Impute", 2, "dotted"),
    "SketchyCGM": ("nuclear norm, SketchyCGM", 4, "dashed"),
    "ARSS-M3F": ("ARSS-M3F, rank bounded", 5, "solid"),
    "LMaFit": ("LMaFit, rank fixed", 6, "solid"),
    "LMaFit(growing rank)": ("LMaFit, rank growing", 6, "dashed"),
    "ER1MP": ("ER1MP, rank bounded", 7, "solid"),
}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims."""
    table = of_study(rows, "table")
    return verdicts_of(table) if table.rows else []


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    table = of_study(rows, "table")
    path, theta, centring = (of_study(rows, study) for study in ("path", "theta", "centring"))
    parts = (
        *([_table_part(table), _picture_part(table)] if table.rows else []),
        *([_path_part(path)] if path.rows else []),
        *([_theta_part(theta, table)] if theta.rows else []),
        *([_centring_part(centring, table)] if centring.rows else []),
    )
    return Section(
        name=NAME,
        title=TITLE,
        asked=words.asked(rows, table),
        found=tuple(words.found(table, path, theta, centring)),
        reasons=tuple(words.reasons(table)),
        verdicts=tuple(verdicts(rows)),
        parts=parts,
        scale=words.scale(rows, table),
    )


# The paper's table


def _table_part(table: Trials) -> Part:
    tables = (
        replace(_measured_table(table, "RMSE x 100 over all pixels", "rmse"), number="Table III"),
        _measured_table(table, "RMSE x 100 over the missing pixels", "rmse_missing"),
        replace(_measured_table(table, "CPU seconds", "cpu_seconds"), number="Table III"),
        _reached_table(table),
        *_printed_tables(),
    )
    return Part("The paper's table", tables=tables, where=_TABLE)


def _measured_table(table: Trials, title: str, result: str) -> Table:
    finished_only = result == "cpu_seconds"
    cells = measured_cells(table, result, finished_only)
    return method_table(table, title, cells, measured_note(table, False, finished_only))


def _printed_tables() -> list[Table]:
    """The paper's table, by method; its images are other ones than ours."""
    found = []
    for title, name, decimals in (("RMSE x 100", "rmse_times_100", 2), ("CPU seconds", "cpu_seconds", 1)):
        images = paper()[NAME][name]
        values = {method: {image: images[image][method] for image in images} for method in images[IMAGES[0]]}
        head = f"As the paper prints it, on its own images: {title}"
        found.append(printed_table(head, values, decimals, "Table III"))
    return found


def _reached_table(table: Trials) -> Table:
    def cell(method: str, image: str) -> Cell:
        chosen = table.at(method, image)
        if not chosen.rows:
            return Cell("no rows")
        left = chosen.values("stationarity").values()
        lines = [f"{span(chosen.values('n_iter').values())} iterations"]
        lines += [f"stationarity {scientific(max(left))}"] if left else []
        return Cell(f"rank {span(chosen.values('rank').values())}", (*lines, *limit_words(chosen)))

    note = (
        "The rank of the answer, the iterations, and the largest stationarity over the repeats: the violation of "
        "the first-order condition divided by α, for the methods without a penalty the gradient's norm. An "
        "iteration of SketchyCGM and of ER1MP is ten rank-one steps."
    )
    return method_table(table, "What was reached", cell, note)


# Pictures


def _picture_part(table: Trials) -> Part:
    shown = [(image, _pictures(table, image)) for image in table.places]
    caption = (
        "Difference of the recovered image to the clean one in the first repeat: white is none, black (on a dark "
        f"page the other way round) is {PICTURE_SCALE:g} of the range or more. On larger images a pixel is the "
        "root mean square of a block."
    )
    drawn = tuple(
        Figure(f"Differences on {image_name(image)}", panels, caption, True, "Figure 3")
        for image, panels in shown
        if panels
    )
    return Part("Clean and difference images", figures=(*_clean_figures(table), *drawn), where=_TABLE)


def _clean_figures(table: Trials) -> list[Figure]:
    """The images themselves, where the rows hold them."""
    found = [(row["settings"]["image"], row["results"].get("clean")) for row in table.rows]
    packed = {image: clean for image, clean in found if clean}
    panels = [
        figures.image_panel(image_name(i), unpack_picture(packed[i]), f"The clean image {image_name(i)}.")
        for i in table.places
        if i in packed
    ]
    caption = "What was to be found; scikit-image's photographs stand in for the paper's images."
    return [Figure("Clean images", tuple(panels), caption, True, "Figure 4")] if panels else []


def _pictures(table: Trials, image: str) -> tuple[Panel, ...]:
    panels = []
    for method in table.methods:
        for row in table.at(method, image).rows:
            packed = row["results"]["difference"]
            if packed and row["results"]["rmse"] is not None:
                error = f"{100 * row['results']['rmse']:.2f}"
                recovered = f"{image_name(image)} as recovered by {method}"
                description = f"Difference of {recovered} to the clean image; RMSE x 100: {error}."
                title = f"{method}: {error}"
                panels.append(figures.image_panel(title, 1 - unpack_picture(packed), description, True))
    return tuple(panels)


# The strength


def _path_part(path: Trials) -> Part:
    by_alpha = [method for method in path.methods if METHODS[method].parameter == "alpha"]
    seconds, steps = (max(row["settings"][name] for row in path.rows) for name in ("max_cpu_seconds", "max_iter"))
    text = (
        f"Every method with the same budget, {duration(seconds)} or {steps:,} iterations (SketchyCGM fewer, of "
        "ten steps each), over a grid of its parameter: the strength α, or the rank of the factorizations. RMSE "
        "is that over the missing pixels. One engine stands for the methods of one objective: log-sum(block), "
        "with θ = √α, has FaNCL's.",
    )
    figure_of = {
        "RMSE against α": (by_alpha, "alpha_factor", "rmse_missing", "α / largest known pixel", "RMSE x 100"),
        "Rank along the path": (by_alpha, "alpha_factor", "rank", "α / largest known pixel", "rank"),
        "RMSE against the rank of the answer": (path.methods, "rank", "rmse_missing", "rank", "RMSE x 100"),
    }
    drawn = tuple(_path_figure(path, title, *what) for title, what in figure_of.items())
    return Part("The strength, which the paper fixes", text, (_best_table(path),), drawn, ({"study": "path"},))


def _path_figure(
    path: Trials, title: str, methods: Sequence[str], x: str, y: str, x_label: str, y_label: str
) -> Figure:
    panels = []
    for image in path.places:
        lines = [_path_line(path, method, image, x, y) for method in methods]
        name = f"{NAME}-path-{x.replace('_', '-')}-{y.replace('_', '-')}-{image}"
        panels.append(
            figures.line_panel(name, image_name(image), [line for line in lines if line.x], x_label, y_label)
        )
    caption = f"{repeats_words(path)}; both axes are logarithmic."
    if x == "rank":
        caption += " Methods with a strength are drawn at the rank of their answer."
    return Figure(title, tuple(panels), caption)


def _path_line(path: Trials, method: str, image: str, x: str, y: str) -> figures.Line:
    """A curve over the grid of a method's parameter. Where x is the rank, it is the rank of the answer."""
    heights = along_grid(path, method, image, y)
    places = {value: value for value in heights} if x == "alpha_factor" else along_grid(path, method, image, x)
    scale = 100 if y.startswith("rmse") else 1
    points = sorted((places[value], scale * height) for value, height in heights.items())
    return figures.Line(_key(method), [p[0] for p in points], [p[1] for p in points], marker=True)


def _key(method: str) -> Key:
    return Key(*_STYLES.get(method, (method, 7, "dotted")))


def _best_table(path: Trials) -> Table:
    best = {
        image: comparable({m: logarithms(_at_best(path, m, image)) for m in path.methods}) for image in path.places
    }

    def cell(method: str, image: str) -> Cell:
        errors = along_grid(path, method, image, "rmse_missing")
        if not errors:
            return Cell("no rows")
        at = min(errors, key=lambda value: errors[value])
        ranks = along_grid(path, method, image, "rank")
        by_rank = METHODS[method].parameter == "rank"
        where = f"at rank {at:g}" if by_rank else f"at {at:g}, rank {number(ranks[at])}"
        edge = ["end of the grid"] if at in (min(errors), max(errors)) and len(errors) > 1 else []
        limit = limit_words(path.at(method, image, **{METHODS[method].setting: at}))
        return Cell(f"{100 * errors[at]:.2f}", (where, *edge, *limit), method in best[image])

    note = (
        "The lowest RMSE x 100 over the missing pixels on the grid, and where: α as a multiple of the largest "
        f"known pixel (the paper's is {ALPHA_FACTOR:g}) with the rank of the answer, or the rank. Chosen in "
        f"hindsight, so it shows what a method could do, not what it would. {repeats_words(path)}."
    )
    return method_table(path, "The best of each method over its grid", cell, note)


def _at_best(path: Trials, method: str, image: str) -> Values:
    """The errors over the missing pixels at the best value of a method's parameter, by repeat."""
    errors = along_grid(path, method, image, "rmse_missing")
    at = {METHODS[method].setting: min(errors, key=errors.__getitem__)} if errors else {}
    return path.at(method, image, **at).values("rmse_missing")


# Theta


def _theta_part(theta: Trials, table: Trials) -> Part:
    text = (
        "Log-sum, α Σ log(1 + σᵢ/θ), by the same engine as l1-2 and with the paper's α. Its θ is FaNCL's √α in "
        "the paper's comparison; the nuclear norm and l1-2 have no such parameter.",
    )
    panels = tuple(_theta_panel(theta, table, image) for image in theta.places)
    caption = "RMSE x 100 over the missing pixels in the first repeat against θ; both axes are logarithmic."
    figure = Figure("RMSE against log-sum's θ", panels, caption)
    return Part("Log-sum's θ", text, (_theta_table(theta, table),), (figure,), ({"study": "theta"},))


def _theta_panel(theta: Trials, table: Trials, image: str) -> Panel:
    results = [row["results"] for row in theta.at(LOG_SUM, image).rows]
    points = sorted((found["theta"], 100 * found["rmse_missing"]) for found in results)
    at, errors = ([point[k] for point in points] for k in (0, 1))
    lines = [figures.Line(_key(LOG_SUM), at, errors, marker=True)]
    for method in (BLOCK, CONVEX):
        first = table.at(method, image).values("rmse_missing").get(0)
        if first is not None:
            lines.append(figures.Line(_key(method), [at[0], at[-1]], [100 * first] * 2))
    return figures.line_panel(f"{NAME}-theta-{image}", image_name(image), lines, "θ", "RMSE x 100")


def _theta_table(theta: Trials, table: Trials) -> Table:
    rows: dict[str, tuple[Trials, str, dict[str, Any]]] = {"θ = √α (FaNCL)": (theta, LOG_SUM, {"theta": None})}
    for value in sorted(value for value in theta.seen("theta") if value):
        rows[f"θ = {value:g}"] = theta, LOG_SUM, {"theta": value}
    rows |= {method: (table, method, {"repeat": 0}) for method in (BLOCK, CONVEX)}

    def cell(row: tuple[Trials, str, dict[str, Any]], image: str) -> Cell:
        trials, method, settings = row
        return _two_errors(trials.at(method, image, **settings))

    note = "RMSE x 100 over all pixels; below it over the missing ones, and the rank; first repeat."
    return grid_table(
        "Log-sum's θ", "penalty", rows, {image_name(image): image for image in theta.places}, cell, note
    )


def _two_errors(trials: Trials) -> Cell:
    if not trials.rows:
        return Cell("no rows")
    results = trials.rows[0]["results"]
    errors = [f"{100 * results[name]:.2f}" for name in ERRORS.values()]
    return Cell(errors[0], (f"missing {errors[1]}", f"rank {results['rank']}"))


# Centring


def _centring_part(centring: Trials, table: Trials) -> Part:
    text = ("Before completing, the mean of the known pixels is taken off, and put back afterwards; α stays.",)

    both = replace(centring, rows=(*table.rows, *centring.rows))

    def cell(method: str, image: str) -> Cell:
        plain, centred = (both.at(method, image, center=center) for center in (False, True))
        before, after = plain.values("rmse"), centred.values("rmse")
        shared = sorted(before.keys() & after.keys())
        missing = [trials.summary("rmse_missing") for trials in (plain, centred)]
        if not shared or not all(missing):
            return Cell("no rows")
        means = [sum(values[r] for r in shared) / len(shared) for values in (before, after)]
        lines = [percent(means[1] / means[0] - 1)]
        lines += [f"missing {' → '.join(f'{100 * s.mean:.2f}' for s in missing if s)}"]
        return Cell(f"{100 * means[0]:.2f} → {100 * means[1]:.2f}", tuple(lines))

    note = (
        "RMSE x 100 over all pixels as the data are → with the mean removed, the change, and the same over the "
        "missing pixels. l1-2 leaves one direction almost free, which the mean would take."
    )
    table_shown = method_table(centring, "Effect of centring", cell, note)
    return Part("Centring", text, (table_shown,), where=({"study": "centring"},))

"""Image completion on the page: the paper's table beside ours, difference images, and what it leaves out."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

from collections.abc import Callable, Sequence

from ell12.experiments import figures
from ell12.experiments.completion import words
from ell12.experiments.completion.claims import BLOCK, CONVEX, ERRORS, LOG_SUM, Trials, verdicts_of
from ell12.experiments.completion.study import (
    ALPHA_FACTOR,
    METHODS,
    NAME,
    PICTURE_SCALE,
    TITLE,
    unpack_picture,
)
from ell12.experiments.report import Cell, Figure, Key, Panel, Part, Section, Table, Verdict, paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import Summary, comparable, logarithms
from ell12.wording import duration, number, percent, plus_minus, scientific, span

# Colour and dash of each method in the figures.
_STYLES = {
    BLOCK: (1, "solid"),
    CONVEX: (2, "solid"),
    LOG_SUM: (3, "solid"),
    "AIS-Impute": (2, "dotted"),
    "SketchyCGM": (4, "dashed"),
    "ARSS-M3F": (5, "solid"),
    "LMaFit": (6, "solid"),
    "LMaFit(growing rank)": (6, "dashed"),
    "ER1MP": (7, "solid"),
}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims."""
    table = Trials.of_study(rows, "table")
    return verdicts_of(table) if table.rows else []


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    table = Trials.of_study(rows, "table")
    path, theta, centring = (Trials.of_study(rows, study) for study in ("path", "theta", "centring"))
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
    )


# The paper's table


def _table_part(table: Trials) -> Part:
    tables = (
        _measured_table(table, "RMSE x 100 over all pixels", "rmse", "rmse_times_100", _error_cell),
        _measured_table(table, "RMSE x 100 over the missing pixels", "rmse_missing", None, _error_cell),
        _measured_table(table, "CPU seconds", "cpu_seconds", "cpu_seconds", _time_cell),
        _reached_table(table),
    )
    return Part("The paper's table", tables=tables)


def _error_cell(_table: Trials, _method: str, _image: str, summary: Summary) -> str:
    return plus_minus(100 * summary.mean, None if summary.deviation is None else 100 * summary.deviation, 2)


def _time_cell(table: Trials, method: str, image: str, summary: Summary) -> str:
    return ("≥ " if table.n_limited(method, image) else "") + plus_minus(summary.mean, summary.deviation)


def _measured_table(
    table: Trials,
    title: str,
    name: str,
    printed_as: str | None,
    show: Callable[[Trials, str, str, Summary], str],
) -> Table:
    """Mean and deviation, the printed value below, the best in bold."""
    printed = paper()[NAME][printed_as] if printed_as else {}
    decimals = 1 if name == "cpu_seconds" else 2
    best = {image: _best(table, image, name) for image in table.images}

    def cell(method: str, image: str) -> Cell:
        summary = table.summary(method, image, name)
        if summary is None:
            return Cell("no rows")
        theirs = printed.get(image, {}).get(method)
        lines = [f"paper {plus_minus(theirs[0], theirs[1], decimals)}"] if theirs else []
        text = show(table, method, image, summary)
        return Cell(text, (*lines, *_limit_words(table, method, image)), method in best[image])

    note = (
        "Mean ± standard deviation; below it what the paper prints; methods without that are our additions. Bold: "
        "the best and those that the paired t-test at 95 % over the repeats does not tell apart from it"
    )
    ending = ", among those that met the rule, by the logarithms of the times." if name == "cpu_seconds" else "."
    return _by_image(table, title, table.methods, cell, note + ending)


def _best(table: Trials, image: str, name: str) -> set[str]:
    if name != "cpu_seconds":
        return comparable({method: table.values(method, image, name) for method in table.methods})
    methods = [method for method in table.methods if not table.n_limited(method, image)]
    return comparable({method: logarithms(table.values(method, image, name)) for method in methods})


def _reached_table(table: Trials) -> Table:
    def cell(method: str, image: str) -> Cell:
        rows = table.of(method, image)
        if not rows:
            return Cell("no rows")
        results = [row["results"] for row in rows]
        steps = f"{span([r['n_iter'] for r in results])} iterations"
        left = [r["stationarity"] for r in results if r["stationarity"] is not None]
        lines = [steps, *([f"stationarity {scientific(max(left))}"] if left else [])]
        return Cell(f"rank {span([r['rank'] for r in results])}", (*lines, *_limit_words(table, method, image)))

    note = (
        "The rank of the answer, the iterations, and the largest stationarity over the repeats: the violation of "
        "the first-order condition divided by α, for the methods without a penalty the gradient's norm. An "
        "iteration of SketchyCGM and of ER1MP is ten rank-one steps."
    )
    return _by_image(table, "What was reached", table.methods, cell, note)


def _by_image(
    trials: Trials, title: str, methods: Sequence[str], cell: Callable[[str, str], Cell], note: str
) -> Table:
    rows = tuple((method, tuple(cell(method, image) for image in trials.images)) for method in methods)
    return Table(title, ("method", *trials.images), rows, note)


def _limit_words(table: Trials, method: str, image: str) -> list[str]:
    limited, total = table.n_limited(method, image), len(table.of(method, image))
    if not limited:
        return []
    return ["limit" if limited == total else f"limit {limited} of {total}"]


# Pictures


def _picture_part(table: Trials) -> Part:
    shown = [(image, _pictures(table, image)) for image in table.images]
    caption = (
        "Difference of the recovered image to the clean one in the first repeat: white is none, black is "
        f"{PICTURE_SCALE:g} of the range or more. On larger images a pixel is the root mean square of a block."
    )
    drawn = tuple(
        Figure(f"Differences on {image}", panels, caption, small=True) for image, panels in shown if panels
    )
    return Part("Difference images", figures=drawn)


def _pictures(table: Trials, image: str) -> tuple[Panel, ...]:
    panels = []
    for method in table.methods:
        for row in table.of(method, image):
            packed = row["results"]["difference"]
            if packed and row["results"]["rmse"] is not None:
                error = f"{100 * row['results']['rmse']:.2f}"
                description = (
                    f"Difference of {image} as recovered by {method} to the clean image; RMSE x 100: {error}."
                )
                title = f"{method}: {error}"
                panels.append(figures.image_panel(title, 1 - unpack_picture(packed), description))
    return tuple(panels)


# The strength


def _path_part(path: Trials) -> Part:
    by_alpha = [method for method in path.methods if METHODS[method].parameter == "alpha"]
    seconds, steps = (max(row["settings"][name] for row in path.rows) for name in ("max_seconds", "max_iter"))
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
    return Part("The strength, which the paper fixes", text, (_best_table(path),), drawn)


def _path_figure(
    path: Trials, title: str, methods: Sequence[str], x: str, y: str, x_label: str, y_label: str
) -> Figure:
    panels = []
    for image in path.images:
        lines = [_path_line(path, method, image, x, y) for method in methods]
        name = f"{NAME}-path-{x.replace('_', '-')}-{y.replace('_', '-')}-{image}"
        panels.append(figures.line_panel(name, image, [line for line in lines if line.x], x_label, y_label))
    keys = tuple(Key(method, *_style(method)) for method in methods)
    caption = "Means over the repeats; both axes are logarithmic."
    if x == "rank":
        caption += " Methods with a strength are drawn at the rank of their answer."
    return Figure(title, tuple(panels), caption, keys)


def _path_line(path: Trials, method: str, image: str, x: str, y: str) -> figures.Line:
    """A curve over the grid of a method's parameter; where x is the rank, by the rank of the answer."""
    heights = path.along_grid(method, image, y)
    places = {value: value for value in heights} if x == "alpha_factor" else path.along_grid(method, image, x)
    scale = 100 if y.startswith("rmse") else 1
    points = sorted((places[value], scale * height) for value, height in heights.items())
    return figures.Line(method, [p[0] for p in points], [p[1] for p in points], *_style(method), marker=True)


def _style(method: str) -> tuple[int, str]:
    return _STYLES.get(method, (7, "dotted"))


def _best_table(path: Trials) -> Table:
    def cell(method: str, image: str) -> Cell:
        errors = path.along_grid(method, image, "rmse_missing")
        if not errors:
            return Cell("no rows")
        at = min(errors, key=lambda value: errors[value])
        ranks = path.along_grid(method, image, "rank")
        by_rank = METHODS[method].parameter == "rank"
        where = f"at rank {at:g}" if by_rank else f"at {at:g}, rank {number(ranks[at])}"
        edge = ["end of the grid"] if at in (min(errors), max(errors)) and len(errors) > 1 else []
        limit = ["limit"] if path.n_limited(method, image, **{METHODS[method].setting: at}) else []
        return Cell(f"{100 * errors[at]:.2f}", (where, *edge, *limit), _is_lowest(path, method, image, errors[at]))

    note = (
        "The lowest RMSE x 100 over the missing pixels on the grid, and where: α as a multiple of the largest "
        f"known pixel (the paper's is {ALPHA_FACTOR:g}) with the rank of the answer, or the rank. Bold: the "
        "lowest on an image. Chosen in hindsight, so it shows what a method could do, not what it would."
    )
    return _by_image(path, "The best of each method over its grid", path.methods, cell, note)


def _is_lowest(path: Trials, method: str, image: str, error: float) -> bool:
    others = (path.along_grid(other, image, "rmse_missing") for other in path.methods if other != method)
    return all(error < min(errors.values()) for errors in others if errors)


# Theta


def _theta_part(theta: Trials, table: Trials) -> Part:
    text = (
        "Log-sum, α Σ log(1 + σᵢ/θ), by the same engine as l1-2 and with the paper's α. Its θ is FaNCL's √α in "
        "the paper's comparison; the nuclear norm and l1-2 have no such parameter.",
    )
    panels = tuple(_theta_panel(theta, table, image) for image in theta.images)
    keys = tuple(Key(method, *_style(method)) for method in (LOG_SUM, BLOCK, CONVEX))
    caption = "RMSE x 100 over the missing pixels in the first repeat against θ; both axes are logarithmic."
    figure = Figure("RMSE against log-sum's θ", panels, caption, keys)
    return Part("Log-sum's θ", text, (_theta_table(theta, table),), (figure,))


def _theta_points(theta: Trials, image: str) -> list[tuple[float, Row]]:
    return sorted(((row["results"]["theta"], row) for row in theta.of(LOG_SUM, image)), key=lambda point: point[0])


def _theta_panel(theta: Trials, table: Trials, image: str) -> Panel:
    points = _theta_points(theta, image)
    at = [value for value, _ in points]
    errors = [100 * row["results"]["rmse_missing"] for _, row in points]
    lines = [figures.Line(LOG_SUM, at, errors, *_style(LOG_SUM), marker=True)]
    for method in (BLOCK, CONVEX):
        first = table.values(method, image, "rmse_missing").get(0)
        if first is not None:
            lines.append(figures.Line(method, [at[0], at[-1]], [100 * first] * 2, *_style(method)))
    return figures.line_panel(f"{NAME}-theta-{image}", image, lines, "θ", "RMSE x 100")


def _theta_table(theta: Trials, table: Trials) -> Table:
    grid = sorted({row["settings"]["theta"] for row in theta.rows if row["settings"]["theta"]})

    def cell(value: float | None, image: str) -> Cell:
        rows = theta.of(LOG_SUM, image, theta=value)
        if not rows:
            return Cell("no rows")
        return _two_errors(rows[0], f"rank {rows[0]['results']['rank']}")

    def reference(method: str, image: str) -> Cell:
        rows = table.of(method, image, repeat=0)
        return _two_errors(rows[0], f"rank {rows[0]['results']['rank']}") if rows else Cell("no rows")

    images = theta.images
    rows = [(f"θ = {value:g}", tuple(cell(value, image) for image in images)) for value in grid]
    rows.insert(0, ("θ = √α (FaNCL)", tuple(cell(None, image) for image in images)))
    rows += [(method, tuple(reference(method, image) for image in images)) for method in (BLOCK, CONVEX)]
    note = "RMSE x 100 over all pixels; below it over the missing ones, and the rank; first repeat."
    return Table("Log-sum's θ", ("penalty", *images), tuple(rows), note)


def _two_errors(row: Row, *lines: str) -> Cell:
    errors = [f"{100 * row['results'][name]:.2f}" for name in ERRORS.values()]
    return Cell(errors[0], (f"missing {errors[1]}", *lines))


# Centring


def _centring_part(centring: Trials, table: Trials) -> Part:
    text = ("Before completing, the mean of the known pixels is taken off, and put back afterwards; α stays.",)

    def cell(method: str, image: str) -> Cell:
        plain = Trials((*table.rows, *centring.rows))
        before, after = (plain.values(method, image, "rmse", center=center) for center in (False, True))
        missing = [plain.summary(method, image, "rmse_missing", center=center) for center in (False, True)]
        shared = sorted(before.keys() & after.keys())
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
    return Part("Centring", text, (_by_image(centring, "Effect of centring", centring.methods, cell, note),))

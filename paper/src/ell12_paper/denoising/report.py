"""Total variation on the page: error and time against alpha, difference images, the studies beyond the paper."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ell12.datasets import STAND_INS
from ell12.wording import number, scientific
from ell12_paper import figures
from ell12_paper.claims import image_name
from ell12_paper.denoising import words
from ell12_paper.denoising.claims import (
    at_rule,
    bounded_ratio,
    fewest_lines,
    images_of,
    mean_psnr,
    mean_ratio,
    of_study,
    strengths,
)
from ell12_paper.denoising.claims import verdicts_of as verdicts
from ell12_paper.denoising.extras import BLUR, BOUNDS, LINES, WEIGHTS
from ell12_paper.denoising.study import (
    ACCURATE,
    ALTMIN,
    DARKEST,
    DCA,
    METHODS,
    NAME,
    OURS,
    RULES,
    SHOWN,
    STRENGTHS,
    TITLE,
)
from ell12_paper.findings import Cell, Figure, Key, Panel, Part, Section, Table, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import comparable
from ell12_paper.tables import error_words, grid_table, limit_words, repeats_words
from ell12_paper.trials import Trials

# The curves of time against alpha: method, rule, colour and dash; those of the error are the strict ones.
_CURVES = (
    (DCA, "strict", 2, "solid"),
    (DCA, "loose", 2, "dotted"),
    (ACCURATE, "strict", 1, "solid"),
    (ALTMIN, "loose", 1, "dotted"),
    (OURS, "strict", 3, "dashed"),
)
_WEIGHT_STYLES = {0.0: (2, "solid"), 0.5: (1, "solid"), 1.0: (3, "dashed")}


__all__ = ["section", "verdicts"]


def section(rows: Sequence[Row]) -> Section:
    """Everything the page says of this experiment."""
    studies = strengths(rows)
    parts = [_part(study) for study in studies]
    return Section(
        name=NAME,
        title=TITLE,
        asked=words.asked(studies),
        found=words.found(rows, studies),
        reasons=words.reasons(studies),
        verdicts=tuple(verdicts(rows)),
        scale=words.scale(studies),
        headlines=_headlines(studies),
        parts=(*parts, *_difference_parts(studies), *_beyond(rows)),
    )


# The paper's study


def _part(study: Trials) -> Part:
    return Part(
        f"Noise of {study.name} 0.05",
        tables=(_rmse_table(study), _time_table(study), _ratio_table(study)),
        figures=(
            _curves(study, "RMSE against α", "RMSE", "rmse", "x"),
            _curves(study, "CPU time against α", "CPU seconds", "cpu_seconds", "xy"),
        ),
        where=({"study": STRENGTHS, "setup": study.name},),
    )


def _curves(study: Trials, title: str, y_label: str, result: str, logarithmic: str) -> Figure:
    keys = {(m, r): Key(_label(m, r), series, dash) for m, r, series, dash in _CURVES if m in study.methods}
    alphas = [0.02 * i for i in study.places]
    panels = []
    for image in images_of(study):
        lines = []
        for (method, rule), key in keys.items():
            ended = at_rule(study.where(method=method, image=image), rule)
            means = [ended.where(i=i).mean(result) for i in study.places]
            lines.append(figures.Line(key, alphas, means))
        name = f"{NAME}-{result}-{study.name.split()[0]}-{image}"
        panels.append(figures.line_panel(name, image_name(image), lines, "α", y_label, logarithmic=logarithmic))
    caption = f"{title}, where the rule or a limit ended the runs. {repeats_words(study)}."
    return Figure(f"{title} (noise of {study.name} 0.05)", tuple(panels), caption, number="Figure 5")


def _label(method: str, rule: str) -> str:
    change = scientific(RULES[rule])
    return f"{method}, our default" if method == OURS else f"{method}, to a change of {change}"


def _headlines(studies: Sequence[Trials]) -> tuple[Figure, ...]:
    """How many times faster than DCA each method is, beside what the paper says."""
    if not studies:
        return ()
    study, lines = studies[0], []
    alphas = [0.02 * i for i in study.places]
    for method, rule, _, dash in _CURVES:
        if method != DCA and method in study.methods:
            ratios = [mean_ratio(at_rule(study, rule), method, i) for i in study.places]
            key = Key(_label(method, rule), 3 if method == OURS else 1, dash)
            lines.append(figures.Line(key, alphas, ratios, marker=True))
    key = Key("the paper says 20 to 30", 2, "dotted")
    lines += [figures.Line(key, [alphas[0], alphas[-1]], [level] * 2) for level in paper()[NAME]["times_faster"]]
    panel = figures.line_panel(
        f"{NAME}-first", "Times faster than DCA", lines, "α", "time of DCA / its time", size=figures.FIRST_SIZE
    )
    caption = f"Noise of {study.name} 0.05, geometric mean over the images."
    return (Figure("Times faster than DCA", (panel,), caption, number="Figure 5"),)


def _table(study: Trials, corner: str, title: str, note: str, rows: dict[str, Any], cell: Any) -> Table:
    columns = {words.shown_alpha(i): i for i in [i for i in study.places if i in SHOWN] or study.places}
    return grid_table(f"{title} (noise of {study.name} 0.05)", corner, rows, columns, cell, note)


def _image_table(study: Trials, title: str, note: str, cell: Callable[[str, Trials, Trials], Cell]) -> Table:
    """A row for each image and method; a cell is made of the trials at the strict and at the loose rule."""
    ended = [at_rule(study, rule) for rule in ("strict", "loose")]

    def cell_at(row: tuple[str, str], i: int) -> Cell:
        image, method = row
        return cell(method, *(trials.at(method, i, image=image) for trials in ended))

    rows = {
        f"{image_name(image)}: {method}": (image, method)
        for image, method in product(images_of(study), study.methods)
    }
    return _table(study, "image: method", title, note, rows, cell_at)


def _rmse_table(study: Trials) -> Table:
    def cell(method: str, strict: Trials, loose: Trials) -> Cell:
        if not strict.values("rmse"):
            return Cell("no rows")
        lines = [] if method == OURS else [f"early {error_words(loose, 'rmse', deviation=False)}"]
        return Cell(error_words(strict, "rmse"), (*lines, *limit_words(strict)))

    note = (
        f"{repeats_words(study)}{' ± standard deviation' * (study.n_repeats > 1)} where the change falls to "
        f"{scientific(RULES['strict'])}; “early” where it falls to {scientific(RULES['loose'])}. The paper prints "
        "curves only."
    )
    return _image_table(study, "RMSE x 100", note, cell)


def _time_table(study: Trials) -> Table:
    def time(trials: Trials) -> str:
        seconds = trials.mean("cpu_seconds")
        return "no rows" if math.isnan(seconds) else ("≥ " if trials.n_limited else "") + number(seconds)

    def cell(method: str, strict: Trials, loose: Trials) -> Cell:
        early = () if method == OURS or not strict.rows else (f"early {time(loose)}",)
        return Cell(time(strict), (*early, *limit_words(strict)))

    note = (
        f"CPU seconds to the two rules, as in the table above; {OURS} ends by its own rule. “≥” where a "
        "limit ended a run before."
    )
    return _image_table(study, "CPU seconds", note, cell)


def _ratio_table(study: Trials) -> Table:
    chosen = [(method, rule) for method, rule, _, _ in _CURVES if method != DCA and method in study.methods]
    note = (
        "DCA's time divided by the method's, DCA stopped by the same rule (the stricter one for "
        f"{OURS}): geometric mean over images and repeats, a bound where one of the two ended at its limit. The "
        "paper says about 20 to 30."
    )
    rows = {_label(method, rule): (at_rule(study, rule), method) for method, rule in chosen}
    return _table(
        study, "method", "Times faster than DCA", note, rows, lambda row, i: Cell(bounded_ratio(row[0], row[1], i))
    )


# Difference images


def _difference_parts(studies: Sequence[Trials]) -> list[Part]:
    """The paper's figure has DCA and AltMin; the two other methods are ours."""
    shown = sorted(METHODS, key=lambda method: method not in (DCA, ALTMIN))
    drawn = [figure for study in studies for method in shown if (figure := _difference_figure(study, method))]
    if not drawn:
        return []
    text = (
        f"The restored {image_name(next(iter(STAND_INS)))} minus the clean image, as the paper shows it: darker "
        f"pixels (on a dark page lighter ones) differ more; a difference of {DARKEST:g} or more is black.",
    )
    where = ({"study": STRENGTHS},)
    return [Part("Differences to the clean image", text, figures=tuple(drawn), where=where)]


def _difference_figure(study: Trials, method: str) -> Figure | None:
    found = {i: study.at(method, i, image=next(iter(STAND_INS))).rows for i in SHOWN}
    shown = {i: row for i in SHOWN for row in found[i] if row["results"]["difference"]}
    panels = tuple(_difference_panel(study, method, i, row) for i, row in shown.items())
    title, caption = f"{method} (noise of {study.name} 0.05)", f"Differences of {method} at each α."
    is_papers = method in (DCA, ALTMIN)
    return Figure(title, panels, caption, True, "Figure 6" if is_papers else "") if panels else None


def _difference_panel(study: Trials, method: str, i: int, row: Row) -> Panel:
    levels = np.array([list(bytes.fromhex(text)) for text in row["results"]["difference"]])
    alpha = words.shown_alpha(i)
    description = f"Difference to the clean image: {method}, {alpha}, noise of {study.name} 0.05."
    return figures.image_panel(alpha, 1 - levels / 255, description, True)


# Beyond the paper


def _beyond(rows: Sequence[Row]) -> list[Part]:
    made = (_weight_figure(rows), _line_figure(rows))
    tables = (_psnr_table(rows, WEIGHTS, "Denoising"), _psnr_table(rows, BLUR, "Deblurring"), _line_table(rows))
    drawn, listed = tuple(f for f in made if f), tuple(t for t in tables if t)
    where = tuple({"study": study} for study in (WEIGHTS, BLUR, LINES))
    return [Part("Beyond the paper", words.beyond(), listed, drawn, where)] if drawn or listed else []


def _weights(rows: Sequence[Row], study: str) -> list[float]:
    return sorted(of_study(rows, study).seen("l2_weight"))


def _weight_figure(rows: Sequence[Row]) -> Figure | None:
    weights, images = _weights(rows, WEIGHTS), of_study(rows, WEIGHTS).seen("image")
    lines: dict[str, list[figures.Line]] = {"photographs": [], "drawn images": []}
    for k, image in enumerate(images):
        kind, dash = ("photographs", "solid") if image in STAND_INS else ("drawn images", "dashed")
        psnr = [mean_psnr(rows, WEIGHTS, image, w) for w in weights]
        lines[kind].append(figures.Line(Key(image_name(image), k % 3 + 1, dash), weights, psnr, True))
    panels = tuple(
        figures.line_panel(
            f"{NAME}-weights-{kind.split()[0]}", kind, found, "l2_weight", "PSNR (dB)", logarithmic=""
        )
        for kind, found in lines.items()
    )
    caption = "PSNR against the weight of the subtracted norm, each point at its best strength."
    return Figure("PSNR against l2_weight", panels, caption) if images else None


def _line_figure(rows: Sequence[Row]) -> Figure | None:
    weights = _weights(rows, LINES)
    panels = []
    for bounds in BOUNDS:
        lines = [_error_line(rows, weight, bounds) for weight in weights]
        name, title = f"{NAME}-lines-{bounds.split()[0]}", f"{bounds} values"
        panels.append(figures.line_panel(name, title, lines, "radial lines", "relative error", logarithmic="y"))
    caption = "Error of the phantom against the number of radial lines of measured Fourier coefficients."
    return Figure("Phantom against radial lines", tuple(panels), caption) if weights else None


def _error_line(rows: Sequence[Row], weight: float, bounds: str) -> figures.Line:
    chosen = of_study(rows, LINES, l2_weight=weight, bounds=bounds).rows
    errors = {row["settings"]["lines"]: row["results"]["relative_error"] for row in chosen}
    counts = sorted(errors)
    known = [math.nan if errors[count] is None else errors[count] for count in counts]
    key = Key(f"l2_weight {weight:g}", *_WEIGHT_STYLES.get(weight, (4, "dotted")))
    return figures.Line(key, counts, known, True)


def _psnr_table(rows: Sequence[Row], study: str, title: str) -> Table | None:
    weights = _weights(rows, study)
    images = of_study(rows, study).seen("image")
    if not images:
        return None

    def cells(image: str) -> tuple[Cell, ...]:
        found = {w: of_study(rows, study, image=image, l2_weight=w) for w in weights}
        psnr = {w: trials.mean("psnr") for w, trials in found.items()}
        alphas = {w: (f"α {number(trials.mean('alpha'))}" if trials.rows else "",) for w, trials in found.items()}
        given = np.mean([row["results"]["psnr_given"] for trials in found.values() for row in trials.rows])
        best = comparable({f"{w:g}": trials.values("psnr") for w, trials in found.items()}, lowest=False)
        return (Cell(f"{given:.2f}"), *(Cell(f"{psnr[w]:.2f}", alphas[w], f"{w:g}" in best) for w in weights))

    heads = ("image", "given", *(f"l2_weight {w:g}" for w in weights))
    bold = "bold: the best weight, and those that the paired t-test at 95 % does not tell from it"
    tested = of_study(rows, study).n_repeats > 1
    note = (
        f"PSNR in dB ({repeats_words(of_study(rows, study))}), below it the best α{f'; {bold}' if tested else ''}."
    )
    return Table(f"{title}: PSNR against l2_weight", heads, tuple((image_name(i), cells(i)) for i in images), note)


def _line_table(rows: Sequence[Row]) -> Table | None:
    chosen = of_study(rows, LINES)
    if not chosen.rows:
        return None

    def cell(weight: float, bounds: str) -> Cell:
        fewest = fewest_lines(rows, weight, bounds)
        return Cell("none of those tried" if fewest is None else str(fewest))

    tried, size = sorted(chosen.seen("lines")), chosen.seen("size")[0]
    note = f"The head phantom with {size} pixels a side; {tried[0]} to {tried[-1]} lines were tried."
    weights = {f"l2_weight {w:g}": w for w in _weights(rows, LINES)}
    columns = {f"{bounds} values": bounds for bounds in BOUNDS}
    title = "Radial lines from which on the phantom is recovered"
    return grid_table(title, "weight", weights, columns, cell, note)

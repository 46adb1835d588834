"""Total variation on the page: error and time against alpha, difference images, the studies beyond the paper."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ell12.datasets import STAND_INS
from ell12.experiments import figures
from ell12.experiments.denoising import words
from ell12.experiments.denoising.claims import Strengths, fewest_lines, mean_psnr, of_study, strengths, verdicts_of
from ell12.experiments.denoising.extras import BLUR, BOUNDS, LINES, WEIGHTS
from ell12.experiments.denoising.study import (
    ACCURATE,
    ALTMIN,
    DARKEST,
    DCA,
    METHODS,
    NAME,
    OURS,
    RULES,
    SHOWN,
    TITLE,
)
from ell12.experiments.report import Cell, Figure, Key, Panel, Part, Section, Table, Verdict
from ell12.experiments.rows import Row
from ell12.experiments.statistics import summarize
from ell12.wording import number, plus_minus, scientific

# The curves of time against alpha: method, rule, colour and dash; those of the error are the strict ones.
_CURVES = (
    (DCA, "strict", 2, "solid"),
    (DCA, "loose", 2, "dotted"),
    (ACCURATE, "strict", 1, "solid"),
    (ALTMIN, "loose", 1, "dotted"),
    (OURS, "strict", 3, "dashed"),
)
_WEIGHT_STYLES = {0.0: (2, "solid"), 0.5: (1, "solid"), 1.0: (3, "dashed")}


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """The paper's claims."""
    return verdicts_of(rows)


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
        parts=(*parts, *_difference_parts(studies), *_beyond(rows)),
    )


# The paper's study


def _part(study: Strengths) -> Part:
    return Part(
        f"Noise of {study.reading} 0.05",
        tables=(_rmse_table(study), _time_table(study), _ratio_table(study)),
        figures=(
            _curves(study, "RMSE against α", "RMSE", "rmse", "x"),
            _curves(study, "CPU time against α", "CPU seconds", "cpu_seconds", "xy"),
        ),
    )


def _curves(study: Strengths, title: str, y_label: str, name: str, logarithmic: str) -> Figure:
    chosen = [curve for curve in _CURVES if curve[0] in study.methods]
    panels = []
    for image in study.images:
        lines = [
            figures.Line(
                _label(method, rule),
                [0.02 * i for i in study.grid],
                [study.mean(method, image, i, rule, name) for i in study.grid],
                series,
                dash,
            )
            for method, rule, series, dash in chosen
        ]
        panel = f"{NAME}-{name}-{study.reading.split()[0]}-{image}"
        panels.append(
            figures.line_panel(
                panel, f"{image} ({STAND_INS[image]})", lines, "α", y_label, logarithmic=logarithmic
            )
        )
    keys = tuple(Key(_label(method, rule), series, dash) for method, rule, series, dash in chosen)
    caption = f"{title}: means over the repeats, where the rule or a limit ended the runs."
    return Figure(f"{title} (noise of {study.reading} 0.05)", tuple(panels), caption, keys)


def _label(method: str, rule: str) -> str:
    return method if method == OURS else f"{method}, to {scientific(RULES[rule])}"


def _columns(study: Strengths) -> list[int]:
    return [i for i in study.grid if i in SHOWN] or study.grid


def _table(
    study: Strengths, title: str, note: str, cell: Callable[[str, str, int], Cell], leave_out: str = ""
) -> Table:
    columns = _columns(study)
    rows = tuple(
        (f"{image}: {method}", tuple(cell(method, image, i) for i in columns))
        for image in study.images
        for method in study.methods
        if method != leave_out
    )
    heads = ("image: method", *(words.shown_alpha(i) for i in columns))
    return Table(f"{title} (noise of {study.reading} 0.05)", heads, rows, note)


def _rmse_table(study: Strengths) -> Table:
    def cell(method: str, image: str, i: int) -> Cell:
        values = study.values(method, image, i, "strict", "rmse")
        if not values:
            return Cell("no rows")
        summary = summarize(values.values())
        loose = study.mean(method, image, i, "loose", "rmse")
        lines = [] if method == OURS else [f"early {100 * loose:.2f}"]
        lines += ["limit"] if study.n_limited(method, i, "strict", image) else []
        deviation = None if summary.deviation is None else 100 * summary.deviation
        return Cell(plus_minus(100 * summary.mean, deviation, 2), tuple(lines))

    note = (
        f"Mean ± standard deviation where the change falls to {scientific(RULES['strict'])}; “early” where it "
        f"falls to {scientific(RULES['loose'])}; “limit” where a run ended before. The paper prints curves only."
    )
    return _table(study, "RMSE x 100", note, cell)


def _time_table(study: Strengths) -> Table:
    def time(method: str, image: str, i: int, rule: str) -> str:
        seconds = study.mean(method, image, i, rule, "cpu_seconds")
        bound = "≥ " if study.n_limited(method, i, rule, image) else ""
        return "no rows" if math.isnan(seconds) else bound + number(seconds)

    def cell(method: str, image: str, i: int) -> Cell:
        strict, loose = (time(method, image, i, rule) for rule in ("strict", "loose"))
        return Cell(strict, () if method == OURS or not study.of(method, image, i) else (f"early {loose}",))

    note = (
        f"Mean CPU seconds to the two rules, as in the table above; {OURS} ends by its own rule. “≥” where a run "
        "ended at its limit."
    )
    return _table(study, "CPU seconds", note, cell)


def _ratio_table(study: Strengths) -> Table:
    columns = _columns(study)
    pairs = [(m, r) for m, r, _, _ in _CURVES if m not in (DCA,) and m in study.methods]
    rows = tuple(
        (_label(method, rule), tuple(Cell(study.ratio_words(method, i, rule)) for i in columns))
        for method, rule in pairs
    )
    heads = ("method", *(words.shown_alpha(i) for i in columns))
    note = (
        "DCA's time divided by the method's, DCA stopped by the same rule (the stricter one for "
        f"{OURS}): geometric mean over images and repeats, a bound where one of the two ended at its limit. The "
        "paper says about 20 to 30."
    )
    return Table(f"Times faster than DCA (noise of {study.reading} 0.05)", heads, rows, note)


# Difference images


def _difference_parts(studies: Sequence[Strengths]) -> list[Part]:
    shown = [method for method in METHODS if method != ALTMIN]
    drawn = [figure for study in studies for method in shown if (figure := _difference_figure(study, method))]
    if not drawn:
        return []
    first = next(iter(STAND_INS))
    text = (
        f"The restored “{first}” ({STAND_INS[first]}) minus the clean image, as the paper shows it: darker pixels "
        f"differ more; black is a difference of {DARKEST:g} or more.",
    )
    return [Part("Differences to the clean image", text, figures=tuple(drawn))]


def _difference_figure(study: Strengths, method: str) -> Figure | None:
    rows = {i: study.of(method, next(iter(STAND_INS)), i) for i in SHOWN}
    shown = {i: row for i in SHOWN for row in rows[i] if row["results"]["difference"]}
    panels = tuple(_difference_panel(study, method, i, row) for i, row in shown.items())
    title = f"{method} (noise of {study.reading} 0.05)"
    return Figure(title, panels, f"Differences of {method} at each α.", small=True) if panels else None


def _difference_panel(study: Strengths, method: str, i: int, row: Row) -> Panel:
    levels = np.array([list(bytes.fromhex(text)) for text in row["results"]["difference"]])
    alpha = words.shown_alpha(i)
    description = f"Difference to the clean image: {method}, {alpha}, noise of {study.reading} 0.05."
    return figures.image_panel(alpha, 1 - levels / 255, description)


# Beyond the paper


def _beyond(rows: Sequence[Row]) -> list[Part]:
    made = (_weight_figure(rows), _line_figure(rows))
    tables = (_psnr_table(rows, WEIGHTS, "Denoising"), _psnr_table(rows, BLUR, "Deblurring"), _line_table(rows))
    drawn, listed = tuple(f for f in made if f), tuple(t for t in tables if t)
    return [Part("Beyond the paper", words.beyond(), listed, drawn)] if drawn or listed else []


def _images(rows: Sequence[Row], study: str) -> list[str]:
    return list(dict.fromkeys(row["settings"]["image"] for row in of_study(rows, study)))


def _weights(rows: Sequence[Row], study: str) -> list[float]:
    return sorted({row["settings"]["l2_weight"] for row in of_study(rows, study)})


def _weight_figure(rows: Sequence[Row]) -> Figure | None:
    weights = _weights(rows, WEIGHTS)
    images = _images(rows, WEIGHTS)
    if not images:
        return None
    styles = {image: (k % 3 + 1, "solid" if image in STAND_INS else "dashed") for k, image in enumerate(images)}
    panels = []
    for kind, chosen in (("photographs", STAND_INS), ("drawn images", [i for i in images if i not in STAND_INS])):
        lines = [
            figures.Line(
                image, weights, [mean_psnr(rows, WEIGHTS, image, w) for w in weights], *styles[image], True
            )
            for image in images
            if image in chosen
        ]
        name = f"{NAME}-weights-{kind.split()[0]}"
        panels.append(figures.line_panel(name, kind, lines, "l2_weight", "PSNR (dB)", logarithmic=""))
    caption = "PSNR against the weight of the subtracted norm, each point at its best strength."
    keys = tuple(Key(image, *styles[image]) for image in images)
    return Figure("PSNR against l2_weight", tuple(panels), caption, keys)


def _line_figure(rows: Sequence[Row]) -> Figure | None:
    weights = _weights(rows, LINES)
    if not weights:
        return None
    panels = []
    for bounds in BOUNDS:
        lines = [_error_line(rows, weight, bounds) for weight in weights]
        name = f"{NAME}-lines-{bounds.split()[0]}"
        title = f"{bounds} values"
        panels.append(figures.line_panel(name, title, lines, "radial lines", "relative error", logarithmic="y"))
    caption = "Error of the phantom against the number of radial lines of measured Fourier coefficients."
    keys = tuple(Key(f"l2_weight {w:g}", *_WEIGHT_STYLES.get(w, (4, "dotted"))) for w in weights)
    return Figure("Phantom against radial lines", tuple(panels), caption, keys)


def _error_line(rows: Sequence[Row], weight: float, bounds: str) -> figures.Line:
    chosen = sorted(
        of_study(rows, LINES, l2_weight=weight, bounds=bounds), key=lambda row: row["settings"]["lines"]
    )
    counts = [row["settings"]["lines"] for row in chosen]
    errors = [row["results"]["relative_error"] for row in chosen]
    known = [math.nan if error is None else error for error in errors]
    return figures.Line(f"l2_weight {weight:g}", counts, known, *_WEIGHT_STYLES.get(weight, (4, "dotted")), True)


def _psnr_table(rows: Sequence[Row], study: str, title: str) -> Table | None:
    weights = _weights(rows, study)
    images = _images(rows, study)
    if not images:
        return None

    def cells(image: str) -> tuple[Cell, ...]:
        psnr = {w: mean_psnr(rows, study, image, w) for w in weights}
        given = summarize(r["results"]["psnr_given"] for r in of_study(rows, study, image=image)).mean
        best = max(psnr.values())
        return (
            Cell(f"{given:.2f}"),
            *(Cell(f"{psnr[w]:.2f}", (_alphas(rows, study, image, w),), psnr[w] == best) for w in weights),
        )

    heads = ("image", "given", *(f"l2_weight {w:g}" for w in weights))
    note = "Mean PSNR in dB, below it the best α; bold is the best weight."
    return Table(f"{title}: PSNR against l2_weight", heads, tuple((image, cells(image)) for image in images), note)


def _alphas(rows: Sequence[Row], study: str, image: str, weight: float) -> str:
    chosen = of_study(rows, study, image=image, l2_weight=weight)
    return f"α {number(summarize(row['results']['alpha'] for row in chosen).mean)}" if chosen else ""


def _line_table(rows: Sequence[Row]) -> Table | None:
    weights = _weights(rows, LINES)
    if not weights:
        return None

    def cell(weight: float, bounds: str) -> Cell:
        fewest = fewest_lines(rows, weight, bounds)
        return Cell("none of those tried" if fewest is None else str(fewest))

    body = tuple((f"l2_weight {w:g}", tuple(cell(w, bounds) for bounds in BOUNDS)) for w in weights)
    tried = sorted({row["settings"]["lines"] for row in of_study(rows, LINES)})
    size = of_study(rows, LINES)[0]["settings"]["size"]
    note = f"The head phantom with {size} pixels a side; {tried[0]} to {tried[-1]} lines were tried."
    heads = ("weight", *(f"{bounds} values" for bounds in BOUNDS))
    return Table("Radial lines from which on the phantom is recovered", heads, body, note)

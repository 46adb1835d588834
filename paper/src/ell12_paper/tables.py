"""The tables of the page: each a grid of cells with heads, a note, and the paper's number where it has one."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ell12_paper import image_judges, judges
from ell12_paper.comparisons import bounded, time_ratio
from ell12_paper.image_judges import (
    BLOCK,
    CONVEX,
    LOG_SUM,
    at_rule,
    bounded_ratio,
    completion,
    images_of,
    strengths,
)
from ell12_paper.judges import GRID, OURS, Rows, is_papers, setups
from ell12_paper.published import printed, published
from ell12_paper.rows import Row
from ell12_paper.studies import beyond, dca_variants, denoising, prox_race
from ell12_paper.studies.compressed_sensing import RHO_ONE
from ell12_paper.studies.image_completion import METHODS
from ell12_paper.studies.images import shown
from ell12_paper.trials import Trials, comparable, geometric_ratio, logarithms
from ell12_paper.words import duration, number, percent, plus_minus, power_of_ten, scientific, short_time, span


@dataclass(frozen=True)
class Cell:
    """A number with what stands below it in small letters; bold where it is best or comparable."""

    text: str
    lines: tuple[str, ...] = ()
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Heads of the columns, that of the row labels included, and labelled rows; ``number`` is the paper's."""

    study: str
    part: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""
    number: str = ""


def grid(
    place: tuple[str, str],
    title: str,
    rows: Mapping[str, Any],
    columns: Mapping[str, Any],
    cell: Callable[[Any, Any], Cell],
    note: str = "",
    number: str = "",
    corner: str = "method",
) -> Table:
    """A table with a cell for every row and column; the keys of both are their labels."""
    body = tuple((label, tuple(cell(row, at) for at in columns.values())) for label, row in rows.items())
    return Table(*place, title, (corner, *columns), body, note, number)


def tables(rows: Rows) -> Iterator[Table]:
    """Every table, in the order of the page."""
    makers = {
        judges.SENSING: _sensing,
        image_judges.COMPLETION: _completion,
        denoising.NAME: _denoising,
        dca_variants.NAME: _variants,
        prox_race.NAME: _prox,
    }
    for study, make in makers.items():
        if rows[study].rows:
            yield from make(rows)


# What several tables share

BOLD = "Bold: the lowest, and those that the paired t-test at 95 % on logarithms does not tell from it."


def repeats_note(trials: Trials) -> str:
    """What a number over the repeats is."""
    return f"Mean ± standard deviation over {trials.n_repeats} repeats." if trials.n_repeats > 1 else "One repeat."


def limit_words(trials: Trials) -> tuple[str, ...]:
    """How many of the runs ended at which limit, if any did."""
    limited = [row for row in trials.rows if row["results"]["is_limited"]]
    count = "" if len(limited) == len(trials.rows) else f"{len(limited)} of {len(trials.rows)} "
    return (f"{count}{' and '.join(dict.fromkeys(map(_limit, limited)))}",) if limited else ()


def _limit(row: Row) -> str:
    settings, results = row["settings"], row["results"]
    iterations, seconds = settings.get("max_iter"), settings.get("max_cpu_seconds")
    if iterations and (results.get("status") == "MAX_ITER" or results["n_iter"] >= iterations):
        return f"at the limit of {iterations:,} iterations"
    return f"at the limit of {duration(seconds)}"


def value_words(trials: Trials, result: str) -> str:
    """Mean and deviation: of a time, as a bound where a run ended at its limit, or of an error times 100."""
    if not trials.values(result):
        return "no rows"
    if result == "cpu_seconds":
        return "≥ " * bool(trials.n_limited) + plus_minus(trials.mean(result), trials.deviation(result))
    spread = trials.deviation(result)
    return plus_minus(100 * trials.mean(result), spread and 100 * spread, 2)


def measured(trials: Trials, result: str, printed_as: str = "") -> Callable[[str, Any], Cell]:
    """Mean and deviation, the best in bold; below it what is printed of the same data, and what limited it."""

    def best(column: Any) -> set[str]:
        chosen = {m: trials.at(m, column) for m in trials.methods}
        finished = {m: found for m, found in chosen.items() if result != "cpu_seconds" or not found.n_limited}
        return comparable({m: logarithms(found.values(result)) for m, found in finished.items()})

    bests = {column: best(column) for column in trials.columns}

    def cell(method: str, column: Any) -> Cell:
        chosen, theirs = trials.at(method, column), printed(printed_as, method, column) if printed_as else None
        decimals = 1 if result == "cpu_seconds" else 2
        lines = [f"paper {plus_minus(*theirs, decimals)}"] if theirs else []
        limits = limit_words(chosen) if chosen.rows else ()
        return Cell(value_words(chosen, result), (*lines, *limits), method in bests[column])

    return cell


def _names(names: Sequence[str]) -> dict[str, str]:
    return {name: name for name in names}


# Compressed sensing


def _sensing(rows: Rows) -> Iterator[Table]:
    columns = {f"i = {i}": i for i in GRID}
    for trials in setups(rows):
        place, methods = (judges.SENSING, f"Setup “{trials.name}”"), _names(trials.methods)
        same, note = is_papers(trials), f"{repeats_note(trials)} {BOLD}"
        for title, result, name, label in (
            ("CPU seconds", "cpu_seconds", "cpu_seconds", "Table I"),
            ("RMSE x 100", "rmse", "rmse_times_100", "Table II"),
        ):
            cells = measured(trials, result, name if same else "")
            yield grid(place, f"{title} ({trials.name})", methods, columns, cells, note, label)
        for title, make, note in (
            ("Printed time / ours", _printed_over_ours, "The paper's mean time over ours: a constant factor is "
             "the machine, a growing one the method."),
            (f"CPU time as a multiple of {OURS}", _multiple, "Ratios of means over shared repeats."),
            ("Objective and stationarity reached", _reached, "Mean objective; below it the largest stationarity. "
             "FISTA minimises another objective (l1)."),
            (f"Stopped at a change of {scientific(judges.EARLY_CHANGE)}: RMSE x 100", _early, "How far the "
             "objective is above nmAPG's end, and the seconds. Rules met before a method moves do not count."),
        ):  # fmt: skip
            yield grid(place, f"{title} ({trials.name})", methods, columns, make(trials), note)


def _printed_over_ours(trials: Trials) -> Callable[[str, int], Cell]:
    def cell(method: str, i: int) -> Cell:
        theirs = printed("cpu_seconds", "DCA" if method == RHO_ONE else method, i)
        ours = trials.at(method, i).mean("cpu_seconds")
        return Cell(number(theirs[0] / ours) if theirs and ours > 0 else "not printed")

    return cell


def _multiple(trials: Trials) -> Callable[[str, int], Cell]:
    return lambda method, i: Cell(time_ratio(trials.at(OURS, i), trials.at(method, i)))


def _reached(trials: Trials) -> Callable[[str, int], Cell]:
    def cell(method: str, i: int) -> Cell:
        chosen = trials.at(method, i)
        reached = chosen.values("stationarity").values()
        return Cell(f"{chosen.mean('objective'):.6g}", (scientific(max(reached)),)) if reached else Cell("no rows")

    return cell


def _early(trials: Trials) -> Callable[[str, int], Cell]:
    stopped = judges.early(trials)

    def cell(method: str, i: int) -> Cell:
        chosen = stopped.at(method, i)
        if not chosen.values("rmse"):
            return Cell("never met")
        found = judges.excesses(chosen.values("objective"), trials.at(OURS, i).values("objective"))
        excess = [f"objective {percent(float(np.mean([*found.values()])))}"] if found and method != "FISTA" else []
        return Cell(f"{100 * chosen.mean('rmse'):.2f}", (*excess, f"{number(chosen.mean('cpu_seconds'))} s"))

    return cell


# Image completion


def _completion(rows: Rows) -> Iterator[Table]:
    table, name = completion(rows, "table"), image_judges.COMPLETION
    place, methods = (name, "The paper's table"), _names(table.methods)
    images = {shown(image): image for image in table.columns}
    for title, result, label in (
        ("RMSE x 100 over all pixels", "rmse", "Table III"),
        ("RMSE x 100 over the missing pixels", "rmse_missing", ""),
        ("CPU seconds", "cpu_seconds", "Table III"),
    ):
        note = f"{repeats_note(table)} {BOLD}"
        yield grid(place, title, methods, images, measured(table, result), note, label)
    yield grid(place, "What was reached", methods, images, lambda m, i: _end_of(table.at(m, i)))
    for title, key, decimals in (("RMSE x 100", "rmse_times_100", 2), ("CPU seconds", "cpu_seconds", 1)):
        values = published()[name][key]
        head = f"As the paper prints it, on its own images: {title}"
        theirs = _names(list(values["Mountain"]))

        def cell(method: str, image: str, values: Any = values, decimals: int = decimals) -> Cell:
            return Cell(plus_minus(*values[image][method], decimals))

        yield grid(place, head, theirs, _names(list(values)), cell, "", "Table III")
    path, theta, centring = (completion(rows, study) for study in ("path", "theta", "centring"))
    if path.rows:
        note = "Lowest RMSE x 100 over the missing pixels on the grid of each parameter, in hindsight."
        place = (name, "The strength, which the paper fixes")
        best = {image: _best_of(path, image) for image in path.columns}
        yield grid(place, "The best of each method over its grid", _names(path.methods), images,
                   lambda m, i: _at_best(path, m, i, best[i]), note)  # fmt: skip
    if theta.rows:
        values = {"θ = √α (FaNCL)": (LOG_SUM, {"theta": None})}
        values |= {f"θ = {v:g}": (LOG_SUM, {"theta": v}) for v in sorted(v for v in theta.seen("theta") if v)}
        values |= {method: (method, {"repeat": 0}) for method in (BLOCK, CONVEX)}
        both = Trials((*theta.rows, *table.rows), "", (), "image", theta.columns)
        note = "RMSE x 100 over all pixels; below it over the missing ones; first repeat."
        yield grid((name, "Log-sum's θ"), "Log-sum's θ", values, images,
                   lambda row, i: _two_errors(both.at(row[0], i, **row[1])), note, corner="penalty")  # fmt: skip
    if centring.rows:
        both = Trials((*table.rows, *centring.rows), "", (), "image", centring.columns)
        note = "RMSE x 100 over all pixels as the data are → less the mean of the known pixels."
        yield grid((name, "Centring"), "Effect of centring", _names(centring.methods), images,
                   lambda m, i: _centred(*(both.at(m, i, center=c) for c in (False, True))), note)  # fmt: skip


def _end_of(trials: Trials) -> Cell:
    if not trials.rows:
        return Cell("no rows")
    left = f"stationarity {scientific(max(trials.values('stationarity').values()))}"
    ranks, steps = (span(trials.values(result).values()) for result in ("rank", "n_iter"))
    return Cell(f"rank {ranks}", (f"{steps} iterations", left, *limit_words(trials)))


def along_grid(trials: Trials, method: str, image: str, result: str) -> dict[float, float]:
    """The mean of one result at each value of a method's parameter."""
    setting, chosen = METHODS[method].setting, trials.at(method, image)
    means = {value: chosen.where(**{setting: value}).mean(result) for value in sorted(chosen.seen(setting))}
    return {value: mean for value, mean in means.items() if not math.isnan(mean)}


def _best_of(path: Trials, image: str) -> str:
    errors = {method: along_grid(path, method, image, "rmse_missing").values() for method in path.methods}
    return min((m for m in errors if errors[m]), key=lambda method: min(errors[method]))


def _at_best(path: Trials, method: str, image: str, best: str) -> Cell:
    errors = along_grid(path, method, image, "rmse_missing")
    if not errors:
        return Cell("no rows")
    at = min(errors, key=lambda value: errors[value])
    edge = ("end of the grid",) if at in (min(errors), max(errors)) else ()
    return Cell(f"{100 * errors[at]:.2f}", (f"at {METHODS[method].parameter} {at:g}", *edge), method == best)


def _two_errors(trials: Trials) -> Cell:
    errors = (value_words(trials, result) for result in ("rmse", "rmse_missing"))
    return Cell(next(errors), (f"missing {next(errors)}",))


def _centred(plain: Trials, centred: Trials) -> Cell:
    before, after = plain.mean("rmse"), centred.mean("rmse")
    return Cell(f"{100 * before:.2f} → {100 * after:.2f}", (percent(after / before - 1),))


# Total variation


def shown_alpha(i: int) -> str:
    """The strength of a number of the grid."""
    return f"α = {0.02 * i:.2f}"


def label(method: str, rule: str) -> str:
    """A method and the rule that ended it."""
    own = method == denoising.OURS
    return f"{method}, our default" if own else f"{method}, to a change of {scientific(denoising.RULES[rule])}"


# What is drawn and compared with DCA: method, rule, colour and dash.
CURVES = (
    (denoising.DCA, "strict", 2, "solid"),
    (denoising.DCA, "loose", 2, "dotted"),
    (denoising.ACCURATE, "strict", 1, "solid"),
    (denoising.ALTMIN, "loose", 1, "dotted"),
    (denoising.OURS, "strict", 3, "dashed"),
)


def _denoising(rows: Rows) -> Iterator[Table]:
    for study in strengths(rows):
        place, ends = (denoising.NAME, f"Noise of {study.name} 0.05"), f"(noise of {study.name} 0.05)"
        columns = {shown_alpha(i): i for i in study.columns if i in denoising.SHOWN}
        pairs = product(images_of(study), study.methods)
        each = {f"{shown(image)}: {method}": (image, method) for image, method in pairs}
        ended = {rule: at_rule(study, rule) for rule in ("strict", "loose")}
        note = f"{repeats_note(study)} At a change of 1e-4; “early” at 1e-3. The paper prints curves only."
        for title, result in (("RMSE x 100", "rmse"), ("CPU seconds", "cpu_seconds")):

            def cell(row: tuple[str, str], i: int, result: str = result, ended: Any = ended) -> Cell:
                late, early = (found.at(row[1], i, image=row[0]) for found in ended.values())
                lines = () if row[1] == denoising.OURS else (f"early {value_words(early, result)}",)
                return Cell(value_words(late, result), (*lines, *limit_words(late)))

            yield grid(place, f"{title} {ends}", each, columns, cell, note, corner="image: method")
        chosen = {label(m, rule): (m, rule) for m, rule, *_ in CURVES if m != denoising.DCA and m in study.methods}
        note = "DCA's time over the method's under the same rule, geometric mean over images and repeats."

        def ratio(row: tuple[str, str], i: int, ended: Any = ended) -> Cell:
            return Cell(bounded_ratio(ended[row[1]], row[0], i))

        yield grid(place, f"Times faster than DCA {ends}", chosen, columns, ratio, note, "Figure 5")
    place, trials = (denoising.NAME, "Beyond the paper"), rows[denoising.NAME]
    for title, study in (("Denoising", beyond.WEIGHTS), ("Deblurring", beyond.BLUR)):
        chosen = trials.where(study=study)
        weights = {f"l2_weight {weight:g}": weight for weight in sorted(chosen.seen("l2_weight"))}
        images = {shown(image): image for image in chosen.seen("image")}
        if images:
            yield grid(place, f"{title}: PSNR in dB, each weight at its best strength", images, weights,
                       lambda image, w, chosen=chosen: _psnr(chosen.where(image=image, l2_weight=w)),
                       "Below it that strength.", corner="image")  # fmt: skip
    lines = trials.where(study=beyond.LINES)
    if lines.rows:
        weights = {f"l2_weight {weight:g}": weight for weight in sorted(lines.seen("l2_weight"))}
        columns = {f"{bounds} values": bounds for bounds in beyond.BOUNDS}
        yield grid(place, "Radial lines from which on the phantom is recovered", weights, columns,
                   lambda w, b: Cell(str(image_judges.fewest_lines(rows, w, b) or "none of those tried")),
                   corner="weight")  # fmt: skip


def _psnr(trials: Trials) -> Cell:
    return Cell(f"{trials.mean('psnr'):.2f}", (f"α {number(trials.mean('alpha'))}",)) if trials.rows else Cell("")


def _variants(rows: Rows) -> Iterator[Table]:
    sensing = judges.variant_trials(rows, dca_variants.SENSING)
    if sensing.rows:
        goals = judges.printed_dca_ratios()

        def times(name: str, i: int) -> Cell:
            ours, theirs = sensing.at(dca_variants.REFERENCE, i), sensing.at(name, i)
            value = geometric_ratio(ours, theirs)
            near = judges.is_near(value, goals[i]) and not theirs.n_limited
            return Cell(bounded(value, ours, theirs), (f"paper {number(goals[i])}",), near)

        note = f"Setup “{dca_variants.SETUP}”. Bold: within a factor of {judges.NEAR:g} of the printed ratio."
        place, title = (dca_variants.NAME, "Compressed sensing"), f"CPU time of DCA / {OURS}"
        columns = {f"i = {i}": i for i in sensing.columns}
        yield grid(place, title, _names(sensing.methods[1:]), columns, times, note, "Table I", "inside DCA")
    images = judges.variant_trials(rows, dca_variants.DENOISING)
    if images.rows:
        ended = at_rule(images, "loose")
        least, most = published()[denoising.NAME]["times_faster"]

        def ratio(name: str, i: int) -> Cell:
            ours, theirs = ended.at(denoising.ALTMIN, i), ended.at(name, i)
            value = geometric_ratio(ours, theirs)
            return Cell(bounded(value, ours, theirs), (), judges.is_near(value, least, most))

        note = f"Both to a change of 1e-3. Bold: within a factor of {judges.NEAR:g} of {least} to {most}."
        yield grid((dca_variants.NAME, "Denoising"), "CPU time of DCA / AltMin", _names(images.methods[2:]),
                   {shown_alpha(i): i for i in images.columns}, ratio, note, "Figure 5", "DCA solves")  # fmt: skip


def _prox(rows: Rows) -> Iterator[Table]:
    trials = rows[prox_race.NAME]
    ratios = judges.prox_ratios(trials)

    def cell(d: int, column: tuple[str, str]) -> Cell:
        case, method = column
        if (case, d) not in ratios:
            return Cell("none")
        text = short_time(judges.median(trials, method, case, d, "seconds"))
        steps = f"{judges.median(trials, method, case, d, 'n_iter'):g} iterations"
        return Cell(text, (f"{number(ratios[case, d])} times", steps) if method == judges.NUMERICAL else ())

    sizes = {f"d = {power_of_ten(d)}": d for d in sorted({d for _, d in ratios})}
    pairs = product(trials.seen("case"), (judges.CLOSED, judges.NUMERICAL))
    columns = {f"{method}, {case}": (case, method) for case, method in pairs}
    place = (prox_race.NAME, "Time and iterations")
    yield grid(
        place, "Time of one proximal step", sizes, columns, cell, "Medians over the repeats.", corner="size"
    )

"""The tables of the page: ``tables.toml`` says which trials are where, the functions here what a cell shows."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from ell12_paper import image_judges, judges
from ell12_paper.comparisons import bounded, time_ratio
from ell12_paper.image_judges import at_rule, mean_ratio
from ell12_paper.judges import OURS, Rows
from ell12_paper.rows import Row
from ell12_paper.studies import dca_variants, denoising
from ell12_paper.studies.image_completion import METHODS
from ell12_paper.studies.images import shown
from ell12_paper.trials import Trials, comparable, geometric_ratio, logarithms, mean_of, printed, published
from ell12_paper.words import duration, number, percent, plus_minus


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


# How the value of a setting is written, and in which order values come.
HEADS: dict[str, Any] = {"image": shown, "i": "i = {}".format, "d": "{:,}".format}
HEADS |= {"l2_weight": "l2_weight {:g}".format, "theta": lambda value: f"{value:g}" if value else "√α"}
CORNERS = {"theta": "θ"}
NOTHING = Cell("–")
ORDERS = {"image": image_judges.IMAGES, "method": (*METHODS, *judges.METHODS, *denoising.METHODS)}


def tables(rows: Rows) -> Iterator[Table]:
    """Every table, in the order of the page."""
    text = Path(__file__).with_name("tables.toml").read_text(encoding="utf-8")
    for spec in tomllib.loads(text)["table"]:
        chosen = rows[spec["study"]].where(**spec.get("where", {}))
        values = chosen.seen(spec["each"]) if "each" in spec else ("",) if chosen.rows else ()
        for value in values:
            one = chosen.where(**{spec["each"]: value}) if value else chosen
            found = _table(spec, one, f" ({value})" if value else "")
            yield found if value == values[0] else replace(found, note="")


def _table(spec: Mapping[str, Any], trials: Trials, end: str) -> Table:
    """The table of some trials."""
    sides = {side: _values_of(trials, spec[side]) for side in ("rows", "columns")}
    cell, body = globals()[spec["cell"]], []
    columns = {head: trials.where(**setting) for head, setting in sides["columns"].items()}
    for head, setting in sides["rows"].items():
        found = [(column.where(**setting), column) for column in columns.values()]
        cells = tuple(cell(*pair) if pair[0].rows else NOTHING for pair in found)
        if head != spec.get("base") and set(cells) != {NOTHING}:
            body.append((head, cells))
    part = spec.get("part", end.strip(" ()").capitalize())
    first, *others = columns
    short = (head.removeprefix("i = ").removeprefix("l2_weight ") for head in others)
    heads = (": ".join(CORNERS.get(name, name) for name in spec["rows"]), first, *short)
    cuts = dict.fromkeys(map(_limit, limited(trials))) if cell is seconds else ()
    note = spec.get("note", "") + (f"Cut: ended by our limit of {' or '.join(cuts)}." if cuts else "")
    return Table(spec["study"], part, spec["title"] + end, heads, tuple(body), note, spec.get("number", ""))


def _values_of(trials: Trials, settings: list[str]) -> dict[str, Row]:
    """The values of some settings that have rows together, by their heads."""
    values = [trials.seen(name, ORDERS.get(name, sorted(trials.seen(name), key=_size))) for name in settings]
    chosen = [dict(zip(settings, found, strict=True)) for found in product(*values)]
    few = trials.seen("i") if len(trials.seen("i")) < 10 else denoising.SHOWN  # of many strengths, some
    kept = [setting for setting in chosen if trials.where(**setting).rows and setting.get("i") in (None, *few)]
    return {": ".join(HEADS.get(n, str)(v) for n, v in setting.items()): setting for setting in kept}


def _size(value: Any) -> tuple[float, str]:
    return (value, "") if isinstance(value, int | float) else (-1.0, str(value))


# Cells: of the trials here, and of all in the column


def seconds(here: Trials, column: Trials) -> Cell:
    """CPU seconds, as a bound where a run ended at its limit."""
    return _measured(here, column, "cpu_seconds")


def error(here: Trials, column: Trials) -> Cell:
    """RMSE times 100."""
    return _measured(here, column, "rmse")


def _measured(here: Trials, column: Trials, result: str) -> Cell:
    """Mean and deviation, the best in bold; below it the error that is printed, and how many runs were cut."""
    each = {m: column.where(method=m) for m in column.seen("method")}
    finished = {m: t for m, t in each.items() if result != "cpu_seconds" or not t.n_limited}
    best = comparable({m: logarithms(found.values(result)) for m, found in finished.items()})
    (method,), (setting,) = here.seen("method"), here.seen("i") or here.seen("image")
    is_papers = isinstance(setting, str) or judges.is_papers(here)
    theirs = printed("rmse_times_100", method, setting) if result == "rmse" and is_papers else None
    lines = (f"[{theirs[0]:.2f}]",) if theirs else ()
    count = len(limited(here))
    cut = (f"{count} of {len(here.rows)} cut" if count < len(here.rows) else "cut",) if count else ()
    return Cell(value_words(here, result), (*lines, *cut), method in best)


def value_words(trials: Trials, result: str) -> str:
    """Mean and deviation: of a time, as a bound where a run ended at its limit, or of an error times 100."""
    if not trials.values(result):
        return "no rows"
    mean, spread = trials.mean(result), trials.deviation(result)
    if result == "cpu_seconds":
        return "≥ " * bool(trials.n_limited) + plus_minus(mean, spread)
    return plus_minus(100 * mean, spread and 100 * spread, 2)


def limited(trials: Trials) -> list[Row]:
    """The rows of runs that a limit of ours ended."""
    return [row for row in trials.rows if row["results"]["is_limited"]]


def _limit(row: Row) -> str:
    most = row["settings"].get("max_iter") or math.inf
    is_time = row["results"]["n_iter"] < most
    return duration(row["settings"]["max_cpu_seconds"]) if is_time else f"{most:,} iterations"


def printed_over_ours(here: Trials, _: Trials) -> Cell:
    """The paper's mean time over ours; of DCA with rho = 1, of LMaFit with growing rank too."""
    (method,), (setting,) = here.seen("method"), here.seen("i") or here.seen("image")
    theirs = printed("cpu_seconds", method.partition("(rho")[0].partition("(growing")[0], setting)
    bound = "≤ " * bool(here.n_limited)
    return Cell(bound + number(theirs[0] / here.mean("cpu_seconds"))) if theirs else NOTHING


def along_grid(trials: Trials, method: str, image: str, result: str) -> dict[float, float]:
    """The mean of one result at each value of a method's parameter."""
    setting, chosen = METHODS[method].setting, trials.where(method=method, image=image)
    means = {value: chosen.where(**{setting: value}).mean(result) for value in sorted(chosen.seen(setting))}
    return {value: mean for value, mean in means.items() if not math.isnan(mean)}


def best_on_grid(here: Trials, _: Trials) -> Cell:
    """The lowest error on the grid of a method's parameter, and where."""
    (method,), (image,) = here.seen("method"), here.seen("image")
    errors = along_grid(here, method, image, "rmse_missing")
    at = min(errors, key=lambda value: errors[value])
    edge = ", the end" if at in (min(errors), max(errors)) else ""
    return Cell(f"{100 * errors[at]:.2f}", (f"{METHODS[method].setting.removesuffix('_factor')} {at:g}{edge}",))


def times_faster(here: Trials, column: Trials) -> Cell:
    """DCA's time over the method's at the two rules."""
    (method,), dca = here.seen("method"), column.where(method=denoising.DCA)
    pairs = {rule: [at_rule(trials, rule) for trials in (here, dca)] for rule in denoising.RULES}
    loose, strict = (bounded(mean_ratio(at_rule(column, rule), method), *pair) for rule, pair in pairs.items())
    return Cell(loose, (strict,))


def psnr(here: Trials, _: Trials) -> Cell:
    """The best PSNR."""
    return Cell(f"{here.mean('psnr'):.2f}")


def variant(here: Trials, column: Trials) -> Cell:
    """A variant of DCA over nmAPG."""
    goal = judges.printed_dca_ratio(*here.seen("i"))
    return _variant(column.where(method=dca_variants.REFERENCE), here, goal, goal)


def variant_of_images(here: Trials, column: Trials) -> Cell:
    """A variant of DCA over AltMin."""
    ours = at_rule(column.where(method=denoising.ALTMIN), "loose")
    return _variant(ours, at_rule(here, "loose"), *published()[denoising.NAME]["times_faster"])


def _variant(ours: Trials, theirs: Trials, low: float, high: float) -> Cell:
    value = geometric_ratio(ours, theirs)
    return Cell(bounded(value, ours, theirs), (), judges.is_near(value, low, high) and not theirs.n_limited)


def stopped_as_before(here: Trials, column: Trials) -> Cell:
    """The time over that of nmAPG, and the excess of the objective."""
    ours = column.where(method=OURS)
    found = judges.excesses(here.values("objective"), ours.values("objective"))
    excess = (percent(mean_of(found)),) if here.seen("method") == ("SCP",) else ()
    return Cell(time_ratio(ours, here), excess)


def step(here: Trials, _: Trials) -> Cell:
    """The time of a proximal step."""
    settings = here.rows[0]["settings"]
    time = judges.median(here, settings["method"], settings["case"], settings["d"], "seconds")
    return Cell(f"{1e3 * time:.3g}")

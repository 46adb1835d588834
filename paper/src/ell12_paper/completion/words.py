"""What the page says of image completion in words; every number of ours comes from the rows."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ell12.datasets import STAND_INS
from ell12.wording import duration, number, percent, scientific, so_many, span
from ell12_paper.claims import image_name
from ell12_paper.completion.claims import BLOCK, CONVEX, ERRORS, LOG_SUM, along_grid, gains
from ell12_paper.completion.study import ALPHA_FACTOR, NAME, OBSERVED_FRACTION
from ell12_paper.findings import paper
from ell12_paper.rows import Row
from ell12_paper.statistics import summarize
from ell12_paper.trials import Trials

# The three penalties as the studies of images and of ratings call them; of several, the best counts.
PENALTIES = {
    "the nuclear norm": (CONVEX, ("nuclear norm",)),
    "log-sum": (LOG_SUM, ("log-sum, theta = sqrt(alpha)", "log-sum, theta chosen")),
    "l1-2": (BLOCK, ("l1-2", "l1-2, weight chosen")),
}


@cache
def ratings() -> dict[str, Any]:
    """What `benchmarks/rivals.py` found on real ratings, which a reproduction without downloads cannot measure."""
    return json.loads(Path(__file__).with_name("ratings.json").read_text(encoding="utf-8"))


def asked(rows: Sequence[Row], table: Trials) -> tuple[str, ...]:
    """The question, the images and the rules."""
    settings, printed = rows[0]["settings"], paper()[NAME]
    size = settings["size"]
    crop = "the paper's own size"
    if size != printed["size"]:
        crop = (
            f"the middle {size} x {size} pixels, where the paper has {printed['size']} x {printed['size']}; "
            "ranks are scaled with the side, so compare orders and ratios with it rather than values"
        )
    stand_ins = ", ".join(f"{shipped} for {image}" for image, shipped in STAND_INS.items())
    ranks = sorted({row["settings"]["rank"] for row in table.rows}) or [settings["rank"]]
    return (
        f"{100 * OBSERVED_FRACTION:g} % of the pixels of a grey photograph are known; the others are to be found "
        "from the image's being close to a matrix of low rank. nmAPG minimises ½‖S(X − O)‖² + α(‖X‖∗ − ‖X‖F), S "
        f"keeping the known pixels, with α = {ALPHA_FACTOR:g} times the largest of them; AIS-Impute and "
        "SketchyCGM leave the subtracted norm out, FaNCL takes log-sum, and ARSS-M3F, LMaFit and ER1MP bound the "
        f"rank (by {span(ranks)}).",
        f"The paper's images are not published, so photographs of scikit-image stand in: {stand_ins} ({crop}). "
        "The printed errors and times are of other images and stand in a table of their own.",
        "The paper does not say when it stops. Here every method ends when two iterations change its objective by "
        f"less than a fraction of {scientific(settings['change'])} (ER1MP: when its rank is reached) or its "
        f"stationarity falls to {settings['tol']:g}; one that reaches {settings['max_iter']:,} iterations or "
        f"{duration(settings['max_cpu_seconds'])} of CPU time before that says so beside its number. SketchyCGM's "
        "ball is that of the nuclear norm's solution for the same α, whose time is not counted. Repeats: "
        f"{table.n_repeats} (paper: {printed['repeats']}).",
        "RMSE over all pixels is the paper's measure; over the missing pixels alone it does not count how "
        "closely a method fits what it was given.",
    )


def scale(rows: Sequence[Row], table: Trials) -> str:
    """How large the run is beside the paper's."""
    size, printed = rows[0]["settings"]["size"], paper()[NAME]
    repeats = f", {so_many(table.n_repeats, 'repeat')} (paper {printed['repeats']})" if table.rows else ""
    return f"images of {size} x {size} (paper {printed['size']} x {printed['size']}){repeats}"


def found(table: Trials, path: Trials, theta: Trials, centring: Trials) -> list[str]:
    """What the four studies come to, and which penalty suits images and ratings."""
    missing = "RMSE x 100 over the missing pixels is"
    sentences = {
        "Subtracting the norm changes the nuclear norm's RMSE by {}: one engine, one rule.": _gains(table),
        f"With the strength or rank that is best in hindsight, {missing} lowest at {{}}.": _path_minima(path),
        f"Log-sum depends on θ: {missing} {{}}.": _theta_errors(theta, table),
        "Taking the mean off first changes the RMSE of l1-2 by {}.": _centring_changes(centring, table),
        "Of the nuclear norm, log-sum and l1-2 the RMSE is lowest {}, with parameters that are best in hindsight "
        "on images and chosen by hidden entries on ratings.": _lowest_penalty(path),
    }
    return [*(sentence.format(phrases) for sentence, phrases in sentences.items() if phrases), _on_ratings()]


def _gains(table: Trials) -> str:
    pairs = {image: gains(table, image) for image in table.places}
    return ", ".join(
        f"{percent(-summarize(gain.values()).mean)} on {STAND_INS[image]} (printed for {image}: {percent(-known)})"
        for image, (gain, known) in pairs.items()
        if gain
    )


def _path_minima(path: Trials) -> str:
    """The best that any strength or rank of the grid gives."""
    phrases = []
    for image in path.places:
        errors = {method: along_grid(path, method, image, "rmse_missing") for method in path.methods}
        lowest = {method: min(found.values()) for method, found in errors.items() if found}
        if lowest:
            best = min(lowest, key=lambda method: lowest[method])
            others = [f"{m} {100 * lowest[m]:.2f}" for m in (BLOCK, CONVEX) if m in lowest and m != best]
            phrases.append(f"{image_name(image)} {100 * lowest[best]:.2f} by {best} ({', '.join(others)})")
    return "; ".join(phrases)


def _lowest_penalty(path: Trials) -> str:
    """Where each penalty has the lowest error: on which images, and on ratings with what taken off."""
    where: dict[str, list[str]] = {}
    for image in path.places:
        errors = {name: along_grid(path, method, image, "rmse_missing") for name, (method, _) in PENALTIES.items()}
        lowest = {name: min(found.values()) for name, found in errors.items() if found}
        if len(lowest) == len(PENALTIES):
            where.setdefault(min(lowest, key=lambda name: lowest[name]), []).append(image_name(image))
    for taken_off, errors in ratings()["RMSE"].items():
        lowest = {name: min(errors[method] for method in methods) for name, (_, methods) in PENALTIES.items()}
        where.setdefault(min(lowest, key=lambda name: lowest[name]), []).append(f"ratings {taken_off}")
    return "; ".join(f"for {name} on {', '.join(places)}" for name, places in where.items())


def _on_ratings() -> str:
    found = ratings()
    names = {name: name.replace(", ", " with ") for _, methods in PENALTIES.values() for name in methods}
    shown = [
        f"{taken_off} " + ", ".join(f"{name} {errors[method]:.3f}" for method, name in names.items())
        for taken_off, errors in found["RMSE"].items()
    ]
    return (
        "RMSE on half of MovieLens' hundred thousand ratings, from the other half, mean over "
        f"{found['splits']} random halves (`{found['command']}`, {found['date']}): {'; '.join(shown)}."
    )


def _theta_errors(theta: Trials, table: Trials) -> str:
    phrases = []
    for image in theta.places:
        rows = [row for row in theta.at(LOG_SUM, image).rows if row["results"]["rmse_missing"] is not None]
        ours = table.at(BLOCK, image).values("rmse_missing").get(0)
        usual = [row["results"]["rmse_missing"] for row in rows if row["settings"]["theta"] is None]
        if usual and ours is not None:
            best = min(rows, key=lambda row: row["results"]["rmse_missing"])["results"]
            phrases.append(
                f"{image_name(image)} {100 * usual[0]:.2f} at √α, {100 * best['rmse_missing']:.2f} at θ = "
                f"{number(best['theta'])}, l1-2 {100 * ours:.2f}"
            )
    return "; ".join(phrases)


def _centring_changes(centring: Trials, table: Trials) -> str:
    phrases = []
    for image in centring.places:
        before = table.at(BLOCK, image).values("rmse")
        after = centring.at(BLOCK, image, center=True).values("rmse")
        shared = before.keys() & after.keys()
        if shared:
            change = sum(after[r] for r in shared) / sum(before[r] for r in shared) - 1
            phrases.append(f"{percent(change)} on {image_name(image)}")
    return ", ".join(phrases)


def reasons(table: Trials) -> list[str]:
    """Why the gains are small, and what fixed ranks do."""
    return [*_relief(table), *_degrees_of_freedom(table), *_missing(table)]


def _relief(table: Trials) -> list[str]:
    rows = table.where(method=BLOCK).rows
    shares = [row["results"]["first_share"] for row in rows if row["results"]["first_share"] is not None]
    if not shares:
        return []
    ranks = [row["results"]["rank"] for row in rows]
    side = rows[0]["settings"]["size"]
    return [
        "The subtracted norm relieves the i-th singular value of the part σᵢ/‖σ‖ of its penalty: "
        f"{_percents(shares)} for the first, so next to nothing is left for the other "
        f"{span([rank - 1 for rank in ranks])}. At this α the solutions have rank {span(ranks)} of {side}: l1-2 "
        "is then the nuclear norm with one free direction."
    ]


def _degrees_of_freedom(table: Trials) -> list[str]:
    rows = table.where(method="LMaFit").rows
    if not rows:
        return []
    side, rank = rows[0]["settings"]["size"], rows[0]["settings"]["rank"]
    free, known = rank * (2 * side - rank), round(OBSERVED_FRACTION * side * side)
    if free < known:
        return []
    return [
        f"A matrix of rank {rank} has {free:,} degrees of freedom, more than the {known:,} pixels that are "
        "known: at the paper's rank a factorization that is run to its end fits the known pixels exactly, "
        "whatever it puts elsewhere. What the paper prints for LMaFit cannot be that minimum; stopping early or "
        "growing the rank acts as the regulariser."
    ]


def _missing(table: Trials) -> list[str]:
    """Where the two measures disagree on the better of nmAPG and FaNCL."""
    swapped = []
    for image in table.places:
        ours, theirs = table.at(BLOCK, image), table.at("FaNCL", image)
        differences = [ours.mean(name) - theirs.mean(name) for name in ERRORS.values()]
        lower = {difference < 0 for difference in differences if not math.isnan(difference)}
        swapped += [image_name(image)] if len(lower) > 1 else []
    if not swapped:
        return []
    return [
        f"On {', '.join(swapped)} nmAPG and FaNCL change places between the two measures of RMSE: the one over "
        "all pixels also counts how closely the known ones are fitted."
    ]


def _percents(shares: Sequence[float]) -> str:
    return span(shares, lambda share: f"{100 * share:.0f} %")

"""What the page says of image completion in words; every number of ours comes from the rows."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

from collections.abc import Sequence

from ell12.datasets import STAND_INS
from ell12.experiments.completion.claims import BLOCK, CONVEX, ERRORS, LOG_SUM, Trials, gains
from ell12.experiments.completion.study import ALPHA_FACTOR, NAME, OBSERVED_FRACTION
from ell12.experiments.report import paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import summarize
from ell12.wording import duration, number, percent, scientific, span


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
    stand_ins = "; ".join(f"“{image}” is scikit-image's {shipped}" for image, shipped in STAND_INS.items())
    ranks = sorted({row["settings"]["rank"] for row in table.rows}) or [settings["rank"]]
    return (
        f"{100 * OBSERVED_FRACTION:g} % of the pixels of a grey photograph are known; the others are to be found "
        "from the image's being close to a matrix of low rank. nmAPG minimises ½‖S(X − O)‖² + α(‖X‖∗ − ‖X‖F), S "
        f"keeping the known pixels, with α = {ALPHA_FACTOR:g} times the largest of them; AIS-Impute and "
        "SketchyCGM leave the subtracted norm out, FaNCL takes log-sum, and ARSS-M3F, LMaFit and ER1MP bound the "
        f"rank (by {span(ranks)}).",
        f"The paper's images are not published, so others stand in for them: {stand_ins} ({crop}).",
        "The paper does not say when it stops. Here every method ends when two iterations change its objective by "
        f"less than a fraction of {scientific(settings['change'])} (ER1MP: when its rank is reached) or its "
        f"stationarity falls to {settings['tol']:g}; one that reaches {settings['max_iter']:,} iterations or "
        f"{duration(settings['max_seconds'])} before that is marked “limit”. SketchyCGM's ball is that of the "
        f"nuclear norm's solution for the same α, whose time is not counted. Repeats: {table.n_repeats} (paper: "
        f"{printed['repeats']}).",
        "RMSE over all pixels is the paper's measure; over the missing pixels alone it does not count how "
        "closely a method fits what it was given.",
    )


def found(table: Trials, path: Trials, theta: Trials, centring: Trials) -> list[str]:
    """What the four studies come to."""
    return [
        *_gain_words(table),
        *_path_words(path),
        *_theta_words(theta, table),
        *_centring_words(centring, table),
    ]


def _gain_words(table: Trials) -> list[str]:
    changes = []
    for image in table.images:
        gain, printed = gains(table, image)
        if gain:
            mean = summarize(gain.values()).mean
            changes.append(f"{percent(-mean)} on {image} (printed {percent(-printed)})")
    if not changes:
        return []
    return [f"Subtracting the norm changes the nuclear norm's RMSE by {', '.join(changes)}: one engine, one rule."]


def _path_words(path: Trials) -> list[str]:
    """The best that any strength or rank of the grid gives."""
    phrases = []
    for image in path.images:
        lowest = {m: min(e.values()) for m in path.methods if (e := path.along_grid(m, image, "rmse_missing"))}
        if lowest:
            best = min(lowest, key=lambda method: lowest[method])
            others = [f"{m} {100 * lowest[m]:.2f}" for m in (BLOCK, CONVEX) if m in lowest and m != best]
            phrases.append(f"{image} {100 * lowest[best]:.2f} by {best} ({', '.join(others)})")
    if not phrases:
        return []
    return [
        "With the strength or rank that is best in hindsight, RMSE x 100 over the missing pixels is lowest at "
        f"{'; '.join(phrases)}."
    ]


def _theta_words(theta: Trials, table: Trials) -> list[str]:
    phrases = []
    for image in theta.images:
        rows = [row for row in theta.of(LOG_SUM, image) if row["results"]["rmse_missing"] is not None]
        ours = table.values(BLOCK, image, "rmse_missing").get(0)
        usual = [row["results"]["rmse_missing"] for row in rows if row["settings"]["theta"] is None]
        if rows and usual and ours is not None:
            best = min(rows, key=lambda row: row["results"]["rmse_missing"])["results"]
            phrases.append(
                f"{image} {100 * usual[0]:.2f} at √α, {100 * best['rmse_missing']:.2f} at θ = "
                f"{number(best['theta'])}, l1-2 {100 * ours:.2f}"
            )
    if not phrases:
        return []
    return [f"Log-sum depends on θ: RMSE x 100 over the missing pixels is {'; '.join(phrases)}."]


def _centring_words(centring: Trials, table: Trials) -> list[str]:
    phrases = []
    for image in centring.images:
        before, after = table.values(BLOCK, image, "rmse"), centring.values(BLOCK, image, "rmse", center=True)
        shared = before.keys() & after.keys()
        if shared:
            change = sum(after[r] for r in shared) / sum(before[r] for r in shared) - 1
            phrases.append(f"{percent(change)} on {image}")
    if not phrases:
        return []
    return [f"Taking the mean off first changes the RMSE of l1-2 by {', '.join(phrases)}."]


def reasons(table: Trials) -> list[str]:
    """Why the gains are small, and what fixed ranks do."""
    return [*_relief(table), *_degrees_of_freedom(table), *_missing(table)]


def _relief(table: Trials) -> list[str]:
    rows = [row for image in table.images for row in table.of(BLOCK, image)]
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
    rows = [row for image in table.images for row in table.of("LMaFit", image)]
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
    for image in table.images:
        means = [[table.summary(m, image, name) for m in (BLOCK, "FaNCL")] for name in ERRORS.values()]
        lower = [ours.mean < theirs.mean for ours, theirs in means if ours and theirs]
        swapped += [image] if len(set(lower)) > 1 else []
    if not swapped:
        return []
    return [
        f"On {', '.join(swapped)} nmAPG and FaNCL change places between the two measures of RMSE: the one over "
        "all pixels also counts how closely the known ones are fitted."
    ]


def _percents(shares: Sequence[float]) -> str:
    return span(shares, lambda share: f"{100 * share:.0f} %")

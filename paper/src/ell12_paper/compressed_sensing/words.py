"""What the page says of compressed sensing in words; every number of ours comes from the rows."""

# ruff: noqa: RUF001 (mathematical letters are meant)

from __future__ import annotations

import math
from collections.abc import Sequence

from ell12.datasets import COMPRESSED_SENSING_SETUPS
from ell12.wording import duration, listed, number, percent, scientific, so_many, span
from ell12_paper.compressed_sensing.claims import (
    CONVEX,
    OURS,
    SAME_OBJECTIVE,
    early,
    excesses,
    is_papers,
    ratios,
)
from ell12_paper.compressed_sensing.study import EARLY_CHANGE, NAME
from ell12_paper.findings import paper
from ell12_paper.rows import Row
from ell12_paper.statistics import summarize
from ell12_paper.trials import Trials


def asked(rows: Sequence[Row], setups: Sequence[Trials]) -> tuple[str, ...]:
    """The question, the setups and the stopping rule."""
    settings, printed = rows[0]["settings"], paper()[NAME]
    n_samples = settings["n_samples"]
    size = f"the paper has {printed['n_samples']}, so compare orders and ratios with it rather than values"
    if n_samples == printed["n_samples"]:
        size = "the paper's own size"
    return (
        "A sparse x is to be recovered from noisy observations y = A x + noise. A is an oversampled cosine "
        f"dictionary with {n_samples} rows ({size}) and {4 * n_samples} columns, neighbours of which are nearly "
        f"parallel. All methods minimise ½‖y − A x‖² + α(‖x‖₁ − ‖x‖₂) with α = 0.01 · 0.25ⁱ, but for {CONVEX}, "
        "which leaves the subtracted norm out (l1). Which method is fastest, and does l1-2 recover better than "
        "l1? RMSE is ‖estimate − x‖ / ‖x‖.",
        f"The paper's text leaves the scaling open, so there are two setups. {' '.join(readings())} The first "
        "takes the text literally; the second was chosen to come close to the printed errors.",
        "One stopping rule for all: the stationarity (the largest violation of the first-order condition, "
        f"divided by α) falls to {settings['tol']:g}. A method that reaches {_limits(rows)} before that "
        "says so beside its number, and its time is a lower bound. Computing the Lipschitz constant counts for "
        f"every method. Every method starts at zero. Repeats: {max(trials.n_repeats for trials in setups)} "
        f"(paper: {printed['repeats']}).",
    )


def scale(setups: Sequence[Trials]) -> str:
    """How large the run is beside the paper's."""
    printed, rows = paper()[NAME], [row for trials in setups for row in trials.rows]
    n_samples, repeats = rows[0]["settings"]["n_samples"], max(trials.n_repeats for trials in setups)
    size = f"{n_samples} rows (paper {printed['n_samples']})"
    return f"{size}, {so_many(repeats, 'repeat')} (paper {printed['repeats']})"


def readings() -> list[str]:
    """The setups in words."""
    return [
        f"“{name}” has columns of {'' if length == 1 else f'{length:g} times '}the printed length and noise of "
        f"standard deviation {noise:g}."
        for name, (length, noise) in COMPRESSED_SENSING_SETUPS.items()
    ]


def _limits(rows: Sequence[Row]) -> str:
    """The limits of the runs, where methods differ with their names."""
    steps: dict[int, list[str]] = {}
    for row in rows:
        if row["settings"].get("max_iter"):
            steps.setdefault(row["settings"]["max_iter"], []).append(row["settings"]["method"])
    common_first = sorted(steps, key=lambda limit: -len(steps[limit]))
    words = [
        f"{limit:,} iterations" + (f" ({', '.join(dict.fromkeys(steps[limit]))})" if place else "")
        for place, limit in enumerate(common_first)
    ]
    limit = duration(max(row["settings"]["max_cpu_seconds"] for row in rows))
    return " or ".join([*words, f"{limit} of CPU time"])


def closeness(setups: Sequence[Trials]) -> list[str]:
    """How far the errors of nmAPG(closed-form) are from the printed ones, and which setup is nearer."""
    printed = paper()[NAME]["rmse_times_100"][OURS]
    factors = {}
    for trials in filter(is_papers, setups):
        means = {i: 100 * trials.at(OURS, i).mean("rmse") for i in trials.places}
        logs = [abs(math.log(mean / printed[i][0])) for i, mean in means.items() if mean > 0]
        if logs:
            factors[trials.name] = math.exp(sum(logs) / len(logs))
    if not factors:
        return []
    words = " and ".join(f"{factor:.2f} in “{name}”" for name, factor in factors.items())
    nearest = min(factors, key=lambda name: factors[name])
    closer = f" “{nearest}” comes closer to the paper." if len(factors) > 1 else ""
    return [f"The errors of {OURS} differ from the printed ones by a typical factor of {words}.{closer}"]


def headline_ratios(trials: Trials) -> str:
    """The ratios of the paper's headline, at the last i."""
    last, printed = trials.places[-1], paper()[NAME]["cpu_seconds"]
    phrases = []
    for rival in ("DCA", "SCP"):
        theirs = f" (paper {printed[rival][last][0] / printed[OURS][last][0]:.0f})" if is_papers(trials) else ""
        phrases.append(f"{rival} / {OURS}: {ratios(trials, rival)[-1]}{theirs}")
    return f"Ratios of CPU time at i = {last} in “{trials.name}”: {'; '.join(phrases)}."


def dca_words(setups: Sequence[Trials]) -> list[str]:
    """What the choice of ADMM's penalty costs, at the last i where our DCA ends by itself."""
    phrases = []
    for trials in setups:
        for i in reversed(trials.places):
            own, textbook = trials.at("DCA", i), trials.at("DCA(rho=1)", i)
            if own.mean("cpu_seconds") > 0 and textbook.mean("cpu_seconds") >= 0 and not own.n_limited:
                bound = "at least " if textbook.n_limited else ""
                factor = number(textbook.mean("cpu_seconds") / own.mean("cpu_seconds"))
                phrases.append(f"{bound}{factor} times as long in “{trials.name}” (i = {i})")
                break
    if not phrases:
        return []
    return [
        "DCA: its time depends on the penalty ρ of the ADMM inside it, which the paper does not print. Our DCA "
        f"ties ρ to the Lipschitz constant; with the textbook choice ρ = 1 it takes {' and '.join(phrases)}."
    ]


def scp_words(setups: Sequence[Trials]) -> list[str]:
    """How far SCP is from nmAPG(closed-form)'s objective, by what ended it."""
    phrases: list[str] = []
    ended_close, cut_off_above = True, False
    for trials in setups:
        limited = [i for i in trials.places if trials.at("SCP", i).n_limited]
        both_ended = [i for i in trials.places if i not in limited and not trials.at(OURS, i).n_limited]
        ended, cut_off = (_mean_excesses(trials, grid, trials) for grid in (both_ended, limited))
        said = (
            ("where both reach the same stationarity", ended),
            (
                f"where a rule on the change ({scientific(EARLY_CHANGE)}) stops SCP",
                _mean_excesses(trials, trials.places, early(trials)),
            ),
            ("where SCP is cut off at its limit", cut_off),
        )
        words = "; ".join(f"{span(m.values(), percent)} at i = {listed(m)} {how}" for how, m in said if m)
        phrases += [f"In “{trials.name}” its objective differs from that of {OURS} by {words}."] if words else []
        ended_close &= all(excess <= SAME_OBJECTIVE for excess in ended.values())
        cut_off_above |= any(excess > SAME_OBJECTIVE for excess in cut_off.values())
    if not phrases:
        return []
    moral = " So a larger objective goes with runs that are not finished." if ended_close and cut_off_above else ""
    return [f"SCP: it takes many small steps, so what it reaches depends on when it is stopped.{moral}", *phrases]


def _mean_excesses(trials: Trials, grid: Sequence[int], scp: Trials) -> dict[int, float]:
    """The mean over repeats of SCP's excess over what nmAPG(closed-form) ends at, by i."""
    pairs = {i: (scp.at("SCP", i), trials.at(OURS, i)) for i in grid}
    found = {i: excesses(*(t.values("objective") for t in pair)) for i, pair in pairs.items()}
    return {i: summarize(excess.values()).mean for i, excess in found.items() if excess}

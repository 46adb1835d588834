"""The paper's claims on compressed sensing, checked against the rows of one setup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ell12.datasets import COMPRESSED_SENSING_SETUPS
from ell12.wording import listed, percent, scientific
from ell12_paper.claims import Answer, answer, at_i, faster, lower, lower_at_end, time_ratio, verdict, worst
from ell12_paper.compressed_sensing.study import DEFAULT, EARLY_CHANGE, NAME
from ell12_paper.findings import Kind, Outcome, Source, Verdict, paper
from ell12_paper.rows import Row
from ell12_paper.statistics import Values, summarize
from ell12_paper.tables import said_error
from ell12_paper.trials import Trials

OURS, CONVEX = "nmAPG(closed-form)", "FISTA"
# The paper's methods in the order of its tables, then what we add.
METHODS = ("DCA", "SCP", "nmAPG(numerical)", OURS, CONVEX, "DCA(rho=1)", DEFAULT)
# Where the paper says that nmAPG(closed-form) is faster than a rival.
_TABLE = Source(Kind.PAPER, "Section V-A, Table I")
_FIGURE = Source(Kind.PAPER, "Section V-A, Figure 2 and Table I")
SPEED_SOURCES = {"nmAPG(numerical)": _TABLE, "SCP": _FIGURE, "DCA": _FIGURE, CONVEX: _FIGURE}
SLOWEST = Source(Kind.PAPER, "Section V-A on Table I, also Section II-A")
WORDS_SLOWEST = ("slower than all others", "not the slowest")
# Two objectives closer than this fraction count as the same: solvers that stop at the same stationarity
# differ by rounding and by the last steps they did not take.
SAME_OBJECTIVE = 1e-3


def setups(rows: Sequence[Row]) -> list[Trials]:
    """The rows of each setup, with every i of the paper as a place."""
    present = Trials(tuple(rows)).ended(lambda results: results | {"is_limited": results["status"] != "CONVERGED"})
    grid = tuple(range(len(paper()[NAME]["cpu_seconds"][OURS])))
    names = present.seen("setup", dict.fromkeys((*COMPRESSED_SENSING_SETUPS, *present.seen("setup"))))
    found = []
    for name in names:
        chosen = present.where(setup=name)
        methods = chosen.seen("method", dict.fromkeys((*METHODS, *chosen.seen("method"))))
        found.append(Trials(chosen.rows, name, methods, "i", grid))
    return found


def is_papers(trials: Trials) -> bool:
    """Whether the data are the paper's: drawn as its text says, with its number of rows."""
    return {row["settings"]["n_samples"] for row in trials.rows} == {paper()[NAME]["n_samples"]}


def early(trials: Trials) -> Trials:
    """The trials as the early rule would have ended them; those that converged before count with their end."""
    return trials.ended(lambda results: results["early"] or (None if results["is_limited"] else results))


def verdicts_of(trials: Trials) -> list[Verdict]:
    """Every claim of the paper on one setup."""
    early_rule = f"stopped at a relative change of {scientific(EARLY_CHANGE)}"
    return [
        *(_faster(trials, rival) for rival in ("nmAPG(numerical)", "SCP", "DCA", CONVEX)),
        _slowest(trials),
        _more_accurate(trials),
        _larger_objective(trials, trials, "stopped at the same stationarity"),
        _larger_objective(trials, early(trials), early_rule),
        _default(trials),
    ]


def ratios(trials: Trials, rival: str) -> list[str]:
    """How many times as long as nmAPG(closed-form) a method takes at each i."""
    return [time_ratio(trials.at(OURS, i), trials.at(rival, i)) for i in trials.places]


def _printed(method: str) -> list[float]:
    """The CPU seconds of a method in the paper's Table I, by i."""
    return [mean for mean, _ in paper()[NAME]["cpu_seconds"][method]]


def _faster(trials: Trials, rival: str) -> Verdict:
    """Whether nmAPG(closed-form) is faster at every i at which the paper's own table has it so."""
    grid = [i for i in trials.places if _printed(OURS)[i] < _printed(rival)[i]]
    answers = [faster(i, trials.at(OURS, i), trials.at(rival, i)) for i in grid]
    where = "every i" if len(grid) == len(trials.places) else f"i = {listed(grid)}, where Table I prints it so"
    claim = f"{OURS} is faster than {rival}{' on its convex problem' if rival == CONVEX else ''} at {where}"
    shown = ", ".join(ratios(trials, rival))
    numbers = f"CPU time of {rival} / {OURS} at i = {listed(trials.places)}: {shown}."
    return verdict(claim, answers, ("faster", "slower"), numbers, trials.name, at_i, SPEED_SOURCES[rival])


def _default(trials: Trials) -> Verdict:
    """Whether the solver that this library takes by itself is faster than the paper's."""
    pairs = {i: (trials.at(DEFAULT, i), trials.at(OURS, i)) for i in trials.places}
    shown = ", ".join(time_ratio(*pair) for pair in pairs.values())
    numbers = f"CPU time of {OURS} / {DEFAULT} at i = {listed(trials.places)}: {shown}."
    answers = [faster(i, *pair) for i, pair in pairs.items()]
    claim = f"{DEFAULT}, the default of this library, is faster than {OURS} at every i"
    return verdict(claim, answers, ("faster", "slower"), numbers, trials.name, at_i, Source(Kind.OURS))


def _slowest(trials: Trials) -> Verdict:
    """Whether DCA takes the longest of the paper's methods, as its text says and its table does not."""
    rivals = [method for method in paper()[NAME]["cpu_seconds"] if method != "DCA"]
    pairs = {i: {rival: (trials.at(rival, i), trials.at("DCA", i)) for rival in rivals} for i in trials.places}
    answers = [worst(i, {rival: faster(i, *pair) for rival, pair in found.items()}) for i, found in pairs.items()]
    shown = ", ".join(time_ratio(*reversed(found["SCP"])) for found in pairs.values())
    numbers = f"CPU time of SCP / DCA at i = {listed(trials.places)}: {shown}."
    found = verdict("DCA is the slowest", answers, WORDS_SLOWEST, numbers, trials.name, at_i, SLOWEST)
    printed = ", ".join(f"{_printed('SCP')[i]:g} s against {_printed('DCA')[i]:g}" for i in trials.places)
    return replace(found, reason=f"{found.reason} Table I itself has SCP slower than DCA at every i: {printed}.")


def _more_accurate(trials: Trials) -> Verdict:
    answers = [lower_at_end(i, "rmse", trials.at(OURS, i), trials.at(CONVEX, i)) for i in trials.places]
    ours, convex = (
        ", ".join(said_error(trials.at(method, i), "rmse") for i in trials.places) for method in (OURS, CONVEX)
    )
    numbers = f"RMSE x 100 at i = {listed(trials.places)}: {ours} ({OURS}) against {convex} ({CONVEX})."
    claim = "l1-2 recovers with a lower RMSE than l1 at every i"
    source = Source(Kind.PAPER, "Section V-A, Table II")
    return verdict(claim, answers, ("lower", "higher"), numbers, trials.name, at_i, source)


def _larger_objective(trials: Trials, ended: Trials, rule: str) -> Verdict:
    """Whether SCP ends higher; the paper does not say when it stops, so that there are two rules."""
    answers, shown = [], []
    for i in trials.places:
        scp, ours = ended.at("SCP", i), ended.at(OURS, i)
        excess = excesses(scp.values("objective"), ours.values("objective"))
        shown.append(percent(summarize(excess.values()).mean) if excess else "not known")
        answers.append(_excess_answer(i, excess, ended is trials and scp.n_limited + ours.n_limited > 0))
    numbers = f"Mean excess of SCP's objective over {OURS}'s at i = {listed(trials.places)}: {', '.join(shown)}."
    bound = f"larger by more than {100 * SAME_OBJECTIVE:g} %"
    claim = f"SCP ends at a larger objective than {OURS} at every i"
    setting, source = f"{trials.name}, {rule}", Source(Kind.PAPER, "Section V-A, Figure 2")
    return verdict(claim, answers, (bound, f"not {bound}"), numbers, setting, at_i, source)


def excesses(objectives: Values, reference: Values) -> Values:
    """By which fraction each objective exceeds that of the reference in the same repeat."""
    shared = objectives.keys() & reference.keys()
    return {r: (objectives[r] - reference[r]) / abs(reference[r]) for r in sorted(shared) if reference[r]}


def _excess_answer(i: int, excess: Values, limited: bool) -> Answer:
    if not excess:
        return Answer(i, Outcome.OPEN, "a method never met the rule, or has no rows")
    if summarize(excess.values()).mean <= SAME_OBJECTIVE:
        return answer(i, False)
    if limited:  # further steps would have lowered the objective
        return Answer(i, Outcome.OPEN, "a method ended at its limit")
    return lower(i, dict.fromkeys(excess, 0.0), excess)

"""The paper's claims on compressed sensing, checked against the rows of one setup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ell12.experiments.claims import Answer, Timed, faster, lower, time_ratio, verdict
from ell12.experiments.compressed_sensing.study import EARLY_CHANGE, NAME
from ell12.experiments.report import Outcome, Verdict, paper
from ell12.experiments.rows import Row
from ell12.experiments.statistics import Summary, Values, summarize
from ell12.wording import listed, percent, scientific

OURS, CONVEX = "nmAPG(closed-form)", "FISTA"
# The paper's methods in the order of its tables, then what we add.
METHODS = ("DCA", "SCP", "nmAPG(numerical)", OURS, CONVEX, "DCA(rho=1)", "PG(Barzilai-Borwein)")
# Two objectives closer than this fraction count as the same: solvers that stop at the same stationarity
# differ by rounding and by the last steps they did not take.
SAME_OBJECTIVE = 1e-3


@dataclass(frozen=True)
class Trials:
    """The rows of one setup."""

    setup: str
    rows: tuple[Row, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that have rows, in the order of the tables."""
        present = dict.fromkeys(row["settings"]["method"] for row in self.rows)
        return [m for m in METHODS if m in present] + [m for m in present if m not in METHODS]

    @property
    def grid(self) -> list[int]:
        """Every i of the paper."""
        return list(range(len(paper()[NAME]["cpu_seconds"][OURS])))

    @property
    def n_repeats(self) -> int:
        """The number of repeats."""
        return len({row["settings"]["repeat"] for row in self.rows})

    def of(self, method: str, i: int) -> list[Row]:
        """The rows of a method at i, by repeat."""
        chosen = (r for r in self.rows if r["settings"]["method"] == method and r["settings"]["i"] == i)
        return sorted(chosen, key=lambda row: row["settings"]["repeat"])

    def values(self, method: str, i: int, name: str) -> Values:
        """One result by repeat, where it was measured."""
        rows = self.of(method, i)
        return {r["settings"]["repeat"]: r["results"][name] for r in rows if r["results"][name] is not None}

    def summary(self, method: str, i: int, name: str) -> Summary | None:
        """Mean and deviation of one result; None without rows."""
        values = self.values(method, i, name)
        return summarize(values.values()) if values else None

    def n_limited(self, method: str, i: int) -> int:
        """How many runs ended at a limit before the stopping rule was met."""
        return sum(row["results"]["status"] != "CONVERGED" for row in self.of(method, i))

    def early(self, method: str, i: int, name: str) -> Values:
        """One result where the early rule would have stopped; at the end of a run that converged before."""
        found = {}
        for row in self.of(method, i):
            stopped = row["results"]["early"]
            if stopped is None and row["results"]["status"] == "CONVERGED":
                stopped = row["results"]
            if stopped is not None and stopped[name] is not None:
                found[row["settings"]["repeat"]] = stopped[name]
        return found

    def timed(self, method: str, i: int) -> Timed:
        """The times of a method at i."""
        return Timed(method, self.values(method, i, "cpu_seconds"), self.n_limited(method, i))

    def ratio(self, method: str, i: int) -> str:
        """How many times as long as nmAPG(closed-form) a method takes, as a bound where one ended at its limit."""
        return time_ratio(self.timed(OURS, i), self.timed(method, i))


def verdicts_of(trials: Trials) -> list[Verdict]:
    """Every claim of the paper on one setup."""
    rivals = ("nmAPG(numerical)", "SCP", "DCA", CONVEX)
    return [
        *(_faster(trials, rival) for rival in rivals),
        _more_accurate(trials),
        _larger_objective(trials, early=False),
        _larger_objective(trials, early=True),
    ]


def _faster(trials: Trials, rival: str) -> Verdict:
    answers = [faster(i, trials.timed(OURS, i), trials.timed(rival, i)) for i in trials.grid]
    problem = " (on its own, convex problem)" if rival == CONVEX else ""
    return _verdict(
        trials,
        f"{OURS} is faster than {rival}{problem} at every i",
        answers,
        ("faster", "slower"),
        f"CPU time of {rival} / {OURS} at i = {listed(trials.grid)}: {_ratios(trials, rival)}.",
    )


def _more_accurate(trials: Trials) -> Verdict:
    answers = []
    for i in trials.grid:
        limited = [method for method in (OURS, CONVEX) if trials.n_limited(method, i)]
        answer = lower(i, trials.values(OURS, i, "rmse"), trials.values(CONVEX, i, "rmse"))
        if limited and not answer.doubt:
            answer = Answer(i, Outcome.OPEN, f"{' and '.join(limited)} ended at the limit")
        answers.append(answer)
    numbers = (
        f"RMSE x 100 at i = {listed(trials.grid)}: {_errors(trials, OURS)} ({OURS})"
        f" against {_errors(trials, CONVEX)} ({CONVEX})."
    )
    return _verdict(
        trials, "l1-2 recovers with a lower RMSE than l1 at every i", answers, ("lower", "higher"), numbers
    )


def _larger_objective(trials: Trials, early: bool) -> Verdict:
    if early:
        rule, select = f"when both stop at a relative change of {scientific(EARLY_CHANGE)}", trials.early
    else:
        rule, select = "when both stop at the same stationarity", trials.values
    answers, shown = [], []
    for i in trials.grid:
        excess = excesses(select("SCP", i, "objective"), select(OURS, i, "objective"))
        mean = summarize(excess.values()).mean if excess else None
        shown.append("not known" if mean is None else percent(mean))
        limited = not early and trials.n_limited("SCP", i) + trials.n_limited(OURS, i) > 0
        answers.append(_excess_answer(i, excess, limited))
    numbers = f"Mean excess of SCP's objective over {OURS}'s at i = {listed(trials.grid)}: {', '.join(shown)}."
    bound = f"larger by more than {100 * SAME_OBJECTIVE:g} %"
    return _verdict(
        trials, f"SCP ends at a larger objective {rule}, at every i", answers, (bound, f"not {bound}"), numbers
    )


def excesses(objectives: Values, reference: Values) -> Values:
    """By which fraction each objective exceeds that of the reference in the same repeat."""
    shared = objectives.keys() & reference.keys()
    return {r: (objectives[r] - reference[r]) / abs(reference[r]) for r in sorted(shared) if reference[r]}


def _excess_answer(i: int, excess: Values, limited: bool) -> Answer:
    if not excess:
        return Answer(i, Outcome.OPEN, "a method never met the rule, or has no rows")
    if summarize(excess.values()).mean <= SAME_OBJECTIVE:
        return Answer(i, Outcome.FAILS)
    if limited:  # further steps would have lowered the objective
        return Answer(i, Outcome.OPEN, "a method ended at its limit")
    return lower(i, dict.fromkeys(excess, 0.0), excess)


def _verdict(
    trials: Trials, claim: str, answers: Sequence[Answer], words: tuple[str, str], numbers: str
) -> Verdict:
    """A claim on every i of a setup."""
    return verdict(claim, answers, words, numbers, trials.setup, lambda grid: f"at i = {listed(grid)}")


def _ratios(trials: Trials, rival: str) -> str:
    return ", ".join(trials.ratio(rival, i) for i in trials.grid)


def _errors(trials: Trials, method: str) -> str:
    found = (trials.summary(method, i, "rmse") for i in trials.grid)
    return ", ".join("no rows" if summary is None else f"{100 * summary.mean:.2f}" for summary in found)

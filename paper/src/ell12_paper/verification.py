"""What became of a run that was verified: findings, trials measured again, claims; as lines and as JSON."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ell12.wording import number, scientific, span
from ell12_paper.agreement import MOST, MOST_OF_FREE, MOST_OF_OBJECTIVES, Agreement
from ell12_paper.workers import Trial

_ROUNDING = (
    f"Trials: what counts as rounding is a difference of {100 * MOST_OF_OBJECTIVES:g} % of an objective, "
    f"{100 * MOST:g} % of another number, {100 * MOST_OF_FREE:g} % with methods whose steps follow rounding."
)


@dataclass(frozen=True)
class Finding:
    """What one check found, in a sentence that says what to do where something is wrong."""

    check: str
    text: str
    is_problem: bool = False


@dataclass(frozen=True)
class Recheck:
    """A trial that was measured again; ``time_ratio`` is its time here divided by that of the row."""

    trial: Trial
    agreement: Agreement | None = None  # None: it could not be measured, or a limit of time ended it here
    time_ratio: float | None = None
    error: str = ""

    @property
    def problem(self) -> str:
        """What is wrong, if anything is."""
        if self.error:
            return f"could not be measured here: {self.error}"
        differing = self.agreement.differing if self.agreement else ()
        return f"gives something else here: {'; '.join(differing)}" if differing else ""

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        found = vars(self.agreement) if self.agreement else {}
        return {"trial": self.trial.key, **found, "time_ratio": self.time_ratio, "error": self.error}


@dataclass(frozen=True)
class Claim:
    """A claim with the verdict of the rows as they came, and that of the rows with the trials measured here."""

    experiment: str
    setting: str
    text: str
    there: str
    here: str

    def __str__(self) -> str:
        place = f"{self.experiment}, {self.setting}" if self.setting else self.experiment
        return f"{self.text} ({place})"


@dataclass
class Verification:
    """What became of a run that was verified."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    rechecks: list[Recheck] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    n_trials: int = 0  # that were to be measured again
    interrupted: bool = False

    def add(self, check: str, text: str, is_problem: bool = False) -> None:
        """Keep a finding."""
        self.findings.append(Finding(check, text, is_problem))

    @property
    def problems(self) -> list[Finding]:
        """What is wrong."""
        return [finding for finding in self.findings if finding.is_problem]

    @property
    def agrees(self) -> bool:
        """Whether every check was made and none found anything wrong."""
        return not self.problems and not self.interrupted

    def lines(self) -> Iterator[str]:
        """All of it for people: what was checked, what is wrong, which claims hold, and the sum."""
        yield from map(_run_words, self.facts.get("runs", []))
        for finding in self.findings:
            yield f"{'WRONG: ' * finding.is_problem}{finding.check.capitalize()}: {finding.text}"
        yield from self._trial_lines()
        for claim in self.claims:
            both = f"{claim.there.upper()} there, {claim.here.upper()} here"
            yield f"{claim.here.upper() if claim.here == claim.there else both}: {claim}"
        yield self.summary

    def _trial_lines(self) -> Iterator[str]:
        if not self.n_trials:
            yield "Trials: none is measured again."
            return
        judged = [check.agreement for check in self.rechecks if check.agreement]
        exact = sum(agreement.is_exact for agreement in judged)
        close = [agreement.largest for agreement in judged if agreement.agrees and not agreement.is_exact]
        words = f"{len(self.rechecks)} of {self.n_trials} measured again: {exact} give the same to the last digit"
        if close:
            most = scientific(100 * max(close))
            words += f", {len(close)} within rounding (the largest difference is {most} %)"
        yield f"Trials: {words}."
        yield _ROUNDING
        late = sum(check.agreement is None and not check.error for check in self.rechecks)
        if late:
            yield f"Trials: {late} took longer here than their limit allows, and are not judged."
        ratios = [check.time_ratio for check in self.rechecks if check.time_ratio]
        if ratios:
            middle = number(statistics.median(ratios))
            yield f"Times: a trial takes {middle} times as long as there ({span(ratios)}); they are not judged."

    @property
    def summary(self) -> str:
        """The last line."""
        counts = Counter(claim.here for claim in self.claims)
        claims = ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common())
        if self.interrupted:
            return f"Stopped: {len(self.rechecks)} of {self.n_trials} trials were measured again."
        if self.problems:
            count = len(self.problems)
            return (
                f"The run is not verified: {count} thing{'s are' if count > 1 else ' is'} wrong. Claims: {claims}."
            )
        return f"The run is verified. Claims: {claims}."

    def as_json(self) -> dict[str, Any]:
        """All of it for machines."""
        return {
            "agrees": self.agrees,
            "interrupted": self.interrupted,
            "run": self.facts,
            "findings": [vars(finding) for finding in self.findings],
            "rounding": {"objectives": MOST_OF_OBJECTIVES, "others": MOST, "methods_that_follow_it": MOST_OF_FREE},
            "trials": [check.as_json() for check in self.rechecks],
            "trials_chosen": self.n_trials,
            "claims": [vars(claim) for claim in self.claims],
        }


def _run_words(run: dict[str, Any]) -> str:
    """What provenance says of one start of a run; it may say anything."""
    machine = run.get("machine")
    found = {"cores": None, "processor": None} | (machine if isinstance(machine, dict) else {})
    commit, cores = run.get("commit"), found["cores"]
    parts = (run.get("command"), str(run.get("started"))[:10], commit and f"commit {commit}", found["processor"])
    return "Run: " + ", ".join(str(part) for part in (*parts, cores and f"{cores} cores") if part)

"""Verify a run from elsewhere: check its files and rows, measure some of its trials again, judge its claims."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path

from ell12 import __version__
from ell12.commands import CommandError
from ell12_paper import EXPERIMENTS, provenance
from ell12_paper.agreement import compare, is_clocked, is_free, merged, sample, time_ratio
from ell12_paper.archive import opened
from ell12_paper.rows import FILE, Row
from ell12_paper.run import RunDisplay, measured
from ell12_paper.run_checks import AGAIN, check_files, check_plan, check_rows, check_versions, run_facts
from ell12_paper.verification import Claim, Recheck, Verification
from ell12_paper.workers import Measurement, Trial

SECONDS = 60.0  # of trials that are measured again by default, by the times of their rows


def verify(
    source: Path, n_trials: int | None = None, seed: int = 0, jobs: int = 1, progress: RunDisplay | None = None
) -> Verification:
    """Check a run that was made elsewhere, and measure some of its trials again.

    Parameters
    ----------
    source : path
        A folder, or an archive of one.
    n_trials : int, optional
        How many trials to measure again; by default as many as took a minute where they were measured.
    seed : int, default 0
        Which trials: another seed chooses others.
    jobs : int, default 1
        Number of processes, each with one thread.
    progress : RunDisplay, optional
        Told of every step.

    Returns
    -------
    Verification
        Ctrl-C ends it early and is told by ``interrupted``.

    Raises
    ------
    CommandError
        If there is no run to verify.
    """
    found = Verification()
    with opened(source) as folder:
        if not (folder / FILE).is_file():
            raise CommandError(f"{source} holds no {FILE}: it is no folder of a run")
        known = provenance.read(folder)
        check_files(found, folder, known)
        rows = check_rows(found, folder)
        if not rows:
            raise CommandError(f"{source} holds no sound row: there is nothing to verify")
        facts = run_facts(folder)
        check_versions(found, rows, known)
        trials = check_plan(found, rows, facts, known)
        here = _check_trials(found, trials, rows, n_trials, seed, jobs, progress or RunDisplay())
        _check_claims(found, folder, rows, here, known)
    found.facts = facts | {"rows": len(rows), "runs": (known or {}).get("runs", [])}
    return found


# Trials and claims


def _check_trials(
    found: Verification,
    trials: Sequence[Trial],
    rows: Sequence[Row],
    n_trials: int | None,
    seed: int,
    jobs: int,
    progress: RunDisplay,
) -> list[Row]:
    """Measure some trials again; the rows with what they gave here."""
    by_key = {row["key"]: row for row in rows}
    chosen = sample(trials, by_key, n_trials, SECONDS, seed)
    found.n_trials = len(chosen)
    clocked = sum(is_clocked(trial, by_key[trial.key]["results"]) for trial in trials)
    if clocked:
        words = f"{clocked} of {len(trials)} took as long as their limit of time by their rows"
        found.add("trials", f"{words}, and are not measured again: they end elsewhere on every machine.")
    new: dict[str, Row] = {}
    try:
        with closing(measured(chosen, rows, jobs, progress if chosen else RunDisplay())) as answers:
            for trial, answer in answers:
                check = _recheck(trial, by_key[trial.key], answer)
                found.rechecks.append(check)
                if check.problem:
                    found.add("trials", f"{trial} {check.problem}.", True)
                if answer.results is not None:
                    new[trial.key] = answer.results
    except KeyboardInterrupt:
        found.interrupted = True
    return merged(rows, new)


def _recheck(trial: Trial, row: Row, answer: Measurement) -> Recheck:
    if answer.results is None:
        return Recheck(trial, error=answer.error.strip().splitlines()[-1])
    ratio = time_ratio(row["results"], answer.results)
    if is_clocked(trial, answer.results):
        return Recheck(trial, time_ratio=ratio)
    return Recheck(trial, compare(row["results"], answer.results, is_free(trial)), ratio)


def _check_claims(
    found: Verification, folder: Path, rows: Sequence[Row], here: Sequence[Row], known: provenance.Facts | None
) -> None:
    """The verdicts of the rows as they came, beside those that the run kept and those with our results."""
    for name in EXPERIMENTS:
        try:
            there, now = (_verdicts(name, chosen) for chosen in (rows, here))
        except Exception as error:  # whatever rows of another version, or made-up ones, lead to
            reason = f"{type(error).__name__}: {error}"
            found.add("claims", f"The rows of {name} allow no verdict ({reason}): {AGAIN}.", True)
            continue
        found.claims += [Claim(name, *claim, there[claim], now.get(claim, "gone")) for claim in there]
    for claim in found.claims:
        if claim.here != claim.there:
            found.add("claims", f"The trials measured here change the verdict on: {claim}.", True)
    if not any(finding.check in ("rows", "claims") for finding in found.problems):
        _check_kept(found, folder, known)


def _verdicts(name: str, rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """The outcome of every claim of an experiment, by its setting and its words."""
    chosen = [row for row in rows if row["experiment"] == name]
    found = import_module(f"ell12_paper.{EXPERIMENTS[name]}.report").verdicts(chosen) if chosen else ()
    return {(verdict.setting, verdict.claim): verdict.outcome.value for verdict in found}


def _check_kept(found: Verification, folder: Path, known: provenance.Facts | None) -> None:
    """Whether the verdicts that the run printed are those of its rows."""
    page = (known or {}).get("page")
    if not isinstance(page, dict) or not isinstance(page.get("verdicts"), list):
        return
    from ell12_paper.report import verdict_lines

    lines = verdict_lines(folder)
    if page["verdicts"] == lines:
        found.add("claims", "The verdicts that the run printed are those of its rows.")
        return
    by_us = page.get("ell12") == __version__
    first = next((line for line in page["verdicts"] if line not in lines), "fewer than the rows give")
    found.add(
        "claims",
        f"The run printed other verdicts than its rows give, the first: {first}. "
        + ("Trust the rows" if by_us else f"It was ell12 {page.get('ell12')} that wrote them")
        + ": `ell12-paper report` makes the page again.",
        by_us,
    )

"""A run from elsewhere: whether its file is sound, its numbers are the same here, its ratios of times alike."""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path

from ell12_paper import provenance
from ell12_paper.agreement import FREE_METHODS, Agreement, compare, is_number
from ell12_paper.published import published
from ell12_paper.rows import FILE, Row, read_rows
from ell12_paper.run import Measurement, RunError, Show, Trial, Wish, measured
from ell12_paper.words import number, percent, span

SECONDS = 60.0  # of trials that are measured again by default, by the times of their rows
ALIKE = 2.0  # the factor within which a ratio of two times must be the same
SHORTEST = 0.05  # seconds; ratios of shorter times are noise
# Settings of a trial that tell its method, not its problem.
OF_METHOD = ("method", "max_iter", "max_cpu_seconds")


@contextmanager
def opened(source: Path) -> Iterator[Path]:
    """The folder of a run: the one given, or one with the content of a zip file, which is gone afterwards."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="ell12-") as name:
        try:
            with zipfile.ZipFile(source) as archive:
                for entry in archive.infolist():
                    if (plain := Path(entry.filename).name) in (FILE, provenance.FILE):
                        with archive.open(entry) as content, open(Path(name) / plain, "wb") as file:
                            shutil.copyfileobj(content, file)
        except (OSError, zipfile.BadZipFile) as error:
            raise RunError(f"{source} is no folder and no zip file of a run: {error}") from None
        yield Path(name)


def verify(
    source: Path, count: int | None = None, seed: int = 0, jobs: int = 1, show: Show | None = None
) -> tuple[list[str], bool]:
    """What was found, as lines of text, and whether nothing is wrong.

    ``count`` trials, by default as many as took a minute, are measured again; the seed chooses which.
    """
    with opened(source) as folder:
        rows, damaged = read_rows(folder)
        known, digest = provenance.read(folder), provenance.digest(folder / FILE)
    if not rows:
        raise RunError(f"{source} holds no sound row")
    wrong = [f"{sentence}: get the run again from where it came" for sentence in damaged]
    wrong += _file_faults(known, digest)
    trials = _planned(rows, known, wrong)
    kept = {row["key"]: row for row in rows}
    chosen = _sample(trials, kept, count, random.Random(seed))
    pairs = [(trial, other) for trial in chosen if (other := _partner(trial, trials, kept))]
    asked = list({trial.key: trial for trial in (*chosen, *chain.from_iterable(pairs))}.values())
    found = {trial.key: answer for trial, answer in measured(asked, rows, jobs, show)}
    lines = [f"The file: {len(rows)} rows, SHA-256 {digest}{_published(digest)}.", _versions(rows)]
    lines += _numbers(asked, kept, found, wrong)
    lines += _ratios(pairs, kept, found, wrong)
    return [*lines, *(f"WRONG: {text}." for text in wrong)], not wrong


def _published(digest: str) -> str:
    return (
        ", which are published rows" if digest in published()["sha256"].values() else ", not published with ell12"
    )


def _file_faults(known: Row | None, digest: str) -> list[str]:
    if known is None:
        return [f"{provenance.FILE} is missing or damaged: nothing says where the rows come from"]
    kept = known["files"].get(FILE, {}).get("sha256")
    if kept is None:
        return ["the run did not come to its end: `ell12-paper run --resume` brings it there"]
    return [] if kept == digest else [f"{FILE} is not the file that the run wrote"]


def _versions(rows: Sequence[Row]) -> str:
    names, here = ("ell12", "python", "numpy", "scipy", "numba", "cpu"), provenance.environment()
    theirs = {name: sorted({str(row["environment"].get(name)) for row in rows}) for name in names}
    others = [f"{n} {' and '.join(theirs[n])} (here {here[n]})" for n in names if theirs[n] != [str(here[n])]]
    return f"Versions: {', '.join(others) or 'those that are here'}."


def _planned(rows: Sequence[Row], known: Row | None, wrong: list[str]) -> list[Trial]:
    """The trials of the plan that have a row; what is missing or too much is wrong."""
    if known is None:
        return []
    run = known["runs"][0]
    whole = {trial.key: trial for trial in Wish(preset=run["preset"], seed=run["seed"]).trials()}
    have = {row["key"] for row in rows}
    missing = [
        key
        for key, trial in whole.items()
        if key not in have
        and any(provenance.is_asked(begun, trial.experiment, trial.settings) for begun in known["runs"])
    ]
    if missing:
        wrong.append(f"{len(missing)} trials that were asked for have no row, the first is {missing[0]}")
    if extra := [key for key in have if key not in whole]:
        wrong.append(f"{len(extra)} rows belong to no trial of this version, the first is {extra[0]}")
    return [trial for key, trial in whole.items() if key in have]


def _sample(trials: Sequence[Trial], rows: Row, count: int | None, chance: random.Random) -> list[Trial]:
    """Some trials by chance, from each study in turn, without those that a limit of time may have ended."""
    decks: dict[str, list[Trial]] = {}
    for trial in trials:
        if not _is_clocked(trial, rows[trial.key]["results"]):
            decks.setdefault(trial.experiment, []).append(trial)
    for deck in decks.values():
        chance.shuffle(deck)
    order = [trial for trial in chain.from_iterable(zip_longest(*decks.values())) if trial is not None]
    if count is not None:
        return order[:count]
    chosen, left = [], SECONDS
    for trial in order:
        taken = rows[trial.key]["environment"].get("trial_seconds") or 0.0
        if taken <= left:
            chosen.append(trial)
            left -= taken
    return chosen


def _is_clocked(trial: Trial, results: Row) -> bool:
    """Whether a limit of CPU time may have ended a trial."""
    taken = results.get("cpu_seconds")
    return is_number(taken) and taken >= (trial.settings.get("max_cpu_seconds") or math.inf)


def _partner(trial: Trial, trials: Sequence[Trial], rows: Row) -> Trial | None:
    """The quickest other method on the same problem whose time can be compared."""
    if _time(rows[trial.key]["results"]) < SHORTEST:
        return None
    problem = {name: value for name, value in trial.settings.items() if name not in OF_METHOD}
    others = [
        other
        for other in trials
        if other.experiment == trial.experiment
        and other.key != trial.key
        and problem.items() <= other.settings.items()
        and not _is_clocked(other, rows[other.key]["results"])
        and _time(rows[other.key]["results"]) >= SHORTEST
    ]
    return min(others, key=lambda other: _time(rows[other.key]["results"]), default=None)


def _time(results: Row | None) -> float:
    found = (results or {}).get("cpu_seconds")
    return found if is_number(found) else 0.0


def _numbers(asked: Sequence[Trial], rows: Row, found: dict[str, Measurement], wrong: list[str]) -> list[str]:
    """How the results that were measured again agree."""
    judged: list[Agreement] = []
    for trial in asked:
        results = found[trial.key].results
        if results is None:
            wrong.append(f"{trial} could not be measured: {found[trial.key].error.strip().splitlines()[-1]}")
        elif not _is_clocked(trial, results):
            is_free = trial.settings.get("method") in FREE_METHODS
            judged.append(compare(rows[trial.key]["results"], results, is_free))
            wrong += [f"{trial} gives something else here: {text}" for text in judged[-1].differing]
    exact = sum(agreement.is_exact for agreement in judged)
    largest = max((agreement.largest for agreement in judged), default=0.0)
    words = f"{len(judged)} trials measured again, {exact} to the last digit"
    return [f"The numbers: {words}, the largest difference is {percent(largest)[1:] if largest else 'none'}."]


def _ratios(
    pairs: Sequence[tuple[Trial, Trial]], rows: Row, found: dict[str, Measurement], wrong: list[str]
) -> list[str]:
    """Whether one method takes as many times as long as another on the same problem as it took there."""
    factors = []
    for trial, other in pairs:
        here = [_time(found[t.key].results) for t in (trial, other)]
        there = [_time(rows[t.key]["results"]) for t in (trial, other)]
        if min(here) > 0:
            factors.append(here[0] / here[1] * there[1] / there[0])
            if not 1 / ALIKE <= factors[-1] <= ALIKE:
                ratios = f"{number(there[0] / there[1])} there and {number(here[0] / here[1])} here"
                wrong.append(f"{trial}: its time over that of {other.settings.get('method')} is {ratios}")
    if not factors:
        return ["The times: no two methods of one problem were measured, so that no ratio of times is judged."]
    return [f"The times: {len(factors)} ratios of two methods are {span(factors)} times what they were there."]

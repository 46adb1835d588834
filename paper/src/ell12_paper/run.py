"""Run experiments: measure each trial and keep it as a row at once, so that nothing is lost.

A run that was stopped or killed goes on where it was: a trial whose row is on disk is not repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ell12 import __version__
from ell12.commands import CommandError, UsageError, explained
from ell12.files import write_atomically
from ell12_paper import EXPERIMENTS, PRESET_NAMES, experiment, provenance
from ell12_paper.provenance import RUN_FILE, environment, is_wished, now
from ell12_paper.rows import (
    FILE,
    Row,
    append_row,
    make_row,
    read_rows,
    rewrite_rows,
)
from ell12_paper.workers import Measurement, Running, Trial, measure_all


@dataclass(frozen=True)
class RunState:
    """How far a run is."""

    done: int
    total: int
    running: tuple[Trial, ...]
    seconds_left: float | None  # None: nothing to estimate it from yet


class RunDisplay:
    """Who shows a run to its user; this one is silent."""

    def note(self, text: str) -> None:
        """Something the user should know."""

    def update(self, state: RunState) -> None:
        """A trial has begun or ended, or a second has passed."""


@dataclass
class RunOutcome:
    """What a run did."""

    total: int
    kept: int  # rows that were on disk before
    written: int = 0
    failures: list[tuple[Trial, str]] = field(default_factory=list)
    interrupted: bool = False


def run(
    names: Sequence[str] = (),
    preset: str = "quick",
    out: str | os.PathLike[str] = "reproduction",
    seed: int = 0,
    jobs: int = 1,
    resume: bool = False,
    progress: RunDisplay | None = None,
    repeats: int | None = None,
    only: Sequence[str] = (),
) -> RunOutcome:
    """Measure every trial of the experiments that has no row yet.

    Parameters
    ----------
    names : sequence of str, default ()
        Experiments; all by default.
    preset : {"quick", "paper"}, default "quick"
        The size of the study.
    out : path, default "reproduction"
        The folder of the rows.
    seed : int, default 0
        The same seed gives the same problems.
    jobs : int, default 1
        Number of processes, each with one thread. Times are comparable when there are no more than free cores.
    resume : bool, default False
        Go on with the rows that the folder holds. Without it a folder that holds rows is refused.
    progress : RunDisplay, optional
        Told of every step; nothing is printed here.
    repeats : int, optional
        How many repeats to measure, fewer than the preset's; a later run may add the others.
    only : sequence of str, default ()
        Measure those trials only whose settings have one of the named values, such as ``"image=Sea"`` or
        ``"i=1,2,4"``; a trial must pass all of them. A later run may add the others.

    Returns
    -------
    RunOutcome
        A trial that raised has no row and is listed in its ``failures``; Ctrl-C ends the run early and is told by
        ``interrupted``.

    Raises
    ------
    CommandError
        If the run cannot start.
    """
    progress = progress or RunDisplay()
    trials = plan(names, preset, seed, repeats, only)
    folder = Path(out)
    with reserved(folder):
        rows = _rows_to_keep(folder, resume, progress)
        _match_run(folder, preset, seed, rows, progress)
        finished = {row["key"] for row in rows}
        missing = [trial for trial in trials if trial.key not in finished]
        outcome = RunOutcome(len(trials), len(trials) - len(missing))
        if missing or provenance.read(folder) is None:
            with _explained(folder):
                provenance.begin(folder, names, preset, seed, jobs, repeats, len(rows), only)
        with _appending(folder) as descriptor:
            try:
                _measure_missing(missing, rows, jobs, descriptor, outcome, progress)
            except KeyboardInterrupt:  # which may have come between the last row and its counting
                written = {row["key"] for row in read_rows(folder)[0]}
                outcome.interrupted, outcome.written = True, sum(trial.key in written for trial in missing)
        if not provenance.is_sealed(folder):
            provenance.seal(folder, provenance.MEASURED)
    return outcome


def plan(
    names: Sequence[str], preset: str, seed: int, repeats: int | None, only: Sequence[str] = ()
) -> list[Trial]:
    """The trials of some experiments, all where none are named; first repeats come first."""
    if preset not in PRESET_NAMES:
        raise UsageError(f"unknown preset {preset!r}; there are: {', '.join(PRESET_NAMES)}")
    try:
        modules = {name: experiment(name) for name in names or EXPERIMENTS}
    except ValueError as error:
        raise UsageError(str(error)) from None
    trials = [Trial(name, s) for name, module in modules.items() for s in module.trials(preset, seed)]
    for wish in only:
        trials = _chosen(trials, wish)
    if repeats is not None:
        trials = [trial for trial in trials if trial.repeat < repeats]
    # Once every kind of trial has been timed, the time left is well known.
    return sorted(trials, key=lambda trial: trial.repeat)


def _chosen(trials: list[Trial], wish: str) -> list[Trial]:
    """The trials whose setting has one of the values that a wish such as ``"i=1,2"`` names."""
    if "=" not in wish:
        raise UsageError(f"--only {wish!r} names no setting and value: write --only image=Sea or --only i=1,2,4")
    found = [trial for trial in trials if is_wished(trial.settings, wish)]
    if not found:
        name = wish.partition("=")[0]
        seen = dict.fromkeys(str(trial.settings[name]) for trial in trials if name in trial.settings)
        there = f"{name} is one of {', '.join(seen)}" if seen else f"no trial has a setting {name!r}"
        raise UsageError(f"--only {wish!r} leaves no trial: {there}")
    return found


# The folder


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Make the folder and keep other runs out of it; the operating system lifts a dead run's lock."""
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CommandError(f"another run is writing to {folder}: wait for it, or choose another --out") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)


def _explained(folder: Path) -> AbstractContextManager[None]:
    return explained(f"cannot write to {folder}", "; choose another --out")


@contextmanager
def _appending(folder: Path) -> Iterator[int]:
    with _explained(folder):
        descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _rows_to_keep(folder: Path, resume: bool, progress: RunDisplay) -> list[Row]:
    """The rows of an earlier run, without damaged ones."""
    with _explained(folder):
        rows, damaged = read_rows(folder)
        if (rows or damaged) and not resume:
            count = len(rows) + len(damaged)
            raise UsageError(
                f"{folder} holds {count} row{'s' * (count > 1)} of an earlier run: "
                "add --resume to go on, or choose another --out"
            )
        if damaged:
            rewrite_rows(folder, rows)
    for sentence in damaged:
        progress.note(f"{sentence}: its trial is done again")
    return rows


def _match_run(folder: Path, preset: str, seed: int, rows: list[Row], progress: RunDisplay) -> None:
    """Check that the rows on disk belong to this run; without rows, write down what this run is."""
    path = folder / RUN_FILE
    if not rows:
        facts = {"preset": preset, "seed": seed, "started": now(), "environment": environment()}
        with _explained(folder):
            write_atomically(path, json.dumps(facts, indent=2).encode() + b"\n")
        return
    try:
        facts = json.loads(path.read_bytes())
        earlier = {"preset": facts["preset"], "seed": facts["seed"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise CommandError(
            f"{path}, which says what the rows are of, cannot be read: choose another --out"
        ) from None
    if earlier != {"preset": preset, "seed": seed}:
        raise UsageError(
            f"{folder} holds rows of --preset {earlier['preset']} --seed {earlier['seed']}, "
            f"not of --preset {preset} --seed {seed}: choose another --out"
        )
    others = {row["environment"].get("ell12") for row in rows} - {__version__}
    if others:
        names = ", ".join(sorted(map(str, others)))
        progress.note(f"some rows in {folder} were measured by ell12 {names}; this is {__version__}")


# The trials


def _measure_missing(
    missing: list[Trial], rows: list[Row], jobs: int, descriptor: int, outcome: RunOutcome, progress: RunDisplay
) -> None:
    where = environment()
    with closing(measured(missing, rows, jobs, progress, outcome.kept)) as answers:
        for trial, answer in answers:
            if answer.results is None:
                outcome.failures.append((trial, answer.error))
                continue
            taken = {"date": now(), "trial_seconds": answer.seconds}
            append_row(descriptor, make_row(trial.experiment, trial.settings, answer.results, where | taken))
            outcome.written += 1


def measured(
    trials: Sequence[Trial], rows: Sequence[Row], jobs: int, progress: RunDisplay, n_before: int = 0
) -> Generator[tuple[Trial, Measurement], None, None]:
    """Each trial with its answer, as they end. The times of earlier rows tell how long it will take.

    ``n_before`` trials are done already, as the display is told.
    """
    estimate, total = _TimeLeft(), n_before + len(trials)
    for row in rows:
        estimate.add(Trial(row["experiment"], row["settings"]), row["environment"].get("trial_seconds") or 0.0)

    def show(running: Running, waiting: Sequence[Trial]) -> None:
        done, names = total - len(running) - len(waiting), tuple(trial for trial, _ in running)
        progress.update(RunState(done, total, names, estimate.left(running, waiting, jobs)))

    with closing(measure_all(trials, jobs, show)) as answers:
        for trial, answer in answers:
            if answer.results is not None:
                estimate.add(trial, answer.seconds)
            yield trial, answer


class _TimeLeft:
    """Estimates the time of trials by finished ones: of the same kind, else of the same experiment, else all."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def add(self, trial: Trial, seconds: float) -> None:
        for group in (trial.kind, trial.experiment, ""):
            self.times.setdefault(group, []).append(seconds)

    def left(self, running: Running, waiting: Sequence[Trial], jobs: int) -> float | None:
        """Seconds until all are done; None while no trial has ended."""
        if not self.times:
            return None
        begun = sum(max(self._expected(trial) - seconds, 0.0) for trial, seconds in running)
        return (begun + sum(map(self._expected, waiting))) / jobs

    def _expected(self, trial: Trial) -> float:
        times = next(self.times[g] for g in (trial.kind, trial.experiment, "") if g in self.times)
        return sum(times) / len(times)

"""Run studies: measure each trial in a process with one thread, and keep it as a row at once.

A run that was stopped or killed goes on where it was: a trial whose row is on disk is not repeated.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ell12_paper import PRESETS, STUDIES, provenance, study
from ell12_paper.rows import Row, append_row, finite, key_of, make_row, read_rows, rewrite_rows
from ell12_paper.studies.images import names

# Times compare only where every method has one thread.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("BLIS", "MKL", "NUMBA", "OMP", "OPENBLAS")}
# Settings that distinguish trials.
LABEL = ("setup", "study", "image", "penalty", "case", "d", "lines", "i", "l2_weight", "method", "repeat")


class RunError(Exception):
    """Why a run cannot start or be read, in one line for its user."""


@dataclass(frozen=True)
class Trial:
    """One measurement to make."""

    experiment: str
    settings: Row

    @property
    def key(self) -> str:
        """What its row will be known by."""
        return key_of(self.experiment, self.settings)

    @property
    def repeat(self) -> int:
        """Which repeat it is, counted from 0."""
        return self.settings.get("repeat", 0)

    def __str__(self) -> str:
        shown = ((name, self.settings[name]) for name in LABEL if name in self.settings)
        words = (value if isinstance(value, str) else f"{name} {value}" for name, value in shown)
        return f"{self.experiment}: {', '.join(words)}"


@dataclass(frozen=True)
class Measurement:
    """The results of a trial, or why there are none."""

    results: Row | None
    seconds: float = 0.0
    error: str = ""


@dataclass
class RunCounts:
    """What a run did; a trial that raised has no row."""

    total: int
    done: int
    failures: list[tuple[Trial, str]] = field(default_factory=list)
    interrupted: bool = False


# done, total, what has just ended (None at the start), the seconds that are left if they are known
Show = Callable[[int, int, Trial | None, float | None], None]


@dataclass(frozen=True)
class Wish:
    """Which trials a run is asked for.

    Parameters
    ----------
    names : sequence of str, default ()
        Studies; all by default.
    preset : {"quick", "paper"}, default "quick"
        The size of the studies.
    seed : int, default 0
        The same seed gives the same problems.
    repeats : int, optional
        How many repeats, fewer than the preset's; a later run may add the others.
    only : sequence of str, default ()
        Those trials only whose settings have one of the named values, such as ``"i=1,2"``; all of them.
    """

    names: Sequence[str] = ()
    preset: str = "quick"
    seed: int = 0
    repeats: int | None = None
    only: Sequence[str] = ()

    def trials(self) -> list[Trial]:
        """The trials, first repeats first: once every kind has been timed, the time left is well known."""
        unknown = [name for name in self.names if name not in STUDIES]
        if unknown or self.preset not in PRESETS:
            known = f"studies are {', '.join(STUDIES)}, presets {', '.join(PRESETS)}"
            raise RunError(f"unknown: {', '.join(unknown) or self.preset}; {known}")
        if any("=" not in wish for wish in self.only):
            raise RunError("write --only image=Sea or --only i=1,2,4")
        planned = [Trial(n, s) for n in self.names or STUDIES for s in study(n).trials(self.preset, self.seed)]
        asked = self.as_json()
        found = [trial for trial in planned if provenance.is_asked(asked, trial.experiment, trial.settings)]
        if not found:
            raise RunError(f"--only {' --only '.join(self.only)} leaves no trial")
        return sorted(found, key=lambda trial: trial.repeat)

    def as_json(self) -> Row:
        """As the provenance keeps it."""
        asked = {"experiments": [*self.names], "preset": self.preset, "seed": self.seed, "images": [*names()]}
        return {"command": shlex.join(self.words())} | asked | {"repeats": self.repeats, "only": list(self.only)}

    def words(self) -> list[str]:
        """The command, but for the folder that the rows go to."""
        options = ["--preset", self.preset, "--seed", str(self.seed)]
        options += [] if self.repeats is None else ["--repeats", str(self.repeats)]
        return ["ell12-paper", "run", *self.names, *options, *(w for wish in self.only for w in ("--only", wish))]


def run(wish: Wish, folder: Path, jobs: int = 1, resume: bool = False, show: Show | None = None) -> RunCounts:
    """Measure every trial that has no row in the folder yet; ``RunError`` if the run cannot start.

    ``jobs`` is the number of processes; times are comparable when there are no more than free cores.
    """
    trials = wish.trials()
    folder.mkdir(parents=True, exist_ok=True)
    rows = _rows_to_keep(folder, wish, resume)
    finished = {row["key"] for row in rows}
    missing = [trial for trial in trials if trial.key not in finished]
    outcome = RunCounts(len(trials), len(trials) - len(missing))
    if missing:
        provenance.begin(folder, wish.as_json(), len(rows))
        where = provenance.environment()
        try:
            for trial, found in measured(missing, jobs, show, outcome.done):
                if found.results is None:
                    outcome.failures.append((trial, found.error))
                    continue
                taken = {"date": provenance.now(), "trial_seconds": found.seconds}
                append_row(folder, make_row(trial.experiment, trial.settings, found.results, where | taken))
                outcome.done += 1
        except KeyboardInterrupt:  # which may have come between a row and its counting
            kept = {row["key"] for row in read_rows(folder)[0]}
            outcome.interrupted, outcome.done = True, sum(trial.key in kept for trial in trials)
    if missing or not (provenance.read(folder) or {}).get("files"):  # a run killed behind its last row has no hash
        provenance.seal(folder)
    return outcome


def _rows_to_keep(folder: Path, wish: Wish, resume: bool) -> list[Row]:
    """The rows of an earlier run of the same preset and seed, without damaged ones."""
    rows, damaged = read_rows(folder)
    if (rows or damaged) and not resume:
        raise RunError(f"{folder} holds rows of an earlier run: add --resume to go on, or choose another --out")
    if rows:
        known = provenance.read(folder)
        earlier = known and {(run["preset"], run["seed"], provenance.images_of(run)) for run in known["runs"]}
        if earlier != {(wish.preset, wish.seed, names())}:
            raise RunError(f"{folder} holds rows of another preset, seed or pictures: choose another --out")
    if damaged:
        rewrite_rows(folder, rows)
    return rows


def measured(
    trials: Sequence[Trial], jobs: int, show: Show | None = None, n_before: int = 0
) -> Iterator[tuple[Trial, Measurement]]:
    """Each trial with its measurement, as they end."""
    begun, total, show = time.monotonic(), n_before + len(trials), show or (lambda *_: None)
    show(n_before, total, None, None)
    os.environ.update(ONE_THREAD)
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(),))
    # A process that is started while Ctrl-C is ignored never gets it, or `minimize` would return a shorter run.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    futures = {pool.submit(_measure, trial.experiment, trial.settings): trial for trial in trials}
    signal.signal(signal.SIGINT, before)
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            yield futures[future], _result(future)
            left = (time.monotonic() - begun) / done * (len(trials) - done)
            show(n_before + done, total, futures[future], left)
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        pool.shutdown(cancel_futures=True)  # waits for its thread, which reads its pipes at the exit


def _result(future: Any) -> Measurement:
    try:
        return future.result()
    except Exception as error:  # its process died
        return Measurement(None, error=f"{type(error).__name__}: {str(error).splitlines()[0]}")


def _begin(parent: int) -> None:
    def leave_with_parent() -> None:  # a killed run must not leave a process that disturbs the times of the next
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=leave_with_parent, daemon=True).start()


def _measure(name: str, settings: Row) -> Measurement:
    begin = time.perf_counter()
    try:
        results = finite(study(name).measure(settings))
    except Exception:
        return Measurement(None, time.perf_counter() - begin, traceback.format_exc())
    return Measurement(results, time.perf_counter() - begin)

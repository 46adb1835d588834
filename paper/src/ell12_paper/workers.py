"""Processes that measure trials: one thread each, so that times compare, and none outlives its run."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from ell12_paper import experiment
from ell12_paper.rows import finite, key_of

# Settings that tell trials apart.
_LABEL = ("setup", "study", "image", "penalty", "d", "case", "lines", "i", "l2_weight", "method", "repeat")
# Measured times compare only where every method has one thread.
_ONE_THREAD = dict.fromkeys(
    (
        "BLIS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Trial:
    """One measurement to make."""

    experiment: str
    settings: dict[str, Any]

    @property
    def key(self) -> str:
        """What its row will be known by."""
        return key_of(self.experiment, self.settings)

    @property
    def repeat(self) -> int:
        """Which repeat it is, counted from 0."""
        return self.settings.get("repeat", 0)

    @property
    def kind(self) -> str:
        """The settings without repeat and seed: trials of one kind take about the same time."""
        alike = {name: value for name, value in self.settings.items() if name not in ("repeat", "seed")}
        return key_of(self.experiment, alike)

    def __str__(self) -> str:
        shown = ((name, self.settings[name]) for name in _LABEL if name in self.settings)
        words = (value if isinstance(value, str) else f"{name} {value}" for name, value in shown)
        return f"{self.experiment}: {', '.join(words)}"


Running = Sequence[tuple[Trial, float]]  # with the seconds each has taken so far


@dataclass(frozen=True)
class Measurement:
    """The results of a trial, or why there are none."""

    results: dict[str, Any] | None
    seconds: float = 0.0
    error: str = ""


class Worker:
    """A process with one thread that measures one trial after another."""

    def __init__(self) -> None:
        self.connection, theirs = _spawn.Pipe()
        self.process = _spawn.Process(target=_work, args=(theirs,), daemon=True)
        with _one_thread(), _held_back(signal.SIGINT):
            self.process.start()
        theirs.close()

    def begin(self, trial: Trial) -> None:
        """Let the process measure a trial."""
        self.trial, self.begun = trial, time.monotonic()
        with suppress(OSError):  # where the process is dead its answer will say so
            self.connection.send((experiment(trial.experiment).__name__, trial.settings))

    def answer(self) -> Measurement:
        """Wait for the end of the trial."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return Measurement(None, error=f"its process died with exit code {self.process.exitcode}")

    def stop(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def measure_all(
    trials: Sequence[Trial], jobs: int, show: Callable[[Running, Sequence[Trial]], None]
) -> Generator[tuple[Trial, Measurement], None, None]:
    """Each trial with its answer, as they end; ``show`` learns what runs and what waits."""
    waiting = deque(trials)
    workers: list[Worker] = []
    idle: list[Worker] = []
    busy: dict[Any, Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                if not idle:
                    idle.append(Worker())
                    workers.append(idle[-1])
                worker = idle.pop()
                busy[worker.connection] = worker
                worker.begin(waiting.popleft())
            now = time.monotonic()
            show([(worker.trial, now - worker.begun) for worker in busy.values()], waiting)
            for connection in wait(list(busy), timeout=1.0):
                worker = busy.pop(connection)
                answer = worker.answer()
                if worker.process.is_alive():
                    idle.append(worker)
                yield worker.trial, answer
        show([], ())
    finally:
        for worker in workers:
            worker.stop()


@contextmanager
def _one_thread() -> Iterator[None]:
    """An environment in which a process that is started computes with one thread."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _held_back(number: int) -> Iterator[None]:
    """Deliver a signal only afterwards; a process that is started meanwhile never gets it."""
    held: list[int] = []
    # A signal goes to any thread that does not block it, and Python then interrupts the main thread all the same.
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(number) if is_main else None  # None too where it is not Python's
    if handler is not None:
        signal.signal(number, lambda *_: held.append(number))
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number}) if can_block else set()
    try:
        yield
    finally:
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(number, handler)
        if held:
            signal.raise_signal(number)


def _work(connection: Connection) -> None:
    # Ctrl-C goes to every process of a terminal. Here it is ignored, or `minimize` would return a shorter run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    while True:
        connection.send(_measure(*connection.recv()))


def _leave_with_parent() -> None:
    """A killed run must not leave a process behind that disturbs the times of the next."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _measure(module: str, settings: dict[str, Any]) -> Measurement:
    begin = time.perf_counter()
    try:
        results = finite(import_module(module).measure(settings))
        json.dumps(results, allow_nan=False)
    except Exception:
        return Measurement(None, time.perf_counter() - begin, traceback.format_exc())
    return Measurement(results, time.perf_counter() - begin)

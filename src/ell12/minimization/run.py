"""What is said of a run next to its tolerance: limits, a callback, measurements, a checkpoint, progress."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zipfile import ZipFile

import numpy as np

from ell12.backend import as_numpy, to_device_of
from ell12.checks import check_flags, check_scalars
from ell12.minimization.result import History
from ell12.protocols import Array


@dataclass(frozen=True)
class Checkpoint:
    """An ``.npz`` file that keeps the state of a run, so that a crash costs no more than ``seconds``.

    The file is also written when the run ends or is interrupted. If that fails, there is a RuntimeWarning, and the
    result is returned nevertheless.

    Parameters
    ----------
    path : path
        Its folder must exist.
    seconds : float, default 60.0
        How often to write; 0 writes after every iteration.
    resume : bool, default False
        Continue from the file, if there is one: x, the history and its times continue, ``max_iter`` and
        ``max_seconds`` include the earlier run. The momentum of a solver starts again.
    """

    path: str | os.PathLike[str]
    seconds: float = 60.0
    resume: bool = False

    def __post_init__(self) -> None:
        check_flags(resume=self.resume)
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"path of a checkpoint must be that of a file, got {self.path!r}")
        check_scalars(seconds=self.seconds)


@dataclass(frozen=True)
class Run:
    """Options of a run, next to ``tol`` and ``max_iter``.

    Parameters
    ----------
    max_seconds : float, default infinity
        Stop after this much wall time. The time of ``measure``, of ``callback`` and of exact stationarities is not
        counted.
    callback : function, optional
        Called with the history after each iteration. The run ends when it returns true or raises StopIteration.
    measure : dict of functions, optional
        Each function of x becomes a column of the history.
    checkpoint : path or Checkpoint, optional
        A file that keeps the state of the run.
    verbose : bool, default False
        Print a line from time to time.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, Run, SquaredLoss, minimize
    >>> run = Run(max_seconds=10, measure={"nonzero": np.count_nonzero})
    >>> result = minimize(SquaredLoss(np.eye(2), [3.0, -4.0]), L12(1.0), run=run)
    >>> result.history["nonzero"][-1]
    2.0
    """

    max_seconds: float = math.inf
    callback: Callable[[History], Any] | None = None
    measure: Mapping[str, Callable[[Array], float]] | None = None
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        check_flags(verbose=self.verbose)
        check_scalars(infinite=True, max_seconds=self.max_seconds)
        if self.measure is not None and not isinstance(self.measure, Mapping):
            raise TypeError(f"measure must be a dict of functions of x, got {self.measure!r}")
        if self.callback is not None and (isinstance(self.callback, type) or not callable(self.callback)):
            raise TypeError(f"callback must be a function of the history, got {self.callback!r}")
        if isinstance(self.checkpoint, str | os.PathLike):
            object.__setattr__(self, "checkpoint", Checkpoint(self.checkpoint))
        elif not isinstance(self.checkpoint, Checkpoint | None):
            raise TypeError(f"checkpoint must be a path or a Checkpoint, got {self.checkpoint!r}")

    def numbered(self, number: int, count: int) -> Run:
        """The same for one of ``count`` problems: each has a checkpoint ``name-0.npz``, ``name-1.npz``, ..."""
        if self.checkpoint is None or count == 1:
            return self
        path = Path(self.checkpoint.path)  # type: ignore[union-attr]
        path = path.with_name(f"{path.stem}-{number}{path.suffix}")
        return replace(self, checkpoint=replace(self.checkpoint, path=path))  # type: ignore[type-var]

    def ends(self, history: History) -> bool:
        """Whether the callback ends the run."""
        try:
            return self.callback is not None and bool(self.callback(history))
        except StopIteration:
            return True


class Saved(NamedTuple):
    """What a checkpoint holds."""

    x: Array
    objective: float
    history: dict[str, list[float]]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to under a temporary name, which takes the place of the path when all is written."""
    part = path.with_name(f".{path.name[:50]}.part")
    try:
        with part.open("wb") as file:
            yield file
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class CheckpointFile:
    """The file of a `Checkpoint`: written whole to a temporary name first, read without pickle."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.path, self.seconds = Path(os.path.realpath(checkpoint.path)), checkpoint.seconds
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint: the folder {self.path.parent} does not exist")
        if self.path.exists() and not self.path.is_file():
            raise OSError(f"checkpoint: {self.path} cannot be written: it is no regular file")
        self.written = time.monotonic()
        self._failure = ""

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.seconds

    def check_writable(self, x: Array, history: History) -> None:
        """Raise OSError before the run if the file cannot be written; an old file stays as it is."""
        trial = self.path.with_name(f".{self.path.name[:50]}.trial")
        try:
            self._write(trial, x, 0.0, history)
            trial.unlink()
        except OSError as error:
            message = f"checkpoint: {self.path} cannot be written: {error.strerror or error}"
            raise OSError(*filter(None, [error.errno]), message) from error

    def save(self, x: Array, objective: float, history: History) -> None:
        """Replace the file, all of it or nothing. A failure is kept for `report`: it must not end the run."""
        self.written = time.monotonic()
        try:
            self._write(self.path, x, objective, history)
            self._failure = ""
        except Exception as error:  # a full disk or memory: whatever it is, the run is worth more
            self._failure = str(error) or repr(error)

    def report(self) -> None:
        """Warn if the file does not hold the end of the run."""
        if self._failure:
            message = f"the checkpoint {self.path} does not hold the end of this run: {self._failure}"
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def load(self, zero: Array) -> Saved | None:
        """What the file holds, x being of the kind of ``zero``; None where there is no file yet."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                saved = dict(np.load(file, allow_pickle=False))
            if int(saved["count"]) != len(saved):
                raise ValueError("some of its arrays are missing")
            history = {name[8:]: saved[name].tolist() for name in saved if name.startswith("history.")}
            parts = {name: to_device_of(saved[f"x.{name}"], part, "x") for name, part in _parts(zero).items()}
            kind: Any = type(zero)
            x = kind(**parts) if is_dataclass(zero) else parts["array"]
            found = Saved(x, float(saved["objective"]), history)
            if len({len(column) for column in [history["objective"], *history.values()]}) != 1:
                raise ValueError("the columns of its history are not equally long")
        except Exception as error:  # reading a damaged archive may raise anything
            raise ValueError(f"{self.path} is no checkpoint of such a problem: {error!r}") from error
        if tuple(found.x.shape) != tuple(zero.shape):
            shapes = f"its x has shape {tuple(found.x.shape)}, here it is {tuple(zero.shape)}"
            raise ValueError(f"{self.path} is of another problem: {shapes}")
        return found

    def _write(self, path: Path, x: Array, objective: float, history: History) -> None:
        """A file with this content, all of it or nothing."""
        arrays: dict[str, Any] = {f"x.{name}": as_numpy(part) for name, part in _parts(x).items()}
        arrays |= {f"history.{name}": np.asarray(column, dtype=np.float64) for name, column in history.items()}
        arrays |= {"objective": np.float64(objective), "count": np.int64(len(arrays) + 2)}
        # As `numpy.savez` does, which in NumPy 2.0 leaves an archive open where the disk is full.
        with replacing(path) as file, ZipFile(file, "w") as archive:
            for name, values in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, np.asarray(values), allow_pickle=False)


def _parts(x: Any) -> dict[str, Array]:
    """The arrays that make up x: itself, or the fields of a factored matrix."""
    if is_dataclass(x):
        return {field.name: getattr(x, field.name) for field in fields(x) if field.init}
    return {"array": x}

"""The state of a long run on disk: written whole from time to time, read without pickle."""

from __future__ import annotations

import _thread
import dataclasses
import hashlib
import io
import math
import os
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import as_numpy, beside, is_array, is_number, norm
from ell12.files import check_writable, write_atomically
from ell12.protocols import Array, Penalty

VERSION = 1
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Saved(NamedTuple):
    """What a checkpoint holds."""

    x: Array
    objective: float
    history: dict[str, list[float]]


class Checkpoint:
    """A file that follows a run: x and the history, never older than ``seconds`` plus one iteration.

    Parameters
    ----------
    path : path
        An ``.npz`` file. Its folder must exist.
    seconds : float
        How often to write; 0 writes after every iteration.
    penalty : Penalty, optional
        A run resumes only with the penalty that the file was written with.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float, penalty: Penalty | None = None) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint: the folder {self.path.parent} does not exist")
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint: {self.path} is a folder; name a file in it")
        if not is_number(seconds) or not 0 <= seconds < math.inf:
            raise ValueError(f"checkpoint_seconds must be a finite number >= 0, got {seconds!r}")
        self.seconds = seconds
        self.written = time.monotonic()
        self.penalty = None if penalty is None else _fingerprint(penalty).hex()
        self._failure: str | None = None
        self._seen = self._on_disk()
        self._lock, self._asked = _thread.allocate_lock(), 0

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.seconds

    def check_writable(self, x: Array) -> None:
        """Raise OSError before the run if a file that holds x cannot be written."""
        try:
            check_writable(self.path, sum(as_numpy(part).nbytes for part in _parts(x).values()))
        except OSError as error:
            message = f"checkpoint: {self.path} cannot be written: {error.strerror or error}"
            raise OSError(*filter(None, [error.errno]), message) from error

    def save(self, x: Array, objective: float, history: dict[str, list[float]]) -> None:
        """Replace the file, all of it or nothing. A failure is kept for `report`: it must not end the run.

        A thread writes: Ctrl-C interrupts the main thread alone, and no write.
        """
        arrays: dict[str, Any] = {"version": VERSION, "objective": objective, "penalty": self.penalty or ""}
        arrays |= {f"x.{name}": as_numpy(part) for name, part in _parts(x).items()}
        arrays |= {f"history.{name}": np.asarray(column, dtype=np.float64) for name, column in history.items()}
        self.written = time.monotonic()
        self._asked += 1
        done = _thread.allocate_lock()
        done.acquire()
        # Bare threads and locks: Ctrl-C within the waiting of Thread.join or a Future leaves these in disorder.
        _thread.start_new_thread(self._write, (arrays, self._asked, done))
        done.acquire()

    def _write(self, arrays: dict[str, Any], number: int, done: Any) -> None:
        try:
            with self._lock:
                if number == self._asked:  # else Ctrl-C has left a write behind, and a later one has come
                    self._replace(arrays)
        except Exception as error:  # a full disk or memory: whatever it is, the run is worth more
            self._failure = str(error) or repr(error)
        finally:
            done.release()

    def _replace(self, arrays: dict[str, Any]) -> None:
        if self._on_disk() not in (None, self._seen):
            raise RuntimeError("another run writes to it too; give each run a file of its own")
        content = io.BytesIO()
        np.savez(content, count=len(arrays), **arrays)
        write_atomically(self.path, content.getvalue())
        self._failure, self._seen = None, self._on_disk()

    def report(self) -> None:
        """Warn if the file does not hold the end of the run."""
        if self._failure is not None:
            message = f"the checkpoint {self.path} does not hold the end of this run: {self._failure}"
            warnings.warn(message, RuntimeWarning, stacklevel=4)

    def load(self, zero: Array) -> Saved | None:
        """What the file holds, x being of the kind of ``zero``; None where there is no file yet."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            try:
                saved = _read(file, None if dataclasses.is_dataclass(zero) else tuple(zero.shape))
                if self.penalty is not None and saved.get("penalty", self.penalty) != self.penalty:
                    raise _OtherProblem("it was written with another penalty")
                parts = {name: beside(saved[f"x.{name}"], part, "x") for name, part in _parts(zero).items()}
                found = Saved(_assemble(zero, parts), float(saved["objective"]), _history(saved))
                if tuple(found.x.shape) != tuple(zero.shape):
                    raise _OtherProblem(_shapes(found.x.shape, zero.shape))
            except _OtherProblem as error:
                raise ValueError(f"{self.path} is of another problem: {error}") from error
            except Exception as error:  # reading a damaged archive may raise anything
                raise ValueError(f"{self.path} is no checkpoint of such a problem: {error!r}") from error
        return found

    def _on_disk(self) -> tuple[int, int] | None:
        """Which file is there now: it changes with every write."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def file_for(path: str | os.PathLike[str], loss: Any, penalty: Any) -> str:
    """The path with a digest of the problem in place of ``{}``: folds of a cross-validation share no file."""
    name = os.fspath(path)
    if "{}" not in name:
        return name
    point = loss.point(loss.start())
    # Six digits, of which rounding on another machine changes none as a rule.
    words = [f"{loss.value(point):.5e}"]
    if not dataclasses.is_dataclass(point.x):
        words.append(f"{norm(loss.gradient(point)):.5e}")
    return name.replace(
        "{}", hashlib.blake2b(" ".join(words).encode() + _fingerprint(penalty), digest_size=6).hexdigest()
    )


class _OtherProblem(ValueError):
    """A whole checkpoint, but not of this run."""


def _read(file: Any, shape: tuple[int, ...] | None) -> dict[str, Array]:
    """The arrays in the file. Their sizes, and the shape of x, are checked before they take any memory."""
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no .npz file, or is cut short")
    saved = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{member.filename} is compressed, as no checkpoint is")
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as part:
                found, _, dtype = HEADERS[np.lib.format.read_magic(part)](part)
            if math.prod(found) * dtype.itemsize > member.file_size:
                raise ValueError(f"{name} is cut short")
            if name == "x.array" and shape is not None and found != shape:
                raise _OtherProblem(_shapes(found, shape))
            with archive.open(member) as part:
                saved[name] = np.lib.format.read_array(part, allow_pickle=False)
                part.read()  # to the end, where the checksum is compared
    if int(saved.pop("count", len(saved))) != len(saved):
        raise ValueError("some of its arrays are missing")
    if int(saved["version"]) > VERSION:
        raise ValueError(f"it was written by a later version of ell12 (format {saved['version']}, not {VERSION})")
    return saved


def _shapes(there: Any, here: Any) -> str:
    return f"its x has shape {tuple(there)}, here it is {tuple(here)}"


def _history(saved: dict[str, Array]) -> dict[str, list[float]]:
    """The columns of the history, which are equally long."""
    names = [name for name in saved if name.startswith("history.")]
    history = {name.removeprefix("history."): saved[name].tolist() for name in names}
    if len({len(column) for column in [history["objective"], *history.values()]}) != 1:
        raise ValueError("the columns of its history are not equally long")
    return history


def _fingerprint(value: Any) -> bytes:
    """A digest of a penalty: its class and its numbers, in arrays of any kind."""
    digest = hashlib.blake2b(digest_size=16)
    if dataclasses.is_dataclass(value):
        fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        digest.update(type(value).__name__.encode())
        for name, part in fields:
            digest.update(name.encode() + _fingerprint(part))
    elif is_number(value) or is_array(value):
        numbers = np.asarray(value if is_number(value) else as_numpy(value), dtype=np.float64)
        digest.update(repr(numbers.shape).encode() + numbers.tobytes())
    else:  # of objects that are not ours the class must do: their repr may hold an address
        digest.update((repr(value) if isinstance(value, str) else type(value).__name__).encode())
    return digest.digest()


def _parts(x: Any) -> dict[str, Array]:
    """The arrays that make up x: itself, or the fields of a factored matrix."""
    if dataclasses.is_dataclass(x):
        return {field.name: getattr(x, field.name) for field in dataclasses.fields(x) if field.init}
    return {"array": x}


def _assemble(zero: Any, parts: dict[str, Array]) -> Any:
    kind: Any = type(zero)
    return kind(**parts) if dataclasses.is_dataclass(zero) else parts["array"]

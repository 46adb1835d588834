"""The state of a long run on disk: written whole every so many seconds, read without pickle."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import as_numpy, beside, is_number
from ell12.files import write_atomically
from ell12.protocols import Array

VERSION = 1


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
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"checkpoint: the folder {self.path.parent} does not exist")
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint: {self.path} is a folder; name a file in it")
        if not is_number(seconds) or not 0 <= seconds < math.inf:
            raise ValueError(f"checkpoint_seconds must be a finite number >= 0, got {seconds!r}")
        self.seconds = seconds
        self.written = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.written >= self.seconds

    def save(self, x: Array, objective: float, history: dict[str, list[float]]) -> None:
        """Replace the file, all of it or nothing."""
        columns = {f"history.{name}": np.asarray(column, dtype=np.float64) for name, column in history.items()}
        parts = {f"x.{name}": as_numpy(part) for name, part in _parts(x).items()}
        content = io.BytesIO()
        np.savez(content, version=VERSION, objective=objective, **parts, **columns)  # type: ignore[arg-type]
        write_atomically(self.path, content.getvalue())
        self.written = time.monotonic()

    def load(self, zero: Array) -> Saved | None:
        """What the file holds, x being of the kind of ``zero``; None where there is no file yet."""
        if not self.path.exists():
            return None
        try:
            saved = _read(self.path)
            parts = {name: beside(saved[f"x.{name}"], part, "x") for name, part in _parts(zero).items()}
            history = {
                name.removeprefix("history."): column.tolist()
                for name, column in saved.items()
                if name.startswith("history.")
            }
            found = Saved(_assemble(zero, parts), float(saved["objective"]), history)
        except (KeyError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
            # NotImplementedError is what zipfile makes of a damaged header that names another packing.
            raise ValueError(f"{self.path} is no checkpoint of such a problem: {error}") from error
        if tuple(found.x.shape) != tuple(zero.shape):
            shapes = f"its x has shape {tuple(found.x.shape)}, here it is {tuple(zero.shape)}"
            raise ValueError(f"{self.path} is of another problem: {shapes}")
        return found


def _read(path: Path) -> dict[str, Array]:
    """The arrays in the file."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no .npz file, or is cut short")
        with np.load(file, allow_pickle=False) as content:
            saved = {name: content[name] for name in content.files}
    if int(saved["version"]) > VERSION:
        raise ValueError(f"it was written by a later version of ell12 (format {saved['version']}, not {VERSION})")
    return saved


def _parts(x: Any) -> dict[str, Array]:
    """The arrays that make up x: itself, or the fields of a factored matrix."""
    if dataclasses.is_dataclass(x):
        return {field.name: getattr(x, field.name) for field in dataclasses.fields(x) if field.init}
    return {"array": x}


def _assemble(zero: Any, parts: dict[str, Array]) -> Any:
    kind: Any = type(zero)
    return kind(**parts) if dataclasses.is_dataclass(zero) else parts["array"]

"""Files that are whole or not there."""

from __future__ import annotations

import io
import os
import secrets
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

YOUNG = 10.0  # seconds in which a temporary file is left alone: its writer may not have locked it yet


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a run after a crash, sees the old content or the new, never a mixture.

    A symbolic link stays one: its target is written. A new file has the permissions that the umask gives, an old
    one keeps its own. Temporary files that a killed process has left beside it are removed.
    """
    path = _regular(path)
    _remove_abandoned(path)
    temporary = _beside(path, secrets.token_hex(8))
    try:
        with open(temporary, "xb") as file:
            with suppress(OSError):  # where files cannot be locked, the young ones are safe all the same
                _lock(file.fileno())
            with suppress(OSError):  # there is no old file, or its permissions are not ours to give
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def packed_arrays(arrays: Mapping[str, Any]) -> bytes:
    """The content of a compressed .npz file that is read without pickle; arrays of objects are refused.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from ell12.files import packed_arrays
    >>> np.load(io.BytesIO(packed_arrays({"a": np.arange(3)})))["a"]
    array([0, 1, 2])
    """
    import numpy as np

    for name, values in arrays.items():  # NumPy 2.0 has no allow_pickle here: it would be one more array
        if np.asarray(values).dtype.hasobject:
            raise ValueError(f"array {name} holds objects, which only pickle could write")
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _beside(path: Path, word: str) -> Path:
    """A name for a temporary file in the same folder. Long names are cut: a system allows some 255 bytes."""
    return path.with_name(f".{path.name[:50]}.{word}.part")


def _regular(path: Path) -> Path:
    """The file that a path leads to, through links; raise where replacing it would destroy a device or a pipe."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file")
    return path


def _lock(descriptor: int) -> None:
    """Lock a file until its process closes it or dies. Raise OSError if another process holds it."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of this target that nobody is writing any more."""
    start, end = _beside(path, "").name.removesuffix(".part"), ".part"
    for old in path.parent.iterdir():
        if old.name.startswith(start) and old.name.endswith(end):
            with suppress(OSError), old.open("rb") as file:
                if time.time() - old.stat().st_mtime > YOUNG:
                    _lock(file.fileno())
                    old.unlink()

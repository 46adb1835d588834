"""A run as one file: a zip archive of its rows, its page, its provenance and the hashes of all of them.

The same files give the same bytes: order, dates and permissions in the archive are fixed.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ell12.commands import CommandError, UsageError, explained
from ell12.files import write_atomically
from ell12_paper import provenance
from ell12_paper.provenance import MEASURED, PAGE_FILES

FOLDER = "ell12-run"  # of the archive, so that unpacking by hand makes one folder
CONTENT = (*MEASURED, provenance.FILE, *PAGE_FILES)
# No more is unpacked than this. All studies at the paper's size together have some tens of megabytes.
MOST_BYTES = 2**29
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first date that the format knows


def check_target(path: Path | None) -> None:
    """Raise if an archive is wanted and cannot be written there, or if that would destroy something else."""
    if path is None:
        return
    if path.suffix != ".zip":
        raise UsageError(f"{path} has an unknown suffix: archives are written as .zip")
    with explained(f"cannot write {path}"):
        if not path.parent.is_dir():
            raise CommandError(f"cannot write {path}: there is no folder {path.parent}")
        if path.exists() and not _is_archive(path):
            raise UsageError(f"{path} is there and is no archive of a run: choose another --archive")


def _is_archive(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{FOLDER}/{MEASURED[0]}" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def pack(folder: Path, path: Path) -> None:
    """Write the archive of a run: all of it, or nothing."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in CONTENT:
            if (folder / name).is_file():
                entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _LONG_AGO)
                entry.compress_type, entry.create_system, entry.external_attr = (
                    zipfile.ZIP_DEFLATED,
                    3,
                    0o644 << 16,
                )
                archive.writestr(entry, (folder / name).read_bytes())
    with explained(f"cannot write {path}"):
        write_atomically(path, content.getvalue())


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of a run: the one given, or one with the content of an archive, which is gone afterwards."""
    if path.is_dir():
        yield path
        return
    if not path.exists():
        raise CommandError(f"there is no {path}: name the folder of a run, or the .zip file that holds one")
    with tempfile.TemporaryDirectory(prefix="ell12-") as name, explained(f"cannot read {path}"):
        _unpack(path, Path(name))
        yield Path(name)


def _unpack(path: Path, folder: Path) -> None:
    """Write the files of a run that an archive holds. Nothing else is written, and nothing elsewhere."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name, entry in _wanted(archive, path).items():
                with archive.open(entry) as file:
                    content = file.read(entry.file_size + 1)
                if len(content) != entry.file_size:
                    raise CommandError(f"{path} is damaged: {name} has another size than it says; get it again")
                (folder / name).write_bytes(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CommandError(f"{path} is no zip archive, or a damaged one ({error}): get it again") from None


def _wanted(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The entries of an archive that are files of a run, by name."""
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        place = PurePosixPath(entry.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or ":" in entry.filename:
            raise CommandError(f"{path} would write to {entry.filename}: ell12 wrote no such archive, delete it")
        if place.name not in CONTENT or place.parts[:-1] not in ((), (FOLDER,)):
            continue
        if place.name in found:
            raise CommandError(f"{path} holds {place.name} twice: ell12 wrote no such archive, delete it")
        found[place.name] = entry
    if sum(entry.file_size for entry in found.values()) > MOST_BYTES:
        raise CommandError(f"{path} holds more than {MOST_BYTES // 2**20} MB: unpack it by hand if you trust it")
    if MEASURED[0] not in found:
        raise CommandError(f"{path} holds no {MEASURED[0]}: it is no archive of a run")
    return found

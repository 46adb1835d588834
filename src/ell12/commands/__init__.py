"""Commands: one file per group of them, each with a function ``add_to(application)``, and what they share."""

import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A terminal obeys control characters instead of showing them. Marks of writing direction can make a line read as
# another. Lone surrogates stand for bytes that are no text.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class CommandError(Exception):
    """Why a command, or a run of experiments, cannot do its work, in one line for its user: files or data."""

    code = 1  # what the process ends with


class UsageError(CommandError):
    """What was typed does not do: options that exclude each other, say, or an output that is there already."""

    code = 2


def printable(text: str) -> str:
    r"""The text on one line, with escapes in place of the characters that a terminal would obey.

    Examples
    --------
    >>> from ell12.commands import printable
    >>> print(printable("red \x1b[31m, two\nlines"))
    red \x1b[31m, two\nlines
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, failed: bool = False) -> None:
    """Print one line. Every message goes through here or `printable`: names of files and ids may hold anything."""
    print(printable(text), file=sys.stderr if failed else sys.stdout, flush=True)


def check_folder(folder: Path, create: bool = False) -> None:
    """Raise if nothing can be written to a folder, which is made if wanted."""
    with explained(f"cannot write to the folder {folder}"):
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def check_form(separator: str | None, encoding: str) -> str | None:
    r"""The separator of lines, whose tab may be written ``\t``; raise if it is none, or the encoding unknown."""
    if separator is not None and (not separator or set('"\r\n') & set(separator)):
        raise UsageError(f"separator must be characters other than quotes and ends of lines, got {separator!r}")
    try:
        "0".encode(encoding)
    except LookupError as error:
        raise UsageError(f"encoding: {error}") from None
    return separator and separator.replace("\\t", "\t")


@contextmanager
def explained(words: str, remedy: str = "") -> Iterator[None]:
    """Turn what the operating system refuses into one line."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{words}: {error.strerror or error}{remedy}") from error


@contextmanager
def noted() -> Iterator[list[str]]:
    """Warnings as sentences, one of each kind."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    last = {warning.category: f"Note: {warning.message}" for warning in caught}  # the later fit has the last word
    notes += last.values()

"""Lines of text from files, packed or not; what cannot be read is named with its line."""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

UNPACKERS = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # loaded when needed: not every Python has all
# No UTF-8 text begins with these; the longer ones first, as one begins with a shorter.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_START = 1 << 16
_BLOCK = 1 << 24
_SAMPLE = 50
_MOST_SKIPPED = 100_000  # blank lines and comments at the top: more are those of another kind of file
# A packed file may hold 16 MB, and 100 times its own size: packed ratings hold 3 to 20 times their size.
_PACKED, _RATIO = 1 << 24, 100


def kind_of(path: Path) -> str:
    """The suffix that says what a file holds, in small letters: of a packed one that before."""
    packed = path.suffix.lower() in UNPACKERS
    return (path.with_suffix("") if packed else path).suffix.lower()


@contextmanager
def unpacked(path: Path) -> Iterator[Any]:
    """A file to read bytes from, unpacked where its name ends in .gz, .bz2 or .xz; a damaged one is named."""
    name = UNPACKERS.get(path.suffix.lower())
    if name is None:
        with path.open("rb") as file:
            yield file
        return
    unpacker = import_module(name)
    try:
        with unpacker.open(path) as file, io.BufferedReader(_Bounded(file, path), 1 << 20) as bounded:
            yield bounded
    except (EOFError, zlib.error, getattr(unpacker, "LZMAError", EOFError)) as error:
        raise ValueError(f"{path} is damaged or cut off: {error}") from error
    except OSError as error:
        if error.errno is not None:  # not what the unpacker says, but what the operating system does
            raise
        raise ValueError(f"{path} is damaged or cut off: {error}") from error


class _Bounded(io.RawIOBase):
    """What a packed file holds; an error where that is so much that it must be a mistake, or meant to do harm."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file, self.path = file, path
        self.left = _PACKED + _RATIO * path.stat().st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)
        self.left -= count
        if self.left < 0:
            raise ValueError(
                f"{self.path} unpacks to more than {_RATIO} times its size; unpack it first if it is right"
            )
        return count


def text_file(path: Path, encoding: str = "utf-8") -> TextFile:
    """A file of lines; where UTF-8 is expected, a mark at its beginning may say that it is UTF-16 or UTF-32."""
    try:
        "0".encode(encoding)
    except LookupError as error:
        raise ValueError(f"encoding: {error}") from None
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is no file: it cannot be read twice, so write it to one first")
    with unpacked(path) as file:
        start = file.read(_START)
        while path.suffix.lower() in UNPACKERS and file.read(_START):
            pass  # to the end, so that too much is told before any of it takes memory
    if codecs.lookup(encoding).name == "utf-8":
        encoding = next((wide for mark, wide in _MARKS.items() if start.startswith(mark)), encoding)
    if "0,\n".encode(encoding) != b"0,\n":
        return TextFile(path, recoded_from=encoding)
    return TextFile(path, encoding, carriage_returns=b"\r" in start and b"\n" not in start)


@dataclass(frozen=True)
class TextFile:
    """A file of lines in an encoding that cuts them at the byte of a line's end, or read as if in UTF-8."""

    path: Path
    encoding: str = "utf-8"
    recoded_from: str | None = None
    carriage_returns: bool = False  # which alone end the lines

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The bytes of the lines."""
        with unpacked(self.path) as file:
            if self.recoded_from is not None:
                yield self._recoded(file.read(), self.recoded_from)
            else:
                yield io.BytesIO(file.read().replace(b"\r", b"\n")) if self.carriage_returns else file

    def _recoded(self, content: bytes, encoding: str) -> io.BytesIO:
        try:
            return io.BytesIO(content.decode(encoding).encode())
        except UnicodeDecodeError as error:
            before = content[: error.start].decode(encoding, "replace")
            words = f"not {encoding} text: {error.reason}; is it a binary file, or in another encoding?"
            raise self.error(before.count("\n") + 1, words) from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1; one without end is that of a binary file."""
        with self.opened() as file:
            number = 0
            while line := file.readline(_BLOCK):
                number += 1
                if len(line) == _BLOCK:
                    raise self.error(number, f"a line of more than {_BLOCK} bytes is no rating")
                yield number, self.as_text(line, number)

    def blocks(self, n_skipped: int) -> Iterator[tuple[bytes, int]]:
        """Some million bytes of whole lines at a time, with the number of the first line."""
        with self.opened() as file:
            for _ in range(n_skipped):
                file.readline()
            line = n_skipped + 1
            rest = b""
            while block := file.read(_BLOCK):
                block = rest + block
                end = block.rfind(b"\n") + 1
                if end:
                    yield block[:end], line
                    line += block.count(b"\n", 0, end)
                rest = block[end:]
                if len(rest) > _BLOCK:
                    raise self.error(line, f"a line of more than {_BLOCK} bytes is no rating")
            if rest:
                yield rest, line

    def as_text(self, line: bytes, number: int) -> str:
        """A line as text, without a mark of its byte order; an error that names it if it is none."""
        try:
            text = line.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise self.error(
                number, f"not {self.encoding} text: {error.reason}; is it a binary file, or in another encoding?"
            ) from None
        if "\0" in text:
            raise self.error(number, "a zero byte: is it a binary file?")
        return text.removeprefix("\ufeff") if number == 1 else text

    def error(self, number: int, words: str) -> ValueError:
        """What is wrong with a line."""
        return ValueError(f"{self.path}, line {number}: {words}")


# What the first lines tell


def first_lines(file: TextFile, what: str) -> tuple[list[str], int]:
    """The first lines, of which there must be one, and how many comments and blank lines stand above them."""
    lines: list[str] = []
    n_skipped = 0
    for _, line in file.lines():
        text = line.strip("\r\n")
        if not lines and (not text.strip() or text.lstrip().startswith(("#", "%"))):
            n_skipped += 1
            if n_skipped > _MOST_SKIPPED:
                raise ValueError(f"{file.path} holds no {what} in its first {_MOST_SKIPPED} lines")
        elif text.strip():
            lines.append(text)
        if len(lines) == _SAMPLE:
            break
    if not lines:
        raise ValueError(f"{file.path} holds no {what}")
    return lines, n_skipped


def likely_separators(sample: list[str], fewest: int, candidates: tuple[str, ...]) -> dict[str, int]:
    """Separators that cut lines into at least so many fields, with the number of them in the first line.

    Those that cut all lines alike; where there is none, all that cut the first: the odd line is then named when it
    is read.
    """
    counts = {separator: [_count(text, separator) for text in sample] for separator in candidates}
    found = {separator: sizes[0] for separator, sizes in counts.items() if sizes[0] >= fewest}
    alike = {separator: size for separator, size in found.items() if len(set(counts[separator])) == 1}
    return alike or found


def _count(text: str, separator: str) -> int:
    try:
        return len(split_line(text, separator))
    except csv.Error:  # quotes that do not fit this separator
        return 0


def split_line(text: str, separator: str) -> list[str]:
    """The fields of a line, without blanks around them."""
    if '"' not in text and separator == " ":
        return text.split()
    if '"' not in text or len(separator) > 1:
        return [field.strip() for field in text.split(separator)]
    fields = next(csv.reader([text.strip(" ")], delimiter=separator, strict=True, skipinitialspace=True))
    return [field.strip() for field in fields]


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

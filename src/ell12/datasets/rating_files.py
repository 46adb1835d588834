"""Ratings as lines of text, or as Parquet, read into columns; a line that cannot be read is named."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ell12.datasets.ratings import Triples, as_strings
from ell12.datasets.text_files import TextFile, first_lines, is_number, likely_separators, split_line, text_file

SEPARATORS = ("::", "\t", ";", ",", "|", " ")
# Names by which headers call user, item and value, without case, blanks and underscores; the plainest first.
NAMES = (
    ("user", "userid", "uid", "username", "customer", "customerid", "reviewer", "reviewerid", "rater", "row"),
    ("item", "itemid", "iid", "movieid", "movie", "bookid", "book", "isbn", "productid", "product", "asin",
     "artistid", "artist", "trackid", "track", "jokeid", "joke", "animeid", "anime", "gameid", "game",
     "businessid", "business", "title", "column"),
    ("rating", "value", "score", "stars", "overall", "bookrating", "weight", "plays", "count"),
)  # fmt: skip
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")  # what a number of 64 bits gives back exactly as it was written


def read_text(
    path: Path,
    columns: tuple[Any, Any, Any] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
) -> Triples:
    """The users, items and values of lines of text."""
    if separator is not None and (not separator or set('"\r\n') & set(separator)):
        raise ValueError(f"separator must be characters other than quotes and ends of lines, got {separator!r}")
    file = text_file(path, encoding)
    sample, n_skipped = first_lines(file, "ratings")
    if separator is None:
        separator = _find_separator(sample, path, n_skipped + 1, fewest=3)
    first = split_line(sample[0], separator)
    has_header = header if header is not None else not any(map(is_number, first))
    places = _find_columns(columns, first, has_header, path)
    return Layout(file, separator, len(first), places).read_file(n_skipped + has_header)


def read_pairs(
    path: Path,
    columns: tuple[Any, Any, Any] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[Any, Any, Any]:
    """The users and items of lines of text, and their values, or None where there is no third column of them.

    A header is a first line with a known name and no number, since ids may be any words. The separator and the
    names are those given, as for the ratings, or well-known ones; positions are for lines without header.
    """
    file = text_file(path, encoding)
    sample, n_skipped = first_lines(file, "ratings")
    separator = _find_separator(sample, path, n_skipped + 1, fewest=2, given=separator)
    first = split_line(sample[0], separator)
    known = _known_columns(first, columns)
    has_header = any(known) and not any(map(is_number, first))
    if has_header:
        if not (known[0] and known[1]):
            raise ValueError(f"{path}: no user and item among the columns {', '.join(first)}")
        places = tuple(found[0] for found in known if found)
    else:
        places = _places_of_pairs(columns, first, path)
    triples = Layout(file, separator, len(first), places).read_file(n_skipped + has_header)
    return triples.users, triples.items, triples.values if len(places) == 3 else None


def _places_of_pairs(columns: tuple[Any, Any, Any] | None, first: list[str], path: Path) -> tuple[int, ...]:
    if columns is None or any(isinstance(column, str) for column in columns):
        columns = (0, 1, 2)
    user, item, value = columns
    places = tuple(_find_column(column, first, False, path) for column in (user, item))
    return (*places, value) if value < len(first) and is_number(first[value]) else places


def read_parquet(path: Path, columns: tuple[Any, Any, Any] | None = None) -> Triples:
    """The users, items and values of a Parquet file; pandas and one of its engines read it."""
    try:
        import pandas

        path.stat()  # pandas does not say what is wrong with a file that is not there
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{path.name} needs pandas and pyarrow: pip install pandas pyarrow") from error
    except (ValueError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the operating system speaks, not the reader
            raise
        raise ValueError(f"{path} is no Parquet file, damaged or cut off: {error}") from error
    return read_frame(frame, columns, str(path))


def read_frame(frame: Any, columns: tuple[Any, Any, Any] | None, name: str) -> Triples:
    """The users, items and values of a pandas DataFrame, which errors call by a name."""
    names = [str(column) for column in frame.columns]
    places = _find_columns(columns, names, True, name)
    users, items, values = (frame.iloc[:, place].to_numpy() for place in places)
    return Triples(users, items, values)


# Where things are


def has_known_names(names: Any) -> bool:
    """Whether user, item and value are all among these names of columns."""
    return all(_known_columns([str(name) for name in names]))


def _find_separator(sample: list[str], path: Path, line: int, fewest: int, given: str | None = None) -> str:
    likely = likely_separators(sample, fewest, SEPARATORS if given is None else (given, *SEPARATORS))
    if not likely:
        wanted = "user, item and value" if fewest > 2 else "user and item"
        raise ValueError(
            f"{path}, line {line}: no {wanted} found in {sample[0][:60]!r}; "
            "name the separator if it is an unusual one"
        )
    return next(iter(likely))


def _find_columns(
    columns: tuple[Any, Any, Any] | None, first: list[str], has_header: bool, path: Path | str
) -> tuple[int, ...]:
    """The positions of user, item and value."""
    if columns is not None:
        if isinstance(columns, str) or len(columns) != 3 or not all(map(_is_name_or_position, columns)):
            raise ValueError(f"columns must be three names or positions: user, item and value; got {columns!r}")
        places = tuple(_find_column(column, first, has_header, path) for column in columns)
        if len(set(places)) < 3:
            raise ValueError(f"columns must be three different ones, got {columns!r}")
        return places
    found = _known_columns(first)
    if has_header and all(found):
        return tuple(places[0] for places in found)
    if has_header and any(places and k not in places for k, places in enumerate(found)):
        raise ValueError(
            f"{path}: the columns {', '.join(first)} are named, but not all of user, item and value are known by "
            "these names; call them user, item and rating, or say which they are with columns="
        )
    if len(first) < 3:
        raise ValueError(f"{path}: user, item and value are needed, but there are {len(first)} columns")
    return (0, 1, 2)


def _known_columns(first: list[str], columns: tuple[Any, Any, Any] | None = None) -> list[list[int]]:
    """The columns that are called users, items and values: by the given names, else by well-known ones."""
    names = [re.sub(r"[\s_\-.]", "", name).lower() for name in first]
    found = [[names.index(name) for name in known if name in names] for known in NAMES]
    given = [[k for k, name in enumerate(first) if name == column] for column in columns or ()]
    return [given[0], given[1], given[2] or found[2]] if given and given[0] and given[1] else found


def _is_name_or_position(column: Any) -> bool:
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


def _find_column(column: Any, first: list[str], has_header: bool, path: Path | str) -> int:
    if isinstance(column, str):
        if has_header and column in first:
            return first.index(column)
        raise ValueError(f"{path}: there is no column {column!r}; the first line is {', '.join(first)}")
    if not 0 <= column < len(first):
        raise ValueError(f"{path}: there is no column {column}; there are {len(first)}, from 0 on")
    return int(column)


# The lines


@dataclass(frozen=True)
class Layout:
    """How a line is cut, and which of its fields are user, item and, perhaps, value."""

    file: TextFile
    separator: str
    n_fields: int
    places: tuple[int, ...]

    def read_file(self, n_skipped: int) -> Triples:
        """The ratings of all lines but the first few."""
        parts = [self.read(block, line) for block, line in self.file.blocks(n_skipped)]
        if not any(len(part.values) for part in parts):
            raise ValueError(f"{self.file.path} holds no ratings")
        users, items = (self._joined([part[k] for part in parts]) for k in (0, 1))
        return Triples(users, items, np.concatenate([part.values for part in parts]))

    def read(self, block: bytes, line: int) -> Triples:
        """The ratings of some whole lines, of which the first is line number ``line``; zero without a value."""
        return self._read_plain(block) or self._read_each(block, line)

    def _read_plain(self, block: bytes) -> Triples | None:
        """All lines at once where they hold plain numbers and nothing else; None otherwise."""
        mark = self.separator if len(self.separator) == 1 else "\t"
        if b"\0" in block or (mark != self.separator and b"\t" in block):
            return None
        plain = block.replace(b"\r\n", b"\n").replace(self.separator.encode(), mark.encode())
        text = np.frombuffer(plain if plain.endswith(b"\n") else plain + b"\n", dtype=np.uint8)
        breaks: Any = np.flatnonzero((text == ord(mark)) | (text == ord("\n")))
        if breaks.size % self.n_fields:
            return None
        breaks = breaks.reshape(-1, self.n_fields)
        if np.any(text[breaks[:, :-1]] != ord(mark)) or np.any(text[breaks[:, -1]] != ord("\n")):
            return None
        starts = np.concatenate(([0], breaks.ravel()[:-1] + 1)).reshape(breaks.shape)
        user, item, *value = (_Field(text, starts[:, k], breaks[:, k]) for k in self.places)
        try:
            values = value[0].numbers() if value else np.zeros(len(breaks))
            triples = Triples(user.whole(), item.whole(), values)
        except ValueError:
            return None
        return triples if np.all(np.isfinite(triples.values)) else None

    def _read_each(self, block: bytes, line: int) -> Triples:
        users, items, values = [], [], []
        for number, raw in enumerate(block.split(b"\n"), start=line):
            text = self.file.as_text(raw, number).removesuffix("\r")
            if not text.strip():
                continue
            fields = self._fields(text, number)
            user, item, *value = (fields[place] for place in self.places)
            if not user or not item:
                raise self.file.error(number, f"an id is missing in {text[:80]!r}")
            users.append(user)
            items.append(item)
            values.append(self._value(value[0], number) if value else 0.0)
        return Triples(self._ids(users), self._ids(items), np.array(values, dtype=np.float64))

    def _ids(self, texts: list[str]) -> Any:
        """Numbers where all ids are whole ones, else strings."""
        if all(map(_WHOLE.fullmatch, texts)):
            return np.array([int(text) for text in texts], dtype=np.int64)
        try:
            return as_strings(texts)
        except ValueError as error:
            raise ValueError(f"{self.file.path}: {error}") from None

    def _joined(self, parts: list[Any]) -> Any:
        """The ids of several blocks: numbers where all are, else strings."""
        parts = [part for part in parts if part.size]
        if len(parts) == 1 or all(part.dtype.kind == "i" for part in parts):
            return np.concatenate(parts)
        return self._ids([text for part in parts for text in part.astype(str).tolist()])

    def _fields(self, text: str, number: int) -> list[str]:
        try:
            fields = split_line(text, self.separator)
        except csv.Error as error:
            raise self.file.error(number, f"{error} in {text[:80]!r}") from None
        if len(fields) != self.n_fields:
            raise self.file.error(
                number, f"{self.n_fields} fields are expected, but there are {len(fields)} in {text[:80]!r}"
            )
        return fields

    def _value(self, text: str, number: int) -> float:
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.file.error(number, f"the rating {text[:40]!r} is not a finite number")
        return value


@dataclass(frozen=True)
class _Field:
    """One field of every line: where it begins and ends in the text."""

    text: Any
    starts: Any
    ends: Any

    def letters(self) -> Any:
        """One row of letters per line, filled up with zeros."""
        lengths = self.ends - self.starts
        width = int(lengths.max(initial=1))
        if width > 40 or lengths.min(initial=1) < 1:
            raise ValueError("not a plain number")
        places = np.arange(width)
        letters = self.text[np.minimum(self.starts[:, None] + places, self.text.size - 1)]
        return np.where(places < lengths[:, None], letters, np.uint8(0))

    def whole(self) -> Any:
        """The field as whole numbers, which give back exactly what was written."""
        letters = self.letters()
        digit = (letters >= ord("0")) & (letters <= ord("9"))
        leading_zero = (letters[:, 0] == ord("0")) & (letters[:, 1:2] != 0).any(axis=1)
        if letters.shape[1] > 18 or not np.all(digit | (letters == 0)) or leading_zero.any():
            raise ValueError("not a plain whole number")
        numbers = np.zeros(len(letters), dtype=np.int64)
        for column, is_digit in zip(letters.T, digit.T, strict=True):
            numbers = np.where(is_digit, 10 * numbers + column - ord("0"), numbers)
        return numbers

    def numbers(self) -> Any:
        """The field as floating numbers."""
        letters = self.letters()
        if np.any((letters == ord("_")) | (letters == ord(" "))):
            raise ValueError("not a plain number")
        return np.ascontiguousarray(letters).view(f"S{letters.shape[1]}").ravel().astype(np.float64)

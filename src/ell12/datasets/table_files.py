"""Tables of named columns from lines of text: each column is one of numbers or of words."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ell12.datasets.text_files import TextFile, first_lines, is_number, likely_separators, split_line, text_file

SEPARATORS = ("\t", ";", ",", "|", " ")
# What people and programs write where a value is missing, in small letters.
MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", ".", "-"})
_PLAIN = re.compile(
    r"[0-9eE+\-., \tnaNAinfINF]*", re.ASCII
)  # Python takes 1_0 for 10, and digits of other scripts
_ROWS = 2**15  # read at a time


@dataclass(frozen=True)
class Table:
    """The columns of a file, by name: float64 with NaN where a value is missing, or words with None.

    Parameters
    ----------
    path : Path
        The file.
    columns : dict of str to array
        In the order of the file.
    lines : array of int
        In which line of the file each row ends, from 1.
    notes : tuple of str
        What was guessed and is worth knowing.
    """

    path: Path
    columns: dict[str, Any]
    lines: Any
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def is_text(self, name: str) -> bool:
        """Whether a column holds words."""
        return self.columns[name].dtype.kind == "O"

    def missing(self, name: str) -> Any:
        """Where the values of a column are missing."""
        column = self.columns[name]
        return np.array([cell is None for cell in column]) if self.is_text(name) else np.isnan(column)

    def rows(self, which: Any) -> Table:
        """A table of some rows."""
        columns = {name: column[which] for name, column in self.columns.items()}
        return Table(self.path, columns, self.lines[which], self.notes)


def read_table(
    path: Path,
    *,
    separator: str | None = None,
    header: bool = True,
    encoding: str = "utf-8",
    words: Collection[str] = (),
) -> Table:
    r"""A table from lines of text.

    The separator (tab, ``;``, ``,``, ``|`` or blanks) is guessed unless it is given. Cells that are empty, or read
    NA, nan, null, none, ``?``, ``-`` or ``.``, are missing. A column whose other cells are all numbers holds
    numbers; where the separator is no comma they may have decimal commas. Any other column holds words.

    Parameters
    ----------
    path : Path
        A further ``.gz``, ``.bz2`` or ``.xz`` is unpacked.
    separator : str, optional
        One character.
    header : bool
        Whether the first line has the names; otherwise these are ``c1``, ``c2`` and so on.
    encoding : str
        Of the text; UTF-16 and UTF-32 are known by the mark at their beginning.
    words : names of columns
        Columns that hold words even where these are all numbers, such as codes.

    Raises
    ------
    ValueError
        For a file that cannot be read so; with the number of the line, where it is one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ell12.datasets.table_files import read_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("size;kind;price\n1,5;a;10\n;b;20\n")
    ...     file.flush()
    ...     table = read_table(Path(file.name))
    >>> table.columns["size"], table.columns["kind"]
    (array([1.5, nan]), array(['a', 'b'], dtype=object))
    """
    file = text_file(path, encoding)
    sample, n_skipped = first_lines(file, "lines of data")
    if separator is None:
        likely = likely_separators(sample, 2, SEPARATORS)
        separator = max(likely, key=lambda mark: likely[mark], default=",")
    elif len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"separator must be one character, no quote and no end of a line; got {separator!r}")
    first = split_line(sample[0], separator)
    if header and all(map(is_number, first)):
        raise ValueError(
            f"{path}, line {n_skipped + 1}: numbers where names of the columns should be; add a line of names, "
            "or say that there is none (--no-header), which calls the columns c1, c2, ..."
        )
    names = [name or f"c{k}" for k, name in enumerate(first, start=1)]
    names = names if header else [f"c{k}" for k in range(1, len(first) + 1)]
    _check_names(names, path)
    return _Lines(file, separator, names, n_skipped + header, words).read()


def _check_names(names: Sequence[str], path: Path) -> None:
    for k, name in enumerate(names):
        if name in names[:k]:
            first = names.index(name) + 1
            raise ValueError(
                f"{path}: the columns {first} and {k + 1} are both called {name!r}; rename one of them"
            )


@dataclass(frozen=True)
class _Lines:
    """How the lines of a file are cut into rows."""

    file: TextFile
    separator: str
    names: list[str]
    n_skipped: int
    words: Collection[str]

    def read(self) -> Table:
        """The table. A second look is needed only where a column seems to hold numbers, and words further down."""
        known = frozenset(k for k, name in enumerate(self.names) if name in self.words)
        columns, lines = self._columns(known)
        mixed = frozenset(k for k, parts in enumerate(columns) if len({part.dtype for part in parts}) > 1)
        if mixed:
            columns, lines = self._columns(known | mixed)
        if not lines:
            raise ValueError(f"{self.file.path} holds names of columns but no row of data")
        whole = {name: np.concatenate(parts) for name, parts in zip(self.names, columns, strict=True)}
        for name, column in whole.items():
            if column.dtype.kind == "O" and name not in self.words and all(cell is None for cell in column):
                whole[name] = np.full(len(column), np.nan)
            self._check_finite(name, whole[name], lines)
        return Table(self.file.path, whole, np.array(lines))

    def _check_finite(self, name: str, column: Any, lines: list[int]) -> None:
        odd = np.flatnonzero(np.isinf(column)) if column.dtype.kind == "f" else np.zeros(0, dtype=int)
        if odd.size:
            raise self.file.error(lines[odd[0]], f"the column {name!r} holds an infinite number")

    def _columns(self, words: frozenset[int]) -> tuple[list[list[Any]], list[int]]:
        """The parts of each column, and the lines of all rows; some columns are known to hold words."""
        columns: list[list[Any]] = [[] for _ in self.names]
        lines: list[int] = []
        rows = self._rows()
        while block := list(islice(rows, _ROWS)):
            lines += [line for line, _ in block]
            for k, cells in enumerate(zip(*(fields for _, fields in block), strict=True)):
                numbers = None if k in words else _numbers(cells, self.separator)
                columns[k].append(_words(cells) if numbers is None else numbers)
        return columns, lines

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        texts = (text for number, text in self.file.lines() if number > self.n_skipped)
        reader = csv.reader(texts, delimiter=self.separator, skipinitialspace=True, strict=True)
        try:
            for fields in reader:
                line = self.n_skipped + reader.line_num
                if len(fields) == len(self.names):
                    yield line, fields
                elif any(field.strip() for field in fields):
                    expected = f"{len(self.names)} fields are expected, but there are {len(fields)}"
                    raise self.file.error(line, f"{expected} in {self.separator.join(fields)[:80]!r}")
        except csv.Error as error:
            raise self.file.error(self.n_skipped + reader.line_num, str(error)) from None


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _numbers(cells: Sequence[str], separator: str) -> Any:
    """The cells as numbers, NaN where they are missing; None if some are words."""
    plain = map(_PLAIN.fullmatch, cells)
    try:
        if all(plain):
            return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    cells = ["nan" if _is_missing(cell) else cell for cell in cells]
    if not all(map(_PLAIN.fullmatch, cells)):
        return None
    if separator != ",":
        cells = [cell.replace(",", ".") for cell in cells]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def _words(cells: Sequence[str]) -> Any:
    found = np.empty(len(cells), dtype=object)
    found[:] = [None if _is_missing(cell) else sys.intern(cell.strip()) for cell in cells]
    return found

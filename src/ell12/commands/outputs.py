"""Files that commands write: all of them are made before the first is written, and each is whole or not there."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands import say
from ell12.files import write_atomically

# A spreadsheet executes a cell that begins with one of these; the wide signs count in East Asian settings.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)

Content = tuple[Path, bytes, list[str]]  # where to, what, and what is said of it


def write(contents: list[Content]) -> None:
    """Write files, and say what they are."""
    for target, content, words in contents:
        write_atomically(target, content)
        for sentence in words:
            say(sentence)


def encode_lines(columns: Mapping[str, Any]) -> tuple[bytes, list[str]]:
    """Lines of ids and numbers under their names, and a sentence on ids that were quoted."""
    cells, changed = [], 0
    for name, column in {name: np.asarray(values) for name, values in columns.items()}.items():
        if column.dtype.kind == "f":
            cells.append([_quoted(name), *(f"{value:.6g}" for value in column)])
            continue
        given = [name, *column.tolist()]
        cells.append([_quoted(value) for value in given])
        changed += sum(a != b for a, b in zip(given, cells[-1], strict=True))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(zip(*cells, strict=True))
    note = f"{changed:,} ids look like formulas to a spreadsheet: an apostrophe stands before each of them"
    return text.getvalue().encode(), [note] if changed else []


def _quoted(name: Any) -> Any:
    """An id with an apostrophe before it if a spreadsheet would execute it; plain numbers stay as they are.

    Examples
    --------
    >>> from ell12.commands.outputs import _quoted
    >>> _quoted("=1+1"), _quoted("-5"), _quoted("film 3")
    ("'=1+1", '-5', 'film 3')
    """
    is_formula = isinstance(name, str) and name.startswith(_FORMULA) and not _NUMBER.fullmatch(name)
    return f"'{name}" if is_formula else name

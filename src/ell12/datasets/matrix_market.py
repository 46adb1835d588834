"""Matrix Market files as users, items and values."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ell12.datasets.rating_files import Layout
from ell12.datasets.ratings import Triples
from ell12.datasets.text_files import TextFile, text_file

# A matrix may have ten million rows or columns without entries, and 100 for each entry: their ids take memory.
EMPTY, PER_ENTRY = 10**7, 100


def read_matrix_market(path: Path) -> tuple[Triples, tuple[int, int]]:
    """The entries of a matrix in coordinate form, with row and column numbers from 1, and its shape."""
    file = text_file(path)
    symmetry, line, (n_rows, n_columns, n_entries) = _read_head(file)
    size = f"matrix of {n_rows} x {n_columns}"
    if max(n_rows, n_columns) > EMPTY + PER_ENTRY * n_entries:
        raise file.error(line, f"a {size} is too large for {n_entries} entries")
    if symmetry != "general" and n_rows != n_columns:
        raise file.error(line, f"a {symmetry} {size} is not square")
    layout = Layout(file, " ", 3, (0, 1, 2))
    parts = [layout.read(block, number) for block, number in file.blocks(line)]
    rows, columns, values = (np.concatenate([np.empty(0, int), *(part[k] for part in parts)]) for k in range(3))
    rows = _whole_numbers("row", rows, n_rows, file, line)
    columns = _whole_numbers("column", columns, n_columns, file, line)
    if len(values) != n_entries:
        raise file.error(line, f"{n_entries} entries are announced, but {len(values)} follow: is it cut off?")
    if symmetry != "general":
        mirrored = rows != columns
        sign = -1.0 if symmetry == "skew-symmetric" else 1.0
        rows, columns = np.append(rows, columns[mirrored]), np.append(columns, rows[mirrored])
        values = np.append(values, sign * values[mirrored])
    return Triples(rows, columns, values), (n_rows, n_columns)


def _whole_numbers(name: str, numbers: Any, limit: int, file: TextFile, n_skipped: int) -> Any:
    """Row or column numbers, whole ones of the matrix; the line of the first that is not is named."""
    if numbers.dtype.kind != "i":  # as where a zero stands in front
        found = [int(text) if text.isdecimal() else 0 for text in numbers.tolist()]
        whole = np.array([number if number <= limit else 0 for number in found])
    else:
        whole = numbers
    wrong = np.flatnonzero((whole < 1) | (whole > limit))
    if wrong.size:
        filled = (number for number, text in file.lines() if number > n_skipped and text.strip())
        where = next(islice(filled, int(wrong[0]), None))
        raise file.error(where, f"{name} {numbers[wrong[0]]} is not in 1..{limit}")
    return whole


def _read_head(file: TextFile) -> tuple[str, int, tuple[int, ...]]:
    """The symmetry, and the number of the line with the size, and the size: rows, columns and entries."""
    lines = file.lines()
    symmetry = _check_head(next(lines, (1, ""))[1].split(), file)
    for number, text in lines:
        words = text.split()
        if words and not words[0].startswith("%"):
            if len(words) != 3 or not all(word.isdecimal() for word in words):
                raise file.error(number, "rows, columns and entries are to stand here")
            return symmetry, number, tuple(map(int, words))
    raise ValueError(f"{file.path} ends before the line with its size")


def _check_head(head: list[str], file: TextFile) -> str:
    """The symmetry that the first line of a Matrix Market file names."""
    words = [word.lower() for word in head]
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise file.error(1, "a Matrix Market file begins with %%MatrixMarket matrix ...")
    form, kind, symmetry = words[2:]
    if form != "coordinate" or kind not in ("real", "integer"):
        raise file.error(1, f"ratings need 'coordinate real' or 'coordinate integer', not '{form} {kind}'")
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise file.error(1, f"unknown symmetry {symmetry!r}")
    return symmetry

"""Matrix Market files as users, items and values."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from ell12.datasets.rating_files import Layout, as_text, blocks, opened
from ell12.datasets.ratings import Triples


def read_matrix_market(path: Path) -> tuple[Triples, tuple[int, int]]:
    """The entries of a matrix in coordinate form, with row and column numbers from 1, and its shape."""
    with opened(path) as file:
        head = as_text(file.readline(), path, 1).split()
        symmetry = _check_head(head, path)
        line, size = _size_line(file, path)
    n_rows, n_columns, n_entries = size
    layout = Layout(path, " ", 3, (0, 1, 2))
    parts = [layout.read(block, number) for block, number in blocks(path, line)]
    rows, columns, values = (np.concatenate([np.empty(0, int), *(part[k] for part in parts)]) for k in range(3))
    if rows.dtype.kind != "i" or columns.dtype.kind != "i":
        raise ValueError(f"{path}: row and column numbers must be whole numbers")
    if len(values) != n_entries:
        raise ValueError(
            f"{path}, line {line}: {n_entries} entries are announced, but {len(values)} follow: is it cut off?"
        )
    for name, numbers, limit in (("row", rows, n_rows), ("column", columns, n_columns)):
        outside = np.flatnonzero((numbers < 1) | (numbers > limit))
        if outside.size:
            raise ValueError(
                f"{path}: {name} {numbers[outside[0]]} of entry {outside[0] + 1} is not in 1..{limit}"
            )
    if symmetry != "general":
        mirrored = rows != columns
        sign = -1.0 if symmetry == "skew-symmetric" else 1.0
        rows, columns = np.append(rows, columns[mirrored]), np.append(columns, rows[mirrored])
        values = np.append(values, sign * values[mirrored])
    return Triples(rows, columns, values), (n_rows, n_columns)


def _check_head(head: list[str], path: Path) -> str:
    """The symmetry that the first line of a Matrix Market file names."""
    words = [word.lower() for word in head]
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError(f"{path}, line 1: a Matrix Market file begins with %%MatrixMarket matrix ...")
    form, kind, symmetry = words[2:]
    if form != "coordinate" or kind not in ("real", "integer"):
        raise ValueError(
            f"{path}, line 1: ratings need 'coordinate real' or 'coordinate integer', not '{form} {kind}'"
        )
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise ValueError(f"{path}, line 1: unknown symmetry {symmetry!r}")
    return symmetry


def _size_line(file: IO[bytes], path: Path) -> tuple[int, tuple[int, ...]]:
    for number, line in enumerate(file, start=2):
        words = as_text(line, path, number).split()
        if words and not words[0].startswith("%"):
            if len(words) != 3 or not all(word.isdecimal() for word in words):
                raise ValueError(f"{path}, line {number}: rows, columns and entries are to stand here")
            return number, tuple(map(int, words))
    raise ValueError(f"{path} ends before the line with its size")

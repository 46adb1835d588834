"""Ratings from files: text and Parquet by pandas, Matrix Market by SciPy."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from ell12.datasets.ratings import Columns, Ratings, as_ids, find_columns

SEPARATORS = ("::", "\t", ";", ",", "|", " ")
SAMPLE = 2**16  # bytes from which separator and header are found
MOST_UNPACKED = 100  # times the size of a compressed file
MOST_EMPTY = 10**7  # rows and columns of a matrix without entries
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")  # what a number of 64 bits gives back exactly as it was written


def load_ratings(
    path: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    duplicates: str = "last",
) -> Ratings:
    r"""Ratings from a text file (csv, tsv, MovieLens' u.data and ratings.dat), Matrix Market or Parquet.

    Parameters
    ----------
    path : path
        ``.mtx`` is read by SciPy (ids are row and column numbers from 1), ``.parquet`` and text by pandas. Text
        and ``.mtx`` may be compressed (``.gz``, ``.bz2``; text also ``.xz``).
    columns : three names or positions from 0, optional
        Where user, item and value are. By default well-known names of a header say so (user, userId, movie_id,
        rating, ...), else they are the first three.
    separator : str, optional
        By default the first of ``::``, tab, ``;``, ``,``, ``|`` and blank that the first line contains.
    header : bool, optional
        By default the first line is a header if none of its fields is a number.
    encoding : str, default "utf-8"
        Of the text.
    duplicates : {"last", "first", "mean", "error"}, default "last"
        The value of a (user, item) pair that occurs more than once. A warning gives their number.

    Returns
    -------
    Ratings
        Ids that are all whole numbers become numbers; others stay strings as in the file.

    Raises
    ------
    ValueError
        For a file that cannot be read, or that unpacks to more than 100 times its size. It names the file.

    Examples
    --------
    >>> import tempfile
    >>> from ell12.datasets import load_ratings
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("user,item,rating\nalice,7,4.5\nbob,7,3\n")
    ...     file.flush()
    ...     ratings = load_ratings(file.name)
    >>> ratings.shape, ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist()
    ((2, 1), ['alice', 'bob'], [7], [4.5, 3.0])
    """
    path = Path(path)
    try:
        if path.name.lower().endswith((".mtx", ".mtx.gz", ".mtx.bz2")):
            return _from_matrix_market(path, duplicates)
        frame = read_table(path, separator, header, encoding)
        if columns is None and not isinstance(frame.columns[0], str):  # there is no header
            columns = (0, 1, 2)
        user, item, value = (frame.iloc[:, k] for k in find_columns(frame.columns, columns))
        triples = column_ids(user), column_ids(item), _column_values(value)
        return Ratings.from_triples(*triples, duplicates=duplicates)
    except (TypeError, ValueError, EOFError, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # from the operating system, not from a reader
            raise
        raise ValueError(f"{path}: {error}") from error


def read_table(
    path: Path, separator: str | None = None, header: bool | None = None, encoding: str = "utf-8"
) -> Any:
    """A file as a pandas DataFrame; columns of text stay as they are written."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{path} is read by pandas (ell12's extra tables)") from error
    if path.suffix.lower() in (".parquet", ".pq"):
        return pandas.read_parquet(path)
    content = _unpacked(path)
    first = next((line for line in content[:SAMPLE].decode(encoding, "replace").splitlines() if line.strip()), "")
    separator = separator or next((mark for mark in SEPARATORS if mark in first), ",")
    if header is None:
        header = not any(map(_is_number, next(csv.reader([first], delimiter=separator[0]), [])))
    # Of two equal characters, pandas' fast parser takes one: the columns between them are empty.
    options = {"sep": separator[0] if separator == "::" else separator, "skipinitialspace": True}
    frame = pandas.read_csv(
        io.BytesIO(content),
        header=0 if header else None,
        encoding=encoding,
        dtype=str,
        keep_default_na=False,
        index_col=False,
        **options,
    )
    return frame.iloc[:, ::2] if separator == "::" else frame


def _unpacked(path: Path) -> bytes:
    """The content of a file that may be compressed, up to a limit on its size."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(path.suffix.lower())
    if opener is None:
        return path.read_bytes()
    limit = SAMPLE + MOST_UNPACKED * path.stat().st_size
    with opener(path) as file:
        content = bytes(file.read(limit + 1))
    if len(content) > limit:
        raise ValueError(f"it unpacks to more than {limit:,} bytes")
    return content


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _from_matrix_market(path: Path, duplicates: str) -> Ratings:
    """The entries of a matrix; its shape counts, up to a limit on rows and columns without entries."""
    from scipy.io import mminfo, mmread

    n_rows, n_columns, n_entries = mminfo(path)[:3]
    if n_rows + n_columns > MOST_EMPTY + 100 * n_entries:
        raise ValueError(f"a matrix of {n_rows} x {n_columns} is too large for {n_entries} entries")
    entries = mmread(path)
    if not hasattr(entries, "row"):
        raise ValueError("its matrix is dense; ratings are the entries of a sparse one")
    ids = {"all_users": np.arange(1, n_rows + 1), "all_items": np.arange(1, n_columns + 1)}
    return Ratings.from_triples(entries.row + 1, entries.col + 1, entries.data, duplicates=duplicates, **ids)


def column_ids(column: Any) -> Any:
    """The ids of a column of a file: text that is all whole numbers becomes numbers."""
    import pandas

    codes, found = pandas.factorize(column)
    if (codes < 0).any() or "" in found:
        raise ValueError("an id is missing")
    is_whole = all(isinstance(value, str) and _WHOLE.fullmatch(value) for value in found)
    return (np.array(found, dtype=np.int64) if is_whole else as_ids(list(found)))[codes]


def _column_values(column: Any) -> Any:
    """The numbers of a column of a DataFrame."""
    import pandas

    values = pandas.to_numeric(column, errors="coerce")
    wrong = np.flatnonzero(~np.isfinite(values.to_numpy(dtype=float)))
    if wrong.size:
        raise ValueError(f"the rating {column.iloc[wrong[0]]!r} in row {wrong[0]} is not a finite number")
    return values.to_numpy(dtype=float)

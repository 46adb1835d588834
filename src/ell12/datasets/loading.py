"""Files and containers of ratings of every kind as `ell12.datasets.Ratings`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ell12.datasets.matrix_market import read_matrix_market
from ell12.datasets.rating_files import has_known_names, read_frame, read_parquet, read_text
from ell12.datasets.ratings import Ratings
from ell12.datasets.text_files import kind_of


def load_ratings(
    path: str | os.PathLike[str],
    *,
    columns: tuple[str | int, str | int, str | int] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    duplicates: str = "last",
) -> Ratings:
    r"""Ratings from a file: csv and its kin, u.data, ratings.dat, Matrix Market or Parquet.

    Lines hold user, item, value and perhaps more (a time, say), which is ignored. The separator (``::``, tab,
    ``;``, ``,``, ``|`` or blanks) and the header are detected; blank lines are skipped, and so are comments
    (``#``, ``%``) at the top. Any other line that cannot be read is an error that names it: nothing is dropped.

    Parameters
    ----------
    path : path
        ``.mtx`` is read as Matrix Market in coordinate form (ids are its row and column numbers from 1),
        ``.parquet`` by pandas, everything else as lines of text; a further ``.gz``, ``.bz2``
        or ``.xz`` is unpacked.
    columns : three names or positions from 0, optional
        Where user, item and value are. By default a header with well-known names says so (user, userId, movie_id,
        rating, ...), else they are the first three; where some names say otherwise, it is an error.
    separator, header : optional
        Given instead of detected. A header is a first line in which no field is a number.
    encoding : str, default "utf-8"
        Of the text; UTF-16 and UTF-32 are known by the mark at their beginning.
    duplicates : {"last", "first", "mean", "error"}, default "last"
        What a (user, item) pair that occurs more than once counts with: its last value by default. A warning
        says how many there were.

    Returns
    -------
    Ratings
        Ids that are all whole numbers stay numbers, others are strings exactly as in the file.

    Raises
    ------
    ValueError
        For a file that is damaged, cut off, binary or empty, and for one that would take far more memory than its
        size: packed zeros, a single endless id. It names the file and, where it can, the line.

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
    kind = kind_of(path)
    ids = {}
    if kind == ".mtx":
        for name, given in (("columns", columns), ("separator", separator), ("header", header)):
            if given is not None:
                raise ValueError(
                    f"{path}: {name} is not for Matrix Market files, which say themselves what is where"
                )
        triples, shape = read_matrix_market(path)
        ids = {"all_users": np.arange(1, shape[0] + 1), "all_items": np.arange(1, shape[1] + 1)}
    elif kind in (".parquet", ".pq"):
        triples = read_parquet(path, columns)
    else:
        triples = read_text(path, columns, separator, header, encoding)
    try:
        return Ratings.from_triples(*triples, duplicates=duplicates, **ids)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


MOST_COLUMNS = 4  # Of a frame without known names: user, item, value and perhaps a time; more is another table.


def as_ratings(ratings: Any, columns: tuple[str | int, str | int, str | int] | None = None) -> Ratings:
    """Ratings from the containers in which programs have them.

    Parameters
    ----------
    ratings : Ratings, DataFrame or sparse matrix
        A DataFrame has a line for each rating; its columns are found as `load_ratings` finds those of a file, and
        of a pair that occurs twice the last line counts. Every entry that a sparse matrix stores is a rating,
        zeros too; its users and items are numbered from 0.
    columns : three names or positions from 0, optional
        Where user, item and value are in a DataFrame.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from ell12.datasets import as_ratings
    >>> as_ratings(coo_array(([4.0, 3.0], ([0, 1], [2, 0])), shape=(2, 3))).sparse().toarray()
    array([[0., 0., 4.],
           [3., 0., 0.]])
    """
    if not is_ratings_like(ratings):
        kind = type(ratings).__name__
        raise TypeError(f"ratings must be Ratings, a DataFrame or a sparse matrix; got {kind}")
    if isinstance(ratings, Ratings):
        return ratings
    if hasattr(ratings, "tocoo"):
        entries = ratings.tocoo()
        ids = {"all_users": np.arange(ratings.shape[0]), "all_items": np.arange(ratings.shape[1])}
        return Ratings.from_triples(entries.row, entries.col, entries.data, duplicates="error", **ids)
    triples = read_frame(ratings, columns, "ratings")
    if columns is None and len(ratings.columns) > MOST_COLUMNS and not has_known_names(ratings.columns):
        raise ValueError(
            f"ratings: user, item and value are not known by their names among {len(ratings.columns)} columns; say"
            " which they are with columns=. A matrix of users and items is taken as a sparse one"
        )
    return Ratings.from_triples(*triples)


def is_ratings_like(thing: Any) -> bool:
    """Whether it is one of the containers that `as_ratings` takes, and not a list of ids."""
    is_table = hasattr(thing, "tocoo") or hasattr(thing, "iloc")
    return isinstance(thing, Ratings) or (is_table and len(thing.shape) == 2)

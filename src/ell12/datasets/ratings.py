"""Ratings with ids of any kind: from columns, tables, sparse matrices and files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import mmread
from scipy.sparse import csr_array

Columns = tuple[str | int, str | int, str | int]  # names or positions of user, item and value

# Names by which headers call user, item and value, without case, blanks and underscores; the plainest first.
NAMES = (
    ("user", "userid", "uid", "username", "customerid", "reviewerid", "reviewer"),
    ("item", "itemid", "iid", "movieid", "movie", "bookid", "isbn", "productid", "asin", "artistid", "trackid"),
    ("rating", "value", "score", "stars", "overall", "bookrating", "weight", "plays", "count"),
)
SEPARATORS = ("::", "\t", ";", ",", "|", " ")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")  # what a number of 64 bits gives back exactly as it was written
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Ratings:
    """Ratings as entries of a matrix: ``values[k]`` stands in row ``rows[k]`` and column ``columns[k]``.

    Attributes
    ----------
    rows, columns : int arrays
        Positions in ``users`` and ``items``; sorted by row, then column, no pair twice.
    values : float64 array
        The ratings.
    users, items : arrays
        The ids of the rows and of the columns, sorted: int64 where all of them are whole numbers, else strings.

    Examples
    --------
    >>> from ell12.datasets import Ratings
    >>> ratings = Ratings.from_triples(["eve", "adam", "eve"], [30, 10, 10], [4.0, 3.0, 5.0])
    >>> ratings.shape, ratings.users.tolist(), ratings.items.tolist()
    ((2, 2), ['adam', 'eve'], [10, 30])
    >>> ratings.rows.tolist(), ratings.columns.tolist(), ratings.values.tolist()
    ([0, 1, 1], [0, 0, 1], [3.0, 5.0, 4.0])
    """

    rows: Any
    columns: Any
    values: Any
    users: Any
    items: Any

    @classmethod
    def from_triples(
        cls, users: Any, items: Any, values: Any, *, all_users: Any = None, all_items: Any = None
    ) -> Ratings:
        """Ratings from three columns of equal length, such as those of a data frame.

        Of a pair that occurs more than once the last value counts; a warning says how many there were.

        Parameters
        ----------
        users, items : arrays
            The ids; whole numbers stay numbers, everything else becomes a string.
        values : array
            The ratings; every one must be a finite number.
        all_users, all_items : arrays, optional
            Ids of every row and column, for those that may have no rating; those that occur by default.
        """
        values = _as_values(values)
        users, rows = _index("user", as_ids(users), values.size, all_users)
        items, columns = _index("item", as_ids(items), values.size, all_items)
        order = np.lexsort((columns, rows))  # repeated pairs keep their order
        rows, columns = rows[order], columns[order]
        last = np.append((np.diff(rows) > 0) | (np.diff(columns) > 0), True)
        if not last.all():
            k = np.argmin(last)
            where = f"user {users[rows[k]]!s}, item {items[columns[k]]!s}"
            words = f"{np.sum(~last)} ratings repeat a (user, item) pair, the first {where}: the last one counts"
            warnings.warn(words, UserWarning, stacklevel=2)
        return cls(rows[last], columns[last], values[order][last], users, items)

    @classmethod
    def of(cls, data: Any, columns: Columns | None = None) -> Ratings:
        """Ratings from the containers in which programs have them.

        Parameters
        ----------
        data : Ratings, DataFrame or sparse matrix
            A DataFrame has a line for each rating; of a pair that occurs twice the last line counts. Every entry
            that a sparse matrix stores is a rating, zeros too; its users and items are numbered from 0.
        columns : three names or positions from 0, optional
            Where user, item and value are in a DataFrame, as in `load_ratings`.

        Examples
        --------
        >>> from scipy.sparse import coo_array
        >>> from ell12.datasets import Ratings
        >>> Ratings.of(coo_array(([4.0, 3.0], ([0, 1], [2, 0])), shape=(2, 3))).sparse().toarray()
        array([[0., 0., 4.],
               [3., 0., 0.]])
        """
        if isinstance(data, Ratings):
            return data
        if not is_ratings_like(data):
            raise TypeError(f"ratings must be Ratings, a DataFrame or a sparse matrix; got {type(data).__name__}")
        if hasattr(data, "tocoo"):
            entries, (m, n) = data.tocoo(), data.shape
            ids = {"all_users": np.arange(m), "all_items": np.arange(n)}
            return cls.from_triples(entries.row, entries.col, entries.data, **ids)
        return cls.from_triples(*(data.iloc[:, k].to_numpy() for k in find_columns(data.columns, columns)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users, number of items."""
        return len(self.users), len(self.items)

    def __len__(self) -> int:
        return len(self.values)

    def sparse(self) -> Any:
        """The ratings as a scipy.sparse matrix in which what is stored is what was observed, zeros too."""
        starts = np.searchsorted(self.rows, np.arange(len(self.users) + 1))
        return csr_array((self.values, self.columns, starts), shape=self.shape)

    def part(self, chosen: Any) -> Ratings:
        """Some of the ratings, by their positions or a mask, with all ids."""
        return replace(self, rows=self.rows[chosen], columns=self.columns[chosen], values=self.values[chosen])

    def updated(self, new: Ratings) -> Ratings:
        """These and new ratings together; of a pair in both the new one counts."""
        users, items = (np.concatenate(pair) for pair in ((self.users, new.users), (self.items, new.items)))
        parts = [(part.users[part.rows], part.items[part.columns], part.values) for part in (self, new)]
        triples = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that pairs are rated twice
            return Ratings.from_triples(*triples, all_users=users, all_items=items)

    def rows_of(self, users: Any, unknown: str = "error") -> Any:
        """The rows of some users by their ids; an unknown id is an error that names it, or -1 with "mark"."""
        return _positions("user", self.users, as_ids(users), unknown)

    def columns_of(self, items: Any, unknown: str = "error") -> Any:
        """The columns of some items by their ids; as `rows_of`."""
        return _positions("item", self.items, as_ids(items), unknown)


def as_ids(ids: Any) -> Any:
    """Ids as an int64 array where all are whole numbers, else as an array of strings."""
    words = isinstance(ids, list | tuple) and any(isinstance(value, str) for value in ids)
    ids = np.array(ids, dtype=object) if words else np.asarray(ids)
    if ids.dtype.kind in "iuf":
        if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
            return ids.astype(str)
        if ids.dtype.kind == "f" and not np.all((ids == np.rint(ids)) & (np.abs(ids) < 2**53)):
            raise ValueError("ids must be whole numbers or strings, got numbers with a fraction or NaN")
        return ids.astype(np.int64)
    if any(value is None or type(value).__name__ == "NAType" or value != value for value in ids.flat):  # noqa: PLR0124
        raise ValueError("ids must be whole numbers or strings, got a missing one")
    return ids.astype(str)


def _as_values(values: Any) -> Any:
    """The ratings as a vector of float64."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("values must not be a masked array: leave out what is masked")
    values = np.asarray(values)
    if values.dtype.kind in "mM":  # would become counts of seconds or the like
        raise ValueError(f"values must be numbers, got {values.dtype}")
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"values must be numbers: {error}") from error
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"values must be one column, and there are no ratings in shape {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"every rating must be a finite number, but entry {bad[0]} is {values[bad[0]]}")
    return values


def _index(name: str, ids: Any, size: int, known: Any) -> tuple[Any, Any]:
    """The different ids, sorted, and where each of the column is among them."""
    if ids.shape != (size,):
        raise ValueError(f"{name}s must have one id per value ({size}), got shape {ids.shape}")
    known = np.unique(ids if known is None else as_ids(known))
    return known, _positions(name, known, ids).astype(np.int32 if known.size < 2**31 else np.int64)


def _positions(name: str, known: Any, ids: Any, unknown: str = "error") -> Any:
    order = np.arange(len(known))
    if ids.dtype.kind != known.dtype.kind:  # numbers on one side only: compare what is written
        known, ids = known.astype(str), ids.astype(str)
        order = np.argsort(known)
        known = known[order]
    found = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    is_known = known[found] == ids
    if unknown == "error" and not np.all(is_known):
        missing = ids[~is_known]
        raise ValueError(f"there is no {name} {missing[0]!s} ({missing.size} of {ids.size} ids are unknown)")
    return np.where(is_known, order[found], -1)


def find_columns(names: Any, columns: Columns | None = None, kinds: int = 3) -> tuple[int, ...]:
    """The positions of user, item and, if asked for, value among the names of columns."""
    names = [str(name) for name in names]
    if columns is not None:
        if isinstance(columns, str) or len(columns) != 3:
            raise ValueError(f"columns must be three names or positions: user, item and value; got {columns!r}")
        found = [names.index(name) if name in names else name for name in columns[:kinds]]
        wrong = [k for k in found if isinstance(k, str | bool) or not 0 <= k < len(names)]
        if wrong or len(set(found)) < kinds:
            raise ValueError(f"columns must be three of {', '.join(names)}, or positions; got {columns!r}")
        return tuple(map(int, found))
    plain = [re.sub(r"[\W_]", "", name).lower() for name in names]
    known = [next((plain.index(name) for name in likely if name in plain), None) for likely in NAMES[:kinds]]
    positions = tuple(k for k in known if k is not None)
    if len(positions) == kinds:
        return positions
    if len(names) == kinds and all(k in (None, position) for position, k in enumerate(known)):
        return tuple(range(kinds))
    raise ValueError(f"user, item and value are not known by name among {', '.join(names)}: say columns=")


def is_ratings_like(thing: Any) -> bool:
    """Whether it is one of the containers that `Ratings.of` takes, and not a list of ids."""
    is_table = hasattr(thing, "tocoo") or hasattr(thing, "iloc")
    return isinstance(thing, Ratings) or (is_table and len(thing.shape) == 2)


# Files


def load_ratings(
    path: str | os.PathLike[str],
    *,
    columns: Columns | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
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

    Returns
    -------
    Ratings
        Ids that are all whole numbers become numbers; others stay strings as in the file. Of a pair that occurs
        more than once the last value counts.

    Raises
    ------
    ValueError
        For a file that cannot be read, or that unpacks to more than 1000 times its size. It names the file.

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
            entries = mmread(path)
            if not hasattr(entries, "row"):
                raise ValueError("its matrix is dense; ratings are the entries of a sparse one")
            return Ratings.from_triples(entries.row + 1, entries.col + 1, entries.data)
        frame = read_table(path, separator, header, encoding)
        if columns is None and not isinstance(frame.columns[0], str):  # there is no header
            columns = (0, 1, 2)
        user, item, value = (frame.iloc[:, k] for k in find_columns(frame.columns, columns))
        return Ratings.from_triples(column_ids(user), column_ids(item), value.to_numpy())
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
        raise ImportError(f"{path} is read by pandas, which the extra 'tables' installs") from error
    if path.suffix.lower() in (".parquet", ".pq"):
        return pandas.read_parquet(path)
    text = _unpacked(path).decode(encoding).removeprefix("\ufeff")
    first = text.lstrip().partition("\n")[0]
    separator = separator or next((mark for mark in SEPARATORS if mark in first), ",")
    if header is None:
        header = not any(map(_NUMBER.fullmatch, first.split(separator)))
    # Of two equal characters, pandas' fast parser takes one: the columns between them are empty.
    options = {"sep": separator[0] if separator == "::" else separator, "skipinitialspace": True}
    options |= {"header": 0 if header else None, "dtype": str, "keep_default_na": False, "index_col": False}
    frame = pandas.read_csv(io.StringIO(text), **options)
    return frame.iloc[:, ::2] if separator == "::" else frame


def _unpacked(path: Path) -> bytes:
    """The content of a file that may be compressed, up to a limit on its size."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    limit = 1000 * path.stat().st_size
    with opener(path, "rb") as file:
        content = bytes(file.read(limit + 1))
    if len(content) > limit:
        raise ValueError(f"it unpacks to more than {limit:,} bytes")
    return content


def column_ids(column: Any) -> Any:
    """The ids of a column of a file: text that is all whole numbers becomes numbers."""
    found = column.unique()
    if "" in found:
        raise ValueError("an id is missing")
    is_whole = all(isinstance(value, str) and _WHOLE.fullmatch(value) for value in found)
    return column.to_numpy(dtype=np.int64) if is_whole else as_ids(column.tolist())

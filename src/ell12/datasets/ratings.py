"""Ratings: the entries of a matrix of users and items, with ids of any kind."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

DUPLICATES = ("last", "first", "mean", "error")
Columns = tuple[str | int, str | int, str | int]  # names or positions of user, item and value

# Names by which headers call user, item and value, without case, blanks and underscores; the plainest first.
NAMES = (
    ("user", "userid", "uid", "username", "customerid", "reviewerid", "reviewer"),
    ("item", "itemid", "iid", "movieid", "movie", "bookid", "isbn", "productid", "asin", "artistid", "trackid"),
    ("rating", "value", "score", "stars", "overall", "bookrating", "weight", "plays", "count"),
)
MOST_COLUMNS = 4  # of a table without known names: user, item, value and perhaps a time


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
    n_duplicates : int
        How many ratings of the source repeated a pair and were merged.

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
    n_duplicates: int = 0

    @classmethod
    def from_triples(
        cls,
        users: Any,
        items: Any,
        values: Any,
        *,
        duplicates: str = "last",
        all_users: Any = None,
        all_items: Any = None,
    ) -> Ratings:
        """Ratings from three columns of equal length, such as those of a data frame.

        Parameters
        ----------
        users, items : arrays
            The ids; whole numbers stay numbers, everything else becomes a string.
        values : array
            The ratings; every one must be a finite number.
        duplicates : {"last", "first", "mean", "error"}, default "last"
            What a pair that occurs more than once counts with. A warning says how many there were.
        all_users, all_items : arrays, optional
            Ids of every row and column, for those that may have no rating; those that occur by default.
        """
        if duplicates not in DUPLICATES:
            raise ValueError(f"duplicates must be one of {', '.join(DUPLICATES)}; got {duplicates!r}")
        values = _as_values(values)
        users, rows = _index("users", as_ids(users), values.size, all_users)
        items, columns = _index("items", as_ids(items), values.size, all_items)
        key = rows.astype(np.int64) * len(items) + columns
        order = np.argsort(key, kind="stable")  # repeated pairs keep their order
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        n_duplicates = key.size - first.size
        if n_duplicates:
            pair = np.flatnonzero(np.diff(key) == 0)[0]
            where = f"user {users[key[pair] // len(items)]!s}, item {items[key[pair] % len(items)]!s}"
            _tell_of_duplicates(n_duplicates, where, duplicates)
        merged = _merge(values[order], first, duplicates)
        kept = key[first]
        small = np.int32 if max(len(users), len(items)) < 2**31 else np.int64
        rows, columns = (part.astype(small) for part in np.divmod(kept, max(len(items), 1)))
        return cls(rows, columns, merged, users, items, n_duplicates)

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
            entries = data.tocoo()
            ids = {"all_users": np.arange(data.shape[0]), "all_items": np.arange(data.shape[1])}
            return cls.from_triples(entries.row, entries.col, entries.data, duplicates="error", **ids)
        return cls.from_triples(*(data.iloc[:, k].to_numpy() for k in find_columns(data.columns, columns)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users, number of items."""
        return len(self.users), len(self.items)

    def __len__(self) -> int:
        return len(self.values)

    def sparse(self) -> Any:
        """The ratings as a scipy.sparse matrix in which what is stored is what was observed, zeros too."""
        from scipy.sparse import csr_array

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
    if ids.dtype.kind in "iu":
        if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
            return ids.astype(str)
        return ids.astype(np.int64)
    if ids.dtype.kind == "f":
        if np.all(np.isfinite(ids)) and np.all(ids == np.rint(ids)) and np.all(np.abs(ids) < 2**53):
            return ids.astype(np.int64)
        raise ValueError("ids must be whole numbers or strings, got numbers with a fraction or NaN")
    try:
        missing = any(value is None or value != value for value in ids.tolist())  # noqa: PLR0124 (NaN is not itself)
    except TypeError:  # of pandas' NA no comparison is true or false
        missing = True
    if missing:
        raise ValueError("ids must be whole numbers or strings, got a missing one")
    return ids if ids.dtype.kind == "U" else np.array([str(value) for value in ids.tolist()])


def _as_values(values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("values must not be a masked array: leave out what is masked")
    values = np.asarray(values)
    if values.dtype.kind in "mM":  # would become counts of seconds or the like
        raise ValueError(f"ratings must be numbers, got {values.dtype}")
    try:
        values = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{error} (values must be numbers)") from error
    if values.ndim != 1:
        raise ValueError(f"values must be one column, got shape {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(f"every rating must be a finite number, but entry {bad[0]} is {values[bad[0]]}")
    if values.size == 0:
        raise ValueError("there are no ratings")
    return values


def _index(name: str, ids: Any, size: int, known: Any) -> tuple[Any, Any]:
    """The different ids, sorted, and where each of the column is among them."""
    if ids.shape != (size,):
        raise ValueError(f"{name} must have one id per value ({size}), got shape {ids.shape}")
    if known is not None:
        known = np.unique(as_ids(known))
        return known, _positions(name.removesuffix("s"), known, ids)
    if ids.dtype.kind == "i":
        low, high = int(ids.min()), int(ids.max())
        if high - low < 4 * size + 1000:  # a table of those present is far quicker than sorting
            present = np.zeros(high - low + 1, dtype=bool)
            present[ids - low] = True
            return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[ids - low]
    return np.unique(ids, return_inverse=True)


def _positions(name: str, known: Any, ids: Any, unknown: str = "error") -> Any:
    if unknown not in ("error", "mark"):
        raise ValueError(f"unknown must be 'error' or 'mark', got {unknown!r}")
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


def _tell_of_duplicates(count: int, where: str, rule: str) -> None:
    words = f"{count} rating{'s repeat' if count > 1 else ' repeats'} a (user, item) pair, the first {where}"
    if rule == "error":
        raise ValueError(f"{words}; choose duplicates='last', 'first' or 'mean' to merge them")
    taken = "their mean counts" if rule == "mean" else f"the {rule} one counts"
    warnings.warn(f"{words}: {taken}", UserWarning, stacklevel=3)


def _merge(values: Any, first: Any, rule: str) -> Any:
    """One value per run of equal pairs, which start at ``first``."""
    if first.size == values.size:
        return values
    ends = np.append(first[1:], values.size)
    if rule == "mean":
        return np.add.reduceat(values, first) / (ends - first)
    return values[first] if rule == "first" else values[ends - 1]


def find_columns(names: Any, columns: Columns | None = None, kinds: int = 3) -> tuple[int, ...]:
    """The positions of user, item and, if asked for, value among the names of columns."""
    names = [str(name) for name in names]
    if columns is not None:
        if isinstance(columns, str) or len(columns) != 3:
            raise ValueError(f"columns must be three names or positions: user, item and value; got {columns!r}")
        places = tuple(_place_of(column, names) for column in columns[:kinds])
        if len(set(places)) < kinds:
            raise ValueError(f"columns must be different ones, got {columns!r}")
        return places
    plain = [re.sub(r"[\W_]", "", name).lower() for name in names]
    found = [next((plain.index(name) for name in known if name in plain), None) for known in NAMES[:kinds]]
    if None not in found:
        return tuple(place for place in found if place is not None)
    if len(names) < kinds:
        raise ValueError(f"user, item and value are needed, but there are {len(names)} columns")
    if any(place is not None and place != k for k, place in enumerate(found)) or len(names) > MOST_COLUMNS:
        raise ValueError(f"user, item and value are not known by name among {', '.join(names)}: say columns=")
    return tuple(range(kinds))


def _place_of(column: str | int, names: list[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"there is no column {column!r} among {', '.join(names)}")
        return names.index(column)
    if isinstance(column, bool) or not 0 <= column < len(names):
        raise ValueError(f"there is no column {column}; there are {len(names)}, from 0 on")
    return int(column)


def is_ratings_like(thing: Any) -> bool:
    """Whether it is one of the containers that `Ratings.of` takes, and not a list of ids."""
    is_table = hasattr(thing, "tocoo") or hasattr(thing, "iloc")
    return isinstance(thing, Ratings) or (is_table and len(thing.shape) == 2)

"""Columns of a table: ranges, empty columns, whole numbers, data frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.completion.choosing.choice import is_ratings
from ell12.completion.observed import Observed


@dataclass(frozen=True, eq=False)
class Range:
    """What predictions are cut to: two numbers, or two arrays with one number for each column."""

    low: Any = -math.inf
    high: Any = math.inf

    @classmethod
    def of(cls, clip: Any, observed: Observed) -> Range:
        """The range of the argument ``clip``; "observed" is that of each column of a table, of all ratings."""
        if clip is None:
            return cls()
        if isinstance(clip, str) and clip == "observed":
            return cls._observed(observed)
        n_columns = observed.shape[1]
        if isinstance(clip, str) or not isinstance(clip, Sequence | np.ndarray) or len(clip) != 2:
            raise ValueError(f"clip must be a pair (low, high), 'observed' or None; got {clip!r}")
        found = cls(*(_bound(bound, n_columns) for bound in clip))
        if not np.all(np.less(found.low, found.high)):
            raise ValueError(f"clip must be a pair (low, high) with low < high; got {clip!r}")
        return found

    @classmethod
    def _observed(cls, observed: Observed) -> Range:
        values = observed.values
        if is_ratings(observed):
            return cls(float(values.min()), float(values.max()))
        order, starts = observed.by_column
        seen = np.flatnonzero(np.diff(starts))
        low, high = (np.full(observed.shape[1], bound, values.dtype) for bound in (-np.inf, np.inf))
        low[seen] = np.minimum.reduceat(values[order], starts[seen])
        high[seen] = np.maximum.reduceat(values[order], starts[seen])
        return cls(low, high)

    def cut(self, values: np.ndarray, columns: Any = None) -> np.ndarray:
        """Rows of all columns, or entries of these columns, cut to the range."""
        low, high = (bound if columns is None or not np.ndim(bound) else bound[columns] for bound in self)
        return np.clip(values, low, high)

    def of_whole_numbers(self, columns: np.ndarray) -> Range:
        """The whole numbers within the range of these columns, where there are any."""
        low, high = (bound[columns] if np.ndim(bound) else bound for bound in self)
        inner = Range(np.ceil(low), np.floor(high))
        return Range(np.minimum(inner.low, inner.high), np.maximum(inner.low, inner.high))

    def __iter__(self) -> Any:
        return iter((self.low, self.high))


def _bound(bound: Any, n_columns: int) -> Any:
    if is_number(bound):
        return float(bound)
    if np.shape(bound) != (n_columns,) or not all(map(is_number, bound)):
        raise ValueError(f"clip must hold numbers, or arrays of {n_columns}, one for each column; got {bound!r}")
    return np.asarray(bound, dtype=float)


def empty_columns(observed: Observed) -> np.ndarray:
    """The columns of a table of which no entry is known, and so not even the unit; of ratings none."""
    if is_ratings(observed):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.diff(observed.by_column[1]) == 0)


def incomplete_columns(observed: Observed) -> np.ndarray:
    """The columns in which an entry is missing."""
    return np.flatnonzero(np.diff(observed.by_column[1]) < observed.shape[0])


def without_columns(observed: Observed, columns: np.ndarray) -> Observed:
    """The same entries but for those of some columns."""
    return observed if columns.size == 0 else observed.select(~np.isin(observed.columns, columns))


# Data frames


def is_frame(X: Any) -> bool:
    """Whether X is a pandas DataFrame, or behaves like one."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc") and len(X.shape) == 2


def whole_number_dtypes(X: Any) -> dict[int, Any]:
    """The columns of a data frame whose dtype is integer or boolean, nullable or not, with this dtype."""
    return {place: dtype for place, dtype in enumerate(X.dtypes if is_frame(X) else ()) if dtype.kind in "iub"}


def is_dtype(value: Any) -> bool:
    """Whether it is a dtype of NumPy, or of pandas."""
    return isinstance(value, np.dtype) or (hasattr(value, "na_value") and hasattr(value, "construct_array_type"))


def as_dtype(name: str) -> Any:
    """The dtype of this name, of NumPy or else of pandas."""
    try:
        return np.dtype(name)
    except TypeError:
        from pandas.api.types import pandas_dtype

        return pandas_dtype(name)


def rounded(filled: np.ndarray, columns: np.ndarray, allowed: Range) -> None:
    """Round predictions of some columns in place, to whole numbers within their range."""
    if columns.size:
        filled[:, columns] = allowed.of_whole_numbers(columns).cut(np.rint(filled[:, columns]))


def as_frame(filled: np.ndarray, index: Any, names: Any, dtypes: dict[int, Any]) -> Any:
    """A pandas DataFrame with columns of these dtypes, where their numbers fit."""
    import pandas

    frame = pandas.DataFrame(filled, index=index)
    frame = frame.astype({place: dtype for place, dtype in dtypes.items() if _fits(filled[:, place], dtype)})
    return frame.set_axis(names, axis=1)


def _fits(values: np.ndarray, dtype: Any) -> bool:
    """Whether numbers are whole and in the range of an integer or boolean dtype."""
    limits = None if dtype.kind == "b" else np.iinfo(f"{dtype.kind}{dtype.itemsize}")
    low, high = (0, 1) if limits is None else (limits.min, limits.max)
    return bool(np.all((values >= low) & (values <= high) & (values == np.rint(values))))


def refuse_texts(X: Any) -> None:
    """Say of a data frame with columns that are no numbers what to do with them."""
    named = [str(name) for name, dtype in zip(X.columns, X.dtypes, strict=True) if dtype.kind not in "iubf"]
    if named:
        more = f" and {len(named) - 5} more" if len(named) > 5 else ""
        raise ValueError(
            f"X has columns that are no numbers: {', '.join(named[:5])}{more}. Encode them first, for instance by"
            " scikit-learn's OneHotEncoder in a ColumnTransformer, or leave them out"
        )


def check_number_or_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise unless an argument is a number or one of some words."""
    if not is_number(value) and not (isinstance(value, str) and value in words):
        *allowed, last = ["a number >= 0", *map(repr, words)]
        raise ValueError(f"{name} must be {', '.join(allowed)} or {last}; got {value!r}")

"""Columns of a table: ranges, empty columns, whole numbers, data frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ell12.backend import is_number
from ell12.completion.observed import Observed


@dataclass(frozen=True, eq=False)
class Range:
    """What predictions are cut to: two numbers, or two arrays with one number for each column."""

    low: Any = -math.inf
    high: Any = math.inf

    @classmethod
    def of(cls, clip: Any, observed: Observed, by_column: bool) -> Range:
        """The range of the argument ``clip``; "observed" is that of the known entries, of all or by column."""
        if clip is None:
            return cls()
        if isinstance(clip, str) and clip == "observed":
            return cls._observed(observed, by_column)
        n_columns = observed.shape[1]
        if isinstance(clip, str) or not isinstance(clip, Sequence | np.ndarray) or len(clip) != 2:
            raise ValueError(f"clip must be a pair (low, high), 'observed' or None; got {clip!r}")
        found = cls(*(_bound(bound, n_columns) for bound in clip))
        if not np.all(np.less(found.low, found.high)):
            raise ValueError(f"clip must be a pair (low, high) with low < high; got {clip!r}")
        return found

    @classmethod
    def _observed(cls, observed: Observed, by_column: bool) -> Range:
        values = observed.values
        if not by_column:
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
    if not observed.is_table:
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
    return {
        position: dtype for position, dtype in enumerate(X.dtypes if is_frame(X) else ()) if dtype.kind in "iub"
    }


def rounded(filled: np.ndarray, columns: np.ndarray, allowed: Range) -> None:
    """Round predictions of some columns in place, to whole numbers within their range."""
    if columns.size:
        filled[:, columns] = allowed.of_whole_numbers(columns).cut(np.rint(filled[:, columns]))


def as_series(values: np.ndarray, index: Any, dtype: Any = None) -> Any:
    """A pandas Series, of this dtype where its numbers fit."""
    import pandas

    series = pandas.Series(values, index=index)
    return series.astype(dtype) if dtype is not None and _fits(values, dtype) else series


def as_frame(columns: list[Any], names: Any) -> Any:
    """A pandas DataFrame of some Series."""
    import pandas

    return pandas.concat(columns, axis=1).set_axis(names, axis=1)


def _fits(values: np.ndarray, dtype: Any) -> bool:
    """Whether numbers are whole and in the range of an integer or boolean dtype."""
    limits = None if dtype.kind == "b" else np.iinfo(f"{dtype.kind}{dtype.itemsize}")
    low, high = (0, 1) if limits is None else (limits.min, limits.max)
    return bool(np.all((values >= low) & (values <= high) & (values == np.rint(values))))


@dataclass(frozen=True, eq=False)
class Categories:
    """Texts and categories of a data frame as columns of zeros and ones, missing where the category is.

    Attributes
    ----------
    levels : dict
        The categories of each such column, by its position. Two of them make one column, others one each.
    owners : array of int
        The column of the frame that each encoded column belongs to.
    """

    levels: dict[int, np.ndarray]
    owners: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Categories | None:
        """Those of a data frame; None if all of its columns are numbers."""
        kinds = {k: dtype.kind for k, dtype in enumerate(X.dtypes) if dtype.kind not in "iubf"}
        odd = [str(X.columns[k]) for k, kind in kinds.items() if kind in "Mmc"]
        if odd:
            raise ValueError(f"X has columns that are neither numbers nor categories: {', '.join(odd)}; drop them")
        levels = {k: X.iloc[:, k].dropna().astype(object).unique() for k in kinds}
        levels = {k: np.array(sorted(found, key=str), dtype=object) for k, found in levels.items()}
        widths = [max(len(levels[k]) - (len(levels[k]) == 2), 1) if k in levels else 1 for k in range(X.shape[1])]
        return cls(levels, np.repeat(np.arange(X.shape[1]), widths)) if levels else None

    def encoded(self, X: Any) -> np.ndarray:
        """The columns as numbers, NaN where they are missing; a category never seen is none of the others."""
        parts = []
        for k in range(X.shape[1]):
            column = X.iloc[:, k]
            if k not in self.levels:
                parts.append(column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None])
                continue
            levels = self.levels[k] if len(self.levels[k]) != 2 else self.levels[k][1:]
            part = (column.astype(object).to_numpy()[:, None] == levels[None, :]).astype(np.float64)
            part = part if part.shape[1] else np.zeros((len(column), 1))
            part[column.isna().to_numpy()] = np.nan
            parts.append(part)
        return np.hstack(parts)

    def chosen(self, k: int, values: np.ndarray, column: Any) -> Any:
        """A column of the frame, each missing category replaced by that of the largest value."""
        import pandas

        levels, missing = self.levels[k], column.isna().to_numpy()
        if levels.size == 0:
            return column
        positions = (values[:, 0] > 0.5).astype(int) if levels.size == 2 else values.argmax(axis=1)
        dtype = column.dtype
        if hasattr(column, "cat"):
            more = [level for level in levels if level not in column.cat.categories]
            dtype = column.cat.add_categories(more).dtype if more else dtype
        filled = np.where(missing, levels[positions], column.astype(object).to_numpy())
        return pandas.Series(filled, index=column.index).astype(dtype)

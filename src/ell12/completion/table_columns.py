"""Columns of a table: ranges, empty columns, whole numbers, data frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ell12.backend import is_number
from ell12.completion.observed import Observed


class Range(NamedTuple):
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
        pair = isinstance(clip, Sequence) or (isinstance(clip, np.ndarray) and clip.ndim > 0)
        if isinstance(clip, str) or not pair or len(clip) != 2:
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

    def round_within(self, filled: np.ndarray, columns: np.ndarray) -> None:
        """Round predictions of some columns in place, to whole numbers within the range."""
        inner = Range(np.ceil(self.low), np.floor(self.high))
        filled[:, columns] = inner.cut(np.rint(filled[:, columns]), columns)


def _bound(bound: Any, n_columns: int) -> Any:
    if is_number(bound):
        return float(bound)
    if np.shape(bound) != (n_columns,) or not all(map(is_number, bound)):
        raise ValueError(f"clip must hold numbers, or arrays of {n_columns}, one for each column; got {bound!r}")
    return np.asarray(bound, dtype=float)


# Data frames


def is_frame(X: Any) -> bool:
    """Whether X is a pandas DataFrame, or behaves like one."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc") and len(X.shape) == 2


def as_frame(columns: list[Any], index: Any, dtypes: dict[int, Any]) -> Any:
    """A pandas DataFrame; a column that has a dtype is of that where its numbers fit."""
    import pandas

    fitting = {k: dtype for k, dtype in dtypes.items() if _fits(columns[k], dtype)}
    return pandas.DataFrame(dict(enumerate(columns)), index).astype(fitting)


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
        table = np.empty((len(X), self.owners.size))
        for k in range(X.shape[1]):
            column, own = X.iloc[:, k], self.owners == k
            if k not in self.levels:
                table[:, own] = column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
            else:
                levels = self.levels[k][len(self.levels[k]) == 2 :]  # of two categories the second
                table[:, own] = column.astype(object).to_numpy()[:, None] == levels if levels.size else 0.0
                table[np.ix_(column.isna().to_numpy(), own)] = np.nan
        return table

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

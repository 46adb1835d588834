"""Rows of named columns for people: as text, as HTML for notebooks, as a pandas DataFrame."""

from __future__ import annotations

import html
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.protocols import Array

Format = int | str | Callable[[Any], str]

# Significant digits of a number whose column has no format of its own.
DIGITS = 3
# Numbers from the first to below the second are written without an exponent, as people write them.
PLAIN = (1e-4, 1e7)
# A text column is cut, where the lines would be too long, to no fewer characters than this.
SHORTEST = 12
# Colours are those around the table, and lines half transparent grey, so that light and dark notebooks show both.
STYLE = (
    "<style>.ell12-table{border-collapse:collapse;color:inherit;background:none;font-variant-numeric:tabular-nums;"
    "margin:.4em 0 .8em}"
    ".ell12-table caption{text-align:left;color:inherit;padding:.3em 0;white-space:pre-line}"
    ".ell12-table th,.ell12-table td{padding:.15em .7em;text-align:right;border:0}"
    ".ell12-table th{border-bottom:1px solid rgba(128,128,128,.6)}"
    ".ell12-table .ell12-text{text-align:left}</style>"
)


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    columns : dict of str to sequence
        Numbers, which stand on the right, or words. NaN and None are empty cells.
    caption : str, default ""
        What stands above.
    formats : dict of str to int, str or function
        For some columns: a number of significant digits, a format such as ".1f", or what makes a cell of a value.
        Three significant digits by default.
    max_rows : int, default 30
        How many rows to show; a line says how many are left out. `to_pandas` has them all.
    width : int, default 80
        The length that a line of text should keep to; words that are too long for it are cut.

    Examples
    --------
    >>> from ell12.selection.tables import Table
    >>> Table({"feature": ["age", "bmi"], "coefficient": [0.51234, -24.0], "p value": [float("nan"), 2e-9]})
    feature  coefficient  p value
    -----------------------------
    age            0.512
    bmi          -24.0      2e-09
    """

    columns: Mapping[str, Any]
    caption: str = ""
    formats: Mapping[str, Format] = field(default_factory=dict)
    max_rows: int = 30
    width: int = 80

    def __post_init__(self) -> None:
        columns = {name: _column(values) for name, values in self.columns.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be of equal length, got {lengths}")
        if self.max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {self.max_rows}")
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def __str__(self) -> str:
        """The table as lines of text, numbers with their points below each other."""
        columns = self._cells()
        blocks = [_column_of_text(name, cells, _is_numeric(self.columns[name])) for name, cells in columns.items()]
        self._shorten(blocks)
        lines = ["  ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
        if lines:
            lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*([self.caption] if self.caption else []), *lines, *self._rest()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        numeric = [_is_numeric(values) for values in self.columns.values()]
        rows = zip(*self._cells().values(), strict=True)
        body = "".join(_html_row("td", row, numeric) for row in rows)
        rest = "".join(
            f'<tr><td class="ell12-text" colspan="{len(self.columns)}">{line}</td></tr>' for line in self._rest()
        )
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        head = f"<thead>{_html_row('th', self.columns, numeric)}</thead>"
        return f'{STYLE}<table class="ell12-table">{caption}{head}<tbody>{body}{rest}</tbody></table>'

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        return pd.DataFrame(dict(self.columns))

    def _cells(self) -> dict[str, list[str]]:
        """The rows that are shown, as words."""
        return {
            name: [_cell(value, self.formats.get(name, DIGITS)) for value in values[: self.max_rows]]
            for name, values in self.columns.items()
        }

    def _rest(self) -> list[str]:
        """What to say of the rows that are not shown."""
        rest = len(self) - self.max_rows
        if len(self) == 0 and self.columns:
            return ["(no rows)"]
        return [f"... and {rest:,} more row{'s' if rest > 1 else ''}"] if rest > 0 else []

    def _shorten(self, blocks: list[list[str]]) -> None:
        """Cut words, the longest column first, as far as lines are too long."""
        words = [k for k, values in enumerate(self.columns.values()) if not _is_numeric(values)]
        for k in sorted(words, key=lambda k: -len(blocks[k][0])):
            excess = sum(len(block[0]) + 2 for block in blocks) - 2 - self.width
            length = len(blocks[k][0])
            if excess > 0 and length > SHORTEST:
                size = max(SHORTEST, length - excess)
                blocks[k] = [_cut(cell, size) for cell in blocks[k]]


def significant(value: float, digits: int = DIGITS) -> str:
    """A number with so many significant digits, and no exponent where people write none.

    Examples
    --------
    >>> from ell12.selection.tables import significant
    >>> [significant(value) for value in (0.5, 1234.5, -0.00123456, 2e-9, 0.0)]
    ['0.500', '1234', '-0.00123', '2e-09', '0']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits}g}")
    if not PLAIN[0] <= abs(rounded) < PLAIN[1]:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{value:.{max(decimals, 0)}f}"


def _column(values: Any) -> Array | list[Any]:
    """Values as a NumPy vector, or as a list where they are words."""
    if isinstance(values, list | tuple):
        plain = all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in values)
        return np.asarray(values) if plain and values else list(values)
    values = as_numpy(values)
    return values if values.dtype.kind in "iuf" else values.tolist()


def _is_numeric(values: Any) -> bool:
    return isinstance(values, np.ndarray)


def _cell(value: Any, how: Format) -> str:
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if callable(how):
        return how(value)
    if isinstance(how, str):
        return format(value, how)
    return significant(float(value), how) if isinstance(value, float | np.floating) else str(value)


def _column_of_text(name: str, cells: list[str], numeric: bool) -> list[str]:
    """The name and the cells, padded to one length; numbers have their points below each other."""
    if numeric and not any("e" in cell for cell in cells):
        after = [len(cell) - cell.find(".") if "." in cell else 0 for cell in cells]
        cells = [cell + " " * (max(after, default=0) - size) for cell, size in zip(cells, after, strict=True)]
    width = max(map(len, [name, *cells]))
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in [name, *cells]]


def _html_row(tag: str, cells: Iterable[str], numeric: list[bool]) -> str:
    kinds = ("" if right else ' class="ell12-text"' for right in numeric)
    pairs = zip(cells, kinds, strict=True)
    return "<tr>" + "".join(f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for cell, kind in pairs) + "</tr>"


def _cut(cell: str, size: int) -> str:
    """A padded word cut to a size; dots say that something is missing."""
    return cell[:size] if len(cell.rstrip()) <= size else cell[: size - 3] + "..."

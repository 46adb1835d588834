"""Tables for people, by pandas."""

from __future__ import annotations

import html
import math
from typing import Any


def data_frame(columns: dict[str, Any]) -> Any:
    """A DataFrame of these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables need pandas (ell12's extra tables)") from error
    return pd.DataFrame(columns)


def significant(value: float) -> str:
    """A number with three significant digits; nothing for NaN.

    Examples
    --------
    >>> from ell12.selection.frames import significant
    >>> [significant(value) for value in (0.51234, 1234.5, -0.00123456, 2e-9, float("nan"))]
    ['0.512', '1234', '-0.00123', '2e-09', '']
    """
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def text_of(table: Any, most: int = 30) -> str:
    """The first rows of a DataFrame as text."""
    text = table.head(most).to_string(index=False, float_format=significant, na_rep="", max_colwidth=40)
    rest = len(table) - most
    return text if rest <= 0 else f"{text}\n... and {rest:,} more rows"


def html_of(table: Any, most: int = 30) -> str:
    """The first rows of a DataFrame for a notebook."""
    text = table.head(most).to_html(index=False, float_format=significant, na_rep="", border=0)
    rest = len(table) - most
    return text if rest <= 0 else f"{text}<p>{html.escape(f'... and {rest:,} more rows')}</p>"

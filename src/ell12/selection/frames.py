"""Tables for people, by pandas."""

from __future__ import annotations

import math
from typing import Any


def data_frame(columns: dict[str, Any], index: Any = None) -> Any:
    """A DataFrame of these columns."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tables need pandas (ell12's extra tables)") from error
    return pd.DataFrame(columns, index)


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


# How a DataFrame is printed: three significant digits, and pandas' own dots after thirty rows.
PRINTED = {"index": False, "float_format": significant, "na_rep": "", "max_rows": 30}

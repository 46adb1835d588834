"""P values of many tests, corrected for their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.checks import check_word, naming
from ell12.protocols import Array


def adjusted_p_values(p_values: Any, method: str = "holm") -> Array:
    """P values, corrected for the number of tests.

    Parameters
    ----------
    p_values : array of shape (n_tests,)
        One for each test. A NaN is no test: it stays NaN and does not count.
    method : {"holm", "bh"}, default "holm"
        "holm" (Holm's): those below a level hold a single false one with no more than that probability, however
        the tests depend on each other. "bh" (Benjamini and Hochberg's): of those below a level no more than that
        share is false in the mean, where the tests are independent or depend positively.

    Returns
    -------
    array of shape (n_tests,)
        None below its own p value, none above 1, in the same order.

    See Also
    --------
    confidence_intervals : How large effects may be.

    Examples
    --------
    >>> from ell12 import adjusted_p_values
    >>> adjusted_p_values([0.01, 0.04, 0.03]), adjusted_p_values([0.01, 0.04, 0.03], "bh")
    (array([0.03, 0.06, 0.06]), array([0.03, 0.04, 0.04]))
    """
    check_word(method, "method", "holm", "bh")
    with naming("p_values"):
        p_values = np.asarray(p_values, dtype=float)
    if p_values.ndim != 1 or np.any((p_values < 0) | (p_values > 1)):
        raise ValueError("p_values must be a vector of numbers from 0 to 1")
    adjusted = np.full(p_values.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(p_values))
    order, count = tests[np.argsort(p_values[tests], kind="stable")], tests.size
    ranks = np.arange(1, count + 1)
    if method == "holm":
        values = np.maximum.accumulate((count + 1 - ranks) * p_values[order])
    else:
        values = np.minimum.accumulate((count / ranks * p_values[order])[::-1])[::-1]
    adjusted[order] = np.minimum(values, 1.0)
    return adjusted

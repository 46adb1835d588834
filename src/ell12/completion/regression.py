"""Rows that a low-rank matrix has not seen, completed from their own known entries."""

from __future__ import annotations

import numpy as np

from ell12.completion.complete import Completion
from ell12.completion.observed import Observed
from ell12.completion.sweeps import solve_rows
from ell12.protocols import Array


def fit_rows(completion: Completion, observed: Observed, slopes: Array) -> Array:
    """Rows of known entries, completed by a regression on the columns V of a fitted matrix; dense.

    With ``H = V diag(sqrt(s))`` row i is ``H w_i`` where ``(H_i'H_i + diag(slopes)) w_i = H_i'o_i``, the slopes
    being those of the penalty at the singular values s. At a stationary point the fitted rows satisfy
    this themselves: it is the first-order condition, row by row.

    Parameters
    ----------
    completion : Completion
        The fit.
    observed : Observed
        The known entries of the new rows, as many columns as the fit has.
    slopes : array
        The penalty's derivatives by the singular values.
    """
    x, offsets = completion.x, completion.offsets.for_rows(observed)
    root = np.sqrt(x.s)
    H = x.V * root
    values = (observed.values - offsets.entries(observed.rows, observed.columns)).astype(x.dtype, copy=False)
    # A slope of zero, that of a matrix of rank one, leaves a row without known entries undetermined: it is zero.
    floor = np.finfo(x.dtype).eps * (float(x.s[0]) if x.rank else 1.0)
    ridge = np.maximum(slopes, floor)
    prior = np.zeros((observed.shape[0], x.rank), dtype=x.dtype)
    W = solve_rows(observed.row_starts, observed.columns, values, H, ridge, prior)
    return offsets.add_to(W @ H.T)

"""From rows and targets to a loss and back: centring, the intercept, sample weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ell12.centering import CenteredColumns
from ell12.losses import LinearLoss
from ell12.protocols import Array


class Design:
    """The columns of X, made ready for a solver.

    Where there is an intercept the columns are centred, which changes the intercept alone and makes the problem
    easier. The squared loss then needs no intercept; others get one as the last entry of x (``constant``).
    A sparse X is centred implicitly.
    """

    def __init__(self, X: Any, sample_weight: Any, *, center: bool, constant: bool) -> None:
        self.sample_weight = sample_weight
        self.total = float(X.shape[0] if sample_weight is None else sample_weight.sum(dtype=np.float64))
        if self.total == 0:
            raise ValueError("sample_weight sums to zero: no sample is left to fit")
        self.constant = constant
        self.means = self.mean(X) if center else np.zeros(X.shape[1], dtype=X.dtype)
        if not center:
            self.A = X
        elif scipy.sparse.issparse(X):
            self.A = CenteredColumns(X, self.means, constant)
        else:
            ones = np.ones((X.shape[0], 1), dtype=X.dtype)
            self.A = np.hstack([X - self.means, ones]) if constant else X - self.means

    def mean(self, values: Any) -> Array:
        """The mean over samples, weighted; summed in double precision."""
        if scipy.sparse.issparse(values):
            weight = np.ones(values.shape[0]) if self.sample_weight is None else self.sample_weight
            mean = (values.T @ weight.astype(np.float64)) / self.total
        else:
            mean = np.average(values, axis=0, weights=self.sample_weight)
        return np.asarray(mean, dtype=values.dtype)

    def problem(self, kind: type[LinearLoss], target: Array, level: float = 0.0) -> Problem:
        """The mean loss of this kind on a target; ``level`` is what was subtracted from the target."""
        loss = kind(self.A, target, sample_weight=self.sample_weight, scale=1 / self.total)
        return Problem(loss, self.means, level, self.constant)


@dataclass(frozen=True)
class Problem:
    """A loss, and how its unknown x makes coefficients and an intercept.

    Parameters
    ----------
    loss : Loss
        Of columns less their means.
    means : array of shape (n_features,)
        The means, zeros where there is no intercept.
    level : float
        The intercept for centred columns, where x does not hold it.
    constant : bool
        Whether x holds it, as its last entry.
    """

    loss: Any
    means: Array
    level: float
    constant: bool

    def coefficients(self, x: Array) -> tuple[Array, float]:
        """The coefficients of the columns of X as they were given, and the intercept."""
        coef = x[:-1] if self.constant else x
        level = float(x[-1]) if self.constant else self.level
        return coef, level - float(self.means @ coef)

    def unknown(self, coef: Array, intercept: float) -> Array:
        """The x that has these coefficients and this intercept: the inverse of `coefficients`."""
        if not self.constant:
            return coef
        return np.append(coef, np.asarray(intercept + self.means @ coef, dtype=coef.dtype))


def centered_target(design: Design, y: Array) -> tuple[Array, float]:
    """The target less its mean, and the mean. What this leaves of a constant is rounding, and becomes zero."""
    mean = design.mean(y)
    rest = y - mean
    rounding = 8 * np.finfo(y.dtype).eps * abs(mean)
    return np.where(np.abs(rest).max() <= rounding, 0, rest).astype(y.dtype), float(mean)

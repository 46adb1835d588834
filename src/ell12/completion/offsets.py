"""What is subtracted from known entries before a fit: means or biases; the scale of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12.backend import as_numpy, device, namespace
from ell12.completion.observed import Observed
from ell12.completion.squared_error import CompletionLoss
from ell12.protocols import Array

SHRINKAGE = 5.0  # The belief that a bias is zero counts as much as this many known entries.
SWEEPS = 10  # Biases of rows and columns are found in turn, this many times.


@dataclass(frozen=True, eq=False)
class Offsets:
    """``scales_j (x_ij + mean + rows_i + columns_j)``: what makes the completed matrix of the low-rank one.

    Attributes
    ----------
    mean : float
        The same for all entries.
    rows, columns : arrays, optional
        One number for each row, each column; None is zero.
    scales : array, optional
        One factor for each column; None is one. NaN is a column of which nothing is known, not even its unit.
    """

    mean: float = 0.0
    rows: Array | None = None
    columns: Array | None = None
    scales: Array | None = None

    def entries(self, rows: Array, columns: Array, values: Any = 0.0) -> Any:
        """The completed matrix at pairs of row and column, from the values of the low-rank one there."""
        total = values + self._summed(rows, columns)
        return total if self.scales is None else total * _at(self.scales, columns)

    def subtracted_from(self, observed: Observed) -> Observed:
        """The known entries as the low-rank matrix should have them."""
        values = observed.values if self.scales is None else observed.values / _at(self.scales, observed.columns)
        return replace(observed, values=values - self._summed(observed.rows, observed.columns))

    def add_to(self, X: Array) -> Array:
        """The completed matrix of a dense one of low rank."""
        X = X + self.mean
        X = X if self.rows is None else X + self.rows[:, None]
        X = X if self.columns is None else X + self.columns[None, :]
        return X if self.scales is None else X * self.scales

    def for_rows(self, observed: Observed) -> Offsets:
        """The same offsets for other rows, whose biases are found from their own known entries."""
        if self.rows is None:
            return self
        residual = replace(self, rows=None).subtracted_from(observed).values
        return replace(self, rows=Sides(observed).row_biases(residual))

    @property
    def unknown_units(self) -> np.ndarray:
        """The columns of which nothing is known, where columns have units of their own."""
        return np.flatnonzero(np.isnan(0.0 if self.scales is None else as_numpy(self.scales)))

    def _summed(self, rows: Array, columns: Array) -> Any:
        total: Any = self.mean
        total = total if self.rows is None else total + _at(self.rows, rows)
        return total if self.columns is None else total + _at(self.columns, columns)


def quotient(a: Array, b: Array) -> Array:
    """``a / b``, zero where b is."""
    xp = namespace(a)
    return xp.where(b > 0, a / xp.where(b > 0, b, 1), 0)


def _at(numbers: Array, positions: Array) -> Array:
    return namespace(numbers).take(numbers, positions, axis=0)


def fit_offsets(observed: Observed, center: str | None, scale: str | None = None) -> Offsets:
    """The offsets of a kind.

    Parameters
    ----------
    observed : Observed
        The known entries.
    center : {None, "mean", "columns", "biases"}
        Nothing; the mean of all; the mean of each column (of all where a column has no known entry); or the mean
        of all plus a bias of each row and of each column, found together by least squares and shrunk to zero.
    scale : {None, "columns"}, optional
        "columns" divides each column by the standard deviation of its known entries, and subtracts its mean
        before biases are estimated, unshrunken: the columns have units of their own.

    Examples
    --------
    >>> from ell12 import Observed
    >>> from ell12.completion.offsets import fit_offsets
    >>> fit_offsets(Observed([0, 1], [0, 1], [1.0, 3.0], (2, 2)), "mean").mean
    2.0
    """
    if scale is None and center is None:
        return Offsets()
    xp, values, sides = namespace(observed.values), observed.values, Sides(observed)
    if scale is None:
        mean = float(xp.mean(values))
        if center == "columns":
            return Offsets(mean, columns=sides.column_means(values - mean))
        return Offsets(mean, *sides.biases(values - mean)) if center == "biases" else Offsets(mean)
    # Standard deviations suit heavy tails too: by a robust scale, an outlier would rule the squared errors of all.
    means, residual, scales = sides.column_moments(values)
    scales = xp.where(scales > 0, scales, xp.where(means == 0, 1.0, xp.abs(means)))  # a constant column
    scales = xp.where(sides.counts[1] > 0, scales, xp.nan)
    if center is None:
        return Offsets(scales=scales)
    means = xp.where(sides.counts[1] > 0, means / scales, 0.0)
    if center != "biases":  # the mean of standardised columns is zero
        return Offsets(columns=means, scales=scales)
    rows, columns = sides.biases(residual / _at(scales, observed.columns))
    return Offsets(0.0, rows, means + columns, scales)


class Sides:
    """Means of the known entries along each row and each column; of none of them, zero."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        xp = namespace(observed.values)
        kind = {"dtype": observed.values.dtype, "device": device(observed.values)}
        self.ones = tuple(xp.ones(size, **kind) for size in observed.shape)
        pattern = observed.matrix(xp.ones_like(observed.values))
        self.counts = pattern @ self.ones[1], pattern.T @ self.ones[0]

    def row_biases(self, values: Array) -> Array:
        """The mean of each row, shrunken to zero."""
        return quotient(self.observed.matrix(values) @ self.ones[1], self.counts[0] + SHRINKAGE)

    def column_means(self, values: Array, shrinkage: float = 0.0) -> Array:
        """The mean of each column, as if ``shrinkage`` entries more were zero."""
        return quotient(self.observed.matrix(values).T @ self.ones[0], self.counts[1] + shrinkage)

    def biases(self, residual: Array) -> tuple[Array, Array]:
        """Shrunken biases of rows and columns, found in turn."""
        rows = self.row_biases(residual)
        for _ in range(SWEEPS):
            columns = self.column_means(residual - _at(rows, self.observed.rows), SHRINKAGE)
            rows = self.row_biases(residual - _at(columns, self.observed.columns))
        return rows, columns

    def column_moments(self, values: Array) -> tuple[Array, Array, Array]:
        """The mean of each column, what it leaves, and the standard deviation; zero where that may be rounding.

        The mean is free of the rounding of long sums in single precision, and no square of a very large or small
        number is formed.
        """
        xp, columns = namespace(values), self.observed.columns
        means = self.column_means(values)
        means = means + self.column_means(values - _at(means, columns))
        residual = values - _at(means, columns)
        size = self.column_means(xp.abs(residual))
        size = xp.where(size > 0, size, 1.0)
        relative = residual / _at(size, columns)
        deviations = size * xp.sqrt(self.column_means(relative * relative))
        rounding = 100 * float(xp.finfo(values.dtype).eps) * xp.abs(means)
        return means, residual, xp.where(deviations > rounding, deviations, 0.0)


@dataclass(frozen=True, eq=False)
class Centred:
    """Known entries without their offsets: what completions at all strengths, weights and ranks share."""

    center: str | None
    scale: str | None
    offsets: Offsets
    loss: CompletionLoss

    @classmethod
    def of(cls, observed: Observed, center: str | None, scale: str | None = None) -> Centred:
        """Find the offsets and subtract them."""
        offsets = fit_offsets(observed, center, scale)
        return cls(center, scale, offsets, CompletionLoss(offsets.subtracted_from(observed)))

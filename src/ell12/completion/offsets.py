"""What is taken off the known entries before a low-rank matrix is fitted to them: a mean, or biases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import device, namespace
from ell12.completion.observed import Observed
from ell12.protocols import Array

CENTERS = (None, "mean", "columns", "biases")
SHRINKAGE = 5.0  # The belief that a bias is zero counts as much as this many known entries.
SWEEPS = 10  # Biases of rows and columns are found in turn, this many times.


@dataclass(frozen=True, eq=False)
class Offsets:
    """``mean + rows_i + columns_j``, what is added to entry (i, j) of the low-rank matrix.

    Attributes
    ----------
    mean : float
        The same for all entries.
    rows, columns : arrays, optional
        One number for each row, each column; None is zero.
    """

    mean: float = 0.0
    rows: Array | None = None
    columns: Array | None = None

    def entries(self, rows: Array, columns: Array) -> Any:
        """The offsets at pairs of row and column."""
        total: Any = self.mean
        if self.rows is not None:
            total = total + namespace(self.rows).take(self.rows, rows, axis=0)
        if self.columns is not None:
            total = total + namespace(self.columns).take(self.columns, columns, axis=0)
        return total

    def taken_off(self, observed: Observed) -> Observed:
        """The known entries less their offsets."""
        return replace(observed, values=observed.values - self.entries(observed.rows, observed.columns))

    def add_to(self, X: Array) -> Array:
        """A dense matrix with the offsets added to all its entries."""
        X = X + self.mean
        X = X if self.rows is None else X + self.rows[:, None]
        return X if self.columns is None else X + self.columns[None, :]

    def for_rows(self, observed: Observed) -> Offsets:
        """The same offsets for other rows, whose biases are found from their own known entries."""
        if self.rows is None:
            return self
        without = Offsets(self.mean, columns=self.columns)
        residual = observed.values - without.entries(observed.rows, observed.columns)
        return Offsets(self.mean, _Sides(observed).row_means(residual, SHRINKAGE), self.columns)


def fit_offsets(observed: Observed, center: str | None) -> Offsets:
    """The offsets of a kind.

    Parameters
    ----------
    observed : Observed
        The known entries.
    center : {None, "mean", "columns", "biases"}
        Nothing; the mean of all; the mean of each column (of all where a column has no known entry); or the mean
        of all plus a bias of each row and of each column, found together by least squares and shrunk to zero.

    Examples
    --------
    >>> fit_offsets(Observed([0, 1], [0, 1], [1.0, 3.0], (2, 2)), "mean").mean
    2.0
    """
    if not (center is None or isinstance(center, str)) or center not in CENTERS:
        raise ValueError(f"center must be one of {', '.join(map(repr, CENTERS))}; got {center!r}")
    if center is None:
        return Offsets()
    xp = namespace(observed.values)
    mean = float(xp.mean(observed.values))
    if center == "mean":
        return Offsets(mean)
    sides, residual = _Sides(observed), observed.values - mean
    if center == "columns":
        return Offsets(mean, columns=sides.column_means(residual, 0.0))
    rows = sides.row_means(residual, SHRINKAGE)
    for _ in range(SWEEPS):
        columns = sides.column_means(residual - xp.take(rows, observed.rows, axis=0), SHRINKAGE)
        rows = sides.row_means(residual - xp.take(columns, observed.columns, axis=0), SHRINKAGE)
    return Offsets(mean, rows, columns)


class _Sides:
    """Means of the known entries along each row and each column; of none of them, zero."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        values = observed.values
        xp = namespace(values)
        m, n = observed.shape
        self.ones = tuple(xp.ones(size, dtype=values.dtype, device=device(values)) for size in (m, n))
        pattern = observed.matrix(xp.ones_like(values))
        self.counts = pattern @ self.ones[1], pattern.T @ self.ones[0]

    def row_means(self, values: Array, shrinkage: float) -> Array:
        """The mean of each row, as if ``shrinkage`` entries more were zero."""
        return self._mean(self.observed.matrix(values) @ self.ones[1], self.counts[0], shrinkage)

    def column_means(self, values: Array, shrinkage: float) -> Array:
        """The mean of each column, as if ``shrinkage`` entries more were zero."""
        return self._mean(self.observed.matrix(values).T @ self.ones[0], self.counts[1], shrinkage)

    @staticmethod
    def _mean(sums: Array, counts: Array, shrinkage: float) -> Array:
        return sums / (namespace(counts).where(counts > 0, counts, 1) + shrinkage)

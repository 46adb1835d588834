"""How large errors of predictions are, learnt at known entries that were hidden: quantiles, and draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import scipy.optimize

from ell12.completion.choosing.choice import is_ratings
from ell12.completion.observed import Observed
from ell12.completion.offsets import fit_offsets
from ell12.protocols import Array

# A tenth of the entries is hidden at a time: a fit without it errs nearly as a fit to all.
FOLDS = 10
# Folds are hidden in turn until this many entries have been. Quantiles of so many are exact to 0.2 %, and one
# fold of half a million ratings is enough.
ENOUGH = 50_000
# The belief that the errors of a column are as large as those of others counts as this many hidden entries, and
# the belief that they are distributed alike as this many. On synthetic tables and ratings, smaller numbers gave
# wider intervals for columns of few entries, and larger ones no narrower intervals.
SIZE_BELIEF, SHAPE_BELIEF = 30.0, 100.0
# A row or a column of c known entries adds to the size of errors in proportion to 1 / (c + this).
COUNT_SHIFT = 10.0


@dataclass(frozen=True, eq=False)
class HiddenErrors:
    """What was predicted wrongly at known entries that a fit had not seen.

    Attributes
    ----------
    errors : array
        Value less prediction.
    columns : array of int
        The column of each.
    row_counts, column_counts : arrays
        How many other entries of its row, and of its column, the fit did see.
    """

    errors: Array
    columns: Array
    row_counts: Array
    column_counts: Array

    @classmethod
    def of(
        cls, train: Observed, hidden: Observed, predicted: Array, column_counts: Array | None = None
    ) -> HiddenErrors:
        """Hidden entries as they were predicted from the others of their rows; of columns more may be known."""
        rows, columns = counts(train)
        columns = columns if column_counts is None else column_counts
        errors = hidden.values.astype(np.float64) - predicted
        return cls(errors, hidden.columns, rows[hidden.rows], columns[hidden.columns])

    def select(self, kept: Array) -> HiddenErrors:
        """Those where ``kept`` is true."""
        return HiddenErrors(*(getattr(self, part.name)[kept] for part in fields(self)))


def counts(observed: Observed) -> tuple[Array, Array]:
    """How many known entries each row has, and each column."""
    rows, columns = observed.shape
    return np.bincount(observed.rows, minlength=rows), np.bincount(observed.columns, minlength=columns)


def folds(size: int, count: int, random: np.random.Generator) -> Iterator[Array]:
    """Random parts of equal size, one after the other, as masks, until there are enough for ``count`` in all."""
    part = random.permutation(size) % FOLDS
    for fold in range(min(FOLDS, size)):
        if fold * count >= ENOUGH * FOLDS:
            return
        yield part == fold


class Calibration:
    """How errors are distributed, by column and by how much is known of the row and of the column.

    An error is a size times a score. The size is the unit of the column (in a table the standard deviation of its
    known entries), times what counts of known entries predict, times a factor of the column. The scores of a
    column are those of its own hidden entries, mixed with those of all columns: the more it has of its own, the
    less of the others.
    """

    def __init__(self, observed: Observed, parts: list[HiddenErrors]) -> None:
        n_columns, hidden = observed.shape[1], _joined(parts)
        self.column_counts = counts(observed)[1]
        self.units = np.ones(n_columns)
        if not is_ratings(observed):
            self.units = np.asarray(fit_offsets(observed, "columns", "columns").scales, dtype=np.float64)
            self.units = np.where(self.column_counts > 1, self.units, np.nan)  # one entry tells no unit
        in_units = np.abs(hidden.errors) / self.units[hidden.columns]
        told = np.isfinite(in_units)
        hidden, in_units, self.n_hidden = hidden.select(told), in_units[told], int(np.sum(told))
        known = (hidden.row_counts, hidden.column_counts)
        features = np.column_stack([np.ones(self.n_hidden), *(1 / (count + COUNT_SHIFT) for count in known)])
        self.weights = scipy.optimize.nnls(features, in_units)[0] if self.n_hidden else np.ones(3)
        ratios = _ratio(in_units, features @ self.weights)
        self.numbers = np.bincount(hidden.columns, minlength=n_columns)
        sums = SIZE_BELIEF + np.bincount(hidden.columns, ratios, minlength=n_columns)
        self.factors = sums / (SIZE_BELIEF + self.numbers)
        # The factor that an entry is judged by is made without it, as that of a new entry is.
        without = (sums[hidden.columns] - ratios) / (SIZE_BELIEF + self.numbers[hidden.columns] - 1)
        signed = np.sign(hidden.errors) * _ratio(ratios, without)
        order = np.argsort(hidden.columns, kind="stable")
        self.scores, self.columns = signed[order], hidden.columns[order]
        self.starts = np.concatenate([[0], np.cumsum(self.numbers)])

    def size(self, row_counts: Array, columns: Array) -> Array:
        """The size of errors in rows of so many known entries, at these columns of the fit."""
        constant, by_row, by_column = self.weights
        size = constant + by_row / (row_counts + COUNT_SHIFT)
        size = size + by_column / (self.column_counts[columns] + COUNT_SHIFT)
        return size * (self.factors * self.units)[columns]

    def quantiles(self, coverage: float) -> Array:
        """For each column the score that this share of the absolute scores does not exceed; infinite if unknown.

        Each distribution gets one score more, which is infinite, as the rule of conformal prediction asks for.
        """
        pool = np.append(self._sorted, np.inf)
        own_share = self.numbers / (self.numbers + SHAPE_BELIEF)
        low, high = np.zeros(self.numbers.size, dtype=int), np.full(self.numbers.size, self.n_hidden)
        absolute = np.abs(self.scores)
        while np.any(low < high):  # the first place in the pool at which the mixture reaches the coverage
            middle = (low + high) // 2
            below = absolute <= pool[middle][self.columns]
            own = np.bincount(self.columns[below], minlength=self.numbers.size) / (self.numbers + 1)
            mixture = own_share * own + (1 - own_share) * (middle + 1) / (self.n_hidden + 1)
            reached = mixture >= coverage
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
            low = np.minimum(low, high)
        return pool[low]

    def draw(self, columns: Array, random: np.random.Generator) -> Array:
        """One signed score for each of these columns, out of the same mixtures."""
        numbers = self.numbers[columns]
        own = random.random(columns.size) * (numbers + SHAPE_BELIEF) < numbers
        place = random.random(columns.size)
        places = np.where(own, self.starts[columns] + place * numbers, place * self.n_hidden).astype(np.int64)
        return self.scores[places]

    def rest(self, columns: Array, size: Array, fits: Array) -> Array:
        """What is left of the size of errors for noise, if fits to other rows differ so much (a row for each fit).

        Errors at hidden entries hold both: what the fit has not learnt, in which fits to other rows differ too,
        and noise. Only the second is to be added to such a fit.
        """
        if fits.shape[0] == 1:
            return np.ones(columns.size)
        n_columns, own = self.numbers.size, self.numbers / (self.numbers + SHAPE_BELIEF)
        squares = np.bincount(self.columns, self.scores**2, minlength=n_columns) / np.maximum(self.numbers, 1)
        squares = own * squares + (1 - own) * np.mean(self.scores**2)
        whole = np.bincount(columns, size**2, minlength=n_columns) * squares
        learnt = np.bincount(columns, np.var(fits, axis=0, ddof=1), minlength=n_columns)
        return np.sqrt(np.clip(1 - _ratio(learnt, whole), 0, 1))[columns]

    @cached_property
    def _sorted(self) -> Array:
        return np.sort(np.abs(self.scores))


def _joined(parts: list[HiddenErrors]) -> HiddenErrors:
    """All of them as one."""
    names = [part.name for part in fields(HiddenErrors)]
    nothing = np.zeros(0, dtype=int)
    return HiddenErrors(*(np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in names))


def _ratio(values: Array, sizes: Array) -> Array:
    """``values / sizes``, where nothing divided by nothing is nothing: errors of an exact fit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == 0, 0.0, values / sizes)

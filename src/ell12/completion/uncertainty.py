"""Intervals and draws of missing entries by conformal prediction."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.optimize

from ell12.checks import check_counts, check_share, generator
from ell12.completion.complete import completed
from ell12.completion.hidden_entries import HELD_OUT, ROUGH_TOL
from ell12.completion.observed import Observed
from ell12.completion.offsets import SHRINKAGE, Centred, fit_offsets
from ell12.completion.table_columns import Range
from ell12.protocols import Array, with_alpha


def counts(observed: Observed) -> tuple[Array, Array]:
    """How many known entries each row has, and each column."""
    rows, columns = observed.shape
    return np.bincount(observed.rows, minlength=rows), np.bincount(observed.columns, minlength=columns)


def folds(size: int, random: np.random.Generator) -> Iterator[Array]:
    """Random parts of equal size, one after the other, as masks."""
    count = round(1 / HELD_OUT)
    part = random.permutation(size) % count
    for fold in range(min(count, size)):
        yield part == fold


class Calibration:
    """How errors are distributed, by column and by how much is known of the row and of the column.

    An error is a size times a score. The size is the unit of the column (in a table the standard deviation of its
    known entries), times what counts of known entries predict, times a factor of the column, shrunk to one as
    biases are to zero. The scores of all columns are taken for draws from one distribution.
    """

    def __init__(self, observed: Observed, hidden: Array) -> None:
        n_columns, columns = observed.shape[1], hidden[1].astype(int)
        self.column_counts = counts(observed)[1]
        self.units = np.ones(n_columns)
        if observed.is_table:
            self.units = np.asarray(fit_offsets(observed, "columns", "columns").scales, dtype=np.float64)
            self.units = np.where(self.column_counts > 1, self.units, np.nan)  # one entry tells no unit
        in_units = np.abs(hidden[0]) / self.units[columns]
        known = np.isfinite(in_units)
        (errors, _, *seen), columns, in_units = hidden[:, known], columns[known], in_units[known]
        self.n_hidden = columns.size
        features = np.column_stack([np.ones(self.n_hidden), *(1 / (count + SHRINKAGE) for count in seen)])
        self.weights = scipy.optimize.nnls(features, in_units)[0] if self.n_hidden else np.ones(3)
        ratios = _ratio(in_units, features @ self.weights)
        numbers = np.bincount(columns, minlength=n_columns)
        sums = SHRINKAGE + np.bincount(columns, ratios, minlength=n_columns)
        self.factors = sums / (SHRINKAGE + numbers)
        # The factor that an entry is compared with is made without it, as that of a new entry is.
        without = (sums[columns] - ratios) / (SHRINKAGE + numbers[columns] - 1)
        self.scores = np.sign(errors) * _ratio(ratios, without)

    def size(self, row_counts: Array, columns: Array) -> Array:
        """The size of errors in rows with this number of known entries, at these columns of the fit."""
        constant, by_row, by_column = self.weights
        size = constant + by_row / (row_counts + SHRINKAGE)
        size = size + by_column / (self.column_counts[columns] + SHRINKAGE)
        return size * (self.factors * self.units)[columns]

    def quantile(self, coverage: float) -> float:
        """The quantile of the absolute scores and of one that may be any; infinite if unknown."""
        position = math.ceil(coverage * (self.n_hidden + 1) * (1 - 1e-12))  # 0.9 times 10 is a rounding above 9
        return float(np.append(np.sort(np.abs(self.scores)), np.inf)[min(position - 1, self.n_hidden)])

    def rest(self, columns: Array, size: Array, fits: Array) -> Array:
        """What is left of the size of errors for noise, if fits to other rows differ so much (a row for each fit).

        Errors at hidden entries hold what the fit has not learnt, in which fits differ too, and noise.
        """
        if fits.shape[0] == 1:
            return np.ones(columns.size)
        whole = np.bincount(columns, size**2) * np.mean(self.scores**2)
        learnt = np.bincount(columns, np.var(fits, axis=0, ddof=1))
        return np.sqrt(np.clip(1 - _ratio(learnt, whole), 0, 1))[columns]


def _ratio(values: Array, sizes: Array) -> Array:
    """``values / sizes``, where nothing divided by nothing is nothing: errors of an exact fit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == 0, 0.0, values / sizes)


class Uncertain:
    """The part of `L12Imputer` that says how far its values may be off."""

    def intervals(self: Any, rows: Any, columns: Any = None, *, coverage: float = 0.9) -> tuple[Array, Array]:
        """Intervals that hold what is missing with a given probability, by conformal prediction.

        Parameters
        ----------
        rows, columns : arrays of int
            Pairs of row and column of the training data, as in `predict`. Without columns, ``rows`` is a matrix as
            in `transform`; a known entry of it is an interval of one point.
        coverage : float, default 0.9
            The share of missing entries that should lie in their intervals.

        Returns
        -------
        lower, upper : arrays
            Vectors for pairs, else of the shape of the matrix, without columns that `transform` leaves out.
            Infinite where too little is known to tell.

        Warns
        -----
        UserWarning
            Where fewer entries are known than the coverage asks for.

        Notes
        -----
        Known entries are hidden in ten parts in turn, each is predicted by a fit to the others with the choices
        that were made, and the quantile of these errors is what an interval extends to both sides. Errors are
        compared in units that follow the column and how many entries of the row and the column are known. Rows
        that were not in the training data are predicted by fits to other rows only. Intervals end at ``clip``
        where it is a pair, or where it is "observed" and several known entries lie on the bound, and at whole
        numbers in the columns of a DataFrame that hold such.

        The share holds on average if entries are missing at random. The first call costs ten fits.
        """
        check_share(coverage, "coverage")
        self._refuse_categories("intervals")
        if columns is None:
            observed, values = self._completed(rows)
            calibration = self._calibration(not _same(observed, self._known))
            every = np.arange(observed.shape[1])
            ends = _around(self, values, calibration, counts(observed)[0][:, None], every, coverage)
            for end in ends:
                end.reshape(-1)[observed.flat] = observed.values
            lower, upper = (self._returned(end, rows) for end in ends)
            return lower, upper
        values, (i, j) = self.predict(rows, columns), self.completion_.x.pairs(rows, columns)
        return _around(self, values, self._calibration(False), counts(self._known)[0][i], j, coverage)

    def draws(self: Any, X: Any, n_draws: int = 5, random_state: Any = None) -> list[Any]:
        """X completed several times, as differently as the uncertainty says: for multiple imputation.

        Parameters
        ----------
        X : array, masked array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Rows to complete, as in `transform`.
        n_draws : int, default 5
            How many tables.
        random_state : int, Generator or None, optional
            Of the draws.

        Returns
        -------
        list of n_draws arrays or DataFrames
            As `transform` gives them; known entries are the same in all.

        Notes
        -----
        Each table comes from a fit to as many rows, drawn from the training rows with replacement; to each value
        an error is added that is drawn from those at hidden entries of the column, on which `intervals` rests,
        smaller by what the fits differ in already. Do with each table what you would do with a complete one, and
        combine by Rubin's rules: the variance of the mean of the estimates is the mean of their variances plus
        ``1 + 1 / n_draws`` times the variance between them. Errors of several missing entries of one row are drawn
        independently.
        """
        check_counts(n_draws=n_draws, least=1, optional=False)
        random = generator(random_state)
        observed, filled = self._completed(X)
        calibration = self._calibration(not _same(observed, self._known))
        if calibration.n_hidden == 0:
            raise ValueError("draws need errors at hidden entries, and there are none: fit to more known entries")
        missing = np.ones(filled.shape, dtype=bool)
        missing.reshape(-1)[observed.flat] = False
        missing[:, np.isnan(calibration.units)] = False  # nothing tells how much these vary
        rows, columns = np.nonzero(missing)
        size = calibration.size(counts(observed)[0][rows], columns)
        fits = [self._redrawn(observed, filled, random) for _ in range(n_draws)]
        size = size * calibration.rest(columns, size, np.stack([fit[missing] for fit in fits]))
        for fit in fits:
            fit[missing] += size * random.choice(calibration.scores, size.size)
        limits = _limits(self)
        return [self._finished(observed, limits.cut(fit).astype(fit.dtype, copy=False), X) for fit in fits]

    def _redrawn(self: Any, observed: Observed, filled: Array, random: np.random.Generator) -> Array:
        """Rows completed by a fit to rows drawn with replacement; a column of which it saw nothing as before."""
        n_rows = self._known.shape[0]
        sample = _taken(self._known, random.integers(n_rows, size=n_rows))
        other = _refitted(self, sample)
        return np.where(counts(sample)[1] > 0, other._completed_rows(observed), filled)

    def _calibration(self: Any, for_new_rows: bool) -> Calibration:
        """What hidden entries say; threads that ask at the same time find the same."""
        if for_new_rows not in self._calibrations:
            errors = [
                np.stack([hidden.values - predicted, hidden.columns, seen[hidden.rows], number[hidden.columns]])
                for hidden, predicted, seen, number in _validations(self, self._known, for_new_rows)
            ]
            self._calibrations[for_new_rows] = Calibration(self._known, np.hstack([np.zeros((4, 0)), *errors]))
        return self._calibrations[for_new_rows]


def _validations(model: Any, known: Observed, new_rows: bool) -> Iterator[tuple[Observed, Array, Array, Array]]:
    """Entries hidden in turn, or all of some rows; what a fit without them predicts there; and what it did see.

    That is the number of known entries of each row and of each column. An entry of a new row is predicted from the
    others of its row.
    """
    random = np.random.default_rng(model._seed)
    for part in folds(known.shape[0] if new_rows else known.n_observed, random):
        train = known.select(~(part[known.rows] if new_rows else part))
        if train.n_observed == 0:
            continue
        other, (by_row, by_column) = _refitted(model, train), counts(train)
        if not new_rows:
            hidden = known.select(part)
            predicted = other.completion_.predict(hidden.rows, hidden.columns)
            yield hidden, other.clip_.cut(predicted, hidden.columns), by_row, by_column
            continue
        rows = _taken(known, np.flatnonzero(part))
        for held in folds(rows.n_observed, random):
            kept, hidden = rows.select(~held), rows.select(held)
            yield hidden, other._completed_rows(kept).reshape(-1)[hidden.flat], counts(kept)[0], by_column


def _refitted(model: Any, known: Observed) -> Any:
    """The same imputer fitted to other entries with the choices that were made."""
    other, fit = copy.copy(model), model.completion_
    # Rough fits of ratings err as exact ones do. In tables, where alpha is small, they err less: they must not.
    options = {"tol": model.tol if model._known.is_table else max(model.tol, ROUGH_TOL)}
    options |= {"max_iter": model.max_iter, "random_state": model._seed, "solver": model.solver}
    penalty = with_alpha(fit.penalty, fit.alpha * math.sqrt(known.n_observed / model._known.n_observed))
    other.completion_ = completed(Centred.of(known, fit.center, fit.scale), penalty, fit.max_rank, **options)
    other.clip_ = Range.of(model.clip, known, known.is_table)
    return other


def _around(
    model: Any, values: Array, calibration: Calibration, row_counts: Array, columns: Array, coverage: float
) -> tuple[Array, Array]:
    """Intervals around predicted values."""
    quantile = calibration.quantile(coverage)
    if math.isinf(quantile):
        needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))  # 0.9 / (1 - 0.9) is a rounding above 9
        warnings.warn(
            f"{calibration.n_hidden} hidden entries are too few for a coverage of {coverage:g}, which takes"
            f" {needed}: the intervals are infinite. Ask for less coverage.",
            UserWarning,
            stacklevel=3,
        )
    with np.errstate(invalid="ignore"):
        half = np.nan_to_num(quantile * calibration.size(row_counts, columns), nan=np.inf, posinf=np.inf)
    limits, around = _limits(model), np.nan_to_num(values, nan=0.0)
    lower, upper = (limits.cut(around + side * half, columns) for side in (-1, 1))
    inner = np.ceil(lower), np.floor(upper)
    whole = np.isin(columns, model._whole_columns) & (inner[0] <= inner[1])
    lower, upper = np.where(whole, inner[0], lower), np.where(whole, inner[1], upper)
    return lower.astype(values.dtype), upper.astype(values.dtype)


def _limits(model: Any) -> Range:
    """The range that values lie in: a bound of the known values if several lie on it, as ratings do.

    The largest of measured values, which has no equal, is exceeded by some of the missing ones.
    """
    if not isinstance(model.clip, str):
        return model.clip_
    known, found = model._known, []
    for bound, otherwise in zip(model.clip_, Range(), strict=True):
        each = np.broadcast_to(bound, known.shape[1])
        number = np.bincount(known.columns[known.values == each[known.columns]], minlength=each.size)
        found.append(np.where((number if np.ndim(bound) else number.sum()) > 1, bound, otherwise))
    return Range(*found)


def _same(one: Observed, other: Observed) -> bool:
    """Whether the same entries are known, with the same values."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in ("rows", "columns", "values"))
    return one.shape == other.shape and all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _taken(known: Observed, rows: Array) -> Observed:
    """These rows in this order, perhaps some of them several times."""
    part = known.sparse()[rows].tocoo()
    return Observed(part.row, part.col, part.data, (rows.size, known.shape[1]))

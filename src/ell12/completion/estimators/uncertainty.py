"""Intervals for missing entries, and several completed tables for multiple imputation."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ell12.checks import check_counts, check_share, generator
from ell12.completion.choosing.choice import is_ratings
from ell12.completion.choosing.search import MAX_ITER, TOL
from ell12.completion.estimators.calibration import Calibration, HiddenErrors, counts, folds
from ell12.completion.estimators.tables import Range
from ell12.completion.low_rank import as_indices
from ell12.completion.observed import Observed
from ell12.completion.solve import Task, solve_completion
from ell12.penalties import SpectralL12
from ell12.protocols import Array

# A bound of the known values is taken for one of all values where so many of them lie on it, as ratings do. The
# largest of measured values is exceeded by some of the missing ones.
ON_BOUND = 5


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
        that were not in the training data are judged by fits that saw other rows only. Intervals end at ``clip``
        where it is a pair, or where it is "observed" and five known entries lie on the bound, and at whole numbers
        in the columns of a DataFrame that hold such.

        The share holds on average over missing entries, if entries are missing at random; where the value itself
        decides whether it is missing, it does not.

        The first call costs ten fits without a search, once for the training rows and once for new ones; for that
        the known entries are kept.
        """
        check_share(coverage, "coverage")
        if columns is None:
            observed, values = self._completed(rows)
            calibration = self._calibration(not _same(observed, self._known))
            every = np.arange(observed.shape[1])
            ends = _around(self, values, calibration, counts(observed)[0][:, None], every, coverage)
            for end in ends:
                end.reshape(-1)[observed.flat] = observed.values
            lower, upper = (self._returned(end, rows) for end in ends)
            return lower, upper
        values, x = self.predict(rows, columns), self.completion_.x
        i, j = as_indices(rows, x.U, x.shape[0], "rows"), as_indices(columns, x.V, x.shape[1], "columns")
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
            fit[missing] += size * calibration.draw(columns, random)
        limits = Range(*_limits(self))
        return [self._finished(observed, limits.cut(fit).astype(fit.dtype, copy=False), X) for fit in fits]

    def _keep(self: Any, observed: Observed, seed: int) -> None:
        """Remember what errors can be learnt from."""
        self._known, self._seed = replace(observed), seed  # without what it has cached
        self._calibrations: dict[bool, Calibration] = {}  # by whether they are for new rows

    def _redrawn(self: Any, observed: Observed, filled: Array, random: np.random.Generator) -> Array:
        """Rows completed by a fit to rows drawn with replacement; a column of which it saw nothing as before."""
        n_rows = self._known.shape[0]
        sample = _taken(self._known, random.integers(n_rows, size=n_rows))
        other = _refitted(self, sample)
        return np.where(counts(sample)[1] > 0, other._completed_rows(observed), filled)

    def _calibration(self: Any, for_new_rows: bool) -> Calibration:
        """What hidden entries say; threads that ask at the same time find the same."""
        if for_new_rows not in self._calibrations:
            learn = _errors_in_new_rows if for_new_rows else _errors_at_hidden_entries
            errors = learn(self, self._known, np.random.default_rng(self._seed))
            self._calibrations[for_new_rows] = Calibration(self._known, errors)
        return self._calibrations[for_new_rows]


def _errors_at_hidden_entries(model: Any, known: Observed, random: np.random.Generator) -> list[HiddenErrors]:
    """Fits without a part of the entries, which they predict."""
    found = []
    for held in folds(known.n_observed, known.n_observed, random):
        train, hidden = known.select(~held), known.select(held)
        if train.n_observed:
            predicted = _refitted(model, train).predict(hidden.rows, hidden.columns)
            found.append(HiddenErrors.of(train, hidden, predicted))
    return found


def _errors_in_new_rows(model: Any, known: Observed, random: np.random.Generator) -> list[HiddenErrors]:
    """Fits without a part of the rows, whose entries are then predicted from the others of their row."""
    found = []
    for rows in folds(known.shape[0], known.n_observed, random):
        train, others = known.select(~rows[known.rows]), _taken(known, np.flatnonzero(rows))
        if train.n_observed == 0:
            continue
        other = _refitted(model, train)
        for held in folds(others.n_observed, 0, random):
            kept, hidden = others.select(~held), others.select(held)
            predicted = other._completed_rows(kept).reshape(-1)[hidden.flat]
            found.append(HiddenErrors.of(kept, hidden, predicted, counts(train)[1]))
    return found


def _refitted(model: Any, known: Observed) -> Any:
    """The same imputer fitted to other entries with the choices that were made, from zero: no x0 tells on them."""
    other, fit = copy.copy(model), model.completion_
    # Rough fits of ratings err as exact ones do. In tables, where alpha is small, they err less: they must not.
    rough = is_ratings(model._known)
    alpha = fit.alpha * math.sqrt(known.n_observed / model._known.n_observed)
    other.completion_ = solve_completion(
        Task.of(known, fit.center, fit.scale),
        SpectralL12(alpha, fit.l2_weight),
        max_rank=fit.max_rank,
        engine=model.engine,
        random_state=model._seed,
        tol=max(model.tol, TOL) if rough else model.tol,
        max_iter=min(model.max_iter, MAX_ITER) if rough else model.max_iter,
    )
    other.clip_ = Range.of(model.clip, known)
    return other


def _around(
    model: Any, values: Array, calibration: Calibration, row_counts: Array, columns: Array, coverage: float
) -> tuple[Array, Array]:
    """Intervals around predicted values."""
    quantiles = calibration.quantiles(coverage)
    if np.isinf(quantiles).all():
        needed = math.ceil(coverage / (1 - coverage) * (1 - 1e-12))  # 0.9 / (1 - 0.9) is a rounding above 9
        warnings.warn(
            f"{calibration.n_hidden} hidden entries are too few for a coverage of {coverage:g}, which takes"
            f" {needed}: the intervals are infinite. Ask for less coverage.",
            UserWarning,
            stacklevel=3,
        )
    with np.errstate(invalid="ignore"):
        half = np.nan_to_num(quantiles[columns] * calibration.size(row_counts, columns), nan=np.inf, posinf=np.inf)
    limits = Range(*_limits(model))
    around = np.nan_to_num(values, nan=0.0)
    lower, upper = (limits.cut(around + side * half, columns) for side in (-1, 1))
    whole = np.isin(columns, [*model._whole_dtypes])
    inner = np.ceil(lower), np.floor(upper)
    whole = whole & (inner[0] <= inner[1])
    lower, upper = np.where(whole, inner[0], lower), np.where(whole, inner[1], upper)
    return lower.astype(values.dtype), upper.astype(values.dtype)


def _limits(model: Any) -> tuple[Any, Any]:
    """The range that values surely lie in."""
    low, high = model.clip_
    if not isinstance(model.clip, str):
        return low, high
    low = np.where(_number_on(model._known, low) >= ON_BOUND, low, -np.inf)
    return low, np.where(_number_on(model._known, high) >= ON_BOUND, high, np.inf)


def _number_on(known: Observed, bound: Any) -> Any:
    """How many known entries lie on a bound, which is one for all columns, or one for each."""
    if np.ndim(bound) == 0:
        return np.count_nonzero(known.values == bound)
    on = known.values == np.asarray(bound)[known.columns]
    return np.bincount(known.columns[on], minlength=known.shape[1])


def _same(one: Observed, other: Observed) -> bool:
    """Whether the same entries are known, with the same values."""
    pairs = ((getattr(one, name), getattr(other, name)) for name in ("rows", "columns", "values"))
    return one.shape == other.shape and all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def _taken(known: Observed, rows: Array) -> Observed:
    """These rows in this order, perhaps some of them several times."""
    part = known.sparse()[rows].tocoo()
    return Observed(part.row, part.col, part.data, (rows.size, known.shape[1]))

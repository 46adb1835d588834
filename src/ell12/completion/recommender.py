"""Ratings with ids, predicted and ranked by a low-rank matrix, as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ell12.backend import is_number
from ell12.checks import check_counts, check_entries, check_flags, check_word, naming
from ell12.completion.hidden_entries import ROUGH_TOL
from ell12.completion.imputer import fit_entries
from ell12.completion.low_rank import LowRank, gathered_sums_of_products
from ell12.completion.observed import Observed
from ell12.completion.ranking import Interest, Recommendations, Scores, best_columns, ndcg
from ell12.completion.squared_error import regressed_rows
from ell12.completion.table_columns import Range
from ell12.datasets import Ratings
from ell12.datasets.ratings import as_ids, is_ratings_like
from ell12.nested_parameters import NestedParameters
from ell12.protocols import Array, with_alpha


@dataclass(eq=False, repr=False)
class L12Recommender(NestedParameters, BaseEstimator):
    """Predict ratings and recommend items by a matrix of low rank under the l1-2 penalty.

    Minimises ``1/2 ||S(X - O)||_F^2 + alpha (||X||_* - l2_weight ||X||_F)`` over matrices X, S keeping the ratings
    O of users (rows) and items (columns), from which biases of both are taken before.

    Parameters
    ----------
    alpha, penalty, max_rank, solver, tol, max_iter
        As in `L12Imputer`; by default hidden ratings choose.
    center : {"biases", "auto", "mean", "columns", None}, default "biases"
        What is subtracted before. Biases of users and items are shrunken as if there were five ratings more, so
        that an item with a single excellent rating does not come first for everybody; with nothing or unshrunken
        means subtracted it does.
    columns : three names or positions from 0, optional
        Where user, item and value are in a DataFrame; by default as `ell12.datasets.load_ratings` finds them.
    clip : (float, float), "observed" or None, default "observed"
        The range that predictions are cut to; "observed" is that of the ratings. Ranks are by uncut scores.
    random_state : int, RandomState or None, default 0
        Of the choice of hidden ratings and of the first singular vectors.

    Attributes
    ----------
    completion_ : Completion
        The fit: a `LowRank` matrix ``x``, ``offsets``, ``status`` and history.
    users_, items_ : arrays
        The ids of its rows and columns, sorted.
    ratings_ : Ratings
        What was fitted.
    alpha_, penalty_, max_rank_, center_
        What was used.
    n_iter_ : int
        Iterations of the last fit.

    Notes
    -----
    A user or an item that the fit does not know is predicted by the mean and the bias of the other, so far as
    ``center`` has these.

    Examples
    --------
    >>> from ell12 import L12Recommender
    >>> from ell12.datasets import synthetic_ratings
    >>> model = L12Recommender(max_rank=2).fit(synthetic_ratings(0, 100, 50, 1500, rank=1))
    >>> best = model.recommend([7, 8], n=3)
    >>> best.items.shape, model.predict([7, 7], [1, 2]).shape
    ((2, 3), (2,))
    """

    alpha: float | str | None = None
    _: KW_ONLY
    penalty: Any = None
    max_rank: int | str | None = "auto"
    center: str | None = "biases"
    clip: Any = "observed"
    columns: Any = None
    solver: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: Any = 0

    def fit(self, ratings: Any, y: Any = None) -> L12Recommender:  # noqa: ARG002
        """Fit the low-rank matrix to ratings.

        Parameters
        ----------
        ratings : Ratings, DataFrame or sparse matrix
            Who gave what how much; see `ell12.datasets.Ratings.of`. Of a sparse matrix every stored entry is a
            rating, and the ids are the numbers of its rows and columns, from 0.
        y : None, optional
            Ignored.
        """
        return self._complete(Ratings.of(ratings, self.columns))

    def refit(self, new_ratings: Any, *, tol: float | None = None) -> L12Recommender:
        """Fit again with more ratings, beginning at the old factors and keeping the old choices.

        An alpha that was chosen grows with the square root of the number of ratings, as noise does; one that was
        given stays. Fit anew from time to time: what is best for many ratings may differ from what was for few.

        Parameters
        ----------
        new_ratings : Ratings, DataFrame or sparse matrix
            Of old or new users and items. Of a pair that was rated before the new value counts.
        tol : float, optional
            Stop when the stationarity is at most this; 3e-2 by default, or the fit's own ``tol`` if larger.
        """
        check_is_fitted(self)
        old, completion = self.ratings_, self.completion_
        merged = old.updated(Ratings.of(new_ratings, self.columns))
        penalty = completion.penalty
        if not (is_number(self.alpha) or (self.penalty is not None and self.penalty.alpha is not None)):
            penalty = with_alpha(penalty, completion.alpha * math.sqrt(len(merged) / len(old)))
        U, V = (np.zeros((size, completion.x.rank)) for size in merged.shape)
        U[merged.rows_of(old.users)], V[merged.columns_of(old.items)] = completion.x.U, completion.x.V
        chosen = {"alpha": None, "penalty": penalty, "max_rank": completion.max_rank, "center": completion.center}
        tol = max(self.tol, ROUGH_TOL) if tol is None else tol
        return self._complete(merged, x0=LowRank(U, completion.x.s, V), tol=tol, **chosen)

    def predict(self, users: Any, items: Any) -> Array:
        """The ratings that users would give items, by their ids.

        Parameters
        ----------
        users, items : arrays of ids
            As long as each other, or shapes that NumPy broadcasts. Ids never seen are predicted by the mean and
            the bias of the other.
        """
        check_is_fitted(self)
        with naming("users and items"):
            rows, columns = np.broadcast_arrays(self._rows_of(users, "mark"), self._columns_of(items, "mark"))
        values = gathered_sums_of_products(self._scores.P, self._scores.Q, rows.ravel(), columns.ravel())
        return self.clip_.cut(values).reshape(rows.shape)

    def recommend(
        self, users: Any = None, n: int = 10, *, by: str = "interest", exclude_seen: bool = True, items: Any = None
    ) -> Recommendations:
        """The n best items for each user, the best first.

        Parameters
        ----------
        users : array of ids, optional
            All users of the fit by default. Ids never seen get what is best by the items' biases. Or the ratings
            of new users (Ratings, a DataFrame or a sparse matrix): each is completed from its own ratings alone,
            as `L12Imputer.transform` does, without a new fit.
        n : int, default 10
            How many.
        by : {"interest", "rating"}, default "interest"
            What is best: "interest" weighs how likely a user is to take an item up at all, by the leading singular
            vectors of the ratings with zeros where there are none; "rating" is the predicted rating, which says
            nothing of that, and often brings what few know to the top.
        exclude_seen : bool, default True
            Leave out what a user has rated.
        items : array of ids, optional
            Choose among these only.

        Returns
        -------
        Recommendations
            Arrays ``items`` and ``scores`` with a row for each user. Where fewer than n items are left, ``counts``
            is less than n, the ids are filled up with -1 or "", and the scores with NaN.
        """
        check_is_fitted(self)
        check_counts(least=1, optional=False, n=n)
        check_flags(exclude_seen=exclude_seen)
        if is_ratings_like(users):
            given = Ratings.of(users, self.columns)
            ids, known, rows = given.users, self._known_part(given), np.arange(len(given.users))
            if known.n_observed < len(given):
                count = len(given) - known.n_observed
                warnings.warn(f"{count} ratings are of items that the fit does not know: left out", stacklevel=2)
            scores, seen = self._scored(by, known), known.sparse()
        else:
            ids = self.users_ if users is None else np.atleast_1d(as_ids(users))
            rows = self._rows_of(ids, "mark")
            scores, seen = self._scored(by), self._seen(rows)
        seen = seen if exclude_seen else None
        candidates = np.arange(len(self.items_))
        if items is not None:
            candidates = np.unique(self._columns_of(items))
            seen = None if seen is None else seen[:, candidates]
        positions, found = best_columns(scores.P[rows], scores.Q[candidates], n, seen)
        found = self.clip_.cut(found) if by == "rating" else found
        return Recommendations.of(ids, self.items_[candidates], (positions, found))

    def similar_items(self, items: Any, n: int = 10) -> Recommendations:
        """The n items most like each of these: by the cosine of their rows of ``V diag(s)``.

        U being orthonormal, that is the cosine of the items' columns in the fitted matrix, over all users. Biases
        do not count: alike are items that the same users prefer, not items that are equally good.

        Returns
        -------
        Recommendations
            ``users`` holds the items that were asked for, ``items`` those like them, ``scores`` the cosines.
        """
        check_is_fitted(self)
        return self._similar(self.completion_.x.T, np.atleast_1d(self._columns_of(items)), self.items_, n)

    def similar_users(self, users: Any, n: int = 10) -> Recommendations:
        """The n users most like each of these, as in `similar_items`: by the cosine of rows of ``U diag(s)``."""
        check_is_fitted(self)
        return self._similar(self.completion_.x, np.atleast_1d(self._rows_of(users)), self.users_, n)

    def score(self, ratings: Any, y: Any = None) -> float:  # noqa: ARG002
        """Minus the root mean square error of predictions of these ratings: higher is better."""
        check_is_fitted(self)
        ratings = Ratings.of(ratings, self.columns)
        found = self.predict(ratings.users[ratings.rows], ratings.items[ratings.columns])
        return -float(np.sqrt(np.mean((found - ratings.values) ** 2)))

    def ndcg(self, ratings: Any, n: int = 10, *, by: str = "interest") -> float:
        """The normalised discounted cumulative gain at n of other ratings than the fitted ones.

        It is about the lists that `recommend` gives: all items that a user has not rated before are ranked, and
        one without a rating among ``ratings`` gains nothing. This is what is usually reported; it favours what is
        often rated. The gain of an item is its rating above the lowest rating of the fit, so that the answer does
        not depend on the unit or the zero of ratings. It is averaged over the users with a gain. Items that the
        fit does not know are left out.

        Parameters
        ----------
        ratings : Ratings, DataFrame or sparse matrix
            Ratings that the fit has not seen.
        n : int, default 10
            How many positions count.
        by : {"interest", "rating"}, default "interest"
            As in `recommend`.
        """
        check_is_fitted(self)
        check_counts(least=1, optional=False, n=n)
        scores, ratings = self._scored(by), Ratings.of(ratings, self.columns)
        rows, known = self._rows_of(ratings.users, "mark"), self._known_part(ratings)
        lists, _ = best_columns(scores.P[rows], scores.Q[:-1], n, self._seen(rows))
        return ndcg(lists, known.sparse(np.maximum(known.values - self.ratings_.values.min(), 0.0)))

    def _complete(self, ratings: Ratings, **options: Any) -> L12Recommender:
        """Fit these ratings, and keep what the other methods need."""
        check_entries(ratings.values, "ratings")
        observed = Observed(ratings.rows, ratings.columns, ratings.values, ratings.shape)
        clip = Range.of(self.clip, observed, by_column=False)
        fit_entries(self, observed, scale=None, **options)
        completion = self.completion_
        self.ratings_, self.users_, self.items_, self.clip_ = ratings, ratings.users, ratings.items, clip
        self._scores = Scores.of(completion.offsets, completion.x.weighted, completion.x.V)
        self._interest: Interest | None = None
        return self

    def _rows_of(self, users: Any, unknown: str = "error") -> Array:
        with naming("users"):
            return self.ratings_.rows_of(users, unknown)

    def _columns_of(self, items: Any, unknown: str = "error") -> Array:
        with naming("items"):
            return self.ratings_.columns_of(items, unknown)

    def _known_part(self, ratings: Ratings) -> Observed:
        """Those of other ratings that are of items of the fit."""
        columns = self._columns_of(ratings.items, "mark")[ratings.columns]
        known, shape = columns >= 0, (len(ratings.users), len(self.items_))
        return Observed(ratings.rows[known], columns[known], ratings.values[known], shape)

    def _scored(self, by: str, newcomers: Observed | None = None) -> Scores:
        """How good items are for the users of the fit, or for others by their ratings."""
        check_word(by, "by", "interest", "rating")
        if by == "rating":
            return self._scores if newcomers is None else Scores.of(*regressed_rows(self.completion_, newcomers))
        if self._interest is None:  # threads that ask at the same time find the same
            self._interest = Interest.of(self._known)
        return self._interest.scores(self._known if newcomers is None else newcomers)

    def _seen(self, rows: Array) -> Any:
        """What the users of these rows have rated, as the pattern of a CSR array; an unknown user nothing."""
        pattern = self._known.sparse()
        pattern.resize((len(self.users_) + 1, len(self.items_)))
        return pattern[rows]

    def _similar(self, x: LowRank, positions: Array, ids: Array, n: int) -> Recommendations:
        check_counts(least=1, optional=False, n=n)
        lengths = np.linalg.norm(x.weighted, axis=1, keepdims=True)
        directions = x.weighted / np.where(lengths > 0, lengths, 1.0)
        ones, starts = np.ones(len(positions)), np.arange(len(positions) + 1)
        itself = scipy.sparse.csr_array((ones, positions, starts), shape=(len(positions), len(ids)))
        return Recommendations.of(ids[positions], ids, best_columns(directions[positions], directions, n, itself))

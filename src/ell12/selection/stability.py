"""Stability selection: the features that most halves of the samples select, with a bound on the false ones."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, check_random_state

from ell12.checks import check_counts, check_positive, check_word, is_finite_number, naming
from ell12.linear_model import L12Regressor
from ell12.linear_model.cross_validation import AlphaSearch
from ell12.linear_model.sparse_model import SparseLinearModel, keep_arguments, warn_if_not_converged
from ell12.plots import plot_stability
from ell12.protocols import Array
from ell12.selection.half_samples import (
    Entries,
    FitSelector,
    PathSelector,
    Selector,
    complementary_pairs,
    select,
    used_rows,
)

# A plain call asks for this threshold: of 0.55 to 0.95 it found the most true features at the same promise
# (`stability` in docs/decisions/studies.md).
THRESHOLD = 0.7
# Settings that keep to a bound exactly must not fail by rounding.
ROUNDING = np.finfo(np.float64).eps ** 0.5


@dataclass(frozen=True)
class Settings:
    """How many features a half selects at most, how often a feature must be selected, and what that promises."""

    most_selected: int
    threshold: float
    bound: float


def expected_false_bound(
    most_selected: int, n_features: int, threshold: float, n_subsamples: int, assumption: str | None = None
) -> float:
    """The bound on the expected number of features that are selected though a half selects them as by chance.

    Parameters
    ----------
    most_selected : int
        How many features a half selects at most, q.
    n_features : int
        How many there are to select from, p.
    threshold : float
        The share t of the subsamples in which a feature must be selected, above 0.5.
    n_subsamples : int
        How many halves there are, 2 B: every second one is the complement of the one before.
    assumption : {"unimodal"}, optional
        What is assumed of the share of pairs of which both halves select a feature: that its distribution has one
        mode. The bound is then about half as large.

    Returns
    -------
    float
        ``q^2 / ((2 t - 1) p)`` (Shah & Samworth, doi:10.1111/j.1467-9868.2011.01034.x, theorem 1), or with the
        assumption theorem 2 where it holds; p at the most.

    Examples
    --------
    >>> from ell12.selection.stability import expected_false_bound
    >>> expected_false_bound(10, 200, 0.75, 100), round(expected_false_bound(10, 200, 0.75, 100, "unimodal"), 4)
    (1.0, 0.5102)
    """
    chance = most_selected / n_features
    bound = most_selected * chance / (2 * threshold - 1)
    if assumption == "unimodal":
        bound = min(bound, most_selected * chance * _unimodal_factor(chance, threshold, n_subsamples // 2))
    return round(min(bound, float(n_features)), 12)  # not 1.0000000000000002


def settle(
    n_features: int,
    n_subsamples: int,
    *,
    threshold: Any = None,
    expected_false: Any = None,
    most_selected: Any = None,
    assumption: Any = None,
) -> Settings:
    """The third of three settings from two of them; where one is given or none, defaults stand in for the others.

    Examples
    --------
    >>> from ell12.selection.stability import settle
    >>> settle(200, 100, threshold=0.75, expected_false=1.0)
    Settings(most_selected=10, threshold=0.75, bound=1.0)
    >>> settle(200, 100, most_selected=10, expected_false=0.5)
    Settings(most_selected=10, threshold=1.0, bound=0.5)
    """
    _check(threshold, expected_false, most_selected, assumption)

    def bound(q: int, share: float) -> float:
        return expected_false_bound(q, n_features, share, n_subsamples, assumption)

    share = THRESHOLD if threshold is None else float(threshold)
    wanted = (1 + ROUNDING) * (1.0 if expected_false is None else float(expected_false))
    if most_selected is None:
        q = bisect_left(range(1, n_features + 1), True, key=lambda q: bool(bound(q, share) > wanted))
        least = bound(1, share)
    else:
        q = int(min(most_selected, n_features))
        least = bound(q, 1.0)
        if threshold is None and expected_false is not None:  # the least share of the halves that keeps to it
            shares = np.arange(n_subsamples // 2 + 1, n_subsamples + 1) / n_subsamples
            share = next((float(share) for share in shares if bound(q, share) <= wanted), 1.0)
    if expected_false is not None and least > wanted:
        raise ValueError(
            f"expected_false={expected_false} is too small for {n_features} features, threshold={threshold} and"
            f" most_selected={most_selected}: give {least:.3g} at least, a higher threshold or fewer to select"
        )
    q = max(q, 1)
    return Settings(q, share, bound(q, share))


def _check(threshold: Any, expected_false: Any, most_selected: Any, assumption: Any) -> None:
    if threshold is not None and not (is_finite_number(threshold) and 0.5 < threshold <= 1):
        raise ValueError(f"threshold must be a number above 0.5 and up to 1, got {threshold!r}")
    if expected_false is not None:
        check_positive(expected_false, "expected_false")
    check_counts(least=1, most_selected=most_selected)
    if assumption is not None:
        check_word(assumption, "assumption", "unimodal")
    if None not in (threshold, expected_false, most_selected):
        raise ValueError("most_selected follows from threshold and expected_false: give two of the three")


def _unimodal_factor(chance: float, threshold: float, n_pairs: int) -> float:
    """What takes the place of ``1/(2 t - 1)`` in theorem 2; infinite where that does not hold.

    Frequencies are multiples of ``1/(2 B)``, so that t stands for the next of these.
    """
    step = 1 / (2 * n_pairs)
    share = math.ceil(threshold / step - ROUNDING) * step
    least = min(0.5 + chance**2, 0.5 + step + 0.75 * chance**2)
    if chance > 1 / math.sqrt(3) or share <= least:
        return math.inf
    if share <= 0.75:
        return 1 / (2 * (2 * share - 1 - step))
    return 4 * (1 - share + step) / (1 + 2 * step)


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select the features that most halves of the samples select, with a bound on the false ones.

    The samples are split at random into two halves, ``n_subsamples / 2`` times. On each half a path of falling
    strengths is followed until q features have come in. A feature is selected if it is among these q in at least
    ``threshold`` of all halves. So q limits how many false features come in, and the threshold lets few of them
    stay.

    Parameters
    ----------
    estimator : estimator, optional
        `L12Regressor` (the default), `L12Classifier` or `L12CoxRegressor`: its options, such as loss, l2_weight,
        ridge, penalty_factors, positive or groups, make the path; its alpha does not count. Any other estimator of
        scikit-learn with ``coef_`` or ``feature_importances_`` is fitted to each half at its own settings: the
        q features with the largest magnitudes, of several targets or classes their largest, that are not zero.
    n_subsamples : int, default 100
        How many halves; even, as each comes with its complement.
    threshold : float, optional
        The share of the halves that must select a feature, above 0.5 and up to 1.
    expected_false : float, optional
        The bound on the expected number of false selections; see the notes for what is promised.
    most_selected : int, optional
        How many features a half selects at most, q. Of threshold, expected_false and most_selected give two, and
        the third follows. Where fewer are given the threshold is 0.7, and expected_false 1 or, with few features,
        as little as lets halves select one.
    assumption : {"unimodal"}, optional
        An assumption for a tighter bound, about half as large: that the share of pairs of which both halves select
        a false feature has a distribution with one mode. By default nothing is assumed.
    alphas : int or array, default 25
        The strengths of the path, the same for all halves; or a number of them, from 1.41 times the strength at
        which the path of all samples begins to ``eps`` times that. Of features that enter at the same strength
        the larger coefficient counts as the first: that finds no fewer true features than many strengths do.
    eps : float, default 1e-3
        The smallest strength of the default grid relative to the largest.
    n_jobs : int, optional
        Pairs of halves in parallel, by joblib. The answer is the same for any number.
    random_state : int, RandomState or None, optional
        For the halves. A number makes the same halves in every call.

    Attributes
    ----------
    frequencies_ : array of shape (n_features,)
        The share of the halves that selected each feature.
    path_frequencies_ : array of shape (n_alphas, n_features)
        The share of the halves in which each feature had been selected down to each strength: it never falls along
        the path, and ends at ``frequencies_``. Not there for other estimators, which have no path.
    alphas_ : array of shape (n_alphas,)
        The strengths, falling. Likewise.
    threshold_ : float
        The threshold.
    most_selected_ : int
        How many features a half selects at most, q.
    n_selected_ : float
        How many a half selected in the mean; less than q where paths end before.
    bound_ : float
        The bound on the expected number of false selections.
    n_candidates_ : int
        How many features, or groups, there are to select from, p: those that vary and are penalised.
    n_features_in_, feature_names_in_
        What fit has seen.

    See Also
    --------
    confidence_intervals : How large effects may be.
    information_criteria : AIC, BIC and EBIC along a path.
    summary : One table of a fitted model.

    Notes
    -----
    **What is promised.** Let p be the number of features and t the threshold. Call a feature *noise* if a half
    selects it with probability at most q/p, which is no better than choosing q features blindly. Then the expected
    number of noise features that are selected is at most ``q^2 / ((2 t - 1) p)``, for any number of halves, any
    estimator and any dependence of the features (Shah & Samworth, doi:10.1111/j.1467-9868.2011.01034.x, theorem 1;
    the formula is that of Meinshausen & Bühlmann, doi:10.1111/j.1467-9868.2010.00740.x). With
    ``assumption="unimodal"`` it is that of theorem 2. Samples must be independent and of one distribution.

    **What is not.** Features without a coefficient in the truth may not be noise in this sense: one that
    correlates with a true feature stands in for it in many halves. The bound counts all of them only where those
    without a coefficient are selected with equal probability and no sooner than by chance. It is on the mean over
    data sets, not on this one. Halves that keep the shares of the classes, or of the events of survival times,
    depend a little on each other, which the theorem does not cover.

    **Groups** count as one feature each. Of several targets or classes a feature comes in where any of its
    coefficients does. Features of penalty factor 0 are in every model: they have frequency 1 and count neither in
    p nor in q. Constant columns are never selected and do not count. Copies of a column share its frequency: the
    path takes one of them, so that no copy may reach the threshold; leave one, or put them into a group. A feature
    that separates the classes of a half comes in first, though its coefficient has no finite value.

    **Units.** The path sees columns in the units they have: put a ``StandardScaler`` before it where these differ.

    **sample_weight** goes with the rows into the fits. A weight of 2 is not a row that is there twice, which might
    have a copy in either half. Rows of weight 0 are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import StabilitySelection
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((100, 200))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * random.standard_normal(100)
    >>> selection = StabilitySelection(random_state=0).fit(X, y)
    >>> selection.get_support(indices=True), selection.frequencies_[[3, 7]]
    (array([3, 7]), array([1., 1.]))
    >>> selection.most_selected_, selection.threshold_, round(selection.bound_, 3)
    (8, 0.7, 0.8)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_subsamples: int = 100,
        threshold: float | None = None,
        expected_false: float | None = None,
        most_selected: int | None = None,
        assumption: str | None = None,
        alphas: Any = 25,
        eps: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StabilitySelection:
        """Select features on all halves.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            At least 4 samples, in memory.
        y : array
            As the estimator takes it. Every class, and the events of survival times, must be there twice.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0; see the notes.
        """
        check_counts(least=2, most=10**6, optional=False, n_subsamples=self.n_subsamples)
        check_counts(least=-math.inf, n_jobs=self.n_jobs)
        if self.n_subsamples % 2:
            raise ValueError(f"n_subsamples must be even, for pairs of halves; got {self.n_subsamples}")
        with naming("random_state"):
            random = check_random_state(self.random_state)
        selector = self._selector(X, y, sample_weight)
        n_candidates = int(selector.candidates.sum())
        if n_candidates == 0:
            raise ValueError("X has no column that varies and is penalised: there is nothing to select from")
        names = ("threshold", "expected_false", "most_selected", "assumption")
        settings = settle(n_candidates, self.n_subsamples, **{name: getattr(self, name) for name in names})
        halves = self._selections(selector, settings.most_selected, random)
        self.threshold_, self.bound_ = settings.threshold, settings.bound
        self.most_selected_, self.n_candidates_ = settings.most_selected, n_candidates
        self._count(selector, halves)
        failed = [result for half in halves for result in half.failed]
        warn_if_not_converged(selector.model, failed, sum(half.n_runs for half in halves))
        return self

    def plot(self, axes: Any = None) -> Any:
        """Draw the share of the halves that have selected each feature, along the path."""
        check_is_fitted(self)
        return plot_stability(self, axes=axes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(L12Regressor() if self.estimator is None else self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags = inner.target_tags
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.frequencies_ >= self.threshold_ - ROUNDING

    def _selector(self, *data: Any) -> Selector:
        """What selects on a half of the data."""
        model = L12Regressor() if self.estimator is None else clone(self.estimator)
        if isinstance(model, SparseLinearModel) and not isinstance(model, AlphaSearch):
            return PathSelector(model, self.alphas, self.eps, *data)
        return FitSelector(model, clone(self), *data)

    def _selections(self, selector: Selector, most: int, random: np.random.RandomState) -> list[Entries]:
        """What each half selects, pair by pair."""
        rows, strata = used_rows(selector), selector.strata
        n_pairs = self.n_subsamples // 2
        pairs = list(complementary_pairs(n_pairs, rows, None if strata is None else strata[rows], random))
        seeds = random.randint(2**31 - 1, size=2 * n_pairs).tolist()
        halves = zip(chain.from_iterable(pairs), seeds, strict=True)
        return Parallel(n_jobs=self.n_jobs)(delayed(select)(selector, half, most, seed) for half, seed in halves)

    def _count(self, selector: Selector, halves: list[Entries]) -> None:
        """The frequencies, of what each half has selected."""
        counts = np.zeros((selector.n_strengths, selector.free.size))
        for half in halves:
            counts[half.strengths, half.chosen] += 1
        shares = np.cumsum(counts, axis=0) / len(halves)
        shares[:, selector.free] = 1.0
        for name in ("alphas_", "path_frequencies_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        seen = vars(selector.seen)
        self.__dict__.update(
            {name: seen[name] for name in ("n_features_in_", "feature_names_in_") if name in seen}
        )
        self.frequencies_ = shares[-1, selector.unit]
        self.n_selected_ = float(np.mean([half.chosen.size for half in halves]))
        if isinstance(selector, PathSelector):
            self.alphas_, self.path_frequencies_ = selector.alphas, shares[:, selector.unit]

"""The strength alpha by cross-validation, along warm-started paths."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ell12.linear_model.arrays import linear_functions, passes
from ell12.linear_model.classifier import L12Classifier, probabilities
from ell12.linear_model.regressor import L12Regressor
from ell12.linear_model.sparse_model import SparseLinearModel, warn_if_not_converged
from ell12.minimization import Result
from ell12.path import alpha_grid, falling
from ell12.plots import plot_cross_validation
from ell12.protocols import Array


class AlphaSearch(SparseLinearModel):
    """Choose alpha: a path on each fold, the same alphas for all; a subclass scores the path's predictions."""

    alphas: Any
    n_alphas: int
    eps: float
    cv: Any
    selection: str
    n_jobs: int | None

    def plot(self, axes: Any = None) -> Any:
        """Draw the cross-validation: `ell12.plot_cross_validation` of this model."""
        check_is_fitted(self)
        return plot_cross_validation(self, axes=axes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    @abstractmethod
    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        """The score, the higher the better, for each alpha; coefs are (n_alphas, n_problems, n_features)."""

    def _search(self, X: Any, y: Array, sample_weight: Any) -> Array:
        """Set ``alphas_`` and ``alpha_``, fit at that, and return the scores, (n_alphas, n_folds)."""
        if self.selection not in ("min", "1se"):
            raise ValueError(f"selection must be 'min' or '1se', got {self.selection!r}")
        if passes(X):
            raise TypeError(
                f"{type(self).__name__} needs NumPy arrays, got {type(X).__name__}; see `ell12.l12_path`"
            )
        problems = self._problems(X, y, sample_weight)
        if self.alphas is None:
            self.alphas_ = alpha_grid(self._alpha_max(problems), self.n_alphas, self.eps)
        else:
            self.alphas_ = falling(self.alphas)
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))
        outcomes = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold)(self, X, y, sample_weight, train, test) for train, test in folds
        )
        scores = np.stack([score for score, _ in outcomes], axis=1)
        self.alpha_ = float(self.alphas_[_select(scores, self.selection)])
        warn_if_not_converged(self, [result for _, results in outcomes for result in results])
        # From zero, as a plain fit at this alpha would be, so that the result does not depend on the grid.
        self._fit_problems(problems, self.alpha_)
        return scores


class L12RegressorCV(AlphaSearch, L12Regressor):
    """`L12Regressor` with alpha chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 the Lasso.
    alphas : array, optional
        Strengths to try. By default ``n_alphas`` values from `ell12.path.alpha_max` to ``eps`` times that.
    n_alphas, eps : int, float
        Length and reach of the default grid.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default.
    selection : {"min", "1se"}
        Take the alpha with the lowest mean error, or the largest whose mean error is within one standard error of
        it, which selects fewer features.
    n_jobs : int, optional
        Folds in parallel, by joblib.
    fit_intercept, positive, penalty_factors, shared_support, warm_start, tol, max_iter, solver, verbose
        As in `L12Regressor`.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen; one for all columns of y.
    alphas_ : array of shape (n_alphas,)
        The strengths tried, falling.
    mse_path_ : array of shape (n_alphas, n_folds)
        Mean squared errors on the samples left out, weighted by sample_weight.
    coef_, sparse_coef_, intercept_, n_iter_, result_, n_features_in_, feature_names_in_
        As in `L12Regressor`, fitted to all samples at ``alpha_``.

    Examples
    --------
    >>> from ell12.datasets import correlated_design
    >>> problem = correlated_design(0, n_samples=60, n_features=100, n_nonzero=3, noise=0.05)
    >>> model = L12RegressorCV(n_alphas=20, eps=0.03, selection="1se").fit(problem.A, problem.b)
    >>> np.flatnonzero(problem.x), np.flatnonzero(model.coef_)
    (array([22, 43, 51]), array([22, 24, 43, 51]))
    """

    def __init__(
        self,
        *,
        l2_weight: float = 1.0,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        cv: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        positive: bool = False,
        penalty_factors: Any = None,
        shared_support: bool = False,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.l2_weight = l2_weight
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.selection = selection
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.shared_support = shared_support
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12RegressorCV:
        """Choose alpha and fit the coefficients; arguments as in `L12Regressor.fit`."""
        X, y, sample_weight = self._validate_regression(X, y, sample_weight)
        self.mse_path_ = -self._search(X, y, sample_weight)
        self._squeeze(y)
        return self

    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        errors = (_predictions(coefs, intercepts, X) - y.reshape(len(y), 1, -1)) ** 2
        return -np.average(errors.mean(axis=2), axis=0, weights=weight)


class L12ClassifierCV(AlphaSearch, L12Classifier):
    """`L12Classifier` with alpha, one for all classes, chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 the l1 norm; see `L12Classifier`.
    alphas, n_alphas, eps, n_jobs
        As in `L12RegressorCV`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 stratified folds by default.
    scoring : str or callable, optional
        As in scikit-learn; minus the mean logistic loss of the probabilities by default.
    selection : {"min", "1se"}
        Take the alpha with the best mean score, or the largest whose mean score is within one standard error of
        it.
    fit_intercept, positive, penalty_factors, warm_start, tol, max_iter, solver, verbose
        As in `L12Classifier`.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    alphas_ : array of shape (n_alphas,)
        The strengths tried, falling.
    scores_ : array of shape (n_alphas, n_folds)
        Scores on the samples left out, weighted by sample_weight.
    classes_, coef_, sparse_coef_, intercept_, n_iter_, result_, n_features_in_, feature_names_in_
        As in `L12Classifier`, fitted to all samples at ``alpha_``.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((80, 30))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * random.standard_normal(80) > 0
    >>> model = L12ClassifierCV(l2_weight=1, n_alphas=10, eps=0.1).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([3, 7])
    """

    def __init__(
        self,
        *,
        l2_weight: float = 0.5,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        positive: bool = False,
        penalty_factors: Any = None,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.l2_weight = l2_weight
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12ClassifierCV:
        """Choose alpha and fit the coefficients; arguments as in `L12Classifier.fit`."""
        X, codes, sample_weight = self._validate_labels(X, y, sample_weight)
        self.scores_ = self._search(X, codes, sample_weight)
        return self

    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        if self.scoring is not None:
            return self._custom_scores(coefs, intercepts, X, y, weight)
        shares = [probabilities(scores) for scores in np.moveaxis(_predictions(coefs, intercepts, X), 1, 0)]
        tiny = np.finfo(coefs.dtype).tiny  # so that one probability of 0 does not make every alpha equally bad
        return np.array([np.average(np.log(s[np.arange(len(y)), y] + tiny), weights=weight) for s in shares])

    def _custom_scores(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        model = copy.copy(self)
        scorer = check_scoring(model, scoring=self.scoring)
        weights = {} if weight is None else {"sample_weight": weight}
        scores = []
        for model.coef_, model.intercept_ in zip(coefs, intercepts, strict=True):
            scores.append(scorer(model, X, self.classes_[y], **weights))
        return np.array(scores)


def _fold(
    model: AlphaSearch, X: Any, y: Array, sample_weight: Any, train: Array, test: Array
) -> tuple[Array, list[Result]]:
    """The scores of a path fitted to one part and judged on the other, and how its runs ended."""

    def rows(values: Any, which: Array) -> Any:
        return None if values is None else _safe_indexing(values, which)

    problems = model._problems(rows(X, train), rows(y, train), rows(sample_weight, train))
    runs = [model._solve(problem, model.alphas_) for problem in problems]
    pairs = [
        [problem.coefficients(result.x) for result in results]
        for problem, results in zip(problems, runs, strict=True)
    ]
    coefs = np.concatenate([np.stack([coef for coef, _ in path]) for path in pairs], axis=1)
    intercepts = np.concatenate([np.stack([level for _, level in path]) for path in pairs], axis=1)
    scores = model._score_path(coefs, intercepts, rows(X, test), rows(y, test), rows(sample_weight, test))
    return scores, [replace(result, x=None, history={}) for results in runs for result in results]


def _predictions(coefs: Array, intercepts: Array, X: Any) -> Array:
    """The linear functions at the rows of X, (n_samples, n_alphas, n_problems), by one product."""
    flat = linear_functions(X, coefs.reshape(-1, coefs.shape[-1]), intercepts.reshape(-1))
    return flat.reshape(-1, *intercepts.shape)


def _select(scores: Array, selection: str) -> int:
    """Which alpha to take; of equals the largest."""
    means = scores.mean(axis=1)
    best = int(np.argmax(means))
    n_folds = scores.shape[1]
    if selection == "min" or n_folds < 2:
        return best
    error = scores[best].std(ddof=1) / np.sqrt(n_folds)
    return int(np.argmax(means >= means[best] - error))

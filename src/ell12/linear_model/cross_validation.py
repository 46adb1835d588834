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

from ell12.backend import as_numpy, indices_like, namespace, on_accelerator, take, total
from ell12.checks import check_flags, check_word, naming
from ell12.linear_model.arrays import follow, linear_functions, passes
from ell12.linear_model.classifier import L12Classifier, probabilities
from ell12.linear_model.folds import FoldColumns, solve_folds
from ell12.linear_model.problems import FitProblem
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
    together: bool | None

    def plot(self, axes: Any = None) -> Any:
        """Draw the cross-validation: `ell12.plot_cross_validation` of this model."""
        check_is_fitted(self)
        return plot_cross_validation(self, axes=axes)

    @abstractmethod
    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        """The score, the higher the better, for each alpha; coefs are (n_alphas, n_problems, n_features)."""

    def _search(self, X: Any, y: Array, sample_weight: Any) -> Array:
        """Set ``alphas_`` and ``alpha_``, fit at that, and return the scores, (n_alphas, n_folds)."""
        self._check_numbers()
        check_word(self.selection, "selection", "min", "1se")
        problems = self._problems(X, y, sample_weight)
        if self.alphas is None:
            alphas = alpha_grid(self._alpha_max(problems), self.n_alphas, self.eps)
        else:
            alphas = falling(self.alphas)
        labels = as_numpy(y)
        with naming("cv"):
            folds = list(check_cv(self.cv, labels, classifier=is_classifier(self)).split(X, labels))
        if not folds:
            raise ValueError(f"cv must give at least one fold, got {self.cv!r}")
        data = (X, y, sample_weight)
        if self._takes_columns(X, problems, alphas):
            scores, results = self._side_by_side(problems, data, folds, alphas)
        else:
            scores, results = self._one_by_one(data, folds, alphas)
        self.alphas_, self.alpha_ = follow(alphas, X), float(alphas[_select(scores, self.selection)])
        warn_if_not_converged(self, results)
        # From zero, as a plain fit at this alpha would be, so that the result does not depend on the grid.
        self._fit_problems(problems, self.alpha_)
        return follow(scores, X)

    def _takes_columns(self, X: Any, problems: list[FitProblem], alphas: Array) -> bool:
        """Whether the folds are solved side by side."""
        check_flags(optional=True, together=self.together)
        obstacles = {
            "solver": self.solver is not None,
            "shared_support": any(problem.n_targets for problem in problems),
            "an alpha of 0": alphas[-1] == 0,
        }
        named = " and ".join(name for name, there in obstacles.items() if there)
        if self.together and named:
            raise ValueError(f"together=True solves without {named}; give together=False")
        return on_accelerator(X) and not named if self.together is None else self.together

    def _side_by_side(
        self, problems: list[FitProblem], data: tuple[Any, ...], folds: list[Any], alphas: Array
    ) -> tuple[Array, list[Result]]:
        """The scores of each alpha and fold, and how the runs ended: the folds as columns of one problem."""
        columns = FoldColumns(problems, folds, data[2], self.fit_intercept)
        options = self._penalty_options() | {"l2_weight": self.l2_weight, "intercept": problems[0].constant != 0}
        limits = {"tol": self.tol, "max_iter": self.max_iter, "stop": self._progress()}
        scores, results = [], []
        paths = solve_folds(columns, alphas, options, limits)
        for (_, test), (coefs, intercepts, runs) in zip(folds, paths, strict=True):
            scores.append(self._score_path(coefs, intercepts, *(_rows(values, test) for values in data)))
            results += [replace(run, x=None, history={}) for run in runs]
        return np.stack(scores, axis=1), results

    def _one_by_one(self, data: tuple[Any, ...], folds: list[Any], alphas: Array) -> tuple[Array, list[Result]]:
        """The same, a warm-started path for each fold after the other, or in processes of their own."""
        foreign = passes(data[0])
        if foreign and not on_accelerator(data[0]):  # seen as NumPy arrays, which have the faster solver
            data = tuple(None if part is None else as_numpy(part) for part in data)
            foreign = False
        outcomes = Parallel(n_jobs=1 if foreign else self.n_jobs)(
            delayed(_fold)(self, *data, alphas, train, test) for train, test in folds
        )
        scores = np.stack([score for score, _ in outcomes], axis=1)
        return scores, [result for _, results in outcomes for result in results]


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
        Folds in parallel, by joblib; not on a GPU.
    together : bool, optional
        Solve for all folds, and for several alphas, side by side as the columns of one problem, by
        `ell12.ColumnwiseAPG`: each product with X is then one of matrices, which is how a GPU is kept busy. By
        default where X is on a GPU, if no ``solver`` and no ``shared_support`` are given and all alphas are
        positive. On a CPU the default, a path for each fold, is faster.
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
        together: bool | None = None,
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
        self.together = together
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
        xp = namespace(coefs)
        errors = (_predictions(coefs, intercepts, X) - xp.reshape(y, (y.shape[0], 1, -1))) ** 2
        return -_mean_of_samples(xp.mean(errors, axis=2), weight)


class L12ClassifierCV(AlphaSearch, L12Classifier):
    """`L12Classifier` with alpha, one for all classes, chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float
        Weight of the subtracted norm: 1 is l1-2, 0 the l1 norm; see `L12Classifier`.
    alphas, n_alphas, eps, n_jobs, together
        As in `L12RegressorCV`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 stratified folds by default.
    scoring : str or callable, optional
        As in scikit-learn; minus the mean logistic loss of the probabilities by default. A scorer gets NumPy
        arrays, whatever X is.
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
        together: bool | None = None,
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
        self.together = together
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
        xp, scores = namespace(coefs), _predictions(coefs, intercepts, X)
        given = y[:, None] == indices_like(np.arange(self.classes_.shape[0]), coefs)
        tiny = float(
            xp.finfo(coefs.dtype).smallest_normal
        )  # so that a probability of 0 does not make every alpha equally bad
        shares = [probabilities(scores[:, k, :]) for k in range(scores.shape[1])]
        logs = [xp.log(xp.sum(xp.where(given, share, 0), axis=1) + tiny) for share in shares]
        return _mean_of_samples(xp.stack(logs, axis=1), weight)

    def _custom_scores(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        model = copy.copy(self)
        scorer = check_scoring(model, scoring=self.scoring)
        model.classes_ = as_numpy(self.classes_)
        if passes(X):  # few scorers take more than NumPy
            coefs, intercepts, X, y = (as_numpy(values) for values in (coefs, intercepts, X, y))
            weight = None if weight is None else as_numpy(weight)
        weights = {} if weight is None else {"sample_weight": weight}
        scores = []
        for model.coef_, model.intercept_ in zip(coefs, intercepts, strict=True):
            scores.append(scorer(model, X, model.classes_[y], **weights))
        return np.array(scores)


def _fold(
    model: AlphaSearch, X: Any, y: Array, sample_weight: Any, alphas: Array, train: Array, test: Array
) -> tuple[Array, list[Result]]:
    """The scores of a path fitted to one part and judged on the other, and how its runs ended."""
    problems = model._problems(*(_rows(values, train) for values in (X, y, sample_weight)))
    runs = [model._solve(problem, alphas) for problem in problems]
    pairs = [
        [problem.coefficients(result.x) for result in results]
        for problem, results in zip(problems, runs, strict=True)
    ]
    xp = namespace(pairs[0][0][0])
    coefs = xp.concat([xp.stack([coef for coef, _ in path]) for path in pairs], axis=1)
    intercepts = xp.concat([xp.stack([level for _, level in path]) for path in pairs], axis=1)
    scores = model._score_path(coefs, intercepts, *(_rows(values, test) for values in (X, y, sample_weight)))
    return scores, [replace(result, x=None, history={}) for results in runs for result in results]


def _rows(values: Any, which: Array) -> Any:
    """Some rows of an array of any kind, if there is one."""
    if values is None:
        return None
    return take(values, np.arange(values.shape[0])[which], 0) if passes(values) else _safe_indexing(values, which)


def _predictions(coefs: Array, intercepts: Array, X: Any) -> Array:
    """The linear functions at the rows of X, (n_samples, n_alphas, n_problems), by one product."""
    xp = namespace(coefs)
    flat = linear_functions(X, xp.reshape(coefs, (-1, coefs.shape[-1])), xp.reshape(intercepts, (-1,)))
    return xp.reshape(flat, (-1, *intercepts.shape))


def _mean_of_samples(values: Array, weight: Any) -> Array:
    """The mean of each column over the samples, weighted, as a NumPy array."""
    if weight is None:
        return as_numpy(namespace(values).mean(values, axis=0))
    if total(weight) == 0:
        raise ValueError("sample_weight sums to zero on the samples that a fold leaves out: nothing to judge by")
    return as_numpy(weight @ values) / total(weight)


def _select(scores: Array, selection: str) -> int:
    """Which alpha to take; of equals the largest."""
    means = scores.mean(axis=1)
    if np.isnan(means).all():
        raise ValueError("the scores of every alpha are NaN: scoring must give numbers")
    means = np.where(np.isnan(means), -np.inf, means)
    best = int(np.argmax(means))
    n_folds = scores.shape[1]
    if selection == "min" or n_folds < 2:
        return best
    error = scores[best].std(ddof=1) / np.sqrt(n_folds)
    return int(np.argmax(means >= means[best] - error))

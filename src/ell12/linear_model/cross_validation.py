"""The strength alpha by cross-validation, along warm-started paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import as_numpy, indices_like, namespace, total
from ell12.linear_model.choice import scores_of
from ell12.linear_model.classifier import L12Classifier
from ell12.linear_model.fit_problem import linear_functions
from ell12.linear_model.regressor import L12Regressor
from ell12.linear_model.search import AlphaSearch
from ell12.protocols import Array


class L12RegressorCV(AlphaSearch, L12Regressor):
    """`L12Regressor` with alpha chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float or list of float, default 1.0
        Weight of the subtracted norm, from 0 to 1: 1 is l1-2, 0 the Lasso. From a list the best is chosen, on the
        same folds.
    alphas : int or array, optional
        The strengths to try, or how many; ``n_alphas`` by default. Every l2_weight has its own grid, unless the
        strengths themselves are given.
    n_alphas, eps : int, float, default 100 and 1e-3
        The default grid has this number of strengths, from `ell12.path.alpha_max` down to eps times that.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default.
    scoring : str or callable, optional
        As in scikit-learn; higher is better. By default minus the mean squared error; for other losses minus
        twice Huber's loss, or minus Poisson's deviance. A scorer gets NumPy arrays.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default "min"
        "min" takes the alpha with the best mean. "1se" takes the largest alpha whose mean is within one standard
        error of the best, and so selects fewer features; if folds differ much it can select too few: look at
        ``standard_error_`` and `plot`. From several l2_weights the one with the best mean is taken. "aic", "bic"
        and "ebic" need no folds. They take the smallest information criterion along one path over all samples;
        "ebic" selects the fewest features. See the notes.
    n_jobs : int, optional
        Folds in parallel, by joblib; not on a GPU.
    together : bool, optional
        Solve all folds, and several alphas, side by side as the columns of one problem, by
        `ell12.path.columnwise.ColumnwiseAPG`: each product with X is one of matrices, for a GPU. This is
        the default if X is on a GPU, no ``solver`` and no ``shared_support`` are given, all alphas are positive
        and the loss is squared. On a CPU a path for each fold is faster, and the default.
    loss, delta, ridge, fit_intercept, positive, penalty_factors, bounds, groups, shared_support
        As in `L12Regressor`.
    relax : bool, default False
        As in `L12Regressor`. The refitted coefficients of each fold are judged, so alpha is chosen for them.
    warm_start, tol, max_iter, solver, verbose
        As in `L12Regressor`.

    Attributes
    ----------
    alpha_, l2_weight_ : float
        What was chosen; one for all columns of y.
    alphas_ : array of shape (n_alphas,) or (n_l2_weights, n_alphas)
        The strengths tried, falling; for each l2_weight of a list, unless alphas were given.
    mse_path_ : array of shape (n_alphas, n_folds) or (n_l2_weights, n_alphas, n_folds)
        Mean squared errors on the samples left out, weighted by sample_weight; for other losses the means of twice
        Huber's loss, or of Poisson's deviance. The longer shape belongs to a list of l2_weights. It does not exist
        if a ``scoring`` is given.
    scores_ : array of the same shape
        What a given ``scoring`` says of the samples left out.
    standard_error_ : float
        Of the best mean, over the folds: what "1se" allows. NaN for one fold.
    criterion_path_, df_path_ : arrays of shape (n_alphas,) or (n_l2_weights, n_alphas)
        The information criterion and the degrees of freedom, where one of these selects; no errors of folds then.
    coef_, sparse_coef_, intercept_, n_iter_, result_, dual_gap_, n_features_in_, feature_names_in_
        As in `L12Regressor`, fitted to all samples at ``alpha_``.

    See Also
    --------
    L12Regressor : Regression with a strength of your own choice.
    L12ClassifierCV : Classification with a strength chosen by cross-validation.

    Notes
    -----
    With n samples of positive weight, the residual sum of squares RSS and k degrees of freedom, AIC is
    ``n log(RSS/n) + 2 k`` and BIC ``n log(RSS/n) + k log n``: the variance takes its most likely value. EBIC adds
    ``2 log C(p, s)`` for s of p features, or groups. ``k = trace(H (H + P)^-1)``, with the Hessians H of the loss
    and P of the penalty on the support, and 1 for an intercept: s for the Lasso, more where a norm is subtracted.
    A coefficient at a bound counts for nothing, and after a refit (``relax``) P is 0. Strengths where the fit is
    no strict minimum on its support, or where k exceeds n/2, are not taken; the criterion is infinite there.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12RegressorCV
    >>> from ell12.datasets import correlated_design
    >>> problem = correlated_design(0, n_samples=60, n_features=100, n_nonzero=3, noise=0.05)
    >>> model = L12RegressorCV(n_alphas=20, eps=0.03, selection="1se").fit(problem.A, problem.b)
    >>> np.flatnonzero(problem.x), np.flatnonzero(model.coef_)
    (array([22, 43, 51]), array([22, 24, 43, 51]))
    """

    def __init__(
        self,
        *,
        loss: str = "squared",
        delta: float = 1.35,
        l2_weight: Any = 1.0,
        ridge: float = 0.0,
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
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        shared_support: bool = False,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.l2_weight = l2_weight
        self.ridge = ridge
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
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.shared_support = shared_support
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> L12RegressorCV:
        """Choose alpha and fit the coefficients; arguments as in `L12Regressor.fit`."""
        if offset is not None and self.scoring is not None:
            raise ValueError("scoring is not told of an offset; leave it None, for the deviance")
        X, y, sample_weight = self._observed(X, y, sample_weight, offset)
        scores = self._search(X, y, sample_weight)
        if scores is not None and self.scoring is None:
            self.mse_path_ = -scores
        elif scores is not None:
            self.scores_ = scores
        self._squeeze(y)
        return self

    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        if self.scoring is not None:
            return scores_of(self, coefs, intercepts, X, self._family.scored(y), weight)
        errors = self._family.errors(_predictions(coefs, intercepts, X), y)
        return -_mean_of_samples(namespace(coefs).mean(errors, axis=2), weight)


class L12ClassifierCV(AlphaSearch, L12Classifier):
    """`L12Classifier` with alpha, one for all classes, chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float or list of float, default 0.5
        Weight of the subtracted norm, from 0 to 1: 1 is l1-2, 0 the l1 norm; see `L12Classifier`. Of several the
        best is chosen, on the same folds.
    alphas, n_alphas, eps, n_jobs, together
        As in `L12RegressorCV`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 stratified folds by default.
    scoring : str or callable, optional
        As in scikit-learn; minus the mean logistic loss of the probabilities by default. A scorer gets NumPy
        arrays, whatever X is.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default "min"
        As in `L12RegressorCV`.
    class_weight : dict or "balanced", optional
        As in `L12Classifier`; found on all samples, and used in the fits, not in the scores.
    multinomial, ridge, fit_intercept, positive, penalty_factors, bounds, groups, relax, warm_start, tol, max_iter
        As in `L12Classifier`, and ``relax`` as in `L12RegressorCV`.
    solver, verbose
        As in `L12Classifier`.

    Attributes
    ----------
    alpha_, l2_weight_, alphas_, standard_error_, criterion_path_, df_path_
        As in `L12RegressorCV`, with twice the logistic loss of all samples in place of ``n log(RSS/n)``.
    scores_ : array of shape (n_alphas, n_folds) or (n_l2_weights, n_alphas, n_folds)
        Scores on the samples left out, weighted by sample_weight.
    classes_, coef_, sparse_coef_, intercept_, n_iter_, result_, n_features_in_, feature_names_in_
        As in `L12Classifier`, fitted to all samples at ``alpha_``.

    See Also
    --------
    L12Classifier : Classification with a strength of your own choice.
    L12RegressorCV : Regression with a strength chosen by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12ClassifierCV
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
        multinomial: bool = False,
        l2_weight: Any = 0.5,
        ridge: float = 0.0,
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
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        class_weight: Any = None,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.multinomial = multinomial
        self.l2_weight = l2_weight
        self.ridge = ridge
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
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12ClassifierCV:
        """Choose alpha and fit the coefficients; arguments as in `L12Classifier.fit`."""
        X, codes, sample_weight = self._observed(X, y, sample_weight)
        scores = self._search(X, codes, sample_weight)
        if scores is not None:
            self.scores_ = scores
        return self

    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        if self.scoring is not None:
            return scores_of(self, coefs, intercepts, X, y, weight)
        xp, scores = namespace(coefs), _predictions(coefs, intercepts, X)
        given = y[:, None] == indices_like(np.arange(self.classes_.shape[0]), coefs)
        tiny = float(
            xp.finfo(coefs.dtype).smallest_normal
        )  # so that a probability of 0 does not make every alpha equally bad
        shares = [self._shares(scores[:, k, :]) for k in range(scores.shape[1])]
        logs = [xp.log(xp.sum(xp.where(given, share, 0), axis=1) + tiny) for share in shares]
        return _mean_of_samples(xp.stack(logs, axis=1), weight)


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

"""Strength and penalty by cross-validation or an information criterion."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import as_numpy, indices_like, namespace, total
from ell12.linear_model.alpha_search import AlphaSearch, scores_of
from ell12.linear_model.classifier import L12Classifier
from ell12.linear_model.cox_regressor import Cox, L12CoxRegressor, concordance_index
from ell12.linear_model.families import NoInformation
from ell12.linear_model.fit_problem import Data, linear_functions
from ell12.linear_model.regressor import L12Regressor
from ell12.linear_model.sparse_model import keep_arguments
from ell12.penalties import L12
from ell12.protocols import Array, Point


class L12RegressorCV(AlphaSearch, L12Regressor):
    """`L12Regressor` with alpha, and the penalty if several are given, chosen by cross-validation.

    Parameters
    ----------
    penalty : Penalty or list of Penalty, default L12()
        Without a strength. From a list, such as ``[L12(l2_weight=w) for w in (0, 0.5, 1)]``, the best is chosen,
        on the same folds.
    alphas : int or array, default 100
        How many strengths to try, from `ell12.path.alpha_max` down to ``eps`` times that, for each penalty; or the
        strengths.
    eps : float, default 1e-3
        The smallest strength, relative to the largest.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 by default. The folds of a number are shuffled, in the same way at every call;
        `sklearn.model_selection.KFold` makes contiguous ones.
    scoring : str or callable, optional
        As in scikit-learn; higher is better. By default minus the mean deviance: squared errors, twice Huber's
        loss, Poisson's deviance. A scorer gets NumPy arrays.
    selection : {"min", "1se", "aic", "bic", "ebic"}, default "min"
        "min" takes the alpha with the best mean. "1se" takes the largest alpha whose mean is within one standard
        error of the best, and so selects fewer features; from several penalties the one with the best mean is
        taken. "aic", "bic" and "ebic" need no folds. They take the smallest information criterion along one path
        over all samples; "ebic" selects the fewest features. See the notes.
    loss, fit_intercept, standardize, tol
        As in `L12Regressor`.
    relax : bool or "auto", default "auto"
        As in `L12Regressor`; True scores the refitted coefficients of each fold. "auto" scores the penalised
        coefficients, the refitted ones and the mean of both, and takes the best; a refit must be better by half a
        standard error of the difference. That takes about 1.1 times the time. It selects far fewer wrong features
        where the truth is sparse, and predicts as well where it is not. "auto" is False for an information
        criterion, on a GPU, and for columns out of memory.
    n_jobs : int, optional
        Folds in parallel, by joblib; not on a GPU.

    Attributes
    ----------
    alpha_ : float
        The strength chosen; one for all columns of y.
    penalty_ : Penalty
        The penalty chosen, with that strength.
    relaxed_ : float
        How much of what the refit changes is in the coefficients: 0 none, 1 all of it.
    alphas_ : array of shape (n_alphas,) or (n_penalties, n_alphas)
        The strengths tried, falling; for each penalty of a list, unless alphas were given.
    mse_path_ : array of shape (n_alphas, n_folds) or (n_penalties, n_alphas, n_folds)
        Mean deviances on the samples left out, weighted by sample_weight; NaN for a fold without information, such
        as one whose samples have no weight, which a warning names. It does not exist if a ``scoring`` is given.
    scores_ : array of the same shape
        What a given ``scoring`` says of the samples left out.
    standard_error_ : float
        Of the best mean, over the folds: what "1se" allows. NaN for one fold.
    criterion_path_, df_path_ : arrays of shape (n_alphas,) or (n_penalties, n_alphas)
        The information criterion and the degrees of freedom, where one of these selects.
    coef_, sparse_coef_, intercept_, n_iter_, stationarity_, converged_, results_, dual_gap_
        As in `L12Regressor`, fitted to all samples at ``alpha_``.
    n_features_in_, feature_names_in_
        What fit has seen.

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
    After a refit (``relax``) P is 0. Strengths where the fit is no strict minimum on its support, or where k
    exceeds n/2, are not taken; the criterion is infinite there.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12RegressorCV
    >>> from ell12.datasets import correlated_design
    >>> problem = correlated_design(0, n_samples=60, n_features=100, n_nonzero=3, noise=0.05)
    >>> model = L12RegressorCV(alphas=20, eps=0.03, selection="1se").fit(problem.A, problem.b)
    >>> np.flatnonzero(problem.x), np.flatnonzero(model.coef_)
    (array([22, 43, 51]), array([22, 43, 51]))
    """

    def __init__(
        self,
        *,
        penalty: Any = L12(),  # noqa: B008
        loss: Any = "squared",
        alphas: Any = 100,
        eps: float = 1e-3,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "min",
        fit_intercept: bool = True,
        standardize: bool = False,
        relax: bool | str = "auto",
        tol: float = 1e-4,
        n_jobs: int | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, groups: Any = None
    ) -> L12RegressorCV:
        """Choose alpha and fit the coefficients.

        Parameters
        ----------
        X, y, sample_weight, offset
            As in `L12Regressor.fit`.
        groups : array of shape (n_samples,), optional
            For a ``cv`` that keeps groups of samples together, such as `sklearn.model_selection.GroupKFold`.
        """
        if offset is not None and self.scoring is not None:
            raise ValueError("scoring knows no offset; leave it None, for the deviance")
        return self._search(self._observed(X, y, sample_weight, offset), groups)

    def _score_path(self, coefs: Array, intercepts: Array, data: Data) -> Array:
        X, y, weight, offset = data
        if self.scoring is not None:
            return scores_of(self, coefs, intercepts, data)
        eta = _predictions(coefs, intercepts, X)
        if offset is not None:
            eta = eta + offset[:, None, None]
        y = namespace(y).reshape(y, (y.shape[0], -1))
        parts = [own.deviance(y[:, k][:, None], eta[:, :, k]) for k, own in enumerate(self._families)]
        return -_mean_of_samples(sum(parts) / len(parts), weight)


class L12ClassifierCV(AlphaSearch, L12Classifier):
    """`L12Classifier` with alpha, one for all classes, chosen by cross-validation.

    Parameters
    ----------
    penalty : Penalty or list of Penalty, default L12(l2_weight=0.5)
        As in `L12RegressorCV`; see `L12Classifier`.
    alphas, eps, cv, selection, n_jobs
        As in `L12RegressorCV`; folds are stratified.
    scoring : str or callable, optional
        As in scikit-learn; minus the mean logistic loss of the probabilities by default. A scorer gets NumPy
        arrays, whatever X is.
    class_weight : dict or "balanced", optional
        As in `L12Classifier`; found on all samples, and used in the fits, not in the scores.
    loss, fit_intercept, standardize, tol
        As in `L12Classifier`.

    Attributes
    ----------
    alpha_, penalty_, alphas_, standard_error_, criterion_path_, df_path_
        As in `L12RegressorCV`, with twice the logistic loss of all samples in place of ``n log(RSS/n)``.
    scores_ : array of shape (n_alphas, n_folds) or (n_penalties, n_alphas, n_folds)
        Scores on the samples left out, weighted by sample_weight.
    classes_, coef_, sparse_coef_, intercept_, n_iter_, stationarity_, converged_, results_
        As in `L12Classifier`, fitted to all samples at ``alpha_``.
    n_features_in_, feature_names_in_
        What fit has seen.

    See Also
    --------
    L12Classifier : Classification with a strength of your own choice.
    L12RegressorCV : Regression with a strength chosen by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12, L12ClassifierCV
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((80, 30))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * random.standard_normal(80) > 0
    >>> model = L12ClassifierCV(penalty=L12(), alphas=[0.2, 0.1, 0.05]).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([3, 7])
    """

    def __init__(
        self,
        *,
        penalty: Any = L12(l2_weight=0.5),  # noqa: B008
        loss: Any = "logistic",
        class_weight: Any = None,
        alphas: Any = 100,
        eps: float = 1e-3,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "min",
        fit_intercept: bool = True,
        standardize: bool = False,
        tol: float = 1e-4,
        n_jobs: int | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> L12ClassifierCV:
        """Choose alpha and fit the coefficients; arguments as in `L12RegressorCV.fit`."""
        return self._search(self._observed(X, y, sample_weight), groups)

    def _score_path(self, coefs: Array, intercepts: Array, data: Data) -> Array:
        if self.scoring is not None:
            return scores_of(self, coefs, intercepts, data)
        xp, scores = namespace(coefs), _predictions(coefs, intercepts, data.X)
        given = data.y[:, None] == indices_like(np.arange(self.classes_.shape[0]), coefs)
        tiny = float(xp.finfo(coefs.dtype).smallest_normal)  # so that a probability of 0 is finitely bad
        shares = [self._shares(scores[:, k, :]) for k in range(scores.shape[1])]
        logs = [xp.log(xp.sum(xp.where(given, share, 0), axis=1) + tiny) for share in shares]
        return _mean_of_samples(xp.stack(logs, axis=1), data.sample_weight)


class L12CoxRegressorCV(AlphaSearch, L12CoxRegressor):
    """`L12CoxRegressor` with alpha chosen by cross-validation.

    Parameters
    ----------
    penalty : Penalty or list of Penalty, default L12(l2_weight=0.5)
        As in `L12RegressorCV`.
    alphas, eps, cv, selection, n_jobs
        As in `L12RegressorCV`; each fold has its share of the events.
    scoring : str, callable or None, default "concordance"
        "concordance" is Harrell's index. None takes the logarithm of the partial likelihood of all
        samples less that of the samples fitted to, for each event left out, after van Houwelingen and others
        (doi:10.1002/sim.2353), which keeps fewer features and often predicts worse where events are few. Others
        are as in scikit-learn; a scorer is given the time and the event as two columns.
    ties, standardize, tol
        As in `L12CoxRegressor`.
    relax : bool or "auto", default "auto"
        As in `L12RegressorCV`.

    Attributes
    ----------
    alpha_, penalty_, relaxed_, alphas_, standard_error_, criterion_path_, df_path_
        As in `L12RegressorCV`. Criteria have minus twice the logarithm of the partial likelihood, and n is the
        number of events.
    scores_ : array of shape (n_alphas, n_folds) or (n_penalties, n_alphas, n_folds)
        The scores.
    coef_, intercept_, sparse_coef_, n_iter_, stationarity_, converged_, results_
        As in `L12CoxRegressor`, fitted to all samples at ``alpha_``.
    n_features_in_, feature_names_in_
        What fit has seen.

    See Also
    --------
    L12CoxRegressor : Survival times with a strength of your own choice.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12CoxRegressorCV
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((80, 20))
    >>> time = random.exponential(np.exp(-2 * X[:, 3]))
    >>> model = L12CoxRegressorCV(alphas=10, eps=0.1, selection="1se").fit(X, time)
    >>> np.flatnonzero(model.coef_)
    array([3])
    """

    _own_scores = ("concordance",)
    _weighs_folds = False  # a row of weight zero would still count among ties

    def __init__(
        self,
        *,
        penalty: Any = L12(l2_weight=0.5),  # noqa: B008
        ties: str = "efron",
        alphas: Any = 100,
        eps: float = 1e-2,
        cv: Any = None,
        scoring: Any = "concordance",
        selection: str = "min",
        standardize: bool = False,
        relax: bool | str = "auto",
        tol: float = 1e-4,
        n_jobs: int | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> L12CoxRegressorCV:
        """Choose alpha and fit the coefficients; y as in `L12CoxRegressor`, groups as in `L12RegressorCV`."""
        data = self._observed(X, y, sample_weight)
        self._search(data, groups)._keep_baseline(data)
        return self

    def _score_path(self, coefs: Array, intercepts: Array, data: Data) -> Array:
        if self.scoring == "concordance":
            risks = linear_functions(data.X, coefs[:, 0], 0.0)
            return concordance_index(data.y, risks, data.sample_weight)
        return scores_of(self, coefs[:, 0], intercepts[:, 0], data)

    def _score_fold(self, path: tuple[Array, Array], data: Data, train: Array, test: Array) -> Array:
        if self.scoring is not None:
            return super()._score_fold(path, data, train, test)
        X, y, weight, _ = data
        weight = np.ones(y.shape[0]) if weight is None else weight
        # Rows that are not fitted to, as a splitter may name some twice or none at all.
        seen, unseen = (np.bincount(rows, minlength=y.shape[0]) for rows in (train, test))
        events = float((weight * unseen) @ y[:, 1])
        if events == 0:
            raise NoInformation("a fold leaves out no event of positive weight: nothing to judge by")
        etas, family = linear_functions(X, path[0][:, 0], 0.0).T.astype(np.float64), Cox(self.ties)
        losses = [
            family.loss(None, y, sample_weight=weight * times, offset=0, scale=1.0)
            for times in (seen + unseen, seen)
        ]
        whole, fitted = ([loss.value(Point(None, eta)) for eta in etas] for loss in losses)
        return np.subtract(fitted, whole) / events


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
        raise NoInformation("sample_weight sums to zero on the samples that a fold leaves out")
    return as_numpy(weight @ values) / total(weight)

"""Sparse regression of survival times: Cox's proportional hazards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ell12.backend import refuse_masked
from ell12.checks import check_entries, naming
from ell12.linear_model.choice import scores_of
from ell12.linear_model.fit_problem import Design, FitProblem, check_numpy, linear_functions
from ell12.linear_model.search import AlphaSearch
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.losses.cox import CoxLoss, RiskSets
from ell12.operators import is_far
from ell12.protocols import Array, Point

# Pairs of samples that are compared at once: a matrix of 4 million truth values.
PAIRS = 2**22


class L12CoxRegressor(SparseLinearModel):
    """Cox regression of survival times under the l1-2 penalty.

    Minimises over the coefficients c, with l the logarithm of Cox's partial likelihood of the hazards
    ``exp(x_i'c)`` (see `ell12.CoxLoss`)::

        -l(c) / n + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples, or the sum of their weights. At ``l2_weight=0`` and ``ties="breslow"`` this
    is the problem of R's glmnet.

    Parameters
    ----------
    alpha : float, default 0.01
        Strength of the penalty, at least 0.
    ties : {"efron", "breslow"}, default "efron"
        What becomes of events at the same time. With "breslow" a weight of 2 is the same as a sample that is there
        twice; with "efron", which is nearer to the truth, it is not.
    l2_weight, ridge, positive, penalty_factors, bounds, groups, relax, warm_start, tol, max_iter, solver, verbose
        As in `L12Regressor`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients: the change of the logarithm of the hazard for each unit of a feature.
    intercept_ : float
        0: a constant is no part of the model.
    n_iter_, result_, sparse_coef_, n_features_in_, feature_names_in_
        As in `L12Regressor`.

    See Also
    --------
    L12CoxRegressorCV : Survival times with a strength chosen by cross-validation.
    CoxLoss : Survival times.

    Notes
    -----
    At ``l2_weight=1`` a single coefficient costs nothing: where one feature puts all events in order there is
    no finite solution without a ridge, and the fit ends with a ConvergenceWarning. Strata and samples that come
    under risk late are not offered.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12CoxRegressor
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [2.0, 2.0], [4.0, 2.0]])
    >>> time, event = np.array([9.0, 7.0, 6.0, 3.0, 8.0, 2.0]), np.array([1, 1, 0, 1, 1, 1])
    >>> model = L12CoxRegressor(alpha=0.1, l2_weight=0.5).fit(X, np.column_stack([time, event]))
    >>> np.flatnonzero(model.coef_), model.score(X, np.column_stack([time, event]))
    (array([0, 1]), 0.9166666666666666)
    """

    fit_intercept = False

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        ties: str = "efron",
        l2_weight: float = 0.5,
        ridge: float = 0.0,
        positive: bool = False,
        penalty_factors: Any = None,
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.ties = ties
        self.l2_weight = l2_weight
        self.ridge = ridge
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12CoxRegressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array
            When a sample had its event, or was seen last, and whether it had it: a structured array of a field of
            truth values and one of times, as in scikit-survival; or two columns, the time and the event, 0 or 1;
            or times alone, where all had their event. The order of the times alone counts.
        sample_weight : array of shape (n_samples,), optional
            Weights, at least 0.
        """
        X, y, sample_weight = self._observed(X, y, sample_weight)
        self._fit_problems(self._problems(X, y, sample_weight), self.alpha)
        self._squeeze(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The logarithm of the hazard at the rows of X, up to a constant: the larger, the sooner is the event."""
        return self._linear_functions(X, "predict")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's index of concordance: `concordance_index` of the predictions."""
        refuse_masked(sample_weight, "sample_weight")
        return concordance_index(y, self.predict(X), sample_weight)

    def _observed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Any]:
        X, y, sample_weight = self._validate(X, survival_times(y), sample_weight, multi_output=True)
        if not is_far(X):
            check_numpy(X, type(self).__name__)
        return X, y, sample_weight

    def _strata(self, y: Array) -> Array:
        return y[:, 1].astype(np.int64)

    def _problems(self, X: Any, y: Array, sample_weight: Any) -> list[FitProblem]:
        # Centred columns change nothing and make a better-conditioned problem.
        design = Design(X, sample_weight, center=True, constant=False)
        risk = RiskSets.of(y[:, 0], y[:, 1], sample_weight, self.ties)
        problem = design.problem(CoxLoss, y[:, 1].astype(X.dtype), risk=risk)
        return [replace(problem, means=0 * design.means)]

    def _squeeze(self, y: Array) -> None:  # noqa: ARG002
        self.coef_, self.intercept_ = self.coef_[0], 0.0
        self.n_iter_, self.result_ = int(self.n_iter_[0]), self.result_[0]


class L12CoxRegressorCV(AlphaSearch, L12CoxRegressor):
    """`L12CoxRegressor` with alpha chosen by cross-validation.

    Parameters
    ----------
    l2_weight : float or list of float, default 0.5
        Weight of the subtracted norm, from 0 to 1. Of several the best is chosen, on the same folds.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default, each with its share of the events.
    scoring : str or callable, optional
        As in scikit-learn; a scorer is given the time and the event as two columns. By default the logarithm of
        the partial likelihood of all samples less that of the samples fitted to, for each event left out, after
        van Houwelingen and others (doi:10.1002/sim.2353).
    alphas, n_alphas, eps, selection, n_jobs, together
        As in `L12RegressorCV`; ``together=True`` is not to be had.
    ties, ridge, positive, penalty_factors, bounds, groups, relax, warm_start, tol, max_iter, solver, verbose
        As in `L12CoxRegressor`.

    Attributes
    ----------
    alpha_, l2_weight_, alphas_, standard_error_, criterion_path_, df_path_
        As in `L12RegressorCV`. Criteria have minus twice the logarithm of the partial likelihood, and n is the
        number of events.
    scores_ : array of shape (n_alphas, n_folds) or (n_l2_weights, n_alphas, n_folds)
        The scores.
    coef_, intercept_, sparse_coef_, n_iter_, result_, n_features_in_, feature_names_in_
        As in `L12CoxRegressor`, fitted to all samples at ``alpha_``.

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
    >>> model = L12CoxRegressorCV(n_alphas=10, eps=0.1, selection="1se").fit(X, time)
    >>> np.flatnonzero(model.coef_)
    array([3])
    """

    _weighs_folds = False  # a row of weight zero would still count among ties

    def __init__(
        self,
        *,
        ties: str = "efron",
        l2_weight: Any = 0.5,
        ridge: float = 0.0,
        alphas: Any = None,
        n_alphas: int = 100,
        eps: float = 1e-2,
        cv: Any = None,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        together: bool | None = None,
        positive: bool = False,
        penalty_factors: Any = None,
        bounds: Any = None,
        groups: Any = None,
        relax: bool = False,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: Any = None,
        verbose: int = 0,
    ) -> None:
        self.ties = ties
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
        self.positive = positive
        self.penalty_factors = penalty_factors
        self.bounds = bounds
        self.groups = groups
        self.relax = relax
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> L12CoxRegressorCV:
        """Choose alpha and fit the coefficients; arguments as in `L12CoxRegressor.fit`."""
        X, y, sample_weight = self._observed(X, y, sample_weight)
        scores = self._search(X, y, sample_weight)
        if scores is not None:
            self.scores_ = scores
        self._squeeze(y)
        return self

    def _score_path(self, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
        return scores_of(self, coefs[:, 0], intercepts[:, 0], X, y, weight)

    def _score_fold(self, path: tuple[Array, Array], data: tuple[Any, ...], train: Array, test: Array) -> Array:
        if self.scoring is not None:
            return super()._score_fold(path, data, train, test)
        X, y, weight = data
        weight = np.ones(y.shape[0]) if weight is None else weight
        # Rows that are not fitted to, as a splitter may name some twice or none at all.
        seen = np.bincount(np.arange(y.shape[0])[train], minlength=y.shape[0])
        both = seen + np.bincount(np.arange(y.shape[0])[test], minlength=y.shape[0])
        events = float((weight * (both - seen)) @ y[:, 1])
        if events == 0:
            raise ValueError("a fold leaves out no event of positive weight: nothing to judge by")
        eta = linear_functions(X, path[0][:, 0], 0.0)
        whole, fitted = (self._partial_likelihoods(eta, y, weight * times) for times in (both, seen))
        return (whole - fitted) / events

    def _partial_likelihoods(self, eta: Array, y: Array, weight: Array) -> Array:
        """The logarithm of the partial likelihood of each column of eta."""
        risk = RiskSets.of(y[:, 0], y[:, 1], weight, self.ties)
        loss = CoxLoss.of_checked(None, y[:, 1], sample_weight=weight, risk=risk)
        return -np.array([loss.value(Point(None, column)) for column in eta.T.astype(np.float64)])


def survival_times(y: Any) -> Array:
    """The time and the event of each sample, as two columns of numbers; see `L12CoxRegressor.fit` for y.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.cox_regressor import survival_times
    >>> survival_times(np.array([(True, 3.0), (False, 5.0)], dtype=[("event", bool), ("time", float)]))
    array([[3., 1.],
           [5., 0.]])
    """
    refuse_masked(y, "y")
    fields = getattr(getattr(y, "dtype", None), "names", None)
    if fields is not None:
        flags = [name for name in fields if y.dtype[name].kind == "b"]
        times = [name for name in fields if y.dtype[name].kind in "iuf"]
        if y.ndim != 1 or len(fields) != 2 or len(flags) != 1 or len(times) != 1:
            raise ValueError(f"y must have one field of truth values and one of times, got {y.dtype}")
        y = np.column_stack([y[times[0]], y[flags[0]]])
    with naming("y"):
        y = np.asarray(y)
        if y.dtype.kind == "c":
            raise ValueError("Complex data not supported in y")
        y = y.astype(np.float64)
    if y.ndim == 1:
        y = np.column_stack([y, np.ones_like(y)])
    if y.ndim != 2 or y.shape[1] != 2:
        raise ValueError(f"y must be a structured array, or hold two columns, time and event; got shape {y.shape}")
    check_entries(y, "y")
    if not np.isin(y[:, 1], (0, 1)).all():
        raise ValueError("y must hold 0 and 1 only in its second column, which tells the events")
    return y


def concordance_index(y: Any, risk: Array, sample_weight: Any = None) -> float:
    """Harrell's index: of all pairs whose order is known, the share in which the sooner event had the larger risk.

    A pair's order is known if one had its event before the other was last seen; of two at the same time, if one
    had its event and the other not. Equal risks count half; 0.5 is no better than chance.

    Parameters
    ----------
    y : array
        Times and events, as in `L12CoxRegressor.fit`.
    risk : array of shape (n_samples,)
        The larger, the sooner is the event.
    sample_weight : array of shape (n_samples,), optional
        A pair counts with the product of its weights.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.cox_regressor import concordance_index
    >>> concordance_index(np.array([1.0, 2.0, 3.0]), np.array([5.0, 3.0, 4.0]))  # two of three pairs
    0.6666666666666666
    """
    y, risk = survival_times(y), np.asarray(risk, dtype=np.float64)
    weight = np.ones(risk.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not risk.size == weight.size == y.shape[0]:
        raise ValueError(f"y has {y.shape[0]} samples, risk {risk.size} and sample_weight {weight.size}")
    # By time, and of equal times events first: an event's known pairs are with all behind the events of its time.
    order = np.lexsort((-y[:, 1], y[:, 0]))
    (time, event), risk, weight = y[order].T, risk[order], weight[order]
    rows = np.flatnonzero(event)
    first = np.searchsorted(time, time[rows], side="left") + _events_at(time, event)[rows]
    right = known = 0.0
    block = max(1, PAIRS // max(risk.size, 1))
    for start in range(0, rows.size, block):
        some = rows[start : start + block]
        pairs = weight[some, None] * weight * (np.arange(risk.size) >= first[start : start + block, None])
        gap = risk[some, None] - risk
        right += float(np.sum(pairs * (0.5 + 0.5 * np.sign(gap))))
        known += float(pairs.sum())
    if known == 0:
        raise ValueError("y holds no pair of samples whose order is known")
    return right / known


def _events_at(time: Array, event: Array) -> Array:
    """For each sample the number of events at its time."""
    _, where = np.unique(time, return_inverse=True)
    return np.bincount(where, event)[where].astype(np.int64)

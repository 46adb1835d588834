"""Sparse regression of survival times: Cox's proportional hazards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ell12.backend import refuse_masked
from ell12.checks import check_entries, check_word, naming
from ell12.linear_model.families import Family, NoInformation
from ell12.linear_model.fit_problem import Data, FitProblem, check_numpy, linear_functions
from ell12.linear_model.sparse_model import SparseLinearModel, keep_arguments
from ell12.losses.cox import CoxLoss, RiskSets
from ell12.operators import dtype_of, is_out_of_memory
from ell12.penalties import L12
from ell12.protocols import Array


@dataclass(frozen=True)
class Cox(Family):
    """Survival times; y has two columns, the time and whether there was an event.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default "efron"
        As in `ell12.L12CoxRegressor`.
    """

    ties: str = "efron"
    centred: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_word(self.ties, "ties", "efron", "breslow")

    def loss(self, A: Any, y: Array, *, sample_weight: Any, offset: Any, scale: float) -> Any:  # noqa: ARG002
        """A `CoxLoss`."""
        if not np.any(y[:, 1] if sample_weight is None else y[:, 1] * sample_weight):
            raise NoInformation("y holds no event of positive weight: there is nothing to fit")
        risk = RiskSets.of(y[:, 0], y[:, 1], sample_weight, self.ties)
        event = y[:, 1] if A is None else y[:, 1].astype(dtype_of(A))
        return CoxLoss.of_checked(A, event, sample_weight=sample_weight, scale=scale, risk=risk)


@dataclass(frozen=True)
class StepFunction:
    """A function of time that is constant from each of the times x on; ``first`` before them.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.cox_regressor import StepFunction
    >>> StepFunction(np.array([1.0, 2.0]), np.array([0.5, 0.2]), 1.0)([0.0, 1.0, 3.0])
    array([1. , 0.5, 0.2])
    """

    x: Array
    y: Array
    first: float

    def __call__(self, time: Any) -> Any:
        """The values at one time or several."""
        return np.append(self.first, self.y)[np.searchsorted(self.x, time, side="right")]

    @property
    def domain(self) -> tuple[float, float]:
        """Where it is defined, as scikit-survival asks."""
        return -np.inf, np.inf


class L12CoxRegressor(SparseLinearModel):
    """Cox regression of survival times with the l1-2 penalty, or another one.

    Minimises over the coefficients c, with l the logarithm of Cox's partial likelihood of the hazards
    ``exp(x_i'c)`` (see `ell12.losses.CoxLoss`)::

        -l(c) / n + alpha (||c||_1 - l2_weight ||c||_2 + ridge/2 ||c||_2^2)

    where n is the number of samples, or the sum of their weights. With ``penalty=L1()`` and ``ties="breslow"``
    this is the problem of R's glmnet.

    Parameters
    ----------
    alpha : float, optional
        Regularisation strength, at least 0; by default that of ``penalty``, or 0.01.
    penalty : Penalty, default L12(l2_weight=0.5)
        As in `L12Regressor`.
    ties : {"efron", "breslow"}, default "efron"
        What becomes of events at the same time. With "breslow" a weight of 2 is the same as a sample that is there
        twice; with "efron", which is nearer to the truth, it is not.
    standardize, relax, warm_start, solver, tol, max_iter, run
        As in `L12Regressor`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients: the change of the logarithm of the hazard for each unit of a feature.
    intercept_ : float
        0: a constant is no part of the model.
    unique_times_, baseline_hazard_ : arrays of shape (n_times,)
        The times of events, and Breslow's cumulative hazard at them of a sample whose features are 0.
    penalty_, n_iter_, stationarity_, converged_, results_, sparse_coef_, n_features_in_, feature_names_in_
        As in `L12Regressor`.

    See Also
    --------
    L12CoxRegressorCV : Survival times with a strength chosen by cross-validation.

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
    >>> model = L12CoxRegressor(alpha=0.1).fit(X, np.column_stack([time, event]))
    >>> np.flatnonzero(model.coef_), model.score(X, np.column_stack([time, event]))
    (array([0, 1]), 0.9166666666666666)
    """

    default_alpha = 0.01
    fit_intercept = False
    _always_centred = True  # which changes nothing and makes a better-conditioned problem
    _reference: tuple[Any, float]  # the cumulative hazard of the sample of the highest risk, and its risk

    def __init__(
        self,
        alpha: float | None = None,
        *,
        penalty: Any = L12(l2_weight=0.5),  # noqa: B008
        ties: str = "efron",
        standardize: bool = False,
        relax: bool = False,
        warm_start: bool = False,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        run: Any = None,
    ) -> None:
        keep_arguments(self, locals())

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
        data = self._observed(X, y, sample_weight)
        self._fit_problems(self._problems(data), self._given_penalty(), single=True)
        self._keep_baseline(data)
        return self

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Any:
        """The probability of no event up to a time, ``exp(-H(t))``, for each row of X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        return_array : bool, default False
            Whether to return the values at ``unique_times_``, of shape (n_samples, n_times), in place of functions
            of time, as in scikit-survival.
        """
        return self._curves(np.exp(-self._hazards(X)), 1.0, return_array)

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> Any:
        """The cumulative hazard H(t) of each row of X, by Breslow's estimator; as `predict_survival_function`."""
        return self._curves(self._hazards(X), 0.0, return_array)

    def predict(self, X: Any) -> NDArray[Any]:
        """The logarithm of the hazard at the rows of X, up to a constant: the larger, the sooner is the event."""
        return self._linear_functions(X, "predict")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's index of concordance: `concordance_index` of the predictions."""
        refuse_masked(sample_weight, "sample_weight")
        return concordance_index(y, self.predict(X), sample_weight)

    def _hazards(self, X: Any) -> Array:
        """The cumulative hazard of each row of X, (n_samples, n_times)."""
        hazard, top = self._reference
        with np.errstate(over="ignore"):
            return np.exp(self.predict(X).astype(np.float64) - top)[:, None] * hazard

    def _curves(self, values: Array, first: float, return_array: bool) -> Any:
        if return_array:
            return values
        functions = np.empty(len(values), dtype=object)
        functions[:] = [StepFunction(self.unique_times_, row, first) for row in values]
        return functions

    def _keep_baseline(self, data: Data) -> None:
        """Breslow's estimator: at each time the events, divided by the hazards of all who are at risk."""
        (time, event), eta = data.y.T, linear_functions(data.X, self.coef_, 0.0).astype(np.float64)
        weight = np.ones(time.size) if data.sample_weight is None else data.sample_weight.astype(np.float64)
        top = eta.max()  # so that no exponential overflows
        order = np.argsort(-time, kind="stable")
        at_risk = np.cumsum((weight * np.exp(eta - top))[order])
        counted = (event > 0) & (weight > 0)
        self.unique_times_, which = np.unique(time[counted], return_inverse=True)
        last = np.searchsorted(-time[order], -self.unique_times_, side="right") - 1
        hazard = np.cumsum(np.bincount(which, weight[counted]) / at_risk[last])
        self._reference = hazard, top
        with np.errstate(over="ignore"):
            self.baseline_hazard_ = hazard * np.exp(-top)

    def _observed(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Data:  # noqa: ARG002
        X, y, sample_weight = self._validate(X, survival_times(y), sample_weight, multi_output=True)
        if not is_out_of_memory(X):
            check_numpy(X, type(self).__name__)
        return Data(X, y, sample_weight)

    def _strata(self, y: Array) -> Array:
        return y[:, 1].astype(np.int64)

    def _is_single(self, data: Data) -> bool:  # noqa: ARG002
        return True

    def _problems(self, data: Data) -> list[FitProblem]:
        return [replace(problem, means=0 * problem.means, n_targets=0) for problem in super()._problems(data)]

    def _parts(self, data: Data) -> list[tuple[Any, Array]]:
        return [(Cox(self.ties), data.y)]


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


def concordance_index(y: Any, risk: Array, sample_weight: Any = None) -> Any:
    """Harrell's index: of all pairs whose order is known, the share in which the sooner event had the larger risk.

    A pair's order is known if one had its event before the other was last seen; of two at the same time, if one
    had its event and the other not. Equal risks count half; 0.5 is no better than chance.

    Parameters
    ----------
    y : array
        Times and events, as in `L12CoxRegressor.fit`.
    risk : array of shape (n_samples,) or (n_samples, n_risks)
        The larger, the sooner is the event. Each column has its own index.
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
    weight = np.ones(risk.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not risk.shape[0] == weight.size == y.shape[0]:
        raise ValueError(f"y has {y.shape[0]} samples, risk {risk.shape[0]} and sample_weight {weight.size}")
    order = np.lexsort((-y[:, 1], y[:, 0]))  # by time, and of equal times events first
    (time, event), risk, weight = y[order].T, risk[order], weight[order]
    right, known = np.zeros(risk.shape[1:]), 0.0
    for i in np.flatnonzero(event):
        pairs = weight[i] * weight[i + 1 :] * ((time[i + 1 :] > time[i]) | (event[i + 1 :] == 0))
        right += pairs @ (0.5 + 0.5 * np.sign(risk[i] - risk[i + 1 :]))
        known += float(pairs.sum())
    if known == 0:
        raise NoInformation("y holds no pair of samples of positive weight whose order is known")
    return right / known if risk.ndim > 1 else float(right / known)

"""A fitted model and its data as a problem of least squares that holds nearby.

With the linear functions ``eta = X c + c_0``, the mean ``mu(eta)`` and the weights w, a fit has the slopes
``s_i = w_i (y_i - mu_i)`` and the curvatures ``h_i = w_i mu'(eta_i)``: ``w_i`` for the squared loss, and
``w_i mu_i (1 - mu_i)`` for the logistic one. Columns less their means under h are orthogonal to the intercept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_sample_weight

from ell12.backend import as_numpy
from ell12.checks import naming
from ell12.linear_model import L12Classifier, L12ClassifierCV, L12Regressor, L12RegressorCV
from ell12.linear_model.chunked import is_chunked
from ell12.linear_model.families import Squared
from ell12.linear_model.fit_problem import linear_functions, passes
from ell12.operators import is_far, select_columns, to_dense
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.operators.gram import weighted_gram
from ell12.operators.linear_operator import adjoint_product, product
from ell12.protocols import Array

# Newton's method for the fit without a penalty takes this number of steps at the most, each halved as often at the
# most; some ten are enough where there is a finite solution.
NEWTON_STEPS = 50
# It ends where no logarithm of odds changes by more than this: the next step changes them by its square. Where
# classes can be told apart they grow by about 1 in every step.
NEWTON_ACCURACY = 1e-6
# Columns whose correlation matrix has an eigenvalue below this one are dependent, up to rounding.
LEAST_EIGENVALUE = 1e-10


@dataclass(frozen=True, eq=False)
class Fit:
    """The rows of positive weight, and what a model says of them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        In double precision.
    y : array of shape (n_samples,)
        Targets; 0 and 1 for two classes.
    weight : array of shape (n_samples,)
        Those of the samples, scaled to the mean 1.
    coef, prediction : arrays of shape (n_features,) and (n_samples,)
        The coefficients, and the linear functions with the intercept.
    intercept, logistic : bool
        Whether there is an intercept, and whether the loss is logistic; it is squared otherwise.
    names : list of str, optional
        Those of the features, if they have any.
    """

    X: Any
    y: Any
    weight: Any
    coef: Any
    prediction: Any
    intercept: bool
    logistic: bool
    names: list[str] | None

    @property
    def mean(self) -> Array:
        """The fitted means."""
        return expit(self.prediction) if self.logistic else self.prediction

    @property
    def slope(self) -> Array:
        """Minus the derivative of the loss with respect to each prediction."""
        return self.weight * (self.y - self.mean)

    @property
    def freedom(self) -> int:
        """How many samples there are beyond the coefficients in use."""
        return self.y.size - np.count_nonzero(self.coef) - self.intercept

    def columns(self) -> Columns:
        """The columns in units of their own."""
        curvature = self.mean * (1 - self.mean) if self.logistic else 1.0
        return Columns.of(self.X, self.weight * curvature, self.intercept)

    def loss(self, prediction: Array) -> float:
        """Minus the log-likelihood of other predictions; half the squares."""
        if self.logistic:
            return float(self.weight @ (np.logaddexp(0, prediction) - self.y * prediction))
        return float(0.5 * self.weight @ (self.y - prediction) ** 2)

    def refitted(self, features: Array) -> Fit | None:
        """The fit without a penalty to some features; None where it is not finite or not unique."""
        part = replace(self, X=self.X[:, features], coef=np.zeros(features.size), prediction=np.zeros(self.y.size))
        found = part.without_penalty()
        if found is None:
            return None
        coef = np.zeros_like(self.coef)
        coef[features] = found.coef
        return replace(self, coef=coef, prediction=found.prediction)

    def without_penalty(self) -> Fit | None:
        """The fit to all features; None where it is not finite or not unique."""
        fit: Fit = self
        for _ in range(NEWTON_STEPS):
            columns = fit.columns()
            inverse = columns.inverse()
            if inverse is None or not columns.total > 0:
                return None
            step = inverse @ columns.adjoint(fit.slope) / columns.total
            level = fit.slope.sum() / columns.total if fit.intercept else 0.0
            change, size = columns.product(step) + level, 1.0
            highest = fit.loss(fit.prediction) * (1 + 1e-12)
            while fit.loss(fit.prediction + size * change) > highest and size > 0.5**NEWTON_STEPS:
                size *= 0.5
            coef = fit.coef + size * step / columns.scale
            moved = replace(fit, coef=coef, prediction=fit.prediction + size * change)
            if not fit.logistic or np.abs(change).max() <= NEWTON_ACCURACY:
                return moved
            fit = moved
        return None


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns less their means, each divided by its length: under ``curvature`` products are correlations.

    Parameters
    ----------
    A : array or operator of shape (n_samples, n_features)
        The columns. Those that are constant are zero.
    scale : array of shape (n_features,)
        What they were divided by.
    curvature : array of shape (n_samples,)
        The weights of the rows.
    total : float
        Their sum.
    """

    A: Any
    scale: Any
    curvature: Any
    total: float

    @classmethod
    def of(cls, X: Any, curvature: Array, intercept: bool) -> Columns:
        """Those of X."""
        total = float(curvature.sum())
        means = (X.T @ curvature) / total if intercept and total > 0 else np.zeros(X.shape[1])
        if scipy.sparse.issparse(X):
            squares = column_squares(CenteredColumns(X, means), curvature)
        else:
            squares = curvature @ (X - means) ** 2
        scale = np.sqrt(squares / total) if total > 0 else np.zeros(X.shape[1])
        scale = np.where(_vary(X, intercept), scale, 0.0)
        factor = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        if scipy.sparse.issparse(X):
            A: Any = CenteredColumns((X @ scipy.sparse.diags_array(factor)).tocsr(), factor * means)
        else:
            A = (X - means) * factor
        return cls(A, np.where(scale > 0, scale, 1.0), curvature, total)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.scale.size

    def take(self, which: Array) -> Array:
        """Some of them, dense; the numbers may come in any order."""
        sorted_, back = np.unique(which, return_inverse=True)
        return to_dense(select_columns(self.A, sorted_))[:, back]

    def product(self, x: Array) -> Array:
        """``A x``, for one x or several."""
        return product(self.A, x)

    def adjoint(self, y: Array) -> Array:
        """``A' y``, for one y or several."""
        return adjoint_product(self.A, y)

    def correlations(self) -> Array:
        """Those of all columns with each other."""
        return weighted_gram(self.A, self.curvature / self.total)

    def inverse(self) -> Array | None:
        """The inverse of the correlations, 0 for constant columns; None where it does not exist."""
        matrix = self.correlations()
        varies = np.diagonal(matrix) > 0
        values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)])
        if values.size >= self.curvature.size or np.any(values < LEAST_EIGENVALUE):
            return None
        found = np.zeros_like(matrix)
        found[np.ix_(varies, varies)] = (vectors / values) @ vectors.T
        return found


def _vary(X: Any, intercept: bool) -> Array:
    """Which columns are not constant; without an intercept, which are not zero."""
    if scipy.sparse.issparse(X):
        largest, least = (np.asarray(part.todense()).ravel() for part in (X.max(axis=0), X.min(axis=0)))
    else:
        largest, least = X.max(axis=0), X.min(axis=0)
    return largest > least if intercept else (largest != 0) | (least != 0)


def fit_of(X: Any, y: Any, model: Any, sample_weight: Any, n_jobs: int | None) -> Fit:
    """The fit that intervals are wanted for; its model is fitted here if it is not yet."""
    if is_chunked(X) or is_far(X):
        raise TypeError("X must be in memory for intervals: a NumPy array, a DataFrame or a sparse matrix")
    X, y, sample_weight = (as_numpy(part) if passes(part) else part for part in (X, y, sample_weight))
    if model is None:
        return _default_fit(X, y, sample_weight, n_jobs)
    if not isinstance(model, L12Regressor | L12Classifier):
        kinds = "an L12Regressor, L12RegressorCV, L12Classifier or L12ClassifierCV"
        raise TypeError(f"model must be {kinds}, or None; got {type(model).__name__}")
    logistic = isinstance(model, L12Classifier)
    if not logistic and type(model._family) is not Squared:
        raise ValueError(f"model must have loss='squared' for intervals, got {model.loss!r}")
    if not hasattr(model, "coef_"):
        model = clone(model).fit(X, y, sample_weight=sample_weight)
    X, y, weight = (_classes if logistic else _targets)(X, y, model, sample_weight)
    X = scipy.sparse.csr_array(X, dtype=np.float64) if scipy.sparse.issparse(X) else X.astype(np.float64)
    weight = np.ones(y.size) if weight is None else as_numpy(weight).astype(np.float64)
    used = weight > 0
    if used.sum() < y.size:
        X, y, weight = X[used], y[used], weight[used]
    if y.size == 0:
        raise ValueError("sample_weight sums to zero: no sample is left")
    coef, level = (as_numpy(part).astype(np.float64) for part in (model.coef_, model.intercept_))
    coef = coef.reshape(-1)
    names = _names(model)
    prediction = linear_functions(X, coef, float(level.reshape(-1)[0]))
    return Fit(X, y, weight / weight.mean(), coef, prediction, model.fit_intercept, logistic, names)


def _default_fit(X: Any, y: Any, sample_weight: Any, n_jobs: int | None) -> Fit:
    """That of the default model to columns divided by their standard deviations, in the units of X again."""
    scaler = StandardScaler(with_mean=False)
    if sample_weight is not None:
        with naming("sample_weight"):
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    with naming("X"):
        Z = scaler.fit_transform(X, sample_weight=sample_weight)
    fit, unit = fit_of(Z, y, _default_model(y, n_jobs), sample_weight, n_jobs), scaler.scale_
    X = fit.X @ scipy.sparse.diags_array(unit) if scipy.sparse.issparse(fit.X) else fit.X * unit
    return replace(fit, X=X, coef=fit.coef / unit, names=_names(scaler))


def _names(estimator: Any) -> list[str] | None:
    return [str(name) for name in estimator.feature_names_in_] if hasattr(estimator, "feature_names_in_") else None


def _default_model(y: Any, n_jobs: int | None) -> Any:
    """The first stage where none is given: a classifier for two values of y."""
    values = as_numpy(y) if hasattr(y, "__dlpack__") else np.asarray(y)
    if values.dtype.kind not in "biuf" or np.unique(values[~_is_nan(values)]).size == 2:
        return L12ClassifierCV(n_jobs=n_jobs)
    return L12RegressorCV(n_jobs=n_jobs)


def _is_nan(values: Array) -> Array:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)


def _targets(X: Any, y: Any, model: L12Regressor, sample_weight: Any) -> tuple[Any, Array, Any]:
    X, y, sample_weight = model._validate_regression(X, y, sample_weight, reset=False)
    if y.ndim > 1 or as_numpy(model.coef_).ndim > 1:
        raise ValueError(f"y must be a vector for intervals, got shape {y.shape}; take one target at a time")
    return X, as_numpy(y).astype(np.float64), sample_weight


def _classes(X: Any, y: Any, model: L12Classifier, sample_weight: Any) -> tuple[Any, Array, Any]:
    """The data with 0 and 1 in place of the labels, and the weights that samples have in the fit."""
    classes = as_numpy(model.classes_)
    if classes.size != 2:
        raise ValueError(f"y must hold 2 classes for intervals, got {classes.size}; take one against the rest")
    X, y, sample_weight = model._validate(X, y, sample_weight, reset=False)
    labels = as_numpy(y)
    if not np.isin(labels, classes).all():
        raise ValueError(f"y holds labels that model was not fitted to: {np.setdiff1d(labels, classes)}")
    codes = np.searchsorted(classes, labels)
    counted = codes if sample_weight is None else codes[as_numpy(sample_weight) > 0]
    if np.unique(counted).size < 2:
        raise ValueError(f"y must hold both classes with positive weight, it holds one: {labels[0]!r}")
    return X, codes.astype(np.float64), model._weight_of_samples(codes, sample_weight)

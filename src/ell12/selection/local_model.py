"""A fitted model near its solution: weighted least squares, by the second derivatives of its loss.

With the linear functions ``eta = X c + c_0``, a loss f of them has the slopes ``s = -f'(eta)`` and the curvature
``H = f''(eta)``, a diagonal matrix but for survival times. There a root of H takes the place of the rows. Columns
less their means under H are orthogonal to the intercept.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from scipy.linalg import null_space
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import validate_data

from ell12.backend import as_numpy
from ell12.checks import check_container, naming
from ell12.linear_model import L12ClassifierCV, L12Regressor, L12RegressorCV
from ell12.linear_model.fit_problem import Data, FitProblem, passes
from ell12.linear_model.refit import refit
from ell12.linear_model.row_fits import is_chunked
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.losses import CoxLoss, HuberLoss, LogisticLoss, SquaredLoss
from ell12.operators import is_out_of_memory, product, select_columns, to_dense
from ell12.operators.centering import CenteredColumns, column_squares
from ell12.operators.gram import weighted_gram
from ell12.penalties import L1
from ell12.protocols import Array

# Columns whose correlation matrix has an eigenvalue below this one are dependent, up to rounding.
LEAST_EIGENVALUE = np.finfo(np.float64).eps ** 0.625
# Arrays of more numbers than this (128 MB) are made in parts, or kept sparse.
LARGEST = 2**24


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The rows of positive weight, and what a model says of them.

    Parameters
    ----------
    data : Data
        In double precision.
    problem : FitProblem
        Their loss, a mean over the rows.
    x : array
        The solution.
    intercept : bool
        Whether there is an intercept.
    names : list of str
        Those of the features, or their numbers.
    """

    data: Data
    problem: FitProblem
    x: Any
    intercept: bool
    names: list[str]

    @property
    def coef(self) -> Array:
        """The coefficients."""
        return self.problem.coefficients(self.x)[0][0]

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return self.data.X.shape[0]

    @property
    def freedom(self) -> int:
        """How many samples there are beyond the coefficients in use."""
        return int(self.n_samples - np.count_nonzero(self.coef) - self.intercept)

    @property
    def prediction(self) -> Array:
        """The linear functions, up to what is known of each row."""
        return self.problem.loss.point(self.x).prediction

    @property
    def has_noise(self) -> bool:
        """Whether the loss is of residuals, whose size is to be estimated; else it is minus a log-likelihood."""
        return isinstance(self.problem.loss, SquaredLoss | HuberLoss)

    @property
    def is_survival(self) -> bool:
        """Whether the loss is Cox's, which joins the rows."""
        return isinstance(self.problem.loss, CoxLoss)

    def noise(self) -> float:
        """The standard deviation of the noise; of Huber's loss, that of noise with as wide intervals."""
        slope, weight = self._slope(), self._weight()
        steep = self._curvature() / weight
        return float(np.sqrt(slope @ (slope / weight) / self.freedom) / steep[0])

    def columns(self) -> LocalColumns:
        """The columns in units of their own."""
        X, curvature, slope, n_samples = self.data.X, self._curvature(), self._slope(), self.n_samples
        if curvature.ndim == 2:
            values, vectors = np.linalg.eigh(curvature)
            kept = values > LEAST_EIGENVALUE * values[-1]
            root, vectors = np.sqrt(values[kept]), vectors[:, kept]
            X, slope, curvature = root[:, None] * (vectors.T @ X), vectors.T @ slope / root, np.ones(root.size)
            n_samples = int(self.problem.loss.b.sum())
        varies = varying(self.problem, self.coef.size)
        return LocalColumns.of(X, curvature, slope, varies, n_samples, intercept=self.intercept)

    def refitted(self, features: Array) -> LocalModel | None:
        """The fit without a penalty to some features; None where it is not finite or not unique.

        Of several classes the last one then has no coefficients.
        """
        classes, fitted = self.problem.n_classes or 1, max(self.problem.n_classes - 1, 1)
        entries = (features[:, None] * classes + np.arange(fitted)).ravel()
        if entries.size >= self.n_samples:
            return None
        intercepts = np.arange(self.coef.size * classes, self.x.size)
        found = refit(self.problem, self.x, L1(), np.concatenate([entries, intercepts]))
        return None if found is None else replace(self, x=found)

    def separates(self) -> bool:
        """Whether two classes are separated without error."""
        loss, found = self.problem.loss, self.prediction
        return isinstance(loss, LogisticLoss) and bool(found[loss.b > 0].min() > found[loss.b < 0].max())

    def _weight(self) -> Array:
        """The weights of the rows, of mean 1."""
        weight = self.problem.loss.sample_weight
        return np.ones(self.n_samples) if weight is None else weight / weight.mean()

    def _slope(self) -> Array:
        loss = self.problem.loss
        return -self.n_samples * loss.slope(loss.point(self.x))

    def _curvature(self) -> Array:
        """One number for each row, or a matrix; of residuals its mean, as the noise is that of all rows."""
        loss, weight = self.problem.loss, self._weight()
        if self.is_survival:
            parts = {"sample_weight": loss.sample_weight, "scale": loss.scale, "risk": loss.risk}
            by_rows = CoxLoss.of_checked(np.eye(self.n_samples), loss.b, **parts)
            return self.n_samples * by_rows.hessian(by_rows.point(self.prediction))
        found = self.n_samples * loss.curvature(loss.point(self.x))
        return weight * found.sum() / weight.sum() if self.has_noise else found


@dataclass(frozen=True, eq=False)
class LocalColumns:
    """Columns less their means, each divided by its length: under ``curvature`` products are correlations.

    Parameters
    ----------
    A : array or operator of shape (n_samples, n_features)
        The columns. Those that are constant are zero.
    scale : array of shape (n_features,)
        What they were divided by.
    curvature, slope : arrays of shape (n_samples,)
        Of the rows.
    total : float
        The sum of the curvatures.
    n_samples : int
        How many observations there are; of survival times the events.
    """

    A: Any
    scale: Any
    curvature: Any
    slope: Any
    total: float
    n_samples: int

    @classmethod
    def of(
        cls, X: Any, curvature: Array, slope: Array, varying: Array, n_samples: int, *, intercept: bool
    ) -> LocalColumns:
        """Those of X."""
        total = float(curvature.sum())
        means = (X.T @ curvature) / total if intercept and total > 0 else np.zeros(X.shape[1])
        sparse = scipy.sparse.issparse(X)
        A: Any = CenteredColumns(X, means) if sparse else X - means
        scale = varying * np.sqrt(column_squares(A, curvature) / (total or math.inf))
        factor = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        if sparse:
            A = CenteredColumns((X @ scipy.sparse.diags_array(factor)).tocsr(), factor * means)
        else:
            A = A * factor
        return cls(A, np.where(scale > 0, scale, 1.0), curvature, slope, total, n_samples)

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

    @cached_property
    def correlations(self) -> Array:
        """Those of all columns with each other."""
        return weighted_gram(self.A, self.curvature / self.total)

    def inverse(self) -> Array | None:
        """The inverse of the correlations, 0 for constant columns; None where it does not exist."""
        matrix = self.correlations
        varies = np.diagonal(matrix) > 0
        values, vectors = np.linalg.eigh(matrix[np.ix_(varies, varies)])
        if values.size >= self.curvature.size or np.any(values < LEAST_EIGENVALUE):
            return None
        found = np.zeros_like(matrix)
        found[np.ix_(varies, varies)] = (vectors / values) @ vectors.T
        return found


@dataclass(frozen=True, eq=False)
class ClassModel(LocalModel):
    """The coefficients of one class less their mean over all K classes: the others have K - 2 contrasts.

    The curvature of a sample is a matrix of K - 1 rows and columns. Its root takes the place of the sample's row.
    """

    number: int

    @property
    def coef(self) -> Array:
        """The coefficients of the class, less the mean over the classes."""
        rows = self.problem.coefficients(self.x)[0]
        return rows[self.number] - rows.mean(axis=0)

    @property
    def prediction(self) -> Array:
        """The linear functions of the classes, less their mean over the classes."""
        found = super().prediction
        return found - found.mean(axis=1, keepdims=True)

    def columns(self) -> LocalColumns:
        """The columns of the class, and behind them those of the other contrasts."""
        n, classes = self.n_samples, self.problem.loss.A.k
        other = np.arange(classes) != self.number
        first = np.where(other, -1 / (classes - 1), 1.0)
        contrasts = np.column_stack([first, null_space(np.stack([other, ~other]).astype(float))])
        p = np.exp(self.prediction)
        p /= p.sum(axis=1, keepdims=True)
        spread = (p[:, :, None] * contrasts) - p[:, :, None] * (p @ contrasts)[:, None, :]
        values, vectors = np.linalg.eigh(self._weight().reshape(n, -1)[:, :1, None] * (contrasts.T @ spread))
        root = np.sqrt(np.maximum(values, 0.0))
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=values > LEAST_EIGENVALUE)
        rows = (vectors * root[:, None, :]).transpose(0, 2, 1)  # (n, row, contrast)
        slope = inverse * np.einsum("iab,ia->ib", vectors, self._slope() @ contrasts)
        A = np.einsum("iba,ij->ibaj", rows, to_dense(self.data.X)).reshape(n * (classes - 1), -1)
        if self.intercept:
            basis = np.linalg.qr(rows.reshape(n * (classes - 1), -1))[0]
            A -= basis @ (basis.T @ A)
        varies = np.tile(varying(self.problem, self.coef.size), classes - 1)
        return LocalColumns.of(A, np.ones(len(A)), slope.ravel(), varies, n, intercept=False)


def varying(problem: FitProblem, size: int) -> Array:
    """Which of the columns are not constant (or zero, without an intercept): the loss has a curvature at zero."""
    loss, classes = problem.loss, problem.n_classes or 1
    curvatures = as_numpy(loss.column_curvatures(loss.point(loss.start())))
    return (curvatures[: size * classes].reshape(size, classes) > 0).any(axis=1)


def local_model(
    X: Any, y: Any, model: Any, label: Any, sample_weight: Any, offset: Any, n_jobs: int | None
) -> LocalModel:
    """The model that intervals are wanted for, fitted here if it is not yet."""
    if is_chunked(X) or is_out_of_memory(X):
        raise TypeError("X must be in memory for intervals: a NumPy array, a DataFrame or a sparse matrix")
    X, y, sample_weight, offset = (
        as_numpy(part) if passes(part) else part for part in (X, y, sample_weight, offset)
    )
    check_container(X, "X")
    if model is None:
        model = _default_fit(X, y, sample_weight, n_jobs)
    if not isinstance(model, SparseLinearModel):
        got = type(model).__name__
        raise TypeError(f"model must be an L12Regressor, L12Classifier or L12CoxRegressor, or None; got {got}")
    if not hasattr(model, "coef_"):
        model = clone(model).fit(
            X, y, sample_weight=sample_weight, **({} if offset is None else {"offset": offset})
        )
    own, data = observed(model, X, y, sample_weight, offset)
    data = _used(own, data)
    problems = own._problems(data)
    row = _row_of(own, label, sum(each.n_rows for each in problems))
    problem = problems[min(row, len(problems) - 1)]
    coef, level = (np.asarray(as_numpy(part), dtype=np.float64) for part in (model.coef_, model.intercept_))
    if len(problems) > 1:
        coef, level = coef[row], level[row]
    x = problem.unknown(coef.reshape(-1, data.X.shape[1]), level.reshape(-1))
    intercept = bool(getattr(own, "fit_intercept", False))
    names = list(map(str, vars(model).get("feature_names_in_", range(data.X.shape[1]))))
    if problem.n_classes:
        return ClassModel(data, problem, x, intercept, names, row)
    return LocalModel(data, problem, x, intercept, names)


def _row_of(model: Any, label: Any, count: int) -> int:
    """The row of coefficients that are asked for."""
    if count == 1 and label is None:
        return 0
    if count == 1 or not is_classifier(model):
        raise ValueError(f"y must hold one target for intervals, got {count}; label is for several classes")
    classes = as_numpy(model.classes_).tolist()
    if label not in classes:
        raise ValueError(f"y must hold 2 classes, or label be one of {classes}; got label={label!r}")
    return classes.index(label)


def _used(model: Any, data: Data) -> Data:
    """The rows of positive weight, in double precision."""
    weight = model._weight_of_samples(data.y, data.sample_weight)
    if weight is not None:
        data = data.rows(np.flatnonzero(weight > 0))
    if data.X.shape[0] == 0:
        raise ValueError("sample_weight sums to zero: no sample is left")
    codes = np.int64 if is_classifier(model) else np.float64
    parts = (part if part is None else part.astype(np.float64) for part in data)
    return Data(*parts)._replace(y=data.y.astype(codes))


def observed(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Data]:
    """The data of a fit, checked again, and a copy of the model that took note of them."""
    if offset is not None and not isinstance(model, L12Regressor):
        raise ValueError("offset is for an L12Regressor")
    own = copy.copy(model)
    if y is None:
        X, _, sample_weight = own._validate(X, np.zeros(np.shape(X)[0]), sample_weight, reset=False)
        return own, Data(X, None, sample_weight)
    data = own._observed(X, y, sample_weight, offset)
    names = vars(model).get("feature_names_in_")
    if names is None or hasattr(X, "columns"):
        with naming("X"):
            validate_data(model, X, reset=False, skip_check_array=True)
    if is_classifier(model) and not np.array_equal(as_numpy(model.classes_), as_numpy(own.classes_)):
        raise ValueError(f"y must hold the classes {as_numpy(model.classes_)} that model was fitted to")
    return own, data


def _default_fit(X: Any, y: Any, sample_weight: Any, n_jobs: int | None) -> Any:
    """The default model, of columns divided by their standard deviations."""
    with naming("y"):
        values = np.asarray(y)
    two = values.dtype.kind not in "biuf" or np.unique(values[values == values]).size == 2  # noqa: PLR0124
    model: Any = L12ClassifierCV() if two else L12RegressorCV(relax=False)
    with naming("y", "X", "sample_weight"):  # labels of which there is one each make no folds
        return model.set_params(standardize=True, n_jobs=n_jobs).fit(X, y, sample_weight=sample_weight)

"""Estimators on data in chunks: everything that needs Dask is asked of `ell12.distributed`, when it is needed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from ell12.linear_model.fit_problem import FitProblem
from ell12.protocols import Array


def is_chunked(X: Any) -> bool:
    """Whether X is a collection of Dask; asked without importing it."""
    return hasattr(X, "__dask_graph__")


def check_in_memory(X: Any, model: Any) -> None:
    """Raise on chunked data where they would be gathered in this process."""
    if is_chunked(X):
        raise TypeError(
            f"{type(model).__name__} needs arrays in memory here, got a Dask {type(X).__name__}. L12Regressor and"
            " L12Classifier fit chunked data; call X.compute() if it fits in memory."
        )


def note_features(model: Any, X: Any) -> None:
    """Remember the number of features, and their names where X has some."""
    _check_matrix(X)
    model.n_features_in_ = int(X.shape[1])
    vars(model).pop("feature_names_in_", None)
    names = getattr(X, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.asarray(names, dtype=object)


def _check_matrix(X: Any) -> None:
    if not isinstance(getattr(X, "ndim", None), int):
        raise TypeError(f"X must be a dask array or DataFrame, got a Dask {type(X).__name__}")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: a Dask {type(X).__name__}")


def _labels(y: Any, *, warn: bool = False) -> Any:
    """The labels as a vector, from a column too; told as scikit-learn tells it."""
    if getattr(y, "ndim", 1) == 1:
        return y
    if y.ndim > 2 or y.shape[1] != 1:
        raise ValueError(f"y must hold one label for each row, got {y.shape[1]} columns")
    if warn:
        message = "A column-vector y was passed when a 1d array was expected. Please change the shape of y."
        warnings.warn(message, DataConversionWarning, stacklevel=4)
    return y[y.columns[0]] if hasattr(y, "columns") else y[:, 0]


def regression_problems(
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool, shared: bool = False
) -> list[FitProblem]:
    """The problem of each target, or of all where they share one support."""
    from ell12.distributed import estimation

    options = {"sample_weight": sample_weight, "intercept": fit_intercept, "shared": shared}
    parts = estimation.regression_losses(X, y, **options)
    return [
        FitProblem(loss, means, level, False, n_targets=np.size(level) * np.ndim(level))
        for loss, means, level in parts
    ]


def classification_problems(
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool
) -> tuple[Array, list[FitProblem]]:
    """The labels, and the problem of each class against the rest, or of the second of two."""
    from ell12.distributed import estimation

    labels, losses, means = estimation.classification_losses(
        X, _labels(y, warn=True), sample_weight=sample_weight, intercept=fit_intercept
    )
    check_classification_targets(labels)
    return labels, [FitProblem(loss, means, 0.0, constant=fit_intercept) for loss in losses]


def map_rows(method: Callable[[Any], Array], X: Any) -> Any:
    """What a method of a fitted model makes of each chunk of rows, as a dask array."""
    from ell12.distributed import estimation

    return estimation.map_rows(_nameless(method, X), X)


def _nameless(method: Callable[[Any], Array], X: Any) -> Callable[[Any], Array]:
    """The method for chunks of X, which have no names of columns: the names of X are looked at here."""
    model = method.__self__  # type: ignore[attr-defined]
    check_is_fitted(model)
    _check_matrix(X)
    _check_feature_names(model, X._meta, reset=False)
    nameless = copy.copy(model)
    vars(nameless).pop("feature_names_in_", None)
    return getattr(nameless, method.__name__)


def determination(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any) -> float:
    """The coefficient of determination of a model's predictions, the mean over several targets."""
    from ell12.distributed import estimation

    return estimation.determination(_nameless(predict, X), X, y, sample_weight)


def accuracy(predict: Callable[[Any], Array], X: Any, y: Any, sample_weight: Any) -> float:
    """The weighted share of a model's predictions that are right."""
    from ell12.distributed import estimation

    return estimation.accuracy(_nameless(predict, X), X, _labels(y), sample_weight)

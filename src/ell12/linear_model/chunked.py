"""Estimators on data in chunks: everything that needs Dask is asked of `ell12.distributed`, when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ell12.linear_model.problems import Problem
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
    model.n_features_in_ = int(X.shape[1])
    vars(model).pop("feature_names_in_", None)
    names = getattr(X, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        model.feature_names_in_ = np.asarray(names, dtype=object)


def regression_problems(
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool, shared: bool = False
) -> list[Problem]:
    """The problem of each target, or of all where they share one support."""
    from ell12 import distributed

    options = {"sample_weight": sample_weight, "intercept": fit_intercept, "shared": shared}
    parts = distributed.regression_losses(X, y, **options)
    return [
        Problem(loss, means, level, False, n_targets=np.size(level) * np.ndim(level))
        for loss, means, level in parts
    ]


def classification_problems(
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool
) -> tuple[Array, list[Problem]]:
    """The labels, and the problem of each class against the rest, or of the second of two."""
    from ell12 import distributed

    labels, losses, means = distributed.classification_losses(
        X, y, sample_weight=sample_weight, intercept=fit_intercept
    )
    check_classification_targets(labels)
    return labels, [Problem(loss, means, 0.0, constant=fit_intercept) for loss in losses]


def map_rows(method: Callable[[Any], Array], X: Any) -> Any:
    """What a method makes of each chunk of rows, as a dask array."""
    from ell12 import distributed

    return distributed.map_rows(method, X)


def determination(prediction: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The coefficient of determination, the mean over several targets."""
    from ell12 import distributed

    return distributed.determination(prediction, X, y, sample_weight)


def accuracy(prediction: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The weighted share of predictions that are right."""
    from ell12 import distributed

    return distributed.accuracy(prediction, X, y, sample_weight)

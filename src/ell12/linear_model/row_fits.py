"""Fits to rows that come a chunk at a time (partial_fit), and to rows on Dask."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ell12.linear_model.fit_problem import FitProblem, check_columns
from ell12.losses.moments import Moments, mean_squared_losses
from ell12.protocols import Array, Penalty
from ell12.solvers.stochastic import LearnedStep, ProxSVRG


def with_rows(known: Moments | None, X: Any, y: Array, sample_weight: Any) -> Moments:
    """The moments of all rows so far and of one chunk more: a squared loss of them is that of all rows at once."""
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight.astype(np.float64)
    targets = y.reshape(len(y), -1).astype(np.float64)
    new = Moments.of(X, targets, weight)
    if known is not None and known.mean.size != new.mean.size:
        raise ValueError(f"y must have as many columns as in the chunks before, got {targets.shape[1]}")
    new = new if known is None else known + new
    if new.total == 0:
        raise ValueError("sample_weight sums to zero: no sample is left to fit")
    return new


@dataclass
class StochasticDescent:
    """Proximal steps along an estimate of the gradient that every batch of rows improves.

    With f_k the mean loss of the k-th batch and s_k its share of all the weight so far, ::

        d <- s_k grad f_k(x) + (1 - s_k) (d + grad f_k(x) - grad f_k(x_before))
        x_before, x <- x, prox(x - step_k d, step_k)

    so that d is the mean of all gradients seen, each carried along to the present x as well as the batches at hand
    can tell. Its noise dies away as one over the number of rows, or of passes, without which no prox would leave
    exact zeros. Steps fall as the inverse fourth root of their number, from one third of the inverse curvature.

    Notes
    -----
    For convex penalties and shares and steps of a certain decay this is known to come near a stationary point
    (Cutkosky & Orabona, NeurIPS 2019, without a penalty; Xu & Xu, J. Optim. Theory Appl. 2023, with one). For
    the nonconvex l1-2, and for shares that fall as they do here, nothing is proved.
    """

    x: Array
    before: Any = None
    gradient: Any = None
    seen: float = 0.0
    n_iter: int = 0
    step: LearnedStep = field(default_factory=lambda: LearnedStep("lipschitz"))

    def add(self, problem: FitProblem, penalty: Any) -> None:
        """Take the steps of a chunk's batches, of as many rows as those of ProxSVRG."""
        own = problem.penalty(penalty)
        for batch in problem.loss.batches(ProxSVRG.batch_size):
            loss, rows = batch.loss, batch.loss.b.shape[0]
            weight = float(rows if loss.sample_weight is None else loss.sample_weight.sum())
            if weight > 0:
                self._take(loss.with_scale(1 / weight), weight, own)

    def _take(self, loss: Any, weight: float, penalty: Penalty) -> None:
        """One step, by a batch's mean loss."""
        self.step.watch(loss, 1, self.x)
        gradient = loss.gradient(loss.point(self.x))
        share = weight / (self.seen + weight)
        if self.before is None:
            self.gradient = gradient
        else:
            change = gradient - loss.gradient(loss.point(self.before))
            self.step.compare(self.x - self.before, change, 1)
            self.gradient = share * gradient + (1 - share) * (self.gradient + change)
        self.step.factor = (1 + self.n_iter / 100) ** -0.25
        size = self.step.size
        self.before, self.x = self.x, penalty.prox(self.x - size * self.gradient, size)
        self.seen, self.n_iter = self.seen + weight, self.n_iter + 1


def can_step(model: Any, kind: type) -> bool:
    """Whether a model has a partial_fit: those of one strength, with a loss of this kind."""
    return "alpha" in model.get_params(deep=False) and model._check_family("partial_fit", kind, AttributeError)


def is_chunked(X: Any) -> bool:
    """Whether X is a collection of Dask; asked without importing it."""
    return hasattr(X, "__dask_graph__")


def check_in_memory(X: Any, model: Any) -> None:
    """Raise on chunked data where they would be gathered in this process."""
    if is_chunked(X):
        raise TypeError(
            f"{type(model).__name__} needs arrays in memory here, got a Dask {type(X).__name__}. L12Regressor and"
            " L12Classifier fit chunked data without an offset; call X.compute() if it fits in memory."
        )


def check_features(model: Any, X: Any, *, reset: bool = False) -> None:
    """Compare the number of features and their names with those of the fit, or keep them."""
    if not isinstance(getattr(X, "ndim", None), int):
        raise TypeError(f"X must be a dask array or DataFrame, got a Dask {type(X).__name__}")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: a Dask {type(X).__name__}")
    check_columns(model, X, reset=reset)


def _labels(y: Any, *, warn: bool = False) -> Any:
    """The labels as a vector, from a column too; with the warning that scikit-learn gives."""
    if getattr(y, "ndim", 1) == 1:
        return y
    if y.ndim > 2 or y.shape[1] != 1:
        raise ValueError(f"y must hold one label for each row, got {y.shape[1]} columns")
    if warn:
        message = "A column-vector y was passed when a 1d array was expected. Please change the shape of y."
        warnings.warn(message, DataConversionWarning, stacklevel=4)
    return y[y.columns[0]] if hasattr(y, "columns") else y[:, 0]


def moment_problems(found: Moments, X: Any, fit_intercept: bool, shared: bool) -> list[FitProblem]:
    """The problem of each target, or of all where they share one support, from the moments of rows like X."""
    return _problems(mean_squared_losses(found, X.shape[1], fit_intercept, X.dtype, shared))


def regression_problems(X: Any, y: Any, sample_weight: Any, fit_intercept: bool, shared: bool) -> list[FitProblem]:
    """The same of rows on workers."""
    from ell12.distributed import estimation

    options = {"sample_weight": sample_weight, "intercept": fit_intercept, "shared": shared}
    return _problems(estimation.regression_losses(X, y, **options))


def _problems(parts: list[tuple[Any, Array, Any]]) -> list[FitProblem]:
    """The problems of losses, each with the means of its columns and of its target or targets."""
    return [FitProblem(*part, constant=0.0, n_targets=np.size(part[2]) * np.ndim(part[2])) for part in parts]


def classification_problems(
    X: Any, y: Any, sample_weight: Any, fit_intercept: bool
) -> tuple[Array, list[FitProblem]]:
    """The labels, and the problem of each class against the rest, or of the second of two."""
    from ell12.distributed import estimation

    options = {"sample_weight": sample_weight, "intercept": fit_intercept}
    labels, losses, means = estimation.classification_losses(X, _labels(y, warn=True), **options)
    check_classification_targets(labels)
    return labels, [FitProblem(loss, means, 0.0, constant=fit_intercept) for loss in losses]


def map_rows(method: Callable[[Any], Array], X: Any) -> Any:
    """What a method of a fitted model makes of each chunk of rows, as a dask array."""
    from ell12.distributed import estimation

    return estimation.map_rows(_nameless(method, X), X)


def _nameless(method: Callable[[Any], Array], X: Any) -> Callable[[Any], Array]:
    """The method for chunks of X, which have no names of columns: the names of X are checked here."""
    model = method.__self__  # type: ignore[attr-defined]
    check_is_fitted(model)
    check_features(model, X)
    nameless = copy.copy(model)
    vars(nameless).pop("feature_names_in_", None)
    return getattr(nameless, method.__name__)


def score_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of right labels of a classifier, the coefficient of determination of a regressor."""
    from ell12.distributed import estimation

    predict = _nameless(model.predict, X)
    if is_classifier(model):
        return estimation.accuracy(predict, X, _labels(y), sample_weight)
    return estimation.determination(predict, X, y, sample_weight)

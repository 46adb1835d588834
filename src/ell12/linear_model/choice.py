"""The choice between strengths: what a scorer says of a path, and which strength to take."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ell12.backend import as_numpy
from ell12.linear_model.fit_problem import passes
from ell12.protocols import Array


def choose(scores: Array, selection: str) -> tuple[tuple[int, int], float]:
    """Which l2_weight and alpha to take, and the standard error of the best mean score; NaN for one fold.

    Of equals the first l2_weight and the largest alpha. "1se" keeps the l2_weight of the best mean and takes its
    largest alpha within one standard error: strengths are not comparable between l2_weights.

    Parameters
    ----------
    scores : array of shape (n_l2_weights, n_alphas, n_folds)
        The higher the better; alphas fall.
    selection : {"min", "1se"}
        The rule.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.linear_model.choice import choose
    >>> scores = np.array([[[0.0, 2.0], [2.0, 4.0], [2.0, 5.0]]])
    >>> choose(scores, "min")[0], choose(scores, "1se")[0]
    ((0, 2), (0, 1))
    """
    means = scores.mean(axis=2)
    if np.isnan(means).all():
        raise ValueError("the scores of every alpha are NaN: scoring must give numbers")
    means = np.where(np.isnan(means), -np.inf, means)
    which, best = (int(k) for k in np.unravel_index(np.argmax(means), means.shape))
    folds = scores.shape[2]
    error = standard_error(scores[which, best])
    if selection == "1se" and folds > 1:
        best = int(np.argmax(means[which] >= means[which, best] - error))
    return (which, best), error


def standard_error(scores: Array) -> float:
    """The standard error of the mean of some scores, of any size; NaN of one score."""
    size = float(np.abs(scores).max()) or 1.0  # so that no square overflows
    return size * float((scores / size).std(ddof=1)) / math.sqrt(scores.size) if scores.size > 1 else math.nan


def check_scorer(model: Any) -> None:
    """Raise, before anything is solved, unless ``scoring`` is None or one score."""
    if model.scoring is None:
        return
    if not (isinstance(model.scoring, str) or callable(model.scoring)):
        raise ValueError(f"scoring must be the name of a score, a function or None, got {model.scoring!r}")
    from sklearn.metrics import check_scoring  # which takes longer to load than a fit of middling size

    check_scoring(model, scoring=model.scoring)


def scores_of(model: Any, coefs: Array, intercepts: Array, X: Any, y: Array, weight: Any) -> Array:
    """What the ``scoring`` of a model says of each alpha; a scorer gets NumPy arrays, whatever X is."""
    from sklearn.metrics import check_scoring

    model = copy.copy(model)
    scorer = check_scoring(model, scoring=model.scoring)
    if passes(X):  # few scorers take more than NumPy
        coefs, intercepts, X, y = (as_numpy(values) for values in (coefs, intercepts, X, y))
        weight = None if weight is None else as_numpy(weight)
    model.n_features_in_ = X.shape[1]  # of columns out of memory those in use alone
    weights = {} if weight is None else {"sample_weight": weight}
    if is_classifier(model):
        model.classes_ = as_numpy(model.classes_)
        y = model.classes_[y]
    elif y.ndim == 1:  # one target has a vector of coefficients
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    scores = []
    for model.coef_, model.intercept_ in zip(coefs, intercepts, strict=True):
        scores.append(scorer(model, X, y, **weights))
    return np.array(scores)

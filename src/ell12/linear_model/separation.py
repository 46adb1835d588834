"""Classes that are separated by features whose growth costs nothing: then the loss has no finite minimiser."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ell12.backend import as_numpy, indices_like, namespace
from ell12.linear_model.problems import FitProblem
from ell12.losses import LogisticLoss, MultinomialLoss
from ell12.minimization import Result, Status
from ell12.protocols import Array

# What separates the classes where the penalty has no say, and what to do about it.
NO_PENALTY = "at alpha=0 nothing bounds the coefficients of features that separate the classes. Raise alpha"
FREE = "features of penalty factor 0 separate the classes. Raise their factors"
ALONE = (
    "one feature, or group, separates the classes, and alone it costs nothing at this l2_weight."
    " Give a ridge, or a smaller l2_weight"
)


def endless(coef: Array, alpha: float, l2_weight: float, options: dict[str, Any]) -> tuple[Array, str]:
    """Which coefficients may grow without end at no cost, and why.

    All at alpha 0; those of factor 0; and without a ridge, where ``l2_weight`` is at least its factor, the only
    feature or group that is used.

    Parameters
    ----------
    coef : array of shape (n_features,)
        Where a fit ended.
    alpha, l2_weight : float
        Of its penalty.
    options : dict
        Further arguments of `ell12.path.l12_penalty`.
    """
    if alpha == 0:
        return coef != 0, NO_PENALTY
    number = np.arange(coef.size) if options.get("groups") is None else np.asarray(options["groups"])
    weights = np.ones(number.max(initial=-1) + 1) if options["weights"] is None else as_numpy(options["weights"])
    weight = weights[number]
    free, used = weight == 0, np.unique(number[(coef != 0) & (weight > 0)])
    if options["ridge"] == 0 and used.size == 1 and weights[used[0]] <= l2_weight:
        return (coef != 0) & (free | (number == used[0])), ALONE
    return free & (coef != 0), FREE


def separates(problem: FitProblem, x: Array, which: Array) -> bool:
    """Whether the given entries of x are a direction in which no margin falls and some grow.

    An intercept puts a threshold between two classes wherever there is one; of several classes at once the
    intercepts are among the entries. Samples of weight 0 have no say.
    """
    loss = problem.loss
    part = namespace(x).where(indices_like(which, x), x, 0)
    score, sign = as_numpy(loss.point(part).prediction), as_numpy(loss.b)
    if loss.sample_weight is not None:
        counts = as_numpy(loss.sample_weight).reshape(-1) > 0
        score, sign = score[counts], sign[counts]
    if problem.n_classes:
        margins = (np.sum(sign * score, axis=1, keepdims=True) - score)[sign == 0]
        return bool((margins >= 0).all() and (margins > 0).any())
    if not problem.constant:
        return bool((sign * score >= 0).all() and (score != 0).any())
    low, high = score[sign < 0], score[sign > 0]
    return bool(low.max() <= high.min() and low.min() < high.max())


def admit_separation(
    model: Any, problems: list[FitProblem], results: list[Result], alpha: float, l2_weight: float
) -> list[Result]:
    """The results, those that have no finite minimiser saying so; one warning for all of them."""
    options, judged, reasons = model._penalty_options(), [], []
    for problem, result in zip(problems, results, strict=True):
        reason = None
        if isinstance(problem.loss, LogisticLoss | MultinomialLoss):  # not where rows are on workers
            reason = _reason(problem, result.x, alpha, l2_weight, problem.structure(options))
        reasons += [] if reason is None else [reason]
        judged.append(result if reason is None else replace(result, status=Status.UNBOUNDED))
    if reasons:
        share = "" if len(results) == 1 else f" in {len(reasons)} of {len(results)} problems"
        warnings.warn(
            f"{type(model).__name__} has no finite minimiser{share}: {reasons[0]}. The coefficients found are"
            f" large because tol={model.tol:g} is small; a smaller tol makes them larger.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return judged


def _reason(problem: FitProblem, x: Array, alpha: float, l2_weight: float, options: dict[str, Any]) -> str | None:
    """Why the coefficients grow without end, or None."""
    size = x.shape[0] - problem.n_intercepts
    coef = as_numpy(x)[:size]
    which, reason = endless(coef, alpha, l2_weight, options)
    if not which.any():
        return None
    every = np.full(x.shape[0], problem.n_classes > 0)
    every[:size] = which
    return reason if separates(problem, x, every) else None

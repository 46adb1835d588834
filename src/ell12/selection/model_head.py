"""The head of a summary: what a model is, how its strength was chosen, how well it fits, how the fit ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ell12.backend import as_numpy
from ell12.linear_model import L12CoxRegressor
from ell12.linear_model.criteria import CRITERIA
from ell12.linear_model.cross_validation import AlphaSearch
from ell12.linear_model.fit_problem import Data
from ell12.minimization import Status
from ell12.operators import select_columns, to_dense
from ell12.protocols import Array
from ell12.selection.frames import significant

LOSSES = {"squared": "squared loss", "huber": "Huber's loss", "poisson": "Poisson's loss"}


def deviations(data: Data, features: Array) -> Array:
    """The standard deviations of some features, weighted; 1 for the others."""
    weight = None if data.sample_weight is None else as_numpy(data.sample_weight)
    found = np.ones(data.X.shape[1])
    if features.size:
        part = np.asarray(as_numpy(to_dense(select_columns(data.X, features))), dtype=float)
        part = part - np.average(part, axis=0, weights=weight)
        found[features] = np.sqrt(np.average(part**2, axis=0, weights=weight))
    return found


def title_of(model: Any) -> str:
    """The class of a model and its loss."""
    name = type(model).__name__
    if isinstance(model, L12CoxRegressor):
        return f"{name}, Cox's partial likelihood"
    if not is_classifier(model):
        return f"{name}, {LOSSES.get(model.loss) or repr(model.loss)}"
    classes = as_numpy(model.classes_).tolist()
    if len(classes) == 2:
        return f"{name}, logistic loss: {classes[1]} against {classes[0]}"
    if model._family.joint:
        return f"{name}, multinomial loss of {len(classes)} classes"
    return f"{name}, logistic loss: each of {len(classes)} classes against the rest"


def head_of(model: Any, coef: Array, data: Data | None, fit: str | None) -> dict[str, str]:
    """What is to be said of a fit, line by line."""
    head = {"alpha": _strength(model), "penalty": _penalty(model)}
    options = {
        "weights of classes": getattr(model, "class_weight", None),
        "refitted without a penalty": model._refit_share == 1,
        "mean of the penalised fit and its refit": 0 < model._refit_share < 1,
    }
    if any(options.values()):
        head["options"] = ", ".join(words for words, given in options.items() if given)
    if data is not None:
        head["samples"] = f"{data.X.shape[0]:,}"
    head["features"] = f"{np.count_nonzero(coef.any(axis=0)):,} of {coef.shape[1]:,} selected"
    if coef.shape[0] == 1 and model.fit_intercept:
        head["intercept"] = significant(float(np.ravel(as_numpy(model.intercept_))[0]))
    if fit is not None:
        head["fit"] = fit
    return head | {"status": _status(model)}


def _strength(model: Any) -> str:
    """Alpha, and how it was chosen."""
    if not isinstance(model, AlphaSearch):
        return f"{significant(model.penalty_.alpha)}, as given"
    tried, chosen = as_numpy(model.alphas_), significant(model.alpha_)
    if model.selection in CRITERIA:
        how = f"least {model.selection.upper()} of {tried.shape[-1]} strengths"
    else:
        found = vars(model)
        folds = as_numpy(found["mse_path_"] if "mse_path_" in found else found["scores_"]).shape[-1]
        best = "within one standard error of the best" if model.selection == "1se" else "the best"
        score = f" {model.scoring}" if isinstance(model.scoring, str) else ""
        how = f"{best} of {tried.shape[-1]} strengths by the mean{score} of {folds} folds"
    last = "; the smallest that was tried" if tried.shape[-1] > 1 and model.alpha_ == tried.min() else ""
    return f"{chosen}, {how}{last}"


def _penalty(model: Any) -> str:
    used = repr(replace(model.penalty_, alpha=None))
    several = isinstance(model.penalty, list | tuple)
    return f"{used}, the best of {', '.join(map(repr, model.penalty))}" if several else used


def goodness(model: Any, X: Any, y: Any, data: Data) -> str:
    """How well a model fits the samples it was fitted to."""
    given = {"sample_weight": data.sample_weight, "offset": data.offset}
    score = float(model.score(X, y, **{name: values for name, values in given.items() if values is not None}))
    if isinstance(model, L12CoxRegressor):
        return f"concordance {score:.3f}"
    if not is_classifier(model):
        return f"{score:.1%} of the {'deviance' if model._family.counts else 'variance'} explained"
    codes = as_numpy(data.y)
    weight = np.ones(codes.size) if data.sample_weight is None else as_numpy(data.sample_weight)
    shares = np.asarray(as_numpy(model.predict_proba(X)), dtype=float)[np.arange(codes.size), codes]
    alone = (np.bincount(codes, weight) / weight.sum())[codes]
    left, whole = (weight @ np.log(np.maximum(part, np.finfo(float).tiny)) for part in (shares, alone))
    return f"{1 - left / whole:.1%} of the deviance explained, {score:.1%} of the labels right"


def _status(model: Any) -> str:
    """How the fit ended, in the words of `ell12.Status`."""
    counts, total = Counter(result.status for result in model.results_), len(model.results_)
    parts = [
        f"{'C' if status is Status.CONVERGED else 'Not c'}onverged"
        f"{f' ({count} of {total} problems)' if len(counts) > 1 else ''}: {status.value}"
        for status, count in counts.items()
    ]
    return " ".join(parts) or "Stochastic steps, which have no certificate."

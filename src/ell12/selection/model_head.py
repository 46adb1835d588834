"""The head of a summary: what a model is, how its strength was chosen, how well it fits, how the fit ended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    validate_data,
)

from ell12.backend import as_numpy, refuse_gradient, refuse_masked
from ell12.checks import check_entries, naming
from ell12.linear_model import L12Classifier, L12CoxRegressor, L12Regressor
from ell12.linear_model.criteria import CRITERIA
from ell12.linear_model.cross_validation import AlphaSearch
from ell12.linear_model.fit_problem import check_columns, floating_dtypes
from ell12.linear_model.row_fits import check_in_memory
from ell12.minimization import Status
from ell12.operators import is_far, select_columns
from ell12.operators.out_of_memory import as_columns
from ell12.protocols import Array
from ell12.selection.frames import significant

LOSSES = {"squared": "squared loss", "huber": "Huber's loss", "poisson": "Poisson's loss"}
# Options that change what is fitted, with what they say of the model where they are set.
OPTIONS = {
    "class_weight": "weights of classes",
    "relax": "refitted without a penalty",
}


@dataclass(frozen=True)
class Data:
    """The data of a fit, as far as they are given: X as it was given, and as a matrix that was checked."""

    X: Any
    matrix: Any
    y: Any
    sample_weight: Any
    offset: Any

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> Data | None:
        """The data; None without X."""
        if X is None:
            for name, given in {"y": y, "sample_weight": sample_weight, "offset": offset}.items():
                if given is not None:
                    raise ValueError(f"{name} needs X beside it")
            return None
        check_in_memory(X, model)
        for name, given in {"X": X, "y": y, "sample_weight": sample_weight, "offset": offset}.items():
            refuse_masked(given, name)
            refuse_gradient(given, name)
        X = as_columns(X)
        if is_far(X):
            check_columns(model, X)
            matrix = X
        else:
            checks: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": floating_dtypes(X)}
            with naming("X"):
                matrix = validate_data(model, X, **checks, reset=False)
        for name, given in {"y": y, "sample_weight": sample_weight, "offset": offset}.items():
            with naming(name):
                check_consistent_length(matrix, given)
        if sample_weight is not None:
            with naming("sample_weight"):
                sample_weight = _check_sample_weight(sample_weight, matrix, ensure_non_negative=True)
        return cls(X, matrix, y, sample_weight, offset)

    def deviations(self, features: Array) -> Array:
        """The standard deviations of some features, weighted; 1 for the others."""
        weight = None if self.sample_weight is None else as_numpy(self.sample_weight)
        found = np.ones(self.matrix.shape[1])
        if features.size:
            part = select_columns(self.matrix, features)
            part = np.asarray(part.toarray() if scipy.sparse.issparse(part) else as_numpy(part), dtype=float)
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


def head_of(model: Any, coef: Array, data: Data | None) -> dict[str, str]:
    """What is to be said of a fit, line by line."""
    head = {"alpha": _strength(model), "penalty": _penalty(model)}
    options = [words for name, words in OPTIONS.items() if _is_set(vars(model).get(name))]
    if options:
        head["options"] = ", ".join(options)
    if data is not None:
        head["samples"] = f"{data.matrix.shape[0]:,}"
    head["features"] = f"{np.count_nonzero(coef.any(axis=0)):,} of {coef.shape[1]:,} selected"
    if coef.shape[0] == 1 and model.fit_intercept:
        head["intercept"] = significant(float(np.ravel(as_numpy(model.intercept_))[0]))
    if data is not None and data.y is not None:
        head |= _goodness(model, data)
    return head | {"status": _status(model)}


def _is_set(option: Any) -> bool:
    return option is not None and option is not False


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


def _goodness(model: Any, data: Data) -> dict[str, str]:
    """How well a model fits the samples it was fitted to."""
    weights = {} if data.sample_weight is None else {"sample_weight": data.sample_weight}
    if isinstance(model, L12Regressor) and data.offset is not None:
        weights["offset"] = data.offset
    with naming("y"):
        if isinstance(model, L12Regressor):
            check_entries(np.asarray(as_numpy(data.y), dtype=float), "y")
        score = float(model.score(data.X, data.y, **weights))
    if isinstance(model, L12CoxRegressor):
        return {"fit": f"concordance {score:.3f}"}
    if not isinstance(model, L12Classifier):
        return {"fit": f"{score:.1%} of the {'deviance' if model._family.counts else 'variance'} explained"}
    share = _explained(model, data)
    explained = "" if math.isnan(share) else f"{share:.1%} of the deviance explained, "
    return {"fit": f"{explained}{score:.1%} of the labels right"}


def _explained(model: Any, data: Data) -> float:
    """The share of the deviance that probabilities explain, beside the shares of the classes; NaN of one class."""
    classes, y = as_numpy(model.classes_), np.asarray(as_numpy(data.y))
    weight = np.ones(y.size) if data.sample_weight is None else as_numpy(data.sample_weight)
    given = y[:, None] == classes
    if not given.any(axis=1).all():
        raise ValueError(f"y holds labels that fit has not seen; those are {classes.tolist()}")
    shares = np.asarray(as_numpy(model.predict_proba(data.X)), dtype=float)
    alone = weight @ given / weight.sum()
    logs = [np.log(np.maximum((given * part).sum(axis=1), np.finfo(float).tiny)) for part in (shares, alone)]
    left, whole = (float(weight @ part) for part in logs)
    return 1 - left / whole if whole < 0 else math.nan


def _status(model: Any) -> str:
    """How the fit ended, in the words of `ell12.Status`."""
    results = model.results_
    if not results:
        return "Stochastic steps, which have no certificate."
    counts = Counter(result.status for result in results)
    parts = []
    for status, count in counts.items():
        converged = "Converged" if status is Status.CONVERGED else "Not converged"
        share = f" ({count} of {len(results)} problems)" if len(counts) > 1 else ""
        parts.append(f"{converged}{share}: {status.value}")
    return " ".join(parts)

"""What the parameters of an estimator ask of its penalty: factors, signs, bounds, groups, a ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import like, refuse_masked
from ell12.checks import naming
from ell12.linear_model.fit_problem import passes
from ell12.path import l12_penalty
from ell12.protocols import Array


def penalty_options(model: Any) -> dict[str, Any]:
    """The options of a model's penalty, for `ell12.path.l12_penalty`; checked."""
    size, each = model.n_features_in_, "feature"
    options = {"weights": None, "ridge": model.ridge} | {"positive": signs(model, size)}
    if model.groups is not None:
        if model.positive or model.bounds is not None:
            raise ValueError("groups takes neither positive=True nor bounds")
        options["groups"] = group_numbers(model.groups, size)
        size, each = int(options["groups"].max()) + 1, "group"
    if model.penalty_factors is None:
        return options
    factors = np.asarray(model.penalty_factors)
    if factors.shape != (size,):
        wanted = f"({size},), one number for each {each}"
        raise ValueError(f"penalty_factors must have shape {wanted}; got {factors.shape}")
    if factors.dtype.kind not in "biuf" or not factors.min() >= 0:
        raise ValueError("penalty_factors must hold numbers >= 0 only")
    return options | {"weights": factors}


def penalty_of(model: Any, l2_weight: float, problem: Any) -> Any:
    """The penalty of a problem at a strength of 1, its arrays where the problem's are."""
    options = problem.structure(penalty_options(model))
    if problem.n_targets > 0 and ("groups" in options or not isinstance(options["positive"], bool)):
        raise ValueError("shared_support=True takes neither groups nor bounds")
    if passes(problem.means) and options["weights"] is not None:  # sent once, not at every step
        options["weights"] = like(options["weights"], problem.means)
    if "groups" in options:
        options["positive"] = False
    return l12_penalty(1.0, l2_weight, rows=problem.n_targets > 0, **options)


def signs(model: Any, size: int) -> Any:
    """Which coefficients must not be negative: True, False or an array."""
    if model.bounds is None:
        return model.positive
    lower, upper = (np.broadcast_to(bound, (size,)) for bound in model.bounds)
    if not (np.isposinf(upper).all() and ((lower == 0) | np.isneginf(lower)).all()):
        raise ValueError("bounds must be 0 or -infinity below and infinity above")
    positive = (lower == 0) | bool(model.positive)
    return bool(positive[0]) if np.unique(positive).size == 1 else positive


def group_numbers(groups: Any, size: int) -> Array:
    """The number of each feature's group, in the order of the sorted labels."""
    refuse_masked(groups, "groups")
    with naming("groups"):  # such as rows of different lengths
        labels = np.asarray(groups)
    if labels.shape != (size,):
        raise ValueError(f"groups must have shape ({size},), one label for each feature; got {labels.shape}")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"groups must hold labels that can be sorted: {error}") from error

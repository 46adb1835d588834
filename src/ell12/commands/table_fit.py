"""The fit of ``ell12 fit``: cross-validation, predictions of rows left out, and what is to be said of them."""

import copy
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ell12 import __version__
from ell12.commands import noted
from ell12.commands.progress import Show
from ell12.commands.table_design import Design
from ell12.commands.table_model import TableModel, predictions
from ell12.commands.table_target import Target
from ell12.linear_model import L12ClassifierCV, L12CoxRegressorCV, L12RegressorCV
from ell12.linear_model.cox_regressor import concordance_index
from ell12.selection import StabilitySelection, confidence_intervals, summary

CHOSEN = 0.8  # the share of the work that is done when the strength is chosen


@dataclass(frozen=True)
class Choice:
    """How to fit, as far as the user says it."""

    l2_weight: tuple[float, ...]
    n_folds: int
    one_se: bool
    seed: int
    stability: bool
    intervals: bool


@dataclass(frozen=True)
class TableFit:
    """What was fitted: the model of all rows, the search that chose it, and predictions of rows left out."""

    model: TableModel
    search: Any
    left_out: dict[str, Any]
    table: Any
    measure: str
    notes: list[str]


def fit_table(design: Design, X: Any, target: Target, choice: Choice, row_id: str, show: Show) -> TableFit:
    """Choose the strength by cross-validation, fit all rows, and predict each row by a fit without its fold."""
    if X.shape[1] == 1:  # a single coefficient costs nothing at 1: there would be no strength to choose
        choice = replace(choice, l2_weight=tuple(weight for weight in choice.l2_weight if weight < 1) or (0.0,))
    folds = target.folds(choice.n_folds, choice.seed)
    with noted() as notes:
        search = _searched(X, target, choice, folds, show)
        model = _model_of(search, design, target, row_id)
        show("predicting rows left out", CHOSEN)
        left_out = _left_out(model.estimator, X, target.y, folds)
        show("making the table of features", 0.9)
        table = _table_of(search, model, X, target, choice)
    return TableFit(model, search, left_out, table, _measured(target, left_out), notes)


def _searched(X: Any, target: Target, choice: Choice, folds: list[Any], show: Show) -> Any:
    """The model with its strength chosen."""
    options: dict[str, Any] = {
        "l2_weight": list(choice.l2_weight) if len(choice.l2_weight) > 1 else choice.l2_weight[0],
        "cv": folds,
        "selection": "1se" if choice.one_se else "min",
    }
    if target.loss == "logistic":
        search: Any = L12ClassifierCV(**options)
    else:
        search = (
            L12CoxRegressorCV(**options) if target.loss == "cox" else L12RegressorCV(loss=target.loss, **options)
        )
    total, done = len(folds) * len(choice.l2_weight), [0]

    def after_fold() -> None:
        done[0] += 1
        show(f"choosing the strength: fold {done[0]} of {total}", CHOSEN * done[0] / total)

    show("choosing the strength", 0.0)
    search._after_fold = after_fold
    try:
        return search.fit(X, target.y)
    finally:
        del search._after_fold


def _model_of(search: Any, design: Design, target: Target, row_id: str) -> TableModel:
    classes = [str(name) for name in search.classes_] if target.loss == "logistic" else []
    return TableModel(
        design,
        np.atleast_2d(search.coef_),
        np.atleast_1d(search.intercept_),
        classes,
        target.loss,
        target.name,
        target.event,
        row_id,
        float(search.alpha_),
        float(search.l2_weight_),
        __version__,
        len(target.y),
    )


def _left_out(estimator: Any, X: Any, y: Any, folds: list[Any]) -> dict[str, Any]:
    """The predictions of each row by a fit that has not seen it."""
    found: dict[str, Any] = {}
    for train, test in folds:
        fitted = copy.deepcopy(estimator).fit(X[train], y[train])
        for name, values in predictions(fitted, X[test]).items():
            found.setdefault(name, np.empty(len(y), dtype=values.dtype))[test] = values
    return found


def _table_of(search: Any, model: TableModel, X: Any, target: Target, choice: Choice) -> Any:
    """The summary of the model in the units of the file."""
    design = model.design
    shown = copy.copy(search)
    coef = np.atleast_2d(search.coef_) / design.scales
    level = np.atleast_1d(search.intercept_) - coef @ design.means
    single = np.ndim(search.coef_) == 1
    shown.coef_ = coef[0] if single else coef
    if target.loss != "cox":
        shown.intercept_ = float(level[0]) if single else level
    intervals: Any = False
    features = np.flatnonzero(coef.any(axis=0))
    if choice.intervals and features.size:
        try:
            intervals = _in_units(confidence_intervals(X, target.y, search, features=features), design)
        except ValueError as error:  # of a loss, or of classes, that have none
            warnings.warn(f"no intervals: {error}", UserWarning, stacklevel=2)
    stability = None
    if choice.stability:
        # Halves may select as many features as the model has. By default they may select one of few columns only.
        options: dict[str, Any] = {
            "threshold": 0.7,
            "most_selected": max(features.size, 1),
            "random_state": choice.seed,
        }
        stability = StabilitySelection(model.estimator, **options).fit(X, target.y)
    units = X * design.scales + design.means
    return summary(shown, units, target.y, names=design.features, intervals=intervals, stability=stability)


def _in_units(found: Any, design: Design) -> Any:
    """Intervals of standardised features in the units of the file."""
    scales = design.scales[np.asarray(found.features)]
    names = ("coef", "estimate", "standard_error", "lower", "upper")
    return replace(found, **{name: getattr(found, name) / scales for name in names})


def _measured(target: Target, left_out: dict[str, Any]) -> str:
    """How well rows that a fit has not seen are predicted, beside the best constant."""
    y, predicted = target.y, left_out["prediction"]
    if target.loss == "cox":
        return f"rows left out: concordance {concordance_index(y, predicted):.3f} (chance alone 0.5)"
    if target.loss == "logistic":
        constant = np.unique(y, return_counts=True)[1].max() / len(y)
        return f"rows left out: {np.mean(y == predicted):.1%} right (the most frequent class alone {constant:.1%})"
    error, constant = np.sqrt(np.mean((y - predicted) ** 2)), np.std(y)
    share = 1 - (error / constant) ** 2
    words = f"{share:.1%} of the variance explained" if share > 0 else "no better than the mean"
    return f"rows left out: RMSE {error:.4g} (the mean alone {constant:.4g}), {words}"

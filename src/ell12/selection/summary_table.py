"""A fitted model for people: what was fitted and how, and a table of the features it selects."""

from __future__ import annotations

import html
import textwrap
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ell12.backend import as_numpy
from ell12.checks import check_word, naming
from ell12.linear_model import L12CoxRegressor
from ell12.linear_model.criteria import CRITERIA
from ell12.linear_model.cross_validation import AlphaSearch
from ell12.linear_model.fit_problem import Data
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.minimization import Status
from ell12.operators import select_columns, to_dense
from ell12.protocols import Array
from ell12.selection.confidence import Intervals, adjusted_p_values, confidence_intervals
from ell12.selection.frames import PRINTED, data_frame, significant
from ell12.selection.local_model import observed
from ell12.selection.stability import StabilitySelection

LOSSES = {"squared": "squared loss", "huber": "Huber's loss", "poisson": "Poisson's loss"}
# What columns of the table are called in print, where `estimate` is left out.
HEADINGS = {
    "coefficient": "coef",
    "per_sd": "per sd",
    "frequency": "freq.",
    "p_value": "p",
    "adjusted_p": "adj. p",
}


@dataclass(frozen=True, repr=False, eq=False)
class Summary:
    """The result of `summary`: print it, show it in a notebook, or take its table.

    Attributes
    ----------
    title : str
        What was fitted.
    head : dict of str to str
        What is to be said of the fit, line by line.
    table : DataFrame
        The features selected, those of the largest effect first.
    notes : list of str
        What stands below the table.
    """

    title: str
    head: dict[str, str]
    table: Any
    notes: list[str]

    def __repr__(self) -> str:
        size, lines = max(map(len, self.head)), [self.title]
        for name, words in self.head.items():
            indents: Any = {"initial_indent": f"  {name:{size}}  ", "subsequent_indent": " " * (size + 4)}
            lines += textwrap.wrap(words, 80, **indents)
        rows = "No feature is selected." if self.table.empty else self._printed.to_string(**PRINTED)
        notes = [line for note in self.notes for line in textwrap.wrap(note, 80)]
        return "\n".join([*lines, "", rows, *([""] if notes else []), *notes])

    def _repr_html_(self) -> str:
        pairs = ((name, html.escape(words)) for name, words in self.head.items())
        head = "".join(f"<tr><th>{name}</th><td>{words}</td></tr>" for name, words in pairs)
        rows = "<p>No feature is selected.</p>" if self.table.empty else self._printed.to_html(**PRINTED)
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<p>{html.escape(self.title)}</p><table>{head}</table>{rows}{notes}"

    @property
    def _printed(self) -> Any:
        return self.table.drop(columns="estimate", errors="ignore").rename(columns=HEADINGS)


def summary(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    intervals: Any = None,
    stability: Any = None,
    names: Any = None,
    adjust: str = "holm",
    sample_weight: Any = None,
    offset: Any = None,
) -> Summary:
    """A table of a fitted model: what was fitted, how it went, and the features that were selected.

    Parameters
    ----------
    model : L12Regressor, L12Classifier, L12CoxRegressor or their versions with CV
        Fitted.
    X : array or sparse matrix of shape (n_samples, n_features), optional
        The samples it was fitted to. The table then has coefficients per standard deviation of their feature, and
        is sorted by these.
    y : array, optional
        Their targets, as in ``fit``: for how well the model fits, and for intervals.
    intervals : Intervals or bool, optional
        As from `ell12.confidence_intervals`, of any features. True makes those of the features selected, which
        needs X and y. So does None, the default, where X and y are given and intervals are to be had; a note says
        so where they are not. False makes none.
    stability : StabilitySelection, optional
        Fitted, for how often each feature was selected.
    names : list of str, optional
        What to call the features; by default as they were called in ``fit``, or by their numbers.
    adjust : {"holm", "bh"}, default "holm"
        How p values are corrected for the number of all features, selected or not: see
        `Intervals.adjusted`. Features without an interval count with a p value of 1, which is cautious.
    sample_weight : array of shape (n_samples,), optional
        The weights of the fit.
    offset : array of shape (n_samples,), optional
        The offset of the fit, for ``loss="poisson"``.

    Returns
    -------
    Summary
        Print it, show it in a notebook, or take `Summary.table`, a DataFrame with the columns ``class`` or
        ``target`` where there are several, ``feature``, ``coefficient``, ``per_sd``, ``frequency``, ``estimate``,
        ``lower``, ``upper``, ``p_value`` and ``adjusted_p``, as far as they are known.

    See Also
    --------
    confidence_intervals : How large effects may be.
    StabilitySelection : Which features another sample would select too.

    Notes
    -----
    Coefficients are those of the model, shrunken by the penalty (unless ``relax``). Intervals are those of
    debiased estimates: a coefficient may lie outside of its interval.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12Regressor, summary
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((50, 5))
    >>> model = L12Regressor(0.1).fit(X, 2 * X[:, 1] - X[:, 3] + 0.1 * random.standard_normal(50))
    >>> summary(model, names=["a", "b", "c", "d", "e"])
    L12Regressor, squared loss
      alpha      0.1, as given
      penalty    L12()
      features   2 of 5 selected
      intercept  -0.00855
      status     Converged: The stationarity fell to tol.
    <BLANKLINE>
    feature   coef
          b   1.99
          d -0.955
    """
    if not isinstance(model, SparseLinearModel):
        raise TypeError(f"model must be a linear model of ell12, such as an L12Regressor, got {model!r}")
    check_is_fitted(model, "coef_")
    check_word(adjust, "adjust", "holm", "bh")
    for name, values in {"y": y, "sample_weight": sample_weight, "offset": offset}.items():
        if X is None and values is not None:
            raise ValueError(f"{name} needs X")
    data = None if X is None else observed(model, X, y, sample_weight, offset)[1]
    fit = None if data is None or y is None else _goodness(model, X, y, data)
    coef = np.atleast_2d(as_numpy(model.coef_))
    names = _names(model, names)
    found, notes = _intervals(model, intervals, X, y, sample_weight=sample_weight, offset=offset)
    scales = None if data is None else _deviations(data, np.flatnonzero(coef.any(axis=0))).astype(coef.dtype)
    effects = coef if scales is None else coef * scales
    rows, features = np.nonzero(effects)
    order = np.lexsort((-np.abs(effects[rows, features]), rows))  # row by row, the largest first
    rows, features = rows[order], features[order]
    columns: dict[str, Any] = {}
    if coef.shape[0] > 1:
        columns = {"class": as_numpy(model.classes_)[rows]} if is_classifier(model) else {"target": rows}
    columns |= {"feature": [str(names[j]) for j in features], "coefficient": coef[rows, features]}
    if scales is not None:
        columns["per_sd"] = (coef * scales)[rows, features]
    if stability is not None:
        columns["frequency"] = _frequencies(stability, coef.shape[1])[features]
        note = (
            f"freq.: the share of {stability.n_subsamples} halves of the samples that selected the feature. Among"
            f" those that reach {stability.threshold_:.2g}, {stability.bound_:.2g} false ones are expected at the"
            " most."
        )
        notes = [note, *notes]
    if found is not None:
        columns |= _interval_columns(found, features, coef, adjust)
        method = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[adjust]
        note = (
            f"lower, upper: {100 * found.level:g} % intervals of the debiased coefficients. adj. p: {method}, for"
            f" all {coef.shape[1]:,} features."
        )
        notes = [*notes, note]
    return Summary(_title_of(model), _head_of(model, coef, data, fit), data_frame(columns), notes)


def _names(model: Any, names: Any) -> Any:
    """What each feature is called."""
    size = model.n_features_in_
    if names is None:
        return vars(model).get("feature_names_in_", range(size))
    with naming("names"):
        found = [] if isinstance(names, str) else list(names)
    if len(found) != size:
        raise ValueError(f"names must hold one name for each of the {size} features, got {names!r:.200}")
    return found


def _frequencies(stability: Any, size: int) -> Array:
    """How often each feature was selected."""
    if not isinstance(stability, StabilitySelection):
        raise TypeError(f"stability must be a fitted StabilitySelection, got {stability!r:.200}")
    check_is_fitted(stability, "frequencies_")
    frequencies = as_numpy(stability.frequencies_)
    if frequencies.shape != (size,):
        raise ValueError(f"stability was fitted to {frequencies.size} features, the model to {size}")
    return frequencies


def _intervals(model: Any, given: Any, X: Any, y: Any, **rows: Any) -> tuple[Any, list[str]]:
    """The intervals, given or made, and what is to be said where there are none."""
    if isinstance(given, Intervals):
        return given, []
    if not (given is None or isinstance(given, bool)):
        raise TypeError(f"intervals must be True, False or what confidence_intervals returns, got {given!r:.200}")
    if given and y is None:
        raise ValueError("intervals=True needs X and y")
    features = np.flatnonzero(np.atleast_2d(as_numpy(model.coef_)).any(axis=0))
    if given is False or y is None or features.size == 0:
        return None, []
    try:
        return confidence_intervals(X, y, model, features=features, **rows), []
    except (TypeError, ValueError) as error:
        if given:
            raise
        return None, [f"No intervals: {error}"]


def _interval_columns(found: Any, features: Array, coef: Array, adjust: str) -> dict[str, Any]:
    """The intervals of the features selected; NaN where there are none."""
    known, p_values = np.asarray(found.features), np.ones(coef.shape[1])
    if coef.shape[0] > 1:
        raise ValueError(f"intervals are of one target or two classes, the model has {coef.shape[0]} rows")
    if known.size and known.max() >= p_values.size:
        raise ValueError(
            f"intervals are of a feature of number {known.max()}, the model has {p_values.size} features"
        )
    p_values[known] = found.p_values
    columns = {name: getattr(found, name) for name in ("estimate", "lower", "upper")}
    columns |= {"p_value": found.p_values, "adjusted_p": adjusted_p_values(p_values, adjust)[known]}
    frame = data_frame(columns, known)
    return frame[~frame.index.duplicated()].reindex(features).to_dict("list")


def _deviations(data: Data, features: Array) -> Array:
    """The standard deviations of some features, weighted; 1 for the others."""
    weight = None if data.sample_weight is None else as_numpy(data.sample_weight)
    found = np.ones(data.X.shape[1])
    if features.size:
        part = np.asarray(as_numpy(to_dense(select_columns(data.X, features))), dtype=float)
        part = part - np.average(part, axis=0, weights=weight)
        found[features] = np.sqrt(np.average(part**2, axis=0, weights=weight))
    return found


def _title_of(model: Any) -> str:
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


def _head_of(model: Any, coef: Array, data: Data | None, fit: str | None) -> dict[str, str]:
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


def _goodness(model: Any, X: Any, y: Any, data: Data) -> str:
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

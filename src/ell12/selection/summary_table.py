"""A fitted model for people: what was fitted and how, and a table of the features it selects."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ell12.backend import as_numpy
from ell12.checks import check_word, naming
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.protocols import Array
from ell12.selection.confidence import Intervals, adjusted_p_values, confidence_intervals
from ell12.selection.frames import PRINTED, data_frame
from ell12.selection.local_model import observed
from ell12.selection.model_head import deviations, goodness, head_of, title_of
from ell12.selection.stability import StabilitySelection

# What the columns of the table are called in print; `estimate` is left to the DataFrame.
HEADINGS = {
    "class": "class",
    "target": "target",
    "feature": "feature",
    "coefficient": "coef",
    "per_sd": "per sd",
    "frequency": "freq.",
    "lower": "lower",
    "upper": "upper",
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
        size = max(map(len, self.head))
        lines = [self.title]
        for name, words in self.head.items():
            lines += textwrap.wrap(
                words, 80, initial_indent=f"  {name:{size}}  ", subsequent_indent=" " * (size + 4)
            )
        rows = "No feature is selected." if self.table.empty else self._printed.to_string(**PRINTED)
        notes = [line for note in self.notes for line in textwrap.wrap(note, 80)]
        return "\n".join([*lines, "", rows, *([""] if notes else []), *notes])

    def _repr_html_(self) -> str:
        head = "".join(
            f"<tr><th>{name}</th><td>{html.escape(words)}</td></tr>" for name, words in self.head.items()
        )
        rows = "<p>No feature is selected.</p>" if self.table.empty else self._printed.to_html(**PRINTED)
        notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)
        return f"<p>{html.escape(self.title)}</p><table>{head}</table>{rows}{notes}"

    @property
    def _printed(self) -> Any:
        return self.table[[name for name in self.table if name in HEADINGS]].rename(columns=HEADINGS)


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
    model : L12Regressor, L12Classifier, L12CoxRegressor or their twins with CV
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
    fit = None if data is None or y is None else goodness(model, X, y, data)
    coef = np.atleast_2d(as_numpy(model.coef_))
    names = _names(model, names)
    found, notes = _intervals(model, intervals, X, y, sample_weight, offset)
    scales = None if data is None else deviations(data, np.flatnonzero(coef.any(axis=0))).astype(coef.dtype)
    rows, features = _order(coef if scales is None else coef * scales)
    columns: dict[str, Any] = {}
    if coef.shape[0] > 1:
        kind = "class" if is_classifier(model) else "target"
        columns[kind] = as_numpy(model.classes_)[rows].tolist() if kind == "class" else rows.tolist()
    columns |= {"feature": [str(names[j]) for j in features], "coefficient": coef[rows, features]}
    if scales is not None:
        columns["per_sd"] = (coef * scales)[rows, features]
    if stability is not None:
        columns["frequency"] = _frequencies(stability, coef.shape[1])[features]
        notes = [_stability_note(stability), *notes]
    if found is not None:
        columns |= _interval_columns(found, features, coef, adjust)
        notes = [*notes, _interval_note(found, coef.shape[1], adjust)]
    return Summary(title_of(model), head_of(model, coef, data, fit), data_frame(columns), notes)


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


def _order(effects: Array) -> tuple[Array, Array]:
    """The rows and columns of the effects that are not zero, row by row, the largest first."""
    rows, features = np.nonzero(effects)
    order = np.lexsort((-np.abs(effects[rows, features]), rows))
    return rows[order], features[order]


def _frequencies(stability: Any, size: int) -> Array:
    """How often each feature was selected."""
    if not isinstance(stability, StabilitySelection):
        raise TypeError(f"stability must be a fitted StabilitySelection, got {stability!r:.200}")
    check_is_fitted(stability, "frequencies_")
    frequencies = as_numpy(stability.frequencies_)
    if frequencies.shape != (size,):
        raise ValueError(f"stability was fitted to {frequencies.size} features, the model to {size}")
    return frequencies


def _stability_note(stability: Any) -> str:
    halves, threshold, bound = stability.n_subsamples, stability.threshold_, stability.bound_
    return (
        f"freq.: the share of {halves} halves of the samples that selected the feature. Among those that reach"
        f" {threshold:.2g}, {bound:.2g} false ones are expected at the most."
    )


def _intervals(model: Any, given: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, list[str]]:
    """The intervals, given or made, and what is to be said where there are none."""
    if isinstance(given, Intervals):
        return given, []
    if not (given is None or isinstance(given, bool)):
        raise TypeError(f"intervals must be True, False or what confidence_intervals returns, got {given!r:.200}")
    if given is False or (given is None and y is None):
        return None, []
    if y is None:
        raise ValueError("intervals=True needs X and y")
    features = np.flatnonzero(np.atleast_2d(as_numpy(model.coef_)).any(axis=0))
    if features.size == 0:
        return None, []
    try:
        rows = {"sample_weight": sample_weight, "offset": offset}
        return confidence_intervals(X, y, model, features=features, **rows), []
    except (TypeError, ValueError) as error:
        if given:
            raise
        return None, [f"No intervals: {error}"]


def _interval_columns(found: Any, features: Array, coef: Array, adjust: str) -> dict[str, Array]:
    """The intervals of the features selected; NaN where there are none."""
    size = coef.shape[1]
    if coef.shape[0] > 1:
        raise ValueError(f"intervals are of one target or two classes, the model has {coef.shape[0]} rows")
    known = np.asarray(found.features)
    if known.size and known.max() >= size:
        raise ValueError(f"intervals are of a feature of number {known.max()}, the model has {size} features")
    p_values = np.ones(size)
    p_values[known] = found.p_values
    parts = {"estimate": found.estimate, "lower": found.lower, "upper": found.upper, "p_value": found.p_values}
    where = np.full(size, known.size)
    where[known] = np.arange(known.size)
    columns = {name: np.append(values, np.nan)[where[features]] for name, values in parts.items()}
    adjusted = np.where(np.isin(features, known), adjusted_p_values(p_values, adjust)[features], np.nan)
    return columns | {"adjusted_p": adjusted}


def _interval_note(found: Any, size: int, adjust: str) -> str:
    method = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[adjust]
    return (
        f"lower, upper: {100 * found.level:g} % intervals of the debiased coefficients. adj. p: {method}, for all"
        f" {size:,} features."
    )

"""A fitted model for people: what was fitted and how, and a table of the features it selects."""

from __future__ import annotations

import html
import math
import numbers
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from ell12.backend import as_numpy, refuse_gradient, refuse_masked
from ell12.checks import check_counts, check_entries, check_word, naming
from ell12.linear_model import L12Classifier, L12CoxRegressor, L12Regressor
from ell12.linear_model.chunked import check_in_memory
from ell12.linear_model.criteria import CRITERIA
from ell12.linear_model.fit_problem import check_columns, floating_dtypes
from ell12.linear_model.search import AlphaSearch
from ell12.linear_model.sparse_model import SparseLinearModel
from ell12.minimization import Status
from ell12.operators import is_far, select_columns
from ell12.operators.sources import as_columns
from ell12.protocols import Array
from ell12.selection.confidence import Intervals, adjusted_p_values, confidence_intervals
from ell12.selection.stability import StabilitySelection

Format = int | str | Callable[[Any], str]

# Significant digits of a number whose column has no format of its own.
DIGITS = 3
# Numbers from the first to below the second are written without an exponent, as people write them.
PLAIN = (1e-4, 1e7)
# A text column is cut, where the lines would be too long, to no fewer characters than this.
SHORTEST = 12
# Colours are those around the table, and lines half transparent grey, so that light and dark notebooks show both.
STYLE = (
    "<style>.ell12-table{border-collapse:collapse;color:inherit;background:none;font-variant-numeric:tabular-nums;"
    "margin:.4em 0 .8em}"
    ".ell12-table caption{text-align:left;color:inherit;padding:.3em 0;white-space:pre-line}"
    ".ell12-table th,.ell12-table td{padding:.15em .7em;text-align:right;border:0}"
    ".ell12-table th{border-bottom:1px solid rgba(128,128,128,.6)}"
    ".ell12-table .ell12-text{text-align:left}</style>"
)


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    columns : dict of str to sequence
        Numbers, which stand on the right, or words. NaN and None are empty cells.
    caption : str, default ""
        What stands above.
    formats : dict of str to int, str or function
        For some columns: a number of significant digits, a format such as ".1f", or what makes a cell of a value.
        Three significant digits by default.
    max_rows : int, default 30
        How many rows to show; a line says how many are left out. `to_pandas` has them all.
    width : int, default 80
        The length that a line of text should keep to; words that are too long for it are cut.

    Examples
    --------
    >>> from ell12.selection.summary_table import Table
    >>> Table({"feature": ["age", "bmi"], "coefficient": [0.51234, -24.0], "p value": [float("nan"), 2e-9]})
    feature  coefficient  p value
    -----------------------------
    age            0.512
    bmi          -24.0      2e-09
    """

    columns: Mapping[str, Any]
    caption: str = ""
    formats: Mapping[str, Format] = field(default_factory=dict)
    max_rows: int = 30
    width: int = 80

    def __post_init__(self) -> None:
        columns = {name: _column(values) for name, values in self.columns.items()}
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must be of equal length, got {lengths}")
        if self.max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {self.max_rows}")
        object.__setattr__(self, "columns", columns)

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def __str__(self) -> str:
        """The table as lines of text, numbers with their points below each other."""
        columns = self._cells()
        blocks = [_column_of_text(name, cells, _is_numeric(self.columns[name])) for name, cells in columns.items()]
        self._shorten(blocks)
        lines = ["  ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
        if lines:
            lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join([*([self.caption] if self.caption else []), *lines, *self._rest()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        numeric = [_is_numeric(values) for values in self.columns.values()]
        rows = zip(*self._cells().values(), strict=True)
        body = "".join(_html_row("td", row, numeric) for row in rows)
        rest = "".join(
            f'<tr><td class="ell12-text" colspan="{len(self.columns)}">{line}</td></tr>' for line in self._rest()
        )
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        head = f"<thead>{_html_row('th', self.columns, numeric)}</thead>"
        return f'{STYLE}<table class="ell12-table">{caption}{head}<tbody>{body}{rest}</tbody></table>'

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        return pd.DataFrame(dict(self.columns))

    def _cells(self) -> dict[str, list[str]]:
        """The rows that are shown, as words."""
        return {
            name: [_cell(value, self.formats.get(name, DIGITS)) for value in values[: self.max_rows]]
            for name, values in self.columns.items()
        }

    def _rest(self) -> list[str]:
        """What to say of the rows that are not shown."""
        rest = len(self) - self.max_rows
        if len(self) == 0 and self.columns:
            return ["(no rows)"]
        return [f"... and {rest:,} more row{'s' if rest > 1 else ''}"] if rest > 0 else []

    def _shorten(self, blocks: list[list[str]]) -> None:
        """Cut words, the longest column first, as far as lines are too long."""
        words = [k for k, values in enumerate(self.columns.values()) if not _is_numeric(values)]
        for k in sorted(words, key=lambda k: -len(blocks[k][0])):
            excess = sum(len(block[0]) + 2 for block in blocks) - 2 - self.width
            length = len(blocks[k][0])
            if excess > 0 and length > SHORTEST:
                size = max(SHORTEST, length - excess)
                blocks[k] = [_cut(cell, size) for cell in blocks[k]]


def significant(value: float, digits: int = DIGITS) -> str:
    """A number with so many significant digits, and no exponent where people write none.

    Examples
    --------
    >>> from ell12.selection.summary_table import significant
    >>> [significant(value) for value in (0.5, 1234.5, -0.00123456, 2e-9, 0.0)]
    ['0.500', '1234', '-0.00123', '2e-09', '0']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits}g}")
    if not PLAIN[0] <= abs(rounded) < PLAIN[1]:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{value:.{max(decimals, 0)}f}"


def _column(values: Any) -> Array | list[Any]:
    """Values as a NumPy vector, or as a list where they are words."""
    if isinstance(values, list | tuple):
        plain = all(isinstance(value, numbers.Real) and not isinstance(value, bool) for value in values)
        return np.asarray(values) if plain and values else list(values)
    values = as_numpy(values)
    return values if values.dtype.kind in "iuf" else values.tolist()


def _is_numeric(values: Any) -> bool:
    return isinstance(values, np.ndarray)


def _cell(value: Any, how: Format) -> str:
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if callable(how):
        return how(value)
    if isinstance(how, str):
        return format(value, how)
    return significant(float(value), how) if isinstance(value, float | np.floating) else str(value)


def _column_of_text(name: str, cells: list[str], numeric: bool) -> list[str]:
    """The name and the cells, padded to one length; numbers have their points below each other."""
    if numeric and not any("e" in cell for cell in cells):
        after = [len(cell) - cell.find(".") if "." in cell else 0 for cell in cells]
        cells = [cell + " " * (max(after, default=0) - size) for cell, size in zip(cells, after, strict=True)]
    width = max(map(len, [name, *cells]))
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in [name, *cells]]


def _html_row(tag: str, cells: Iterable[str], numeric: list[bool]) -> str:
    kinds = ("" if right else ' class="ell12-text"' for right in numeric)
    pairs = zip(cells, kinds, strict=True)
    return "<tr>" + "".join(f"<{tag}{kind}>{html.escape(cell)}</{tag}>" for cell, kind in pairs) + "</tr>"


def _cut(cell: str, size: int) -> str:
    """A padded word cut to a size; dots say that something is missing."""
    return cell[:size] if len(cell.rstrip()) <= size else cell[: size - 3] + "..."


LOSSES = {"squared": "squared loss", "huber": "Huber's loss", "poisson": "Poisson's loss"}
# Options that change what is fitted, with what they say of the model where they are set.
OPTIONS = {
    "positive": "coefficients >= 0",
    "penalty_factors": "penalty factors",
    "bounds": "bounds",
    "groups": "groups",
    "shared_support": "one support for all targets",
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
        return f"{name}, {LOSSES[model.loss]}"
    classes = as_numpy(model.classes_).tolist()
    if len(classes) == 2:
        return f"{name}, logistic loss: {classes[1]} against {classes[0]}"
    if model.multinomial:
        return f"{name}, multinomial loss of {len(classes)} classes"
    return f"{name}, logistic loss: each of {len(classes)} classes against the rest"


def head_of(model: Any, coef: Array, data: Data | None) -> dict[str, str]:
    """What is to be said of a fit, line by line."""
    head = {"alpha": _strength(model), "l2_weight": _l2_weight(model)}
    if model.ridge:
        head["ridge"] = f"{model.ridge:g}"
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
        return f"{significant(model.alpha)}, as given"
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


def _l2_weight(model: Any) -> str:
    if not isinstance(model, AlphaSearch) or np.ndim(model.l2_weight) == 0:
        return f"{float(model._l2_weight):g}"
    return f"{model.l2_weight_:g}, the best of {', '.join(f'{float(weight):g}' for weight in model.l2_weight)}"


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
        return {"fit": f"{score:.1%} of the {'deviance' if model.loss == 'poisson' else 'variance'} explained"}
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
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    if results[0] is None:
        return "Stochastic steps, which have no certificate."
    counts = Counter(result.status for result in results)
    parts = []
    for status, count in counts.items():
        converged = "Converged" if status is Status.CONVERGED else "Not converged"
        share = f" ({count} of {len(results)} problems)" if len(counts) > 1 else ""
        parts.append(f"{converged}{share}: {status.value}")
    return " ".join(parts)


WIDTH = 80
# What the columns of the DataFrame are called in print; those that are not here are left to the DataFrame.
PRINTED = {
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
FORMATS: dict[str, Format] = {"freq.": ".2f", "p": 2, "adj. p": 2}


@dataclass(frozen=True, repr=False, eq=False)
class Summary:
    """The result of `summary`: it can be printed, shown in a notebook, or made a DataFrame.

    Attributes
    ----------
    title : str
        What was fitted.
    head : dict of str to str
        What is to be said of the fit, line by line.
    columns : dict of str to array
        The table of the features selected, those of the largest effect first.
    notes : list of str
        What stands below the table.
    max_rows : int
        How many rows to show.
    """

    title: str
    head: dict[str, str]
    columns: dict[str, Any]
    notes: list[str]
    max_rows: int = 30

    def to_pandas(self) -> Any:
        """The features selected as a pandas DataFrame: all rows, and all columns in full."""
        return self._table(self.columns).to_pandas()

    def cells(self) -> dict[str, list[str]]:
        """The table as it is printed: the words of each column, at most ``max_rows``, by its heading."""
        return self._printed._cells()

    @property
    def _printed(self) -> Table:
        return self._table({PRINTED[name]: part for name, part in self.columns.items() if name in PRINTED})

    def _table(self, columns: dict[str, Any]) -> Table:
        return Table(columns, formats=FORMATS, max_rows=self.max_rows, width=WIDTH)

    @property
    def _is_empty(self) -> bool:
        return len(self.columns["feature"]) == 0

    def __repr__(self) -> str:
        size = max(map(len, self.head))
        lines = [self.title]
        for name, words in self.head.items():
            lines += textwrap.wrap(
                words, WIDTH, initial_indent=f"  {name:{size}}  ", subsequent_indent=" " * (size + 4)
            )
        lines += ["", "No feature is selected." if self._is_empty else str(self._printed)]
        notes = [line for note in self.notes for line in textwrap.wrap(note, WIDTH)]
        return "\n".join([*lines, *([""] if notes else []), *notes])

    def _repr_html_(self) -> str:
        head = Table({"model": list(self.head), self.title: list(self.head.values())})._repr_html_()
        table = "<p>No feature is selected.</p>" if self._is_empty else self._printed._repr_html_()
        return head + table + "".join(f"<p><small>{html.escape(note)}</small></p>" for note in self.notes)


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
    max_rows: int = 30,
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
        `ell12.adjusted_p_values`. Features without an interval count with a p value of 1, which is cautious.
    sample_weight : array of shape (n_samples,), optional
        The weights of the fit.
    offset : array of shape (n_samples,), optional
        The offset of the fit, for ``loss="poisson"``.
    max_rows : int, default 30
        How many features to print.

    Returns
    -------
    Summary
        Print it, show it in a notebook, or take `Summary.to_pandas`, whose columns are ``class`` or ``target``
        where there are several, ``feature``, ``coefficient``, ``per_sd``, ``frequency``, ``estimate``, ``lower``,
        ``upper``, ``p_value`` and ``adjusted_p``, as far as they are known.

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
      alpha      0.100, as given
      l2_weight  1
      features   2 of 5 selected
      intercept  -0.00855
      status     Converged: The stationarity fell to tol.
    <BLANKLINE>
    feature    coef
    ---------------
    b         1.99
    d        -0.955
    """
    if not isinstance(model, SparseLinearModel):
        raise TypeError(f"model must be a linear model of ell12, such as an L12Regressor, got {model!r}")
    check_is_fitted(model, "coef_")
    check_word(adjust, "adjust", "holm", "bh")
    check_counts(least=1, optional=False, max_rows=max_rows)
    data = Data.of(model, X, y, sample_weight, offset)
    coef = np.atleast_2d(as_numpy(model.coef_))
    names = _names(model, names)
    found, notes = _intervals(model, data, intervals)
    scales = None if data is None else data.deviations(np.flatnonzero(coef.any(axis=0))).astype(coef.dtype)
    rows, features = _order(coef if scales is None else coef * scales)
    columns: dict[str, Any] = {}
    if coef.shape[0] > 1:
        kind, groups = _groups(model, coef.shape[0])
        columns[kind] = [groups[row] for row in rows]
    columns |= {"feature": [str(names[j]) for j in features], "coefficient": coef[rows, features]}
    if scales is not None:
        columns["per_sd"] = (coef * scales)[rows, features]
    if stability is not None:
        columns["frequency"] = _frequencies(stability, coef.shape[1])[features]
        notes = [_stability_note(stability), *notes]
    if found is not None:
        columns |= _interval_columns(found, features, coef, adjust)
        notes = [*notes, _interval_note(found, coef.shape[1], adjust)]
    return Summary(title_of(model), head_of(model, coef, data), columns, notes, max_rows)


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


def _groups(model: Any, size: int) -> tuple[str, list[Any]]:
    """What the rows of coefficients are: classes or targets."""
    if is_classifier(model):
        return "class", as_numpy(model.classes_).tolist()
    return "target", list(range(size))


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


def _intervals(model: Any, data: Data | None, given: Any) -> tuple[Any, list[str]]:
    """The intervals, given or made, and what is to be said where there are none."""
    if isinstance(given, Intervals):
        return given, []
    if not (given is None or isinstance(given, bool)):
        raise TypeError(f"intervals must be True, False or what confidence_intervals returns, got {given!r:.200}")
    if given is False or (given is None and (data is None or data.y is None)):
        return None, []
    if data is None or data.y is None:
        raise ValueError("intervals=True needs X and y")
    features = np.flatnonzero(np.atleast_2d(as_numpy(model.coef_)).any(axis=0))
    if features.size == 0:
        return None, []
    try:
        weight = data.sample_weight
        return confidence_intervals(data.X, data.y, model, features=features, sample_weight=weight), []
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
    columns = {}
    for name, values in parts.items():
        full = np.full(size, np.nan)
        full[known] = values
        columns[name] = full[features]
    adjusted = np.where(np.isin(features, known), adjusted_p_values(p_values, adjust)[features], np.nan)
    return columns | {"adjusted_p": adjusted}


def _interval_note(found: Any, size: int, adjust: str) -> str:
    method = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[adjust]
    return (
        f"lower, upper: {100 * found.level:g} % intervals of the debiased coefficients. adj. p: {method}, for all"
        f" {size:,} features."
    )

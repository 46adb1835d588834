"""Pictures of paths and of cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.plots.axes import alpha_axis, new_axes


def plot_path(
    alphas: Any, coefs: Any, *, names: Sequence[str] | None = None, n_labels: int = 8, axes: Any = None
) -> Any:
    """Draw the coefficients against alpha, which falls from left to right.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Strengths, as from `ell12.l12_path`.
    coefs : array of shape (n_features, n_alphas)
        Solutions, side by side.
    names : list of str, optional
        What to call the features; their numbers by default.
    n_labels : int, default 8
        How many features get a label and a colour, those that are largest at the end of the path. The rest, if
        there is one, is drawn in grey. Of up to ten features each has the same colour in every picture.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines.

    See Also
    --------
    l12_path : Solutions for many strengths.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import l12_path, plot_path
    >>> alphas, coefs, _ = l12_path(np.eye(4), [4.0, 3.0, 0.0, 1.0], n_alphas=20)
    >>> axes = plot_path(alphas, coefs, names=["a", "b", "c", "d"])
    >>> axes.get_legend_handles_labels()[1]
    ['a', 'b', 'd']
    """
    alphas, coefs = np.asarray(alphas, dtype=float), np.asarray(coefs)
    if alphas.ndim != 1 or coefs.ndim != 2 or coefs.shape[1] != alphas.size:
        raise ValueError(
            f"coefs must have one column for each alpha; got coefs {coefs.shape} and alphas {alphas.shape}"
        )
    if names is not None and len(names) != coefs.shape[0]:
        raise ValueError(f"names must hold one name for each of the {coefs.shape[0]} features, got {len(names)}")
    axes = new_axes() if axes is None else axes
    order = np.argsort(-np.abs(coefs[:, np.argmin(alphas)]), kind="stable")
    order = order[np.any(coefs[order] != 0, axis=1)]
    few = coefs.shape[0] <= 10  # then a feature has the same colour in every picture
    for feature in order[n_labels:]:
        axes.plot(alphas, coefs[feature], color="0.8", linewidth=0.8, zorder=1)
    for place, feature in enumerate(order[:n_labels]):
        label = str(feature if names is None else names[feature])
        axes.plot(alphas, coefs[feature], color=f"C{feature if few else place}", label=label, linewidth=1.6)
    alpha_axis(axes, alphas)
    axes.set_ylabel("coefficient")
    if order[:n_labels].size:
        axes.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def plot_cross_validation(model: Any, *, axes: Any = None) -> Any:
    """Draw the mean error (or score) on the folds left out, with one standard error, against alpha.

    Each penalty of a list has a line of its own.

    Parameters
    ----------
    model : L12RegressorCV, L12ClassifierCV or L12CoxRegressorCV
        Fitted.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines. A full vertical line marks the alpha that was chosen, a dotted one the alpha
        with the best mean where that is another one. With ``selection="1se"`` a dashed line shows the mean that
        was good enough: the best, less one standard error.

    See Also
    --------
    L12RegressorCV : Regression with a strength chosen by cross-validation.
    plot_path : A picture of a path.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import L12RegressorCV, plot_cross_validation
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((40, 10))
    >>> model = L12RegressorCV(alphas=10).fit(X, X[:, 0] + random.standard_normal(40))
    >>> plot_cross_validation(model).get_ylabel()
    'mean squared error'
    """
    values, label, sign = _curve(model)
    axes = new_axes() if axes is None else axes
    several = values.ndim == 3
    lines = values if several else values[None]
    grids = np.broadcast_to(as_numpy(model.alphas_), lines.shape[:2])
    for k, (alphas, folds) in enumerate(zip(grids, lines, strict=True)):
        name = repr(model.penalty[k]) if several else _line(model)
        _draw_folds(axes, alphas, folds, f"C{k + (k > 0)}", name)  # C1 marks the choice
    means = sign * lines.mean(axis=2)
    where = np.unravel_index(np.nanargmax(means), means.shape)
    best = float(grids[where])
    if best != model.alpha_:
        axes.axvline(best, color="0.4", linestyle=":", label=f"best mean, alpha = {best:.3g}")
    if model.selection == "1se" and lines.shape[2] > 1:
        level = sign * (means[where] - model.standard_error_)
        axes.axhline(level, color="0.6", linestyle="--", label=f"one standard error, {model.standard_error_:.3g}")
    axes.axvline(model.alpha_, color="C1", label=f"chosen, alpha = {model.alpha_:.3g}")
    alpha_axis(axes, grids)
    axes.set_ylabel(label)
    axes.legend(fontsize="small", edgecolor="none", framealpha=0.9)  # a ground of its own, as lines may cross it
    return axes


def plot_completion_path(path: Any, *, axes: Any = None) -> Any:
    """Draw the error on the hidden entries, and beside it the rank, against alpha; the least error is marked.

    Parameters
    ----------
    path : CompletionPath
        As from `ell12.completion_path`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Those of the error.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import completion_path, plot_completion_path
    >>> path = completion_path(np.outer(np.arange(1.0, 9), np.arange(1.0, 7)), n_alphas=3, eps=0.1)
    >>> plot_completion_path(path).get_ylabel()
    'RMSE on the hidden entries'
    """
    axes = new_axes() if axes is None else axes
    if path.held_out is not None:
        best = path.best
        axes.plot(path.alphas, path.errors, "o-", markersize=3, color="C0", label="error")
        label = f"least, alpha = {path.alphas[best]:.3g}"
        axes.plot(path.alphas[best], path.errors[best], "o", color="C1", label=label)
        axes.legend(fontsize="small", frameon=False)
    axes.set_ylabel("RMSE on the hidden entries")
    beside = axes.twinx()
    beside.step(path.alphas, path.ranks, where="mid", color="0.6")
    beside.set_ylabel("rank", color="0.4")
    alpha_axis(axes, path.alphas)
    return axes


def _draw_folds(axes: Any, alphas: Any, folds: Any, color: str, label: str) -> None:
    """The mean over the folds, (n_alphas, n_folds), in a band of one standard error."""
    mean = folds.mean(axis=1)
    axes.plot(alphas, mean, "o-", color=color, markersize=3, label=label)
    if folds.shape[1] > 1:
        error = folds.std(axis=1, ddof=1) / np.sqrt(folds.shape[1])
        axes.fill_between(alphas, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)


def _curve(model: Any) -> tuple[Any, str, int]:
    """What to draw for each alpha and fold, what to call it, and 1 if more of it is better, else -1."""
    if hasattr(model, "criterion_path_"):
        values = as_numpy(model.criterion_path_)
        return np.where(np.isfinite(values), values, np.nan)[..., None], model.selection.upper(), -1
    if hasattr(model, "mse_path_"):
        names = {"squared": "mean squared error", "huber": "twice Huber's loss", "poisson": "Poisson's deviance"}
        return as_numpy(model.mse_path_), names.get(model.loss, "mean deviance"), -1
    if hasattr(model, "scores_"):
        scoring = getattr(model, "scoring", None)
        own = "log-likelihood of an event" if hasattr(model, "ties") else "minus the logistic loss"
        return as_numpy(model.scores_), own if scoring is None else _name(scoring), 1
    raise TypeError(f"model must be a fitted L12RegressorCV, L12ClassifierCV or L12CoxRegressorCV, got {model!r}")


def _line(model: Any) -> str:
    return model.selection.upper() if hasattr(model, "criterion_path_") else "mean of the folds"


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else "score"

"""Pictures of paths and of cross-validation; matplotlib is loaded when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ell12.backend import as_numpy


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
    n_labels : int
        How many features get a label, those that are largest at the end of the path. The rest, if there is one, is
        drawn in grey.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines.

    Examples
    --------
    >>> from ell12 import l12_path
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
    axes = _new_axes() if axes is None else axes
    order = np.argsort(-np.abs(coefs[:, np.argmin(alphas)]), kind="stable")
    order = order[np.any(coefs[order] != 0, axis=1)]
    for feature in order[n_labels:]:
        axes.plot(alphas, coefs[feature], color="0.8", linewidth=0.8, zorder=1)
    for feature in order[:n_labels]:
        axes.plot(alphas, coefs[feature], label=str(feature if names is None else names[feature]), linewidth=1.6)
    _alpha_axis(axes, alphas)
    axes.set_ylabel("coefficient")
    if order[:n_labels].size:
        axes.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes


def plot_cross_validation(model: Any, *, axes: Any = None) -> Any:
    """Draw the mean error (or score) on the folds left out, with one standard error, against alpha.

    Parameters
    ----------
    model : L12RegressorCV or L12ClassifierCV
        Fitted.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        For titles and further lines. A full vertical line marks the alpha that was chosen, a dotted one the alpha
        with the best mean where that is another one.

    Examples
    --------
    >>> from ell12 import L12RegressorCV
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((40, 10))
    >>> model = L12RegressorCV(n_alphas=10).fit(X, X[:, 0] + random.standard_normal(40))
    >>> plot_cross_validation(model).get_ylabel()
    'mean squared error'
    """
    values, label, best_of = _curve(model)
    axes = _new_axes() if axes is None else axes
    mean, alphas = values.mean(axis=1), as_numpy(model.alphas_)
    axes.plot(alphas, mean, "o-", color="C0", markersize=3, label="mean of the folds")
    if values.shape[1] > 1:
        error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        axes.fill_between(alphas, mean - error, mean + error, color="C0", alpha=0.2, linewidth=0)
    best = float(alphas[best_of(mean)])
    if best != model.alpha_:
        axes.axvline(best, color="0.4", linestyle=":", label=f"best mean, alpha = {best:.3g}")
    axes.axvline(model.alpha_, color="C1", label=f"chosen, alpha = {model.alpha_:.3g}")
    _alpha_axis(axes, alphas)
    axes.set_ylabel(label)
    axes.legend(fontsize="small", frameon=False)
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
    >>> from ell12 import completion_path
    >>> path = completion_path(np.outer(np.arange(1.0, 9), np.arange(1.0, 7)), n_alphas=3, eps=0.1)
    >>> plot_completion_path(path).get_ylabel()
    'RMSE on the hidden entries'
    """
    axes = _new_axes() if axes is None else axes
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
    _alpha_axis(axes, path.alphas)
    return axes


def _curve(model: Any) -> tuple[Any, str, Any]:
    """What to draw for each alpha and fold, what to call it, and which of its means is the best."""
    if hasattr(model, "mse_path_"):
        return as_numpy(model.mse_path_), "mean squared error", np.argmin
    if hasattr(model, "scores_"):
        scoring = getattr(model, "scoring", None)
        return as_numpy(model.scores_), "minus the logistic loss" if scoring is None else _name(scoring), np.argmax
    raise TypeError(f"model must be a fitted L12RegressorCV or L12ClassifierCV, got {model!r}")


def _name(scoring: Any) -> str:
    return scoring if isinstance(scoring, str) else "score"


def _alpha_axis(axes: Any, alphas: Any) -> None:
    axes.set_xlabel("alpha")
    if alphas.min() > 0:
        axes.set_xscale("log")
    if not axes.xaxis_inverted():
        axes.invert_xaxis()


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ell12[report]'") from error
    return plt.subplots(layout="constrained")[1]

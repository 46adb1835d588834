"""What .plot() of paths, cross-validation, criteria, intervals and stability draws (matplotlib)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.checks import check_counts

# Where a legend does not fit into the axes.
OUTSIDE = {"fontsize": "small", "frameon": False, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}


def alpha_axis(axes: Any, alphas: Any, label: str) -> None:
    """Let the strengths fall from left to right, by logarithms where none is 0; ``label`` is what they give."""
    axes.set(xlabel="alpha", ylabel=label)
    if alphas.min() > 0:
        axes.set_xscale("log")
    if not axes.xaxis_inverted():
        axes.invert_xaxis()


def new_axes() -> Any:
    """The axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib (ell12's extra plots)") from error
    return plt.subplots(layout="constrained")[1]


def plot_path(
    alphas: Any, coefs: Any, *, names: Sequence[str] | None = None, n_labels: int = 8, axes: Any = None
) -> Any:
    """The coefficients against alpha, which decreases from left to right.

    The ``n_labels`` largest coefficients at the end of the path have a label and a colour, the rest is grey. Of up
    to ten features each has the same colour in every picture.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import l12_path
    >>> from ell12.plots import plot_path
    >>> alphas, coefs, _ = l12_path(np.eye(4), [4.0, 3.0, 0.0, 1.0], alphas=20)
    >>> axes = plot_path(alphas, coefs, names=["a", "b", "c", "d"])
    >>> axes.get_legend_handles_labels()[1]
    ['a', 'b', 'd']
    """
    alphas, coefs = np.asarray(alphas, dtype=float), np.asarray(coefs)
    if names is not None and len(names) != coefs.shape[0]:
        raise ValueError(f"names must hold one name for each of the {coefs.shape[0]} features, got {len(names)}")
    axes = new_axes() if axes is None else axes
    order = np.argsort(-np.abs(coefs[:, np.argmin(alphas)]), kind="stable")
    order = order[np.any(coefs[order] != 0, axis=1)]
    for feature in order[n_labels:]:
        axes.plot(alphas, coefs[feature], color="0.8", linewidth=0.8, zorder=1)
    for rank, feature in enumerate(order[:n_labels]):
        label = str(feature if names is None else names[feature])
        color = f"C{feature if coefs.shape[0] <= 10 else rank}"
        axes.plot(alphas, coefs[feature], color=color, label=label, linewidth=1.6)
    alpha_axis(axes, alphas, "coefficient")
    if order[:n_labels].size:
        axes.legend(**OUTSIDE)
    return axes


def plot_cross_validation(model: Any, *, axes: Any = None) -> Any:
    """The mean error (or score) on the folds left out, with one standard error, against alpha.

    A full vertical line marks the alpha that was chosen, a dotted one the alpha with the best mean if that is
    another one. With ``selection="1se"`` a dashed line shows the mean that was good enough.
    """
    values, label, sign = _curve(model)
    axes = new_axes() if axes is None else axes
    lines = values if values.ndim == 3 else values[None]
    grids = np.broadcast_to(as_numpy(model.alphas_), lines.shape[:2])
    alone = label if "criterion_path_" in vars(model) else "mean of the folds"
    names = list(map(repr, model.penalty)) if values.ndim == 3 else [alone]
    for k, (alphas, folds) in enumerate(zip(grids, lines, strict=True)):
        _draw_folds(axes, alphas, folds, f"C{k + (k > 0)}", names[k])  # C1 marks the choice
    means = sign * lines.mean(axis=2)
    where = np.unravel_index(np.nanargmax(means), means.shape)
    best = float(grids[where])
    if best != model.alpha_:
        axes.axvline(best, color="0.4", linestyle=":", label=f"best mean, alpha = {best:.3g}")
    if model.selection == "1se" and lines.shape[2] > 1:
        level = sign * (means[where] - model.standard_error_)
        axes.axhline(level, color="0.6", linestyle="--", label=f"one standard error, {model.standard_error_:.3g}")
    axes.axvline(model.alpha_, color="C1", label=f"chosen, alpha = {model.alpha_:.3g}")
    alpha_axis(axes, grids, label)
    axes.legend(fontsize="small", edgecolor="none", framealpha=0.9)  # a ground of its own, as lines may cross it
    return axes


def plot_completion_path(path: Any, *, axes: Any = None) -> Any:
    """The error on the hidden entries and the rank against alpha; the least error is marked."""
    axes = new_axes() if axes is None else axes
    if path.held_out is not None:
        best = path.best
        axes.plot(path.alphas, path.errors, "o-", markersize=3, color="C0", label="error")
        label = f"least, alpha = {path.alphas[best]:.3g}"
        axes.plot(path.alphas[best], path.errors[best], "o", color="C1", label=label)
        axes.legend(fontsize="small", frameon=False)
    alpha_axis(axes, path.alphas, "RMSE on the hidden entries")
    return _with_steps(axes, path.alphas, path.ranks, "rank")


def _draw_folds(axes: Any, alphas: Any, folds: Any, color: str, label: str) -> None:
    """The mean over the folds, (n_alphas, n_folds), in a band of one standard error."""
    mean = folds.mean(axis=1)
    axes.plot(alphas, mean, "o-", color=color, markersize=3, label=label)
    if folds.shape[1] > 1:
        error = folds.std(axis=1, ddof=1) / np.sqrt(folds.shape[1])
        axes.fill_between(alphas, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)


def _curve(model: Any) -> tuple[Any, str, int]:
    """What to draw for each alpha and fold, what to call it, and 1 if more of it is better, else -1."""
    found = vars(model)
    if "criterion_path_" in found:
        values = as_numpy(model.criterion_path_)
        return np.where(np.isfinite(values), values, np.nan)[..., None], model.selection.upper(), -1
    if "mse_path_" in found:
        names = {"squared": "mean squared error", "huber": "twice Huber's loss", "poisson": "Poisson's deviance"}
        return as_numpy(model.mse_path_), names.get(model.loss, "mean deviance"), -1
    own = "log-likelihood of an event" if "ties" in found else "minus the logistic loss"
    label = own if model.scoring is None else model.scoring if isinstance(model.scoring, str) else "score"
    return as_numpy(model.scores_), label, 1


def plot_criteria(path: Any, *, axes: Any = None) -> Any:
    """AIC, BIC and EBIC against alpha, each with its least value marked, and the number of features."""
    axes = new_axes() if axes is None else axes
    alphas = as_numpy(path.alphas)
    criteria = {"AIC": path.aic, "BIC": path.bic, "EBIC": path.ebic}
    for color, (name, given) in zip(("C0", "C1", "C2"), criteria.items(), strict=True):
        values, best = as_numpy(given), int(np.argmin(as_numpy(given)))
        if np.isfinite(values[best]):
            label = f"{name}, least at alpha = {alphas[best]:.3g}"
            axes.plot(alphas, np.where(np.isfinite(values), values, np.nan), color=color, label=label)
            axes.plot(alphas[best], values[best], "o", color=color)
    alpha_axis(axes, alphas, "criterion")
    if axes.get_lines():
        axes.legend(fontsize="small", frameon=False)
    return _with_steps(axes, alphas, as_numpy(path.n_selected), "features selected")


def _with_steps(axes: Any, alphas: Any, counts: Any, label: str) -> Any:
    """The same axes, with a number for each alpha on the right."""
    right = axes.twinx()
    right.step(alphas, counts, where="mid", color="0.6", zorder=1)
    right.set_ylabel(label, color="0.4")
    return axes


def plot_intervals(intervals: Any, *, n_features: int = 30, axes: Any = None) -> Any:
    """Confidence intervals below each other, those of the smallest p values first.

    A circle marks the debiased estimate, a cross the coefficient of the model where it is not zero. Intervals that
    do not hold zero are in colour, others in grey.
    """
    check_counts(least=1, optional=False, n_features=n_features)
    known = np.flatnonzero(~np.isnan(intervals.estimate))
    # Of equal p values, as of many that are 0, the larger estimate in units of its error comes first.
    steepness = np.abs(intervals.estimate[known]) / intervals.standard_error[known]
    order = known[np.lexsort((-steepness, intervals.p_values[known]))][:n_features]
    if axes is None:
        axes = new_axes()
        axes.figure.set_figheight(1.2 + 0.25 * max(order.size, 4))
    axes.axvline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for line, k in enumerate(order):
        color = "C0" if intervals.lower[k] > 0 or intervals.upper[k] < 0 else "0.6"
        axes.hlines(line, intervals.lower[k], intervals.upper[k], color=color, linewidth=1.6, zorder=2)
        axes.plot(intervals.estimate[k], line, "o", color=color, markersize=4, zorder=3)
        if intervals.coef[k] != 0:
            axes.plot(intervals.coef[k], line, "x", color="C1", markersize=5, zorder=4)
    names = [textwrap.shorten(intervals.names[k], 24, placeholder="...") for k in order]
    axes.set_yticks(range(order.size), names, fontsize="small")
    label = f"coefficient, {100 * intervals.level:g} % interval; cross: in the model"
    axes.set(ylim=(max(order.size, 1) - 0.5, -0.5), xlabel=label)
    return axes


def plot_stability(selection: Any, *, n_labels: int = 12, axes: Any = None) -> Any:
    """The share of the halves that have selected each feature, along the path, and the threshold.

    The ``n_labels`` most frequent of the selected features have a label; features that are not selected are grey.
    Where the estimator has no path, there is a point for each feature, the most frequent one first.
    """
    axes = new_axes() if axes is None else axes
    names = getattr(selection, "feature_names_in_", [f"x{j}" for j in range(selection.n_features_in_)])
    order = [j for j in np.argsort(-selection.frequencies_, kind="stable") if selection.frequencies_[j] > 0]
    n_selected = np.count_nonzero(selection.get_support())
    for k, j in enumerate(order):
        style = {"color": "0.8"} if k >= n_selected else {"label": str(names[j])} if k < n_labels else {}
        if hasattr(selection, "path_frequencies_"):
            axes.plot(selection.alphas_, selection.path_frequencies_[:, j], **style)
        else:
            axes.plot(k + 1, selection.frequencies_[j], "o", markersize=5, **style)
    threshold = selection.threshold_
    axes.axhline(threshold, color="0.4", linestyle="--", label=f"threshold, {threshold:.3g}", zorder=1)
    axes.set(xlabel="rank of the feature", ylabel="share of the halves", ylim=(-0.02, 1.02))
    if hasattr(selection, "alphas_"):
        alpha_axis(axes, selection.alphas_, "share of the halves")
    axes.legend(**OUTSIDE)
    return axes


def plot_run(optimality: list[float], tol: float, axes: Any = None) -> Any:
    """The stationarity of each iterate, as the solver estimated it, and the one that was asked for."""
    axes = new_axes() if axes is None else axes
    axes.semilogy(optimality)
    if tol > 0:
        axes.axhline(tol, linestyle=":", color="gray")
    axes.set(xlabel="iteration", ylabel="stationarity")
    return axes

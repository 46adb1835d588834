"""Pictures of information criteria."""

from __future__ import annotations

from typing import Any

import numpy as np

from ell12.backend import as_numpy
from ell12.plots.axes import alpha_axis, new_axes


def plot_criteria(path: Any, *, axes: Any = None) -> Any:
    """Draw AIC, BIC and EBIC against alpha, each with its least value marked, and beside them the features.

    Parameters
    ----------
    path : CriteriaPath
        As from `ell12.information_criteria`.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Those of the criteria. Strengths that are not to be taken have none.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import information_criteria, plot_criteria
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((40, 10))
    >>> path = information_criteria(X, X[:, 0] + random.standard_normal(40), alphas=20)
    >>> [label.partition(",")[0] for label in plot_criteria(path).get_legend_handles_labels()[1]]
    ['AIC', 'BIC', 'EBIC']
    """
    axes = new_axes() if axes is None else axes
    alphas = as_numpy(path.alphas)
    criteria = {"AIC": path.aic, "BIC": path.bic, "EBIC": path.ebic}
    for color, (name, given) in zip(("C0", "C1", "C2"), criteria.items(), strict=True):
        values = as_numpy(given)
        finite = np.isfinite(values)
        if not finite.any():
            continue
        best = int(np.argmin(values))
        label = f"{name}, least at alpha = {alphas[best]:.3g}"
        axes.plot(alphas, np.where(finite, values, np.nan), color=color, label=label)
        axes.plot(alphas[best], values[best], "o", color=color)
    axes.set_ylabel("criterion")
    if axes.get_lines():
        axes.legend(fontsize="small", frameon=False)
    beside = axes.twinx()
    beside.step(alphas, as_numpy(path.n_selected), where="mid", color="0.6", zorder=1)
    beside.set_ylabel("features selected", color="0.4")
    alpha_axis(axes, alphas)
    return axes

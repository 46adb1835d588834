"""Draw front.svg, the picture of the first page: `python docs/images/front.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from shades import save
from sklearn.linear_model import LassoCV

from ell12 import L12RegressorCV, datasets

HERE = Path(__file__).resolve().parent


def main() -> None:
    """The true coefficients, and those that the Lasso and l1-2 found, each with its own cross-validation."""
    problem = datasets.correlated_design(0, n_samples=100, n_features=200, n_nonzero=5, noise=0.1)
    models = {"Lasso": LassoCV(alphas=50, eps=1e-2), "l1-2": L12RegressorCV(alphas=50, eps=1e-2)}
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.9), sharex=True, sharey=True, layout="constrained")
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        draw(axes, problem, model.fit(problem.A, problem.b).coef_, name)
    panels[0].set_ylabel("coefficient")
    panels[0].legend(frameon=False)
    save(figure, HERE / "front.svg", metadata={"Date": None})


def draw(axes, problem, coef, name: str) -> None:
    """One panel: wrong features in red."""
    true, found = np.flatnonzero(problem.x), np.flatnonzero(coef)
    wrong = np.setdiff1d(found, true)
    axes.vlines(found, 0, coef[found], color="#0072b2", linewidth=2)
    axes.plot(wrong, coef[wrong], "x", color="#d55e00", markersize=5, label="selected, but no true feature")
    axes.plot(true, problem.x[true], "o", color="#4d4d4d", fillstyle="none", markersize=8, label="truth")
    axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    count = f"{found.size} features, {wrong.size} of them wrong"
    axes.set_title(f"{name}: {count}, error {problem.relative_error(coef):.2f}", fontsize=10)
    axes.set_xlabel("feature")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()

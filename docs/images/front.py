"""Draw front.svg, the picture of the first page: `python docs/images/front.py`.

The picture is that of the seed whose difference of wrong features is the median of twenty; the command prints
the counts of all, which the caption names.
"""

from pathlib import Path
from statistics import median_high

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from ell12 import L12RegressorCV, datasets

plt.rcParams["svg.hashsalt"] = "ell12"  # the same file each time
HERE = Path(__file__).resolve().parent
SEEDS = range(20)


def main() -> None:
    """Fit both models to all seeds, and draw the median one."""
    fits = [fitted(seed) for seed in SEEDS]
    counts = [tuple(wrong(problem, coef).size for coef in coefs.values()) for problem, coefs in fits]
    differences = [lasso - ours for lasso, ours in counts]
    seed = differences.index(median_high(differences))
    print(f"wrong features (Lasso, l1-2) of all seeds: {counts}")
    print(f"fewer than the Lasso's in {sum(d > 0 for d in differences)} of {len(fits)}; drawn: seed {seed}")
    print("medians:", np.median(counts, axis=0))
    missed = [[5 - np.count_nonzero(coef[problem.x != 0]) for coef in coefs.values()] for problem, coefs in fits]
    print("true features that are missed, means:", np.mean(missed, axis=0))
    draw(*fits[seed])


def fitted(seed: int) -> tuple:
    """A problem, and the coefficients of both models, each with its own cross-validation."""
    problem = datasets.correlated_design(seed, n_samples=100, n_features=200, n_nonzero=5, noise=0.1)
    models = {"Lasso": LassoCV(alphas=50, eps=1e-2), "l1-2": L12RegressorCV(alphas=50, eps=1e-2)}
    return problem, {name: model.fit(problem.A, problem.b).coef_ for name, model in models.items()}


def wrong(problem, coef) -> np.ndarray:
    """The selected features that do not matter."""
    return np.setdiff1d(np.flatnonzero(coef), np.flatnonzero(problem.x))


def draw(problem, coefs: dict) -> None:
    """One panel above the other, wide enough for a telephone: wrong features in red."""
    figure, panels = plt.subplots(2, 1, figsize=(5.6, 4.6), sharex=True, sharey=True, layout="constrained")
    true = np.flatnonzero(problem.x)
    for axes, (name, coef) in zip(panels, coefs.items(), strict=True):
        found, other = np.flatnonzero(coef), wrong(problem, coef)
        axes.vlines(found, 0, coef[found], color="#0072b2", linewidth=2.5)
        axes.plot(other, coef[other], "x", color="#d55e00", markersize=8, mew=2, label="wrong")
        axes.plot(true, problem.x[true], "o", color="#4d4d4d", fillstyle="none", markersize=11, label="truth")
        axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
        axes.set_title(f"{name}: {found.size} features, {other.size} wrong", fontsize=15)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=12)
    panels[0].legend(frameon=False, fontsize=13, loc="best")
    panels[1].set_xlabel("feature", fontsize=13)
    figure.savefig(HERE / "front.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

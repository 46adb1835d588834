"""
A first fit: fewer features than the Lasso
==========================================

There are two hundred features. Neighbours are alike, and five features matter. The Lasso shrinks what it keeps,
and makes up for it with features that do not belong. l1-2 shrinks large coefficients less.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from ell12 import L12RegressorCV, datasets

problem = datasets.correlated_design(0, n_samples=100, n_features=200, n_nonzero=5, noise=0.1)
X, y = problem.A, problem.b

# %%
# Both models choose their strength by five-fold cross-validation.

lasso = LassoCV(alphas=50, eps=1e-2).fit(X, y)
ours = L12RegressorCV(alphas=50, eps=1e-2, tol=1e-3).fit(X, y)
for name, model in {"Lasso": lasso, "l1-2": ours}.items():
    print(
        f"{name:>6}: {np.count_nonzero(model.coef_):3d} features, error {problem.relative_error(model.coef_):.3f}"
    )

# %%
# The coefficients of both models, with the true ones as circles. This is one draw of the data. The page
# :doc:`/guide/when_it_helps` shows what many draws give.

figure, panels = plt.subplots(2, 1, figsize=(8, 4.5), sharex=True, sharey=True, layout="constrained")
true = np.flatnonzero(problem.x)
for axes, (name, model) in zip(panels, {"Lasso": lasso, "l1-2": ours}.items(), strict=True):
    chosen = np.flatnonzero(model.coef_)
    axes.vlines(chosen, 0, model.coef_[chosen], color="C0", label="estimate")
    axes.plot(true, problem.x[true], "o", color="C1", fillstyle="none", label="truth")
    axes.set_title(f"{name}: {chosen.size} features", fontsize="medium")
    axes.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    axes.set_ylabel("coefficient")
panels[0].legend(frameon=False)
panels[1].set_xlabel("feature")
plt.show()

"""
Cross-validation and the one-standard-error rule
================================================

The alpha with the lowest cross-validated error predicts well, but keeps too many features. The rule
``selection="1se"`` keeps fewer. It takes the largest alpha whose error is within one standard error of the lowest.
"""

import matplotlib.pyplot as plt
import numpy as np

from ell12 import L12RegressorCV, datasets

problem = datasets.correlated_design(1, n_samples=100, n_features=200, n_nonzero=8)

# %%
# ``model.plot()`` draws the mean error of the folds, a band of one standard error, and the alpha that was chosen.

wanted = set(np.flatnonzero(problem.x))
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for axes, selection in zip(panels, ("min", "1se"), strict=True):
    model = L12RegressorCV(alphas=30, eps=1e-2, selection=selection, tol=1e-3).fit(problem.A, problem.b)
    model.plot(axes)
    chosen = set(np.flatnonzero(model.coef_))
    axes.set_title(f'selection="{selection}": {len(chosen)} features, {len(chosen & wanted)} of 8 found')
    axes.title.set_fontsize("medium")
plt.show()

"""
Paths: coefficients against the strength
========================================

`ell12.l12_path` follows the solution as alpha falls. With ``l2_weight=1`` a vector with a single entry costs
nothing. So there is no alpha at which every coefficient is zero: the path begins with the best single feature.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from ell12 import L12, l12_path

data = load_diabetes()
X, y = StandardScaler().fit_transform(data.data), data.target - data.target.mean()

# %%
# The same data with the Lasso, a weight of 0.5, and l1-2. Each feature has the same colour in all panels.
# The larger ``l2_weight`` is, the sooner a coefficient reaches its final size once it has entered.

figure, panels = plt.subplots(3, 1, figsize=(8, 8.5), sharex=True, layout="constrained")
for axes, l2_weight in zip(panels, (0.0, 0.5, 1.0), strict=True):
    path = l12_path(X, y, alphas=60, eps=1e-3, penalty=L12(l2_weight=l2_weight))
    assert path.converged
    path.plot(names=data.feature_names, axes=axes)
    axes.set_title(f"l2_weight = {l2_weight:g}", fontsize="medium")
plt.show()

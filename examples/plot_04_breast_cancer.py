"""
Sparse logistic regression on real data
=======================================

The breast cancer data of scikit-learn have 569 samples and 30 strongly correlated features. How many features does
a good classifier need?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ell12 import L12, L12ClassifierCV

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(
    data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
)

# %%
# ``l2_weight=0`` is the l1 norm. The one-standard-error rule chooses the strength of both models.

models = {}
for l2_weight in (0.0, 0.8):
    classifier = L12ClassifierCV(penalty=L12(l2_weight=l2_weight), alphas=25, eps=1e-2, selection="1se", tol=1e-3)
    models[l2_weight] = make_pipeline(StandardScaler(), classifier).fit(X_train, y_train)
    count = np.count_nonzero(models[l2_weight][-1].coef_)
    print(f"l2_weight = {l2_weight:g}: {count} features, accuracy {models[l2_weight].score(X_test, y_test):.3f}")

# %%
# The features that were selected.

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
rows = np.flatnonzero(np.any([model[-1].coef_[0] != 0 for model in models.values()], axis=0))
for shift, (l2_weight, model) in zip((-0.2, 0.2), models.items(), strict=True):
    axes.barh(
        np.arange(rows.size) + shift, model[-1].coef_[0][rows], height=0.4, label=f"l2_weight = {l2_weight:g}"
    )
axes.set_yticks(np.arange(rows.size), data.feature_names[rows])
axes.invert_yaxis()
axes.axvline(0, color="0.3", linewidth=0.8)
axes.set_xlabel("coefficient of the standardised feature (negative: malignant)")
axes.legend(frameon=False)
plt.show()

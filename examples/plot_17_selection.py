"""
How sure is a selection?
========================

The diabetes data of scikit-learn have 10 features. We add 50 columns that are noise: the same features with their
rows shuffled. Which features does a sparse model select, and how sure are they?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from ell12 import L12RegressorCV, StabilitySelection, confidence_intervals, information_criteria, summary

data = load_diabetes(as_frame=True)
random = np.random.default_rng(0)
X = data.data.copy()
for number in range(50):
    X[f"noise {number}"] = random.permutation(data.data.iloc[:, number % 10])
y = data.target

# %%
# Cross-validation selects for prediction, and selects some noise.

model = L12RegressorCV().fit(X, y)
selected = X.columns[model.coef_ != 0]
print(f"{selected.size} features, {selected.str.startswith('noise').sum()} of them noise")

# %%
# Information criteria score the whole path without folds. EBIC takes into account how many models there are to
# choose from.

path = information_criteria(X, y)
print(path)
path.plot()
plt.show()

# %%
# Stability selection fits the model to many halves of the samples. It keeps the features that most halves select.
# It gives a bound on the expected number of false features.

stability = StabilitySelection(random_state=0).fit(X, y)
print(f"at most {stability.bound_:.2g} false ones expected:", *stability.get_feature_names_out())
stability.plot()
plt.show()

# %%
# Confidence intervals say how large an effect may be.

intervals = confidence_intervals(X, y, model, features=list(data.data.columns))
intervals.plot()
plt.show()

# %%
# All of it in one table. In a notebook, ``summary(...)`` at the end of a cell is enough.

chosen = path.refit("ebic")
print(summary(chosen, X, y, stability=stability, intervals=intervals))

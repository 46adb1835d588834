"""
Groups of features
==================

Features often come in groups, such as the dummy columns of one category or the terms of one curve. Then a group
should be selected as a whole. `ell12.GroupL12` penalises the norms of the groups in place of the entries.
"""

import matplotlib.pyplot as plt
import numpy as np

from ell12 import L12, GroupL12, SquaredLoss, minimize

random = np.random.default_rng(0)
n_groups, size, n_samples = 40, 5, 90
groups = np.repeat(np.arange(n_groups), size)
truth = np.zeros(n_groups * size)
for group in (4, 17, 31):
    truth[groups == group] = random.standard_normal(size)
A = random.standard_normal((n_samples, truth.size)) / np.sqrt(n_samples)
b = A @ truth + 0.15 * random.standard_normal(n_samples)

# %%
# Three penalties. Each has the strength that comes nearest to the truth.

kinds = {
    "l1-2": L12,
    "group lasso": lambda alpha: GroupL12(groups, alpha, l2_weight=0),
    "group l1-2": lambda alpha: GroupL12(groups, alpha),
}
loss, best = SquaredLoss(A, b), {}
for name, make in kinds.items():
    found = [minimize(loss, make(alpha)).x for alpha in np.geomspace(0.03, 1, 15)]
    best[name] = min(found, key=lambda x: np.linalg.norm(x - truth))
    count, error = len(set(groups[best[name] != 0])), np.linalg.norm(best[name] - truth) / np.linalg.norm(truth)
    print(f"{name:>12}: {count:2d} groups, relative error {error:.3f}")

# %%
# The norm of each group, for the truth and the three estimates.

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")


def norms(x):
    """The l2 norm of each group."""
    return np.sqrt(np.bincount(groups, weights=x**2))


axes.plot(norms(truth), "o", color="0.3", fillstyle="none", markersize=9, label="truth")
for marker, (name, x) in zip("x+.", best.items(), strict=True):
    axes.plot(norms(x), marker, label=name)
axes.set_xlabel("group")
axes.set_ylabel("norm of the group")
axes.legend(frameon=False)
plt.show()

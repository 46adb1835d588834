r"""
The proximal step, pictured
===========================

Everything in this package rests on one small problem: given z, find the x that minimises

.. math:: \tfrac12 \|x - z\|^2 + t\,(\|x\|_1 - \beta\,\|x\|_2),

where :math:`\beta` is ``l2_weight``. It has a closed-form solution.
"""

import matplotlib.pyplot as plt
import numpy as np

from ell12 import L1, L12, prox_l12

# %%
# First the penalty itself, by its level curves in two dimensions. Where the l2 norm is subtracted in full, no
# curve crosses an axis.

grid = np.linspace(-1, 1, 121)
penalties = {"l1": L1(1.0), "l2_weight = 0.5": L12(1.0, l2_weight=0.5), "l1-2": L12(1.0)}
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for axes, (name, penalty) in zip(panels, penalties.items(), strict=True):
    values = [[penalty.value(np.array([a, b])) for a in grid] for b in grid]
    axes.contour(grid, grid, values, levels=10)
    axes.set(aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1), xlabel="$x_1$")
    axes.set_title(name, fontsize="medium")
panels[0].set_ylabel("$x_2$")
plt.show()

# %%
# What the step does to a whole plane of points, for ``t = 1``. Each arrow leads from z to its x. Soft-thresholding
# (l1) moves all points by the same amount, and sends a square to zero. l1-2 moves points near an axis onto it, and
# does not move points that are on an axis.

ticks = np.linspace(-3, 3, 13)
z = np.array([(a, b) for a in ticks for b in ticks])
figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for axes, (name, l2_weight) in zip(panels, {"l1": 0, "l2_weight = 0.5": 0.5, "l1-2": 1}.items(), strict=True):
    move = prox_l12(z, 1.0, l2_weight=l2_weight, axis=1) - z
    axes.quiver(*z.T, *move.T, angles="xy", scale_units="xy", scale=1, width=0.006, color="C0")
    axes.axhline(0, color="0.7", linewidth=0.8)
    axes.axvline(0, color="0.7", linewidth=0.8)
    axes.set(aspect="equal", xlabel="first entry")
    axes.set_title(name, fontsize="medium")
panels[0].set_ylabel("second entry")
plt.show()

# %%
# One entry next to a neighbour of size 2. Alone the entry would not shrink. Next to the neighbour it shrinks,
# but less than under the l1 norm.

sizes = np.linspace(0, 4, 200)
figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
axes.plot(sizes, sizes, color="0.7", label="no penalty")
axes.plot(sizes, prox_l12(sizes[:, None], 1.0, l2_weight=0, axis=1)[:, 0], label="l1")
axes.plot(sizes, prox_l12(sizes[:, None], 1.0, axis=1)[:, 0], "--", label="l1-2, alone")
pairs = np.stack([sizes, np.full_like(sizes, 2.0)], axis=1)
axes.plot(sizes, prox_l12(pairs, 1.0, axis=1)[:, 0], label="l1-2, next to a 2")
axes.set_xlabel("z, the entry before the step")
axes.set_ylabel("x, the entry after it")
axes.legend(frameon=False)
plt.show()

"""
Computed tomography from few views
==================================

A scanner measures sums of an image along lines, from some angles. With few angles the usual method, filtered back
projection, leaves streaks. Total variation does not, because streaks are not flat. `ell12.restore_tv` takes any
linear operator. Here it is a sparse matrix of the projections of ``skimage.transform.radon``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array, vstack
from skimage.transform import iradon

from ell12 import TotalVariationL12, datasets, restore_tv
from ell12.operators import Reshaped


def projection(size, angle):
    """One view as a sparse matrix: the image is turned by interpolation, and its columns are summed."""
    y, x = np.indices((size, size)) - size // 2
    across = np.cos(angle) * x + np.sin(angle) * y + size // 2
    down = -np.sin(angle) * x + np.cos(angle) * y + size // 2
    matrix = csr_array((size, size * size))
    for i, j in np.ndindex(2, 2):  # the four pixels next to each point
        r, c = np.floor(down).astype(int) + i, np.floor(across).astype(int) + j
        weight = (1 - np.abs(down - r)) * (1 - np.abs(across - c))
        inside = (r >= 0) & (r < size) & (c >= 0) & (c < size)
        entries = ((x + size // 2)[inside], (r * size + c)[inside])
        matrix = matrix + csr_array((weight[inside], entries), shape=matrix.shape)
    return matrix


clean = datasets.phantom(96)
angles = np.arange(0, 180, 9.0)
projections = vstack([projection(96, angle) for angle in np.deg2rad(angles)], format="csr")  # view by view
operator = Reshaped(projections, clean.shape)
data = projections @ clean.ravel()
data += 0.005 * data.max() * np.random.default_rng(0).standard_normal(data.shape)
print(f"{len(angles)} views, {data.size} numbers for {clean.size} pixels")


def error(image):
    """The distance from the true image, in percent of its length."""
    return 100 * np.linalg.norm(image - clean) / np.linalg.norm(clean)


# %%
# Both weights get the best of a few strengths. ``bounds`` says that no value is below zero.

results = {"filtered back projection": iradon(data.reshape(-1, 96).T, angles)}
for name, l2_weight in {"convex, l2_weight = 0": 0.0, "ours, l2_weight = 0.5": 0.5}.items():
    found = [
        restore_tv(
            data, operator, alpha, penalty=TotalVariationL12(l2_weight=l2_weight, bounds=(0, None)), tol=0.05
        )
        for alpha in (0.05, 0.1, 0.2)
    ]
    results[name] = min(found, key=error)

figure, panels = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
for (name, image), (above, below) in zip(results.items(), panels.T, strict=True):
    above.imshow(image, cmap="gray", vmin=0, vmax=0.5)
    above.set_title(f"{name}: {error(image):.1f} %", fontsize="medium")
    below.imshow(image - clean, cmap="RdBu", vmin=-0.2, vmax=0.2)
    below.set_title("minus the true image", fontsize="medium")
    above.set_axis_off()
    below.set_axis_off()
plt.show()

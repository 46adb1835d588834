"""
An image with missing pixels, completed by low rank
===================================================

Half of the pixels of a photograph are hidden. We fit a matrix of low rank to the others, with the l1-2 penalty on
its singular values. It fills in the hidden pixels. ``l2_weight=0`` is the nuclear norm.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import brick

from ell12 import SpectralL12, complete_matrix

image = brick()[::2, ::2] / 255
known = np.random.default_rng(0).random(image.shape) < 0.5
data = np.where(known, image, np.nan)

# %%
# The plain call, ``complete_matrix(data)``, chooses strength, weight and offsets by itself. Here we set all of
# them. The mean of the known pixels is subtracted first. We compare the errors on the missing pixels, each penalty
# with the best of four strengths.


def error(completed):
    """The root mean square error on the hidden pixels."""
    return np.sqrt(np.mean((completed - image)[~known] ** 2))


best = {}
for name, l2_weight in {"nuclear norm": 0.0, "l1-2": 1.0}.items():
    found = [
        complete_matrix(data, alpha, penalty=SpectralL12(l2_weight=l2_weight), center="mean", scale=None, tol=1e-3)
        for alpha in (0.25, 0.1, 0.04, 0.016)
    ]
    best[name] = min(found, key=lambda result: error(result.to_array()))
    rank, least = best[name].x.rank, error(best[name].to_array())
    print(f"{name:>12}: alpha {best[name].alpha:g}, rank {rank}, error {least:.4f}")

# %%
# The gain over the nuclear norm is small here, because the singular values of a photograph fall slowly. On
# matrices that are truly of low rank the gain is larger; see :doc:`/guide/completion`.

figure, panels = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
shown = {"half of the pixels": np.where(known, image, 1.0), "l1-2": best["l1-2"].to_array(), "the image": image}
for axes, (name, picture) in zip(panels, shown.items(), strict=True):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axes.set_title(name, fontsize="medium")
    axes.set_axis_off()
plt.show()

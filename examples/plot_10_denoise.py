"""
Total variation: denoising, and filling in
==========================================

`ell12.denoise_tv` removes noise and keeps edges. ``l2_weight`` decides which edges are cheap. At 0 the penalty is
anisotropic total variation. At 1 an edge along an axis costs nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from ell12 import TotalVariationL12, denoise_tv, inpaint_tv

photograph = data.camera()[128:384, 64:320] / 255
drawing = np.zeros((256, 256))
drawing[40:200, 30:110], drawing[90:230, 140:220], drawing[20:60, 150:240] = 0.9, 0.5, 0.25
random = np.random.default_rng(0)


def psnr(image, clean):
    """Peak signal to noise ratio, in decibel; the larger the better."""
    return -10 * np.log10(np.mean((image - clean) ** 2))


# %%
# The best of several strengths for each ``l2_weight``, on a photograph and on a drawing of rectangles. On the
# photograph the default of 0.5 is as good as total variation. Edges along the axes gain most just below 1. At 1
# itself noise along an axis costs nothing, and stays.

strengths = 0.05 * 2.0 ** np.arange(8)
weights = (0.0, 0.5, 0.9, 1.0)
results = {}
for name, clean in {"photograph": photograph, "drawing": drawing}.items():
    noisy = clean + 0.1 * random.standard_normal(clean.shape)
    for l2_weight in weights:
        found = [denoise_tv(noisy, alpha, penalty=TotalVariationL12(l2_weight=l2_weight)) for alpha in strengths]
        results[name, l2_weight] = max(found, key=lambda image: psnr(image, clean))
    values = ", ".join(f"{w:g}: {psnr(results[name, w], clean):.1f} dB" for w in weights)
    print(f"{name:>10}, noisy {psnr(noisy, clean):.1f} dB, by l2_weight {values}")

figure, panels = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
for row, (name, clean) in zip(panels, {"photograph": photograph, "drawing": drawing}.items(), strict=True):
    for axes, l2_weight in zip(row, weights, strict=True):
        axes.imshow(results[name, l2_weight], cmap="gray", vmin=0, vmax=1)
        axes.set_title(
            f"l2_weight = {l2_weight:g}: {psnr(results[name, l2_weight], clean):.1f} dB", fontsize="medium"
        )
        axes.set_axis_off()
plt.show()

# %%
# The same penalty fills in missing pixels.

known = random.random(photograph.shape) < 0.3
filled = inpaint_tv(photograph, known, 0.005)
figure, panels = plt.subplots(1, 2, figsize=(6.5, 3.4), layout="constrained")
panels[0].imshow(np.where(known, photograph, 1.0), cmap="gray", vmin=0, vmax=1)
panels[0].set_title("30 % of the pixels", fontsize="medium")
panels[1].imshow(filled, cmap="gray", vmin=0, vmax=1)
panels[1].set_title(f"filled in: {psnr(filled, photograph):.1f} dB", fontsize="medium")
for axes in panels:
    axes.set_axis_off()
plt.show()

"""
Compressed sensing: a signal from few measurements
==================================================

We recover a sparse signal of length 600 from 150 noisy measurements. The matrix is an oversampled cosine
dictionary, whose neighbouring columns are nearly alike. We try many strengths, from too strong to too weak, and
ask how good each penalty can get.
"""

import matplotlib.pyplot as plt
import numpy as np

from ell12 import L12, SquaredLoss, datasets, minimize

problem = datasets.compressed_sensing(2, n_samples=150)
loss = SquaredLoss(problem.A, problem.b)

# %%
# One run for each strength and weight. Each run starts from the solution of the strength before.

alphas = np.geomspace(0.03, 3e-4, 12)
errors, estimates = {}, {}
for name, l2_weight in {"l1": 0.0, "l1-2": 1.0}.items():
    x, found = None, []
    for alpha in alphas:
        x = minimize(loss, L12(alpha, l2_weight=l2_weight), x, tol=1e-3).x
        found.append(x)
    errors[name] = [problem.relative_error(x) for x in found]
    estimates[name] = found[int(np.argmin(errors[name]))]

figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=(2, 3), layout="constrained")
for name, error in errors.items():
    panels[0].loglog(alphas, error, "o-", markersize=4, label=f"{name}, at best {min(error):.3f}")
panels[0].set_yticks([0.06, 0.08, 0.1, 0.15], ["0.06", "0.08", "0.10", "0.15"])
panels[0].minorticks_off()
panels[0].set_xlabel("alpha")
panels[0].set_ylabel("relative error")
panels[0].legend(frameon=False)
signal = np.where(problem.x != 0, problem.x, np.nan)
panels[1].plot(signal, "o", color="0.3", fillstyle="none", markersize=6, label="signal")
for marker, (name, x) in zip("x+", estimates.items(), strict=True):
    shown = np.where(x != 0, x, np.nan)
    panels[1].plot(shown, marker, markersize=5, label=name)
panels[1].set_xlim(0, 200)
panels[1].axhline(0, color="0.8", linewidth=0.8, zorder=0)
panels[1].set_xlabel("entry (the first 200)")
panels[1].set_ylabel("value")
panels[1].legend(frameon=False, fontsize="small")
plt.show()

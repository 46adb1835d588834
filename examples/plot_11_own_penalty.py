"""
Your own penalty and solver
===========================

The classes of the pages :doc:`/extend/add_a_penalty` and :doc:`/extend/add_a_solver`, together with solvers and
losses of the package. You need their files next to this script, ``scad.py`` and ``anderson.py``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from ell12 import DCA, L1, NonmonotoneAPG, SequentialConvex, SquaredLoss, datasets, minimize
from ell12.solvers import ProximalGradient

sys.path.append("../docs/extend")  # where the two files lie in the sources
from anderson import AndersonProximalGradient
from scad import PiecewiseSCAD

# %%
# What the proximal steps of SCAD and of the l1 norm do to a number. SCAD does not change large numbers.

z = np.linspace(-5, 5, 401)
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, penalty in {"l1": L1(1.0), "SCAD": PiecewiseSCAD(1.0)}.items():
    axes.plot(z, penalty.prox(z, 1.0), label=name)
axes.plot(z, z, color="0.7", zorder=0)
axes.set_xlabel("z")
axes.set_ylabel("proximal step of z")
axes.legend(frameon=False)
plt.show()

# %%
# SCAD has a value and a prox, so every proximal solver takes it. It has a convex part, so SCP and DCA take it too.

problem = datasets.compressed_sensing(0, n_samples=200, n_features=400)
loss = SquaredLoss(problem.A, problem.b)
for solver in (NonmonotoneAPG(), SequentialConvex(), DCA()):
    result = minimize(loss, PiecewiseSCAD(0.05), solver=solver, tol=1e-3)
    print(f"{type(solver).__name__:>16}: {result.status.name}, error {problem.relative_error(result.x):.3f}")

# %%
# The new solver runs in the same loop as ours, on the same problem.

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
runs = {s: minimize(loss, L1(0.01), solver=s, tol=1e-6) for s in (ProximalGradient(), AndersonProximalGradient())}
lowest = min(result.objective for result in runs.values())
for solver, result in runs.items():
    gap = np.maximum(np.array(result.history["objective"]) - lowest, 1e-16)
    axes.semilogy(gap, label=f"{type(solver).__name__}, {result.n_iter} steps")
axes.set_xlabel("step")
axes.set_ylabel("objective above the lowest")
axes.legend(frameon=False)
plt.show()

"""
Comparing solvers
=================

Every solver runs in the same loop and is judged by the same number, ``stationarity``. That is the largest
violation of the first-order condition, divided by alpha. ``result.history`` holds the objective and the time of
each iteration.
"""

import matplotlib.pyplot as plt

from ell12 import DCA, L12, NonmonotoneAPG, Run, SequentialConvex, SquaredLoss, WorkingSet, datasets, minimize
from ell12.solvers import ProximalGradient, SupportNewton

problem = datasets.compressed_sensing(0, n_samples=150)
loss, penalty = SquaredLoss(problem.A, problem.b), L12(alpha=0.002)
loss.lipschitz()  # computed once and kept, so that the first solver does not pay for the others

solvers = {
    "proximal gradient": ProximalGradient(),
    "SCP": SequentialConvex(),
    "DCA": DCA(),
    "nmAPG": NonmonotoneAPG(),
    "SupportNewton": SupportNewton(),
    "WorkingSet": WorkingSet(),
}

# %%
# Run all of them from zero to the same accuracy.

results = {}
for name, solver in solvers.items():
    results[name] = minimize(loss, penalty, solver=solver, tol=1e-5, max_iter=20_000, run=Run(max_seconds=2))
    found = results[name]
    print(f"{name:>18}: {found.status.name:<11} {found.n_iter:5d} steps, objective {found.objective:.6f}")

# %%
# The problem is not convex, so two solvers may end at different stationary points. The objective of each is
# printed above. Each curve below shows how far the objective lies above the lowest of them.

lowest = min(result.objective for result in results.values())
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, result in results.items():
    gap = [max(value - lowest, 1e-12) for value in result.history["objective"]]
    axes.loglog(result.history["cpu_seconds"][1:], gap[1:], label=name)
axes.set_xlabel("CPU seconds")
axes.set_ylabel("objective above the lowest")
axes.legend(frameon=False)
axes.grid(alpha=0.3)
plt.show()

"""
Is it the global minimum?
=========================

Where neighbouring columns are alike, the problem has many local minima. `certify` proves which one is the lowest.
"""

import matplotlib.pyplot as plt
import numpy as np

from ell12 import L12, SquaredLoss, certify, minimize

# %%
# Cosines of nearby frequencies, and a signal of five of them.
random = np.random.default_rng(1)
A = np.cos(2 * np.pi * random.random((32, 1)) * np.arange(1, 97) / 15)
A /= np.linalg.norm(A, axis=0)
x = np.zeros(96)
x[random.permutation(96)[:5]] = random.standard_normal(5)
b = A @ x + 0.01 * random.standard_normal(32)
loss, penalty = SquaredLoss(A, b), L12(alpha=0.1 * np.abs(A.T @ b).max())

# %%
# Runs from random points converge, but to different values. The certificate is a lower bound of all of them.
values = [minimize(loss, penalty, random.standard_normal(96)).objective for _ in range(100)]
plain = minimize(loss, penalty)
certificate = certify(loss, penalty, plain.x)
print(certificate)

plt.hist(values, bins=30, color="0.7", label="100 runs from random points")
plt.axvline(plain.objective, color="C0", label="the plain call")
plt.axvline(certificate.lower_bound, color="C1", linestyle="--", label="proved: no point is lower")
plt.xlabel("objective")
plt.ylabel("number of runs")
plt.legend()
plt.show()

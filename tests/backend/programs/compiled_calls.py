"""Calls that use compiled loops, and sums of their answers; with the word ``full`` no file can grow."""

import resource
import signal
import sys

import numpy as np

from ell12 import L12, SquaredLoss, complete_matrix, denoise_tv, minimize, prox_l12
from ell12.linear_model import L12RegressorCV

if "full" in sys.argv:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
random = np.random.default_rng(0)
A, noise = random.standard_normal((300, 2000)), random.standard_normal((128, 128))
b = A[:, :3].sum(axis=1)
ratings = np.where(random.random((80, 60)) < 0.5, random.standard_normal((80, 60)), np.nan)
answers = [
    prox_l12(random.standard_normal((70_000, 2)), 0.5, axis=1),
    denoise_tv(noise, 0.3, tol=1e-2),
    minimize(SquaredLoss(A, b), L12(20.0)).x,
    L12RegressorCV(alphas=[0.3, 0.1, 0.03], cv=2).fit(A, b).coef_,
    complete_matrix(ratings, 2.0, max_rank=3).x.s,
]
print(*(f"{np.abs(answer).sum():.8g}" for answer in answers), "numba" in sys.modules)

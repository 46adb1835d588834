"""The loops of the bounds, compiled (numba); their plain versions are in `ell12.certificate.bounds`."""

from __future__ import annotations

import numpy as np

from ell12.backend.compiled_code import compiled_loop


@compiled_loop(error_model="numpy", nogil=True)
def box_descent(G, c, x, lower, upper, below, above, sweeps, target):  # type: ignore[no-untyped-def]
    """`ell12.certificate.bounds.box_descent`, entry by entry."""
    for _ in range(sweeps):
        largest = 0.0
        for i in range(x.size):
            h = G[i, i]
            pull = h * x[i] + c[i]
            new = 0.0
            if pull > above[i]:
                new = (pull - above[i]) / h
            elif pull < below[i]:
                new = (pull - below[i]) / h
            new = min(max(new, lower[i]), upper[i])
            move = new - x[i]
            if move != 0.0:
                x[i] = new
                for j in range(x.size):
                    c[j] -= move * G[i, j]
                largest = max(largest, move * move * h)
        if largest <= target:
            break


@compiled_loop(error_model="numpy", nogil=True)
def smallest_reach(V, chosen, corners, costs, budget, squares):  # type: ignore[no-untyped-def]
    """`ell12.certificate.bounds.smallest_reach`, entry by entry."""
    best = np.empty(chosen.size)
    for k in range(chosen.size):
        first = np.sqrt(squares[k] / (2 * budget))
        best[k], where = np.inf, first
        for trial in range(9):
            a = first * 2.0 ** (trial - 1) if trial < 7 else where * (np.sqrt(0.5) if trial == 7 else np.sqrt(2.0))
            value = a * budget + squares[k] / (2 * a)
            for j in range(V.shape[0]):
                if j != chosen[k]:
                    v = V[j, k]
                    most = max(corners[0, j] * v - a * costs[0, j], corners[1, j] * v - a * costs[1, j])
                    value += max(most, corners[2, j] * v - a * costs[2, j])
            if value < best[k]:
                best[k] = value
                if trial < 7:
                    where = a
    return best

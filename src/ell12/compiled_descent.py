"""Coordinate descent as a compiled loop (numba); its plain twin is in `ell12.solvers.descent`.

Imported only where a problem is large enough to pay for loading numba; the machine code is cached on disk.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, error_model="numpy", nogil=True)
def sweep(hessian, slope, x, below, above, sweeps, target):  # type: ignore[no-untyped-def]
    """`ell12.solvers.descent.sweep`, entry by entry."""
    for _ in range(sweeps):
        largest = 0.0
        turned = False
        for j in range(x.size):
            curvature, old = hessian[j, j], x[j]
            new = old
            if curvature > 0.0:
                pull = curvature * old - slope[j]
                new = 0.0
                if pull > above[j]:
                    new = (pull - above[j]) / curvature
                elif pull < below[j]:
                    new = (pull - below[j]) / curvature
            elif below[j] <= -slope[j] <= above[j]:
                new = 0.0
            move = new - old
            if move != 0.0:
                turned |= (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
                x[j] = new
                largest = max(largest, abs(move) * curvature)
                for i in range(slope.size):
                    slope[i] += move * hessian[j, i]
        if largest <= target or not turned:
            break

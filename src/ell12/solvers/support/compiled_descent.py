"""Coordinate descent as a compiled loop (numba); its plain twin is in `ell12.solvers.support.descent`.

Imported only where a problem is large enough to pay for loading numba; its code is cached on disk where possible.
"""

from __future__ import annotations

from ell12.backend.compiled_code import compiled_loop


@compiled_loop(error_model="numpy", nogil=True)
def sweep(hessian, slope, x, below, above, sweeps, target):  # type: ignore[no-untyped-def]
    """`ell12.solvers.support.descent.sweep`, entry by entry."""
    for _ in range(sweeps):
        largest, turned = 0.0, False
        for j in range(x.size):
            old = x[j]
            new = _best_entry(hessian[j, j], old, slope[j], below[j], above[j])
            move = new - old
            if move != 0.0:
                turned |= (new > 0.0) != (old > 0.0) or (new < 0.0) != (old < 0.0)
                x[j] = new
                largest = max(largest, abs(move) * hessian[j, j])
                for i in range(slope.size):
                    slope[i] += move * hessian[j, i]
        if largest <= target or not turned:
            break


@compiled_loop(error_model="numpy", nogil=True)
def _best_entry(curvature, old, slope, below, above):  # type: ignore[no-untyped-def]
    if not curvature > 0.0:
        return 0.0 if below <= -slope <= above else old
    pull = curvature * old - slope
    if pull > above:
        return (pull - above) / curvature
    return (pull - below) / curvature if pull < below else 0.0

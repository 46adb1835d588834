"""The two loops of the bounds, compiled where there is a compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ell12.backend.compiled_code import can_compile, compiled_loop


@cache
def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """A loop of this module, compiled; itself without a compiler."""
    options = {"error_model": "numpy", "nogil": True, "fastmath": {"reassoc", "nsz"}}
    return compiled_loop(**options)(loop) if can_compile() else loop


def box_descent(G, c, x, lower, upper, below, above, sweeps, target):  # type: ignore[no-untyped-def]
    """Coordinate descent in place on ``x'Gx/2 - q'x + sum_i (below_i or above_i) x_i`` in a box; c = q - G x."""
    for _ in range(sweeps):
        largest = 0.0
        for i in range(x.size):
            h = G[i, i]
            pull, new = h * x[i] + c[i], 0.0
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


def smallest_reach(V, chosen, corners, costs, budget, squares):  # type: ignore[no-untyped-def]
    """Least over a of ``a budget + ||z||^2 / (2 a) + sum_j max over corners of (v_j x_j - a e_j)``, j not i.

    A row of V for each entry i in ``chosen``; of the corners x of the box, ``costs`` has the reduced costs e.
    """
    best = np.full(chosen.size, np.inf)
    for k in range(chosen.size):
        v, first = V[k], np.sqrt(squares[k] / (2 * budget))
        for power in range(-1, 6):
            a = first * 2.0**power
            value = a * budget + squares[k] / (2 * a)
            for j in range(v.size):
                one, other = corners[0, j] * v[j] - a * costs[0, j], corners[1, j] * v[j] - a * costs[1, j]
                third = corners[2, j] * v[j] - a * costs[2, j]
                value += max(one, other, third) if j != chosen[k] else 0.0
            best[k] = min(best[k], value)
    return best

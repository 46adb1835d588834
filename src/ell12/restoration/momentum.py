"""How far the gradient steps on a smoothed total variation go, and how much of the last move they repeat.

A step is three numbers (size, momentum, left): ``z+ = z - size g + momentum (z - u)``, ``u+ = z - left g``, both
within the bounds. Here g is the gradient at z, or what a solve makes of it, and u is what the step before left. A
step that leaves z itself, ``left = 0``, lets the image whose gradient is known be passed on without a copy.
"""

from __future__ import annotations

import math
from typing import Protocol

from ell12.solvers.proximal_step import next_t

# Up to this ratio of the largest curvature to the least, steps are those that suit quadratics best. On drawings,
# photographs, noise and volumes they saved up to half of the sweeps there; at 240 they began to need more.
WELL_CONDITIONED = 100
# After a step that left z, momentum is this fraction of the usual: of 0.5 to 1 the best over seven inpaintings.
EASED = 0.9


class Momentum(Protocol):
    """A rule for steps."""

    def next(self) -> tuple[float, float, float]:
        """The next step."""
        ...

    def restart(self) -> None:
        """Begin again without momentum."""
        ...

    def look(self, turn: float, square: float) -> None:
        """Begin again if the last step went uphill; ``turn`` is ``<g, z - u>`` there, ``square`` is ``<g, g>``."""
        ...


class OptimizedMomentum:
    """The optimized gradient method (Kim & Fessler, 2016) with restart, its momentum capped by the convexity.

    With ``x+ = z - g / largest`` it is ``z+ = x+ + beta (x+ - x) + gamma (x+ - z)``, beta being Nesterov's factor.
    With ``plain=True`` gamma is 0. Each step whose number divides by ``every`` leaves z, the others leave x+.
    """

    def __init__(
        self, largest: float = 1.0, least: float = 0.0, *, plain: bool = False, every: int | None = None
    ) -> None:
        root = math.sqrt(min(least / largest, 1.0))
        self.cap, self.plain, self.every = (1 - root) / (1 + root), plain, every
        self.size, self.count, self.t = 1 / largest, 0, 1.0

    def next(self) -> tuple[float, float, float]:
        """The next step."""
        t, self.t = self.t, next_t(self.t)
        beta, gamma = min((t - 1) / self.t, self.cap), 0.0 if self.plain else min(t / self.t, self.cap)
        self.count += 1
        if self.every is None:
            return self.size * (1 + beta + gamma), beta, self.size
        eased = EASED if self.count % self.every == 1 else 1.0
        return self.size * (1 + beta + gamma), eased * beta, self.size if self.count % self.every else 0.0

    def restart(self) -> None:
        """Begin again without momentum."""
        self.t = 1.0

    def look(self, turn: float, square: float) -> None:
        """Begin again if the gradient points along the last move, ``x+ - x``."""
        if turn > self.size * square:
            self.restart()


class ChebyshevMomentum:
    """The Chebyshev iteration for curvatures between ``least`` and ``largest``, with restart; every step leaves z.

    On a quadratic no other method of gradients reduces the error as far in so many steps.
    """

    def __init__(self, largest: float, least: float) -> None:
        self.centre, self.radius = (largest + least) / 2, (largest - least) / 2
        self.size, self.momentum, self.count = 0.0, 0.0, 0

    def next(self) -> tuple[float, float, float]:
        """The next step."""
        self.count += 1
        before, beta = self.size, (self.radius * self.size / 2) ** 2 * (2 if self.count == 2 else 1)
        self.size = 1 / self.centre if self.count == 1 else 1 / (self.centre - beta / before)
        self.momentum = 0.0 if self.count == 1 else beta * self.size / before
        return self.size, self.momentum, 0.0

    def restart(self) -> None:
        """Begin again without momentum."""
        self.count = 0

    def look(self, turn: float, square: float) -> None:
        """Begin again if the step, ``z+ - z``, went along the gradient."""
        if self.momentum * turn > self.size * square:
            self.restart()


def momentum_for(largest: float, least: float, *, bounded: bool, every: int) -> Momentum:
    """The rule for curvatures up to ``largest``; ``least`` is 0 where the problem is not strongly convex."""
    if largest <= WELL_CONDITIONED * least:
        return ChebyshevMomentum(largest, least)
    return OptimizedMomentum(largest, least, plain=bounded, every=every)

"""A penalty of one's own: the smoothly clipped absolute deviation (SCAD)."""

# [penalty]
from dataclasses import dataclass

import numpy as np

from ell12 import L1
from ell12.backend import max_abs, namespace
from ell12.penalties import PenaltyBase
from ell12.protocols import PiecewisePenalty


@dataclass(frozen=True, eq=False)
class SCAD(PenaltyBase):
    """Of slope alpha up to ``|x_i| = knee``, falling to slope 0 at ``a knee``, constant beyond.

    Fan & Li, doi:10.1198/016214501753382273, have the knee at alpha, which is the default.
    """

    alpha: float | None = None
    a: float = 3.7
    knee: float | None = None

    def value(self, x):
        """The penalty at x, a sum over its entries."""
        xp = namespace(x)
        return float(xp.sum(self._values(xp, xp.abs(x))))

    def prox(self, x, step):
        """The best of the minimisers on the three pieces, for each entry."""
        xp = namespace(x)
        size, threshold, curved = xp.abs(x), self.alpha * step, step * self.concavity
        candidates = [xp.clip(size - threshold, 0, self.start), xp.clip(size, self.end, None)]
        if curved < 1:  # the middle piece is convex: its minimiser may lie within
            candidates.append(xp.clip((size - curved * self.end) / (1 - curved), self.start, self.end))
        costs = xp.stack([0.5 * (u - size) ** 2 + step * self._values(xp, u) for u in candidates])
        best = xp.argmin(costs, axis=0)
        return xp.sign(x) * sum(xp.where(best == k, candidate, 0) for k, candidate in enumerate(candidates))

    @property
    def start(self):
        """Where the slope begins to fall."""
        return self.alpha if self.knee is None else self.knee

    @property
    def end(self):
        """Where the slope has fallen to zero."""
        return self.a * self.start

    @property
    def concavity(self):
        """How fast the slope falls between the two."""
        return self.alpha / (self.end - self.start)

    def _values(self, xp, size):
        middle = self.alpha * size - 0.5 * self.concavity * (size - self.start) ** 2
        constant = xp.full_like(size, 0.5 * self.alpha * (self.start + self.end))
        return xp.where(size <= self.start, self.alpha * size, xp.where(size <= self.end, middle, constant))


# [pieces]
class PiecewiseSCAD(SCAD, PiecewisePenalty):
    """SCAD with its smooth pieces: what SCP, DCA, paths, Newton's method and working sets ask for."""

    @property
    def convex(self):
        """The convex part: the l1 norm with the slope at zero."""
        return L1(self.alpha)

    def subtracted_gradient(self, x):
        """The gradient of what is subtracted from it: alpha minus SCAD's slope, with the sign of x."""
        xp = namespace(x)
        return xp.sign(x) * xp.clip(self.concavity * (xp.abs(x) - self.start), 0, self.alpha)

    @property
    def is_convex(self):
        """Never: it is flat far from zero."""
        return self.alpha == 0

    def least_slope(self, x, gradient):
        """The smallest slope of the objective in each entry; at zero what exceeds alpha."""
        xp = namespace(x)
        slope = gradient - self.subtracted_gradient(x)
        away = xp.clip(xp.abs(slope) - self.alpha, 0, None)
        return xp.where(x != 0, slope + self.alpha * xp.sign(x), xp.sign(slope) * away)

    def kinks(self, x):
        """Every entry has a kink at zero."""
        return namespace(x).ones_like(x) > 0

    def slopes_at_zero(self, x):
        """The slopes of the convex part."""
        alpha = self.alpha * namespace(x).ones_like(x)
        return -alpha, alpha

    def restrict(self, columns):  # noqa: ARG002
        """The same on some entries: it is a sum over them."""
        return self

    def curvature(self, x):
        """Minus ``concavity`` between the knee and the end, zero elsewhere."""
        size = np.abs(x)
        return DiagonalCurvature(np.where((size > self.start) & (size < self.end), -self.concavity, 0.0))


@dataclass(frozen=True)
class DiagonalCurvature:
    """A Hessian that is zero but for its diagonal."""

    diagonal: np.ndarray

    @property
    def largest(self):
        """The largest modulus of an eigenvalue."""
        return max_abs(self.diagonal)

    def matrix(self, columns):
        """The block of some entries."""
        return np.diag(self.diagonal[columns])

    def product(self, columns):
        """The same as a map."""
        return lambda v: self.diagonal[columns] * v


# [end]
if __name__ == "__main__":
    from ell12 import SquaredLoss, datasets, minimize

    problem = datasets.compressed_sensing(0, n_samples=200, n_features=400)
    for penalty in (SCAD(0.05), PiecewiseSCAD(0.05)):
        result = minimize(SquaredLoss(problem.A, problem.b), penalty)
        print(type(penalty).__name__, result.status.name, result.n_iter, "iterations")

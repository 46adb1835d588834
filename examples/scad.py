"""A penalty of one's own: the smoothly clipped absolute deviation (SCAD)."""

# [penalty]
from dataclasses import dataclass

from ell12 import L1
from ell12.backend import namespace


@dataclass(frozen=True)
class SCAD:
    """Of slope alpha up to ``|x_i| = alpha``, falling to slope 0 at ``a alpha``, constant beyond.

    Fan & Li, doi:10.1198/016214501753382273.
    """

    alpha: float
    a: float = 3.7

    def value(self, x):
        """The penalty at x, a sum over its entries."""
        xp = namespace(x)
        return float(xp.sum(self._values(xp, xp.abs(x))))

    def prox(self, x, step):
        """The best of the minimisers on the three pieces, for each entry."""
        xp = namespace(x)
        size, alpha, end = xp.abs(x), self.alpha, self.a * self.alpha
        first = xp.clip(size - alpha * step, 0, alpha)
        last = xp.clip(size, end, None)
        candidates = [first, last]
        bend = 1 - step / (self.a - 1)
        if bend > 0:  # the middle piece is convex: its minimiser may lie within
            candidates.append(xp.clip((size - step * end / (self.a - 1)) / bend, alpha, end))
        costs = xp.stack([0.5 * (u - size) ** 2 + step * self._values(xp, u) for u in candidates])
        best = xp.argmin(costs, axis=0)
        return xp.sign(x) * sum(xp.where(best == k, candidate, 0) for k, candidate in enumerate(candidates))

    def _values(self, xp, size):
        alpha, a = self.alpha, self.a
        middle = (2 * a * alpha * size - size**2 - alpha**2) / (2 * (a - 1))
        constant = xp.full_like(size, alpha**2 * (a + 1) / 2)
        return xp.where(size <= alpha, alpha * size, xp.where(size <= a * alpha, middle, constant))

    # [difference]
    @property
    def convex(self):
        """The convex part: the l1 norm with the slope at zero."""
        return L1(self.alpha)

    def subtracted_gradient(self, x):
        """The gradient of what is subtracted from it: alpha minus SCAD's slope, with the sign of x."""
        xp = namespace(x)
        return xp.sign(x) * xp.clip((xp.abs(x) - self.alpha) / (self.a - 1), 0, self.alpha)

    # [end]

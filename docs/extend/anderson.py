"""A solver of one's own: proximal gradient with Anderson acceleration."""

# [solver]
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ell12.backend import inner, max_abs
from ell12.protocols import Iterate, Loss, Needs, Penalty, Solver


@dataclass(frozen=True)
class AndersonProximalGradient(Solver):
    """Proximal gradient steps, extrapolated from the last few of them.

    The combination of past points whose residuals cancel best comes next, if its objective is lower (Walker & Ni,
    doi:10.1137/10078356X; for sparse problems Bertrand & Massias, AISTATS 2021).
    """

    memory: int = 5
    needs: ClassVar[Needs] = Needs(Loss, Penalty)

    def iterates(self, loss, penalty, start):
        """Yield one iterate a step, for ever: `minimize` times, records and stops."""
        step = 1 / (loss.lipschitz() or 1.0) if math.isfinite(loss.lipschitz()) else 1.0
        x, points, residuals = start, [], []
        while True:
            new, step = self.proximal_step(loss, penalty, x, step)
            value = loss.value(new) + penalty.value(new.x)
            yield Iterate(new, value, optimality=max_abs(new.x - x.x) / step)
            points, residuals = [*points, new][-self.memory :], [*residuals, new.x - x.x][-self.memory :]
            mixed = self.mixture(points, residuals)  # points add and scale: no product with A
            lower = loss.value(mixed) + penalty.value(mixed.x) < value
            x = mixed if lower else new

    @staticmethod
    def proximal_step(loss, penalty, x, step):
        """The step from x, halved until the loss lies below its quadratic model, and its length."""
        gradient = loss.gradient(x)
        while True:
            new = loss.point(penalty.prox(x.x - step * gradient, step))
            move = new.x - x.x
            if 2 * step * loss.divergence(new, x) <= (1 + 1e-10) * inner(move, move):
                return new, step
            step = step / 2

    @staticmethod
    def mixture(points, residuals):
        """``sum_i c_i points_i`` with ``sum_i c_i = 1`` and the smallest combination of the residuals."""
        products = np.array([[inner(r, s) for s in residuals] for r in residuals])
        products += (1e-10 * np.trace(products) + 1e-300) * np.eye(len(points))
        factors = np.linalg.solve(products, np.ones(len(points)))
        factors = factors / factors.sum()
        mixed = float(factors[0]) * points[0]
        for factor, point in zip(factors[1:], points[1:], strict=True):
            mixed = mixed + float(factor) * point
        return mixed


# [end]
if __name__ == "__main__":
    from ell12 import L1, SquaredLoss, datasets, minimize
    from ell12.solvers import ProximalGradient

    problem = datasets.compressed_sensing(0, n_samples=100)
    loss = SquaredLoss(problem.A, problem.b)
    for solver in (AndersonProximalGradient(), ProximalGradient()):
        result = minimize(loss, L1(0.01), solver=solver)
        print(type(solver).__name__, result.status.name, result.n_iter, "iterations")

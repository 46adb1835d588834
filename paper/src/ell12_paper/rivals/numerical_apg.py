"""nmAPG whose proximal step is found by iteration: what the paper's closed form replaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ell12.penalties import L12
from ell12.prox import prox_l12_iterative
from ell12.solvers import NonmonotoneAPG


@dataclass(frozen=True)
class NumericalAPG(NonmonotoneAPG):
    """nmAPG on `ell12.L12` with the proximal step by fixed-point iteration, begun at the last iterate.

    Parameters
    ----------
    prox_tol : float, default 1e-8
        Relative accuracy of the proximal step.
    """

    prox_tol: float = 1e-8

    def iterates(self, loss: Any, penalty: L12, start: Any) -> Iterator[Any]:
        """Yield one iterate a step."""
        numerical = _Numerical(penalty, start.x, self.prox_tol)
        for iterate in super().iterates(loss, numerical, start):
            numerical.near = iterate.point.x
            yield iterate


class _Numerical:
    """The penalty with its prox by iteration, from a point near by."""

    def __init__(self, penalty: L12, near: Any, tol: float) -> None:
        self.penalty, self.near, self.tol = penalty, near, tol

    def __getattr__(self, name: str) -> Any:
        return getattr(self.penalty, name)

    def prox(self, x: Any, step: float) -> Any:
        """The proximal step to a relative accuracy of ``tol``."""
        p = self.penalty
        options = {"l2_weight": p.l2_weight, "weights": p.weights, "start": self.near, "tol": self.tol}
        return prox_l12_iterative(x, p.strength * step, **options)[0]

"""Total variation by the difference-of-convex algorithm, with split Bregman for the convex problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.operators import adjoint_product
from ell12.protocols import Iterate, Needs, Point
from ell12.restoration.smoothed_gradient import ImageLoss, VariationPenalty, check_smoothing, is_plain_square
from ell12.restoration.splitting import Splitting
from ell12.restoration.splitting_parts import rough_solver


@dataclass(frozen=True)
class TotalVariationDCA:
    """The difference-of-convex algorithm for the l1-2 total variation without smoothing.

    ``x <- argmin f(x) + alpha (||D x||_1 - l2_weight <D x, q>)``, q the unit vectors along the last D x.

    Isotropic, ``sum_i ||(D x)_i||_2`` in place of the l1 norm, and q is one unit vector for the image. The
    algorithm is that of Lou, Zeng, Osher & Xin, doi:10.1137/14098435X. Each convex problem is solved by split
    Bregman, that is ADMM.

    Parameters
    ----------
    inner_tol : float, default 1e-4
        A convex problem ends when x changes by less than this fraction of itself.
    inner_max_iter : int, default 300
        Or after this number of steps.
    warm_start : bool, default True
        Carry ADMM's variables over from one convex problem to the next; else each begins at the start.
    inner : {"exact", "cg"}, default "exact"
        Solve ADMM's linear systems by a transform where one makes them diagonal, or always by conjugate gradients.
    cg_tol : float, default 1e-5
        Conjugate gradients stop when the residual is at most this fraction of the right-hand side.
    """

    smooths: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs(ImageLoss, VariationPenalty)

    inner_tol: float = 1e-4
    inner_max_iter: int = 300
    warm_start: bool = True
    inner: str = "exact"
    cg_tol: float = 1e-5

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate per convex problem solved, and None after each step within one."""
        check_smoothing(penalty, smooths=False)
        if not is_plain_square(loss):
            raise ValueError(f"this solver needs a SquaredLoss of scale 1, got {loss!r}")
        split = self._splitting(loss, penalty, start.x)
        rho = 10 * (penalty.alpha or 0.1) / split.unit  # a threshold of a tenth of the range
        slope = adjoint_product(split.D, penalty.relief(split.W))
        while True:
            split = split if self.warm_start else self._splitting(loss, penalty, start.x)
            yield from split.convex_steps(rho, slope, self.inner_tol, self.inner_max_iter)
            point = loss.point(penalty.project(split.x))
            # Where W is zero every vector no longer than one is a subgradient: zero, so that nothing turns there.
            last, slope = slope, adjoint_product(split.D, penalty.relief(split.W))
            yield Iterate(point, loss.value(point) + penalty.value(point.x), penalty.size(slope - last))

    def _splitting(self, loss: Any, penalty: Any, x: Any) -> Splitting:
        split = Splitting(loss, penalty, x)
        if self.inner == "cg":
            split.solve = rough_solver(loss.A, penalty, self.cg_tol)
        return split

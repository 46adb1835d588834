"""Alternating minimization over the image and its differences, the paper's method for total variation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.checks import check_counts, check_flags, check_word, set_numbers
from ell12.operators import adjoint_product, product
from ell12.operators.krylov import conjugate_gradients
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration.momentum import OptimizedMomentum
from ell12.restoration.normal_equations import exact_solver, normal_product
from ell12.restoration.smoothed_gradient import descend
from ell12.restoration.variation import SmoothImageLoss, VariationPenalty, check_smoothing


@dataclass(frozen=True)
class AlternatingMinimization:
    """The paper's alternating minimisation over an image and its differences.

    ``W = prox(D x)``, ``x = (A'A + mu D'D)^-1 (A'y + mu D'W)`` in turn, from ``W = 0`` on (AltMin).

    The paper's penalised problem, ``mu = alpha / smoothing``: its ``mu = 100 alpha`` is ``smoothing = 0.01``. One
    round is the step ``x - (A'A + mu D'D)^-1 gradient`` on the smoothed objective, which never raises it, however
    roughly the system is solved.

    Parameters
    ----------
    inner : {"cg", "exact"}, default "cg"
        How x is found: conjugate gradients started at the last x, as in the paper, or one cosine or Fourier
        transform there and back where these make both A'A and D'D diagonal.
    accelerated : bool, default False
        Extrapolate, with gradient restart.
    cg_tol : float, default 1e-4
        Conjugate gradients stop when the residual is at most this fraction of the right-hand side.
    cg_max_iter : int, default 100
        Or after this number of steps.

    See Also
    --------
    SmoothedGradient : The default: a smoothed problem.
    """

    smooths: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(SmoothImageLoss, VariationPenalty)

    inner: str = "cg"
    accelerated: bool = False
    cg_tol: float = 1e-4
    cg_max_iter: int = 100

    def __post_init__(self) -> None:
        check_word(self.inner, "inner", "cg", "exact")
        check_flags(accelerated=self.accelerated)
        set_numbers(self, "cg_tol")
        check_counts(least=1, optional=False, cg_max_iter=self.cg_max_iter)

    def iterates(self, loss: Any, penalty: VariationPenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a round."""
        check_smoothing(penalty, smooths=True, bounded=False)
        if loss.scale > 1 or loss.sample_weight is not None:  # then A'A does not bound the curvature
            raise ValueError(
                f"AlternatingMinimization needs a loss of scale <= 1 without sample_weight, got {loss!r}"
            )
        step = self._step(loss, penalty, start.x)
        D = penalty.differences(start.x)
        # W = 0: the quadratic mu/2 ||D x||^2 in place of the penalty.
        slope = penalty.mu * adjoint_product(D, product(D, start.x))
        first = loss.point(start.x - step(loss.gradient(start) + slope, start.x))
        return descend(loss, penalty, first, step, OptimizedMomentum() if self.accelerated else None)

    def _step(self, loss: Any, penalty: VariationPenalty, x: Array) -> Callable[[Array, Array], Array]:
        """The change of x, ``(A'A + mu D'D)^-1 gradient``."""
        if self.inner == "exact":
            exact = exact_solver(loss.A, penalty, x)
            return lambda gradient, _: exact(gradient, penalty.mu, 0.0)
        times = normal_product(loss.A, penalty, penalty.mu)

        def warm_started(gradient: Array, x: Array) -> Array:
            right = times(x) - gradient  # A'y + mu D'W
            return x - conjugate_gradients(times, right, x, tol=self.cg_tol, max_iter=self.cg_max_iter)

        return warm_started

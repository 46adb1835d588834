"""The accelerated gradient method on the smoothed total variation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import inner, namespace
from ell12.operators import sent_like
from ell12.operators.images import Identity, Masking, Sampling, flipped
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration.stencil import STEPS, for_sweep
from ell12.restoration.variation import ImageLoss, VariationPenalty, check_smoothing, is_plain_square
from ell12.solvers.acceleration import next_t


class OptimizedMomentum:
    """The factors of the optimized gradient method, capped where the problem is strongly convex.

    ``z+ = x+ + beta (x+ - x) + gamma (x+ - z)``. beta is Nesterov's factor; the last term halves the worst case.
    With ``plain=True`` gamma is 0.
    """

    def __init__(self, conditioning: float = 0.0, *, plain: bool = False) -> None:
        root = math.sqrt(min(conditioning, 1.0))
        self.cap, self.plain = (1 - root) / (1 + root), plain
        self.t = 1.0

    def restart(self) -> None:
        """Begin again without momentum."""
        self.t = 1.0

    def next(self) -> tuple[float, float]:
        """The next beta and gamma."""
        t, self.t = self.t, next_t(self.t)
        return min((t - 1) / self.t, self.cap), 0.0 if self.plain else min(t / self.t, self.cap)


@dataclass(frozen=True)
class SmoothedGradient:
    """``x+ = z - gradient(z) / L``, ``z+ = x+ + beta (x+ - x) + gamma (x+ - z)``: accelerated, with restart.

    The smoothed penalty is a minimum of quadratics of curvature mu, so that a step of one over
    ``L = ||A||^2 + 4 ndim mu`` never raises the objective. No linear system is solved. beta is Nesterov's
    momentum, gamma that of the optimized gradient method (Kim & Fessler, 2016), 0 where there are bounds; both
    begin again when the gradient points along the last move. An iterate is every fourth point z, whose objective
    and gradient are computed on the way. Denoising and inpainting of large NumPy images takes the four steps in
    one compiled sweep, on a GPU one kernel a step; everything else, on arrays of any kind, a few passes a step.

    Parameters
    ----------
    threads : int, optional
        Threads of the compiled sweep; by default one for a quarter of a million pixels, no more than processors.
    """

    smooths: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(ImageLoss, VariationPenalty)

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise ValueError(f"threads must be a whole number >= 1, got {self.threads!r}")

    def iterates(self, loss: Any, penalty: VariationPenalty, start: Point) -> Iterator[Iterate]:
        """Yield one iterate for four steps."""
        check_smoothing(penalty, smooths=True)
        if not math.isfinite(loss.lipschitz()):
            raise ValueError("SmoothedGradient needs a loss whose Lipschitz constant is finite")
        lipschitz = loss.lipschitz() + penalty.lipschitz or 1.0
        # The squared distance from an image is as convex as it is smooth.
        convexity = 1 / lipschitz if is_plain_square(loss) and isinstance(loss.A, Identity) else 0.0
        momentum = OptimizedMomentum(convexity, plain=penalty.bounds is not None)
        pointwise = is_plain_square(loss) and type(loss.A) in (Identity, Sampling, Masking)
        sweep = penalty.sweep(start.x, self.threads) if pointwise else None
        if sweep is None:
            return descend(loss, penalty, start, lambda gradient, _: gradient / lipschitz, momentum, STEPS)
        return _swept_iterates(loss, penalty, start, lipschitz, momentum, sweep)


def descend(
    loss: Any,
    penalty: VariationPenalty,
    start: Point,
    step: Callable[[Array, Array], Array],
    momentum: OptimizedMomentum | None,
    steps: int = 1,
) -> Iterator[Iterate]:
    """``x+ = z - step(gradient, z)`` with or without momentum; the step inverts a bound on the curvature.

    An iterate is the point z of every ``steps``-th step.
    """
    x, z = start.x, start
    for count in itertools.count(1):
        value, slope = penalty.value_and_gradient(z.x)
        gradient = loss.gradient(z) + slope
        new = penalty.project(z.x - step(gradient, z.x))
        if count % steps == 0:
            left = gradient if penalty.bounds is None else z.x - penalty.project(z.x - gradient)
            yield Iterate(z, loss.value(z) + value, penalty.size(left))
        if momentum is None:
            z = loss.point(new)
            continue
        move, (beta, gamma) = new - x, momentum.next()
        if count % steps == 0 and inner(gradient, move) > 0:
            momentum.restart()
        x, z = new, loss.point(penalty.project(new + beta * move + gamma * (new - z.x)))


def _swept_iterates(
    loss: Any, penalty: VariationPenalty, start: Point, lipschitz: float, momentum: OptimizedMomentum, sweep: Any
) -> Iterator[Iterate]:
    """`descend` by compiled sweeps."""
    y, weight = _data(loss, penalty)
    first = for_sweep(flipped(start.x, penalty.flip))
    old, new = (first, first), (sweep.new_image(), sweep.new_image())
    while True:
        steps = [(1 / lipschitz, *momentum.next()) for _ in range(STEPS)]
        point = sweep.new_image()
        sums = sweep.advance(old, y, weight, steps, point, new)
        size = penalty.unit * math.sqrt(sums.square / math.prod(first.shape))
        here = loss.point(flipped(point, penalty.flip))
        # With the factor of the sweep before, the gradient is that of this place nearly.
        yield Iterate(here, sums.loss + sums.penalty, size, exact=not sweep.norms.subtracted)
        if sweep.norms.unsteady:
            momentum.restart()
            yield from descend(loss, penalty, here, lambda gradient, _: gradient / lipschitz, momentum, STEPS)
        if sums.turn > 0:
            momentum.restart()
        old = new


def _data(loss: Any, penalty: VariationPenalty) -> tuple[Array, Array | None]:
    """The image that the loss compares with, and where it does; both as the sweep sees them."""
    if isinstance(loss.A, Identity):
        return for_sweep(flipped(loss.b, penalty.flip)), None
    mask = sent_like(flipped(loss.A.mask, penalty.flip), loss.b)
    weight = for_sweep(namespace(mask).astype(mask, loss.b.dtype))
    return for_sweep(flipped(loss.A.H @ loss.b, penalty.flip)), weight

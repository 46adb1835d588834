"""The accelerated gradient method on the smoothed total variation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ell12.backend import inner, namespace
from ell12.operators import sent_like
from ell12.operators.image_operators import Identity, Masking, Sampling, flipped
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration.momentum import Momentum, momentum_for
from ell12.restoration.stencil import STEPS, for_sweep, foresee_run
from ell12.restoration.variation import SmoothImageLoss, VariationPenalty, check_smoothing, is_plain_square

# From this many pixels on an iterate is lent: its memory is the solver's, and there is no copy of the best. A run
# that is cut short then returns its last image; of smaller images it returns the best.
LENT_FROM = 2**24


@dataclass(frozen=True)
class SmoothedGradient:
    """An accelerated gradient method with restarts, for the smoothed problem.

    ``z+ = z - size gradient(z) + momentum (z - u)``: accelerated, with restart.

    The smoothed penalty is a minimum of quadratics of curvature mu, so that a step of one over
    ``L = ||A||^2 + 4 ndim mu`` never raises the objective. No linear system is solved. Denoising with L up to 100
    takes the steps of the Chebyshev iteration, u being the z before; everything else those of the optimized
    gradient method (Kim & Fessler, 2016), of Nesterov's where there are bounds. Momentum begins anew when it leads
    uphill. An iterate is every fourth point z, whose objective and gradient are computed on the way. Denoising and
    inpainting of NumPy images takes the four steps in one compiled sweep, on a GPU one kernel a step; everything
    else, on arrays of any kind, a few passes a step. Images of 2^24 pixels or more are changed in place.

    Parameters
    ----------
    threads : int, optional
        Threads of the compiled sweep; by default one for a quarter of a million pixels, no more than processors.

    See Also
    --------
    denoise_tv : Remove noise.
    """

    smooths: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(SmoothImageLoss, VariationPenalty)

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
        # The squared distance from an image has curvature one everywhere.
        convexity = 1.0 if is_plain_square(loss) and isinstance(loss.A, Identity) else 0.0
        momentum = momentum_for(lipschitz, convexity, bounded=penalty.bounds is not None, every=STEPS)
        pointwise = is_plain_square(loss) and type(loss.A) in (Identity, Sampling, Masking)
        sweep = penalty.sweep(start.x, self.threads) if pointwise else None
        if sweep is None:
            return descend(loss, penalty, start, lambda gradient, _: gradient, momentum, STEPS)
        return _swept_iterates(loss, penalty, start, momentum, sweep)


def descend(
    loss: Any,
    penalty: VariationPenalty,
    start: Point,
    direction: Callable[[Array, Array], Array],
    momentum: Momentum | None,
    every: int = 1,
) -> Iterator[Iterate]:
    """The steps that a rule says, along ``direction(gradient, z)``; without a rule ``z+ = z - direction``.

    An iterate is the point z of every ``every``-th step.
    """
    foresee_run(start.x)
    z, u = start, start.x
    for count in itertools.count(1):
        value, slope = penalty.value_and_gradient(z.x)
        gradient = loss.gradient(z) + slope
        if count % every == 0:
            left = gradient if penalty.bounds is None else z.x - penalty.project(z.x - gradient)
            yield Iterate(z, loss.value(z) + value, penalty.size(left))
        away = direction(gradient, z.x)
        size, repeated, back = (1.0, 0.0, 0.0) if momentum is None else momentum.next()
        new = penalty.project(z.x - size * away + repeated * (z.x - u))
        if momentum is not None and count % every == 0:
            momentum.look(inner(gradient, z.x - u), inner(left, away if penalty.bounds is None else left))
        z, u = loss.point(new), penalty.project(z.x - back * away) if back else z.x


def _swept_iterates(
    loss: Any, penalty: VariationPenalty, start: Point, momentum: Momentum, sweep: Any
) -> Iterator[Iterate]:
    """`descend` by compiled sweeps."""
    y, weight = _data(loss, sweep)
    first = y if weight is None and start.x is loss.b else for_sweep(flipped(start.x, sweep.flip))
    old, new = (first, first), (sweep.new_image(), sweep.new_image())
    pixels = math.prod(first.shape)
    while True:
        steps = [momentum.next() for _ in range(STEPS)]
        old, sums = sweep.advance(old, y, weight, steps, new)
        size = penalty.unit * math.sqrt(sums.square / pixels)
        here = loss.point(flipped(old[1], sweep.flip))
        # With the factor of the sweep before, the gradient is that of this place nearly.
        exact, lent = not sweep.norms.subtracted, pixels >= LENT_FROM
        yield Iterate(here, sums.loss + sums.penalty, size, exact=exact, lent=lent)
        if sweep.norms.unsteady:
            momentum.restart()
            yield from descend(loss, penalty, here, lambda gradient, _: gradient, momentum, STEPS)
        del here
        momentum.look(sums.turn, sums.square)
        new = old if pixels >= LENT_FROM else (old[0], sweep.new_image())


def _data(loss: Any, sweep: Any) -> tuple[Array, Array | None]:
    """The image that the loss compares with, and where it does; both as the sweep sees them."""
    if isinstance(loss.A, Identity):
        return for_sweep(flipped(loss.b, sweep.flip)), None
    mask = sent_like(flipped(loss.A.mask, sweep.flip), loss.b)
    weight = for_sweep(namespace(mask).astype(mask, loss.b.dtype))
    return for_sweep(flipped(loss.A.H @ loss.b, sweep.flip)), weight

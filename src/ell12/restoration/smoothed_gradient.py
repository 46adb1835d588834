"""The accelerated gradient method on the smoothed total variation, and what all solvers of images ask for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ell12.backend import inner, namespace
from ell12.checks import check_counts
from ell12.operators import sent_to_device_of
from ell12.operators.image_operators import Identity, Sampling
from ell12.protocols import Array, Iterate, Loss, Needs, Penalty, Point, Solver
from ell12.restoration.stencil import STEPS
from ell12.solvers.proximal_step import next_t

# At the default tol, differences below this fraction of the range are smoothed, as in the paper: its mu is 100
# alpha for images in [0, 1]. The smoothing falls with tol.
SMOOTHED = 0.01
# This fraction of the range is taken for nothing: the strength without noise, the last threshold of ADMM.
NEGLIGIBLE = 1e-4


class ImageLoss(Protocol):
    """A loss of the prediction ``A x`` that tells its operator and its data, such as `AbsoluteLoss`."""

    A: Any
    b: Array
    point: Callable[[Array], Point]
    value: Callable[[Point], float]
    gradient: Callable[[Point], Array]  # or a subgradient


class SmoothImageLoss(ImageLoss, Loss, Protocol):
    """The same of a smooth loss, such as `ell12.SquaredLoss`."""


class VariationPenalty(Penalty, Protocol):
    """A penalty on the differences of neighbouring pixels: `ell12.TotalVariationL12` explains what it holds."""

    smoothing: float | None
    differences: Callable[[Array], Any]  # the operator D for images like x


class ImageSolver(Solver, Protocol):
    """A solver of image restoration, which says whether it minimises the smoothed objective or the true one."""

    smooths: ClassVar[bool]


def is_plain_square(loss: Any) -> bool:
    """Whether the loss is ``1/2 ||A x - b||^2``, with neither scale nor weights."""
    return loss.is_quadratic and loss.scale == 1 and loss.sample_weight is None


def check_smoothing(penalty: Any, smooths: bool, bounded: bool = True) -> None:
    """Raise unless the penalty is smoothed, or not, as a solver needs it, and the solver takes its bounds."""
    if bool(penalty.smoothing) != smooths:
        wanted = "> 0" if smooths else "0"
        raise ValueError(f"this solver needs a TotalVariationL12 with smoothing {wanted}, got {penalty!r}")
    if penalty.bounds is not None and not bounded:
        raise ValueError("this solver takes no bounds; use SmoothedGradient() or GrowingADMM()")


class Momentum:
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
        """The next step: the size, the momentum and the size of the step that is left."""
        t, self.t = self.t, next_t(self.t)
        beta, gamma = min((t - 1) / self.t, self.cap), 0.0 if self.plain else min(t / self.t, self.cap)
        self.count += 1
        leaves_z = self.every is not None and self.count % self.every == 0
        return self.size * (1 + beta + gamma), beta, 0.0 if leaves_z else self.size

    def check(self, turn: float, square: float) -> None:
        """Begin again if the gradient points along the last move: ``<g, z - u>`` there, and ``<g, g>``."""
        if turn > self.size * square:
            self.t = 1.0


@dataclass(frozen=True)
class SmoothedGradient:
    """An accelerated gradient method with restarts, for the smoothed problem.

    ``z+ = z - size gradient(z) + momentum (z - u)``: accelerated, with restart.

    The smoothed penalty is a minimum of quadratics of curvature mu, so that a step of one over
    ``L = ||A||^2 + 4 ndim mu`` never raises the objective. No linear system is solved. The steps are those of the
    optimized gradient method (Kim & Fessler, 2016), of Nesterov's where there are bounds. Momentum begins anew
    when it leads uphill. An iterate is every fourth point z, whose objective and gradient are computed on the way.
    Denoising and inpainting of NumPy images takes the four steps in one compiled sweep, on a GPU one kernel a
    step; everything else, on arrays of any kind, a few passes a step.

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
        check_counts(least=1, threads=self.threads)

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate]:
        """Yield one iterate for four steps."""
        check_smoothing(penalty, smooths=True)
        if not math.isfinite(loss.lipschitz()):
            raise ValueError("SmoothedGradient needs a loss whose Lipschitz constant is finite")
        lipschitz = loss.lipschitz() + penalty.lipschitz or 1.0
        # The squared distance from an image has curvature one everywhere.
        convexity = 1.0 if is_plain_square(loss) and isinstance(loss.A, Identity) else 0.0
        momentum = Momentum(lipschitz, convexity, plain=penalty.bounds is not None, every=STEPS)
        pointwise = is_plain_square(loss) and type(loss.A) in (Identity, Sampling)
        sweep = penalty.sweep(start.x, self.threads) if pointwise else None
        if sweep is None:
            return descend(loss, penalty, start, lambda gradient, _: gradient, momentum, STEPS)
        return _swept_iterates(loss, penalty, start, momentum, sweep)


def descend(
    loss: Any,
    penalty: Any,
    start: Point,
    direction: Callable[[Array, Array], Array],
    momentum: Momentum | None,
    every: int = 1,
) -> Iterator[Iterate]:
    """The steps that a rule says, along ``direction(gradient, z)``; without a rule ``z+ = z - direction``.

    An iterate is the point z of every ``every``-th step.
    """
    evaluate = penalty.evaluator(start.x)
    z, u = start, start.x
    for count in itertools.count(1):
        value, slope = evaluate(z.x)
        gradient = loss.gradient(z) + slope
        if count % every == 0:
            left = gradient if penalty.bounds is None else z.x - penalty.project(z.x - gradient)
            yield Iterate(z, loss.value(z) + value, penalty.size(left))
        away = direction(gradient, z.x)
        size, repeated, back = (1.0, 0.0, 0.0) if momentum is None else momentum.next()
        new = penalty.project(z.x - size * away + repeated * (z.x - u))
        if momentum is not None and count % every == 0:
            momentum.check(inner(gradient, z.x - u), inner(left, away if penalty.bounds is None else left))
        z, u = loss.point(new), penalty.project(z.x - back * away) if back else z.x


def _swept_iterates(loss: Any, penalty: Any, start: Point, momentum: Momentum, sweep: Any) -> Iterator[Iterate]:
    """`descend` by compiled sweeps."""
    y, weight = _data(loss, sweep)
    first = y if weight is None and start.x is loss.b else sweep.laid_out(start.x)
    old, new = (first, first), (sweep.new_image(), sweep.new_image())
    unit, pixels = penalty.unit, math.prod(first.shape)
    while True:
        steps = [momentum.next() for _ in range(STEPS)]
        old, sums = sweep.advance(old, y, weight, steps, new)
        size = unit * math.sqrt(sums.square / pixels)
        here = loss.point(old[1])
        yield Iterate(here, sums.loss + sums.penalty, size, exact=True)
        del here
        momentum.check(sums.turn, sums.square)
        new = old[0], sweep.new_image()


def _data(loss: Any, sweep: Any) -> tuple[Array, Array | None]:
    """The image that the loss compares with, and where it does; both as the sweep sees them."""
    if isinstance(loss.A, Identity):
        return sweep.laid_out(loss.b), None
    mask = sent_to_device_of(loss.A.mask, loss.b)
    weight = sweep.laid_out(namespace(mask).astype(mask, loss.b.dtype))
    return sweep.laid_out(loss.A.H @ loss.b), weight

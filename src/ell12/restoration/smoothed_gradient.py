"""The accelerated gradient method on the smoothed total variation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ell12.backend import inner, is_numpy
from ell12.image_operators import Identity, Sampling
from ell12.protocols import Array, Iterate, Point
from ell12.restoration.stencil import Buffers, Sweep, sweep_for
from ell12.restoration.total_variation import TotalVariationL12


class Momentum:
    """Nesterov's factors, capped where the problem is strongly convex, begun again on demand."""

    def __init__(self, conditioning: float = 0.0) -> None:
        root = math.sqrt(min(conditioning, 1.0))
        self.cap = (1 - root) / (1 + root)
        self.t = 1.0

    def restart(self) -> None:
        """Begin again without momentum."""
        self.t = 1.0

    def next(self) -> float:
        """The next factor."""
        t, self.t = self.t, (1 + math.sqrt(1 + 4 * self.t**2)) / 2
        return min((t - 1) / self.t, self.cap)


@dataclass(frozen=True)
class SmoothedGradient:
    """``x+ = z - gradient(z) / L``, ``z+ = x+ + beta (x+ - x)``: accelerated, with gradient restart.

    The smoothed penalty is a minimum of quadratics of curvature mu, so that a step of one over
    ``L = ||A||^2 + 4 ndim mu`` never raises the objective. No linear system is solved. The iterates are the points
    z, whose objective and gradient each sweep computes on its way. Denoising and inpainting of large NumPy images
    is one compiled sweep a step; everything else, on arrays of any kind, a few passes.

    Parameters
    ----------
    threads : int, optional
        Threads of the compiled sweep; by default one for a quarter of a million pixels, no more than processors.
    """

    smooths: ClassVar[bool] = True

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise ValueError(f"threads must be a whole number >= 1, got {self.threads!r}")

    def iterates(self, loss: Any, penalty: TotalVariationL12, start: Point) -> Iterator[Iterate]:
        """Yield one iterate a step."""
        check_smoothed(penalty)
        lipschitz = loss.lipschitz() + penalty.lipschitz or 1.0
        # The loss of an image alone is as convex as it is smooth.
        momentum = Momentum(1 / lipschitz if isinstance(loss.A, Identity) else 0.0)
        sweep = sweep_for(start.x, penalty, self.threads) if _is_pointwise(loss) else None
        if sweep is None:
            return descend(loss, penalty, start, lambda gradient, _: gradient / lipschitz, momentum)
        return _swept_iterates(loss, penalty, start, lipschitz, momentum, sweep)


def check_smoothed(penalty: Any) -> None:
    """Raise unless the penalty has a smoothed form."""
    if not isinstance(penalty, TotalVariationL12) or penalty.smoothing == 0:
        raise ValueError(f"this solver needs a TotalVariationL12 with smoothing > 0, got {penalty!r}")


def descend(
    loss: Any,
    penalty: TotalVariationL12,
    start: Point,
    step: Callable[[Array, Array], Array],
    momentum: Momentum | None,
) -> Iterator[Iterate]:
    """``x+ = z - step(gradient, z)`` with or without momentum; the step inverts a bound on the curvature."""
    x, z = start.x, start
    while True:
        value, slope = penalty.value_and_gradient(z.x)
        gradient = loss.gradient(z) + slope
        new = penalty.project(z.x - step(gradient, z.x))
        left = gradient if penalty.bounds is None else z.x - penalty.project(z.x - gradient)
        yield Iterate(z, loss.value(z) + value, penalty.size(left))
        if momentum is None:
            z = loss.point(new)
            continue
        move = new - x
        if inner(gradient, move) > 0:
            momentum.restart()
        x, z = new, loss.point(penalty.project(new + momentum.next() * move))


def _swept_iterates(
    loss: Any, penalty: TotalVariationL12, start: Point, lipschitz: float, momentum: Momentum, sweep: Sweep
) -> Iterator[Iterate]:
    y, weight = _data(loss, penalty)
    buffers = Buffers(tuple(start.x.shape), start.x.dtype)
    low, high = penalty.limits
    x = np.array(penalty.flipped(start.x), order="C")
    z, beta = np.ascontiguousarray(penalty.flipped(start.x)), momentum.next()
    while True:
        out = buffers.take()
        sums = sweep.step(z, y, weight, x, out, (1 / lipschitz, beta, low, high))
        yield Iterate(
            loss.point(penalty.flipped(z)),
            sums.loss + sums.penalty,
            penalty.unit * math.sqrt(sums.square / x.size),
            exact=True,
        )
        if sums.turn > 0:
            momentum.restart()
            momentum.next()  # the factor that this sweep should have had, 0
            np.copyto(out, x)
        z, beta = out, momentum.next()


def _is_pointwise(loss: Any) -> bool:
    """Whether the loss is a sum over pixels with weights of 0 and 1."""
    plain = loss.scale == 1 and loss.sample_weight is None and is_numpy(loss.b)
    return plain and type(loss.A) in (Identity, Sampling)


def _data(loss: Any, penalty: TotalVariationL12) -> tuple[Array, Array | None]:
    """The image that the loss compares with, and where it does; both as the sweep sees them."""
    if isinstance(loss.A, Identity):
        return np.ascontiguousarray(penalty.flipped(loss.b)), None
    weight = np.ascontiguousarray(penalty.flipped(loss.A.mask)).astype(loss.b.dtype)
    return np.ascontiguousarray(penalty.flipped(loss.A.H @ loss.b)), weight

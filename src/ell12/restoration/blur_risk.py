"""The strength of a blurred image by generalised cross-validation of what is predicted, as in `risk`.

A tile of a blurred image depends on pixels beyond it. So the middle of the image is restored as if it were all
there is, and judged without the rows near its ends, which see that it is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ell12.backend import inner, like, namespace
from ell12.operators import product
from ell12.operators.image_operators import Convolution
from ell12.protocols import Array
from ell12.restoration.arrangements import MirroredConvolution, Stacked
from ell12.restoration.risk import CHANGE, lowest, random_numbers, signs_like

# The sample is the middle of the image: this part of each axis, but at least so many pixels and four kernels.
PART, LEAST_SIDE = 0.4, 96
# Images with fewer pixels keep the strength that follows from the noise: the search would be mostly chance.
FEWEST_PIXELS = 2**12
# What predicts the blurred image best smooths more than what comes nearest to the sharp one, whose finest details
# the blur hides. On four photographs and two drawings the best strength was 0.5 to 1 times as large.
SHARPER = 0.7
# The runs of the search end at this accuracy: see ``tol`` of `ell12.denoise_tv`.
TOL_SEARCH = 0.02


def strength_under_blur(problem: Any, first: float, noise: float, *, given: bool) -> tuple[float, float] | None:
    """The strength and the noise found with it; None where the data are no blurred image, or a small one.

    ``problem`` is an `ell12.restoration.problems.ImageProblem`, ``first`` the strength at which the search begins,
    and ``noise`` its level, ``given`` or estimated.
    """
    one = problem.A.A if isinstance(problem.A, Stacked) else problem.A
    shape = tuple(problem.y.shape)[-problem.ndim :]
    if type(one) not in (Convolution, MirroredConvolution) or math.prod(shape) < FEWEST_PIXELS:
        return None
    reach = tuple(one.kernel.shape)
    place = tuple(_middle(n, 4 * k) for n, k in zip(shape, reach, strict=True))
    tile = problem.y[(..., *place)]
    A: Any = MirroredConvolution(one.kernel, tuple(tile.shape)[-problem.ndim :])
    if tile.shape == problem.y.shape:
        A = one
    A = A if len(tile.shape) == problem.ndim else Stacked(A, int(tile.shape[0]))
    risk = _BlurRisk(problem, tile, A, _signs(tile, shape, place, reach), noise)
    best = lowest(risk.stein if given else risk.generalised, first)
    return SHARPER * best, noise if given else risk.noise_at(best)


class _BlurRisk:
    """The risk of what is predicted from a tile at strengths tried."""

    def __init__(self, problem: Any, tile: Array, A: Any, signs: Array, noise: float) -> None:
        self.tile, self.A, self.signs, self.noise = tile, A, signs, noise
        self.change, self.count = CHANGE * noise, inner(signs, signs)
        options = {"solver": "accelerated", "tol": TOL_SEARCH, "smooth": True}
        self.solvers = [problem.like(y, A, y, **options) for y in (tile, tile + self.change * signs)]
        self.tried: dict[float, tuple[float, float]] = {}

    def generalised(self, alpha: float) -> float:
        """The generalised cross-validation."""
        square, freedom = self._look(alpha)
        return square / (1 - freedom) ** 2 if freedom < 1 else math.inf

    def stein(self, alpha: float) -> float:
        """Stein's estimate, less a constant."""
        square, freedom = self._look(alpha)
        return square + 2 * self.noise**2 * freedom

    def noise_at(self, alpha: float) -> float:
        """The noise that the residual shows."""
        square, freedom = self._look(alpha)
        return math.sqrt(square / (1 - freedom)) if freedom < 1 else self.noise

    def _look(self, alpha: float) -> tuple[float, float]:
        """The residual and the degrees of freedom, as means over the pixels that are judged."""
        if alpha not in self.tried:
            first, second = (product(self.A, solve(alpha)) for solve in self.solvers)
            away = namespace(first).where(self.signs == 0, 0 * first, first - self.tile)
            free = inner(self.signs, second - first) / self.change
            self.tried[alpha] = inner(away, away) / self.count, free / self.count
        return self.tried[alpha]


def _middle(n: int, least: int) -> slice:
    """The middle of an axis of n pixels."""
    side = max(math.ceil(PART * n), LEAST_SIDE, least)
    side += (n - side) % 2
    return slice((n - side) // 2, (n + side) // 2) if side < n else slice(0, n)


def _signs(tile: Array, shape: tuple[int, ...], place: tuple[slice, ...], reach: tuple[int, ...]) -> Array:
    """Random signs, and zeros where the kernel reaches beyond a tile that ends before the image does."""
    judged = np.ones(tuple(tile.shape)[-len(shape) :])
    for axis, (n, window, k) in enumerate(zip(shape, place, reach, strict=True)):
        if window.stop - window.start < n:
            at = np.arange(window.stop - window.start)
            inside = (at >= k) & (at < at.size - k)
            judged *= inside.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    numbers = np.broadcast_to(random_numbers(shape, place), tuple(tile.shape))
    return signs_like(numbers, tile) * like(np.broadcast_to(judged, tuple(tile.shape)), tile)

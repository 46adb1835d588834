"""The l1-2 total variation of an image, and its smoothed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ell12.backend import is_complex, is_number, is_numpy, max_abs, namespace, norm
from ell12.backend.compiled_code import can_compile
from ell12.checks import as_array, check_counts, check_flags, set_numbers
from ell12.losses import SquaredLoss
from ell12.minimization import minimize
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import FiniteDifference, Identity, as_spacing, flipped
from ell12.protocols import Array
from ell12.prox.batching import row_norms
from ell12.restoration.cuda_stencil import sweep_on_gpu
from ell12.restoration.pixel_steps import cost, shrunk, units
from ell12.restoration.plain_sweep import plain_sweep
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import GrowingADMM
from ell12.restoration.stencil import Sweep, compiled_or_none, envelope_and_gradient
from ell12.restoration.strength import value_range
from ell12.restoration.variation import Bounds

# Images of at least this many pixels are restored by the compiled sweep. Loading it takes 0.4 s, once; the plain
# operations take 0.02 s for an image of this size and 0.1 s for one of 100 x 100, each time.
SWEPT_FROM = 2**10


@dataclass(frozen=True)
class TotalVariationL12:
    r"""The l1-2 total variation of an image.

    ``alpha sum_i (||(D x)_i||_1 - l2_weight ||(D x)_i||_2)`` over the pixels i, D being forward differences.

    With ``isotropic=True`` it is ``alpha (sum_i ||(D x)_i||_2 - l2_weight ||D x||_F)`` for each image.
    With ``smoothing > 0`` each term is replaced by its Moreau envelope,
    ``min_w alpha (||w||_1 - l2_weight ||w||_2) + mu/2 ||w - (D x)_i||^2`` with ``mu = alpha / smoothing``. The sum
    has the gradient ``mu D'(D x - prox(D x))``: it is the paper's penalised problem with its W eliminated.

    Parameters
    ----------
    alpha : float
        Strength, at least 0, in the units of x.
    l2_weight : float, default 0.5
        Weight of the subtracted norm, from 0 (anisotropic total variation) to 1 (the paper's).
    smoothing : float, default 0.01
        The difference below which a step costs quadratically, in the units of x; 0 is the true total variation.
    ndim : int, default 2
        How many of the last axes make an image; the others count images.
    boundary : {"neumann", "periodic"}, default "neumann"
        Past the end of an axis the difference is zero, or the image starts again.
    bounds : tuple of two numbers, optional
        The least and the largest value that x may take; None for none.
    flip : tuple of int, default ()
        The axes, counted from the last (-1), along which differences are backward instead of forward.
    isotropic : bool, default False
        Whether a pixel's differences count by their length, so that edges cost the same in any direction. Then
        one norm is subtracted for the whole image. Beside the sum it is as one beside the square root of the
        number of pixels that lie at edges: on large images ``l2_weight`` hardly matters. Differences are forward,
        so that a mirrored image has another value, unless ``flip`` mirrors the differences as well.
    spacing : float or tuple, optional
        The distances between pixel centres, one for each axis of an image. Differences along an axis are divided
        by its distance over the smallest one; equal distances change nothing.

    See Also
    --------
    denoise_tv : Remove noise.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import TotalVariationL12
    >>> TotalVariationL12(1.0, l2_weight=1.0, smoothing=0.0).value(np.array([[0.0, 3.0], [4.0, 0.0]]))
    2.0
    """

    alpha: float
    l2_weight: float = 0.5
    smoothing: float = 0.01
    ndim: int = 2
    boundary: str = "neumann"
    bounds: Bounds | None = None
    flip: tuple[int, ...] = ()
    isotropic: bool = False
    spacing: Any = None

    def __post_init__(self) -> None:
        set_numbers(self, "alpha", "l2_weight", "smoothing")
        check_counts(least=1, optional=False, ndim=self.ndim)
        if self.l2_weight > 1:
            raise ValueError(f"l2_weight must lie between 0 and 1, got {self.l2_weight}")
        check_flags(isotropic=self.isotropic)
        object.__setattr__(self, "bounds", _as_bounds(self.bounds))
        object.__setattr__(self, "spacing", as_spacing(self.spacing, self.ndim))

    def value(self, x: Array) -> float:
        """The penalty at x, smoothed unless ``smoothing`` is 0; infinite outside the bounds."""
        x = as_array(x, "x")
        if len(x.shape) < self.ndim or 0 in x.shape:
            raise ValueError(f"x must be an image of {self.ndim} axes, got shape {tuple(x.shape)}")
        if not self.allows(x):
            return math.inf
        if self.smoothing == 0:
            return self.true_value(x)
        sweep = self.sweep(x)
        return self.value_and_gradient(x)[0] if sweep is None else sweep.value(flipped(x, sweep.flip))

    def true_value(self, x: Array) -> float:
        """The penalty at x without smoothing."""
        return self.alpha * cost(product(self.differences(x), x), self.l2_weight, self.isotropic)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty and its gradient."""
        sweep = self.sweep(x)
        if sweep is not None:
            value, gradient = sweep.gradient(flipped(x, sweep.flip))
            return value, flipped(gradient, sweep.flip)
        found = plain_sweep(flipped(x, self.flip), self) if is_numpy(x) and x.dtype.char in "fd" else None
        if found is not None:
            return self.mu * found[0], self.mu * flipped(found[1], self.flip)
        options = (self.smoothing, self.l2_weight, self.isotropic)
        value, gradient = envelope_and_gradient(x, self.differences(x), *options)
        return self.mu * value, self.mu * gradient

    def sweep(self, x: Array, threads: int | None = None) -> Any:
        """The compiled sweep for images like x; None where only the plain functions will do."""
        if math.prod(x.shape) < SWEPT_FROM or self.ndim > 3 or self.smoothing == 0:
            return None
        if not is_numpy(x):
            return sweep_on_gpu(x, self)
        if x.dtype.char not in "fd" or not can_compile():
            return None
        return compiled_or_none(self.compiled_sweep(tuple(x.shape), x.dtype, threads))

    def compiled_sweep(self, shape: tuple[int, ...], dtype: Any, threads: int | None, *margin: Any) -> Any:
        """The compiled sweep for NumPy images of a shape; see `ell12.restoration.stencil.Sweep` for margins."""
        return Sweep(shape, dtype, self, threads, *margin)

    def prox(self, x: Array, step: float) -> Array:
        """The minimiser of ``1/2 ||. - x||^2 + step * value(.)``: a denoising problem, solved numerically."""
        loss, penalty = SquaredLoss(Identity(tuple(x.shape)), x), replace(self, alpha=self.alpha * step)
        solver: Any = SmoothedGradient() if self.smoothing else GrowingADMM()
        return minimize(loss, penalty, self.project(x), solver, tol=1e-3).x

    def violation(self, x: Array, gradient: Array) -> float:
        """The size of the gradient of loss plus penalty, less what the bounds hold; see `size`.

        Without smoothing the penalty has subgradients instead, and the best that a few steps find is taken.
        """
        total = gradient + self.slope(x, -gradient)
        return self.size(total if self.bounds is None else x - self.project(x - total))

    def slope(self, x: Array, target: Array) -> Array:
        """The gradient at x; without smoothing a subgradient near the target."""
        return self.value_and_gradient(x)[1] if self.smoothing else nearest_subgradient(self, x, target)

    def shrink(self, differences: Array, rho: float, l2_weight: float) -> Array:
        """The W nearest to the differences that costs least: ``penalty(W) + rho/2 ||W - differences||^2``.

        For the penalty without smoothing; ``l2_weight`` is 0 where the subtracted norm is linearised.
        """
        return shrunk(differences, self.alpha / rho, l2_weight, self.isotropic)

    def relief(self, differences: Array) -> Array:
        """The gradient of the subtracted norm with respect to the differences; zero where that is not defined."""
        return self.alpha * self.l2_weight * units(differences, self.isotropic)

    def size(self, gradient: Array) -> float:
        """The root mean square over the pixels, times ``max(1, mu)``.

        `ell12.minimize` divides it by alpha, so that stationarity is in units of the smaller of alpha and
        smoothing. Not the largest entry: a few pixels that switch between two branches of the prox would decide
        for all.
        """
        return self.unit * norm(gradient) / math.sqrt(math.prod(gradient.shape))

    @property
    def unit(self) -> float:
        """``max(1, mu)``, 1 without smoothing."""
        return max(1.0, self.mu) if self.smoothing else 1.0

    @property
    def mu(self) -> float:
        """The weight of the quadratic, ``alpha / smoothing``."""
        return self.alpha / self.smoothing

    @property
    def lipschitz(self) -> float:
        """A bound on the Lipschitz constant of the smoothed penalty's gradient."""
        spacing = self.relative_spacing
        return 4 * (self.ndim if spacing is None else sum(s**-2 for s in spacing)) * self.mu

    def spread(self, x: Array) -> float:
        """The range of the values of x, nearly without noise."""
        return value_range(flipped(x, self.flip), self.ndim)

    def differences(self, x: Array) -> FiniteDifference:
        """The operator D for images like x."""
        return FiniteDifference(tuple(x.shape), self.boundary, self.ndim, self.flip, self.relative_spacing)

    @property
    def relative_spacing(self) -> tuple[float, ...] | None:
        """The distances between pixels over the smallest one; None where all are equal."""
        if self.spacing is None or len(set(self.spacing)) == 1:
            return None
        return tuple(distance / min(self.spacing) for distance in self.spacing)

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""
        low, high = self.bounds or (None, None)
        return -math.inf if low is None else low, math.inf if high is None else high

    def project(self, x: Array) -> Array:
        """The nearest image within the bounds."""
        return x if self.bounds is None else namespace(x).clip(x, *self.bounds)

    def allows(self, x: Array) -> bool:
        """Whether x lies within the bounds."""
        if self.bounds is not None and is_complex(x):
            raise TypeError("bounds need a real image, got complex numbers")
        return self.bounds is None or max_abs(x - self.project(x)) == 0


def nearest_subgradient(penalty: TotalVariationL12, x: Array, target: Array, steps: int = 50) -> Array:
    """A subgradient ``D'v`` of the unsmoothed penalty at x near the target, by projected gradient steps on v.

    Where a difference is zero (below a thousandth of the largest) v may lie between -alpha and alpha, elsewhere it
    has the difference's sign; the subtracted norm's gradient is fixed by x. Isotropic, the same of the vectors
    that a pixel's differences make.
    """
    D = penalty.differences(x)
    differences = product(D, x)
    xp, size = namespace(differences), row_norms if penalty.isotropic else namespace(differences).abs
    modulus = size(differences)
    zero = modulus <= 1e-3 * float(xp.max(modulus))
    signs = differences / xp.where(modulus > 0, modulus, 1)
    relief = adjoint_product(D, penalty.relief(differences))
    v = previous = penalty.alpha * xp.where(zero, 0 * signs, signs)
    for k in range(steps):
        ahead = v + k / (k + 3) * (v - previous)
        free = ahead - product(D, adjoint_product(D, ahead) - relief - target) / D.norm_squared
        length = size(free)
        scale = penalty.alpha / xp.where(length > penalty.alpha, length, penalty.alpha)
        previous, v = v, xp.where(zero, scale * free, v)
    return adjoint_product(D, v) - relief


def _as_bounds(bounds: Any) -> Bounds | None:
    if bounds is None:
        return None
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be two numbers or None, got {bounds!r}") from None
    if low is None and high is None:
        return None
    for value in (low, high):
        if value is not None and (not is_number(value) or math.isnan(value)):
            raise ValueError(f"bounds must be two numbers or None, got {bounds!r}")
    if low is not None and high is not None and not low <= high:
        raise ValueError(f"bounds must be ordered, got {bounds!r}")
    return (None if low is None else float(low), None if high is None else float(high))

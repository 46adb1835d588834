"""The l1-2 total variation of an image, and its smoothed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, TypedDict

import numpy as np

from ell12.backend import as_array_of, is_complex, is_number, is_numpy, max_abs, namespace, norm
from ell12.backend.compiled_code import can_compile
from ell12.checks import as_array, as_step, check_counts, check_flags, check_word, naming
from ell12.losses import SquaredLoss
from ell12.minimization import Run, minimize
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import FiniteDifference, Identity, as_spacing
from ell12.penalties import PenaltyBase
from ell12.protocols import Array
from ell12.prox.batching import row_norms
from ell12.restoration.pixels import value_range
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.splitting import GrowingADMM
from ell12.restoration.stencil import Sweep, cost, envelope_and_gradient, shrunk
from ell12.restoration.stencil_cuda import sweep_on_gpu

# Images of fewer pixels are restored by plain operations, so that they do not load the compiler.
SWEPT_FROM = 2**10


@dataclass(frozen=True, eq=False, repr=False)
class TotalVariationL12(PenaltyBase):
    r"""The l1-2 total variation of an image: the ``penalty=`` of the functions of images.

    ``alpha sum_i (||(D x)_i||_1 - l2_weight ||(D x)_i||_2)`` over the pixels i, D being forward differences.

    With ``isotropic=True`` it is ``alpha sum_i ||(D x)_i||_2``, for which ``l2_weight`` is 0.
    With ``smoothing > 0`` each term is replaced by its Moreau envelope,
    ``min_w alpha (||w||_1 - l2_weight ||w||_2) + mu/2 ||w - (D x)_i||^2`` with ``mu = alpha / smoothing``. The sum
    has the gradient ``mu D'(D x - prox(D x))``. The penalty is equation 23 of Yao, Kwok & Guo (arXiv:1610.09461),
    the smoothed problem their equation 25 with W eliminated by Proposition IV.3.

    Parameters
    ----------
    alpha : float, optional
        Strength, at least 0, in the units of x. None leaves it to the function that takes the penalty.
    l2_weight : float, optional
        Weight of the subtracted norm, from 0, anisotropic total variation, to 1, the paper's penalty, under which
        edges along the axes cost nothing: good for drawings, poor for photographs. None is 0.5, or 0 if isotropic.
    isotropic : bool, default False
        Whether a pixel's differences count by their length, so that edges cost the same in any direction. Better
        where pixels are missing, 2 to 4 dB on drawings; worse for drawings with noise.
    smoothing : float, optional
        Differences below it cost quadratically, which makes the problem smooth. In the units of x; 0 is the true
        total variation. None lets the functions of images choose: a hundredth of the range of the values at their
        default tol, less with a smaller one. Elsewhere None is 0.
    boundary : {"neumann", "periodic"}, default "neumann"
        Past the end of an axis the difference is zero, or the image starts again.
    bounds : tuple of two numbers, optional
        The least and the largest value that x may take; None for none.
    spacing : float or tuple, optional
        The distances between pixel centres, one for each axis of an image, such as those of voxels.
        Differences along an axis are divided by its distance over the smallest one.
    colour : bool, optional
        Whether three real channels are colours, restored as one problem: ``sum_c w_c TV((T x)_c)`` with T the
        orthogonal axes R+G+B, R-B and R-2G+B, and w 1 for the first, brightness, 2 for the others, whose
        smoothing is doubled too. None: where their edges agree, which is found out; otherwise, and with False,
        channel by channel. Only the functions of images ask for it.
    ndim : int, default 2
        How many of the last axes make an image, the others counting images. The functions of images set it.

    See Also
    --------
    denoise_tv : Remove noise.
    L12 : The penalty as an object for `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import TotalVariationL12
    >>> TotalVariationL12(1.0, l2_weight=1.0).value(np.array([[0.0, 3.0], [4.0, 0.0]]))
    2.0
    """

    weights: ClassVar[tuple[float, ...] | None] = None  # of the images along the first axis; None: all one

    alpha: float | None = None
    l2_weight: float = None  # type: ignore[assignment]  # set by __post_init__
    _: KW_ONLY
    isotropic: bool = False
    smoothing: float | None = None
    boundary: str = "neumann"
    bounds: Any = None
    spacing: Any = None
    colour: bool | None = None
    ndim: int = 2

    def __post_init__(self) -> None:
        check_flags(isotropic=self.isotropic)
        if self.l2_weight is None:
            object.__setattr__(self, "l2_weight", 0.0 if self.isotropic else 0.5)
        self._set_numbers("l2_weight", *([] if self.smoothing is None else ["smoothing"]))
        check_counts(least=1, optional=False, ndim=self.ndim)
        if self.l2_weight > 1:
            raise ValueError(f"l2_weight must lie between 0 and 1, got {self.l2_weight}")
        if self.isotropic and self.l2_weight:
            raise ValueError(f"isotropic=True needs l2_weight=0, got {self.l2_weight}")
        check_word(self.boundary, "boundary", "neumann", "periodic")
        check_flags(optional=True, colour=self.colour)
        object.__setattr__(self, "bounds", _as_bounds(self.bounds))
        if self.spacing is not None:  # of how many axes is known once there is an image
            axes = 1 if is_number(self.spacing) else len(np.atleast_1d(np.asarray(self.spacing, dtype=object)))
            object.__setattr__(self, "spacing", as_spacing(self.spacing, axes))

    def value(self, x: Array) -> float:
        """The penalty at x, smoothed unless ``smoothing`` is 0; infinite outside the bounds."""
        x = as_array(x, "x")
        if len(x.shape) < self.ndim or 0 in x.shape:
            raise ValueError(f"x must be an image of {self.ndim} axes, got shape {tuple(x.shape)}")
        if not self.allows(x):
            return math.inf
        if not self.smoothing:
            return self.true_value(x)
        return self.value_and_gradient(x)[0]

    def true_value(self, x: Array) -> float:
        """The penalty at x without smoothing."""
        steps = self.per_image(self.strength, x) * product(self.differences(x), x)
        return cost(steps, self.l2_weight, self.isotropic)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The smoothed penalty and its gradient."""
        return self.evaluator(x)(x)

    def evaluator(self, x: Array) -> Callable[[Array], tuple[float, Array]]:
        """The function that is `value_and_gradient` for images like x: compiled or not is decided once."""
        sweep = self.sweep(x)
        if sweep is not None:
            return sweep.gradient
        D, t = self.differences(x), self.per_image(self.smoothing or 0.0, x)

        def plain(x: Array) -> tuple[float, Array]:
            value, gradient = envelope_and_gradient(x, D, t, self.l2_weight, self.isotropic)
            return self.mu * value, self.mu * gradient

        return plain

    def sweep(self, x: Array, threads: int | None = None) -> Any:
        """The compiled sweep for images like x; None where only the plain functions will do."""
        if math.prod(x.shape) < SWEPT_FROM or self.ndim > 3 or not self.smoothing:
            return None
        if not is_numpy(x):
            return sweep_on_gpu(x, self)
        return Sweep(tuple(x.shape), x.dtype, self, threads) if x.dtype.char in "fd" and can_compile() else None

    def per_image(self, number: float, x: Array) -> Any:
        """A number times the weight of each image, to be multiplied with the differences of x."""
        if self.weights is None:
            return number
        return as_array_of(np.reshape(number * np.asarray(self.weights), (-1,) + (1,) * len(x.shape)), x)

    def prox(self, x: Array, step: float) -> Array:
        """The minimiser of ``1/2 ||. - x||^2 + step * value(.)``: a denoising problem, solved numerically."""
        x, penalty = as_array(x, "x"), replace(self, alpha=self.strength * as_step(step))
        with naming("x"):
            loss = SquaredLoss(Identity(tuple(x.shape)), x)
        solver: Any = SmoothedGradient() if self.smoothing else GrowingADMM()
        return minimize(loss, penalty, self.project(x), solver, tol=1e-3).x

    def violation(self, x: Array, gradient: Array) -> float:
        """The size of the gradient of loss plus penalty, less what the bounds hold; see `size`.

        Without smoothing the penalty has subgradients instead, and the best that a few steps find is taken.
        """
        slope = self.value_and_gradient(x)[1] if self.smoothing else nearest_subgradient(self, x, -gradient)
        total = gradient + slope
        return self.size(total if self.bounds is None else x - self.project(x - total))

    def shrink(self, differences: Array, rho: float, l2_weight: float) -> Array:
        """The W nearest to the differences that costs least: ``penalty(W) + rho/2 ||W - differences||^2``.

        For the penalty without smoothing; ``l2_weight`` is 0 where the subtracted norm is linearised.
        """
        t = self.per_image(self.strength / rho, differences[..., 0])
        return shrunk(differences, t, l2_weight, self.isotropic)

    def relief(self, differences: Array) -> Array:
        """The gradient of the subtracted norm with respect to the differences; zero where that is not defined."""
        alpha = self.per_image(self.strength, differences[..., 0])
        lengths = row_norms(differences)
        return alpha * self.l2_weight * differences / namespace(lengths).where(lengths > 0, lengths, 1)

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
        return self.strength / self.smoothing  # type: ignore[operator]

    @property
    def lipschitz(self) -> float:
        """A bound on the Lipschitz constant of the smoothed penalty's gradient."""
        spacing = self.relative_spacing
        return 4 * (self.ndim if spacing is None else sum(s**-2 for s in spacing)) * self.mu

    def spread(self, x: Array) -> float:
        """The range of the values of x, nearly without noise."""
        return value_range(x, self.ndim)

    def differences(self, x: Array) -> FiniteDifference:
        """The operator D for images like x."""
        return FiniteDifference(tuple(x.shape), self.boundary, self.ndim, self.relative_spacing)

    @property
    def relative_spacing(self) -> tuple[float, ...] | None:
        """The distances between pixels over the smallest one; None where all are equal."""
        if self.spacing is None or len(set(self.spacing)) == 1:
            return None
        return tuple(distance / min(self.spacing) for distance in self.spacing)

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers."""
        return self.bounds or (-math.inf, math.inf)

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
    signs, alpha = differences / xp.where(modulus > 0, modulus, 1), penalty.per_image(penalty.strength, x)
    relief = adjoint_product(D, penalty.relief(differences))
    v = previous = alpha * xp.where(zero, 0 * signs, signs)
    for k in range(steps):
        ahead = v + k / (k + 3) * (v - previous)
        free = ahead - product(D, adjoint_product(D, ahead) - relief - target) / D.norm_squared
        length = size(free)
        scale = alpha / xp.where(length > alpha, length, alpha)
        previous, v = v, xp.where(zero, scale * free, v)
    return adjoint_product(D, v) - relief


def _as_bounds(bounds: Any) -> tuple[float, float] | None:
    """The bounds as numbers, infinite ones where there is none; None without either."""
    if bounds is None:
        return None
    try:
        low, high = (k * math.inf if value is None else value for k, value in zip((-1, 1), bounds, strict=True))
    except (TypeError, ValueError):
        low = high = math.nan
    if not (is_number(low) and is_number(high)) or math.isnan(low) or math.isnan(high):
        raise ValueError(f"bounds must be two numbers or None, got {bounds!r}")
    if low > high:
        raise ValueError(f"bounds must be ordered, got {bounds!r}")
    return None if (low, high) == (-math.inf, math.inf) else (float(low), float(high))


class ImageArguments(TypedDict, total=False):
    """What functions of images may be given by name."""

    image: Any
    data: Any
    y: Any
    A: Any
    psf: Any
    mask: Any
    alpha: float | str | None
    penalty: TotalVariationL12 | None
    sigma: float | None
    loss: str
    channel_axis: int | None
    real: bool | None
    solver: Any
    tol: float
    max_iter: int
    run: Run | None

"""Image restoration by l1-2 total variation: plain functions of an image and a strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ell12.backend import namespace
from ell12.image_operators import Convolution, FourierSampling, Identity, Sampling
from ell12.losses import SquaredLoss
from ell12.minimization import Result, minimize
from ell12.operators import adjoint, as_operator, input_shape
from ell12.protocols import Array
from ell12.restoration.images import as_image, channels_back, channels_first
from ell12.restoration.noise import estimate_noise, strength_for_noise, value_range
from ell12.restoration.smoothed_gradient import SmoothedGradient
from ell12.restoration.total_variation import Bounds, TotalVariationL12

TOL, MAX_ITER = 0.03, 1000


@dataclass(frozen=True)
class Restoration:
    """An image restored, and how.

    Attributes
    ----------
    image : array
        The restored image.
    alpha : float
        The strength used, chosen or given.
    noise : float or None
        The noise level it was chosen from; None where alpha was given.
    runs : tuple of Result
        One per spin; their x has its channels, if any, along the first axis.
    """

    image: Array
    alpha: float
    noise: float | None
    runs: tuple[Result, ...]

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)


@dataclass(frozen=True)
class Options:
    """The options that all restoration functions share; see `denoise_tv`."""

    l2_weight: float = 0.5
    smoothing: float = 0.01
    noise: float | None = None
    channel_axis: int | None = None
    boundary: str = "neumann"
    spins: int = 1
    bounds: Bounds | None = None
    solver: Any = "accelerated"
    tol: float = TOL
    max_iter: int = MAX_ITER
    measure: Mapping[str, Callable[[Array], float]] | None = None
    objectives: bool = False
    stop: Callable[[dict[str, list[float]]], bool] | None = None
    return_result: bool = False


def denoise_tv(
    image: Array,
    alpha: float | str | None = None,
    *,
    l2_weight: float = 0.5,
    smoothing: float = 0.01,
    noise: float | None = None,
    channel_axis: int | None = None,
    boundary: str = "neumann",
    spins: int = 1,
    bounds: Bounds | None = None,
    solver: Any = "accelerated",
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    measure: Mapping[str, Callable[[Array], float]] | None = None,
    objectives: bool = False,
    stop: Callable[[dict[str, list[float]]], bool] | None = None,
    return_result: bool = False,
) -> Any:
    """Denoise an image by l1-2 total variation.

    Examples
    --------
    >>> import numpy as np
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> bool(np.std(denoise_tv(noisy) - clean) < 0.04)
    True
    """
    options = Options(
        l2_weight,
        smoothing,
        noise,
        channel_axis,
        boundary,
        spins,
        bounds,
        solver,
        tol,
        max_iter,
        measure,
        objectives,
        stop,
        return_result,
    )
    y, ndim = channels_first(as_image(image), channel_axis)
    return _restore(y, Identity(tuple(y.shape)), y, ndim, alpha, options)


def deblur_tv(image: Array, kernel: Array, alpha: float | str | None = None, **options: Any) -> Any:
    """Undo a convolution, by l1-2 total variation; the options are those of `denoise_tv`."""
    chosen = Options(**options)
    y, ndim = channels_first(as_image(image), chosen.channel_axis)
    kernel = as_image(kernel, "kernel")
    if len(kernel.shape) != ndim:
        raise ValueError(f"kernel must have {ndim} axes like the image, got shape {tuple(kernel.shape)}")
    if len(y.shape) > ndim:
        kernel = kernel[None, ...]
    return _restore(y, Convolution(kernel, tuple(y.shape)), y, ndim, alpha, chosen)


def inpaint_tv(image: Array, mask: Array, alpha: float | str | None = None, **options: Any) -> Any:
    """Fill in the pixels where ``mask`` is False from those where it is True."""
    chosen = Options(**options)
    y, ndim = channels_first(as_image(image), chosen.channel_axis)
    xp = namespace(y)
    known = xp.broadcast_to(xp.asarray(mask), y.shape)
    A = Sampling(known)
    samples = A @ y
    return _restore(samples, A, xp.where(known, y, xp.mean(samples)), ndim, alpha, chosen)


def reconstruct_mri(data: Array, mask: Array, alpha: float | str | None = None, **options: Any) -> Any:
    """An image from some of its Fourier coefficients."""
    A = FourierSampling(mask)
    return restore_tv(data, A, alpha, **options)


def restore_tv(y: Array, A: Any, alpha: float | str | None = None, *, shape: Any = None, **options: Any) -> Any:
    """An image from linear measurements ``y = A x + noise``; the options are those of `denoise_tv`."""
    chosen = Options(**options)
    A = as_operator(A)
    shape = input_shape(A) if shape is None else tuple(shape)
    if tuple(input_shape(A)) != shape:
        raise NotImplementedError
    y = as_image(y, "y")
    start = adjoint(A) @ y
    return _restore(y, A, start, len(shape), alpha, chosen)


def _restore(y: Array, A: Any, start: Array, ndim: int, alpha: Any, options: Options) -> Any:
    alpha, noise = _strength(alpha, options, start, ndim)
    loss = SquaredLoss(A, y)
    penalty = TotalVariationL12(
        alpha, options.l2_weight, options.smoothing, ndim, options.boundary, options.bounds
    )
    runs = (_run(loss, penalty, start, options),)
    image = channels_back(runs[0].x, options.channel_axis)
    restoration = Restoration(image, alpha, noise, runs)
    if options.return_result:
        return restoration
    return image


def _strength(alpha: Any, options: Options, image: Array, ndim: int) -> tuple[float, float | None]:
    if alpha is not None:
        return alpha, None
    noise = estimate_noise(image, ndim) if options.noise is None else options.noise
    return strength_for_noise(noise, options.l2_weight, value_range(image, noise)), noise


def _run(loss: SquaredLoss, penalty: TotalVariationL12, start: Array, options: Options) -> Result:
    solver = SmoothedGradient() if options.solver == "accelerated" else options.solver
    limits = {"tol": options.tol, "max_iter": options.max_iter, "stop": options.stop}
    return minimize(loss, penalty, penalty.project(start), solver, **limits)

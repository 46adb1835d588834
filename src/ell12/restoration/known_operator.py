"""Images from measurements by a known operator: a blur, Fourier coefficients, any linear map."""

from __future__ import annotations

import contextlib
import math
import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import (
    as_floating,
    beside,
    inner,
    is_array,
    is_complex,
    is_numpy,
    namespace,
    real_dtype,
    refuse_masked,
)
from ell12.checks import check_entries, check_flags
from ell12.operators import adjoint, adjoint_product, as_operator, dtype_of, input_shape, output_shape, product
from ell12.operators.image_operators import (
    Convolution,
    FourierSampling,
    MirroredConvolution,
    RealInput,
    Reshaped,
    Sampling,
    Stacked,
    as_shape,
)
from ell12.protocols import Array
from ell12.restoration.pixels import as_image, as_mask, channels_first, mask_like, without_unknown
from ell12.restoration.restore import (
    MAX_ITER,
    TOL,
    ImageModel,
    ImageProblem,
    ImageRun,
    Measures,
    Stop,
)
from ell12.restoration.sigma import noise_level
from ell12.restoration.splitting import TotalVariationDCA
from ell12.restoration.strength import strength_for_deblurring
from ell12.restoration.variation import Bounds


def deblur_tv(
    image: Array,
    kernel: Array,
    alpha: float | str | None = None,
    *,
    l2_weight: float = 0.0,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    colour: bool | None = None,
    boundary: str = "neumann",
    bounds: Bounds | None = None,
    isotropic: bool = False,
    spacing: float | tuple[float, ...] | None = None,
    loss: str = "squared",
    solver: Any = "accelerated",
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    measure: Measures | None = None,
    objectives: bool = False,
    stop: Stop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    return_result: bool = False,
) -> Any:
    """Undo a known blur.

    Minimises ``1/2 ||kernel * x - image||^2`` plus the penalty of `denoise_tv`.

    Parameters
    ----------
    image : array
        As in `denoise_tv`.
    kernel : array
        The blur, with as many axes as one channel of the image, none longer; its centre is its entry ``size //
        2``.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`; None tries strengths on the middle of the image, two runs each, and takes the one that
        predicts the blurred image best, a little less. Of small images it is ``0.6 noise^(3/2)``, in units of the
        image's range.
    l2_weight : float, default 0.0
        As in `denoise_tv`. By default 0: a blur hides what tells edges apart, and what is gained elsewhere by more
        is lost on photographs.
    boundary : {"neumann", "periodic"}, default "neumann"
        With "neumann" the blur sees the image's mirror image past its ends (the default of scipy.ndimage), with
        "periodic" the image again, and each step is one Fourier transform.
    smoothing, noise, channel_axis, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    See Also
    --------
    denoise_tv : Remove noise.
    restore_tv : An image from any linear measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import deblur_tv
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> from ell12.operators.image_operators import Convolution
    >>> kernel = np.full((3, 3), 1 / 9)
    >>> blurred = Convolution(kernel, clean.shape) @ clean
    >>> sharp = deblur_tv(blurred, kernel, 1e-4, boundary="periodic")
    >>> bool(np.std(sharp - clean) < 0.1 * np.std(blurred - clean))
    True
    """
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = ImageProblem(y, blur(kernel, y, ndim, boundary), y, ndim, model, run)
    return problem.restore(alpha, lambda: noise_level(y, ndim), strength_for_deblurring)


# Coefficients without noise are completed by convex problems of 100 steps each, the first being total variation.
# So the head phantom of 256 x 256 pixels is found from 12 radial lines; with 50 steps it took more in all. Each
# problem lowers the objective by a thousandth or more on the way there, on a photograph soon by less.
NOISE_FREE_SOLVER = TotalVariationDCA(inner_tol=1e-5, inner_max_iter=100, convex_start=True, least_gain=3e-4)


def reconstruct_mri(
    data: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
    real: bool | None = None,
    l2_weight: float = 0.5,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    colour: bool | None = None,
    boundary: str = "periodic",
    bounds: Bounds | None = None,
    isotropic: bool = False,
    spacing: float | tuple[float, ...] | None = None,
    loss: str = "squared",
    solver: Any = "accelerated",
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    measure: Measures | None = None,
    objectives: bool = False,
    stop: Stop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    return_result: bool = False,
) -> Any:
    """Reconstruct an image from some of its Fourier coefficients.

    Minimises ``1/2 ||F_mask x - data||^2`` plus the penalty.

    Parameters
    ----------
    data : complex array
        The coefficients that the mask keeps of the orthonormal transform, as a vector, or all of them in the shape
        of the mask, of which those outside it are not looked at. With ``channel_axis`` one such array per channel
        (coil).
    mask : array of bool
        True where a coefficient is measured, the zero frequency first (``ifftshift`` of a centred mask).
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`. None needs ``noise``; with ``noise=0`` the coefficients are kept as they are, to a
        millionth, and the true objective is minimised by `TotalVariationDCA` from the convex solution on, unless
        ``smoothing``, ``solver`` or the boundary ask for something else.
    real : bool, optional
        Whether the image is real; complex by default, unless there are ``bounds``.
    boundary : {"neumann", "periodic"}, default "periodic"
        As in `denoise_tv`, but by default "periodic", so that each step is one transform.
    l2_weight, smoothing, noise, channel_axis, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        The image; its zero frequency is that of the data.

    See Also
    --------
    restore_tv : An image from any linear measurements.
    denoise_tv : Remove noise.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import reconstruct_mri
    >>> clean = np.zeros((16, 16)); clean[4:12, 4:12] = 1
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.7
    >>> image = reconstruct_mri(np.fft.fftn(clean, norm="ortho"), mask, noise=0.0, real=True, smoothing=1e-3)
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    plain = alpha is None and smoothing is None and solver == "accelerated" and loss == "squared"
    if noise == 0 and plain and boundary == "periodic":
        solver = NOISE_FREE_SOLVER
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    check_flags(real=False if real is None else real)
    refuse_masked(data, "data")
    mask = as_mask(mask)
    with contextlib.suppress(ValueError):  # the samples alone have another shape
        data = without_unknown(data, mask_like(mask, data, channel_axis))
    y, _ = channels_first(as_image(data, "data"), channel_axis)
    y, A = fourier_samples(y, mask, channel_axis is not None, bounds is not None if real is None else real)
    return ImageProblem(y, A, adjoint(A) @ y, len(mask.shape), model, run).restore(alpha)


def restore_tv(
    y: Array,
    A: Any,
    alpha: float | str | None = None,
    *,
    shape: tuple[int, ...] | None = None,
    l2_weight: float = 0.5,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    colour: bool | None = None,
    boundary: str = "neumann",
    bounds: Bounds | None = None,
    isotropic: bool = False,
    spacing: float | tuple[float, ...] | None = None,
    loss: str = "squared",
    solver: Any = "accelerated",
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    measure: Measures | None = None,
    objectives: bool = False,
    stop: Stop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    return_result: bool = False,
) -> Any:
    """Restore an image from any linear measurements.

    Minimises ``1/2 ||A x - y||^2`` plus the penalty of `denoise_tv`.

    Parameters
    ----------
    y : array
        The measurements.
    A : operator
        A matrix, a SciPy LinearOperator or a pylops operator, which act on the image's entries row by row, or one
        of `ell12.operators.image_operators`.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`; None needs ``noise``.
    shape : tuple of int, optional
        The shape of the image, needed where A does not tell it. With ``channel_axis=0`` its first axis counts
        channels.
    channel_axis : {0, None}, optional
        As in `denoise_tv`.
    l2_weight, smoothing, noise, boundary, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    See Also
    --------
    denoise_tv : Remove noise.
    reconstruct_mri : An image from Fourier coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import restore_tv
    >>> clean = np.zeros((8, 8)); clean[:, 4:] = 1
    >>> A = np.random.default_rng(0).standard_normal((40, 64))
    >>> image = restore_tv(A @ clean.reshape(-1), A, 1e-3, shape=(8, 8))
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    if channel_axis not in (None, 0):
        raise ValueError(f"channel_axis must be 0 or None for a general operator, got {channel_axis!r}")
    A = as_operator(A)
    y = beside(as_image(y, "y"), A, "y")
    if is_array(A) and not is_numpy(A):  # other libraries multiply arrays of one precision only
        y = namespace(A).astype(y, A.dtype)
    A = on_images(A, shape)
    if math.prod(y.shape) != math.prod(output_shape(A)):
        raise ValueError(f"y must have shape {output_shape(A)} to fit A, got {tuple(y.shape)}")
    y, ndim = namespace(y).reshape(y, output_shape(A)), len(input_shape(A)) - (channel_axis is not None)
    return ImageProblem(y, A, first_image(A, y), ndim, model, run).restore(alpha)


def blur(kernel: Any, y: Array, ndim: int, boundary: str) -> Any:
    """The convolution of each channel, periodic or of the image continued by its mirror image."""
    kernel = as_floating(kernel, "kernel")
    if not is_numpy(kernel) and type(kernel) is not type(y):
        raise TypeError(f"kernel must be a NumPy array or one like the image, got {type(kernel).__name__}")
    check_entries(kernel, "kernel")
    if len(kernel.shape) != ndim:
        raise ValueError(
            f"kernel must have {ndim} axes like one channel of the image, got shape {tuple(kernel.shape)}"
        )
    if not is_complex(kernel):
        kernel = namespace(kernel).astype(kernel, real_dtype(y)) if type(kernel) is type(y) else kernel
    shape = tuple(y.shape)[len(y.shape) - ndim :]
    A: Any = Convolution(kernel, shape)  # also checks the kernel
    A = MirroredConvolution(A.kernel, shape) if boundary == "neumann" else A
    return A if len(y.shape) == ndim else Stacked(A, int(y.shape[0]))


def fourier_samples(y: Array, mask: Array, channels: bool, real: bool) -> tuple[Array, Any]:
    """The coefficients that the mask keeps, of data given as such or on the whole grid, and their operator."""
    A: Any = FourierSampling(mask)
    one: Any = Sampling(mask)
    if channels:
        A, one = Stacked(A, int(y.shape[0])), Stacked(one, int(y.shape[0]))
    if tuple(y.shape) == input_shape(A):
        y = one @ y
    elif tuple(y.shape) != output_shape(A):
        count = output_shape(A)[-1]
        raise ValueError(
            f"data must have the mask's shape or hold its {count} samples, got shape {tuple(y.shape)}"
        )
    xp = namespace(y)
    y = y if is_complex(y) else y + xp.zeros_like(y) * 1j
    return (xp.stack([xp.real(y), xp.imag(y)], axis=-1), RealInput(A)) if real else (y, A)


def on_images(A: Any, shape: Any) -> Any:
    """The operator A as one that acts on images."""
    known = input_shape(A)
    if shape is None:
        shape = getattr(A, "dims", known)
        if len(shape) == 1 and dtype_of(A) is not None:
            raise ValueError("shape must be given: A acts on vectors, and does not tell the shape of the image")
    shape = as_shape(shape)
    return A if shape == known else Reshaped(A, shape)


def first_image(A: Any, y: Array) -> Array:
    """A constant plus the adjoint of what it leaves of the data, scaled to fit: it follows shifts and units."""
    x = adjoint_product(A, y)
    flat = namespace(x).ones_like(x)
    image = product(A, flat)
    level = _fit(image, y)
    left = y - level * image
    rest = adjoint_product(A, left)
    return level * flat + _fit(product(A, rest), left) * rest


def _fit(image: Array, y: Array) -> complex:
    """The factor by which an image of A comes nearest to the data; a real one for real data."""
    square = inner(image, image) or 1.0
    fit = inner(image, y) / square
    return complex(fit, inner(1j * image, y) / square) if is_complex(image) and is_complex(y) else fit

"""Image restoration by l1-2 total variation: plain functions of an image and a strength."""

from __future__ import annotations

import contextlib
import math
import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import beside, is_array, is_numpy, namespace, refuse_masked
from ell12.checks import check_flags
from ell12.operators import adjoint, as_operator, input_shape, output_shape
from ell12.operators.images import Identity, Sampling
from ell12.protocols import Array
from ell12.restoration.arrangements import blur, first_image, fourier_samples, on_images
from ell12.restoration.images import as_image, as_mask, channels_first, filled, mask_like, without_unknown
from ell12.restoration.noise import estimate_noise
from ell12.restoration.problems import ImageModel, ImageProblem, ImageRun, Measures, Stop
from ell12.restoration.strength import strength_for_deblurring
from ell12.restoration.variation import Bounds

# A run ends after this many iterations in any case. Denoising a photograph takes about ten.
MAX_ITER = 5000
# A denoised image is as near to the exact one as its gradient is small. The other problems are less well
# conditioned, so that a small gradient says less about the image: they are solved to a tenth of that.
TOL_DENOISING, TOL = 0.05, 0.005


def denoise_tv(
    image: Array,
    alpha: float | str | None = None,
    *,
    l2_weight: float = 0.5,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    boundary: str = "neumann",
    spins: int = 1,
    bounds: Bounds | None = None,
    solver: Any = "accelerated",
    tol: float = TOL_DENOISING,
    max_iter: int = MAX_ITER,
    measure: Measures | None = None,
    objectives: bool = False,
    stop: Stop | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    return_result: bool = False,
) -> Any:
    """Denoise: minimise ``1/2 ||x - image||^2 + alpha sum_i (||(D x)_i||_1 - l2_weight ||(D x)_i||_2)``.

    ``(D x)_i`` are the differences between pixel i and its next neighbour along each axis.

    Parameters
    ----------
    image : array
        Of any number of axes, real or complex; NumPy, PyTorch, CuPy or JAX. As in scikit-image, integers are
        scaled to [0, 1] (signed ones to [-1, 1]) and come back as float64; float32 stays float32.
    alpha : float, "held-out" or None
        Strength, in the units of the image: a step between two flat regions loses ``alpha / width`` of its height
        on a region of that width in pixels. It does not depend on the image's size. None chooses
        ``2.6 noise^(4/3)`` in units of the image's range, the best found on photographs at ``l2_weight`` 0.5.
        "held-out" chooses what best predicts pixels that were held out. `Restoration.alpha` says what was chosen.
    l2_weight : float
        From 0, anisotropic total variation, to 1, the paper's penalty, under which edges along the axes cost
        nothing: good for drawings, poor for photographs.
    smoothing : float, optional
        Differences below it cost quadratically, which makes the problem smooth. In the units of the image; by
        default a hundredth of the range of its values. The paper's mu is ``alpha / smoothing``. 0 minimises the
        true objective.
    noise : float, optional
        Standard deviation of the noise; estimated from the image by default. Only used where alpha is chosen.
    channel_axis : int, optional
        The axis of channels, which are restored side by side; by default the image has none.
    boundary : {"neumann", "periodic"}
        Past the end of an axis the difference is zero, or the image starts again.
    spins : int
        Average the results for this number of the ``2^ndim`` corners at which differences may begin.
    bounds : tuple of two numbers, optional
        The least and the largest value of x; None for none.
    solver : "accelerated" or Solver
        `SmoothedGradient`, `AlternatingMinimization`, `TotalVariationDCA` or `GrowingADMM`; "accelerated" takes
        what suits the problem. The last two minimise the true objective, whatever ``smoothing`` says.
    tol : float
        Stop when the root mean square of the gradient falls to tol times the smaller of alpha and smoothing.
        0.005 by default in the other functions, whose problems are less well conditioned.
    max_iter : int
        Stop after this number of iterations in any case, with a warning unless ``return_result`` is set. An
        iteration of the default solver is four steps.
    measure : dict of functions, optional
        Each function of the image becomes a column of the runs' histories.
    objectives : bool
        Add the columns "smoothed" and "true", both objectives at each iteration.
    stop : function, optional
        Called with the history after each iteration; the run ends when it returns true. For progress displays too.
    checkpoint : path, optional
        An ``.npz`` file that follows the run, so that a crash costs no more than ``checkpoint_seconds``; see
        `ell12.minimize`. Of several spins each has its own, ``name-0.npz``, ``name-1.npz`` and so on.
    checkpoint_seconds : float
        How often to write it.
    resume : bool
        Go on from the checkpoint, if there is one.
    return_result : bool
        Return a `Restoration`, with the strength chosen and the runs' results.

    Returns
    -------
    array or Restoration
        The image, of the same kind as the one given.

    References
    ----------
    Lou, Zeng, Osher & Xin, A weighted difference of anisotropic and isotropic total variation model for image
    processing, doi:10.1137/14098435X.

    Examples
    --------
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> bool(np.std(denoise_tv(noisy) - clean) < 0.04)
    True
    """
    model = ImageModel(l2_weight, smoothing, noise, channel_axis, boundary, spins, bounds, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = ImageProblem(y, Identity(tuple(y.shape)), y, ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim))


def deblur_tv(
    image: Array,
    kernel: Array,
    alpha: float | str | None = None,
    *,
    l2_weight: float = 0.5,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    boundary: str = "neumann",
    spins: int = 1,
    bounds: Bounds | None = None,
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
    """Undo a blur: minimise ``1/2 ||kernel * x - image||^2`` plus the penalty of `denoise_tv`.

    Parameters
    ----------
    image : array
        As in `denoise_tv`.
    kernel : array
        The blur, with as many axes as one channel of the image, none longer; its centre is its entry ``size //
        2``.
    alpha : float, "held-out" or None
        As in `denoise_tv`; None chooses ``1.2 noise^(3/2)`` (in units of the image's range), within a factor of
        three of the best on photographs; "held-out" comes closer.
    boundary : {"neumann", "periodic"}
        With "neumann" the blur sees the image's mirror image past its ends (the default of scipy.ndimage), with
        "periodic" the image again, and each step is one Fourier transform.
    l2_weight, smoothing, noise, channel_axis, spins, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    Examples
    --------
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> from ell12.operators.images import Convolution
    >>> kernel = np.full((3, 3), 1 / 9)
    >>> blurred = Convolution(kernel, clean.shape) @ clean
    >>> sharp = deblur_tv(blurred, kernel, 1e-4, boundary="periodic")
    >>> bool(np.std(sharp - clean) < 0.1 * np.std(blurred - clean))
    True
    """
    model = ImageModel(l2_weight, smoothing, noise, channel_axis, boundary, spins, bounds, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = ImageProblem(y, blur(kernel, y, ndim, boundary), y, ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim), strength_for_deblurring)


def inpaint_tv(
    image: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
    l2_weight: float = 0.5,
    smoothing: float | None = None,
    noise: float | None = None,
    channel_axis: int | None = None,
    boundary: str = "neumann",
    spins: int = 1,
    bounds: Bounds | None = None,
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
    """Fill in missing pixels: ``1/2 ||x - image||^2`` over the known ones plus the penalty of `denoise_tv`.

    Parameters
    ----------
    image : array
        As in `denoise_tv`; what it holds at unknown pixels, NaN included, is not looked at.
    mask : array of bool
        True where a pixel is known, of the shape of the image or of one channel.
    alpha : float, "held-out" or None
        As in `denoise_tv`, the noise being estimated where neighbouring pixels are known; a ten-thousandth of the
        range where there is none. A small alpha keeps the known pixels nearly as they are.
    l2_weight, smoothing, noise, channel_axis, boundary, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    Examples
    --------
    >>> clean = np.zeros((32, 32)); clean[:, 16:] = 1
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.5
    >>> bool(np.abs(inpaint_tv(clean, mask, 1e-3) - clean).max() < 0.05)
    True
    """
    model = ImageModel(l2_weight, smoothing, noise, channel_axis, boundary, spins, bounds, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    refuse_masked(image, "image")
    known = mask_like(mask, image, channel_axis)
    y, ndim = channels_first(as_image(without_unknown(image, known)), channel_axis)
    known, _ = channels_first(known, channel_axis)
    A = Sampling(known)
    problem = ImageProblem(A @ y, A, filled(y, known, ndim), ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim, known))


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
    boundary: str = "periodic",
    spins: int = 1,
    bounds: Bounds | None = None,
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
    """An image from some of its Fourier coefficients: ``1/2 ||F_mask x - data||^2`` plus the penalty.

    Parameters
    ----------
    data : complex array
        The coefficients that the mask keeps of the orthonormal transform, as a vector, or all of them in the shape
        of the mask, of which those outside it are not looked at. With ``channel_axis`` one such array per channel
        (coil).
    mask : array of bool
        True where a coefficient is measured, the zero frequency first (``ifftshift`` of a centred mask).
    alpha : float, "held-out" or None
        As in `denoise_tv`. None needs ``noise``; with ``noise=0`` the coefficients are kept as they are, to a
        millionth.
    real : bool, optional
        Whether the image is real; complex by default, unless there are ``bounds``.
    boundary : {"neumann", "periodic"}
        As in `denoise_tv`, but by default "periodic", so that each step is one transform.
    l2_weight, smoothing, noise, channel_axis, spins, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        The image; its zero frequency is that of the data.

    Examples
    --------
    >>> clean = np.zeros((16, 16)); clean[4:12, 4:12] = 1
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.7
    >>> image = reconstruct_mri(np.fft.fftn(clean, norm="ortho"), mask, noise=0.0, real=True, smoothing=1e-3)
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    model = ImageModel(l2_weight, smoothing, noise, channel_axis, boundary, spins, bounds, solver)
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
    boundary: str = "neumann",
    spins: int = 1,
    bounds: Bounds | None = None,
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
    """An image from any linear measurements: ``1/2 ||A x - y||^2`` plus the penalty of `denoise_tv`.

    Parameters
    ----------
    y : array
        The measurements.
    A : operator
        A matrix, a SciPy LinearOperator or a pylops operator, which act on the image's entries row by row, or one
        of `ell12.operators.images`.
    alpha : float, "held-out" or None
        As in `denoise_tv`; None needs ``noise``.
    shape : tuple of int, optional
        The shape of the image, needed where A does not tell it. With ``channel_axis=0`` its first axis counts
        channels.
    channel_axis : {0, None}
        As in `denoise_tv`.
    l2_weight, smoothing, noise, boundary, spins, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    Examples
    --------
    >>> clean = np.zeros((8, 8)); clean[:, 4:] = 1
    >>> A = np.random.default_rng(0).standard_normal((40, 64))
    >>> image = restore_tv(A @ clean.reshape(-1), A, 1e-3, shape=(8, 8))
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    model = ImageModel(l2_weight, smoothing, noise, channel_axis, boundary, spins, bounds, solver)
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

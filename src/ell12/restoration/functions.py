"""Image restoration by l1-2 total variation: plain functions of an image and a strength."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ell12.backend import (
    as_floating,
    inner,
    is_array,
    is_complex,
    is_number,
    namespace,
    real_dtype,
)
from ell12.operators import adjoint, as_operator, dtype_of, input_shape, output_shape
from ell12.operators.images import Convolution, FourierSampling, Identity, Sampling, as_shape
from ell12.protocols import Array
from ell12.restoration.arrangements import Cropped, Mirrored, RealInput, Reshaped, Stacked
from ell12.restoration.images import as_image, channels_first, filled, mask_like, without_unknown
from ell12.restoration.noise import estimate_noise
from ell12.restoration.problems import MAX_ITER, TOL_DENOISING, Options, Problem
from ell12.restoration.strength import strength_for_deblurring, strength_for_noise, value_range
from ell12.restoration.total_variation import Bounds


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
    tol: float = TOL_DENOISING,
    max_iter: int = MAX_ITER,
    measure: Mapping[str, Callable[[Array], float]] | None = None,
    objectives: bool = False,
    stop: Callable[[dict[str, list[float]]], bool] | None = None,
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
        Strength, in the units of the image: a step of height h between two flat regions is flattened by
        ``alpha / width`` on a region so many pixels wide. It does not depend on the image's size. None chooses
        ``2.6 noise^(4/3)`` (in units of the image's range or 1, whichever is larger), the best found on
        photographs at ``l2_weight`` 0.5;
        "held-out" the one that best predicts pixels that were held out. `Restoration.alpha` says what was chosen.
    l2_weight : float
        From 0, anisotropic total variation, to 1, the paper's penalty, under which edges along the axes cost
        nothing: good for drawings, poor for photographs.
    smoothing : float
        Differences below it cost quadratically, which makes the problem smooth; in the units of the image, 0.01
        being a hundredth of the range [0, 1]. The paper's mu is ``alpha / smoothing``. 0 minimises the true
        objective.
    noise : float, optional
        Standard deviation of the noise; estimated from the image by default. Only used where alpha is chosen.
    channel_axis : int, optional
        The axis of channels, which are restored side by side; by default the image has none.
    boundary : {"neumann", "periodic"}
        Past the end of an axis the difference is zero, or the image starts again.
    spins : int
        Average the results for so many of the ``2^ndim`` corners at which differences may begin.
    bounds : tuple of two numbers, optional
        The least and the largest value of x; None for none.
    solver : "accelerated" or Solver
        `SmoothedGradient`, `AlternatingMinimization`, `TotalVariationDCA` or `GrowingADMM`; "accelerated" takes
        what suits the problem. The last two minimise the true objective, whatever ``smoothing`` says.
    tol : float
        Stop when the root mean square of the gradient falls to tol times the smaller of alpha and smoothing.
        0.005 by default in the other functions, whose problems are less well conditioned.
    max_iter : int
        Stop after so many iterations in any case, with a warning unless ``return_result`` is set. One of the
        default solver's is four steps.
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
    names = Options.__dataclass_fields__
    options = Options(**{name: value for name, value in locals().items() if name in names})
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = Problem(y, Identity(tuple(y.shape)), y, ndim, options)
    return problem.restore(*_strength(alpha, problem, lambda: estimate_noise(y, ndim)))


def deblur_tv(image: Array, kernel: Array, alpha: float | str | None = None, **options: Any) -> Any:
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
    **options
        Those of `denoise_tv`. With ``boundary="neumann"`` the blur sees the image's mirror image past its ends
        (the default of scipy.ndimage), with ``"periodic"`` the image again, and each step is one Fourier
        transform.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

    Examples
    --------
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> kernel = np.full((3, 3), 1 / 9)
    >>> blurred = Convolution(kernel, clean.shape) @ clean
    >>> sharp = deblur_tv(blurred, kernel, 1e-4, boundary="periodic")
    >>> bool(np.std(sharp - clean) < 0.1 * np.std(blurred - clean))
    True
    """
    chosen = Options(**options)
    y, ndim = channels_first(as_image(image), chosen.channel_axis)
    A = _blur(kernel, y, ndim, chosen.boundary)
    problem = Problem(y, A, y, ndim, chosen)
    return problem.restore(*_strength(alpha, problem, lambda: estimate_noise(y, ndim), strength_for_deblurring))


def inpaint_tv(image: Array, mask: Array, alpha: float | str | None = None, **options: Any) -> Any:
    """Fill in missing pixels: ``1/2 ||x - image||^2`` over the known ones plus the penalty of `denoise_tv`.

    Parameters
    ----------
    image : array
        As in `denoise_tv`; what it holds at unknown pixels, NaN included, is not looked at.
    mask : array of bool
        True where a pixel is known, of the shape of the image or of one channel.
    alpha : float, "held-out" or None
        As in `denoise_tv`, the noise being estimated where neighbouring pixels are known. A small alpha keeps the
        known pixels nearly as they are.
    **options
        Those of `denoise_tv`.

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
    chosen = Options(**options)
    known = mask_like(mask, image, chosen.channel_axis)
    y, ndim = channels_first(as_image(without_unknown(image, known)), chosen.channel_axis)
    known, _ = channels_first(known, chosen.channel_axis)
    A = Sampling(known)
    problem = Problem(A @ y, A, filled(y, known, ndim), ndim, chosen)
    return problem.restore(*_strength(alpha, problem, lambda: estimate_noise(y, ndim, known)))


def reconstruct_mri(
    data: Array, mask: Array, alpha: float | str | None = None, *, real: bool | None = None, **options: Any
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
    **options
        Those of `denoise_tv`, but ``boundary`` is ``"periodic"`` by default, so that each step is one transform.

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
    chosen = Options(**{"boundary": "periodic", **options})
    mask = mask if is_array(mask) else np.asarray(mask)
    with contextlib.suppress(ValueError):  # the samples alone have another shape
        data = without_unknown(data, mask_like(mask, data, chosen.channel_axis))
    y, _ = channels_first(as_image(data, "data"), chosen.channel_axis)
    A: Any = FourierSampling(mask)
    if chosen.channel_axis is not None:
        A = Stacked(A, int(y.shape[0]))
    y = _fourier_samples(y, A, mask)
    if real or (real is None and chosen.bounds is not None):
        A, xp = RealInput(A), namespace(y)
        y = xp.stack([xp.real(y), xp.imag(y)], axis=-1)
    problem = Problem(y, A, adjoint(A) @ y, len(mask.shape), chosen)
    return problem.restore(*_strength(alpha, problem, None))


def restore_tv(
    y: Array, A: Any, alpha: float | str | None = None, *, shape: tuple[int, ...] | None = None, **options: Any
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
    **options
        Those of `denoise_tv`; ``channel_axis`` must be 0 or None.

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
    chosen = Options(**options)
    if chosen.channel_axis not in (None, 0):
        raise ValueError(f"channel_axis must be 0 or None for a general operator, got {chosen.channel_axis!r}")
    A = _on_images(as_operator(A), shape)
    y = as_image(y, "y")
    if int(np.prod(y.shape)) != int(np.prod(output_shape(A))):
        raise ValueError(f"y must have shape {output_shape(A)} to fit A, got {tuple(y.shape)}")
    y = namespace(y).reshape(y, output_shape(A))
    ndim = len(input_shape(A)) - (chosen.channel_axis is not None)
    problem = Problem(y, A, _scaled_adjoint(A, y), ndim, chosen)
    return problem.restore(*_strength(alpha, problem, None))


def _strength(
    alpha: Any,
    problem: Problem,
    estimate: Callable[[], float] | None,
    rule: Callable[[float, float], float] = strength_for_noise,
) -> tuple[float, float | None]:
    """The strength and, where it was chosen from one, the noise level."""
    if is_number(alpha):
        if not 0 <= alpha < np.inf:
            raise ValueError(f"alpha must be a finite number >= 0, got {alpha}")
        return float(alpha), None
    if alpha is not None and not (isinstance(alpha, str) and alpha == "held-out"):
        raise ValueError(f"alpha must be a number, 'held-out' or None, got {alpha!r}")
    noise = problem.options.noise
    if noise is None and estimate is not None:
        with contextlib.suppress(ValueError) if alpha == "held-out" else contextlib.nullcontext():
            noise = estimate()
    if alpha == "held-out":
        first = None if not noise else rule(noise, value_range(problem.start, noise))
        return problem.strength_by_held_out_data(first), None
    if noise is None:
        raise ValueError("alpha cannot be chosen without a noise level: give alpha, noise, or alpha='held-out'")
    if noise == 0 and estimate is None:
        return 1e-6 * value_range(problem.start, 0.0), noise
    return rule(noise, value_range(problem.start, noise)), noise


def _blur(kernel: Any, y: Array, ndim: int, boundary: str) -> Any:
    """The convolution of each channel, periodic or of the image continued by its mirror image."""
    kernel = as_floating(kernel, "kernel")
    if len(kernel.shape) != ndim:
        raise ValueError(
            f"kernel must have {ndim} axes like one channel of the image, got shape {tuple(kernel.shape)}"
        )
    if not is_complex(kernel):
        kernel = namespace(kernel).astype(kernel, real_dtype(y)) if type(kernel) is type(y) else kernel
    shape = tuple(y.shape)[len(y.shape) - ndim :]
    A: Any = Convolution(kernel, shape)
    if boundary == "neumann":
        widths = tuple(size // 2 for size in kernel.shape)
        mirrored = Mirrored(shape, widths)
        A = Cropped(mirrored.output_shape, widths) @ (Convolution(kernel, mirrored.output_shape) @ mirrored)
    return A if len(y.shape) == ndim else Stacked(A, int(y.shape[0]))


def _fourier_samples(y: Array, A: Any, mask: Array) -> Array:
    """The coefficients that the mask keeps, of data given as such or on the whole grid."""
    xp = namespace(y)
    if tuple(y.shape) == output_shape(A):
        samples = y
    elif tuple(y.shape) == input_shape(A):
        count = y.shape[0] if isinstance(A, Stacked) else None
        one = Sampling(mask)
        samples = one @ y if count is None else Stacked(one, int(count)) @ y
    else:
        count = output_shape(A)[-1]
        raise ValueError(
            f"data must have the mask's shape or hold its {count} samples, got shape {tuple(y.shape)}"
        )
    return samples if is_complex(samples) else samples + xp.zeros_like(samples) * 1j


def _on_images(A: Any, shape: Any) -> Any:
    """The operator A as one that acts on images."""
    known = input_shape(A)
    if shape is None:
        shape = getattr(A, "dims", known)
        if len(shape) == 1 and dtype_of(A) is not None:
            raise ValueError("shape must be given: A acts on vectors, and does not tell the shape of the image")
    shape = as_shape(shape)
    return A if shape == known else Reshaped(A, shape)


def _scaled_adjoint(A: Any, y: Array) -> Array:
    """``c A'y`` with the c that fits the data best."""
    x = adjoint(A) @ y
    image = A @ x
    square = inner(image, image)
    return x * (inner(x, x) / square if square > 0 else 1.0)

"""Images from linear measurements: Fourier coefficients, and any operator."""

from __future__ import annotations

import contextlib
import math
import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import beside, is_array, is_numpy, namespace, refuse_masked
from ell12.checks import check_flags
from ell12.operators import adjoint, as_operator, input_shape, output_shape
from ell12.protocols import Array
from ell12.restoration.arrangements import first_image, fourier_samples, on_images
from ell12.restoration.batches import restore_each
from ell12.restoration.images import as_image, as_mask, channels_first, mask_like, without_unknown
from ell12.restoration.problems import (
    MAX_ITER,
    TOL,
    ImageModel,
    ImageProblem,
    ImageRun,
    Measures,
    Stop,
)
from ell12.restoration.splitting import TotalVariationDCA
from ell12.restoration.variation import Bounds

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
    batch_axis: int | None = None,
    boundary: str = "periodic",
    spins: int = 1,
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
    l2_weight, smoothing, noise, channel_axis, spins, ...
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
    if batch_axis is not None:
        return restore_each(reconstruct_mri, locals())
    plain = alpha is None and smoothing is None and solver == "accelerated" and loss == "squared"
    if noise == 0 and plain and boundary == "periodic":
        solver = NOISE_FREE_SOLVER
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, spins, bounds, isotropic, spacing, loss)
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
    batch_axis: int | None = None,
    boundary: str = "neumann",
    spins: int = 1,
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
    batch_axis : int, optional
        The axis of y that counts images, all of them measured by A; see `denoise_tv`. The images that come out lie
        along it too, and ``channel_axis`` is counted with it: with ``batch_axis=0`` it is 1.
    l2_weight, smoothing, noise, boundary, spins, ...
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
    if batch_axis is not None:
        return restore_each(restore_tv, locals())
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, spins, bounds, isotropic, spacing, loss)
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

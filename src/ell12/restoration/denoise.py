"""`denoise_tv` and `inpaint_tv`: pixels that are noisy or missing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import is_complex
from ell12.minimization import Run
from ell12.operators import sent_to_device_of
from ell12.operators.image_operators import Identity, Sampling
from ell12.protocols import Array
from ell12.restoration.pixels import as_image, channels_first, filled, mask_like, without_unknown
from ell12.restoration.restore import ImageProblem, Options, documented
from ell12.restoration.sigma import noise_level
from ell12.restoration.strength_choice import live_pixels
from ell12.restoration.total_variation import TotalVariationL12

ISOTROPIC, ANISOTROPIC = TotalVariationL12(isotropic=True), TotalVariationL12()


@documented(0.05)
def denoise_tv(
    image: Array,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 | None = None,
    sigma: float | None = None,
    loss: str = "squared",
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = 0.05,
    max_iter: int = 5000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Remove noise from an image.

    Minimises ``1/2 ||x - image||^2 + alpha sum_i (||(D x)_i||_1 - l2_weight ||(D x)_i||_2)``.

    ``(D x)_i`` are the differences between pixel i and the next one along each axis. A mirrored
    image gives the mirrored result up to the direction of the differences. Without ``alpha`` and ``penalty`` the
    strength and one of two penalties are chosen by one score: isotropic total variation, which suits photographs,
    or anisotropic l1-2 of weight 0.5, which suits drawings.

    Parameters
    ----------
    image : array
        Of any number of axes, real or complex; NumPy, PyTorch, CuPy or JAX. As in scikit-image, integers are
        scaled to [0, 1] (signed ones to [-1, 1]) and come back as float64; float32 stays float32.
    alpha : float, "held-out" or None, optional
        Strength, in the units of the image: a step between two flat regions loses ``alpha / width`` of its height
        on a region of that width in pixels. It does not depend on the image's size. None takes the strength of
        least estimated error on a sample of the image: by generalised cross-validation over the pixels that are
        not saturated, by Stein's estimate if ``sigma`` is given. Both suppose noise without correlation. An image
        of which more than half is exactly flat counts as free of noise and comes back as it is: crop it, or give
        alpha or sigma.
        "held-out" chooses what best predicts pixels that were held out. `Restoration.alpha` says what was chosen.
    {shared}

    See Also
    --------
    deblur_tv : Undo a known blur.
    inpaint_tv : Fill in missing pixels.
    restore_tv : An image from any linear measurements.

    References
    ----------
    Lou, Zeng, Osher & Xin, A weighted difference of anisotropic and isotropic total variation model for image
    processing, doi:10.1137/14098435X.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import denoise_tv
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> bool(np.std(denoise_tv(noisy) - clean) < 0.04)
    True
    """
    choices = (ISOTROPIC, ANISOTROPIC) if alpha is None and str(loss) == "squared" else ANISOTROPIC
    shape = choices if penalty is None else penalty
    options = Options(alpha, shape, sigma, loss, channel_axis, solver, tol, max_iter, run, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)

    def estimate() -> float:
        return noise_level(y, ndim, None if is_complex(y) else sent_to_device_of(live_pixels(y, None), y))

    A = Identity(tuple(y.shape))
    return ImageProblem(y, A, y, ndim, options, estimate, base_tol=0.05).restore()


@documented(0.005)
def inpaint_tv(
    image: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 = ISOTROPIC,
    sigma: float | None = None,
    loss: str = "squared",
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = 0.005,
    max_iter: int = 5000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Fill in missing pixels.

    Minimises ``1/2 ||x - image||^2`` over the known ones plus the penalty, by default isotropic total variation.

    Parameters
    ----------
    image : array
        As in `denoise_tv`; values at unknown pixels, NaN included, are not used.
    mask : array of bool
        True where a pixel is known, of the shape of the image or of one channel.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`, by the known pixels; a ten-thousandth of the range where there is no noise. A small
        alpha keeps the known pixels nearly as they are.
    {shared}

    See Also
    --------
    denoise_tv : Remove noise.
    complete_matrix : Complete a matrix, as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import inpaint_tv
    >>> clean = np.zeros((32, 32)); clean[:, 16:] = 1
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.5
    >>> bool(np.abs(inpaint_tv(clean, mask, 1e-3) - clean).max() < 0.05)
    True
    """
    options = Options(alpha, penalty, sigma, loss, channel_axis, solver, tol, max_iter, run, return_result)
    known = mask_like(mask, image, channel_axis)
    y, ndim = channels_first(as_image(without_unknown(image, known)), channel_axis)
    known, _ = channels_first(known, channel_axis)
    A, estimate = Sampling(known), partial(noise_level, y, ndim, known)
    return ImageProblem(A @ y, A, filled(y, known, ndim), ndim, options, estimate=estimate).restore()

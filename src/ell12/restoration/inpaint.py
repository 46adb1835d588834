"""Filling in missing pixels by l1-2 total variation."""

from __future__ import annotations

from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import refuse_masked
from ell12.minimization import Run
from ell12.operators.image_operators import Sampling
from ell12.protocols import Array
from ell12.restoration.pixels import as_image, channels_first, mask_like, refuse_far, start_of, without_unknown
from ell12.restoration.restore import MAX_ITER, TOL, ImageProblem, Options, documented
from ell12.restoration.sigma import noise_level
from ell12.restoration.total_variation import TotalVariationL12


@documented(TOL)
def inpaint_tv(
    image: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 = TotalVariationL12(l2_weight=0.0, isotropic=True),
    sigma: float | None = None,
    loss: str = "squared",
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Fill in missing pixels.

    Minimises ``1/2 ||x - image||^2`` over the known ones plus the penalty, by default isotropic total variation.

    Parameters
    ----------
    image : array
        As in `denoise_tv`; what it holds at unknown pixels, NaN included, is not looked at.
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
    refuse_masked(image, "image")
    refuse_far(image)
    known = mask_like(mask, image, channel_axis)
    y, ndim = channels_first(as_image(without_unknown(image, known)), channel_axis)
    known, _ = channels_first(known, channel_axis)
    A = Sampling(known)

    def estimate(quiet: bool) -> float:
        return noise_level(y, ndim, known, quiet)

    return ImageProblem(A @ y, A, start_of(y, known, ndim), ndim, options, estimate=estimate).restore()

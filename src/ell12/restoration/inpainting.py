"""Filling in missing pixels by l1-2 total variation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import refuse_masked
from ell12.operators.image_operators import Sampling
from ell12.protocols import Array
from ell12.restoration.batches import restore_each
from ell12.restoration.corners import corner_of
from ell12.restoration.images import as_image, channels_first, mask_like, start_of, without_unknown
from ell12.restoration.noise import estimate_noise
from ell12.restoration.problems import (
    MAX_ITER,
    TOL,
    ImageModel,
    ImageProblem,
    ImageRun,
    Measures,
    Stop,
)
from ell12.restoration.variation import Bounds


def inpaint_tv(
    image: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
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
    """Fill in missing pixels.

    Minimises ``1/2 ||x - image||^2`` over the known ones plus the penalty of `denoise_tv`.

    Parameters
    ----------
    image : array
        As in `denoise_tv`; what it holds at unknown pixels, NaN included, is not looked at.
    mask : array of bool
        True where a pixel is known, of the shape of the image or of one channel; for a batch one for each image,
        or one for all.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`, by the known pixels; a ten-thousandth of the range where there is no noise. A small
        alpha keeps the known pixels nearly as they are.
    l2_weight, smoothing, noise, channel_axis, boundary, ...
        As in `denoise_tv`.

    Returns
    -------
    array or Restoration
        As in `denoise_tv`.

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
    if batch_axis is not None:
        return restore_each(inpaint_tv, locals(), whole="mask")
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, spins, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    refuse_masked(image, "image")
    known = mask_like(mask, image, channel_axis)
    y, ndim = channels_first(as_image(without_unknown(image, known)), channel_axis)
    known, _ = channels_first(known, channel_axis)
    A = Sampling(known)
    start = start_of(y, known, ndim, corner_of(y, ndim, known))
    problem = ImageProblem(A @ y, A, start, ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim, known))

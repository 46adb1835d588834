"""Undoing a known blur by l1-2 total variation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.protocols import Array
from ell12.restoration.arrangements import blur
from ell12.restoration.batches import restore_each
from ell12.restoration.images import as_image, channels_first
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
    smoothing, noise, channel_axis, spins, ...
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
    if batch_axis is not None:
        return restore_each(deblur_tv, locals())
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, spins, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = ImageProblem(y, blur(kernel, y, ndim, boundary), y, ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim), strength_for_deblurring)

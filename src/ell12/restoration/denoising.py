"""Denoising by l1-2 total variation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np  # noqa: F401 -- for the examples

from ell12.operators.image_operators import Identity
from ell12.protocols import Array
from ell12.restoration.batches import restore_each
from ell12.restoration.images import as_image, channels_first
from ell12.restoration.noise import estimate_noise
from ell12.restoration.problems import (
    MAX_ITER,
    TOL_DENOISING,
    ImageModel,
    ImageProblem,
    ImageRun,
    Measures,
    Stop,
)
from ell12.restoration.variation import Bounds


def denoise_tv(
    image: Array,
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
    """Remove noise from an image.

    Minimises ``1/2 ||x - image||^2 + alpha sum_i (||(D x)_i||_1 - l2_weight ||(D x)_i||_2)``.

    ``(D x)_i`` are the differences between pixel i and its neighbour along each axis, always towards the same
    side: the image decides which, by where it lies further from its mean. So a mirrored image gives the mirrored
    result.

    Parameters
    ----------
    image : array
        Of any number of axes, real or complex; NumPy, PyTorch, CuPy or JAX. As in scikit-image, integers are
        scaled to [0, 1] (signed ones to [-1, 1]) and come back as float64; float32 stays float32. For Dask and
        Zarr arrays see `ell12.distributed.denoise_tv`.
    alpha : float, "held-out" or None, optional
        Strength, in the units of the image: a step between two flat regions loses ``alpha / width`` of its height
        on a region of that width in pixels. It does not depend on the image's size. None tries strengths on a
        sample of the image and takes the one of least risk: by Stein's estimate if ``noise`` is given, else by
        generalised cross-validation; both suppose noise without correlation. "held-out" chooses what best predicts
        pixels that were held out. `Restoration.alpha` says what was chosen.
    l2_weight : float, default 0.5
        From 0, anisotropic total variation, to 1, the paper's penalty, under which edges along the axes cost
        nothing: good for drawings, poor for photographs.
    smoothing : float, optional
        Differences below it cost quadratically, which makes the problem smooth. In the units of the image; by
        default a hundredth of the range of its values. The paper's mu is ``alpha / smoothing``. 0 minimises the
        true objective.
    noise : float, optional
        Standard deviation of the noise, estimated by default. Only used where alpha is chosen, which a noise that
        is known makes surer: with fine texture or little noise, give it.
    channel_axis : int, optional
        The axis of channels; by default the image has none.
    colour : bool, optional
        Whether three real channels are colours, restored as one problem: ``sum_c w_c TV((T x)_c)`` with T the
        orthogonal axes R+G+B, R-B and R-2G+B, and w 1 for the first, brightness, 2 for the others, whose
        smoothing is doubled too. By default they are where their edges agree, which is looked up; otherwise, and
        with False, channel by channel.
    batch_axis : int, optional
        The axis that counts images, each of which is restored by itself, as so many calls would: tensors of shape
        (N, C, H, W) have ``batch_axis=0, channel_axis=1``. ``measure`` and ``stop`` see one image at a time; the
        checkpoints are numbered. See `Restoration` for what it holds then.
    boundary : {"neumann", "periodic"}, default "neumann"
        Past the end of an axis the difference is zero, or the image starts again.
    spins : int, default 1
        Average the results for this number of the ``2^ndim`` corners at which differences may begin.
    bounds : tuple of two numbers, optional
        The least and the largest value of x; None for none.
    isotropic : bool, default False
        Let the differences of a pixel count by their length, so that edges cost the same in any direction:
        ``alpha (sum_i ||(D x)_i||_2 - l2_weight ||D x||_F)``. Better where pixels are missing, 2 to 4 dB on
        drawings; worse for drawings with noise; level on most photographs. The norm that is subtracted is that of
        the whole image, of each channel for itself. It is small beside the sum, 0.5 to 3 percent on pictures of
        256 x 256 pixels, so that ``l2_weight`` changes the result by 0.1 dB there, and less on larger ones.
    spacing : float or tuple, optional
        The distances between pixel centres along each axis but that of channels, such as the voxels of a volume
        have. Differences along an axis are divided by its distance over the smallest one, so that equal
        distances change nothing.
    loss : {"squared", "poisson", "absolute"}, default "squared"
        How far x may be from the image. "poisson" is for counts of expectation x, which is then at least 0:
        ``sum(x - image log x)`` in place of the half square. "absolute" is for impulses, pixels that are far off:
        ``||x - image||_1``. With both the true objective is minimised, by `GrowingADMM`, alpha has no unit, and
        None is "held-out", judged by the loss. ``noise`` and ``smoothing`` are not used; colours are channels.
    solver : "accelerated" or Solver, default "accelerated"
        `SmoothedGradient`, `AlternatingMinimization`, `TotalVariationDCA` or `GrowingADMM`; "accelerated" takes
        what suits the problem. The last two minimise the true objective, whatever ``smoothing`` says.
    tol : float, default 0.05
        Stop when the root mean square of the gradient falls to tol times the smaller of alpha and smoothing.
        0.005 by default in the other functions, whose problems are less well conditioned.
    max_iter : int, default 5000
        Stop after this number of iterations in any case, with a warning unless ``return_result`` is set. An
        iteration of the default solver is four steps.
    measure : dict of functions, optional
        Each function of the image becomes a column of the runs' histories.
    objectives : bool, default False
        Add the columns "smoothed" and "true", both objectives at each iteration.
    stop : function, optional
        Called with the history after each iteration; the run ends when it returns true. For progress displays too.
    checkpoint : path, optional
        An ``.npz`` file that follows the run, so that a crash costs no more than ``checkpoint_seconds``; see
        `ell12.minimize`. Of several spins each has its own, ``name-0.npz``, ``name-1.npz`` and so on.
    checkpoint_seconds : float, default 60.0
        How often to write it.
    resume : bool, default False
        Go on from the checkpoint, if there is one.
    return_result : bool, default False
        Return a `Restoration`, with the strength chosen and the runs' results.

    Returns
    -------
    array or Restoration
        The image, of the same kind as the one given.

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
    if batch_axis is not None:
        return restore_each(denoise_tv, locals())
    what = (l2_weight, smoothing, noise, channel_axis, colour, boundary, spins, bounds, isotropic, spacing, loss)
    model = ImageModel(*what, solver)
    run = ImageRun(tol, max_iter, measure, objectives, stop, checkpoint, checkpoint_seconds, resume, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    problem = ImageProblem(y, Identity(tuple(y.shape)), y, ndim, model, run)
    return problem.restore(alpha, lambda: estimate_noise(y, ndim))

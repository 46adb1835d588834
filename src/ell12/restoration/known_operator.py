"""Images from measurements by a known operator: a blur, Fourier coefficients, any linear map."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np  # noqa: F401 -- for the examples

from ell12.backend import as_floating, is_array, is_complex, is_numpy, namespace, real_dtype, to_device_of
from ell12.checks import check_entries, check_flags
from ell12.minimization import Run
from ell12.operators import Reshaped, adjoint_product, as_operator, dtype_of, input_shape, output_shape
from ell12.operators import image_operators as maps
from ell12.protocols import Array, Iterate, Needs, Point
from ell12.restoration.pixels import as_image, as_mask, channels_first, first_image, mask_like, without_unknown
from ell12.restoration.restore import ImageProblem, Options, documented
from ell12.restoration.sigma import noise_level
from ell12.restoration.smoothed_gradient import ImageLoss, VariationPenalty
from ell12.restoration.splitting import Splitting
from ell12.restoration.strength_choice import strength_for_deblurring
from ell12.restoration.total_variation import TotalVariationL12


@documented(0.005)
def deblur_tv(
    image: Array,
    psf: Array,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 = TotalVariationL12(l2_weight=0.0),
    sigma: float | None = None,
    loss: str = "squared",
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = 0.005,
    max_iter: int = 5000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Undo a known blur.

    Minimises ``1/2 ||psf * x - image||^2`` plus the penalty, by default without a subtracted norm: a blur hides
    what tells edges apart, and what is gained elsewhere is lost on photographs. With the penalty's boundary
    "neumann" the blur sees the image's mirror image past its ends (the default of scipy.ndimage), with "periodic"
    the image again, and each step is one Fourier transform.

    Parameters
    ----------
    image : array
        As in `denoise_tv`.
    psf : array
        The blur, with as many axes as one channel of the image, none longer; its centre is its entry ``size //
        2``.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`; None tries strengths on the middle of the image, two runs each, and takes the one that
        predicts the blurred image best. Of small images it is ``0.6 sigma^(3/2)``, in units of the
        image's range.
    {shared}

    See Also
    --------
    denoise_tv : Remove noise.
    restore_tv : An image from any linear measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import TotalVariationL12, deblur_tv
    >>> clean = np.zeros((32, 32)); clean[8:24, 8:24] = 1
    >>> from ell12.operators.image_operators import Convolution
    >>> psf = np.full((3, 3), 1 / 9)
    >>> blurred = Convolution(psf, clean.shape) @ clean
    >>> sharp = deblur_tv(blurred, psf, 1e-4, penalty=TotalVariationL12(l2_weight=0, boundary="periodic"))
    >>> bool(np.std(sharp - clean) < 0.1 * np.std(blurred - clean))
    True
    """
    options = Options(alpha, penalty, sigma, loss, channel_axis, solver, tol, max_iter, run, return_result)
    y, ndim = channels_first(as_image(image), channel_axis)
    A, estimate = blur(psf, y, ndim, penalty.boundary), partial(noise_level, y, ndim)
    return ImageProblem(y, A, y, ndim, options, estimate=estimate, rule=strength_for_deblurring).restore()


@documented(0.005)
def reconstruct_mri(
    data: Array,
    mask: Array,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 = TotalVariationL12(boundary="periodic"),
    sigma: float | None = None,
    real: bool | None = None,
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = 0.005,
    max_iter: int = 5000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Reconstruct an image from some of its Fourier coefficients.

    Minimises ``1/2 ||F_mask x - data||^2`` plus the penalty. Its boundary is "periodic" by default, so that each
    step is one transform.

    Parameters
    ----------
    data : complex array
        The coefficients that the mask keeps of the orthonormal transform, as a vector, or all of them in the shape
        of the mask, of which those outside it are not used. With ``channel_axis`` one such array per channel
        (coil).
    mask : array of bool
        True where a coefficient is measured, the zero frequency first (``ifftshift`` of a centred mask).
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`. None needs ``sigma``; with ``sigma=0`` the coefficients are kept as they are, to a
        millionth, and the true objective is minimised by a sequence of convex problems, of which total variation
        is the first, unless smoothing, ``solver`` or the boundary ask for something else.
    real : bool, optional
        Whether the image is real; complex by default, unless there are ``bounds``.
    {shared}

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
    >>> image = reconstruct_mri(np.fft.fftn(clean, norm="ortho"), mask, sigma=0.0, real=True)
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    options = Options(alpha, penalty, sigma, "squared", channel_axis, solver, tol, max_iter, run, return_result)
    automatic = options.alpha is None and solver is None and penalty.smoothing is None
    if automatic and sigma == 0 and penalty.boundary == "periodic":
        options = replace(options, solver=ConvexProblems())
    check_flags(optional=True, real=real)
    mask = as_mask(mask)
    with contextlib.suppress(ValueError):  # the samples alone have another shape
        data = without_unknown(data, mask_like(mask, data, channel_axis, "data"))
    y, _ = channels_first(as_image(data, "data"), channel_axis)
    real = penalty.bounds is not None if real is None else real
    y, A = fourier_samples(y, mask, channel_axis is not None, real)
    return ImageProblem(y, A, adjoint_product(A, y), len(mask.shape), options).restore()


@documented(0.005)
def restore_tv(
    y: Array,
    A: Any,
    alpha: float | str | None = None,
    *,
    penalty: TotalVariationL12 = TotalVariationL12(),
    sigma: float | None = None,
    loss: str = "squared",
    channel_axis: int | None = None,
    solver: Any = None,
    tol: float = 0.005,
    max_iter: int = 5000,
    run: Run | None = None,
    return_result: bool = False,
) -> Any:
    """Restore an image from any linear measurements.

    Minimises ``1/2 ||A x - y||^2`` plus the penalty.

    Parameters
    ----------
    y : array
        The measurements.
    A : operator
        A linear map of images: one of `ell12.operators`, or a pylops operator that tells its ``dims``. A matrix or
        a SciPy LinearOperator acts on vectors: give ``Reshaped(matrix, shape)``, with the shape of the image,
        whose entries are taken row by row. With ``channel_axis=0`` the first axis counts channels.
    alpha : float, "held-out" or None, optional
        As in `denoise_tv`; None needs ``sigma``.
    {shared}

    See Also
    --------
    denoise_tv : Remove noise.
    reconstruct_mri : An image from Fourier coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import restore_tv
    >>> from ell12.operators import Reshaped
    >>> clean = np.zeros((8, 8)); clean[:, 4:] = 1
    >>> A = np.random.default_rng(0).standard_normal((40, 64))
    >>> image = restore_tv(A @ clean.reshape(-1), Reshaped(A, (8, 8)), 1e-3)
    >>> bool(np.abs(image - clean).max() < 0.02)
    True
    """
    options = Options(alpha, penalty, sigma, loss, channel_axis, solver, tol, max_iter, run, return_result)
    if channel_axis not in (None, 0):
        raise ValueError(f"channel_axis must be 0 or None for a general operator, got {channel_axis!r}")
    A, inside = _on_images(A)
    y = to_device_of(as_image(y, "y"), inside, "y")
    if is_array(inside) and not is_numpy(inside):  # other libraries multiply arrays of one precision only
        y = namespace(inside).astype(y, inside.dtype)
    if math.prod(y.shape) != math.prod(output_shape(A)):
        raise ValueError(f"y must have shape {output_shape(A)} to fit A, got {tuple(y.shape)}")
    y, ndim = namespace(y).reshape(y, output_shape(A)), len(input_shape(A)) - (channel_axis is not None)
    return ImageProblem(y, A, first_image(A, y), ndim, options).restore()


@dataclass(frozen=True)
class ConvexProblems:
    """Total variation, then convex problems in which the subtracted norm is linear, each by ADMM from the last.

    For coefficients without noise: the head phantom of 256 x 256 pixels is found from 12 radial lines. It ends
    after two problems that did not lower the objective by ``least_gain`` of it.
    """

    smooths: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs(ImageLoss, VariationPenalty)

    inner_tol: float = 1e-5
    inner_max_iter: int = 100
    least_gain: float = 3e-4

    def iterates(self, loss: Any, penalty: Any, start: Point) -> Iterator[Iterate | None]:
        """Yield one iterate per convex problem, and None after each step within one."""
        split = Splitting(loss, penalty, start.x)
        rho = 10 * (penalty.alpha or 0.1) / split.unit  # a threshold of a tenth of the range
        slope, best, idle = 0 * start.x, math.inf, 0
        while idle < 2:
            yield from split.convex_steps(rho, slope, self.inner_tol, self.inner_max_iter)
            point = loss.point(penalty.project(split.x))
            objective = loss.value(point) + penalty.value(point.x)
            last, slope = slope, adjoint_product(split.D, penalty.relief(split.W))
            yield Iterate(point, objective, penalty.size(slope - last))
            idle = 0 if objective < (1 - self.least_gain) * best else idle + 1
            best = min(best, objective)


def _on_images(A: Any) -> tuple[Any, Any]:
    """The operator A as one that acts on images, and what it is on vectors."""
    if isinstance(A, Reshaped):
        inside = as_operator(A.A)
        return Reshaped(inside, A.input_shape), inside
    A = as_operator(A)
    shape = tuple(getattr(A, "dims", input_shape(A)))
    if len(shape) == 1 and dtype_of(A) is not None:
        raise ValueError("A acts on vectors, and does not tell the shape of the image: give Reshaped(A, shape)")
    return (A if shape == tuple(input_shape(A)) else Reshaped(A, shape)), A


def blur(kernel: Any, y: Array, ndim: int, boundary: str) -> Any:
    """The convolution of each channel, periodic or of the image continued by its mirror image."""
    kernel = as_floating(kernel, "psf")
    if not is_numpy(kernel) and type(kernel) is not type(y):
        raise TypeError(f"psf must be a NumPy array or one like the image, got {type(kernel).__name__}")
    check_entries(kernel, "psf")
    if len(kernel.shape) != ndim:
        raise ValueError(f"psf must have {ndim} axes like one channel, got shape {tuple(kernel.shape)}")
    if type(kernel) is type(y) and not is_complex(kernel):
        kernel = namespace(kernel).astype(kernel, real_dtype(y))
    shape = tuple(y.shape)[len(y.shape) - ndim :]
    A: Any = maps.Convolution(kernel, shape)  # also checks the kernel
    A = maps.MirroredConvolution(A.kernel, shape) if boundary == "neumann" else A
    return A if len(y.shape) == ndim else maps.Stacked(A, int(y.shape[0]))


def fourier_samples(y: Array, mask: Array, channels: bool, real: bool) -> tuple[Array, Any]:
    """The coefficients that the mask keeps, of data given as such or on the whole grid, and their operator."""
    A: Any = maps.FourierSampling(mask)
    one: Any = maps.Sampling(mask)
    if channels:
        A, one = maps.Stacked(A, int(y.shape[0])), maps.Stacked(one, int(y.shape[0]))
    if tuple(y.shape) == input_shape(A):
        y = one @ y
    elif tuple(y.shape) != output_shape(A):
        count = output_shape(A)[-1]
        raise ValueError(f"data must have the mask's shape or its {count} samples, got {tuple(y.shape)}")
    xp = namespace(y)
    y = y if is_complex(y) else y + xp.zeros_like(y) * 1j
    return (xp.stack([xp.real(y), xp.imag(y)], axis=-1), maps.RealInput(A)) if real else (y, A)

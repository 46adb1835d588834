"""What splitting methods solve: the loss, split off or squared, and linear systems by FFT, DCT or CG."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.fft import dctn, idctn

from ell12.backend import as_array_of, is_complex, is_numpy, namespace, norm
from ell12.operators import Composition, adjoint_product, product
from ell12.operators.image_operators import Convolution, FourierSampling, Identity, RealInput, Sampling, Stacked
from ell12.operators.krylov import conjugate_gradients
from ell12.protocols import Array, Point, SplitLoss, offers
from ell12.restoration.smoothed_gradient import is_plain_square


def fit_of(loss: Any, x: Array) -> Any:
    """The loss in a splitting method that begins at x."""
    return SquaredFit(loss) if is_plain_square(loss) else SplitPrediction(loss, x)


class SquaredFit:
    """The squared loss in the normal equations of a step: ``A'A`` and ``A'y``."""

    gradient: Any = None  # the loss has its own
    left: Any = 0.0
    distance: float = 0.0

    def __init__(self, loss: Any) -> None:
        self.A = loss.A
        self.right = -loss.gradient(Point(loss.start(), 0 * loss.b))  # A'y

    def weight(self, rho: float, alpha: float) -> float:  # noqa: ARG002
        """The weight of A'A."""
        return 1.0

    def unit(self, alpha: float) -> float:
        """What ADMM's rho is for a threshold of 1."""
        return alpha or 1.0

    def data(self, weight: float) -> Array:  # noqa: ARG002
        """What the loss adds to the right-hand side."""
        return self.right

    def advance(self, x: Array, weight: float) -> None:
        """Nothing else to do."""

    def scale_multipliers(self, factor: float) -> None:
        """There are none."""


class SplitPrediction:
    """Any other loss ``l(S v)`` subject to ``v = A x``, by the proximal map of l; S keeps some of v, or all."""

    def __init__(self, loss: Any, x: Array) -> None:
        if not offers(loss, SplitLoss):
            raise ValueError(f"this solver needs a SquaredLoss of scale 1 or prediction_prox, got {loss!r}")
        self.loss = loss
        self.S, self.A = _parts(loss.A)
        self.v = product(self.A, x)
        self.p = 0 * self.v  # the scaled multiplier of v = A x
        self.gradient = self.left = 0 * x  # the subgradient at v, and what the last step changed of it
        self.distance = 0.0  # that of A x from v, per pixel

    def weight(self, rho: float, alpha: float) -> float:
        """The weight of ``||A x - v||^2 / 2``."""
        return self.loss.scale * rho / self.unit(alpha)

    def unit(self, alpha: float) -> float:
        """What ADMM's rho is for a threshold of 1.

        Where S leaves pixels out, only the differences move these. With a small alpha these must weigh as much as
        v, or such pixels would stay where they began.
        """
        return alpha or 1.0 if self.S is None else max(alpha, 1.0)

    def data(self, weight: float) -> Array:
        """What the constraint adds to the right-hand side."""
        return weight * adjoint_product(self.A, self.v - self.p)

    def advance(self, x: Array, weight: float) -> None:
        """The step of v and of its multiplier."""
        prediction, old = product(self.A, x), self.v
        near = prediction + self.p
        if self.S is None:
            self.v = self.loss.prediction_prox(near, weight)
        else:
            kept = product(self.S, near)
            self.v = near + adjoint_product(self.S, self.loss.prediction_prox(kept, weight) - kept)
        self.p = near - self.v
        self.distance = norm(prediction - self.v) / math.sqrt(math.prod(self.v.shape))
        self.gradient = weight * adjoint_product(self.A, self.p)
        self.left = weight * adjoint_product(self.A, self.v - old)

    def scale_multipliers(self, factor: float) -> None:
        """Keep the multiplier what it is when the weight is divided by the factor."""
        self.p = factor * self.p


def _parts(A: Any) -> tuple[Any, Any]:
    """A as ``S B``, where S keeps some of the results of B; None where it keeps all."""
    if type(A) is Sampling:
        return A, Identity(A.input_shape)
    if isinstance(A, Composition) and type(A.A) is Sampling:
        return A.A, A.B
    return None, A


DIAGONAL = (Convolution, FourierSampling)  # by the Fourier transform
Solve = Callable[[Array, Array, float, float], Array]  # right-hand side, start, weight of D'D, shift


def has_exact_solver(A: Any, penalty: Any, x: Array) -> bool:
    """Whether one transform makes both A'A and D'D diagonal for images like x; the cosine transform is NumPy's."""
    A, fourier = _single(A), penalty.boundary == "periodic"
    return (fourier or is_numpy(x)) if isinstance(A, Identity) else fourier and isinstance(A, DIAGONAL)


def exact_solver(A: Any, penalty: Any, x: Array) -> Solve:
    """The exact solution for images like x, by the Fourier or, at Neumann boundaries, the cosine transform."""
    if not has_exact_solver(A, penalty, x):
        kinds = "denoising (at Neumann boundaries of a NumPy array), or a Convolution or FourierSampling"
        raise ValueError(f"an exact step needs {kinds} with boundary='periodic'; use inner='cg'")
    fourier = penalty.boundary == "periodic"
    shape = tuple(x.shape)[len(x.shape) - penalty.ndim :]
    laplacian = as_array_of(difference_symbol(shape, penalty.boundary, penalty.relative_spacing), x)
    fidelity = _fidelity_symbol(A, x)
    axes = tuple(range(-penalty.ndim, 0))

    def solve(right: Array, _start: Array, weight: float, shift: float) -> Array:
        xp = namespace(right)
        symbol = fidelity + weight * laplacian + shift
        symbol = xp.where(symbol > 0, symbol, 1)
        if not fourier:
            return idctn(dctn(right, axes=axes, norm="ortho") / symbol, axes=axes, norm="ortho")
        if is_complex(right):
            return xp.fft.ifftn(xp.fft.fftn(right, axes=axes) / symbol, axes=axes)
        half = symbol[..., : shape[-1] // 2 + 1]  # of a real image the other coefficients are conjugates
        return xp.fft.irfftn(xp.fft.rfftn(right, axes=axes) / half, s=shape, axes=axes)

    return solve


def rough_solver(A: Any, penalty: Any, tol: float = 1e-5, max_iter: int = 100) -> Solve:
    """The solution by conjugate gradients, to a fraction ``tol`` of the right-hand side."""

    def solve(right: Array, start: Array, weight: float, shift: float) -> Array:
        times = partial(normal_product, A, penalty, weight=weight, shift=shift)
        return conjugate_gradients(times, right, start, tol=tol, max_iter=max_iter)

    return solve


def normal_product(A: Any, penalty: Any, x: Array, weight: float, shift: float = 0.0) -> Array:
    """``(A'A + weight D'D + shift I) x``."""
    D = penalty.differences(x)
    fidelity = adjoint_product(A, product(A, x))
    return (fidelity + shift * x if shift else fidelity) + weight * adjoint_product(D, product(D, x))


def difference_symbol(
    shape: tuple[int, ...], boundary: str, spacing: tuple[float, ...] | None = None
) -> np.ndarray:
    """The eigenvalues of D'D: ``sum_d (2 - 2 cos(theta_d)) / spacing_d^2`` over the transform's frequencies."""
    period = 2 * np.pi if boundary == "periodic" else np.pi
    lines = [2 - 2 * np.cos(period * np.arange(n) / n) for n in shape]
    if spacing is not None:
        lines = [line / distance**2 for line, distance in zip(lines, spacing, strict=True)]
    return np.sum(np.meshgrid(*lines, indexing="ij"), axis=0)


def _single(A: Any) -> Any:
    """The operator that acts on one image."""
    while isinstance(A, Stacked | RealInput):
        A = A.A
    return A


def _fidelity_symbol(A: Any, x: Array) -> Any:
    """The eigenvalues of A'A, for real images where x is one."""
    A = _single(A)
    if isinstance(A, Identity):
        return 1.0
    if isinstance(A, Convolution):
        return as_array_of(namespace(A.spectrum).abs(A.spectrum) ** 2, x)
    xp = namespace(A.mask)
    if is_complex(x):
        return as_array_of(A.mask, x)
    axes = tuple(range(len(A.mask.shape)))
    mirrored = xp.roll(xp.flip(A.mask), (1,) * len(axes), axis=axes)
    both = as_array_of(A.mask, x) + as_array_of(mirrored, x)  # a coefficient of a real image gives its conjugate
    return both / 2

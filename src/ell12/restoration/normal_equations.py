"""Linear systems ``(A'A + weight D'D + shift I) x = r`` of alternating methods: exact by FFT or DCT, or by CG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ell12.backend import is_complex, is_numpy, like, namespace
from ell12.operators import adjoint_product, product
from ell12.operators.image_operators import Convolution, FourierSampling, Identity, RealInput, Stacked
from ell12.protocols import Array
from ell12.restoration.variation import VariationPenalty

Solve = Callable[[Array, float, float], Array]  # right-hand side, weight, shift


def has_exact_solver(A: Any, penalty: VariationPenalty) -> bool:
    """Whether one transform makes both A'A and D'D diagonal."""
    A = _single(A)
    return isinstance(A, Identity) or (
        isinstance(A, Convolution | FourierSampling) and penalty.boundary == "periodic"
    )


def exact_solver(A: Any, penalty: VariationPenalty, x: Array) -> Solve:
    """The exact solution for images like x, by the Fourier or, at Neumann boundaries, the cosine transform."""
    if not has_exact_solver(A, penalty):
        raise ValueError(
            "an exact step needs denoising, or a Convolution or FourierSampling with boundary='periodic'; "
            "use inner='cg', or SmoothedGradient()"
        )
    fourier = penalty.boundary == "periodic"
    if not fourier and not is_numpy(x):
        raise TypeError(
            "image must be a NumPy array for an exact step at Neumann boundaries; use boundary='periodic', "
            "AlternatingMinimization(inner='cg') or SmoothedGradient()"
        )
    shape = tuple(x.shape)[len(x.shape) - penalty.ndim :]
    laplacian = like(difference_symbol(shape, penalty.boundary, penalty.relative_spacing), x)
    fidelity = _fidelity_symbol(A, x)
    axes = tuple(range(-penalty.ndim, 0))

    def solve(right: Array, weight: float, shift: float = 0.0) -> Array:
        xp = namespace(right)
        symbol = fidelity + weight * laplacian + shift
        symbol = xp.where(symbol > 0, symbol, 1)
        if not fourier:
            return _solve_cosine(right, symbol, axes)
        if is_complex(right):
            return xp.fft.ifftn(xp.fft.fftn(right, axes=axes) / symbol, axes=axes)
        half = symbol[..., : shape[-1] // 2 + 1]  # of a real image the other coefficients are conjugates
        return xp.fft.irfftn(xp.fft.rfftn(right, axes=axes) / half, s=shape, axes=axes)

    return solve


def normal_product(
    A: Any, penalty: VariationPenalty, weight: float, shift: float = 0.0
) -> Callable[[Array], Array]:
    """The map ``x -> (A'A + weight D'D + shift I) x``."""

    def times(x: Array) -> Array:
        fidelity = adjoint_product(A, product(A, x))
        start = fidelity + shift * x if shift else fidelity
        return penalty.differences(x).plus_gram(start, weight, x)

    return times


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
        return like(namespace(A.spectrum).abs(A.spectrum) ** 2, x)
    xp = namespace(A.mask)
    if is_complex(x):
        return like(A.mask, x)
    axes = tuple(range(len(A.mask.shape)))
    mirrored = xp.roll(xp.flip(A.mask), (1,) * len(axes), axis=axes)
    return (like(A.mask, x) + like(mirrored, x)) / 2  # a coefficient of a real image determines its conjugate


def _solve_cosine(right: np.ndarray, symbol: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    from scipy.fft import dctn, idctn

    if is_complex(right):
        return _solve_cosine(right.real, symbol, axes) + 1j * _solve_cosine(right.imag, symbol, axes)
    return idctn(dctn(right, axes=axes, norm="ortho") / symbol, axes=axes, norm="ortho")

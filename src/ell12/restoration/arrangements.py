"""Operators that lay images out: as vectors, several at once, real and imaginary, continued past their ends."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from ell12.backend import as_floating, as_numpy, inner, is_array, is_complex, is_numpy, namespace, real_dtype
from ell12.checks import check_entries
from ell12.operators import ArrayOperator, adjoint_product, dtype_of, input_shape, output_shape, product
from ell12.operators.image_operators import Convolution, FourierSampling, Identity, Sampling, as_shape, slice_of
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class Reshaped(ArrayOperator):
    """A matrix or an operator on vectors, applied to the entries of an image row by row."""

    A: Any
    shape: InitVar[Any]

    def __post_init__(self, shape: Any) -> None:
        shape, size = as_shape(shape), math.prod(input_shape(self.A))
        if math.prod(shape) != size:
            raise ValueError(f"shape {shape} does not hold the {size} entries that A acts on")
        self._set(input_shape=shape, output_shape=output_shape(self.A), dtype=dtype_of(self.A))
        self._set(norm_squared=getattr(self.A, "norm_squared", None))

    def _apply(self, x: Array) -> Array:
        return product(self.A, namespace(x).reshape(x, input_shape(self.A)))

    def _apply_adjoint(self, y: Array) -> Array:
        x = adjoint_product(self.A, y)
        return namespace(x).reshape(x, self.input_shape)


@dataclass(frozen=True, eq=False)
class Stacked(ArrayOperator):
    """One of our operators for each of ``count`` images along the first axis."""

    A: Any
    count: int

    def __post_init__(self) -> None:
        self._set(input_shape=(self.count, *self.A.input_shape), output_shape=(self.count, *self.A.output_shape))
        self._set(dtype=self.A.dtype, norm_squared=self.A.norm_squared)

    def _apply(self, x: Array) -> Array:
        return namespace(x).stack([product(self.A, x[i, ...]) for i in range(self.count)])

    def _apply_adjoint(self, y: Array) -> Array:
        return namespace(y).stack([adjoint_product(self.A, y[i, ...]) for i in range(self.count)])


@dataclass(frozen=True, eq=False)
class RealInput(ArrayOperator):
    """An operator with complex results, for real images: real and imaginary part along a new last axis."""

    A: Any

    def __post_init__(self) -> None:
        self._set(input_shape=self.A.input_shape, output_shape=(*self.A.output_shape, 2))
        self._set(norm_squared=self.A.norm_squared)

    def _apply(self, x: Array) -> Array:
        y = product(self.A, x)
        xp = namespace(y)
        return xp.stack([xp.real(y), xp.imag(y)], axis=-1)

    def _apply_adjoint(self, y: Array) -> Array:
        x = adjoint_product(self.A, y[..., 0] + 1j * y[..., 1])
        return namespace(x).real(x)


@dataclass(frozen=True, eq=False)
class MirroredConvolution(ArrayOperator):
    """The convolution of an image that is continued past its ends by its mirror image, the last pixel twice.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12.restoration.arrangements import MirroredConvolution
    >>> (MirroredConvolution(np.array([1.0, 0.0, 0.0]), (3,)) @ [1.0, 2.0, 3.0]).round(12)
    array([2., 3., 3.])
    """

    kernel: Array
    shape: InitVar[Any]
    inside: Convolution = field(init=False, repr=False)  # of the continued image

    def __post_init__(self, shape: Any) -> None:
        widths = [size // 2 for size in self.kernel.shape]
        inside = Convolution(self.kernel, tuple(n + 2 * w for n, w in zip(shape, widths, strict=True)))
        self._set(inside=inside, input_shape=shape, output_shape=shape)

    def _apply(self, x: Array) -> Array:
        xp = namespace(x)
        for axis, width in self._margins():
            head, tail = slice_of(x, axis, 0, width), slice_of(x, axis, x.shape[axis] - width, None)
            x = xp.concat([xp.flip(head, axis=axis), x, xp.flip(tail, axis=axis)], axis=axis)
        x = product(self.inside, x)
        for axis, width in self._margins():
            x = slice_of(x, axis, width, x.shape[axis] - width)
        return x

    def _apply_adjoint(self, y: Array) -> Array:
        xp = namespace(y)
        for axis, width in self._margins():
            edge = xp.zeros_like(slice_of(y, axis, 0, width))
            y = xp.concat([edge, y, edge], axis=axis)
        y = adjoint_product(self.inside, y)
        for axis, width in self._margins():
            n = y.shape[axis] - 2 * width
            head, tail = slice_of(y, axis, 0, width), slice_of(y, axis, n + width, None)
            inside = slice_of(y, axis, width, n + width)
            rest = xp.zeros_like(slice_of(inside, axis, 0, n - width))
            y = inside + xp.concat([xp.flip(head, axis=axis), rest], axis=axis)
            y = y + xp.concat([rest, xp.flip(tail, axis=axis)], axis=axis)
        return y

    def _margins(self) -> list[tuple[int, int]]:
        """The axes along which the image is continued, and by how many pixels at both ends."""
        return [(axis, size // 2) for axis, size in enumerate(self.kernel.shape) if size > 1]


def blur(kernel: Any, y: Array, ndim: int, boundary: str) -> Any:
    """The convolution of each channel, periodic or of the image continued by its mirror image."""
    kernel = as_floating(kernel, "kernel")
    if not is_numpy(kernel) and type(kernel) is not type(y):
        raise TypeError(f"kernel must be a NumPy array or one like the image, got {type(kernel).__name__}")
    check_entries(kernel, "kernel")
    if len(kernel.shape) != ndim:
        raise ValueError(
            f"kernel must have {ndim} axes like one channel of the image, got shape {tuple(kernel.shape)}"
        )
    if not is_complex(kernel):
        kernel = namespace(kernel).astype(kernel, real_dtype(y)) if type(kernel) is type(y) else kernel
    shape = tuple(y.shape)[len(y.shape) - ndim :]
    A: Any = Convolution(kernel, shape)  # also checks the kernel
    A = MirroredConvolution(A.kernel, shape) if boundary == "neumann" else A
    return A if len(y.shape) == ndim else Stacked(A, int(y.shape[0]))


def fourier_samples(y: Array, mask: Array, channels: bool, real: bool) -> tuple[Array, Any]:
    """The coefficients that the mask keeps, of data given as such or on the whole grid, and their operator."""
    A: Any = FourierSampling(mask)
    one: Any = Sampling(mask)
    if channels:
        A, one = Stacked(A, int(y.shape[0])), Stacked(one, int(y.shape[0]))
    if tuple(y.shape) == input_shape(A):
        y = one @ y
    elif tuple(y.shape) != output_shape(A):
        count = output_shape(A)[-1]
        raise ValueError(
            f"data must have the mask's shape or hold its {count} samples, got shape {tuple(y.shape)}"
        )
    xp = namespace(y)
    y = y if is_complex(y) else y + xp.zeros_like(y) * 1j
    return (xp.stack([xp.real(y), xp.imag(y)], axis=-1), RealInput(A)) if real else (y, A)


def on_images(A: Any, shape: Any) -> Any:
    """The operator A as one that acts on images."""
    known = input_shape(A)
    if shape is None:
        shape = getattr(A, "dims", known)
        if len(shape) == 1 and dtype_of(A) is not None:
            raise ValueError("shape must be given: A acts on vectors, and does not tell the shape of the image")
    shape = as_shape(shape)
    return A if shape == known else Reshaped(A, shape)


def by_numpy(A: Any) -> Any:
    """The same operator on NumPy arrays; None for one of another kind, which may act on tensors alone."""
    if isinstance(A, Stacked | RealInput):
        inside = by_numpy(A.A)
        return None if inside is None else replace(A, A=inside)
    if isinstance(A, Reshaped):
        return Reshaped(as_numpy(A.A), A.input_shape) if is_array(A.A) else None
    if isinstance(A, Sampling):  # of Fourier coefficients too
        return type(A)(as_numpy(A.mask))
    if isinstance(A, Convolution | MirroredConvolution):
        return type(A)(as_numpy(A.kernel), A.input_shape)
    return A if isinstance(A, Identity) else None


def first_image(A: Any, y: Array) -> Array:
    """A constant plus the adjoint of what it leaves of the data, scaled to fit: it follows shifts and units."""
    x = adjoint_product(A, y)
    flat = namespace(x).ones_like(x)
    image = product(A, flat)
    level = _fit(image, y)
    left = y - level * image
    rest = adjoint_product(A, left)
    return level * flat + _fit(product(A, rest), left) * rest


def _fit(image: Array, y: Array) -> complex:
    """The factor by which an image of A comes nearest to the data; a real one for real data."""
    square = inner(image, image) or 1.0
    fit = inner(image, y) / square
    return complex(fit, inner(1j * image, y) / square) if is_complex(image) and is_complex(y) else fit

"""Operators on images: differences, convolution, sampling, and how images are laid out."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np

from ell12.backend import as_floating, is_complex, is_number, max_abs, namespace, real_dtype, scatter
from ell12.checks import check_counts, check_entries, check_word, is_finite_number
from ell12.operators import ArrayOperator, adjoint_product, as_shape, conjugate_of, product, sent_to_device_of
from ell12.protocols import Array


@dataclass(frozen=True, eq=False)
class FiniteDifference(ArrayOperator):
    """Forward differences of an image: ``(D x)[i, d] = x[i + e_d] - x[i]``, those of a pixel in one row.

    Parameters
    ----------
    shape : tuple of int
        The shape of the image.
    boundary : {"neumann", "periodic"}, default "neumann"
        Past the end of an axis the difference is zero, or the image starts again.
    ndim : int, optional
        How many of the last axes are differenced, the others counting images; all by default.
    spacing : float or tuple, optional
        The distances between pixels along the axes that are differenced, by which differences are divided.

    Examples
    --------
    >>> from ell12.operators.image_operators import FiniteDifference
    >>> (FiniteDifference((2, 2)) @ [[1, 2], [4, 8]]).tolist()
    [[[3.0, 1.0], [6.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]]
    """

    shape: InitVar[Any]
    boundary: str = "neumann"
    ndim: int | None = None
    spacing: Any = None

    def __post_init__(self, shape: Any) -> None:
        shape = as_shape(shape)
        check_word(self.boundary, "boundary", "neumann", "periodic")
        ndim = len(shape) if self.ndim is None else self.ndim
        check_counts(least=1, most=len(shape), ndim=ndim)
        spacing = as_spacing(self.spacing, ndim)
        self._set(ndim=ndim, spacing=spacing, input_shape=shape, output_shape=(*shape, ndim))
        self._set(norm_squared=4.0 * (ndim if spacing is None else sum(s**-2 for s in spacing)))

    def _apply(self, x: Array) -> Array:
        first = x.ndim - self.output_shape[-1]
        steps = [self._forward(x, axis) for axis in range(first, x.ndim)]
        return namespace(x).stack(self._per_distance(steps), axis=-1)

    def _apply_adjoint(self, y: Array) -> Array:
        count, first = y.shape[-1], y.ndim - 1 - y.shape[-1]
        parts = self._per_distance([self._backward(y[..., d], first + d) for d in range(count)])
        return sum(parts[1:], parts[0])

    def _forward(self, x: Array, axis: int) -> Array:
        xp, last = namespace(x), slice_of(x, axis, -1, None)
        end = slice_of(x, axis, 0, 1) - last if self.boundary == "periodic" else xp.zeros_like(last)
        return xp.concat([slice_of(x, axis, 1, None) - slice_of(x, axis, 0, -1), end], axis=axis)

    def _backward(self, part: Array, axis: int) -> Array:
        xp, inside, last = namespace(part), slice_of(part, axis, 0, -1), slice_of(part, axis, -1, None)
        end = last if self.boundary == "periodic" else xp.zeros_like(last)
        return xp.concat([end, inside], axis=axis) - xp.concat([inside, end], axis=axis)

    def _per_distance(self, parts: list[Array]) -> list[Array]:
        """What belongs to each axis, divided by the distance of pixels there."""
        if self.spacing is None:
            return parts
        return [part / distance for part, distance in zip(parts, self.spacing, strict=True)]


@dataclass(frozen=True, eq=False)
class Identity(ArrayOperator):
    """``x -> x``, for images of one shape."""

    shape: InitVar[Any]

    def __post_init__(self, shape: Any) -> None:
        shape = as_shape(shape)
        self._set(input_shape=shape, output_shape=shape, norm_squared=1.0)

    def _apply(self, x: Array) -> Array:
        return x

    def _apply_adjoint(self, y: Array) -> Array:
        return y


@dataclass(frozen=True, eq=False)
class Convolution(ArrayOperator):
    """Periodic convolution ``F^H diag(spectrum) F x``; a real kernel keeps real images real.

    Parameters
    ----------
    kernel : array
        As many axes as the image, none longer; its centre is its entry ``size // 2``. Given in the kind and
        precision of the images it is not converted at each product.
    shape : tuple of int
        The shape of the image.

    Examples
    --------
    >>> from ell12.operators.image_operators import Convolution
    >>> (Convolution([1, 2, 3], (4,)) @ [1, 0, 0, 0]).round(12)
    array([2., 3., 0., 1.])
    """

    kernel: Array
    shape: InitVar[Any]
    spectrum: Array = field(init=False, repr=False)  # the transfer function

    def __post_init__(self, shape: Any) -> None:
        kernel, shape = as_floating(self.kernel, "kernel"), as_shape(shape)
        sizes = zip(kernel.shape, shape, strict=False)
        if len(kernel.shape) != len(shape) or not all(0 < k <= n for k, n in sizes):
            raise ValueError(f"kernel of shape {tuple(kernel.shape)} does not fit in an image of shape {shape}")
        check_entries(kernel, "kernel")
        spectrum = _transfer_function(kernel, shape)
        self._set(kernel=kernel, spectrum=spectrum, norm_squared=max_abs(spectrum) ** 2)
        self._set(input_shape=shape, output_shape=shape)

    def _apply(self, x: Array) -> Array:
        return self._filter(x, sent_to_device_of(self.spectrum, x))

    def _apply_adjoint(self, y: Array) -> Array:
        return self._filter(y, conjugate_of(sent_to_device_of(self.spectrum, y)))

    def _filter(self, x: Array, spectrum: Array) -> Array:
        xp, axes = namespace(x), tuple(range(x.ndim))
        spectrum = xp.astype(spectrum, _complex_dtype(x), copy=False)
        if is_complex(x) or is_complex(self.kernel):
            return xp.fft.ifftn(xp.fft.fftn(_complex(x)) * spectrum)
        half = spectrum[..., : x.shape[-1] // 2 + 1]
        return xp.fft.irfftn(xp.fft.rfftn(x, axes=axes) * half, s=self.input_shape, axes=axes)


@dataclass(frozen=True, eq=False)
class Sampling(ArrayOperator):
    """The entries of an array that a mask keeps, as a vector; the adjoint puts them back among zeros.

    Parameters
    ----------
    mask : array of bool
        True where an entry is observed.

    Examples
    --------
    >>> from ell12.operators.image_operators import Sampling
    >>> Sampling([[True, False], [True, True]]) @ [[1, 2], [3, 4]]
    array([1., 3., 4.])
    """

    mask: Array
    indices: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mask = self.mask if hasattr(self.mask, "shape") else np.asarray(self.mask)
        xp = namespace(mask)
        if not xp.isdtype(mask.dtype, "bool"):
            raise TypeError(f"mask must hold truth values, got dtype {mask.dtype}")
        (indices,) = xp.nonzero(xp.reshape(mask, (-1,)))
        if indices.shape[0] == 0:
            raise ValueError(f"mask of shape {tuple(mask.shape)} keeps no entry")
        self._set(mask=mask, indices=indices, norm_squared=1.0)
        self._set(input_shape=tuple(mask.shape), output_shape=(int(indices.shape[0]),))

    def _apply(self, x: Array) -> Array:
        xp = namespace(x)
        return xp.take(xp.reshape(x, (-1,)), sent_to_device_of(self.indices, x), axis=0)

    def _apply_adjoint(self, y: Array) -> Array:
        entries = scatter(y, sent_to_device_of(self.indices, y), math.prod(self.input_shape))
        return namespace(y).reshape(entries, self.input_shape)


@dataclass(frozen=True, eq=False)
class FourierSampling(Sampling):
    """The entries that a mask keeps of the orthonormal Fourier transform of an image, as a complex vector.

    The adjoint puts zeros for the others and transforms back: a complex image, also where x was real.

    Parameters
    ----------
    mask : array of bool
        True where a coefficient is measured, the zero frequency first (``ifftshift`` of a centred mask).

    Examples
    --------
    >>> from ell12.operators.image_operators import FourierSampling
    >>> FourierSampling([True, False, False, False]) @ [1, 2, 3, 4]
    array([5.+0.j])
    """

    def _apply(self, x: Array) -> Array:
        return super()._apply(namespace(x).fft.fftn(_complex(x), norm="ortho"))

    def _apply_adjoint(self, y: Array) -> Array:
        return namespace(y).fft.ifftn(super()._apply_adjoint(_complex(y)), norm="ortho")


def as_spacing(spacing: Any, ndim: int) -> tuple[float, ...] | None:
    """Check that spacing holds one positive number for each axis, or is one for all, and return it as a tuple."""
    if spacing is None:
        return None
    distances = (spacing,) * ndim if is_number(spacing) else spacing
    with suppress(TypeError):  # where it is no sequence
        found = tuple(float(s) for s in distances if is_finite_number(s) and s > 0)
        if len(found) == ndim == len(distances):
            return found
    raise ValueError(f"spacing must be a number > 0, or hold one for each of {ndim} axes; got {spacing!r}")


def slice_of(x: Array, axis: int, start: int, stop: int | None) -> Array:
    """The part of x between two positions along one axis."""
    return x[(*(slice(None),) * axis, slice(start, stop), ...)]


def _complex_dtype(x: Array) -> Any:
    xp = namespace(x)
    return xp.complex128 if real_dtype(x) == xp.float64 else xp.complex64


def _complex(x: Array) -> Array:
    return namespace(x).astype(x, _complex_dtype(x), copy=False)


def _transfer_function(kernel: Array, shape: tuple[int, ...]) -> Array:
    """Return the Fourier transform of the image that holds the kernel with its centre at the first entry."""
    xp = namespace(kernel)
    offsets = np.meshgrid(*(np.arange(k) - k // 2 for k in kernel.shape), indexing="ij")
    indices = np.ravel_multi_index(offsets, shape, mode="wrap").reshape(-1)
    image = scatter(xp.reshape(kernel, (-1,)), sent_to_device_of(indices, kernel), math.prod(shape))
    return xp.fft.fftn(_complex(xp.reshape(image, shape)))


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
    >>> from ell12.operators.image_operators import MirroredConvolution
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
